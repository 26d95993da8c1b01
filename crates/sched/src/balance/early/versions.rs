// SPDX-License-Identifier: MIT OR Apache-2.0
//! What distinguishes the balancing of 2.6.11, 2.6.22, 2.6.23, 2.6.24 and 2.6.32, as data.
//!
//! Source: Linux 2.6.11, 2.6.22, 2.6.23.17, 2.6.24 and 2.6.32.67, kernel/sched.c.

/// What a group of CPUs gets done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    /// Two threads of a core a tenth more than one (2.6.11, arch/i386/kernel/smpboot.c).
    Threads,
    /// A core as much as one CPU, and so does each of its threads (2.6.22, 2.6.23).
    OneCpu,
    /// All that shares a core or a cache as one CPU (2.6.24).
    OneCpuByCache,
    /// The sum of its CPUs, of which the threads of a core share 15 % more than one CPU (2.6.32).
    Sum,
}

/// When a task is too heavy for what is still to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heavy {
    /// Never: tasks are counted (2.6.11).
    Never,
    /// Its weight is greater. It moves nevertheless if it is better than all tasks on the target,
    /// and not the only best one on the source (2.6.22).
    Whole,
    /// Half of its weight is greater by the fuzz. It moves nevertheless if it is better than all
    /// tasks on the target (2.6.23, 2.6.24).
    Half,
    /// Half of it weighs more, however good it is (2.6.32).
    HalfAlways,
}

/// Where a program that starts is placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exec {
    /// To the CPU with least load, if that is clearly less.
    LeastLoaded,
    /// To the group with least load, domain by domain, widest first.
    Groups,
    /// As `Groups`, but the program counts on the CPU that it leaves.
    GroupsWithCaller,
}

/// A version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// Load of one task of nice 0, and power of one CPU (SCHED_LOAD_SCALE).
    pub scale: u64,
    /// Least difference of two loads that counts; and by how much a task may exceed the amount to
    /// move (SCHED_LOAD_SCALE_FUZZ).
    pub fuzz: u64,
    /// Loads are numbers of tasks, and so is what is to be moved. Every CPU looks for itself, at
    /// ticks of its own, longer by 1 ms after each failure.
    pub counts_tasks: bool,
    /// Caches and nodes are levels of their own.
    pub knows_caches: bool,
    /// Strength of groups.
    pub power: Power,
    /// Loads of groups are reckoned in 32 bits.
    pub is_32_bit: bool,
    /// An average that rises is rounded up.
    pub rounds_up: bool,
    /// Whether a group whose CPUs differ much counts as busy even if it is within its power.
    pub sees_uneven_groups: bool,
    /// Less than a task by which nothing is gained is no imbalance.
    pub drops_small_imbalance: bool,
    /// Whether tasks beyond a group's power are moved, and a CPU that becomes idle next to such a
    /// group takes some, whatever the loads are.
    pub counts_capacity: bool,
    /// Which tasks are not moved because of their weight.
    pub heavy: Heavy,
    /// Whether a CPU that becomes idle and gets no task from one CPU tries the others.
    pub newidle_tries_others: bool,
    /// Whether a CPU that becomes idle stops its search after it found work that could not move.
    pub newidle_failure_ends: bool,
    /// An interval is at most a tenth of a second for each CPU (HZ * NR_CPUS / 10). In 2.6.23, of
    /// which NR_CPUS is not known, it has no limit.
    pub limits_interval: bool,
    /// An idle thread of a core is looked for only if the CPU has no other task waiting.
    pub wakes_beside_one_only: bool,
    /// Where programs start.
    pub exec: Exec,
}

/// Linux 2.6.11.
pub const LINUX_2_6_11: Version = Version {
    scale: 128,
    fuzz: 0,
    counts_tasks: true,
    knows_caches: false,
    power: Power::Threads,
    is_32_bit: false,
    rounds_up: true,
    sees_uneven_groups: false,
    drops_small_imbalance: false,
    counts_capacity: false,
    heavy: Heavy::Never,
    newidle_tries_others: false,
    newidle_failure_ends: false,
    limits_interval: false,
    wakes_beside_one_only: false,
    exec: Exec::LeastLoaded,
};

/// Linux 2.6.22.
pub const LINUX_2_6_22: Version = Version {
    counts_tasks: false,
    power: Power::OneCpu,
    is_32_bit: true,
    drops_small_imbalance: true,
    heavy: Heavy::Whole,
    newidle_tries_others: true,
    wakes_beside_one_only: true,
    exec: Exec::GroupsWithCaller,
    ..LINUX_2_6_11
};

/// Linux 2.6.23.
pub const LINUX_2_6_23: Version = Version {
    scale: 1024,
    fuzz: 1024,
    rounds_up: false,
    drops_small_imbalance: false,
    heavy: Heavy::Half,
    newidle_tries_others: false,
    exec: Exec::Groups,
    ..LINUX_2_6_22
};

/// Linux 2.6.24.
pub const LINUX_2_6_24: Version = Version {
    knows_caches: true,
    power: Power::OneCpuByCache,
    rounds_up: true,
    sees_uneven_groups: true,
    limits_interval: true,
    exec: Exec::GroupsWithCaller,
    ..LINUX_2_6_23
};

/// Linux 2.6.32.
pub const LINUX_2_6_32: Version = Version {
    power: Power::Sum,
    is_32_bit: false,
    counts_capacity: true,
    heavy: Heavy::HalfAlways,
    newidle_failure_ends: true,
    ..LINUX_2_6_24
};
