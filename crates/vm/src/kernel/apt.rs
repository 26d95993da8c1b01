// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches the package of a kernel from Debian's archive.

use super::series::{self, Series};
use crate::apt::{self, Apt};
use crate::{Cache, VmError};
use schedlab_model::kernel::Pin;
use schedlab_run::sha::sha256;
use std::fs;
use std::path::{Path, PathBuf};

/// What to do without the archive.
const ADVICE: &str = "Kernels are fetched with apt from Debian's archive; without it, give the \
                      path of an image";

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

/// Chooses what to download: the pinned build, or the newest one of the series.
fn choose(apt: &Apt, series: &Series, say: &dyn Fn(&str)) -> Result<(String, String), VmError> {
    if let Some(Pin { package, version, .. }) = series.image.pin
        && apt.versions(package)?.iter().any(|found| found == version)
    {
        return Ok((package.into(), version.into()));
    }
    let names = apt.names("linux-")?;
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
    let version = version.ok_or_else(|| apt.failed(package, "the lists know no version of it"))?;
    Ok((package.into(), version))
}

/// Fetches the kernel of a series.
pub fn fetch(cache: &Cache, series: &Series, say: &dyn Fn(&str)) -> Result<Fetched, VmError> {
    let suite = series.image.suite;
    let apt = Apt::new(cache.dir(&format!("apt/{suite}"))?, suite, &["deb"], ADVICE)?;
    apt.update(say)?;
    let (package, version) = choose(&apt, series, say)?;
    say(&format!("downloading {package} {version}"));
    let files = apt.download(&[format!("{package}={version}")])?;
    let deb = apt::files_of(files.path()).pop();
    let deb = deb.ok_or_else(|| apt.failed(&format!("downloading {package}"), "no file came"))?;
    unpack(cache, &deb, &package, &version, series.image.pin)
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
    apt::unpack(deb, dir.path(), ADVICE)?;
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
