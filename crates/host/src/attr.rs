// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling attributes on the running kernel: which are requested, which this kernel supports,
//! setting them, and reading them back.

use crate::error::HostError;
use crate::plan::RunPlan;
use crate::sys::{self, RawSchedAttr};
use schedlab_model::{CgroupId, CpuMask, KernelVersion, Nanos, Policy, SchedAttr};
use std::io;

/// Priority of the launcher, which supervises the run.
pub const LAUNCHER_PRIORITY: u8 = 99;
/// Priority of the thread that empties the recorder's rings.
pub const DRAIN_PRIORITY: u8 = 98;
/// Highest real-time priority of a task of a run, below both.
pub const TASK_PRIORITY_MAX: u8 = 97;

/// Shortest and longest custom slice (kernel/sched/syscalls.c, 6.12: clamped to 0.1 ms .. 100 ms).
pub const SLICE_NS_MIN: Nanos = 100_000;
/// See [`SLICE_NS_MIN`].
pub const SLICE_NS_MAX: Nanos = 100_000_000;

/// A policy for every task of a run, in place of those of the workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicyOverride {
    /// Policy.
    pub policy: Policy,
    /// Real-time priority, 1 to 97 for FIFO and RR, else 0.
    pub rt_priority: u8,
}

/// Changes of the attributes before they were passed to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Adjustments {
    /// Whether real-time priorities above [`TASK_PRIORITY_MAX`] were lowered to it.
    pub priority_capped: bool,
    /// Whether utilisation clamps were left out, because this kernel has none.
    pub clamps_dropped: bool,
}

/// What this kernel supports and this user may do; read once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abilities {
    /// Version of the kernel; `None` if its release is not a version.
    pub kernel: Option<KernelVersion>,
    /// Whether a sched_ext scheduler can be loaded.
    pub sched_ext: bool,
    /// Whether utilisation can be clamped (CONFIG_UCLAMP_TASK).
    pub util_clamp: bool,
}

impl Abilities {
    /// The abilities of the running kernel and this user.
    pub fn detect() -> Self {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            kernel: KernelVersion::of_release(&release),
            sched_ext: std::path::Path::new("/sys/kernel/sched_ext").exists(),
            // The greatest utilisation of an unclamped task is 1024; without the option it reads 0.
            util_clamp: sys::sched_getattr(0).is_ok_and(|raw| raw.util_max > 0),
        }
    }
}

/// The first kernel with custom slices.
pub const CUSTOM_SLICES_SINCE: KernelVersion = KernelVersion::release(6, 12, 0);

/// The attributes that the lane sets: with the override, the run's CPUs and the limit of
/// priorities.
///
/// `online`: every CPU of the machine. A mask with all of them is no restriction and becomes
/// `None`.
pub fn effective(
    attr: &SchedAttr,
    policy: Option<PolicyOverride>,
    cpus: &CpuMask,
    online: &CpuMask,
    abilities: &Abilities,
    adjustments: &mut Adjustments,
) -> Result<SchedAttr, HostError> {
    let mut out = *attr;
    if let Some(policy) = policy {
        out.policy = policy.policy;
        out.rt_priority = policy.rt_priority;
    }
    if !out.policy.is_rt() {
        out.rt_priority = 0;
    }
    if !matches!(out.policy, Policy::Normal | Policy::Batch) {
        out.slice_ns = None;
    }
    if out.rt_priority > TASK_PRIORITY_MAX {
        out.rt_priority = TASK_PRIORITY_MAX;
        adjustments.priority_capped = true;
    }
    if !abilities.util_clamp && (out.util_min.is_some() || out.util_max.is_some()) {
        (out.util_min, out.util_max) = (None, None);
        adjustments.clamps_dropped = true;
    }
    let mask = attr.affinity.map_or(*cpus, |mask| mask.and(cpus));
    if mask.is_empty() {
        return Err(HostError::Input(format!(
            "a task is bound to CPU {}, but the run may use only CPU {cpus}: name one of these",
            attr.affinity.unwrap_or(mask)
        )));
    }
    out.affinity = (mask.and(online) != *online).then_some(mask);
    Ok(out)
}

