// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constants of a scheduler that its user program would set, known by their names.
//!
//! Source: tools/sched_ext/include/scx/compat.h (`SCX_OPS_OPEN`, `SCX_ENUM_INIT`) of Linux 6.12 to
//! 7.3, and the user programs of the examples and of the scx schedulers.

/// Names of constants with the number of CPUs.
const NR_CPUS_NAMES: &[&str] =
    &["nr_cpu_ids", "nr_cpus", "num_possible_cpus", "nr_cpus_onln", "nr_cpus_possible"];

/// The meaning of a constant's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constant<'n> {
    /// A value of one of the kernel's enumerations, by its name there; if the kernel lacks it, the
    /// constant stays as it is.
    Enumerator(&'n str),
    /// The length of the dump that the scheduler keeps of its end.
    DumpLen,
    /// The number of CPUs.
    NrCpus,
    /// The length of a tick, ns.
    TickNs,
    /// A slice. User programs never leave it 0, but take the kernel's default.
    SliceNs,
}

impl<'n> Constant<'n> {
    /// What the constant called `name` means; `None`: it is up to the scheduler or its user.
    pub fn of(name: &'n str) -> Option<Self> {
        if let Some(enumerator) = name.strip_prefix("__").filter(|name| name.starts_with("SCX_")) {
            return Some(Self::Enumerator(enumerator));
        }
        match name {
            "tick_ns" => Some(Self::TickNs),
            "slice_ns" => Some(Self::SliceNs),
            _ if name.ends_with("_dump_len") => Some(Self::DumpLen),
            _ if NR_CPUS_NAMES.contains(&name) => Some(Self::NrCpus),
            _ => None,
        }
    }

    /// Whether a user may not set it, because any other value than the kernel's is wrong.
    pub fn is_the_kernels(self) -> bool {
        matches!(self, Self::Enumerator(_) | Self::DumpLen)
    }
}

/// Whether schedlab sets the variable called `name` itself, instead of its user or a setup.
pub fn is_set_by_schedlab(name: &str) -> bool {
    name == "scx_lib_features" || Constant::of(name).is_some_and(Constant::is_the_kernels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_known_by_their_names() {
        assert_eq!(Constant::of("__SCX_SLICE_DFL"), Some(Constant::Enumerator("SCX_SLICE_DFL")));
        assert_eq!(Constant::of("uei_dump_len"), Some(Constant::DumpLen));
        assert_eq!(Constant::of("nr_cpus_onln"), Some(Constant::NrCpus));
        assert_eq!(Constant::of("slice_ns"), Some(Constant::SliceNs));
        assert_eq!(Constant::of("quantum_ns"), None);
        assert_eq!(Constant::of("__COMPAT"), None);
        assert!(Constant::of("__SCX_X").unwrap().is_the_kernels());
        assert!(!Constant::NrCpus.is_the_kernels());
        assert!(is_set_by_schedlab("__SCX_X") && is_set_by_schedlab("scx_lib_features"));
        assert!(!is_set_by_schedlab("nr_cpu_ids"));
    }
}
