// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies from outside: one with the rules of round robin gives the very events of `rr`, by its
//! own callbacks and by the decisions of an agent; errors end the run with their text.

use schedlab_engine::{SimConfig, SimError, Simulation, simulate};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::MemorySink;
use schedlab_model::{CpuId, Event, Machine, Nanos, Op, TaskId, TaskSpec, Workload};
use schedlab_sched::textbook::user::{Agent, TaskView, UserPolicy, Why, scheduler};
use schedlab_sched::{Options, Scheduler, registry};

const MS: Nanos = 1_000_000;

/// Tasks that compute, sleep, yield and fork no others, on any number of CPUs.
fn workload() -> Workload {
    let hog = ProgramBuilder::new().run(30 * MS).build();
    let sleeper = ProgramBuilder::new().run(3 * MS).sleep(4 * MS).run(9 * MS).build();
    let yielder = ProgramBuilder::new().run(2 * MS).op(Op::Yield).run(6 * MS).build();
    let mut tasks = Vec::new();
    for (number, program) in [hog, sleeper, yielder].into_iter().cycle().take(7).enumerate() {
        tasks.push(TaskSpec::new(format!("t{number}"), program));
    }
    Workload::new("mixed", tasks)
}

fn run(scheduler: &Scheduler, cpus: u32) -> Result<Vec<Event>, SimError> {
    let (machine, mut sink) = (Machine::flat(cpus), MemorySink::default());
    let mut options = Options::defaults(&scheduler.tunables);
    if scheduler.name == "rr" {
        options.set(&scheduler.tunables, "quantum", 5 * MS).unwrap();
    }
    let config = config(&machine, scheduler, &options);
    simulate(&workload(), &config, &mut sink, None).map(|_| sink.events)
}

fn config<'a>(
    machine: &'a Machine,
    scheduler: &'a Scheduler,
    options: &'a Options,
) -> SimConfig<'a> {
    SimConfig {
        machine,
        scheduler,
        options,
        seed: 1,
        until_ns: None,
        watchdog_ns: Some(1_000 * MS),
    }
}

/// Round robin, which fails at its `fails_at`-th pick.
#[derive(Default)]
struct RoundRobin {
    nr_picks: u32,
    fails_at: Option<u32>,
    picks_last: bool,
    picks_any: Option<TaskId>,
    ticks: bool,
    seen: Vec<(u32, &'static str)>,
}

impl UserPolicy for RoundRobin {
    fn enqueue(&mut self, _now: Nanos, task: &TaskView, why: Why) -> Result<bool, String> {
        self.seen.push((task.id, why.name()));
        assert_eq!(task.name, format!("t{}", task.id));
        Ok(false)
    }

    fn pick(&mut self, _now: Nanos, _cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
        self.nr_picks += 1;
        if self.fails_at == Some(self.nr_picks) {
            return Err("the table of weights has no entry for nice 3".into());
        }
        let own = if self.picks_last { waiting.last() } else { waiting.first() };
        Ok(self.picks_any.or(own.copied()).unwrap())
    }

    fn has_ticks(&self) -> bool {
        self.ticks
    }

    fn tick(&mut self, _now: Nanos, _task: &TaskView, ran: Nanos) -> Result<bool, String> {
        Ok(ran >= 4 * MS)
    }

