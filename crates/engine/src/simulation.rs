// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulation that its caller advances, instant by instant: for comparing two runs while they
//! run, for showing progress, and for agents that choose the next task.

use crate::asking::{Asking, NeedsDecision, Phase};
use crate::config::{SimConfig, SimOutcome};
use crate::engine::Engine;
use crate::error::SimError;
use crate::observe::{Observer, Watch};
use crate::prepare;
use schedlab_model::{CpuId, Nanos, TaskId, TraceSink, Workload};
use schedlab_sched::Core;

/// A run between two instants.
pub struct Simulation<'a, S> {
    engine: Engine<'a, S>,
    end_ns: Nanos,
    goes_on: bool,
}

impl<'a, S: TraceSink> Simulation<'a, S> {
    /// A run before its first instant. `workload` is as [`crate::grouped`] returns it. The sink and
    /// the observer get what they get from [`crate::simulate`].
    ///
    /// # Errors
    /// Those of [`crate::simulate`] that come before the first event.
    pub fn new(
        workload: &'a Workload,
        config: &'a SimConfig<'a>,
        sink: S,
        observer: Option<&'a mut dyn Observer>,
    ) -> Result<Self, SimError> {
        let mut engine = prepare(workload, config, sink)?;
        let nr_cpus = config.machine.nr_cpus();
        engine.watch = observer.map(|observer| Watch::new(observer, nr_cpus));
        Ok(Self::begin(engine))
    }

    /// As [`Simulation::new`], but the run stops before each choice among several tasks that the
    /// scheduler leaves to an agent: [`Simulation::needs_decision`].
    ///
    /// # Errors
    /// Those of [`Simulation::new`].
    pub fn with_agent(
        workload: &'a Workload,
        config: &'a SimConfig<'a>,
        sink: S,
    ) -> Result<Self, SimError> {
        let mut engine = prepare(workload, config, sink)?;
        engine.asking = Some(Box::new(Asking::new()));
        Ok(Self::begin(engine))
    }

    fn begin(mut engine: Engine<'a, S>) -> Self {
        let end_ns = engine.end_ns();
        engine.begin();
        Self { engine, end_ns, goes_on: true }
    }

    /// The decision that the run waits for. If the caller advances it without one, the scheduler
    /// picks itself.
    pub fn needs_decision(&self) -> Option<&NeedsDecision> {
        self.engine.asking.as_ref()?.pending()
    }

    /// Makes the decision that the run waits for. [`Simulation::advance`] goes on with it.
    ///
    /// # Errors
    /// If the run waits for none, or if `task` is no candidate. The text names the candidates.
    pub fn decide(&mut self, task: TaskId) -> Result<(), String> {
        let Some(needs) = self.needs_decision() else {
            return Err("the run waits for no decision: advance it first".into());
        };
        if !needs.candidates.contains(&task) {
            let names: Vec<String> = needs.candidates.iter().map(ToString::to_string).collect();
            let (cpu, names) = (needs.cpu, names.join(", "));
            return Err(format!("task {task} is no candidate for CPU {cpu}: allowed are {names}"));
        }
        self.engine.decided(task);
        Ok(())
    }

    /// The state that scheduling classes see: tasks, run queues, the present time.
    pub fn core(&self) -> &Core {
        &self.engine.core
    }

    /// Present time (ns): that of the last instant, or the end of the run.
    pub fn now(&self) -> Nanos {
        self.engine.core.now
    }

    /// When the next instant is (ns), unless the run ends before; `Nanos::MAX`: nothing is due.
    pub fn next_time(&self) -> Nanos {
        self.engine.clock.next_time().min(self.engine.interrupts.next_time())
    }

    /// Whether the run goes on.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Handles the next instant, or a part of it. Returns whether the run goes on.
    pub fn advance(&mut self) -> bool {
        if self.needs_decision().is_some() && self.goes_on {
            self.engine.go_on();
            return true;
        }
        self.goes_on = self.goes_on && self.engine.advance(self.end_ns);
        self.goes_on
    }

    /// Ends the run before its time: no more instant is handled, and [`Simulation::finish`] returns
    /// [`SimError::Cancelled`], unless the run has failed already.
    pub fn cancel(&mut self) {
        let time_ns = self.now();
        self.engine.fail(SimError::Cancelled { time_ns });
        self.goes_on = false;
    }

    /// Lets `cpu` reschedule at `at`, whatever its classes requested. `at` is the present time, or
    /// later and not after the next instant.
    ///
    /// # Panics
    /// If `at` is in the past, or if something is due before it.
    pub fn reschedule_at(&mut self, at: Nanos, cpu: CpuId) {
        assert!(at >= self.now() && at <= self.next_time(), "{at} ns is not the next time");
        let engine = &mut self.engine;
        if at != engine.core.now {
            engine.custody.time_moves();
            engine.core.now = at;
        }
        engine.core.resched_curr(cpu);
        engine.reschedule_all();
        engine.waits_in(Phase::Reschedules);
    }

    /// Ends the run. The sink gets the end.
    ///
    /// # Errors
    /// What stopped the run.
    pub fn finish(mut self) -> Result<SimOutcome, SimError> {
        self.end()
    }

    /// As [`Simulation::finish`], for a caller that does not own the run. Call it once, last.
    ///
    /// # Errors
    /// What stopped the run.
    pub fn end(&mut self) -> Result<SimOutcome, SimError> {
        self.goes_on = false;
        self.engine.finish()
    }
}
