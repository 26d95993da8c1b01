// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known limits: breaches that the kernels themselves have, or that a model is known for.
//!
//! A rule is not judged where a limit applies, unless the caller asks for known limits, too.

use super::Context;
use crate::subject::Family;
use schedlab_model::weights::task_weight;
use schedlab_model::{KernelVersion, Op, Policy, SchedAttr, TaskSpec};

/// A known breach.
pub struct Limit {
    /// Rules that it breaks.
    pub rules: &'static [&'static str],
    /// Schedulers and cases in which it occurs.
    pub occurs: &'static str,
    /// What the scheduler does, and why.
    pub reason: &'static str,
    pub(super) applies: fn(&Context<'_>) -> bool,
}

/// All known limits.
pub static LIMITS: [Limit; 14] = [
    Limit {
        rules: &["wait", "share", "reweight", "placed"],
        occurs: "linux-6.18.44, with groups",
        reason: "a change of a group's weight enlarges the lag of the running entity, which then \
                 starves others: mainline 6.13 to 7.0 and 6.18.0 to 6.18.44, mended by commit \
                 101f3498b4bd",
        applies: |context| {
            let from = KernelVersion::release(6, 13, 0);
            is_kernel(context, from, KernelVersion::release(6, 18, 44))
                && context.workload().cgroups.len() > 1
        },
    },
    Limit {
        rules: &["wait"],
        occurs: "linux-6.18 and linux-7.1, with groups on several CPUs",
        reason: "a change of a group's weight sets the running entity back to the greatest debt \
                 that a lag may have, so it stays protected for longer than its slice; kernel 7.2 \
                 without HRTICK does the same (studies/notes/\
                 2026-11-23-protected-while-reweighted.md)",
        applies: |context| {
            let from = KernelVersion::release(6, 18, 45);
            is_kernel(context, from, KernelVersion::series(7, 1))
                && context.workload().cgroups.len() > 1
                && context.nr_cpus() > 1
        },
    },
    Limit {
        rules: &["wait", "share"],
        occurs: "linux-6.12.0 and linux-6.12, with tasks that change their own weight",
        reason: "the distance to the deadline is not scaled with the weight, so a task that was \
                 SCHED_IDLE keeps the long slice of its small weight; mended in 6.13 by commit \
                 6d71a9c61604",
        applies: |context| {
            let from = KernelVersion::release(6, 12, 0);
            is_kernel(context, from, KernelVersion::series(6, 12)) && changes_weight(context)
        },
    },
    Limit {
        rules: &["quota"],
        occurs: "sched_ext schedulers",
        reason: "sched_ext leaves cpu.max to the BPF scheduler, which may ignore it",
        applies: |context| context.family == Family::Native,
    },
    Limit {
        rules: &["idle-own-queue"],
        occurs: "sched_ext schedulers, with DEADLINE tasks",
        reason: "the model charges a running DEADLINE task within the pick, as kernels before 6.12 \
                 do; if that takes its last budget, sched_ext is not asked to dispatch, and the \
                 CPU idles until the next tick",
        applies: |context| {
            let is_deadline = |attr: &SchedAttr| attr.policy == Policy::Deadline;
            context.family == Family::Native && context.attrs().any(is_deadline)
        },
    },
    Limit {
        rules: &["same-weight"],
        occurs: "linux-6.1, nice values below 0",
        reason: "the slice of a task that changes its attributes begins anew (set_next_entity), so \
                 only its virtual runtime, which is slow at these nice values, ends its turn",
        applies: |context| {
            let to = KernelVersion::series(6, 1);
            is_kernel(context, KernelVersion::release(6, 1, 0), to)
                && context.attrs().any(|attr| attr.nice < 0)
        },
    },
    Limit {
        rules: &["wait", "share"],
        occurs: "linux-6.1 and linux-6.6, tasks that wait for one that changes its own attributes \
                 (other waits and shares are judged)",
        reason: "a change begins a slice anew (set_next_entity in 6.1, place_entity in 6.6), and \
                 only the end of a slice preempts at a tick: one that changes its attributes more \
                 often keeps the CPU; mended in 6.12 by PLACE_REL_DEADLINE",
        // The rules count the changes: changers.rs.
        applies: |_| false,
    },
    Limit {
        rules: &["same-limit"],
        occurs: "all kernels from 6.1 on",
        reason: "a write of cpu.max refills the pool of the group and releases its queues, \
                 whatever the value (tg_set_cfs_bandwidth): who writes often has no limit",
        applies: |context| {
            let from = KernelVersion::release(6, 1, 0);
            is_kernel(context, from, KernelVersion::series(u16::MAX, u16::MAX))
        },
    },
    Limit {
        rules: &["other-cpu"],
        occurs: "lottery and the rmlfq schedulers",
        reason: "they draw lots for all CPUs from one sequence of random numbers",
        applies: |context| is_named(context, &["lottery", "rmlfq-"]),
    },
    Limit {
        rules: &["other-cpu"],
        occurs: "stride and vtime",
        reason: "a task that wakes is placed by the virtual time of the whole machine, which tasks \
                 on every CPU advance",
        applies: |context| is_named(context, &["stride", "vtime"]),
    },
    Limit {
        rules: &["other-cpu"],
        occurs: "linux-2.4.18",
        reason: "an epoch is that of the whole machine: the CPU that begins one renews the \
                 counters of all tasks",
        applies: |context| is_named(context, &["linux-2.4.18"]),
    },
    Limit {
        rules: &["other-cpu"],
        occurs: "linux-2.6.11",
        reason: "an idle CPU that cannot pull a pinned task asks the migration thread of the busy \
                 CPU, which preempts what runs there",
        applies: |context| is_named(context, &["linux-2.6.11"]),
    },
    Limit {
        rules: &["other-cpu"],
        occurs: "linux-2.6.32, with groups",
        reason: "weights of groups are renewed when any CPU balances load, which an idle one does \
                 at other times than a busy one",
        applies: |context| {
            is_named(context, &["linux-2.6.32"]) && context.workload().cgroups.len() > 1
        },
    },
    Limit {
        rules: &["other-cpu"],
        occurs: "cfs-v19",
        reason: "the model takes ticks at which all CPUs idle for ticks without load, also the \
                 first, before which a task ran; so the average load that credits sleepers depends \
                 on other CPUs",
        applies: |context| is_named(context, &["cfs-v19"]),
    },
];

