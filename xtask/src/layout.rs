// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout rule: dependencies between the crates point one way, and a new one is a decision.
//!
//! ARCHITECTURE.md records the decisions, in the two lists of its section about dependencies. This
//! check compares them with `cargo metadata`: an entry in only one of the two is a problem. So is a
//! function of the page's walk that its file does not have.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The page with the lists, and the heading of their section.
const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Dependencies point one way";
/// The heading of the table of functions that a command passes through, and its longest length.
const WALK: &str = "## From argv to the report";
const WALK_MAX: usize = 12;

/// Crates by the name of their folder, each with the crates that it uses.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// The allowed or actual dependencies.
#[derive(Debug, Default, PartialEq)]
struct Layout {
    /// Dependencies in every build.
    always: Edges,
    /// Additional dependencies in tests.
    in_tests: Edges,
}

/// Differences between the page and cargo.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join(PAGE)).map_err(|e| format!("{PAGE}: {e}"))?;
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot read cargo metadata: {error}"))?;
    let mut problems = differences(&of_page(&text)?, &of_metadata(&metadata));
    problems.extend(walk_problems(&text, |file| std::fs::read_to_string(root.join(file)).ok())?);
    Ok(problems)
}

/// The lines of the page below a heading, up to the next heading.
fn section<'t>(text: &'t str, heading: &str) -> Result<&'t str, String> {
    let (_, rest) = text.split_once(heading).ok_or(format!("{PAGE}: no section {heading:?}"))?;
    Ok(rest.split("\n## ").next().unwrap_or(rest))
}

