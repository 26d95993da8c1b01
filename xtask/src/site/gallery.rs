// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gallery of the documentation: the commands of docs/gallery.md are run when the site is
//! built, and the page gets their reports with a picture of each.

use super::read;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The page, in docs/.
pub const PAGE: &str = "gallery.md";

/// Folder of the reports, in docs/.
const FOLDER: &str = "gallery";

/// How a command of the page begins, in a block of code.
const COMMAND: &str = "    schedlab ";

/// Options that name the output of a command: a report, or the folder of a reproduction.
const REPORT: &str = "--report";
const OUTPUT: &str = "--output";

/// The pages of a reproduction.
const STUDY_PAGES: &str = "report";

/// What the commands of the page have made.
#[derive(Debug, Default)]
pub struct Gallery {
    /// The page with links and pictures.
    pub text: String,
    /// Files by their paths in docs/.
    pub files: Vec<(String, Vec<u8>)>,
}

/// What one command has made.
#[derive(Debug)]
struct Shown {
    /// The report's path in docs/.
    report: String,
    /// The picture's path in docs/.
    picture: Option<String>,
    /// What the command says of a reproduction: how many claims hold.
    summary: Option<String>,
    files: Vec<(String, Vec<u8>)>,
}

/// Runs the commands of the page `text` by `program` in the folder `root`. What they write first
/// comes into the folder `work`, without what an earlier build left there.
pub fn make(root: &Path, program: &Path, work: &Path, text: &str) -> Result<Gallery, String> {
    match fs::remove_dir_all(work) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("cannot remove {}: {error}", work.display()));
        }
        _ => {}
    }
    let mut gallery = Gallery::default();
    let mut heading = "";
    for line in text.lines() {
        gallery.text += line;
        gallery.text.push('\n');
        if let Some(words) = line.strip_prefix("## ") {
            heading = words;
        }
        let Some(command) = line.strip_prefix(COMMAND) else { continue };
        let runner = Runner { root, program, work };
        let shown = runner.show(command).map_err(|error| format!("{PAGE}: {command}: {error}"))?;
        gallery.text += &markdown(heading, &shown);
        gallery.files.extend(shown.files);
    }
    match gallery.files.is_empty() {
        true => Err(format!("{PAGE} has no command: begin its line with four blanks")),
        false => Ok(gallery),
    }
}

/// What the page says below a command.
fn markdown(heading: &str, shown: &Shown) -> String {
    let Shown { report, picture, summary, .. } = shown;
    let picture = picture.as_ref().map(|file| format!("\n[![{heading}]({file})]({report})\n"));
    let summary = summary.as_ref().map(|text| format!("\n{text}\n"));
    let link = format!("\n[Open the report: {heading}]({report})\n");
    [picture, summary, Some(link)].into_iter().flatten().collect()
}

struct Runner<'r> {
    root: &'r Path,
    program: &'r Path,
    work: &'r Path,
}

impl Runner<'_> {
    fn show(&self, command: &str) -> Result<Shown, String> {
        let mut words: Vec<String> = command.split_whitespace().map(String::from).collect();
        let at = |option| words.iter().position(|word| word == option).map(|at| at + 1);
        let (report, output) = (at(REPORT), at(OUTPUT));
        let Some(place) = report.or(output).filter(|at| *at < words.len()) else {
            return Err(format!("name the report by {REPORT}, or a folder by {OUTPUT}"));
        };
        let named = words[place].clone();
        let name = named.trim_end_matches(".html");
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(format!("{named} is no name of letters, digits and -"));
        }
        let folder = self.work.join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let own = if report.is_some() { folder.join(&named) } else { folder.clone() };
        words[place] = own.to_string_lossy().into_owned();
        match report {
            Some(_) => self.report(name, &words, &own),
            None => self.studies(name, &words, &folder),
        }
    }

    /// A report, and the picture of its first figure. That of an experiment file has none: its
    /// results are tables, of which the program draws no files.
    fn report(&self, name: &str, words: &[String], own: &Path) -> Result<Shown, String> {
        let mut words = words.to_vec();
        // The runs of an experiment file are stored, by default where the command is given.
        if words.iter().any(|word| word.ends_with(".toml")) {
            words.extend([OUTPUT.into(), own.with_extension("runs").to_string_lossy().into()]);
            self.run(&words)?;
            let report = format!("{FOLDER}/{name}.html");
            let files = vec![(report.clone(), read(own)?)];
            return Ok(Shown { report, picture: None, summary: None, files });
        }
        // A comparison keeps its timelines by itself.
        let is_sim = words.first().is_some_and(|command| command == "sim");
        words.extend(["--json"].iter().chain(is_sim.then_some(&"--keep")).map(ToString::to_string));
        let results = self.run(&words)?;
        let stored = own.with_extension("json");
        let io = |error| format!("{}: {error}", stored.display());
        fs::write(&stored, results).map_err(io)?;
        let plots = own.with_extension("plots");
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let again = own.with_extension("again.html");
        let options = [path(&stored), OUTPUT.into(), path(&again), "--plots".into(), path(&plots)];
        self.run(&["report".to_string()].into_iter().chain(options).collect::<Vec<_>>())?;
        let report = format!("{FOLDER}/{name}.html");
        let mut files = vec![(report.clone(), read(own)?)];
        let picture = picture(&plots)?;
        let picture =
            picture.map(|file| Ok::<_, String>((format!("{FOLDER}/{name}.svg"), read(&file)?)));
        let picture = picture.transpose()?;
        let shown = picture.as_ref().map(|(path, _)| path.clone());
        files.extend(picture);
        Ok(Shown { report, picture: shown, summary: None, files })
    }

    /// The pages of a reproduction.
    fn studies(&self, name: &str, words: &[String], folder: &Path) -> Result<Shown, String> {
        let printed = String::from_utf8_lossy(&self.run(words)?).into_owned();
        let summary = printed.lines().rfind(|line| !line.trim().is_empty()).map(String::from);
        let mut files = Vec::new();
        for file in listed(folder)? {
            let own = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if own.starts_with(STUDY_PAGES) && own.ends_with(".html") {
                files.push((format!("{FOLDER}/{name}/{own}"), read(&file)?));
            }
        }
        let report = format!("{FOLDER}/{name}/{STUDY_PAGES}.html");
        match files.iter().any(|(path, _)| *path == report) {
            true => Ok(Shown { report, picture: None, summary, files }),
            false => Err(format!("it writes no {STUDY_PAGES}.html")),
        }
    }

    /// Runs the program. Returns what it prints.
    fn run(&self, words: &[String]) -> Result<Vec<u8>, String> {
        let mut command = Command::new(self.program);
        command.args(words).current_dir(self.root).stdin(Stdio::null());
        // A user's own settings have no place in the documentation.
        command.env("SCHEDLAB_CONFIG", "").stderr(Stdio::piped());
        let done = command.output().map_err(|e| format!("{}: {e}", self.program.display()))?;
        match done.status.success() {
            true => Ok(done.stdout),
            false => Err(String::from_utf8_lossy(&done.stderr).trim().to_string()),
        }
    }
}

