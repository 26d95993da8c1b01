// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching a run decide: every choice of a task, why it came up, and what was compared.
//!
//! An [`Observer`] sees each reschedule with its [`Cause`]; where it wants facts, the classes are
//! asked for them. It cannot change the run. Without an observer each of these places costs one
//! test of an empty option.
//!
//! A cause is noted when a callback has asked for a reschedule of a CPU that had none under way, so
//! of several reasons at one instant the first one counts.

use crate::engine::Engine;
use schedlab_model::{CpuId, Nanos, SwitchOut, TaskId, TraceSink};
use schedlab_sched::boundary::explain::{Explanation, Fact};
use schedlab_sched::{Core, PreemptCheck};

/// Why a CPU chose anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The running task gave up the CPU of its own accord: it sleeps, waits, exits or yields.
    Left(SwitchOut),
    /// A task became runnable.
    Woken {
        /// The task.
        task: TaskId,
        /// Whether it is of a higher class than what runs, which decides without numbers.
        higher_class: bool,
        /// What was compared.
        facts: Vec<Fact>,
    },
    /// The tick found that the running task must give way.
    Tick {
        /// The running task's numbers before the tick.
        before: Vec<Fact>,
        /// And after.
        after: Vec<Fact>,
    },
    /// A timer of a class: a quantum ended, an aging or a boost is due, a period began.
    Timer {
        /// The class.
        class: &'static str,
    },
    /// A task changed its own attributes or affinity.
    Attr {
        /// The task.
        task: TaskId,
    },
    /// A task was moved between CPUs, or the reason lies in another CPU's choice.
    Moved,
}

/// A choice of what a CPU runs.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When.
    pub time_ns: Nanos,
    /// Where.
    pub cpu: CpuId,
    /// What ran; `None`: idle.
    pub prev: Option<TaskId>,
    /// What runs; `None`: idle.
    pub next: Option<TaskId>,
    /// Why it was made.
    pub cause: Cause,
    /// What the classes say, from the highest to the one that chose; empty unless wanted.
    pub explanation: Option<Explanation>,
}

/// Sees the choices of a run.
pub trait Observer {
    /// Whether facts are wanted about what happens at `now` on `cpu`: an empty explanation to be
    /// filled.
    fn wants(&mut self, now: Nanos, cpu: CpuId) -> Option<Explanation>;

    /// A choice was made. `core` is the state right after it, before the switch.
    fn decided(&mut self, core: &Core, decision: Decision);
}

/// What the engine keeps for an observer.
pub(crate) struct Watch<'a> {
    observer: &'a mut dyn Observer,
    /// Why each CPU is about to reschedule.
    causes: Vec<Option<Cause>>,
    explanation: Option<Explanation>,
}

impl<'a> Watch<'a> {
    pub fn new(observer: &'a mut dyn Observer, nr_cpus: u32) -> Self {
        Self { observer, causes: vec![None; nr_cpus as usize], explanation: None }
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// CPUs that are about to reschedule for a reason not yet noted.
    fn new_requests(&self) -> Vec<CpuId> {
        let Some(watch) = &self.watch else { return Vec::new() };
        let cpus = (0..self.core.nr_cpus()).map(CpuId);
        cpus.filter(|cpu| self.core.rq(*cpu).need_resched && watch.causes[cpu.index()].is_none())
            .collect()
    }

    fn wants_facts(&mut self, cpu: CpuId) -> bool {
        let now = self.core.now;
        self.watch.as_mut().is_some_and(|watch| watch.observer.wants(now, cpu).is_some())
    }

    /// Notes the cause of every new request.
    #[cold]
    pub(crate) fn note_cause(&mut self, cause: &Cause) {
        for cpu in self.new_requests() {
            if let Some(watch) = &mut self.watch {
                watch.causes[cpu.index()] = Some(cause.clone());
            }
        }
    }

    /// `task` has become runnable.
    #[cold]
    pub(crate) fn note_woken(&mut self, task: TaskId) {
        for cpu in self.new_requests() {
            let check = self.core.preempt_check(cpu, task);
            let facts = match check {
                PreemptCheck::SameClass(curr) if curr != task && self.wants_facts(cpu) => {
                    let class = self.stack.class(self.core.task(task).class);
                    class.explain_preempt(&self.core, task, curr)
                }
                _ => Vec::new(),
            };
            let higher_class = check == PreemptCheck::Resched && self.core.rq(cpu).curr.is_some();
            if let Some(watch) = &mut self.watch {
                watch.causes[cpu.index()] = Some(Cause::Woken { task, higher_class, facts });
            }
        }
    }

    /// The numbers of what `cpu` runs, if they are wanted.
    #[cold]
    pub(crate) fn numbers_of(&mut self, cpu: CpuId, task: TaskId) -> Vec<Fact> {
        if !self.wants_facts(cpu) {
            return Vec::new();
        }
        self.stack.class(self.core.task(task).class).explain_task(&self.core, task)
    }

    /// The tick of `cpu` is over.
    #[cold]
    pub(crate) fn note_tick(&mut self, cpu: CpuId, task: TaskId, before: Vec<Fact>) {
        if self.new_requests().contains(&cpu) {
            let after = self.numbers_of(cpu, task);
            if let Some(watch) = &mut self.watch {
                watch.causes[cpu.index()] = Some(Cause::Tick { before, after });
            }
        }
        self.note_cause(&Cause::Moved);
    }

    /// A round of picking begins on `cpu`.
    #[cold]
    pub(crate) fn note_pick_begins(&mut self, cpu: CpuId) {
        let now = self.core.now;
        if let Some(watch) = &mut self.watch {
            watch.explanation = watch.observer.wants(now, cpu);
        }
    }

    /// Class number `class` has just answered for `cpu`.
    #[cold]
    pub(crate) fn note_pick(&mut self, cpu: CpuId, class: u8) {
        if let Some(explanation) = self.watch.as_mut().and_then(|w| w.explanation.as_mut()) {
            self.stack.class(class).explain_pick(&self.core, cpu, explanation);
        }
    }

    /// `cpu` has chosen `next`; `out` tells how `prev` leaves, if it does.
    #[cold]
    pub(crate) fn note_decision(
        &mut self,
        cpu: CpuId,
        prev: Option<TaskId>,
        next: Option<TaskId>,
        out: SwitchOut,
    ) {
        let Some(watch) = &mut self.watch else { return };
        let noted = watch.causes[cpu.index()].take();
        let left = out.is_voluntary() || out == SwitchOut::Yielded;
        let cause = if left { Cause::Left(out) } else { noted.unwrap_or(Cause::Moved) };
        let explanation = watch.explanation.take();
        let time_ns = self.core.now;
        let decision = Decision { time_ns, cpu, prev, next, cause, explanation };
        watch.observer.decided(&self.core, decision);
    }
}
