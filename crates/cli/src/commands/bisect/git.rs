// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commits of a range that changed a scheduler's file, and their trees.
//!
//! git gets every name as an argument of its own, after `--end-of-options` or `--`, so a name that
//! looks like an option is none.

use crate::error::{CliError, CliResult, Exit};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most commits of a range.
const COMMITS_MAX: usize = 10_000;

/// A commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// Its full name.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

/// A scheduler's file in a repository.
#[derive(Debug)]
pub struct Repository {
    /// The top directory.
    top: PathBuf,
    /// Path of the file below it.
    file: PathBuf,
}

impl Repository {
    /// The repository that holds `file`.
    pub fn of(file: &Path) -> CliResult<Self> {
        let file = std::path::absolute(file).map_err(|e| CliError::file("find", file, &e))?;
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
            return Err(CliError::usage(format!("{} is no file", file.display())));
        };
        let text =
            run(folder, ["rev-parse", "--show-toplevel", "--show-prefix"].map(OsString::from))?;
        let mut lines = text.split('\n');
        let (top, prefix) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        Ok(Self { top: top.into(), file: Path::new(prefix).join(name) })
    }

    /// The good commit of `range` (`GOOD..BAD`), then those up to the bad one that changed the file
    /// or its directory, the oldest first.
    pub fn commits(&self, range: &str) -> CliResult<Vec<Commit>> {
        let Some((good, bad)) = range.split_once("..") else {
            return Err(CliError::usage_help(
                format!("--git {range:?} is no range"),
                "give GOOD..BAD, such as v1.0..HEAD",
            ));
        };
        let bad = if bad.is_empty() { "HEAD" } else { bad };
        let (good, bad) = (self.commit(good)?, self.commit(bad)?);
        let mut args: Vec<OsString> = Vec::new();
        args.extend(
            ["log", "--reverse", "--topo-order", "-z", "--format=%H %s"].map(OsString::from),
        );
        args.push("--end-of-options".into());
        args.push(format!("{}..{}", good.id, bad.id).into());
        args.push("--".into());
        let folder = self.file.parent().unwrap_or(Path::new(""));
        args.push(if folder.as_os_str().is_empty() { ".".into() } else { folder.into() });
        let text = run(&self.top, args)?;
        let listed = text.split('\0').filter(|line| !line.is_empty()).map(parsed);
        let commits: Vec<Commit> = std::iter::once(good).chain(listed).collect();
        match commits.len() {
            1 => Err(CliError::usage_help(
                format!("no commit of {range} changes the directory of {}", self.file.display()),
                "give an older GOOD or a newer BAD",
            )),
            count if count > COMMITS_MAX => Err(CliError::usage(format!(
                "{range} has {count} commits: allowed are {COMMITS_MAX}"
            ))),
            _ => Ok(commits),
        }
    }

    fn commit(&self, name: &str) -> CliResult<Commit> {
        let mut args: Vec<OsString> = Vec::new();
        args.extend(["log", "-1", "--format=%H %s", "--end-of-options"].map(OsString::from));
        args.extend([OsString::from(name), "--".into()]);
        let text = run(&self.top, args)?;
        Ok(parsed(text.trim_end()))
    }

    /// Writes the tree of a commit below `folder`. Returns the path of the file there.
    pub fn extract(&self, commit: &Commit, folder: &Path) -> CliResult<PathBuf> {
        let tree = folder.join(&commit.id);
        std::fs::create_dir_all(&tree).map_err(|e| CliError::file("create", &tree, &e))?;
        let archive = folder.join(format!("{}.tar", commit.id));
        let mut output = OsString::from("--output=");
        output.push(&archive);
        run(&self.top, ["archive".into(), "--format=tar".into(), output, (&commit.id).into()])?;
        let mut tar = Command::new("tar");
        tar.arg("-x").arg("-f").arg(&archive).arg("-C").arg(&tree);
        finished(&mut tar, "tar")?;
        std::fs::remove_file(&archive).map_err(|e| CliError::file("remove", &archive, &e))?;
        Ok(tree.join(&self.file))
    }
}

fn parsed(line: &str) -> Commit {
    let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
    Commit { id: id.to_owned(), subject: subject.to_owned() }
}

/// Runs git in `folder`. Returns what it prints.
fn run(folder: &Path, args: impl IntoIterator<Item = OsString>) -> CliResult<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(args).env("GIT_OPTIONAL_LOCKS", "0");
    finished(&mut git, "git")
}

fn finished(command: &mut Command, name: &str) -> CliResult<String> {
    let output = command.stdin(std::process::Stdio::null()).output().map_err(|error| {
        CliError::new(Exit::Unavailable, format!("{name} cannot be started: {error}"), "install it")
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let first = told.lines().next().unwrap_or("it tells no reason");
    let what = command.get_args().nth(2).unwrap_or(OsStr::new("")).to_string_lossy();
    Err(CliError::usage(format!("{name} {what} failed: {first}")))
}