/// Refuses attributes that this kernel does not support. The error names them.
pub fn check(attr: &SchedAttr, abilities: &Abilities) -> Result<(), HostError> {
    match attr.policy {
        Policy::Ext if !abilities.sched_ext => Err(HostError::Unavailable(
            "policy EXT: this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT, kernel 6.12 or \
             later): use another policy or the VM lane"
                .into(),
        )),
        Policy::Deadline if attr.affinity.is_some() => Err(HostError::Unavailable(format!(
            "policy DEADLINE with CPUs {}: the kernel admits DEADLINE tasks only on all CPUs of \
             their root domain: give the run all CPUs",
            attr.affinity.unwrap_or(CpuMask::empty())
        ))),
        Policy::Normal | Policy::Batch => match attr.slice_ns {
            Some(_) if abilities.kernel < Some(CUSTOM_SLICES_SINCE) => {
                let found =
                    abilities.kernel.map_or("this kernel".into(), |k| format!("kernel {k}"));
                Err(HostError::Unavailable(format!(
                    "custom slice: {found} has none (6.12 or later has): leave it out or use the \
                     simulator"
                )))
            }
            Some(ns) if !(SLICE_NS_MIN..=SLICE_NS_MAX).contains(&ns) => {
                Err(HostError::Unavailable(format!(
                    "custom slice of {ns} ns: the kernel allows 100000 to 100000000 ns"
                )))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Sets policy, nice, priority, slice and affinity of `pid` (0: the caller) and reads them back.
pub fn apply(pid: u32, attr: &SchedAttr) -> io::Result<()> {
    if let Some(mask) = &attr.affinity {
        sys::sched_setaffinity(pid, mask)?;
    }
    sys::sched_setattr(pid, &RawSchedAttr::new(attr))?;
    check_set(pid, attr)
}

/// Checks that policy, nice, priority and slice of `pid` (0: the caller) are those of `attr`.
pub fn check_set(pid: u32, attr: &SchedAttr) -> io::Result<()> {
    let wanted = RawSchedAttr::new(attr);
    let got = sys::sched_getattr(pid)?;
    let is_fair = matches!(attr.policy, Policy::Normal | Policy::Batch);
    let differs = got.policy != wanted.policy
        || got.priority != wanted.priority
        || (is_fair && got.nice != wanted.nice)
        || (is_fair && wanted.runtime != 0 && got.runtime != wanted.runtime)
        || (attr.policy == Policy::Deadline
            && (got.runtime, got.deadline, got.period)
                != (wanted.runtime, wanted.deadline, wanted.period))
        || (got.flags ^ wanted.flags) & sys::RECLAIM != 0
        || attr.util_min.is_some_and(|least| got.util_min != u32::from(least))
        || attr.util_max.is_some_and(|most| got.util_max != u32::from(most));
    // The kernel accepted the call but not the values.
    if differs { Err(io::Error::from_raw_os_error(libc::ERANGE)) } else { Ok(()) }
}

/// Whether tasks forked by a task with `attr` start with other attributes.
pub fn resets_on_fork(attr: &SchedAttr) -> bool {
    attr.policy == Policy::Deadline
}

/// A task changes its own attributes during the run, group included.
///
/// The caller is in `group`. It joins another one only: even a move into its own group puts a task
/// to sleep for several ticks (synchronize_rcu).
pub fn apply_to_self(attr: &SchedAttr, group: CgroupId, plan: &RunPlan) -> io::Result<()> {
    if attr.cgroup != group {
        plan.groups.join_self(attr.cgroup)?;
    }
    apply(0, attr)
}

/// Explains why setting attributes failed, and what to do.
pub fn explain(attr: &SchedAttr, error: &io::Error) -> String {
    let policy = attr.policy.name();
    let advice = match error.raw_os_error() {
        Some(libc::EPERM) if attr.policy.is_rt() => {
            "run as root or with CAP_SYS_NICE; in a control group of a kernel with RT_GROUP_SCHED \
             the group also needs cpu.rt_runtime_us"
        }
        Some(libc::EPERM) => "run as root or with CAP_SYS_NICE",
        Some(libc::EBUSY) => {
            "admission control: the DEADLINE tasks would use more than sched_rt_runtime_us / \
             sched_rt_period_us of the CPUs: lower runtime / period or the number of tasks"
        }
        Some(libc::EINVAL) if attr.policy == Policy::Deadline => {
            "the kernel wants a runtime of 1024 ns and more and a period within \
             sched_deadline_period_min_us and sched_deadline_period_max_us (100 us to 4.19 s)"
        }
        Some(libc::EINVAL) => "this kernel does not know the policy or its parameters",
        Some(libc::ERANGE) => "the kernel changed the values: they are out of its range",
        _ => "see sched_setattr(2)",
    };
    let numbers = if attr.policy == Policy::Deadline {
        let dl = &attr.deadline;
        format!(
            "runtime {} ns, deadline {} ns, period {} ns",
            dl.runtime_ns, dl.deadline_ns, dl.period_ns
        )
    } else {
        format!("nice {}, priority {}", attr.nice, attr.rt_priority)
    };
    format!("cannot set policy {policy}, {numbers}: {error}: {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::CpuId;

    const ABLE: Abilities = Abilities {
        kernel: Some(KernelVersion::release(6, 18, 2)),
        sched_ext: false,
        util_clamp: false,
    };

    #[test]
    fn override_cap_and_cpus_give_what_will_be_set() {
        let online = CpuMask::first(4);
        let mut seen = Adjustments::default();
        let over = Some(PolicyOverride { policy: Policy::Fifo, rt_priority: 99 });
        let attr = SchedAttr { slice_ns: Some(1_000_000), ..SchedAttr::default() };
        let out = effective(&attr, over, &online, &online, &ABLE, &mut seen).unwrap();
        assert_eq!((out.policy, out.rt_priority, out.slice_ns), (Policy::Fifo, 97, None));
        assert_eq!(out.affinity, None);
        assert!(seen.priority_capped && !seen.clamps_dropped);
        let clamped = SchedAttr { util_min: Some(100), ..SchedAttr::default() };
        let out = effective(&clamped, None, &online, &online, &ABLE, &mut seen).unwrap();
        assert!(out.util_min.is_none() && seen.clamps_dropped);
        let new = Abilities { util_clamp: true, ..ABLE };
        let out = effective(&clamped, None, &online, &online, &new, &mut seen).unwrap();
        assert_eq!(out.util_min, Some(100));
        let raw = RawSchedAttr::new(&out);
        assert_eq!((raw.flags, raw.util_min), (0x20, 100));
        let bound = SchedAttr { affinity: Some(CpuMask::only(CpuId(3))), ..attr };
        let two = CpuMask::first(2);
        let error =
            effective(&bound, None, &two, &online, &ABLE, &mut seen).unwrap_err().to_string();
        assert!(error.contains("CPU 3") && error.contains("0-1"), "{error}");
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_by_name() {
        let ext = SchedAttr { policy: Policy::Ext, ..SchedAttr::default() };
        assert!(check(&ext, &ABLE).unwrap_err().to_string().contains("sched_ext"));
        let slice = SchedAttr { slice_ns: Some(1_000_000), ..SchedAttr::default() };
        assert_eq!(check(&slice, &ABLE), Ok(()));
        let old = Abilities { kernel: Some(KernelVersion::release(6, 1, 9)), ..ABLE };
        assert!(check(&slice, &old).unwrap_err().to_string().contains("kernel 6.1.9 has none"));
        let unknown = Abilities { kernel: None, ..ABLE };
        assert!(check(&slice, &unknown).unwrap_err().to_string().contains("this kernel has none"));
        let tiny = SchedAttr { slice_ns: Some(50), ..SchedAttr::default() };
        assert!(check(&tiny, &ABLE).is_err());
        let bound = SchedAttr {
            policy: Policy::Deadline,
            affinity: Some(CpuMask::first(1)),
            ..SchedAttr::default()
        };
        assert!(check(&bound, &ABLE).unwrap_err().to_string().contains("root domain"));
    }

    #[test]
    fn attributes_read_back_as_set() {
        let idle = SchedAttr { policy: Policy::Batch, nice: 5, ..SchedAttr::default() };
        let set =
            std::thread::spawn(move || apply(0, &idle).map(|()| sys::sched_getattr(0).unwrap()));
        let got = set.join().unwrap().unwrap();
        assert_eq!((got.policy, got.nice), (Policy::Batch as u32, 5));
    }
}
