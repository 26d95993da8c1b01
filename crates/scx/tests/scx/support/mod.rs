// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of sched_ext share: schedulers, a log of every callback, short runs.
#![allow(dead_code, reason = "each test binary uses a part of this module")]

pub mod record;
pub mod schedulers;
pub mod script;

use record::Log;
use schedlab_engine::{SimConfig, SimError, SimOutcome, simulate};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::MemorySink;
use schedlab_model::{
    Costs, EventKind, LoopCount, Machine, Nanos, Policy, Program, Release, SchedAttr, TaskId,
    TaskSpec, Workload,
};
use schedlab_sched::{Make, Options, Scheduler};
use schedlab_scx::{Ops, scheduler, stack};
use std::sync::Mutex;

/// One millisecond.
pub const MS: Nanos = 1_000_000;
/// One second.
pub const S: Nanos = 1_000 * MS;

/// A run.
pub struct Case {
    pub workload: Workload,
    pub machine: Machine,
    pub options: Options,
    pub until_ns: Nanos,
}

/// What came of it.
pub struct Ran {
    pub result: Result<SimOutcome, SimError>,
    pub trace: MemorySink,
    pub log: Log,
}

/// A scheduler named `test` for one run of `ops`, which the core takes unchecked.
pub fn once(ops: Box<dyn Ops>) -> Scheduler {
    let ops = Mutex::new(Some(ops));
    Scheduler {
        name: "test".into(),
        make: Make::new(move |options, machine, cgroups| {
            let ops = ops.lock().unwrap().take().expect("it is made for one run");
            stack(ops, options, machine, cgroups)
        }),
        ..scheduler()
    }
}

impl Case {
    /// `tasks` on `nr_cpus` CPUs without costs, HZ=250, until `until_ms`.
    pub fn new(nr_cpus: u32, until_ms: u64, tasks: Vec<TaskSpec>) -> Self {
        Self {
            workload: Workload::new("test", tasks),
            machine: Machine { costs: Costs::ZERO, hz: 250, ..Machine::flat(nr_cpus) },
            options: Options::defaults(&scheduler().tunables),
            until_ns: until_ms * MS,
        }
    }

    /// The same with a tunable set.
    pub fn with(mut self, name: &str, value: u64) -> Self {
        self.options.set(&scheduler().tunables, name, value).unwrap();
        self
    }

    /// The same at another tick rate.
    pub fn at_hz(mut self, hz: u32) -> Self {
        self.machine.hz = hz;
        self
    }

    /// The same with the rules of 7.1.
    pub fn at_7_1(self) -> Self {
        self.with("scx_core", 1)
    }

    /// The same with errors that end the scheduler and not the run.
    pub fn falling_back(self) -> Self {
        self.with("scx_on_error", 1)
    }

    /// Runs it under `ops`; `log` is what a recorder of them writes to.
    pub fn run(&self, ops: impl Ops + 'static, log: Log) -> Ran {
        self.run_boxed(Box::new(ops), log)
    }

    /// The same.
    pub fn run_boxed(&self, ops: Box<dyn Ops>, log: Log) -> Ran {
        let config = SimConfig {
            machine: &self.machine,
            scheduler: &once(ops),
            options: &self.options,
            seed: 1,
            until_ns: Some(self.until_ns),
            watchdog_ns: None,
        };
        let mut trace = MemorySink::default();
        let result = simulate(&self.workload, &config, &mut trace, None);
        Ran { result, trace, log }
    }
}

impl Ran {
    /// The text of the error that ended the run.
    pub fn error(&self) -> String {
        self.result.as_ref().expect_err("the run was to end with an error").to_string()
    }

    /// The outcome of a run that ended well.
    pub fn outcome(&self) -> &SimOutcome {
        self.result.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    /// "0A 20B 40-": at 0 ms the CPU starts A, at 20 ms B, at 40 ms it goes idle.
    pub fn timeline(&self) -> String {
        self.outcome();
        self.timeline_so_far()
    }

    /// The same of a run that may have ended with an error.
    pub fn timeline_so_far(&self) -> String {
        let switches = self.trace.events.iter().filter_map(|event| match event.kind {
            EventKind::Switch { next, .. } => {
                let who = next.map_or("-".into(), letter);
                Some(format!("{}{who}", time(event.time_ns)))
            }
            _ => None,
        });
        switches.collect::<Vec<_>>().join(" ")
    }

    /// The same on several CPUs: "0:0A 20:1B" is CPU:time and task.
    pub fn timeline_by_cpu(&self) -> String {
        self.outcome();
        let switches = self.trace.events.iter().filter_map(|event| match event.kind {
            EventKind::Switch { next, .. } => {
                let who = next.map_or("-".into(), letter);
                Some(format!("{}:{}{who}", event.cpu, time(event.time_ns)))
            }
            _ => None,
        });
        switches.collect::<Vec<_>>().join(" ")
    }
}

/// A task's letter, in order of creation.
pub fn letter(task: TaskId) -> String {
    char::from(b'A' + (task.0 % 26) as u8).to_string()
}

/// Milliseconds.
pub fn time(ns: Nanos) -> String {
    match ns % MS {
        0 => (ns / MS).to_string(),
        part => format!("{}.{part:06}", ns / MS).trim_end_matches('0').into(),
    }
}

/// A task that sleeps before it is released at 0.
pub fn task(name: &str, attr: SchedAttr, program: Program) -> TaskSpec {
    TaskSpec { attr, release: Release::Wakeup, ..TaskSpec::new(name, program) }
}

/// A hog that runs for ever.
pub fn hog(name: &str, attr: SchedAttr) -> TaskSpec {
    let program =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000 * MS).end_loop().build();
    task(name, attr, program)
}

/// Sleeps, then runs once.
pub fn later(name: &str, attr: SchedAttr, sleep_ns: Nanos, run_ns: Nanos) -> TaskSpec {
    task(name, attr, ProgramBuilder::new().sleep(sleep_ns).run(run_ns).build())
}

/// The same again and again.
pub fn sleeper(name: &str, attr: SchedAttr, sleep_ns: Nanos, run_ns: Nanos) -> TaskSpec {
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .sleep(sleep_ns)
        .run(run_ns)
        .end_loop()
        .build();
    task(name, attr, program)
}

/// The attributes of `nice`.
pub fn nice(nice: i8) -> SchedAttr {
    SchedAttr { nice, ..SchedAttr::default() }
}

/// The attributes of a policy.
pub fn policy(policy: Policy, rt_priority: u8) -> SchedAttr {
    SchedAttr { policy, rt_priority, ..SchedAttr::default() }
}

/// The attributes of a task bound to `cpus`.
pub fn on(cpus: &[u32]) -> SchedAttr {
    let cpus = cpus.iter().map(|cpu| schedlab_model::CpuId(*cpu)).collect();
    SchedAttr { affinity: Some(cpus), ..SchedAttr::default() }
}