    fn quantum(&mut self, _now: Nanos, _task: &TaskView) -> Result<Option<Nanos>, String> {
        Ok(Some(5 * MS).filter(|_| !self.ticks))
    }
}

fn made(change: impl Fn(&mut RoundRobin) + Send + Sync + 'static) -> Scheduler {
    scheduler("mine", move || {
        let mut policy = RoundRobin::default();
        change(&mut policy);
        Ok(policy)
    })
}

#[test]
fn round_robin_from_outside_gives_the_events_of_rr() {
    for cpus in [1, 2, 3] {
        let rr = run(registry::find("rr").unwrap(), cpus).unwrap();
        assert_eq!(run(&made(|_| ()), cpus).unwrap(), rr, "{cpus} CPUs");
        let last = run(&made(|policy| policy.picks_last = true), cpus);
        assert_ne!(last.unwrap(), rr, "the pick counts");
    }
}

#[test]
fn a_tick_can_end_a_turn() {
    let events = run(&made(|policy| policy.ticks = true), 1).unwrap();
    let switches: Vec<Nanos> = events
        .iter()
        .filter(|event| matches!(event.kind, schedlab_model::EventKind::Switch { .. }))
        .map(|event| event.time_ns)
        .collect();
    assert_eq!(&switches[..2], &[0, 4 * MS], "the first tick at 250 Hz");
}

#[test]
fn an_error_ends_the_run_with_its_text() {
    let failed = run(&made(|policy| policy.fails_at = Some(4)), 1).unwrap_err();
    assert!(matches!(failed, SimError::Failed { .. }), "{failed}");
    let text = failed.to_string();
    assert!(text.contains("\"mine\"") && text.contains("no entry for nice 3"), "{text}");
}

#[test]
fn a_task_that_does_not_wait_cannot_be_picked() {
    let failed = run(&made(|policy| policy.picks_any = Some(TaskId(99))), 1).unwrap_err();
    let text = failed.to_string();
    assert!(text.contains("task 99, which does not wait for CPU 0: waiting are"), "{text}");
}

#[test]
fn a_task_that_is_never_picked_is_found() {
    // Always the same two tasks: the others wait beyond the watchdog's limit.
    struct Unfair;
    impl UserPolicy for Unfair {
        fn enqueue(&mut self, _: Nanos, _: &TaskView, _: Why) -> Result<bool, String> {
            Ok(false)
        }
        fn pick(&mut self, _: Nanos, _: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
            Ok(*waiting.iter().min().unwrap())
        }
        fn quantum(&mut self, _: Nanos, _: &TaskView) -> Result<Option<Nanos>, String> {
            Ok(Some(5 * MS))
        }
    }
    let endless = ProgramBuilder::new().run(9_000 * MS).build();
    let tasks = (0..2).map(|n| TaskSpec::new(format!("t{n}"), endless.clone())).collect();
    let scheduler = scheduler("unfair", || Ok(Unfair));
    let (machine, options) = (Machine::flat(1), Options::defaults(&[]));
    let config = config(&machine, &scheduler, &options);
    let mut sink = MemorySink::default();
    let starved = simulate(&Workload::new("w", tasks), &config, &mut sink, None).unwrap_err();
    assert!(starved.to_string().contains("starved"), "{starved}");
}

/// The events of a run in which `choose` makes every decision, and how many there were.
fn decided(cpus: u32, choose: impl Fn(&[TaskId]) -> Option<TaskId>) -> (Vec<Event>, usize) {
    let scheduler = scheduler("agent", || Ok(Agent { quantum: Some(5 * MS) }));
    let (machine, options) = (Machine::flat(cpus), Options::defaults(&[]));
    let config = config(&machine, &scheduler, &options);
    let workload = workload();
    let mut sink = MemorySink::default();
    let mut run = Simulation::with_agent(&workload, &config, &mut sink).unwrap();
    let mut nr_decisions = 0;
    while run.goes_on() {
        if let Some(needs) = run.needs_decision() {
            nr_decisions += 1;
            assert!(needs.candidates.len() > 1 && needs.time_ns == run.now());
            let candidates = needs.candidates.clone();
            assert!(run.decide(TaskId(99)).unwrap_err().contains("no candidate for CPU"));
            if let Some(task) = choose(&candidates) {
                run.decide(task).unwrap();
            }
        }
        run.advance();
    }
    run.finish().unwrap();
    (sink.events, nr_decisions)
}

#[test]
fn an_agent_that_takes_the_first_is_round_robin() {
    for cpus in [1, 2, 3] {
        let rr = run(registry::find("rr").unwrap(), cpus).unwrap();
        let (first, nr_decisions) = decided(cpus, |candidates| candidates.first().copied());
        assert!(nr_decisions > 10, "{nr_decisions} decisions");
        assert_eq!(first, rr, "{cpus} CPUs");
        assert_eq!(decided(cpus, |_| None).0, rr, "without an answer the first runs");
        assert_ne!(decided(cpus, |candidates| candidates.last().copied()).0, rr);
    }
}

#[test]
fn a_cancelled_run_has_no_outcome() {
    let scheduler = registry::find("rr").unwrap();
    let (machine, options) = (Machine::flat(1), Options::defaults(&scheduler.tunables));
    let config = config(&machine, scheduler, &options);
    let workload = workload();
    let mut run = Simulation::new(&workload, &config, MemorySink::default(), None).unwrap();
    assert!(run.advance() && run.needs_decision().is_none());
    assert!(run.decide(TaskId(0)).unwrap_err().contains("waits for no decision"));
    run.cancel();
    assert!(!run.goes_on() && !run.advance());
    assert!(matches!(run.finish(), Err(SimError::Cancelled { .. })));
}
