// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stored kernels: files named by the SHA-256 of the image, each with a note that describes it.

use super::btf::{self, ExtSupport};
use super::elf::Elf;
use super::image::Image;
use super::{apt, series};
use crate::{Cache, VmError};
use schedlab_run::file::write_whole;
use schedlab_run::sha::sha256;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of the kernels in the cache.
const DIR: &str = "kernels";

/// A kernel that can be booted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// Series, such as `6.18`: the first two numbers of the release.
    pub series: String,
    /// Release, such as `6.18.15+deb13-cloud-amd64`.
    pub release: String,
    /// The package and version with it; `None`: a file of the user.
    pub package: Option<String>,
    /// SHA-256 of the package; `None`: a file of the user.
    pub package_sha256: Option<String>,
    /// SHA-256 of the image.
    pub sha256: String,
    /// SHA-256 of the file that is booted: the image itself, or the program within it.
    pub boot_sha256: String,
    /// Whether the unpacked ELF file is booted, and not the image itself.
    pub is_elf: bool,
    /// Why the ELF file is not booted, if so.
    pub note: Option<String>,
    /// Whether sched_ext schedulers can be loaded.
    pub ext: ExtSupport,
}

/// The first two numbers of a release.
pub fn series_of(release: &str) -> Option<String> {
    let mut numbers = release.split(|found: char| !found.is_ascii_digit());
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let is_number = |text: &str| !text.is_empty() && text.len() < 4;
    (is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
}

impl Kernel {
    /// Whether the release is at least this.
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        let mut numbers = self.series.split('.').map(|text| text.parse::<u32>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
    }

    /// The class of its OTHER tasks: EEVDF since 6.6, CFS before.
    pub fn fair_class(&self) -> &'static str {
        if self.is_at_least(6, 6) { "EEVDF" } else { "CFS" }
    }

    /// Refuses a kernel that cannot load schedulers. The error gives the reason.
    pub fn check_ext(&self) -> Result<(), VmError> {
        let why = match self.ext {
            ExtSupport::Yes | ExtSupport::Unknown => return Ok(()),
            ExtSupport::No => {
                "it was built without sched_ext (CONFIG_SCHED_CLASS_EXT). Take 6.16 to 7.2"
            }
            ExtSupport::Broken => {
                "its type information (BTF) is broken: scx_bpf_create_dsq has three parameters in \
                 it, so no scheduler with a queue of its own can be loaded (built with pahole \
                 1.30, which drops the tags of implicit arguments). Take another build of the \
                 series"
            }
        };
        Err(VmError::Unavailable(format!("kernel {}: {why}", self.release)))
    }
}

/// The directory with the kernels.
#[derive(Clone, Debug)]
pub struct Store {
    cache: Cache,
}

impl Store {
    /// The store of a cache.
    pub fn new(cache: Cache) -> Self {
        Self { cache }
    }

    /// The file that is booted.
    pub fn boot_file(&self, kernel: &Kernel) -> Result<PathBuf, VmError> {
        let kind = if kernel.is_elf { "elf" } else { "image" };
        Ok(self.cache.dir(DIR)?.join(format!("{}.{kind}", kernel.sha256)))
    }

    /// Refuses a kernel whose file is no longer what was fetched: it would run under the identity
    /// of another.
    pub fn verify(&self, kernel: &Kernel) -> Result<(), VmError> {
        let path = self.boot_file(kernel)?;
        let bytes = fs::read(&path).map_err(|error| VmError::file("read", &path, &error))?;
        let found = sha256(&bytes);
        if found == kernel.boot_sha256 {
            return Ok(());
        }
        Err(VmError::Input(format!(
            "{} was changed after it was stored: its SHA-256 is {found}, that of kernel {} is {}. \
             `schedlab kernel remove {}` removes it; then fetch it again",
            path.display(),
            kernel.release,
            kernel.boot_sha256,
            kernel.series
        )))
    }

