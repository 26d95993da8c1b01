// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences in balancing between 2.6.11, 2.6.22, 2.6.23, 2.6.24 and 2.6.32, as data.
//!
//! Source: Linux 2.6.11, 2.6.22, 2.6.23.17, 2.6.24 and 2.6.32.67, kernel/sched.c.

/// The power of a group of CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    /// Two threads of a core have a tenth more than one thread (2.6.11,
    /// arch/i386/kernel/smpboot.c).
    Threads,
    /// A core has the power of one CPU, and so does each of its threads (2.6.22, 2.6.23).
    OneCpu,
    /// CPUs that share a core or a cache have the power of one CPU (2.6.24).
    OneCpuByCache,
    /// A group has the sum of its CPUs; the threads of a core share 15 % more than one CPU
    /// (2.6.32).
    Sum,
}

/// When a task is too heavy for the amount that is still to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heavy {
    /// Never: tasks are counted (2.6.11).
    Never,
    /// If its weight is greater. The task moves nevertheless if it is better than all tasks on the
    /// target, and not the only best one on the source (2.6.22).
    Whole,
    /// If half of its weight is greater by the fuzz. The task moves nevertheless if it is better
    /// than all tasks on the target (2.6.23, 2.6.24).
    Half,
    /// If half of its weight is greater, whatever its priority (2.6.32).
    HalfAlways,
}

/// Where a new program is placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exec {
    /// On the CPU with the least load, if that is clearly less.
    LeastLoaded,
    /// In the group with the least load, domain by domain, widest first.
    Groups,
    /// As `Groups`, but the program counts on the CPU that it leaves.
    GroupsWithCaller,
}

/// The balancing rules of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// Load of one task of nice 0, and power of one CPU (SCHED_LOAD_SCALE).
    pub scale: u64,
    /// Least difference of two loads that counts; also how much a task may exceed the amount to
    /// move (SCHED_LOAD_SCALE_FUZZ).
    pub fuzz: u64,
    /// Whether loads and amounts are numbers of tasks. Every CPU then searches for itself, at its
    /// own ticks, and each failure lengthens the interval by 1 ms.
    pub counts_tasks: bool,
    /// Whether caches and nodes are separate levels.
    pub knows_caches: bool,
    /// Power of groups.
    pub power: Power,
    /// Whether loads of groups are computed in 32 bits.
    pub is_32_bit: bool,
    /// Whether a rising average is rounded up.
    pub rounds_up: bool,
    /// Whether a group whose CPUs differ much counts as busy even if it is within its power.
    pub sees_uneven_groups: bool,
    /// Whether a difference of less than a task is ignored if moving the task gains nothing.
    pub drops_small_imbalance: bool,
    /// Whether tasks beyond a group's power move, and a CPU that becomes idle next to such a group
    /// takes some, whatever the loads are.
    pub counts_capacity: bool,
    /// Which tasks do not move because of their weight.
    pub heavy: Heavy,
    /// Whether a CPU that becomes idle and gets no task from one CPU tries the others.
    pub newidle_tries_others: bool,
    /// Whether a CPU that becomes idle stops its search after it found work that could not move.
    pub newidle_failure_ends: bool,
    /// Whether intervals are limited to a tenth of a second for each CPU (HZ * NR_CPUS / 10). In
    /// 2.6.23, whose NR_CPUS is unknown, they have no limit.
    pub limits_interval: bool,
    /// Whether a wake-up searches for an idle thread of a core only if the CPU has no other waiting
    /// task.
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
