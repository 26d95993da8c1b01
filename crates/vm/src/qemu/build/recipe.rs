// SPDX-License-Identifier: MIT OR Apache-2.0
//! How QEMU is built: what is fetched, added and set, and what the machine must have for it.

use schedlab_run::sha::sha256;
use std::fmt;
use std::process::{Command, Stdio};

/// A file that is added to QEMU's source.
type Added = (&'static str, &'static str);

/// How QEMU is built. Each part belongs to the identity of the build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipe {
    /// The suite of Debian with the source.
    pub suite: &'static str,
    /// Packages that are unpacked for the build: programs in Python, which run on any release.
    pub tools: &'static [&'static str],
    /// Packages with the guest's firmware, and its files.
    pub firmware: &'static [(&'static str, &'static [&'static str])],
    /// Files that are written into the source.
    pub added: &'static [Added],
    /// What `patch -p1` applies.
    pub patch: &'static str,
    /// Arguments of `configure`.
    pub configure: &'static [&'static str],
}

/// The only devices of a guest, by the names of QEMU's configuration.
const DEVICES: &str = "CONFIG_Q35=y\nCONFIG_ISA_DEBUG=y\nCONFIG_IVSHMEM_DEVICE=y\n\
                       CONFIG_SERIAL_ISA=y\nCONFIG_HPET=y\nCONFIG_WDT_IB700=y\n";

impl Default for Recipe {
    fn default() -> Self {
        Self {
            suite: "trixie",
            tools: &["meson", "python3-pycotap", "python3-distlib"],
            firmware: &[
                ("seabios", &["usr/share/seabios/bios-256k.bin"]),
                (
                    "qemu-system-data",
                    &[
                        "usr/share/qemu/kvmvapic.bin",
                        "usr/share/qemu/linuxboot_dma.bin",
                        "usr/share/qemu/pvh.bin",
                    ],
                ),
            ],
            added: &[
                ("accel/tcg/rounds.c", include_str!("../../../qemu/rounds.c")),
                ("accel/tcg/rounds.h", include_str!("../../../qemu/rounds.h")),
                ("configs/devices/x86_64-softmmu/schedlab.mak", DEVICES),
                // The firmware comes from its packages, and tests are not built.
                ("pc-bios/meson.build", "roms = []\n"),
                ("tests/meson.build", ""),
            ],
            patch: include_str!("../../../qemu/hooks.patch"),
            configure: &[
                "--target-list=x86_64-softmmu",
                "--without-default-features",
                "--without-default-devices",
                "--with-devices-x86_64=schedlab",
                "--enable-tcg",
                "--disable-download",
                "--disable-tools",
                "--disable-docs",
                "--disable-debug-info",
                "--disable-pixman",
                "--disable-fdt",
                "--disable-plugins",
                "--disable-install-blobs",
            ],
        }
    }
}

impl Recipe {
    /// Its hash.
    pub fn sha256(&self) -> String {
        sha256(format!("{self:?}").as_bytes())
    }

    /// The hash of a build with these files of the archive, as the version shows it.
    pub fn build_id(&self, files: &[String]) -> String {
        let mut id = sha256(format!("{} {files:?}", self.sha256()).as_bytes());
        id.truncate(12);
        id
    }

    /// What the machine lacks for it.
    pub fn missing() -> Missing {
        let all = NEEDED.iter().filter(|(_, probe)| !succeeds(probe));
        Missing(all.map(|(package, _)| *package).collect())
    }
}

/// Packages and a command that succeeds where each is installed.
const NEEDED: &[(&str, &[&str])] = &[
    ("apt", &["apt-get", "--version"]),
    ("dpkg", &["dpkg-deb", "--version"]),
    ("gcc", &["gcc", "--version"]),
    ("libc6-dev", &["sh", "-c", "echo '#include <stdio.h>' | gcc -E - >/dev/null"]),
    ("libglib2.0-dev", &["pkg-config", "--atleast-version=2.66", "glib-2.0", "gthread-2.0"]),
    ("make", &["make", "--version"]),
    ("ninja-build", &["ninja", "--version"]),
    ("patch", &["patch", "--version"]),
    ("pkg-config", &["pkg-config", "--version"]),
    ("python3", &["python3", "-c", "import sys; sys.exit(sys.version_info < (3, 8))"]),
    ("python3-venv", &["python3", "-c", "import ensurepip, venv"]),
    ("tar", &["tar", "--version"]),
    ("xz-utils", &["xz", "--version"]),
    ("zlib1g-dev", &["pkg-config", "zlib"]),
];

fn succeeds(command: &[&str]) -> bool {
    let mut started = Command::new(command[0]);
    started.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    started.status().is_ok_and(|status| status.success())
}

/// Packages that are not installed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing(pub Vec<&'static str>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "building QEMU needs packages that are not installed. Install them:\n    \
             apt-get install {}",
            self.0.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_belongs_to_the_identity() {
        let base = Recipe::default();
        let others = [
            Recipe { patch: "", ..base.clone() },
            Recipe { added: &base.added[1..], ..base.clone() },
            Recipe { configure: &base.configure[1..], ..base.clone() },
            Recipe { suite: "forky", ..base.clone() },
            Recipe { firmware: &[], ..base.clone() },
        ];
        let mut hashes: Vec<String> = others.iter().map(Recipe::sha256).collect();
        hashes.push(base.sha256());
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), 6);
        let [a, b] = ["a", "b"].map(|file| base.build_id(&[file.into()]));
        assert!(a.len() == 12 && a != b);
    }

    /// Each hunk's counts agree with its lines; each function of rounds.h is called from the patch.
    #[test]
    fn the_patch_is_whole_and_calls_what_the_header_declares() {
        let Recipe { patch, added, .. } = Recipe::default();
        let mut nr_hunks = 0;
        let mut lines = patch.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(counts) = line.strip_prefix("@@ ") else { continue };
            let count = |sign: char| {
                let field = counts.split(' ').find(|field| field.starts_with(sign)).unwrap();
                field.split_once(',').map_or(1, |(_, count)| count.parse::<usize>().unwrap())
            };
            let (mut old, mut new) = (0, 0);
            while let Some(line) =
                lines.next_if(|line| !line.starts_with(['@', '-']) || line.starts_with("-  "))
            {
                old += usize::from(!line.starts_with('+') || line.starts_with("+++"));
                new += usize::from(!line.starts_with('-'));
            }
            assert_eq!((old, new), (count('-'), count('+')), "{line}");
            nr_hunks += 1;
        }
        assert!(nr_hunks >= 10, "{nr_hunks}");
        let header = added.iter().find(|(path, _)| path.ends_with("rounds.h")).unwrap().1;
        for line in header.lines().filter(|line| line.ends_with(");")) {
            let name = line.split('(').next().unwrap().rsplit(' ').next().unwrap();
            assert!(patch.contains(&format!("{name}(")), "{name}");
        }
        for (path, text) in added.iter().filter(|(path, _)| path.contains("rounds")) {
            assert!(text.contains("SPDX-License-Identifier: GPL-2.0-only"), "{path}");
        }
        assert!(patch.starts_with("SPDX-License-Identifier: GPL-2.0-only"));
    }

    #[test]
    fn missing_packages_are_named_in_one_command() {
        let text = Missing(vec!["ninja-build", "libglib2.0-dev"]).to_string();
        assert!(text.ends_with("apt-get install ninja-build libglib2.0-dev"), "{text}");
        assert!(!succeeds(&["no-such-program-here"]) && succeeds(&["true"]));
    }
}
