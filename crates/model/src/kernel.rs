// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of kernels: every release that has a model or that a guest can boot.
//!
//! A new kernel is a row here. How its scheduler differs from earlier ones is defined in the crate
//! sched.

use crate::machine::Preempt;
use std::fmt;
use std::str::FromStr;

/// Version of a kernel: a release (`6.12.63`), or a series (`6.12`). A series counts as its last
/// release.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KernelVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

impl KernelVersion {
    /// The release `major.minor.patch`.
    pub const fn release(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// The series `major.minor`.
    pub const fn series(major: u16, minor: u16) -> Self {
        Self { major, minor, patch: u16::MAX }
    }

    /// Whether sleepers have timers of their own on x86-64 (high-resolution timers, since 2.6.24).
    /// Earlier kernels look for timers that are due after each tick (`run_timer_softirq`; in 2.4
    /// the bottom half TIMER_BH), so a sleeper that is due at a tick wakes after it.
    pub const fn has_high_resolution_timers(self) -> bool {
        self.major > 2 || (self.minor == 6 && self.patch >= 24)
    }

    /// The series as one number, such as 612 for 6.12.
    pub const fn series_number(self) -> u32 {
        self.major as u32 * 100 + self.minor as u32
    }

    /// Reads the version at the start of the output of `uname -r`, such as `6.12.63+deb13-amd64`.
    pub fn of_release(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].trim_end_matches('.').parse().ok()
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch == u16::MAX { Ok(()) } else { write!(f, ".{}", self.patch) }
    }
}

/// The text is not the version of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoVersion;

impl FromStr for KernelVersion {
    type Err = NoVersion;

    /// Reads `6.12`, `6.12.63`, `linux-6.12` or `linux-6.12.63`.
    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let mut numbers = text.strip_prefix("linux-").unwrap_or(text).split('.');
        let mut number = || {
            let digits = numbers.next()?;
            let is_number =
                !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            Some(if is_number { digits.parse().map_err(|_| NoVersion) } else { Err(NoVersion) })
        };
        let major = number().ok_or(NoVersion)??;
        let minor = number().ok_or(NoVersion)??;
        let patch = number().transpose()?.unwrap_or(u16::MAX);
        if number().is_some() {
            return Err(NoVersion);
        }
        Ok(Self { major, minor, patch })
    }
}

/// A Debian package with a kernel image that was tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pin {
    /// Name of the package.
    pub package: &'static str,
    /// Version of the package.
    pub version: &'static str,
    /// SHA-256 of the package's file.
    pub sha256: &'static str,
}

/// Where to find Debian's cloud build of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Image {
    /// Suite of Debian's archive, such as `bookworm`.
    pub suite: &'static str,
    /// The tested build; `None`: the newest build of the series.
    pub pin: Option<Pin>,
    /// Why users may want this kernel.
    pub about: &'static str,
}

/// A kernel and what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// A series; or a release, if its rules differ from those of its series.
    pub version: KernelVersion,
    /// Preemption model of Debian's build for amd64; `None` if unknown.
    pub preempt: Option<Preempt>,
    /// The image for guests; `None` if no guest can boot this kernel.
    pub image: Option<Image>,
}

const fn release(major: u16, minor: u16, patch: u16, preempt: Preempt) -> Kernel {
    let version = KernelVersion::release(major, minor, patch);
    Kernel { version, preempt: Some(preempt), image: None }
}

const fn series(major: u16, minor: u16, preempt: Option<Preempt>) -> Kernel {
    Kernel { version: KernelVersion::series(major, minor), preempt, image: None }
}

impl Kernel {
    const fn image(self, suite: &'static str, about: &'static str, pin: Option<Pin>) -> Self {
        Self { image: Some(Image { suite, pin, about }), ..self }
    }
}

const fn pin(package: &'static str, version: &'static str, sha256: &'static str) -> Option<Pin> {
    Some(Pin { package, version, sha256 })
}

