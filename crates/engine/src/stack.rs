// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes that a run needs, and which policy belongs to which of them.
//!
//! A class that does nothing without tasks of its own is left out where the workload has none: each
//! class of the stack is asked at every switch and every tick.

use schedlab_model::{MutexProtocol, ObjectKind, ObjectSpec, Op, Policy, Workload};
use schedlab_sched::boundary::core::CLASSES_MAX;
use schedlab_sched::{Core, SchedClass};

/// All policies.
const POLICIES: [Policy; 7] = [
    Policy::Normal,
    Policy::Fifo,
    Policy::Rr,
    Policy::Batch,
    Policy::Idle,
    Policy::Deadline,
    Policy::Ext,
];

/// Keeps of `classes` what a run of `workload` needs and tells `core` whose the policies are.
pub(crate) fn build(
    mut classes: Vec<Box<dyn SchedClass>>,
    workload: &Workload,
    core: &mut Core,
) -> Vec<Box<dyn SchedClass>> {
    let used = policies(workload);
    let is_owned = POLICIES.map(|policy| classes.iter().any(|class| class.owns(policy)));
    // A policy that two classes own is the higher one's; a third may take it over for a time only.
    let owner_of = |policy: Policy| classes.iter().position(|class| class.owns(policy));
    let is_served = |class: &dyn SchedClass, index: usize| {
        let serves = |policy: &&Policy| class.serves(**policy);
        let is_others = |policy: Policy| class.owns(policy) && owner_of(policy) != Some(index);
        class.acts_without_tasks() || used.iter().filter(serves).any(|policy| !is_others(*policy))
    };
    let numbered = classes.iter().enumerate();
    let mut is_needed: Vec<bool> =
        numbered.map(|(index, class)| is_served(class.as_ref(), index)).collect();
    if is_needed.contains(&true) {
        let mut needed = is_needed.drain(..);
        classes.retain(|_| needed.next().unwrap_or(true));
    }
    let lowest = classes.len() - 1;
    for (policy, is_owned) in POLICIES.into_iter().zip(is_owned) {
        // The number of a class that was left out is that of no other one.
        let absent = if is_owned { CLASSES_MAX - 1 } else { lowest };
        core.set_class_of(policy, owner(&classes, policy).unwrap_or(absent) as u8);
    }
    classes
}

/// Whose the tasks of `policy` are: those of the class that takes them over, or else of the highest
/// one that owns them.
fn owner(classes: &[Box<dyn SchedClass>], policy: Policy) -> Option<usize> {
    let taken = classes.iter().position(|class| class.takes_over(policy));
    taken.or_else(|| classes.iter().position(|class| class.owns(policy)))
}

/// Asks the classes anew whose the policies are; those of classes that were left out stay so.
pub(crate) fn assign(classes: &[Box<dyn SchedClass>], core: &mut Core) {
    for policy in POLICIES {
        if let Some(owner) = owner(classes, policy) {
            core.set_class_of(policy, owner as u8);
        }
    }
}

/// The highest class that balances before every pick, or the number of classes.
pub(crate) fn first_that_balances(classes: &[Box<dyn SchedClass>]) -> u8 {
    classes.iter().position(|class| class.always_balances()).unwrap_or(classes.len()) as u8
}

/// The classes, by bit, that are told of idle CPUs.
pub(crate) fn idle_watchers(classes: &[Box<dyn SchedClass>]) -> u8 {
    let watching = classes.iter().enumerate().filter(|(_, class)| class.watches_idle());
    watching.fold(0, |bits, (index, _)| bits | 1 << index)
}

/// The policies that a task may ever have.
fn policies(workload: &Workload) -> Vec<Policy> {
    let of_tasks = workload.tasks.iter().flat_map(|task| {
        let changed = task.program.ops.iter().filter_map(|op| match op {
            Op::SetAttr(attr) => Some(attr.policy),
            _ => None,
        });
        std::iter::once(task.attr.policy).chain(changed)
    });
    let mut policies: Vec<Policy> = of_tasks.collect();
    let lends = |object: &ObjectSpec| {
        let protocol = match object.kind {
            ObjectKind::Mutex { protocol } => protocol,
            _ => return false,
        };
        matches!(protocol, MutexProtocol::Ceiling { .. })
    };
    if workload.objects.iter().any(lends) {
        policies.push(Policy::Fifo);
    }
    policies
}
