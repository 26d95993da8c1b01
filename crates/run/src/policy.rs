// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of policies, and how a workload runs under another policy than its own.

use crate::place::unknown;
use crate::{LaneKind, StudyError};
use schedlab_model::{Nanos, Op, Policy, SchedAttr, Workload};

/// Default real-time priority if a study names only the policy: the least important one, so that
/// the kernel's own threads stay above the tasks.
pub const RT_PRIORITY_DEFAULT: u8 = 1;

/// Sets `policy` for every task without its own policy, and for every later change back to that
/// default. Nice values stay. Real-time policies get the priority `rt_priority`.
pub fn apply_policy(workload: &mut Workload, policy: Policy, rt_priority: u8) {
    for_each_attr(workload, |attr| {
        if attr.policy == Policy::Normal {
            attr.policy = policy;
            attr.rt_priority = if policy.is_rt() { rt_priority } else { 0 };
        }
    });
}

/// Sets `nice` for every task with the default nice value, and for every later change back to it.
pub fn apply_nice(workload: &mut Workload, nice: i8) {
    for_each_attr(workload, |attr| {
        if attr.nice == 0 {
            attr.nice = nice;
        }
    });
}

/// Gives the custom slice `slice_ns` to every task that has none, and to every later change.
pub fn apply_slice(workload: &mut Workload, slice_ns: Nanos) {
    for_each_attr(workload, |attr| {
        attr.slice_ns.get_or_insert(slice_ns);
    });
}

/// The attributes that tasks start with, and those that their programs set.
fn for_each_attr(workload: &mut Workload, apply: impl Fn(&mut SchedAttr)) {
    for task in &mut workload.tasks {
        apply(&mut task.attr);
        for op in &mut task.program.ops {
            if let Op::SetAttr(attr) = op {
                apply(attr);
            }
        }
    }
}

/// Finds a policy by its name, with or without `SCHED_`, in any case.
pub fn policy_by_name(text: &str) -> Option<Policy> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SCHED_").unwrap_or(&upper);
    let name = if name == "NORMAL" { "OTHER" } else { name };
    POLICIES.into_iter().find(|policy| policy.name() == name)
}

/// Every policy, in order of the kernel's numbers.
pub const POLICIES: [Policy; 7] = [
    Policy::Normal,
    Policy::Fifo,
    Policy::Rr,
    Policy::Batch,
    Policy::Idle,
    Policy::Deadline,
    Policy::Ext,
];

/// The policy with the same rule as a textbook scheduler: for tasks of one priority both decide
/// alike (sched(7)). `None`: no policy has its rule.
pub fn textbook_policy(scheduler: &str) -> Option<Policy> {
    match scheduler {
        "fcfs" => Some(Policy::Fifo),
        "rr" => Some(Policy::Rr),
        _ => None,
    }
}

/// Splits an entry of a list into scheduler and policy: `linux-6.12:FIFO` in the sim lane, `FIFO`
/// on the host. In the vm lane an entry names a kernel and a scheduler (`6.18:wrr`) or policy
/// (`6.18:FIFO`); the lane splits it itself.
pub fn scheduler_of(lane: LaneKind, text: &str) -> Result<(String, Option<Policy>), StudyError> {
    let policy = |name: &str| {
        let names = POLICIES.iter().map(|policy| policy.name());
        policy_by_name(name).ok_or_else(|| unknown("policy", name, names))
    };
    match (lane, text.split_once(':')) {
        (LaneKind::Sim, None) | (LaneKind::Vm, _) => Ok((text.into(), None)),
        (LaneKind::Sim, Some((name, after))) => Ok((name.into(), Some(policy(after)?))),
        (LaneKind::Host, _) => {
            let found = policy(text)?;
            Ok((found.name().into(), Some(found)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{TaskSpec, program::ProgramBuilder};

    #[test]
    fn an_unknown_policy_is_refused_with_the_known_ones() {
        let error = scheduler_of(LaneKind::Host, "FAIR").unwrap_err().to_string();
        assert!(error.contains("OTHER, FIFO, RR, BATCH, IDLE"), "{error}");
        assert_eq!(policy_by_name("sched_fifo"), Some(Policy::Fifo));
        assert_eq!(policy_by_name("normal"), Some(Policy::Normal));
    }

    #[test]
    fn a_tasks_own_policy_stays() {
        let task = TaskSpec::new("hog", ProgramBuilder::new().run(1_000).build());
        let mut workload = Workload::new("w", vec![task]);
        workload.tasks[0].attr.policy = Policy::Idle;
        apply_policy(&mut workload, Policy::Fifo, 5);
        assert_eq!(workload.tasks[0].attr.policy, Policy::Idle);
    }
}
