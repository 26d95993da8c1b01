// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches packages from Debian's archive without changing the system.
//!
//! apt uses directories of the cache: its own sources, lists and downloads. The system's sources
//! and lists do not change, and root is not needed. apt checks the lists against the distribution's
//! keyring, and each file against the lists. It uses the same mirror as the system.

use crate::VmError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Keyring of Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Default mirror, if the system uses none of Debian's.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Lists younger than this are not read again.
const LISTS_AGE: Duration = Duration::from_secs(3600);

/// apt with private directories.
#[derive(Debug)]
pub struct Apt {
    /// Its directory.
    pub dir: PathBuf,
    /// The suite that it reads.
    suite: &'static str,
    /// Kinds of packages that it knows: `deb`, `deb-src`.
    kinds: &'static [&'static str],
    /// What a user without a reachable archive can do, in one sentence.
    advice: &'static str,
    _lock: File,
}

/// An error of a step, with the last line of what it wrote.
pub fn failed(what: &str, why: &str, advice: &str) -> VmError {
    let last = why.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    VmError::Unavailable(format!("{what}: {last}. {advice}"))
}

/// Runs a command and returns its output.
pub fn run(mut command: Command, what: &str, advice: &str) -> Result<String, VmError> {
    command.stdin(Stdio::null()).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.output().map_err(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        failed(what, &format!("{program} cannot be started: {error}"), advice)
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(what, &String::from_utf8_lossy(&output.stderr), advice))
}

/// Unpacks a package into a directory.
pub fn unpack(deb: &Path, dir: &Path, advice: &str) -> Result<(), VmError> {
    let mut command = Command::new("dpkg-deb");
    command.arg("-x").args([deb, dir]);
    run(command, &format!("unpacking {}", deb.display()), advice).map(drop)
}

impl Apt {
    /// apt for one suite with its directories in `dir`, once no other process uses them.
    pub fn new(
        dir: PathBuf,
        suite: &'static str,
        kinds: &'static [&'static str],
        advice: &'static str,
    ) -> Result<Self, VmError> {
        for part in ["lists/partial", "archives/partial", "debs"] {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(|error| VmError::file("make", &path, &error))?;
        }
        let path = dir.join("lock");
        let lock = File::create(&path).map_err(|error| VmError::file("write", &path, &error))?;
        lock.lock().map_err(|error| VmError::file("lock", &dir, &error))?;
        Ok(Self { dir, suite, kinds, advice, _lock: lock })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let dir = self.dir.display();
        for option in [
            format!("Dir::Etc::sourcelist={dir}/sources.list"),
            "Dir::Etc::sourceparts=-".into(),
            format!("Dir::State::Lists={dir}/lists"),
            "Dir::State::status=/dev/null".into(),
            format!("Dir::Cache={dir}"),
            "Debug::NoLocking=1".into(),
            // Its own user could not write here.
            "APT::Sandbox::User=root".into(),
            "APT::Architecture=amd64".into(),
            "APT::Architectures=amd64".into(),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "Acquire::Retries=3".into(),
        ] {
            command.args(["-o", &option]);
        }
        command
    }

    /// An error of a step of this apt.
    pub fn failed(&self, what: &str, why: &str) -> VmError {
        failed(what, why, self.advice)
    }

    /// Reads the lists of the suite, unless they are new.
    pub fn update(&self, say: &dyn Fn(&str)) -> Result<(), VmError> {
        let suite = self.suite;
        let done = self.dir.join("updated");
        let is_young = fs::metadata(&done)
            .and_then(|data| data.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age < LISTS_AGE));
        if is_young {
            return Ok(());
        }
        if !Path::new(KEYRING).is_file() {
            return Err(VmError::Unavailable(format!(
                "the keys of Debian's archive are not here ({KEYRING}): apt-get install \
                 debian-archive-keyring. {}",
                self.advice
            )));
        }
        let mirror = mirror(suite.ends_with("-security"));
        let line = |kind: &&str| format!("{kind} [signed-by={KEYRING}] {mirror} {suite} main\n");
        let lines: String = self.kinds.iter().map(line).collect();
        let sources = self.dir.join("sources.list");
        fs::write(&sources, lines).map_err(|error| VmError::file("write", &sources, &error))?;
        say(&format!("reading the package lists of {suite}"));
        let mut command = self.command("apt-get");
        command.args(["update", "--error-on=any"]);
        run(command, &format!("reading the package lists of {suite}"), self.advice)?;
        fs::write(&done, "").map_err(|error| VmError::file("write", &done, &error))
    }

    /// Names of the packages of the suite that begin so.
    pub fn names(&self, start: &str) -> Result<String, VmError> {
        let mut command = self.command("apt-cache");
        command.args(["pkgnames", start]);
        run(command, "reading the names of packages", self.advice)
    }

    /// Versions of a package in the suite, newest first.
    pub fn versions(&self, package: &str) -> Result<Vec<String>, VmError> {
        let mut command = self.command("apt-cache");
        command.args(["madison", package]);
        let text = run(command, "reading versions", self.advice)?;
        Ok(text
            .lines()
            .filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned()))
            .collect())
    }

    /// Downloads packages (`name` or `name=version`) into an empty directory of its own.
    pub fn download(&self, packages: &[String]) -> Result<tempfile::TempDir, VmError> {
        self.load(&["download"], packages)
    }

    /// Downloads the files of a source package, without unpacking them.
    pub fn download_source(&self, package: &str) -> Result<tempfile::TempDir, VmError> {
        self.load(&["source", "--download-only"], &[package.to_owned()])
    }

    fn load(&self, how: &[&str], packages: &[String]) -> Result<tempfile::TempDir, VmError> {
        let files = tempfile::tempdir_in(self.dir.join("debs"))
            .map_err(|error| VmError::file("make a directory in", &self.dir, &error))?;
        let mut command = self.command("apt-get");
        command.args(how).args(packages).current_dir(files.path());
        run(command, &format!("downloading {}", packages.join(" ")), self.advice)?;
        Ok(files)
    }
}

/// The files of a directory, by name.
pub fn files_of(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The system's mirror of the archive, or of its security updates.
fn mirror(is_security: bool) -> String {
    let mut command = Command::new("apt-get");
    command.args([
        "indextargets",
        "--format",
        "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
        "Created-By: Packages",
    ]);
    let label = if is_security { "Debian-Security" } else { "Debian" };
    let text = run(command, "asking for the mirror", "").unwrap_or_default();
    mirror_in(&text, label).unwrap_or_else(|| match is_security {
        true => format!("{MIRROR}-security"),
        false => MIRROR.into(),
    })
}

fn mirror_in(text: &str, label: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, '|');
        let is_wanted = fields.next() == Some("Debian") && fields.next() == Some(label);
        let address = fields.next()?.trim_end_matches('/');
        (is_wanted && address.starts_with("http")).then(|| address.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_systems_own() {
        let text = "Debian|Debian|http://mirror.example/debian/\n\
                    Debian|Debian-Security|http://mirror.example/security/\n\
                    Other|Debian|http://elsewhere.example/x/\n";
        assert_eq!(mirror_in(text, "Debian").as_deref(), Some("http://mirror.example/debian"));
        let security = mirror_in(text, "Debian-Security");
        assert_eq!(security.as_deref(), Some("http://mirror.example/security"));
        assert_eq!(mirror_in("Ubuntu|Ubuntu|http://a.example/ubuntu/\n", "Debian"), None);
        assert_eq!(mirror_in("Debian|Debian|file:/srv/mirror\n", "Debian"), None);
    }
}
