// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the figures of the documentation. The program draws those of the pages about schedulers;
//! those of docs/reference/performance.md come from stored results.
//!
//! docs/images/schedulers/figures.json names the command that makes each file. The page shows the
//! file and exactly that command.

use crate::curves;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "docs/images/schedulers";
const PAGES: &str = "docs/reference";
/// How a page writes the folder for the command's output.
const PLOTS: &str = " --plots plots";
/// Size limit of a figure in bytes, because users read pages over slow connections too.
const BYTES_MAX: usize = 60_000;

/// An entry of the list.
#[derive(Debug)]
struct Figure {
    /// Name of the SVG below [`FOLDER`].
    file: String,
    /// Page below [`PAGES`] that contains it.
    page: String,
    /// The command as a reader types it, from the root of the repository.
    command: String,
}

/// Makes every figure with `program`. With `check` it writes nothing and reports differences.
/// Returns the problems.
pub fn figures(root: &Path, program: &Path, check: bool) -> Result<Vec<String>, String> {
    let list = list(root)?;
    let mut problems = pages(root, &list)?;
    let mut made = Vec::new();
    for figure in &list {
        made.push((format!("{FOLDER}/{}", figure.file), draw(root, program, figure)?));
    }
    made.extend(curves::all(root)?.into_iter().map(|(file, svg)| (file.to_string(), svg)));
    for (file, svg) in made {
        if svg.len() > BYTES_MAX {
            problems.push(format!("{file}: {} bytes, allowed are {BYTES_MAX}", svg.len()));
        }
        let path = root.join(&file);
        if std::fs::read_to_string(&path).is_ok_and(|stored| stored == svg) {
            continue;
        }
        if check {
            problems.push(format!("{file}: not what is made now; `cargo xtask figures`"));
        } else {
            std::fs::write(&path, svg).map_err(|error| format!("{file}: {error}"))?;
            println!("{file}: written");
        }
    }
    Ok(problems)
}

fn list(root: &Path) -> Result<Vec<Figure>, String> {
    let file = format!("{FOLDER}/figures.json");
    let text = std::fs::read_to_string(root.join(&file)).map_err(|e| format!("{file}: {e}"))?;
    let list: Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    let entries = list.as_array().ok_or_else(|| format!("{file}: no list"))?;
    let word = |entry: &Value, name: &str| {
        let text = entry[name].as_str().map(String::from);
        text.ok_or_else(|| format!("{file}: an entry without {name:?}"))
    };
    entries
        .iter()
        .map(|entry| {
            Ok(Figure {
                file: word(entry, "file")?,
                page: word(entry, "page")?,
                command: word(entry, "command")?,
            })
        })
        .collect()
}

/// Problems of the pages: a figure or its command is missing, or a page has none.
fn pages(root: &Path, list: &[Figure]) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let read = |page: &str| {
        std::fs::read_to_string(root.join(PAGES).join(page)).map_err(|e| format!("{page}: {e}"))
    };
    for figure in list {
        let text = read(&figure.page)?;
        if !text.contains(&format!("](../images/schedulers/{})", figure.file)) {
            problems.push(format!("{}: does not show {}", figure.page, figure.file));
        }
        if !text.contains(&format!("    {}\n", figure.command)) {
            problems.push(format!("{}: lacks the command {:?}", figure.page, figure.command));
        }
    }
    let folder = std::fs::read_dir(root.join(PAGES)).map_err(|e| format!("{PAGES}: {e}"))?;
    for entry in folder {
        let name = entry.map_err(|e| format!("{PAGES}: {e}"))?.file_name();
        let name = name.to_string_lossy();
        let is_page = name.starts_with("schedulers-") && name.ends_with(".md");
        if is_page && !list.iter().any(|figure| figure.page == name) {
            problems.push(format!("{PAGES}/{name}: has no figure in {FOLDER}/figures.json"));
        }
    }
    problems.sort();
    Ok(problems)
}

/// The timeline that the command of `figure` draws.
fn draw(root: &Path, program: &Path, figure: &Figure) -> Result<String, String> {
    let wrong = |what: String| format!("{}: {what}", figure.file);
    let words = figure
        .command
        .strip_prefix("schedlab ")
        .and_then(|rest| rest.strip_suffix(PLOTS))
        .ok_or_else(|| wrong(format!("the command is not \"schedlab …{PLOTS}\"")))?;
    let folder = std::env::temp_dir().join(format!("schedlab-figures-{}", std::process::id()));
    let output = Command::new(program)
        .args(words.split_whitespace())
        .arg("--plots")
        .arg(&folder)
        .current_dir(root)
        .output()
        .map_err(|error| wrong(format!("cannot run {}: {error}", program.display())))?;
    let svg = timeline(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    if !output.status.success() {
        return Err(wrong(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    svg.ok_or_else(|| wrong("the command drew no timeline".into()))
}

/// The text of the only `…-timeline.svg` in `folder`.
fn timeline(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found = paths.filter(|path| path.to_string_lossy().ends_with("-timeline.svg"));
    let svg = std::fs::read_to_string(found.next()?).ok()?;
    found.next().is_none().then_some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_show_their_figures_and_the_commands() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let list = list(&root).unwrap();
        assert!(!list.is_empty());
        let problems = pages(&root, &list).unwrap();
        let of_list = problems.iter().filter(|problem| !problem.contains("has no figure"));
        assert_eq!(of_list.collect::<Vec<_>>(), Vec::<&String>::new());
        for figure in &list {
            let svg = std::fs::read(root.join(FOLDER).join(&figure.file)).unwrap();
            assert!(svg.len() <= BYTES_MAX, "{figure:?}: {} bytes", svg.len());
        }
    }

    #[test]
    fn a_command_of_another_form_is_refused() {
        let figure = |command: &str| Figure {
            file: "a.svg".into(),
            page: "p.md".into(),
            command: command.into(),
        };
        for command in ["rm -rf x --plots plots", "schedlab sim hogs", "schedlab sim hogs --plots"]
        {
            let error = draw(Path::new("."), Path::new("none"), &figure(command)).unwrap_err();
            assert!(error.contains("the command is not"), "{error}");
        }
        let error =
            draw(Path::new("."), Path::new("/none"), &figure("schedlab sim x --plots plots"));
        assert!(error.unwrap_err().contains("cannot run"));
    }
}
