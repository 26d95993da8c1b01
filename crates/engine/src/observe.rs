// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observation of a run: every pick, why it took place, and which numbers were compared.
//!
//! An [`Observer`] gets each reschedule with its [`Cause`]. If it wants facts, the classes are
//! asked for them. It cannot change the run. Without an observer each of these places costs one
//! test of an empty option.
//!
//! A cause is recorded when a callback requests a reschedule of a CPU without a pending request. So
//! of several causes at one instant the first counts.

use crate::engine::Engine;
use schedlab_model::{CpuId, Nanos, SwitchOut, TaskId, TraceSink};
use schedlab_sched::boundary::explain::{Explanation, Fact};
use schedlab_sched::{Core, PreemptCheck};

/// Why a CPU picked a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The running task sleeps, waits, exits or yields.
    Left(SwitchOut),
    /// A task became runnable.
    Woken {
        /// The task.
        task: TaskId,
        /// Whether it is of a higher class than the running task, so that no numbers are compared.
        higher_class: bool,
        /// The numbers that were compared.
        facts: Vec<Fact>,
    },
    /// The tick found that the running task must be preempted.
    Tick {
        /// The running task's numbers before the tick.
        before: Vec<Fact>,
        /// The running task's numbers after the tick.
        after: Vec<Fact>,
    },
    /// A timer of a class expired: a quantum ended, an aging or a boost was due, a period began.
    Timer {
        /// The class.
        class: &'static str,
    },
    /// A task changed its own attributes or affinity.
    Attr {
        /// The task.
        task: TaskId,
    },
    /// A task changed a control group.
    Group {
        /// The task.
        task: TaskId,
    },
    /// A task migrated, or another CPU's pick was the cause.
    Moved,
}

/// A pick of a CPU.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Time (ns).
    pub time_ns: Nanos,
    /// The CPU.
    pub cpu: CpuId,
    /// The task that ran; `None`: idle.
    pub prev: Option<TaskId>,
    /// The task that runs next; `None`: idle.
    pub next: Option<TaskId>,
    /// Why the CPU picked.
    pub cause: Cause,
    /// Explanations of the classes, from the highest to the one that found a task; `None` unless
    /// wanted.
    pub explanation: Option<Explanation>,
}

/// Observes the picks of a run.
pub trait Observer {
    /// Whether facts are wanted about the pick at `now` on `cpu`. If so, returns an empty
    /// explanation to be filled.
    fn wants(&mut self, now: Nanos, cpu: CpuId) -> Option<Explanation>;

    /// A CPU picked a task. `core` is the state right after the pick, before the switch.
    fn decided(&mut self, core: &Core, decision: Decision);
}

/// The engine's state for an observer.
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
    /// CPUs that are about to reschedule, without a recorded cause.
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

    /// Records the cause of every new request.
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
            if self.core.task(task).cpu != cpu {
                // The wake-up has let another CPU reschedule: the task is not in its queue.
                if let Some(watch) = &mut self.watch {
                    watch.causes[cpu.index()] = Some(Cause::Moved);
                }
                continue;
            }
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

    /// The numbers of the running task of `cpu`, if they are wanted.
    #[cold]
    pub(crate) fn numbers_of(&mut self, cpu: CpuId, task: TaskId) -> Vec<Fact> {
        if !self.wants_facts(cpu) {
            return Vec::new();
        }
        self.stack.class(self.core.task(task).class).explain_task(&self.core, task)
    }

    /// A tick of `cpu` is done.
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
        // The clock of the pick may be earlier.
        let now = self.core.work.switch_ns;
        if let Some(watch) = &mut self.watch {
            watch.explanation = watch.observer.wants(now, cpu);
        }
    }

    /// Class number `class` has answered for `cpu`.
    #[cold]
    pub(crate) fn note_pick(&mut self, cpu: CpuId, class: u8) {
        if let Some(explanation) = self.watch.as_mut().and_then(|w| w.explanation.as_mut()) {
            self.stack.class(class).explain_pick(&self.core, cpu, explanation);
        }
    }

    /// `cpu` picked `next`. `out` is why `prev` leaves, if it does.
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
