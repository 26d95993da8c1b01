// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that stops before each decision: what the Gymnasium environment steps through. It needs no
//! thread, because the engine returns to its caller in the middle of an instant.

use crate::error::{SchedlabError, raise};
use pyo3::prelude::*;
use schedlab_core::{Inputs, Request};
use schedlab_engine::{SimConfig, Simulation};
use schedlab_metrics::Collector;
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, EventKind, Nanos, TaskId, TraceSink};
use schedlab_sched::textbook::user::{Agent, scheduler};
use self_cell::self_cell;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What the events of a run add up to.
struct Seen {
    collector: Collector,
    /// Tasks that wait for a CPU, and since when there are so many.
    nr_waiting: u64,
    since: Nanos,
    /// Time that tasks have waited (ns), over all of them.
    waited_ns: u64,
    nr_exited: u32,
    /// When each task began to wait.
    waits_since: Vec<Nanos>,
}

impl Seen {
    fn count(&mut self, now: Nanos, task: TaskId, more: bool) {
        self.waited_ns += self.nr_waiting * (now - self.since);
        self.since = now;
        self.nr_waiting =
            if more { self.nr_waiting + 1 } else { self.nr_waiting.saturating_sub(1) };
        if let Some(since) = self.waits_since.get_mut(task.index()).filter(|_| more) {
            *since = now;
        }
    }
}

/// The sink of a run, which the episode reads between two decisions.
#[derive(Clone)]
struct Shared(Rc<RefCell<Seen>>);

impl TraceSink for Shared {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        let mut seen = self.0.borrow_mut();
        seen.collector.task(id, info);
        seen.waits_since.push(0);
    }

    fn event(&mut self, event: &Event) {
        let mut seen = self.0.borrow_mut();
        seen.collector.event(event);
        let now = event.time_ns;
        match event.kind {
            EventKind::Fork { task, .. } | EventKind::Wakeup { task, .. } => {
                seen.count(now, task, true);
            }
            EventKind::Switch { prev, next, out } => {
                if let Some(next) = next {
                    seen.count(now, next, false);
                }
                if let Some(prev) = prev.filter(|_| !out.is_voluntary()) {
                    seen.count(now, prev, true);
                }
            }
            EventKind::Exit { .. } => seen.nr_exited += 1,
            _ => {}
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        let mut seen = self.0.borrow_mut();
        seen.collector.end(end_ns);
        let nr_waiting = seen.nr_waiting;
        seen.waited_ns += nr_waiting * end_ns.saturating_sub(seen.since);
        seen.since = end_ns;
    }
}

self_cell!(
    /// The inputs, and the configuration that refers to them.
    struct Configured {
        owner: Inputs,
        #[covariant]
        dependent: SimConfig,
    }
);

type Run<'r> = Simulation<'r, Shared>;

self_cell!(
    /// The configuration, and the run that refers to it.
    struct Running {
        owner: Box<Configured>,
        #[not_covariant]
        dependent: Run,
    }
);

/// A candidate of a decision.
#[pyclass(frozen, get_all, module = "schedlab._core")]
#[derive(Clone)]
pub struct Candidate {
    /// Number of the task.
    task: u32,
    /// Nice value.
    nice: i8,
    /// The kernel's priority; lower is more important.
    prio: i32,
    /// CPU time so far (ns).
    ran_ns: u64,
    /// How long it has waited (ns).
    waited_ns: u64,
    /// Time since its release (ns).
    age_ns: u64,
}

/// A run that stops before each decision.
#[pyclass(unsendable, module = "schedlab._core")]
pub struct Episode {
    run: Option<Running>,
    seen: Rc<RefCell<Seen>>,
    candidates: Vec<Candidate>,
    now: Nanos,
    cpu: u32,
}

