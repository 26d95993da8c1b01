// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel series that can be fetched: which suite of Debian's archive has them, and which build
//! is the tested one.
//!
//! The builds for clouds: they have what a guest needs built in (NVMe, serial line, PCI), full type
//! information, and HZ=250. A pinned build is known by the SHA-256 of its package; when it has left
//! the archive, the newest of the series takes its place, and the user is told.

use crate::VmError;

/// A build that was tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pin {
    /// Package.
    pub package: &'static str,
    /// Version of the package.
    pub version: &'static str,
    /// SHA-256 of the package's file.
    pub sha256: &'static str,
}

/// A series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Series {
    /// The first two numbers of its releases.
    pub name: &'static str,
    /// Suite of the archive.
    pub suite: &'static str,
    /// The tested build.
    pub pin: Option<Pin>,
    /// What it is of interest for.
    pub about: &'static str,
}

const fn pin(package: &'static str, version: &'static str, sha256: &'static str) -> Option<Pin> {
    Some(Pin { package, version, sha256 })
}

/// Every series, oldest first.
pub const SERIES: [Series; 8] = [
    Series {
        name: "6.1",
        suite: "bookworm-security",
        pin: pin(
            "linux-image-6.1.0-56-cloud-amd64",
            "6.1.192-2",
            "e7d02b943971edcb8790e256c02cfab3bca6c3d37c1bf25392a57c71300615ee",
        ),
        about: "CFS",
    },
    Series {
        name: "6.12",
        suite: "bookworm-security",
        pin: pin(
            "linux-image-6.12.117+deb12-cloud-amd64",
            "6.12.117-1~deb12u1",
            "5195b288dec79e2981d6b84457f38b7ce7310a2d702930ec7d07209c7f78ce37",
        ),
        about: "EEVDF",
    },
    Series { name: "6.16", suite: "trixie-backports", pin: None, about: "EEVDF, sched_ext" },
    Series { name: "6.17", suite: "trixie-backports", pin: None, about: "EEVDF, sched_ext" },
    Series {
        name: "6.18",
        suite: "trixie-backports",
        pin: pin(
            "linux-image-6.18.15+deb13-cloud-amd64",
            "6.18.15-1~bpo13+1",
            "5a507681ea8c978d02265a7fec2f02c9588fb48b54b7f71edc1059e86007f3ec",
        ),
        about: "EEVDF, sched_ext",
    },
    Series { name: "6.19", suite: "trixie-backports", pin: None, about: "EEVDF, sched_ext" },
    Series {
        name: "7.0",
        suite: "trixie-backports",
        pin: pin(
            "linux-binary-7.0.13+deb13-cloud-amd64",
            "7.0.13-1~bpo13+1",
            "7e2f91866f9d857e5b08fcd915491b4cff79fbe51cdcb081b42658612074a552",
        ),
        about: "EEVDF, sched_ext",
    },
    Series {
        name: "7.2",
        suite: "forky",
        pin: pin(
            "linux-binary-7.2.12+deb14-cloud-amd64",
            "7.2.12-1",
            "43451b88872589d518acba127482df16fab53e2a51e92811cbd6221ca92cb6bf",
        ),
        about: "EEVDF with HRTICK, sched_ext",
    },
];

/// The series of this name.
pub fn find(name: &str) -> Result<&'static Series, VmError> {
    SERIES.iter().find(|series| series.name == name).ok_or_else(|| {
        let names: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
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
        for series in SERIES {
            let Some(pin) = series.pin else { continue };
            assert_eq!(newest(series.name, [pin.package].into_iter()), Some(pin.package));
            assert_eq!(pin.sha256.len(), 64);
        }
        let error = find("6.2").unwrap_err().to_string();
        assert!(error.contains("6.1, 6.12") && error.contains("path"), "{error}");
    }
}
