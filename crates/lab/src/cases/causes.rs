// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a comparison is outside: which part of the model makes it agree, if that part is changed by
//! as much as it is known to be wrong.
//!
//! [`WHAT_IFS`] lists the changes: costs of the machine that are means, or differ from those of
//! kernels by some microseconds. The model runs again with each of them, on every case that has a
//! comparison outside. A change that brings the comparison inside is a possible cause. Where
//! changes of three unrelated causes or more do so, none of them is to blame: any few microseconds
//! decide ([`Cause::Order`]).
//!
//! Chance explains something, too: a case that many changes turn upside down agrees with one of
//! them. So the same is asked of the wrong model. Its rules differ, and no microseconds repair
//! that: the fewer of its comparisons get a cause, the more a cause means.

use schedlab_model::machine::{KernelThread, ThreadWakes};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{Costs, Nanos};
use schedlab_run::{Boot, MachineSpec, RunRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What makes model and kernel differ. The page of figures describes each.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// One turn decides the rest: changes of three other causes or more make it agree.
    Order,
    /// The time of forks, exits and starts of children.
    Forks,
    /// The first turns of a run.
    Starts,
    /// The time of wake-ups, and of operations on objects.
    WakeUps,
    /// What the tasks are charged for switches and ticks.
    Charges,
    /// Slices of 7.2.
    Slices,
    /// Delayed dequeues.
    DelayedDequeues,
    /// Moves between groups, and changes of attributes.
    Moves,
    /// Quotas and refills.
    Quotas,
    /// Budgets of SCHED_DEADLINE.
    Budgets,
    /// RCU's thread.
    Rcu,
    /// Priority inheritance.
    Inheritance,
    /// When idle CPUs look for tasks that a tick has asked to.
    IdleBalancing,
    /// Searches for tasks before a CPU goes idle, of which kernels draw which to leave out.
    Searches,
    /// Several of these at once.
    Together,
    /// None of these, but the kernel's own runs differ as much: one half of them is outside of what
    /// the other half varies.
    Chance,
}

impl Cause {
    /// Its name in tables.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Order => "one turn decides the rest",
            Self::Forks => "forks and exits",
            Self::Starts => "first turns",
            Self::WakeUps => "wake-ups",
            Self::Charges => "charges",
            Self::Slices => "slices of 7.2",
            Self::DelayedDequeues => "delayed dequeues",
            Self::Moves => "moves between groups",
            Self::Quotas => "quotas and refills",
            Self::Budgets => "budgets",
            Self::Rcu => "RCU's thread",
            Self::Inheritance => "priority inheritance",
            Self::IdleBalancing => "balancing for idle CPUs",
            Self::Searches => "searches at random",
            Self::Together => "several of these",
            Self::Chance => "the kernel's own chance",
        }
    }
}

impl Cause {
    /// The names of several; `-`: none is known.
    pub fn list(causes: &[Self]) -> String {
        let names: Vec<&str> = causes.iter().map(|one| one.text()).collect();
        if names.is_empty() { "-".into() } else { names.join(", ") }
    }
}

/// A change of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// These costs, where the machine has them, are so much (ns) greater.
    Costs(&'static [&'static str], i64),
    /// The launcher's visit at time 0 is so much (ns) longer.
    Launcher(i64),
    /// The run begins so much (ns) later after the boot.
    SetUp(Nanos),
    /// RCU's thread does not come after exits.
    NoRcu,
    /// The kernel draws other random numbers.
    Boot(u32),
    /// Every cost is up to 10 % greater or less, each by a part of its own that this seed draws.
    All(u64),
}

/// A change, and the cause that it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WhatIf {
    /// The cause.
    pub cause: Cause,
    change: Change,
}

const fn costs(cause: Cause, names: &'static [&'static str], by_ns: i64) -> WhatIf {
    WhatIf { cause, change: Change::Costs(names, by_ns) }
}

const fn other(cause: Cause, change: Change) -> WhatIf {
    WhatIf { cause, change }
}