    /// The kernel's type information (BTF).
    pub fn types(&self, kernel: &Kernel) -> Result<Vec<u8>, VmError> {
        let path = self.boot_file(kernel)?;
        let bytes = fs::read(&path).map_err(|error| VmError::file("read", &path, &error))?;
        let types = Elf::new(&bytes).and_then(|elf| elf.section(".BTF"));
        types.map(<[u8]>::to_vec).ok_or_else(|| {
            let why = kernel.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            VmError::Unavailable(format!(
                "the type information (BTF) of kernel {} cannot be read{why}. Take another kernel, \
                 such as 6.18",
                kernel.release
            ))
        })
    }

    fn note_file(&self, sha256: &str) -> Result<PathBuf, VmError> {
        Ok(self.cache.dir(DIR)?.join(format!("{sha256}.json")))
    }

    /// Every stored kernel, by series, then release.
    pub fn list(&self) -> Result<Vec<Kernel>, VmError> {
        let dir = self.cache.dir(DIR)?;
        let entries = fs::read_dir(&dir).map_err(|error| VmError::file("read", &dir, &error))?;
        let mut kernels: Vec<Kernel> = entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"))
            .filter_map(|entry| self.read_note(&entry.path()))
            .collect();
        let numbers = |text: &str| -> Vec<u32> {
            let parts = text.split(|found: char| !found.is_ascii_digit());
            parts.filter_map(|part| part.parse().ok()).collect()
        };
        kernels.sort_by_key(|kernel| (numbers(&kernel.release), kernel.release.clone()));
        Ok(kernels)
    }

    /// A kernel with a readable note and an existing file.
    fn read_note(&self, path: &Path) -> Option<Kernel> {
        let kernel: Kernel = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        self.boot_file(&kernel).ok()?.is_file().then_some(kernel)
    }

    /// Finds the kernel that a user names: a series that is stored or can be fetched, or the path
    /// of a file. Reports what it fetches to `say`.
    pub fn resolve(&self, name: &str, say: &dyn Fn(&str)) -> Result<Kernel, VmError> {
        if name.contains('/') || Path::new(name).is_file() {
            return self.add_file(Path::new(name), None);
        }
        let name = name.strip_prefix("linux-").unwrap_or(name);
        match self.of_series(name)? {
            Some(kernel) => Ok(kernel),
            None => self.get(name, say),
        }
    }

    /// The newest stored kernel of a series that was fetched from the archive.
    pub fn of_series(&self, series: &str) -> Result<Option<Kernel>, VmError> {
        let mut kernels = self.list()?.into_iter();
        let fits = |kernel: &Kernel| kernel.series == series && kernel.package.is_some();
        Ok(kernels.rfind(fits))
    }

    /// Fetches a kernel of a series from the distribution's archive.
    pub fn get(&self, name: &str, say: &dyn Fn(&str)) -> Result<Kernel, VmError> {
        let wanted = series::find(name)?;
        let fetched = apt::fetch(&self.cache, &wanted, say)?;
        let kernel = self.add_file(&fetched.image, Some(&fetched))?;
        Ok(kernel)
    }

    /// Stores a file. If it is stored already, it is only looked up.
    pub fn add_file(&self, path: &Path, from: Option<&apt::Fetched>) -> Result<Kernel, VmError> {
        let bytes = fs::read(path).map_err(|error| VmError::file("read", path, &error))?;
        let sha256 = sha256(&bytes);
        let known = self.read_note(&self.note_file(&sha256)?);
        if let Some(kernel) = known.filter(|kernel| from.is_none() || kernel.package.is_some()) {
            return Ok(kernel);
        }
        let image = Image::read(&bytes)
            .map_err(|why| VmError::Input(format!("{}: {why}", path.display())))?;
        let series = series_of(&image.release).ok_or_else(|| {
            VmError::Input(format!(
                "{}: its release is {:?}, which begins with no number of a kernel",
                path.display(),
                image.release
            ))
        })?;
        let support = |elf: &[u8]| {
            Elf::new(elf)
                .and_then(|elf| elf.section(".BTF"))
                .map_or(ExtSupport::Unknown, btf::ext_support)
        };
        let boot = image.elf.as_deref().unwrap_or(&bytes);
        let kernel = Kernel {
            series,
            release: image.release,
            package: from.map(|from| from.package.clone()),
            package_sha256: from.map(|from| from.sha256.clone()),
            sha256: sha256.clone(),
            boot_sha256: schedlab_run::sha::sha256(boot),
            is_elf: image.elf.is_ok(),
            note: image.elf.as_ref().err().cloned(),
            ext: image.elf.as_deref().map_or(ExtSupport::Unknown, support),
        };
        let file = self.boot_file(&kernel)?;
        self.cache.write_once(&file, boot)?;
        // Write the note last: a kernel with a note is complete.
        let note = serde_json::to_vec_pretty(&kernel).unwrap_or_default();
        write_whole(&self.note_file(&sha256)?, &note)?;
        Ok(kernel)
    }

