// SPDX-License-Identifier: MIT OR Apache-2.0
//! The identity of a run in a guest: all parts that influence it, by name, and one hash of them.
//!
//! With a counted clock two runs with the same identity give the same trace, byte for byte.
//! Everything else has no influence: the host, its load, the time of day.

use crate::guest::Initramfs;
use crate::kernel::Kernel;
use crate::qemu::{Files, Qemu, Setup};
use schedlab_run::sha::sha256;
use std::path::Path;

/// The parts of an identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    parts: Vec<(&'static str, String)>,
}

/// The parts of a machine before a request, which identify a snapshot.
pub fn of_machine(qemu: &Qemu, setup: &Setup, kernel: &Kernel, init: &Initramfs) -> Identity {
    let nameless = Files {
        kernel: Path::new("KERNEL"),
        initramfs: Path::new("INITRAMFS"),
        is_packaged: kernel.package.is_some(),
    };
    let boot = if kernel.is_elf { "elf" } else { "image" };
    Identity {
        parts: vec![
            ("qemu", qemu.version.clone()),
            ("machine", setup.arguments(nameless).join(" ")),
            ("kernel", kernel.sha256.clone()),
            ("boot", boot.into()),
            ("initramfs", init.sha256.clone()),
        ],
    }
}

impl Identity {
    /// Adds the request as bytes, and the hash of its BPF object. It does not matter whether a run
    /// boots or starts from a snapshot.
    pub fn with_run(mut self, request: &[u8], object: &str) -> Self {
        self.parts.push(("object", object.into()));
        self.parts.push(("request", sha256(request)));
        self
    }

    /// The hash of all parts.
    pub fn sha256(&self) -> String {
        sha256_of_parts(self.parts.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// The hash of all parts except these.
    pub fn sha256_without(&self, left_out: &[&str]) -> String {
        let parts = self.parts.iter().filter(|(name, _)| !left_out.contains(name));
        sha256_of_parts(parts.map(|(name, value)| (*name, value.as_str())))
    }

    /// Name and value of each part.
    pub fn parts(&self) -> &[(&'static str, String)] {
        &self.parts
    }
}

/// SHA-256 of named parts, in order. Different lists of parts never give the same bytes.
fn sha256_of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let parts = parts.into_iter();
    let text: String =
        parts.map(|(name, value)| format!("{name} {} {value}\n", value.len())).collect();
    sha256(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ExtSupport;
    use crate::qemu::Accel;

    #[test]
    fn every_part_counts_and_paths_do_not() {
        let qemu = Qemu {
            program: "q".into(),
            version: "version 7.2".into(),
            number: (7, 2),
            firmware: None,
        };
        let setup = Setup::new(Accel::Counted, 1, 512);
        let kernel = Kernel {
            series: "6.18".into(),
            release: "6.18.1".into(),
            package: None,
            package_sha256: None,
            sha256: "k".into(),
            boot_sha256: "b".into(),
            is_elf: true,
            note: None,
            ext: ExtSupport::Yes,
        };
        let init = Initramfs { path: "a".into(), sha256: "i".into() };
        let base = of_machine(&qemu, &setup, &kernel, &init);
        let elsewhere = Initramfs { path: "b".into(), ..init.clone() };
        assert_eq!(base, of_machine(&qemu, &setup, &kernel, &elsewhere));
        let newer = Qemu { version: "version 7.3".into(), ..qemu.clone() };
        let two = Setup { nr_cpus: 2, ..setup.clone() };
        let image = Kernel { is_elf: false, ..kernel.clone() };
        let others = [
            of_machine(&newer, &setup, &kernel, &init),
            of_machine(&qemu, &two, &kernel, &init),
            of_machine(&qemu, &setup, &image, &init),
            base.clone().with_run(b"x", "o"),
            base.clone().with_run(b"x", "p"),
            base.clone().with_run(b"y", "o"),
        ];
        let mut hashes: Vec<String> = others.iter().map(Identity::sha256).collect();
        hashes.push(base.sha256());
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), 7);
        let rest = ["boot", "qemu"];
        let other = of_machine(&newer, &setup, &image, &init);
        assert_eq!(base.sha256_without(&rest), other.sha256_without(&rest));
    }

    #[test]
    fn parts_cannot_be_mistaken() {
        let one = sha256_of_parts([("a", "b\nc 1 d")]);
        assert_ne!(one, sha256_of_parts([("a", "b"), ("c", "d")]));
    }
}
