// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ids. Each is a dense index from 0, so that state lies in vectors and never in hash maps.

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
    /// A task, numbered in order of creation within a run. The idle task is no task: it is `None`
    /// wherever a CPU's current task is named.
    TaskId
}
id! {
    /// A CPU, numbered as the kernel numbers logical CPUs.
    CpuId
}
id! {
    /// Something that tasks wait on: an index into the workload's objects. In a trace the numbers
    /// after those are wait sets and the exit of children
    /// ([`crate::Workload::trace_objects`]).
    ObjectId
}
id! {
    /// A control group; 0 is the root group.
    CgroupId
}

/// The root control group.
pub const ROOT_CGROUP: CgroupId = CgroupId(0);
