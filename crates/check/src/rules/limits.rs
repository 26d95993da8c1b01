// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known limits: breaches that the kernels themselves have, or that a model is known for.
//!
//! A rule is not judged where a limit applies, unless the caller asks for known limits, too.

use super::Context;
use crate::subject::Family;
use schedlab_model::{KernelVersion, Op, Policy, SchedAttr};

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
pub static LIMITS: [Limit; 5] = [
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
        occurs: "linux-6.12.0 and linux-6.12, tasks that change their own weight",
        reason: "the distance to the deadline is not scaled with the weight, so a task that was \
                 SCHED_IDLE keeps the long slice of its small weight; mended in 6.13 by commit \
                 6d71a9c61604",
        applies: |context| {
            let from = KernelVersion::release(6, 12, 0);
            is_kernel(context, from, KernelVersion::series(6, 12))
                && (0..context.workload().tasks.len())
                    .any(|spec| context.has_op(spec, |op| matches!(op, Op::SetAttr(_))))
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
];

fn is_kernel(context: &Context<'_>, from: KernelVersion, to: KernelVersion) -> bool {
    matches!(context.family, Family::Kernel(version) if (from..=to).contains(&version))
}

/// Rules that a known limit keeps from being judged.
pub(crate) fn limited(context: &Context<'_>) -> Vec<&'static str> {
    let rules = LIMITS.iter().flat_map(|limit| limit.rules.iter().copied());
    rules.filter(|rule| is_limited(context, rule)).collect()
}

/// Whether a known limit keeps `rule` from being judged.
pub(super) fn is_limited(context: &Context<'_>, rule: &str) -> bool {
    let of_rule = LIMITS.iter().filter(|limit| limit.rules.contains(&rule));
    !context.subject.judges_limits && of_rule.into_iter().any(|limit| (limit.applies)(context))
}