/// The picture that stands for a report: its timeline, or else the first figure by name.
fn picture(plots: &Path) -> Result<Option<PathBuf>, String> {
    let mut files = listed(plots)?;
    files.retain(|path| path.extension().is_some_and(|end| end == "svg"));
    let is_timeline = |path: &&PathBuf| path.to_string_lossy().ends_with("-timeline.svg");
    Ok(files.iter().find(is_timeline).or(files.first()).cloned())
}

/// The files of a folder, by name.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(error)?;
    let mut files = entries
        .map(|entry| Ok(entry.map_err(error)?.path()))
        .collect::<Result<Vec<_>, String>>()?;
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A program that writes reports with its own words in them.
    fn program(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("program");
        fs::write(&path, format!("#!/bin/sh\nset -eu\n{script}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    const WRITES: &str = "case $1 in
sim) echo \"$*\" > \"$4\"; echo '{}' ;;
report) mkdir \"$6\"; touch \"$6/x-box.svg\"; echo line > \"$6/x-timeline.svg\" ;;
reproduce) cd \"$3\"; touch report.html report-s0.html claims.json; echo; echo 3 claims ;;
esac
";

    #[test]
    fn commands_get_their_reports_and_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), WRITES);
        let commands =
            ["schedlab sim hogs --report one.html", "schedlab reproduce --output studies"];
        let [one, all] = commands;
        let text = format!("# Gallery\n\n## One\n\n    {one}\n\n## All\n\n    {all}\n");
        let work = folder.path().join("work");
        let made = make(folder.path(), &program, &work, &text).unwrap();
        let names: Vec<&str> = made.files.iter().map(|(name, _)| name.as_str()).collect();
        let studies = ["gallery/studies/report-s0.html", "gallery/studies/report.html"];
        assert_eq!(names, [&["gallery/one.html", "gallery/one.svg"][..], &studies].concat());
        assert!(String::from_utf8_lossy(&made.files[0].1).starts_with("sim hogs --report /"));
        assert_eq!(made.files[1].1, b"line\n");
        for line in [
            "    schedlab sim hogs --report one.html",
            "[![One](gallery/one.svg)](gallery/one.html)",
            "[Open the report: One](gallery/one.html)",
            "3 claims",
            "[Open the report: All](gallery/studies/report.html)",
        ] {
            assert!(made.text.lines().any(|found| found == line), "{line}: {}", made.text);
        }
    }

    #[test]
    fn a_command_that_fails_or_shows_nothing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "echo 'no such workload' >&2; exit 2\n");
        let make =
            |text: &str| make(folder.path(), &program, &folder.path().join("w"), text).unwrap_err();
        assert!(make("    schedlab sim hog --report a.html\n").contains("no such workload"));
        assert!(make("    schedlab sim hogs\n").contains("name the report by --report"));
        assert!(make("    schedlab sim hogs --report ../a.html\n").contains("is no name"));
        assert!(make("# Gallery\n").contains("has no command"));
    }
}
