// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches a package from Debian's archive without changing the system.
//!
//! apt uses directories of the cache: its own sources, lists and downloads. The system's sources
//! and lists do not change, and root is not needed. apt checks the lists against the distribution's
//! keyring, and each file against the lists. It uses the same mirror as the system.

use super::series::{self, Series};
use crate::{Cache, VmError};
use schedlab_model::kernel::Pin;
use schedlab_run::sha::sha256;
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

/// A kernel image from a package.
#[derive(Debug)]
pub struct Fetched {
    /// Package and version.
    pub package: String,
    /// SHA-256 of the package.
    pub sha256: String,
    /// The image, in a directory that is removed with this value.
    pub image: PathBuf,
    _dir: tempfile::TempDir,
}

/// apt with private directories.
struct Apt {
    dir: PathBuf,
}

fn failed(what: &str, why: &str) -> VmError {
    let last = why.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    VmError::Unavailable(format!(
        "{what}: {last}. Kernels are fetched with apt from Debian's archive; without it, give the \
         path of an image"
    ))
}

/// Runs a command and returns its output.
fn run(mut command: Command, what: &str) -> Result<String, VmError> {
    command.stdin(Stdio::null()).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.output().map_err(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        failed(what, &format!("{program} cannot be started: {error}"))
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(what, &String::from_utf8_lossy(&output.stderr)))
}

impl Apt {
    fn new(dir: PathBuf) -> Result<Self, VmError> {
        for part in ["lists/partial", "archives/partial", "debs"] {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(|error| VmError::file("make", &path, &error))?;
        }
        Ok(Self { dir })
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

    /// Reads the lists of a suite, unless they are new.
    fn update(&self, suite: &str, say: &dyn Fn(&str)) -> Result<(), VmError> {
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
                 debian-archive-keyring, or give the path of an image"
            )));
        }
        let mirror = mirror(suite.ends_with("-security"));
        let line = format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        let sources = self.dir.join("sources.list");
        fs::write(&sources, line).map_err(|error| VmError::file("write", &sources, &error))?;
        say(&format!("reading the package lists of {suite}"));
        let mut command = self.command("apt-get");
        command.args(["update", "--error-on=any"]);
        run(command, &format!("reading the package lists of {suite}"))?;
        fs::write(&done, "").map_err(|error| VmError::file("write", &done, &error))
    }

    /// Names of all packages of the suite.
    fn names(&self) -> Result<String, VmError> {
        let mut command = self.command("apt-cache");
        command.args(["pkgnames", "linux-"]);
        run(command, "reading the names of packages")
    }

    /// Versions of a package in the suite, newest first.
    fn versions(&self, package: &str) -> Result<Vec<String>, VmError> {
        let mut command = self.command("apt-cache");
        command.args(["madison", package]);
        let text = run(command, "reading versions")?;
        Ok(text
            .lines()
            .filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned()))
            .collect())
    }

    /// Downloads one version; returns the file.
    fn download(&self, package: &str, version: &str) -> Result<PathBuf, VmError> {
        let debs = tempfile::tempdir_in(self.dir.join("debs"))
            .map_err(|error| VmError::file("make a directory in", &self.dir, &error))?;
        let mut command = self.command("apt-get");
        command.arg("download").arg(format!("{package}={version}")).current_dir(debs.path());
        run(command, &format!("downloading {package}"))?;
        let found = fs::read_dir(debs.path()).ok().and_then(|mut entries| entries.next()?.ok());
        let found =
            found.ok_or_else(|| failed(&format!("downloading {package}"), "no file came"))?;
        let path = self.dir.join("debs").join(found.file_name());
        fs::rename(found.path(), &path).map_err(|error| VmError::file("write", &path, &error))?;
        Ok(path)
    }
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
    let text = run(command, "asking for the mirror").unwrap_or_default();
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