/// Whether a task changes its own weight.
fn changes_weight(context: &Context<'_>) -> bool {
    let changes = |task: &TaskSpec| {
        let weight = task_weight(&task.attr);
        task.program.ops.iter().any(|op| match op {
            Op::SetAttr(attr) => attr.policy.is_fair() && task_weight(attr) != weight,
            _ => false,
        })
    };
    context.workload().tasks.iter().any(changes)
}

/// Whether the scheduler's name begins with one of these.
fn is_named(context: &Context<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| context.subject.scheduler.name.starts_with(name))
}

fn is_kernel(context: &Context<'_>, from: KernelVersion, to: KernelVersion) -> bool {
    matches!(context.family, Family::Kernel(version) if (from..=to).contains(&version))
}

/// Rules that a known limit, or the caller, keeps from being judged.
pub(crate) fn limited(context: &Context<'_>) -> Vec<&'static str> {
    let rules = LIMITS.iter().flat_map(|limit| limit.rules.iter().copied());
    let skipped = context.subject.skipped.iter().copied();
    rules.chain(skipped).filter(|rule| is_limited(context, rule)).collect()
}

/// Whether a known limit, or the caller, keeps `rule` from being judged.
pub(super) fn is_limited(context: &Context<'_>, rule: &str) -> bool {
    if context.subject.skipped.contains(&rule) {
        return true;
    }
    let of_rule = LIMITS.iter().filter(|limit| limit.rules.contains(&rule));
    !context.subject.judges_limits && of_rule.into_iter().any(|limit| (limit.applies)(context))
}
