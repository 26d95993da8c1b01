// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes that a run needs, and which policy belongs to which class.
//!
//! A class that does nothing without tasks of its own is left out if the workload has none, because
//! each class of the stack is called at every switch and every tick.

use schedlab_model::{MutexProtocol, ObjectKind, ObjectSpec, Op, Policy, Workload};
use schedlab_sched::boundary::core::CLASSES_MAX;
use schedlab_sched::boundary::turns::Turns;
use schedlab_sched::{Balances, Core, LockDomain, SchedClass};

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

/// The classes of a run, and what follows from their traits.
pub(crate) struct Stack {
    /// The classes, highest first.
    classes: Vec<Box<dyn SchedClass>>,
    /// Which run queues share a lock.
    pub lock_domain: LockDomain,
    /// Whether exits and waits for children look through lists of tasks.
    pub walks_tasks: bool,
    /// Whether a class pulls before a pick.
    pub pulls_before_pick: bool,
    /// The highest class that balances before every pick; if there is none, the number of classes.
    pub balance_from: u8,
    /// Classes, by bit, that watch idle CPUs.
    pub idle_watchers: u8,
    /// Whether a change of a cpuset replaces the affinity of its tasks.
    pub cpuset_forgets_affinity: bool,
    /// Whether every class may have quiet ticks.
    pub has_quiet_ticks: bool,
    /// Whether a sleeper that is due at a tick wakes after it.
    pub timers_follow_tick: bool,
    /// Whether a move to another group requests a reschedule.
    pub group_moves_resched: bool,
    /// Whether a task spins for a mutex with inheritance while its owner runs.
    pub spins_on_owner: bool,
    /// A wake-up that preempts stops the clock of its CPU up to the pick.
    pub wakeups_stop_clock: bool,
}

impl Stack {
    /// Keeps the classes that a run of `workload` needs, and sets in `core` which class has which
    /// policy.
    pub fn new(
        mut classes: Vec<Box<dyn SchedClass>>,
        workload: &Workload,
        core: &mut Core,
    ) -> Self {
        assert!(!classes.is_empty(), "a scheduler without a class");
        assert!(classes.len() <= CLASSES_MAX, "too many classes");
        let is_owned = POLICIES.map(|policy| classes.iter().any(|class| class.owns(policy)));
        let takes_turns = classes.iter().any(|class| class.traits().takes_turns);
        core.turns = (takes_turns && core.nr_cpus() > 1)
            .then(|| Turns::new(core.nr_cpus(), core.set_up_ns > 0));
        leave_out(&mut classes, &policies(workload));
        let lowest = classes.len() - 1;
        for (policy, is_owned) in POLICIES.into_iter().zip(is_owned) {
            // The number of a class that was left out is that of no other one.
            let absent = if is_owned { CLASSES_MAX - 1 } else { lowest };
            let (class, is_taken_over) = owner(&classes, policy).unwrap_or((absent, false));
            core.set_class_of(policy, class as u8, is_taken_over);
        }
        let traits: Vec<_> = classes.iter().map(|class| class.traits()).collect();
        let is_global = traits.iter().any(|class| class.lock_domain == LockDomain::Global);
        let always = traits.iter().position(|class| class.balances == Balances::Always);
        let watching = traits.iter().enumerate().filter(|(_, class)| class.watches_idle);
        Self {
            lock_domain: if is_global { LockDomain::Global } else { LockDomain::Cpu },
            walks_tasks: traits.iter().any(|class| class.walks_tasks),
            pulls_before_pick: traits.iter().any(|class| class.balances != Balances::Never),
            balance_from: always.unwrap_or(classes.len()) as u8,
            idle_watchers: watching.fold(0, |bits, (index, _)| bits | 1 << index),
            cpuset_forgets_affinity: traits.iter().any(|class| class.cpuset_forgets_affinity),
            has_quiet_ticks: traits.iter().all(|class| class.has_quiet_ticks),
            timers_follow_tick: traits.iter().any(|class| class.timers_follow_tick),
            spins_on_owner: traits.iter().any(|class| class.spins_on_owner),
            group_moves_resched: traits.iter().any(|class| class.group_moves_resched),
            wakeups_stop_clock: traits.iter().any(|class| class.wakeups_stop_clock),
            classes,
        }
    }

    /// All classes, highest first.
    #[inline]
    pub fn classes(&self) -> &[Box<dyn SchedClass>] {
        &self.classes
    }

    /// Number of classes.
    #[inline]
    pub fn len(&self) -> u8 {
        self.classes.len() as u8
    }

    /// Class number `class`.
    #[inline]
    pub fn class(&self, class: u8) -> &dyn SchedClass {
        self.classes[usize::from(class)].as_ref()
    }

    /// Class number `class`, for a callback.
    #[inline]
    pub fn class_mut(&mut self, class: u8) -> &mut dyn SchedClass {
        self.classes[usize::from(class)].as_mut()
    }

    /// Determines again which class has which policy. Policies of classes that were left out do not
    /// change.
    pub fn assign(&self, core: &mut Core) {
        for policy in POLICIES {
            if let Some((class, is_taken_over)) = owner(&self.classes, policy) {
                core.set_class_of(policy, class as u8, is_taken_over);
            }
        }
    }
}

/// Leaves out the classes that do nothing if tasks have only the policies `used`. If that would be
/// all, none is left out.
fn leave_out(classes: &mut Vec<Box<dyn SchedClass>>, used: &[Policy]) {
    // A policy that two classes own is the higher one's; a third may take it over for a time only.
    let owner_of = |policy: Policy| classes.iter().position(|class| class.owns(policy));
    let is_needed = |index: usize| {
        let class = &classes[index];
        let serves = |policy: &&Policy| class.serves(**policy);
        let is_others = |policy: Policy| class.owns(policy) && owner_of(policy) != Some(index);
        class.traits().acts_without_tasks
            || used.iter().filter(serves).any(|policy| !is_others(*policy))
    };
    let needed: Vec<bool> = (0..classes.len()).map(is_needed).collect();
    if needed.contains(&true) {
        let mut needed = needed.into_iter();
        classes.retain(|_| needed.next().unwrap_or(true));
    }
}

/// The class of tasks of `policy`: the class that takes them over, or else the highest class that
/// owns them; and whether they are taken over.
fn owner(classes: &[Box<dyn SchedClass>], policy: Policy) -> Option<(usize, bool)> {
    let taken = classes.iter().position(|class| class.takes_over(policy));
    let owned = || classes.iter().position(|class| class.owns(policy));
    taken.map(|class| (class, true)).or_else(|| owned().map(|class| (class, false)))
}

/// The policies that tasks of the workload may ever have.
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