/// The changes. How far each part may be wrong is what the page of figures says of it.
pub const WHAT_IFS: [WhatIf; 66] = [
    costs(Cause::Forks, &["fork_ns"], 100_000),
    costs(Cause::Forks, &["fork_ns"], -60_000),
    costs(Cause::Forks, &["exit_ns"], 130_000),
    costs(Cause::Forks, &["exit_ns"], 60_000),
    costs(Cause::Forks, &["exit_ns"], -60_000),
    costs(Cause::Forks, &["child_start_ns"], 60_000),
    costs(Cause::Forks, &["child_start_ns"], -60_000),
    costs(Cause::Forks, &["fork_held_ns", "exit_held_ns"], 50_000),
    other(Cause::Starts, Change::Launcher(15_000)),
    other(Cause::Starts, Change::Launcher(-5_000)),
    costs(Cause::Starts, &["release_ns"], 20_000),
    costs(Cause::Starts, &["release_ns"], -10_000),
    costs(Cause::Starts, &["start_delay_ns"], 5_000),
    costs(Cause::Starts, &["start_delay_ns"], -5_000),
    costs(Cause::WakeUps, &["wakeup_switch_ns"], 4_000),
    costs(Cause::WakeUps, &["wakeup_switch_ns"], -3_000),
    costs(Cause::WakeUps, &["timer_wakeup_ns"], 2_500),
    costs(Cause::WakeUps, &["timer_wakeup_ns"], -2_500),
    costs(Cause::WakeUps, &["wakeup_ns"], 3_000),
    costs(Cause::WakeUps, &["futex_ns"], 3_000),
    costs(Cause::WakeUps, &["pipe_ns"], 4_000),
    costs(Cause::WakeUps, &["timer_delay_ns"], 3_000),
    costs(Cause::WakeUps, &["timer_delay_ns"], -3_000),
    costs(Cause::Charges, &["block_ns"], 3_000),
    costs(Cause::Charges, &["block_switch_ns"], 3_000),
    costs(Cause::Charges, &["block_switch_ns"], -3_000),
    costs(Cause::Charges, &["preempt_switch_ns"], 3_000),
    costs(Cause::Charges, &["preempt_switch_ns"], -3_000),
    costs(Cause::Charges, &["clock_lead_ns"], 4_000),
    costs(Cause::Charges, &["clock_lead_ns"], -4_000),
    costs(Cause::Charges, &["context_switch_ns"], 1_000),
    costs(Cause::Charges, &["context_switch_ns"], -1_000),
    costs(Cause::Charges, &["tick_ns"], 1_000),
    costs(Cause::Charges, &["tick_ns"], -1_000),
    costs(Cause::Slices, &["hrtick_ns"], 2_000),
    costs(Cause::Slices, &["hrtick_ns"], -2_000),
    other(Cause::Slices, Change::SetUp(400_000)),
    costs(Cause::DelayedDequeues, &["dequeue_delayed_ns"], 6_000),
    costs(Cause::DelayedDequeues, &["dequeue_delayed_ns"], -8_000),
    costs(Cause::Moves, &["group_move_ns"], 10_000),
    costs(Cause::Moves, &["group_move_ns"], -20_000),
    costs(Cause::Moves, &["set_attr_ns"], 5_000),
    costs(Cause::Quotas, &["throttle_ns"], 10_000),
    costs(Cause::Quotas, &["unthrottle_ns"], 5_000),
    costs(Cause::Budgets, &["class_timer_ns"], 7_000),
    costs(Cause::Budgets, &["class_timer_ns"], -7_000),
    costs(Cause::Budgets, &["hrtick_resched_ns"], 4_000),
    costs(Cause::Budgets, &["hrtick_resched_ns"], -4_000),
    costs(Cause::Budgets, &["block_deadline_ns"], 4_000),
    costs(Cause::Budgets, &["block_deadline_ns"], -4_000),
    costs(Cause::Rcu, &["rcu_wakeup_ns"], 6_000),
    costs(Cause::Rcu, &["rcu_wakeup_ns"], -6_000),
    other(Cause::Rcu, Change::NoRcu),
    costs(Cause::Inheritance, &["pi_wait_ns"], -12_000),
    costs(Cause::Inheritance, &["pi_acquire_ns", "pi_unlock_ns"], -10_000),
    costs(Cause::IdleBalancing, &["nohz_kick_ns"], 15_000),
    costs(Cause::IdleBalancing, &["nohz_kick_ns"], -15_000),
    other(Cause::Searches, Change::Boot(100)),
    other(Cause::Searches, Change::Boot(200)),
    costs(Cause::Searches, &["newidle_ns", "newidle_cpu_ns"], 2_000),
    costs(Cause::Searches, &["newidle_ns", "newidle_cpu_ns"], -2_000),
    other(Cause::Together, Change::All(1)),
    other(Cause::Together, Change::All(2)),
    other(Cause::Together, Change::All(3)),
    other(Cause::Together, Change::All(4)),
    other(Cause::Together, Change::All(5)),
];

