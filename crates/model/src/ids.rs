// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ids. Each is an index that counts from 0 without gaps, so state is kept in vectors, not in hash
//! maps.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[cfg_attr(
            feature = "borsh",
            derive(borsh::BorshSerialize, borsh::BorshDeserialize)
        )]
        pub struct $name(pub u32);

        impl $name {
            /// The id as a vector index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// A task. Tasks are numbered in order of creation within a run. The idle task has no id: where
    /// a CPU's current task is named, idle is `None`.
    TaskId
}
id! {
    /// A CPU, numbered as the kernel numbers logical CPUs.
    CpuId
}
id! {
    /// An object that tasks wait for: an index into [`crate::Workload::objects`]. In a trace,
    /// higher numbers are sets of objects and the exit of children
    /// ([`crate::Workload::trace_objects`]).
    ObjectId
}
id! {
    /// A control group; 0 is the root group.
    CgroupId
}

/// The root control group.
pub const ROOT_CGROUP: CgroupId = CgroupId(0);