/// Functions of the walk that their files do not have; `read` returns the text of a file.
fn walk_problems(text: &str, read: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, String> {
    let steps: Vec<Vec<&str>> = section(text, WALK)?
        .lines()
        .map(|line| line.split('`').collect::<Vec<_>>())
        .filter(|parts| parts.len() >= 5 && parts[0] == "| ")
        .collect();
    let mut problems = Vec::new();
    if steps.is_empty() || steps.len() > WALK_MAX {
        problems.push(format!("{PAGE}: {} steps under {WALK:?}, allowed 1 to 12", steps.len()));
    }
    for step in steps {
        let (function, file) = (step[1], step[3]);
        let has = |text: String| {
            ["(", "<"].iter().any(|next| text.contains(&format!("fn {function}{next}")))
        };
        if !read(file).is_some_and(has) {
            problems.push(format!("{PAGE}: {file} has no function {function}"));
        }
    }
    Ok(problems)
}

/// Parses the lists of the page.
fn of_page(text: &str) -> Result<Layout, String> {
    let section = section(text, HEADING)?;
    let mut lists: Vec<Vec<&str>> = Vec::new();
    let mut is_in_list = false;
    for line in section.lines() {
        let was_in_list = std::mem::replace(&mut is_in_list, line.starts_with("    "));
        match lists.last_mut().filter(|_| was_in_list) {
            Some(list) if is_in_list => list.push(line.trim()),
            _ if is_in_list => lists.push(vec![line.trim()]),
            _ => {}
        }
    }
    let [always, in_tests] = lists.as_slice() else {
        return Err(format!("{PAGE}: {} lists under {HEADING:?} instead of 2", lists.len()));
    };
    no_circle(always)?;
    Ok(Layout { always: edges(always)?, in_tests: edges(in_tests)? })
}

/// Parses a line: a crate and the crates that it uses.
fn edges_of(line: &str) -> Result<(&str, BTreeSet<String>), String> {
    let wrong = || format!("{PAGE}: {line:?} is no line of a crate and what it uses");
    let (from, uses) = line.split_once("  ").ok_or_else(wrong)?;
    let uses = uses.trim().split(", ").filter(|name| *name != "nothing");
    Ok((from, uses.map(String::from).collect()))
}

fn edges(list: &[&str]) -> Result<Edges, String> {
    list.iter().map(|line| edges_of(line).map(|(from, uses)| (from.into(), uses))).collect()
}

/// Checks that every crate follows those that it uses, so that the list has no cycle.
fn no_circle(list: &[&str]) -> Result<(), String> {
    let mut earlier = BTreeSet::new();
    for line in list {
        let (from, uses) = edges_of(line)?;
        if let Some(to) = uses.iter().find(|to| !earlier.contains(to.as_str())) {
            return Err(format!("{PAGE}: {from} uses {to}, which stands in no earlier line"));
        }
        earlier.insert(from);
    }
    Ok(())
}

/// The layout in cargo's metadata.
fn of_metadata(metadata: &Value) -> Layout {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    // A package may have another name than its folder.
    let folders: BTreeMap<String, String> = packages
        .iter()
        .map(|package| {
            let manifest = text(&package["manifest_path"]);
            let folder = manifest.rsplit('/').nth(1).unwrap_or_default().to_string();
            (text(&package["name"]), folder)
        })
        .collect();
    let mut layout = Layout::default();
    for package in packages {
        let from = &folders[&text(&package["name"])];
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let uses = |in_tests: bool| -> BTreeSet<String> {
            let wanted = dependencies.iter().filter(|one| (one["kind"] == "dev") == in_tests);
            wanted.filter_map(|one| folders.get(&text(&one["name"])).cloned()).collect()
        };
        let always = uses(false);
        let in_tests: BTreeSet<String> =
            uses(true).into_iter().filter(|to| to != from && !always.contains(to)).collect();
        if !in_tests.is_empty() {
            layout.in_tests.insert(from.clone(), in_tests);
        }
        layout.always.insert(from.clone(), always);
    }
    layout
}

fn differences(page: &Layout, cargo: &Layout) -> Vec<String> {
    let mut problems = Vec::new();
    for from in page.always.keys().filter(|from| !cargo.always.contains_key(*from)) {
        problems.push(format!("{PAGE} names a crate {from}, which is not in the workspace"));
    }
    for from in cargo.always.keys().filter(|from| !page.always.contains_key(*from)) {
        problems.push(format!("{from}: a crate that {PAGE} does not name"));
    }
    let none = BTreeSet::new();
    let lists = [(&page.always, &cargo.always, ""), (&page.in_tests, &cargo.in_tests, " in tests")];
    for (page, cargo, when) in lists {
        for from in page.keys().chain(cargo.keys().filter(|from| !page.contains_key(*from))) {
            let [allowed, used] = [page, cargo].map(|edges| edges.get(from).unwrap_or(&none));
            for to in used.difference(allowed) {
                problems.push(format!("{from} uses {to}{when}, which {PAGE} does not allow"));
            }
            for to in allowed.difference(used) {
                problems.push(format!("{PAGE}: {from} does not use {to}{when}"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_and_cargo_agree() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let problems = check(root).unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    fn page(always: &str, in_tests: &str) -> Result<Layout, String> {
        of_page(&format!(
            "# A\n\n{HEADING}\n\n{always}\nTests:\n\n{in_tests}\n## B\n\n    no list\n"
        ))
    }

    #[test]
    fn what_one_of_both_lacks_is_named() {
        let package = |name: &str, uses: &[(&str, Option<&str>)]| {
            let uses: Vec<Value> =
                uses.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
            let folder = name.trim_start_matches("schedlab-");
            let manifest = format!("/x/crates/{folder}/Cargo.toml");
            json!({"name": name, "dependencies": uses, "manifest_path": manifest})
        };
        let metadata = json!({"packages": [
            package("schedlab-model", &[("serde", None), ("schedlab-sched", Some("dev"))]),
            package("schedlab-sched", &[("schedlab-model", None), ("schedlab-engine", None)]),
            package("schedlab-engine", &[("schedlab-model", Some("dev"))]),
            package("stranger", &[]),
        ]});
        let page = page(
            "    model   nothing\n    sched   model\n    engine  model\n    gone    nothing\n",
            "    engine  model\n    gone    engine\n",
        );
        assert_eq!(
            differences(&page.unwrap(), &of_metadata(&metadata)),
            [
                "ARCHITECTURE.md names a crate gone, which is not in the workspace",
                "stranger: a crate that ARCHITECTURE.md does not name",
                "ARCHITECTURE.md: engine does not use model",
                "sched uses engine, which ARCHITECTURE.md does not allow",
                "ARCHITECTURE.md: gone does not use engine in tests",
                "model uses sched in tests, which ARCHITECTURE.md does not allow",
            ]
        );
    }

    #[test]
    fn a_walk_through_functions_that_are_gone_is_refused() {
        let page =
            |rows: &str| format!("# A\n\n{WALK}\n\n| function | in |\n| --- | --- |\n{rows}");
        let read = |file: &str| (file == "a.rs").then(|| "pub fn here() {}\n".to_string());
        let problems = |rows: &str| walk_problems(&page(rows), read).unwrap();
        assert!(problems("| `here` | `a.rs` | x |\n").is_empty());
        assert_eq!(
            problems("| `gone` | `a.rs` | x |\n| `here` | `b.rs` | x |\n"),
            [
                "ARCHITECTURE.md: a.rs has no function gone",
                "ARCHITECTURE.md: b.rs has no function here"
            ]
        );
        assert!(problems("")[0].contains("0 steps"));
        assert!(problems(&"| `here` | `a.rs` | x |\n".repeat(13))[0].contains("13 steps"));
    }

    #[test]
    fn circles_and_what_is_no_list_are_refused() {
        let circle = "    model   sched\n    sched   model\n";
        let wrong = page(circle, "    model   sched\n").unwrap_err();
        assert!(wrong.contains("model uses sched, which stands in no earlier line"), "{wrong}");
        assert!(page("    model\n", "    model  sched\n").unwrap_err().contains("\"model\""));
        assert!(page("", "    model  sched\n").unwrap_err().contains("1 lists"));
        assert!(of_page("# A\n").unwrap_err().contains("no section"));
    }
}
