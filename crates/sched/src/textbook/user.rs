// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers from outside this program, written in Python or JavaScript: the rules of a textbook
//! scheduler as callbacks with plain values, each of which may fail.
//!
//! The tasks wait in one logical queue for all CPUs, by the rules of [`crate::textbook`]. The
//! policy learns of every task that becomes runnable ([`UserPolicy::enqueue`]) or stops being
//! runnable ([`UserPolicy::dequeue`]), and picks one of those that wait ([`UserPolicy::pick`]).
//! Answers are checked: a task that does not wait for this CPU cannot be picked, and the engine
//! finds a task that is never picked.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::{Ordered, Pool};
use crate::textbook::rules::{Discipline, Positions, TurnEnd};
use schedlab_model::{Costs, CpuId, Nanos, Policy, Preempt, TaskId};
use std::cell::RefCell;

/// Why a task joins the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// It is new.
    New,
    /// It was woken, or its timer expired.
    Wakeup,
    /// It ran, and another task takes its CPU.
    Preempted,
    /// It ran until the end of its quantum, or until a tick ended its turn.
    Expired,
    /// It called sched_yield.
    Yielded,
    /// Its attributes have changed.
    Changed,
}

impl Why {
    /// Its name: `new`, `wakeup`, `preempted`, `expired`, `yielded`, `changed`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Wakeup => "wakeup",
            Self::Preempted => "preempted",
            Self::Expired => "expired",
            Self::Yielded => "yielded",
            Self::Changed => "changed",
        }
    }
}

/// What a policy sees of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// Number, in order of creation.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Nice value.
    pub nice: i8,
    /// Policy.
    pub policy: Policy,
    /// The kernel's priority, lower is more important: -1 DEADLINE, 0 to 98 real-time, 100 to 139
    /// fair.
    pub prio: i32,
    /// The CPU that it is on, or was on last.
    pub cpu: u32,
    /// CPU time (ns) so far.
    pub ran_ns: Nanos,
    /// When it was released or created (ns).
    pub released_ns: Nanos,
}

impl TaskView {
    fn of(core: &Core, task: TaskId) -> Self {
        let t = core.task(task);
        Self {
            id: task.0,
            name: t.name.as_str().into(),
            nice: t.attr.nice,
            policy: t.attr.policy,
            prio: t.prio,
            cpu: t.cpu.0,
            ran_ns: core.sum_exec_runtime(task),
            released_ns: t.release_ns,
        }
    }
}

/// The rules of a scheduler. An error ends the run with its text.
pub trait UserPolicy: Send {
    /// Begins the policy's own random numbers, before all other callbacks. The same seed of a run
    /// gives the same `seed`. Default: nothing.
    fn seed(&mut self, _seed: u64) {}

    /// `task` joins the queue. Returns whether the task that runs on its CPU gives way, so that the
    /// policy picks at once.
    fn enqueue(&mut self, now: Nanos, task: &TaskView, why: Why) -> Result<bool, String>;

    /// A waiting or running task is no longer runnable: it blocks, exits, or is about to change its
    /// attributes. Default: nothing.
    fn dequeue(&mut self, _now: Nanos, _task: &TaskView) -> Result<(), String> {
        Ok(())
    }

    /// Returns which of `waiting`, the tasks that `cpu` may run in the order in which they joined,
    /// it runs next; it leaves the queue. The list is not empty.
    fn pick(&mut self, now: Nanos, cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String>;

    /// A tick while `task` runs, for `ran` ns in this turn. Returns whether its turn ends. Default:
    /// no.
    fn tick(&mut self, _now: Nanos, _task: &TaskView, _ran: Nanos) -> Result<bool, String> {
        Ok(false)
    }

    /// Whether [`UserPolicy::tick`] is to be called. Default: no.
    fn has_ticks(&self) -> bool {
        false
    }

    /// The longest turn of `task`, which ends at its exact time; `None`: it has no end. Default:
    /// none.
    fn quantum(&mut self, _now: Nanos, _task: &TaskView) -> Result<Option<Nanos>, String> {
        Ok(None)
    }

    /// Whether an agent outside the run picks ([`crate::SchedClass::decided`]). Default: no.
    fn is_asked(&self) -> bool {
        false
    }
}

/// A policy that leaves every pick to an agent outside the run. Without an answer the task that
/// joined first runs. A turn ends after a quantum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agent {
    /// Longest turn (ns); `None`: until the task blocks.
    pub quantum: Option<Nanos>,
}

impl UserPolicy for Agent {
    fn enqueue(&mut self, _now: Nanos, _task: &TaskView, _why: Why) -> Result<bool, String> {
        Ok(false)
    }

    fn pick(&mut self, _now: Nanos, _cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
        waiting.first().copied().ok_or_else(|| "no task waits".into())
    }

    fn quantum(&mut self, _now: Nanos, _task: &TaskView) -> Result<Option<Nanos>, String> {
        Ok(self.quantum)
    }

    fn is_asked(&self) -> bool {
        true
    }
}

/// A scheduler called `name`; `make` makes its policy for each run.
pub fn scheduler<P: UserPolicy + 'static>(
    name: &str,
    make: impl Fn() -> Result<P, String> + Send + Sync + 'static,
) -> Scheduler {
    Scheduler {
        name: name.to_owned().into(),
        summary: "a policy written for this run".into(),
        source: "the caller".into(),
        leaves_out: "everything that its callbacks do not do".into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: true,
            fair: false,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: Vec::new(),
        digest: None,
        make: Make::fallible(move |_, machine, _| {
            Ok(vec![Box::new(Global::new(User::new(make()?), machine.nr_cpus()))])
        }),
    }
}