    /// Removes a kernel and everything that was made from it.
    pub fn remove(&self, kernel: &Kernel) -> Result<(), VmError> {
        for path in [self.note_file(&kernel.sha256)?, self.boot_file(kernel)?] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(VmError::file("remove", &path, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_the_first_two_numbers() {
        assert_eq!(series_of("6.18.15+deb13-cloud-amd64").as_deref(), Some("6.18"));
        assert_eq!(series_of("7.0-rc1").as_deref(), Some("7.0"));
        for bad in ["", "x", "6", "6.", "99999.1"] {
            assert_eq!(series_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_kernel_that_was_changed_in_the_store_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Cache::at(dir.path()));
        let kernel = Kernel {
            series: "6.12".into(),
            release: "6.12.9".into(),
            package: None,
            package_sha256: None,
            sha256: "image".into(),
            boot_sha256: sha256(b"program"),
            is_elf: true,
            note: None,
            ext: ExtSupport::Yes,
        };
        let path = store.boot_file(&kernel).unwrap();
        fs::write(&path, b"program").unwrap();
        store.verify(&kernel).unwrap();
        fs::write(&path, b"Program").unwrap();
        let error = store.verify(&kernel).unwrap_err().to_string();
        assert!(error.contains("changed") && error.contains("kernel remove 6.12"), "{error}");
    }

    #[test]
    fn what_is_no_kernel_is_refused_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Cache::at(dir.path()));
        let file = dir.path().join("file");
        for bytes in [&b"text"[..], &[0; 1000], b"\x7fELF\x02\x01 and no more"] {
            fs::write(&file, bytes).unwrap();
            let error = store.add_file(&file, None).unwrap_err().to_string();
            assert!(error.contains("kernel"), "{error}");
        }
        let mut image = vec![0; 4096];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206] = 0x0f;
        image[0x207] = 0x02;
        fs::write(&file, &image).unwrap();
        let error = store.add_file(&file, None).unwrap_err().to_string();
        assert!(error.contains("which release"), "{error}");
        assert!(store.list().unwrap().is_empty());
    }

    /// An image whose payload cannot be unpacked is booted as it is.
    #[test]
    fn an_image_with_an_unknown_payload_is_kept_as_an_image() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Cache::at(dir.path()));
        let mut image = vec![0; 8192];
        image[0x1f1] = 4;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&[0x0f, 0x02]);
        image[0x20e..0x210].copy_from_slice(&0x400u16.to_le_bytes());
        image[0x600..0x60b].copy_from_slice(b"6.18.1-test");
        image[0x24c] = 100;
        let file = dir.path().join("vmlinuz");
        fs::write(&file, &image).unwrap();
        let kernel = store.add_file(&file, None).unwrap();
        assert_eq!((kernel.series.as_str(), kernel.is_elf), ("6.18", false));
        assert!(kernel.note.as_deref().unwrap().contains("neither by gzip"), "{kernel:?}");
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&kernel));
        assert_eq!(store.of_series("6.18").unwrap(), None, "it came from nowhere");
        store.remove(&kernel).unwrap();
        assert!(store.list().unwrap().is_empty());
    }
}
