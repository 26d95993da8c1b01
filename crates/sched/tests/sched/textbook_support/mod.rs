// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs, experiments and their results, for the tests of the textbook schedulers. One unit is 1 ms.
//! Tasks are numbered from 1 in Gantt charts, as in the books, and from 0 elsewhere.

// Each test file uses a part of this.
#![allow(dead_code)]

mod trace;

use schedlab_engine::{SimConfig, simulate};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::MemorySink;
use schedlab_model::{
    Amount, Costs, CpuId, CpuMask, LoopCount, Machine, Nanos, Op, Policy, Program, SchedAttr,
    TaskSpec, Workload, time::NSEC_PER_MSEC,
};
use schedlab_sched::{Options, TunableKind, registry};

/// One unit of time.
pub const MS: Nanos = NSEC_PER_MSEC;

/// Schedulers of this family.
pub const TEXTBOOK: [&str; 15] = [
    "fcfs",
    "sjf",
    "sjf-predicted",
    "srtf",
    "srtf-predicted",
    "priority",
    "priority-preemptive",
    "priority-rr",
    "rr",
    "multilevel",
    "multilevel-timeshare",
    "mlfq",
    "lottery",
    "stride",
    "vtime",
];

/// A task.
#[derive(Clone)]
pub struct Job {
    /// Release, in units.
    pub arrival: u64,
    pub program: Program,
    pub attr: SchedAttr,
    /// Attributes that the program gives the task. An `Op::Phase` with the number of the change is
    /// before each change, so that the trace shows when it happens.
    changes: Vec<SchedAttr>,
    /// Whether another job forks it instead of a release.
    forked: bool,
}

/// A task with one burst.
pub fn job(arrival: u64, burst: u64) -> Job {
    Job::at(arrival).run(burst)
}

/// Tasks with one burst each, all released at time 0.
pub fn jobs(bursts: &[u64]) -> Vec<Job> {
    bursts.iter().map(|burst| job(0, *burst)).collect()
}

impl Job {
    /// A task without a program, released at `arrival`.
    pub fn at(arrival: u64) -> Self {
        Self {
            arrival,
            program: Program::default(),
            attr: SchedAttr::default(),
            changes: Vec::new(),
            forked: false,
        }
    }

    fn op(mut self, op: Op) -> Self {
        self.program.ops.push(op);
        self
    }

    pub fn run(self, units: u64) -> Self {
        self.op(Op::Run(Amount::Constant(units * MS)))
    }

    pub fn sleep(self, units: u64) -> Self {
        self.op(Op::Sleep(Amount::Constant(units * MS)))
    }

    pub fn yields(self) -> Self {
        self.op(Op::Yield)
    }

    /// Alternates between running and sleeping without end.
    pub fn forever(mut self, run: u64, sleep: u64) -> Self {
        let mut builder = ProgramBuilder::new();
        builder.begin_loop(LoopCount::Forever).run(run * MS);
        if sleep > 0 {
            builder.sleep(sleep * MS);
        }
        self.program = builder.end_loop().build();
        self
    }

    /// Alternates between running and yielding without end.
    pub fn yields_forever(mut self, run: u64) -> Self {
        let mut builder = ProgramBuilder::new();
        builder.begin_loop(LoopCount::Forever).run(run * MS).op(Op::Yield).end_loop();
        self.program = builder.build();
        self
    }

    /// Marks the job as forked by another job instead of released.
    pub fn forked(mut self) -> Self {
        self.forked = true;
        self
    }

    /// Forks the job with this index in the list.
    pub fn forks(self, job: u32) -> Self {
        self.op(Op::Fork { task: job })
    }

    /// Waits for all tasks that it forked.
    pub fn joins(self) -> Self {
        self.op(Op::JoinAll)
    }

    /// CPU time of a program without loops, in units.
    pub fn work(&self) -> u64 {
        let runs = self.program.ops.iter().map(|op| match op {
            Op::Run(Amount::Constant(ns)) => ns / MS,
            Op::LoopBegin { .. } => panic!("a loop has no sum"),
            _ => 0,
        });
        runs.sum()
    }

    pub fn nice(mut self, nice: i8) -> Self {
        self.attr.nice = nice;
        self
    }

    pub fn policy(mut self, policy: Policy) -> Self {
        self.attr.policy = policy;
        self
    }

    /// Binds the job to one CPU.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.attr.affinity = Some(CpuMask::only(CpuId(cpu)));
        self
    }

    fn set(mut self, change: impl FnOnce(&mut SchedAttr)) -> Self {
        let mut attr = self.changes.last().copied().unwrap_or(self.attr);
        change(&mut attr);
        let number = self.changes.len() as u32;
        self.changes.push(attr);
        self.op(Op::Phase(number)).op(Op::SetAttr(Box::new(attr)))
    }

    pub fn set_nice(self, nice: i8) -> Self {
        self.set(|attr| attr.nice = nice)
    }

    pub fn set_policy(self, policy: Policy) -> Self {
        self.set(|attr| attr.policy = policy)
    }

    pub fn set_affinity(self, mask: CpuMask) -> Self {
        self.set(|attr| attr.affinity = Some(mask))
    }

    fn spec(&self, number: usize) -> TaskSpec {
        TaskSpec {
            attr: self.attr,
            instances: u32::from(!self.forked),
            release_ns: Amount::Constant(self.arrival * MS),
            phases: (0..self.changes.len()).map(|change| format!("change {change}")).collect(),
            ..TaskSpec::new(format!("P{}", number + 1), self.program.clone())
        }
    }
}