/// The policy, and its first error. It is not called again after that.
#[derive(Debug)]
struct Guarded<P> {
    policy: P,
    failure: Option<String>,
}

impl<P: UserPolicy> Guarded<P> {
    /// The answer to a question; after an error, and if the question itself fails, the default.
    fn ask<T: Default>(&mut self, ask: impl FnOnce(&mut P) -> Result<T, String>) -> T {
        if self.failure.is_some() {
            return T::default();
        }
        ask(&mut self.policy).unwrap_or_else(|error| {
            self.failure = Some(error);
            T::default()
        })
    }
}

/// The discipline of a policy.
#[derive(Debug)]
struct User<P> {
    positions: Positions,
    /// Callbacks that change nothing of the discipline itself may still change the policy.
    guarded: RefCell<Guarded<P>>,
    /// What the agent has chosen.
    decided: Option<TaskId>,
    gives_way: bool,
    is_reported: bool,
    is_seeded: bool,
}

impl<P: UserPolicy> User<P> {
    fn new(policy: P) -> Self {
        Self {
            positions: Positions::default(),
            guarded: RefCell::new(Guarded { policy, failure: None }),
            decided: None,
            gives_way: false,
            is_reported: false,
            is_seeded: false,
        }
    }

    fn tell(&mut self, core: &Core, task: TaskId, why: Why) {
        if !std::mem::replace(&mut self.is_seeded, true) {
            // A copy: the engine's stream is that of other schedulers.
            self.guarded.get_mut().policy.seed(core.random.clone().next_u64());
        }
        let view = TaskView::of(core, task);
        let gives_way = self.guarded.get_mut().ask(|policy| policy.enqueue(core.now, &view, why));
        self.gives_way |= gives_way;
    }
}

impl<P: UserPolicy> Discipline for User<P> {
    type Pool = Ordered<i64>;

    fn name(&self) -> &'static str {
        "user"
    }

    fn join(&mut self, core: &Core, task: TaskId, running: bool, flags: EnqueueFlags) {
        self.positions.arrive(task);
        // A running task keeps its CPU: the policy has picked it already.
        if !running {
            let why = match flags {
                EnqueueFlags { initial: true, .. } => Why::New,
                EnqueueFlags { wakeup: true, .. } => Why::Wakeup,
                _ => Why::Changed,
            };
            self.tell(core, task, why);
        }
    }

    fn requeue(&mut self, core: &Core, task: TaskId, why: TurnEnd, _ran: Nanos) {
        self.positions.arrive(task);
        let why = match why {
            TurnEnd::Preempted => Why::Preempted,
            TurnEnd::Yielded => Why::Yielded,
            TurnEnd::Expired | TurnEnd::Blocked => Why::Expired,
        };
        self.tell(core, task, why);
        self.gives_way = false;
    }

    fn leave(&mut self, core: &Core, task: TaskId, flags: DequeueFlags, ran: Option<Nanos>) {
        if flags.save && ran.is_some() {
            return;
        }
        let view = TaskView::of(core, task);
        self.guarded.get_mut().ask(|policy| policy.dequeue(core.now, &view));
    }

    fn key(&self, _core: &Core, task: TaskId) -> i64 {
        self.positions.of(task)
    }

    fn begin_turn(&mut self, core: &Core, task: TaskId, left: Option<Nanos>) -> Option<Nanos> {
        left.or_else(|| self.quantum(core, task))
    }

    fn quantum(&self, core: &Core, task: TaskId) -> Option<Nanos> {
        let view = TaskView::of(core, task);
        self.guarded.borrow_mut().ask(|policy| match policy.quantum(core.now, &view)? {
            Some(0) => {
                Err(format!("the quantum of task {:?} is 0: allowed is 1 ns and more", view.name))
            }
            quantum => Ok(quantum),
        })
    }

    fn best(&mut self, core: &mut Core, pool: &mut Self::Pool, cpu: CpuId) -> Option<TaskId> {
        let (waiting, _) = pool.waiting(cpu, usize::MAX);
        let first = *waiting.first()?;
        if let Some(decided) = self.decided.take().filter(|task| waiting.contains(task)) {
            return Some(decided);
        }
        let now = core.now;
        let picked = self.guarded.get_mut().ask(|policy| {
            let picked = policy.pick(now, cpu, &waiting)?;
            if waiting.contains(&picked) {
                return Ok(Some(picked));
            }
            let names: Vec<String> = waiting.iter().map(ToString::to_string).collect();
            Err(format!(
                "pick returned task {picked}, which does not wait for CPU {cpu}: waiting are {}",
                names.join(", ")
            ))
        });
        Some(picked.unwrap_or(first))
    }

    fn watches_ticks(&self) -> bool {
        self.guarded.borrow().policy.has_ticks()
    }

    fn tick(&mut self, core: &Core, task: TaskId, ran: Nanos) -> bool {
        let view = TaskView::of(core, task);
        self.guarded.get_mut().ask(|policy| policy.tick(core.now, &view, ran))
    }

    fn take_gives_way(&mut self) -> bool {
        std::mem::take(&mut self.gives_way)
    }

    fn take_failure(&mut self) -> Option<String> {
        let failure = self.guarded.get_mut().failure.clone();
        failure.filter(|_| !std::mem::replace(&mut self.is_reported, true))
    }

    fn is_asked(&self) -> bool {
        self.guarded.borrow().policy.is_asked()
    }

    fn decided(&mut self, task: TaskId) {
        self.decided = Some(task);
    }

    fn rule(&self) -> Rule {
        Rule::Keeps("the policy picked it")
    }

    fn facts(&self, _core: &Core, task: TaskId) -> Vec<Fact> {
        vec![Fact::number("position", self.positions.of(task))]
    }
}
