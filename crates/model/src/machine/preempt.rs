// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preemption models of the kernel: when a CPU acts on a request to reschedule.
//!
//! Source: Linux kernel/Kconfig.preempt and include/linux/preempt.h, 6.1 and 6.12; for the lazy
//! model kernel/sched/core.c (resched_curr_lazy, sched_tick) and kernel/entry/common.c, 6.13.

/// When a CPU acts on a request to reschedule. Under the first three models a task in user mode is
/// preempted at once; they differ only for a task in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Preempt {
    /// PREEMPT_NONE: in the kernel, at the end of the system call.
    None,
    /// PREEMPT_VOLUNTARY: in the kernel, at the next point where the call might sleep, or at its
    /// end.
    Voluntary,
    /// PREEMPT: at once, in the kernel too.
    #[default]
    Full,
    /// PREEMPT_LAZY: like `Full` for real-time tasks. A task of the fair class is preempted only
    /// when it next returns to user mode, or in the kernel after the next tick. Other CPUs get no
    /// interrupt for it.
    Lazy,
}

impl Preempt {
    /// Every model.
    pub const ALL: [Self; 4] = [Self::None, Self::Voluntary, Self::Full, Self::Lazy];

    /// The model's name as a value of the kernel's `preempt=` parameter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
        }
    }

    /// Finds the model called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for model in Preempt::ALL {
            assert_eq!(Preempt::by_name(model.name()), Some(model));
        }
        assert_eq!(Preempt::by_name("rt"), None);
    }
}