/// Every kernel, oldest first.
///
/// Preemption models, and how they are known:
///
/// - 6.1 (Debian 12) and 6.12 (Debian 13) have CONFIG_PREEMPT_VOLUNTARY=y, 6.18 (backports of
///   Debian 13) has CONFIG_PREEMPT_LAZY=y, all with CONFIG_PREEMPT_DYNAMIC=y. Read from the
///   packages linux-config-6.1 6.1.192-2, linux-config-6.12 6.12.117-1 and
///   linux-image-6.18.9+deb13.
/// - 6.6 is between two that agree.
/// - From 7.0 on lazy is the kernel's default.
/// - 2.4 could not preempt a task inside the kernel. From 2.6 up to 2.6.24 this was an option that
///   distributions left off.
/// - 2.6.32 is the kernel of Red Hat Enterprise Linux 6, with CONFIG_PREEMPT_VOLUNTARY=y (from
///   memory).
///
/// Images: the cloud builds have what a guest needs built in (NVMe, serial line, PCI), full type
/// information, and HZ=250.
pub const KERNELS: [Kernel; 19] = [
    release(2, 4, 18, Preempt::None),
    release(2, 6, 0, Preempt::None),
    release(2, 6, 11, Preempt::None),
    release(2, 6, 22, Preempt::None),
    release(2, 6, 23, Preempt::None),
    release(2, 6, 24, Preempt::None),
    release(2, 6, 32, Preempt::Voluntary),
    series(6, 1, Some(Preempt::Voluntary)).image(
        "bookworm-security",
        "CFS",
        pin(
            "linux-image-6.1.0-56-cloud-amd64",
            "6.1.192-2",
            "e7d02b943971edcb8790e256c02cfab3bca6c3d37c1bf25392a57c71300615ee",
        ),
    ),
    series(6, 6, Some(Preempt::Voluntary)),
    release(6, 12, 0, Preempt::Voluntary),
    series(6, 12, Some(Preempt::Voluntary)).image(
        "bookworm-security",
        "EEVDF",
        pin(
            "linux-image-6.12.117+deb12-cloud-amd64",
            "6.12.117-1~deb12u1",
            "5195b288dec79e2981d6b84457f38b7ce7310a2d702930ec7d07209c7f78ce37",
        ),
    ),
    series(6, 16, None).image("trixie-backports", "EEVDF, sched_ext", None),
    series(6, 17, None).image("trixie-backports", "EEVDF, sched_ext", None),
    release(6, 18, 44, Preempt::Lazy),
    series(6, 18, Some(Preempt::Lazy)).image(
        "trixie-backports",
        "EEVDF, sched_ext",
        pin(
            "linux-image-6.18.15+deb13-cloud-amd64",
            "6.18.15-1~bpo13+1",
            "5a507681ea8c978d02265a7fec2f02c9588fb48b54b7f71edc1059e86007f3ec",
        ),
    ),
    series(6, 19, None).image("trixie-backports", "EEVDF, sched_ext", None),
    series(7, 0, Some(Preempt::Lazy)).image(
        "trixie-backports",
        "EEVDF, sched_ext",
        pin(
            "linux-binary-7.0.13+deb13-cloud-amd64",
            "7.0.13-1~bpo13+1",
            "7e2f91866f9d857e5b08fcd915491b4cff79fbe51cdcb081b42658612074a552",
        ),
    ),
    series(7, 1, Some(Preempt::Lazy)),
    series(7, 2, Some(Preempt::Lazy)).image(
        "forky",
        "EEVDF with HRTICK, sched_ext",
        pin(
            "linux-binary-7.2.12+deb14-cloud-amd64",
            "7.2.12-1",
            "43451b88872589d518acba127482df16fab53e2a51e92811cbd6221ca92cb6bf",
        ),
    ),
];

impl Kernel {
    /// Finds the kernel of exactly this version.
    pub fn find(version: KernelVersion) -> Option<&'static Self> {
        KERNELS.iter().find(|kernel| kernel.version == version)
    }
}

/// A bug of a kernel's scheduler that can distort what is measured under it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelBug {
    /// The commit that fixed it, abbreviated.
    pub fixed_by: &'static str,
    /// The releases that have it: first and last of each range.
    pub releases: &'static [(KernelVersion, KernelVersion)],
    /// What goes wrong.
    pub text: &'static str,
    /// How to avoid it.
    pub remedy: &'static str,
}

/// Bugs that are known with their releases.
///
/// - 101f3498b4bd (7.1, and 6.18.45) reverts 6d71a9c61604 (6.13). Whether releases of 7.0 have the
///   revert is not known; they count as having the bug.
pub const KERNEL_BUGS: [KernelBug; 1] = [KernelBug {
    fixed_by: "101f3498b4bd",
    releases: &[
        (KernelVersion::release(6, 13, 0), KernelVersion::series(6, 17)),
        (KernelVersion::release(6, 18, 0), KernelVersion::release(6, 18, 44)),
        (KernelVersion::release(6, 19, 0), KernelVersion::series(7, 0)),
    ],
    text: "a control group whose tasks sleep often can starve other tasks for seconds",
    remedy: "use 6.12, 6.18.45, 7.1 or later; otherwise do not run floods of short tasks in a \
             control group",
}];

impl KernelBug {
    /// The bugs that this kernel has.
    pub fn of(version: KernelVersion) -> Vec<&'static Self> {
        let has = |(first, last): &(_, _)| (*first..=*last).contains(&version);
        KERNEL_BUGS.iter().filter(|bug| bug.releases.iter().any(has)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_its_names_read_back() {
        assert!(KERNELS.is_sorted_by(|a, b| a.version < b.version));
        for kernel in &KERNELS {
            let name = kernel.version.to_string();
            assert_eq!(name.parse(), Ok(kernel.version));
            assert_eq!(format!("linux-{name}").parse(), Ok(kernel.version), "an alias");
            assert_eq!(Kernel::find(kernel.version), Some(kernel));
            let pin = kernel.image.and_then(|image| image.pin);
            assert!(pin.is_none_or(|pin| pin.sha256.len() == 64 && pin.package.contains(&name)));
        }
    }

    #[test]
    fn the_starvation_of_6_13_is_known_by_release() {
        let has = |text: &str| !KernelBug::of(text.parse().unwrap()).is_empty();
        for text in ["6.13.1", "6.17", "6.18.0", "6.18.44", "6.19.14", "7.0.13"] {
            assert!(has(text), "{text}");
        }
        for text in ["6.1.192", "6.12.117", "6.18.45", "6.18", "7.1.0", "7.2.12"] {
            assert!(!has(text), "{text}");
        }
    }

    #[test]
    fn a_series_counts_as_its_last_release() {
        let version = |text: &str| text.parse::<KernelVersion>();
        let order = ["6.12.0", "6.12.63", "6.12", "6.18"].map(|text| version(text).unwrap());
        assert!(order.is_sorted_by(|a, b| a < b));
        for text in ["", "6", "linux-", "6.x", "6.1.2.3", "6.-1", "6.+1", "6.70000", "6..1"] {
            assert_eq!(version(text), Err(NoVersion), "{text:?}");
        }
        let release = KernelVersion::of_release("6.18.44-cloud");
        assert_eq!(release, Some(KernelVersion::release(6, 18, 44)));
        assert_eq!(KernelVersion::of_release("bsd"), None);
    }
}