impl WhatIf {
    /// Whether it could change runs on so many CPUs.
    pub fn matters(&self, nr_cpus: u32) -> bool {
        // A launcher with the only CPU wakes the first tasks before time 0.
        let is_release = matches!(self.change, Change::Costs(["release_ns"], _));
        let is_of_several = matches!(self.cause, Cause::Searches | Cause::IdleBalancing);
        nr_cpus > 1 || !is_release && !is_of_several
    }

    /// The run of `request` on the changed model. `None`: its machine has nothing to change.
    pub fn applied(&self, request: &RunRequest) -> Option<RunRequest> {
        let mut changed = request.clone();
        if let Change::Boot(more) = self.change {
            changed.boot = Boot((request.boot.0 + more) % (Boot::MAX + 1));
            return Some(changed);
        }
        let before = request.machine.as_deref()?;
        let mut spec = before.clone();
        match self.change {
            Change::Costs(names, by_ns) => each_cost(&mut spec, |name, ns| {
                if names.contains(&name) && *ns > 0 {
                    *ns = ns.saturating_add_signed(by_ns);
                }
            }),
            Change::Launcher(by_ns) => {
                let launches =
                    |one: &&mut KernelThread| matches!(one.wakes, ThreadWakes::Once { at_ns: 0 });
                for thread in spec.machine.threads.iter_mut().filter(launches) {
                    thread.run_ns = thread.run_ns.saturating_add_signed(by_ns).max(1);
                }
            }
            Change::SetUp(more) => spec.machine.set_up_ns += more,
            Change::NoRcu => {
                let is_rcu =
                    |one: &KernelThread| matches!(one.wakes, ThreadWakes::AfterExit { .. });
                spec.machine.threads.retain(|one| !is_rcu(one));
                spec.kernel_threads.retain(|(_, one)| !is_rcu(one));
            }
            Change::All(seed) => {
                let mut stream = Stream::new(seed, Purpose::Experiment, 0);
                let parts = Costs::NAMES.map(|_| stream.between(900, 1_100));
                each_cost(&mut spec, |name, ns| {
                    let at = Costs::NAMES.iter().position(|one| *one == name);
                    let part = at.map_or(1_000, |at| parts[at]);
                    *ns = ns.saturating_mul(part) / 1_000;
                });
            }
            Change::Boot(_) => {}
        }
        if spec == *before {
            return None;
        }
        changed.machine = Some(Arc::new(spec));
        Some(changed)
    }
}

/// Calls `change` for each cost of the machine, and of its kernels. Parts of a tick stay parts of
/// it.
fn each_cost(spec: &mut MachineSpec, mut change: impl FnMut(&str, &mut Nanos)) {
    let of_kernels = spec.kernel_costs.iter_mut().map(|(_, costs)| costs);
    for costs in std::iter::once(&mut spec.machine.costs).chain(of_kernels) {
        for name in Costs::NAMES {
            if let Some(ns) = costs.field_mut(name) {
                change(name, ns);
            }
        }
        let tick_ns = costs.tick_ns.saturating_add(costs.tick_entity_ns);
        costs.tick_resched_ns = costs.tick_resched_ns.min(tick_ns);
        costs.clock_lead_ns = costs.clock_lead_ns.min(costs.tick_resched_ns);
    }
}

/// The causes of a comparison that these changes bring inside.
pub fn causes(agreeing: &[Cause]) -> Vec<Cause> {
    let found: BTreeSet<Cause> = agreeing.iter().copied().collect();
    let single: Vec<Cause> = found.iter().copied().filter(|one| *one != Cause::Together).collect();
    match single.len() {
        0 => found.into_iter().collect(),
        1 | 2 => single,
        _ => vec![Cause::Order],
    }
}
