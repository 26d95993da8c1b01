// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that can be fetched: those in the table of kernels that have an image.
//!
//! The SHA-256 of its package identifies a pinned build. If it has left the archive, the newest
//! build of the series is used instead, and the user gets a message.

use crate::VmError;
use schedlab_model::KernelVersion;
use schedlab_model::kernel::{Image, KERNELS};

/// A series with an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Series {
    /// The first two numbers of its releases.
    pub version: KernelVersion,
    /// Where its image is.
    pub image: Image,
}

impl Series {
    /// The first two numbers of its releases, such as `6.12`.
    pub fn name(&self) -> String {
        self.version.to_string()
    }
}

/// Every series that can be fetched, oldest first.
pub fn all() -> impl Iterator<Item = Series> {
    let with_image = |kernel: &schedlab_model::Kernel| {
        Some(Series { version: kernel.version, image: kernel.image? })
    };
    KERNELS.iter().filter_map(with_image)
}

/// Finds the series called `name`: `6.12`, or `linux-6.12` like its model.
pub fn find(name: &str) -> Result<Series, VmError> {
    let version = name.parse().ok();
    all().find(|series| Some(series.version) == version).ok_or_else(|| {
        let names: Vec<String> = all().map(|series| series.name()).collect();
        VmError::Input(format!(
            "no kernel is called {name:?}: allowed are {} and the path of an image (vmlinuz or \
             vmlinux; with a slash in it)",
            names.join(", ")
        ))
    })
}

/// Numbers of a text in order, for comparing versions.
fn numbers(text: &str) -> Vec<u64> {
    let parts = text.split(|found: char| !found.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// The newest package of a series among package names. From 6.19 on the image is in
/// linux-binary-*, and linux-image-* only names it.
pub fn newest<'a>(series: &str, packages: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let fits = |package: &&str| {
        let rest = package.strip_prefix("linux-image-").or(package.strip_prefix("linux-binary-"));
        let rest = rest.and_then(|rest| rest.strip_prefix(series));
        rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with("-cloud-amd64"))
    };
    packages
        .filter(fits)
        .max_by_key(|package| (numbers(package), package.starts_with("linux-binary-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_by_number_and_binary_goes_before_image() {
        let names = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-57-rt-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12-cloud-amd64",
            "linux-image-7.0.13+deb13-cloud-amd64",
            "linux-binary-7.0.9+deb13-cloud-amd64",
            "linux-binary-7.0.13+deb13-cloud-amd64",
            "linux-headers-7.0.99-cloud-amd64",
        ];
        let newest = |series| newest(series, names.iter().copied());
        assert_eq!(newest("6.1"), Some("linux-image-6.1.0-56-cloud-amd64"));
        assert_eq!(newest("6.12"), Some("linux-image-6.12.117+deb12-cloud-amd64"));
        assert_eq!(newest("7.0"), Some("linux-binary-7.0.13+deb13-cloud-amd64"));
        assert_eq!(newest("7.1"), None);
    }

    #[test]
    fn every_pin_is_of_its_series() {
        for series in all() {
            let Some(pin) = series.image.pin else { continue };
            assert_eq!(newest(&series.name(), [pin.package].into_iter()), Some(pin.package));
            assert_eq!(find(&format!("linux-{}", series.version)).unwrap(), series);
        }
        let error = find("6.2").unwrap_err().to_string();
        assert!(error.contains("6.1, 6.12") && error.contains("path"), "{error}");
    }
}