#[pymethods]
impl Episode {
    /// Begins a run of a request (JSON). A turn ends after `quantum_ns` if it is given.
    #[new]
    #[pyo3(signature = (request, quantum_ns=None))]
    fn new(request: &str, quantum_ns: Option<u64>) -> PyResult<Self> {
        let request = Request::from_json(request).map_err(raise)?;
        let quantum = quantum_ns.filter(|ns| *ns > 0);
        let agent = Arc::new(scheduler(&request.scheduler, move || Ok(Agent { quantum })));
        let inputs = Inputs::new(&request, Some(agent)).map_err(raise)?;
        let seen = Rc::new(RefCell::new(Seen {
            collector: Collector::new(inputs.machine.nr_cpus()),
            nr_waiting: 0,
            since: 0,
            waited_ns: 0,
            nr_exited: 0,
            waits_since: Vec::new(),
        }));
        let configured = Box::new(Configured::new(inputs, Inputs::config));
        let sink = Shared(Rc::clone(&seen));
        let run = Running::try_new(configured, |configured| {
            let workload = &configured.borrow_owner().workload;
            Simulation::with_agent(workload, configured.borrow_dependent(), sink)
        });
        let run = run.map_err(|error| SchedlabError::new_err(error.to_string()))?;
        let mut episode = Self { run: Some(run), seen, candidates: Vec::new(), now: 0, cpu: 0 };
        episode.run_on()?;
        Ok(episode)
    }

    /// Makes the decision, and runs up to the next one or to the end. Returns whether there is one.
    fn decide(&mut self, task: u32) -> PyResult<bool> {
        let Some(run) = &mut self.run else {
            return Err(SchedlabError::new_err("the run has ended: begin another one"));
        };
        let decided = run.with_dependent_mut(|_, run| {
            run.decide(TaskId(task))?;
            run.advance();
            Ok(())
        });
        decided.map_err(|text: String| SchedlabError::new_err(text))?;
        self.run_on()
    }

    /// The candidates of the present decision; none after the end.
    #[getter]
    fn candidates(&self) -> Vec<Candidate> {
        self.candidates.clone()
    }

    /// The CPU of the present decision.
    #[getter]
    fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Present time (ns).
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now
    }

    /// Whether the run has ended.
    #[getter]
    fn has_ended(&self) -> bool {
        self.run.is_none()
    }

    /// Time that tasks have waited for a CPU so far (ns), over all of them.
    #[getter]
    fn waited_ns(&self) -> u64 {
        let seen = self.seen.borrow();
        seen.waited_ns + seen.nr_waiting * self.now.saturating_sub(seen.since)
    }

    /// Tasks that have exited.
    #[getter]
    fn nr_exited(&self) -> u32 {
        self.seen.borrow().nr_exited
    }

    /// The measures so far, as JSON in the published form.
    fn measures_json(&self) -> PyResult<String> {
        let measures = self.seen.borrow().collector.clone().finish();
        serde_json::to_string(&measures).map_err(|error| SchedlabError::new_err(error.to_string()))
    }
}

impl Episode {
    /// Runs up to the next decision. Returns whether there is one.
    fn run_on(&mut self) -> PyResult<bool> {
        self.candidates.clear();
        let Some(run) = &mut self.run else { return Ok(false) };
        let (seen, candidates) = (&self.seen, &mut self.candidates);
        let (now, cpu) = run.with_dependent_mut(|_, run| {
            while run.goes_on() && run.needs_decision().is_none() {
                run.advance();
            }
            let Some(needs) = run.needs_decision().filter(|_| run.goes_on()) else {
                return (run.now(), None);
            };
            let seen = seen.borrow();
            candidates.extend(needs.candidates.iter().map(|task| {
                let (core, now) = (run.core(), run.now());
                let t = core.task(*task);
                let since = seen.waits_since.get(task.index()).copied().unwrap_or(now);
                let runs = core.is_running(*task);
                Candidate {
                    task: task.0,
                    nice: t.attr.nice,
                    prio: t.prio,
                    ran_ns: core.sum_exec_runtime(*task),
                    waited_ns: if runs { 0 } else { now - since },
                    age_ns: now - t.release_ns,
                }
            }));
            (run.now(), Some(needs.cpu.0))
        });
        self.now = now;
        if let Some(cpu) = cpu {
            self.cpu = cpu;
            return Ok(true);
        }
        let ended = self.run.take();
        let outcome = ended.map(|run| {
            // The cell gives its run back only by reference: what the run found is in the sink.
            let mut failure = None;
            let mut run = run;
            run.with_dependent_mut(|_, run| failure = run.end().err());
            failure
        });
        match outcome.flatten() {
            Some(error) => Err(SchedlabError::new_err(error.to_string())),
            None => Ok(false),
        }
    }
}