/// A run to be made.
pub struct Experiment {
    scheduler: &'static schedlab_sched::Scheduler,
    options: Options,
    nr_cpus: u32,
    until_ns: Option<Nanos>,
    pub costs: Costs,
    pub hz: u32,
}

impl Experiment {
    /// The scheduler called `name` with its defaults on one CPU.
    pub fn new(name: &str) -> Self {
        let scheduler = registry::find(name).unwrap_or_else(|| panic!("no scheduler {name}"));
        let options = Options::defaults(&scheduler.tunables);
        let costs = Costs::ZERO;
        Self { scheduler, options, nr_cpus: 1, until_ns: None, costs, hz: 250 }
    }

    /// Sets a tunable.
    pub fn set(mut self, name: &str, value: u64) -> Self {
        self.options.set(&self.scheduler.tunables, name, value).unwrap();
        self
    }

    /// Draws small values for every tunable that is a time, so that quanta, boosts, raises and
    /// parts of cycles coincide.
    pub fn short_quanta(&mut self, stream: &mut schedlab_model::random::Stream) {
        for tunable in &self.scheduler.tunables {
            let value = match tunable.kind {
                TunableKind::Time { .. } => stream.between(1, 12) * MS,
                TunableKind::Count { min, max } => stream.between(min, max),
                TunableKind::Choice(ref words) => stream.below(words.len() as u64),
            };
            self.options.set(&self.scheduler.tunables, &tunable.name, value).unwrap();
        }
    }

    /// Whether the best levels must run at every instant.
    fn keeps_levels(&self) -> bool {
        let preemptive = ["priority-preemptive", "priority-rr"].contains(&&*self.scheduler.name);
        preemptive && self.options.get("aging") == 0
    }

    pub fn cpus(mut self, nr_cpus: u32) -> Self {
        self.nr_cpus = nr_cpus;
        self
    }

    /// Ends the run at this time, in units.
    pub fn until(mut self, units: u64) -> Self {
        self.until_ns = Some(units * MS);
        self
    }

    /// Runs `jobs` in the simulator and checks its trace.
    pub fn run(&self, jobs: &[Job]) -> Run {
        let specs = jobs.iter().enumerate().map(|(number, job)| job.spec(number)).collect();
        let workload = Workload::new("textbook", specs);
        let flat = Machine::flat(self.nr_cpus);
        let machine = Machine { hz: self.hz, costs: self.costs, ..flat };
        let config = SimConfig {
            machine: &machine,
            scheduler: self.scheduler,
            options: &self.options,
            seed: 1,
            until_ns: self.until_ns,
            watchdog_ns: None,
        };
        let mut sink = MemorySink::default();
        if let Err(error) = simulate(&workload, &config, &mut sink, None) {
            panic!("{error}");
        }
        trace::read(jobs, self.nr_cpus, self.keeps_levels(), &sink)
    }
}

/// One stay of a task on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub task: u32,
    pub cpu: u32,
    pub start_ns: Nanos,
    pub end_ns: Nanos,
}

/// The result of an experiment. Tasks have the index of their job in the list.
pub struct Run {
    /// Stays in order of start, then CPU.
    pub pieces: Vec<Piece>,
    /// When each task was created.
    release_ns: Vec<Option<Nanos>>,
    exit_ns: Vec<Option<Nanos>>,
}

impl Run {
    /// Task (from 1), start and end of each stay, in units.
    pub fn gantt(&self) -> Vec<(u32, u64, u64)> {
        self.pieces
            .iter()
            .map(|piece| {
                assert_eq!((piece.start_ns % MS, piece.end_ns % MS), (0, 0), "{piece:?}");
                (piece.task + 1, piece.start_ns / MS, piece.end_ns / MS)
            })
            .collect()
    }

    /// When each task exited, in whole units.
    pub fn exits(&self) -> Vec<u64> {
        self.exit_ns.iter().map(|exit| exit.expect("every task has exited") / MS).collect()
    }

    fn release_ns(&self, task: u32) -> Nanos {
        self.release_ns[task as usize].expect("the task exists")
    }

    /// Release to exit.
    pub fn turnarounds(&self) -> Vec<u64> {
        let exits = self.exits().into_iter();
        (0..).zip(exits).map(|(task, exit)| exit - self.release_ns(task) / MS).collect()
    }

    /// Turnaround minus CPU time (for tasks that do not sleep).
    pub fn waits(&self) -> Vec<u64> {
        let turnarounds = self.turnarounds();
        (0..).zip(turnarounds).map(|(task, time)| time - self.cpu_time(task)).collect()
    }

    pub fn wait_sum(&self) -> u64 {
        self.waits().iter().sum()
    }

    /// CPU time of a task in whole units.
    pub fn cpu_time(&self, task: u32) -> u64 {
        self.pieces_of(task).iter().map(|piece| piece.end_ns - piece.start_ns).sum::<Nanos>() / MS
    }

    pub fn pieces_of(&self, task: u32) -> Vec<Piece> {
        self.pieces.iter().filter(|piece| piece.task == task).copied().collect()
    }

    /// Time from release to first run, and from each end of a stay to the next one (for tasks that
    /// do not sleep).
    pub fn gaps(&self, task: u32) -> Vec<u64> {
        let mut ready = self.release_ns(task);
        self.pieces_of(task)
            .iter()
            .map(|piece| (piece.start_ns - std::mem::replace(&mut ready, piece.end_ns)) / MS)
            .collect()
    }
}