/// Chooses what to download: the pinned build, or the newest one of the series.
fn choose(apt: &Apt, series: &Series, say: &dyn Fn(&str)) -> Result<(String, String), VmError> {
    if let Some(Pin { package, version, .. }) = series.image.pin
        && apt.versions(package)?.iter().any(|found| found == version)
    {
        return Ok((package.into(), version.into()));
    }
    let names = apt.names()?;
    let package = series::newest(&series.name(), names.lines()).ok_or_else(|| {
        VmError::Unavailable(format!(
            "{} has no kernel of the series {} any more; another series, or the path of an image, \
             will do",
            series.image.suite, series.version
        ))
    })?;
    if let Some(pin) = series.image.pin {
        say(&format!(
            "{} {} has left {}: taking the newest of the series, {package}",
            pin.package, pin.version, series.image.suite
        ));
    }
    let version = apt.versions(package)?.into_iter().next();
    let version = version.ok_or_else(|| failed(package, "the lists know no version of it"))?;
    Ok((package.into(), version))
}

/// Fetches the kernel of a series.
pub fn fetch(cache: &Cache, series: &Series, say: &dyn Fn(&str)) -> Result<Fetched, VmError> {
    let apt = Apt::new(cache.dir(&format!("apt/{}", series.image.suite))?)?;
    let lock = apt.dir.join("lock");
    let lock = File::create(&lock).map_err(|error| VmError::file("write", &lock, &error))?;
    lock.lock().map_err(|error| VmError::file("lock", &apt.dir, &error))?;
    apt.update(series.image.suite, say)?;
    let (package, version) = choose(&apt, series, say)?;
    say(&format!("downloading {package} {version}"));
    let deb = apt.download(&package, &version)?;
    let fetched = unpack(cache, &deb, &package, &version, series.image.pin);
    // It is checked and unpacked, or of no use.
    let _ = fs::remove_file(&deb);
    fetched
}

fn unpack(
    cache: &Cache,
    deb: &Path,
    package: &str,
    version: &str,
    pin: Option<Pin>,
) -> Result<Fetched, VmError> {
    let bytes = fs::read(deb).map_err(|error| VmError::file("read", deb, &error))?;
    let sha256 = sha256(&bytes);
    if let Some(pin) = pin.filter(|pin| pin.package == package && pin.version == version)
        && pin.sha256 != sha256
    {
        return Err(VmError::Check(format!(
            "{package} {version} has the SHA-256 {sha256}, but {} is known for it: this is another \
             file than the tested one, and it is not used",
            pin.sha256
        )));
    }
    let root = cache.dir("apt")?;
    let dir =
        tempfile::tempdir_in(&root).map_err(|error| VmError::file("write in", &root, &error))?;
    let mut command = Command::new("dpkg-deb");
    command.arg("-x").args([deb, dir.path()]);
    run(command, &format!("unpacking {package}"))?;
    let image = find_image(dir.path()).ok_or_else(|| {
        VmError::Unavailable(format!("{package} {version} holds no kernel image (vmlinuz)"))
    })?;
    Ok(Fetched { package: format!("{package} {version}"), sha256, image, _dir: dir })
}

/// `boot/vmlinuz-*`, or `usr/lib/modules/*/vmlinuz` from 6.19 on.
fn find_image(root: &Path) -> Option<PathBuf> {
    let entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    let in_boot = entries(root.join("boot")).map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
    });
    in_boot.or_else(|| {
        let modules = entries(root.join("usr/lib/modules"));
        modules.map(|entry| entry.path().join("vmlinuz")).find(|path| path.is_file())
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

    #[test]
    fn the_image_is_found_where_either_kind_of_package_has_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(find_image(dir.path()), None);
        let new = dir.path().join("usr/lib/modules/7.0.1/vmlinuz");
        fs::create_dir_all(new.parent().unwrap()).unwrap();
        fs::write(&new, "x").unwrap();
        assert_eq!(find_image(dir.path()), Some(new));
        let old = dir.path().join("boot/vmlinuz-6.1");
        fs::create_dir_all(old.parent().unwrap()).unwrap();
        fs::write(&old, "x").unwrap();
        assert_eq!(find_image(dir.path()), Some(old));
    }
}
