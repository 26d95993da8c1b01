// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of the conformance suite. Each has a name, and says scheduler, task and time.

use super::workloads::endless_hogs;
use super::{Case, MS, Run, S};
use schedlab_metrics::{Collector, RunMeasures};
use schedlab_model::time::tick_nsec;
use schedlab_model::{
    Amount, Costs, CpuId, CpuMask, Event, EventKind, LoopCount, MutexProtocol, Nanos, ObjectId,
    ObjectKind, Op, Preempt, Program, TaskId, TraceSink,
};
use schedlab_sched::Scheduler;
use schedlab_trace::TraceCheck;

/// A check that failed.
#[derive(Debug)]
pub struct Broken {
    /// Name of the check.
    pub check: &'static str,
    /// What was found.
    pub text: String,
}

type Checked = Result<(), Broken>;

fn broken(check: &'static str, case: &Case<'_>, text: impl std::fmt::Display) -> Checked {
    Err(Broken { check, text: format!("{check}: {}: {text}", case.describe()) })
}

/// Runs the case and holds the run to every rule. The run must end by itself.
pub fn check_case(case: &Case<'_>) -> Result<Run, Broken> {
    let run = simulated(case)?;
    check_trace(case, &run)?;
    check_sums(case, &run)?;
    check_ends(case, &run)?;
    check_replay(case, &run)?;
    check_determinism(case, &run)?;
    Ok(run)
}

/// The run succeeds.
pub fn simulated(case: &Case<'_>) -> Result<Run, Broken> {
    case.run().map_err(|error| Broken {
        check: "simulates",
        text: format!("simulates: {}: {error}", case.describe()),
    })
}

fn feed<S: TraceSink>(run: &Run, sink: &mut S) {
    for (id, info) in run.trace.tasks.iter().enumerate() {
        sink.task(TaskId(id as u32), info);
    }
    for (id, info) in run.trace.objects.iter().enumerate() {
        sink.object(ObjectId(id as u32), info);
    }
    for event in &run.trace.events {
        sink.event(event);
    }
    sink.end(run.trace.end_ns);
}

/// The custody rules hold, with a migrate event for every move.
fn check_trace(case: &Case<'_>, run: &Run) -> Checked {
    let mut check = TraceCheck::with_moves();
    feed(run, &mut check);
    check.finish().or_else(|violation| broken("trace", case, violation))
}

/// The measures of a run.
pub fn measures(case: &Case<'_>, run: &Run) -> RunMeasures {
    let mut collector = Collector::new(case.machine.nr_cpus());
    feed(run, &mut collector);
    collector.finish()
}

/// Time is neither lost nor made: per task, and over all CPUs.
fn check_sums(case: &Case<'_>, run: &Run) -> Checked {
    let found = measures(case, run);
    let end_ns = run.outcome.end_ns;
    for task in &found.tasks {
        let life = task.exit_ns.unwrap_or(end_ns) - task.release_ns;
        let off_queue = task.sleep_ns.zip(task.blocked_io_ns).map(|(sleep, io)| sleep + io);
        let parts = off_queue.map(|ns| task.cpu_time_ns + task.run_delay_ns + ns);
        if Some(life) != parts || task.unaccounted_ns != Some(0) || task.is_uncertain {
            let text = format!("task {:?} lived {life} ns, its parts sum to {parts:?}", task.name);
            return broken("sums", case, text);
        }
    }
    if found.totals.nr_inconsistent_events != 0 {
        return broken("sums", case, format!("{} odd events", found.totals.nr_inconsistent_events));
    }
    let busy: Nanos = found.tasks.iter().map(|task| task.cpu_time_ns).sum();
    let mut idle = 0;
    for cpu in (0..case.machine.nr_cpus()).map(CpuId) {
        idle += idle_time(run, cpu);
    }
    let span = end_ns * u64::from(case.machine.nr_cpus());
    if busy + idle != span {
        let text = format!("CPUs: {busy} ns busy + {idle} ns idle is not {span} ns");
        return broken("sums", case, text);
    }
    let (switches, events) = (found.totals.nr_switches, run.trace.events.len() as u64);
    if run.outcome.nr_switches != switches || run.outcome.nr_events != events {
        return broken("sums", case, format!("counters {:?}, trace {switches}", run.outcome));
    }
    Ok(())
}

fn idle_time(run: &Run, cpu: CpuId) -> Nanos {
    let (mut idle, mut since) = (0, Some(0));
    for event in run.trace.events.iter().filter(|event| event.cpu == cpu) {
        if let EventKind::Switch { next, .. } = event.kind {
            idle += since.map_or(0, |since| event.time_ns - since);
            since = next.is_none().then_some(event.time_ns);
        }
    }
    idle + since.map_or(0, |since| run.outcome.end_ns - since)
}

/// CPU time that a program asks for; `None` if it draws it or the device adds to it.
fn asked_for(program: &Program) -> Option<Nanos> {
    let mut sums = vec![0];
    for op in &program.ops {
        match op {
            Op::Run(Amount::Constant(ns)) => *sums.last_mut()? += ns,
            Op::Run(_)
            | Op::RunWall(_)
            | Op::Io { .. }
            | Op::Send { .. }
            | Op::Receive { .. }
            | Op::Mem { .. }
            | Op::MemRun { .. } => return None,
            Op::LoopBegin { .. } => sums.push(0),
            Op::LoopEnd { begin } => {
                let Op::LoopBegin { count: LoopCount::Times(times), .. } =
                    program.ops[*begin as usize]
                else {
                    return None;
                };
                let body = sums.pop()?;
                *sums.last_mut()? += body * times;
            }
            _ => {}
        }
    }
    sums.pop()
}

/// Whether the CPU time that a program asks for is all that its task uses.
fn takes_nothing(case: &Case<'_>) -> bool {
    let machine = &case.machine;
    let is_cached = case.workload.tasks.iter().all(|task| task.working_set_bytes == 0);
    let is_free = machine.costs == Costs::ZERO && is_cached;
    is_free && machine.smt_speed.is_empty() && machine.interrupts.is_empty()
}

/// Whether tasks may use CPU time to wait for a mutex: on several CPUs, with inheritance.
fn may_spin(case: &Case<'_>) -> bool {
    let inherits = ObjectKind::Mutex { protocol: MutexProtocol::Inherit };
    case.machine.nr_cpus() > 1 && case.workload.objects.iter().any(|one| one.kind == inherits)
}

/// Every task exits; without costs it has used exactly the CPU time of its program.
fn check_ends(case: &Case<'_>, run: &Run) -> Checked {
    let found = measures(case, run);
    for task in &found.tasks {
        if task.exit_ns.is_none() {
            return broken("ends", case, format!("task {:?} never exits", task.name));
        }
        let spec = &case.workload.tasks[task.spec.expect("simulated tasks have one") as usize];
        let asked = asked_for(&spec.program).filter(|_| takes_nothing(case));
        let is_wrong = |asked: Nanos| match may_spin(case) {
            true => task.cpu_time_ns < asked,
            false => task.cpu_time_ns != asked,
        };
        if asked.is_some_and(is_wrong) {
            let text =
                format!("task {:?} used {} ns, asked {asked:?}", task.name, task.cpu_time_ns);
            return broken("ends", case, text);
        }
    }
    if run.outcome.nr_tasks != run.outcome.nr_exited {
        return broken("ends", case, format!("{:?}", run.outcome));
    }
    Ok(())
}

/// What the replay knows of a task.
#[derive(Clone, Copy)]
struct Seen {
    spec: usize,
    allowed: CpuMask,
    /// Since when it waits for a CPU.
    waits_since: Option<Nanos>,
}

/// The state that the events describe, and the longest time that a CPU idled beside a waiting task.
struct Replay<'a> {
    case: &'a Case<'a>,
    tasks: Vec<Seen>,
    idle_since: Vec<Option<Nanos>>,
    longest: Option<(Nanos, CpuId, TaskId, Nanos)>,
}

impl Replay<'_> {
    /// Time moves to `now`: notes CPUs that idle beside a task that may use them.
    fn pass(&mut self, now: Nanos) {
        for (cpu, since) in self.idle_since.iter().enumerate() {
            let Some(idle_since) = *since else { continue };
            let cpu = CpuId(cpu as u32);
            for (id, task) in self.tasks.iter().enumerate() {
                let Some(waits) = task.waits_since.filter(|_| task.allowed.contains(cpu)) else {
                    continue;
                };
                let length = now - waits.max(idle_since);
                if length > self.longest.map_or(0, |longest| longest.0) {
                    self.longest = Some((length, cpu, TaskId(id as u32), now));
                }
            }
        }
    }

    fn apply(&mut self, event: &Event) -> Result<(), String> {
        let (now, cpu) = (event.time_ns, event.cpu);
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                if let Some(prev) = prev {
                    let waits = !out.is_voluntary();
                    self.tasks[prev.index()].waits_since = waits.then_some(now);
                }
                if let Some(next) = next {
                    let task = &mut self.tasks[next.index()];
                    task.waits_since = None;
                    if !task.allowed.contains(cpu) {
                        return Err(format!(
                            "task {next} runs on CPU {cpu} at {now} ns, allowed are {}",
                            task.allowed
                        ));
                    }
                }
                let idle = &mut self.idle_since[cpu.index()];
                *idle = next.is_none().then_some(now);
            }
            EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. } => {
                self.tasks[task.index()].waits_since = Some(now);
            }
            EventKind::Phase { task, phase } => {
                let seen = &mut self.tasks[task.index()];
                let ops = &self.case.workload.tasks[seen.spec].program.ops;
                let at = ops.iter().position(|op| *op == Op::Phase(phase));
                if let Some(Op::SetAttr(attr)) = at.and_then(|at| ops.get(at + 1)) {
                    seen.allowed = allowed(self.case, attr.affinity);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn allowed(case: &Case<'_>, affinity: Option<CpuMask>) -> CpuMask {
    let cpus = CpuMask::first(case.machine.nr_cpus());
    affinity.unwrap_or(cpus).and(&cpus)
}

/// Whether it is one of the Linux models, which have a queue for each CPU.
pub fn is_linux(scheduler: &Scheduler) -> bool {
    scheduler.name.starts_with("linux-")
}

/// Longest stay in the kernel of the workloads here with the default costs, slowed by a sibling to
/// 0.3: a fork.
const CALL_MAX: Nanos = 250_000;

/// The longest time that a CPU may idle beside a task it may run. With one queue for all CPUs there
/// is none. The Linux models, like the kernel, place a task when it wakes and pull when a CPU goes
/// idle; a CPU that idles already gets a task queued elsewhere only by periodic balancing on its
/// behalf. Its interval grows to at most 2 ms for each CPU of the domain (sd_init, kernel/sched/
/// topology.c), is looked at once a tick, and one failed attempt is allowed.
pub fn idle_bound(case: &Case<'_>) -> Option<Nanos> {
    if !case.scheduler.claims.work_conserving {
        return None;
    }
    let linux = is_linux(case.scheduler);
    if linux && !case.judges_balance {
        return None;
    }
    let interval = 2 * MS * u64::from(case.machine.nr_cpus());
    let balanced = 2 * interval + tick_nsec(case.machine.hz);
    // A task that is to preempt a system call waits for its end; a CPU that is to take the task
    // preempted idles as long.
    let in_kernel = if case.machine.preempt == Preempt::Full { 0 } else { CALL_MAX };
    Some(if linux { balanced } else { 0 } + in_kernel)
}

/// How long a CPU that is to choose may wait for a lock. Locks are fair, so at most for what every
/// other CPU does before its next own choice: it wakes each task once at one instant, and chooses.
/// Each holds the lock for the hold and for all entries that there can be.
fn lock_bound(case: &Case<'_>, nr_tasks: u64) -> Nanos {
    let costs = &case.machine.costs;
    if !costs.has_locks() || case.machine.nr_cpus() == 1 {
        return 0;
    }
    let operations = nr_tasks + u64::from(case.machine.nr_cpus());
    operations * (costs.lock_hold_ns + costs.lock_transfer_ns + nr_tasks * costs.pick_entry_ns)
}

/// Affinity is kept, and the claim to be work-conserving.
fn check_replay(case: &Case<'_>, run: &Run) -> Checked {
    let seen = |info: &schedlab_model::trace::TaskInfo| {
        let spec = info.spec.expect("simulated tasks have one") as usize;
        let allowed = allowed(case, case.workload.tasks[spec].attr.affinity);
        Seen { spec, allowed, waits_since: None }
    };
    let mut replay = Replay {
        case,
        tasks: run.trace.tasks.iter().map(seen).collect(),
        idle_since: vec![Some(0); case.machine.nr_cpus() as usize],
        longest: None,
    };
    let mut now = 0;
    for event in &run.trace.events {
        if event.time_ns != now {
            replay.pass(event.time_ns);
            now = event.time_ns;
        }
        if let Err(text) = replay.apply(event) {
            return broken("affinity", case, text);
        }
    }
    let (Some(bound), Some((length, cpu, task, now))) = (idle_bound(case), replay.longest) else {
        return Ok(());
    };
    let bound = bound + lock_bound(case, run.trace.tasks.len() as u64);
    if length > bound {
        let name = &run.trace.tasks[task.index()].name;
        let text = format!(
            "CPU {cpu} idles for {length} ns up to {now} ns beside waiting task {name:?}; \
             at most {bound} ns are allowed"
        );
        return broken("work-conserving", case, text);
    }
    Ok(())
}

/// The same input gives the same events.
pub fn check_determinism(case: &Case<'_>, first: &Run) -> Checked {
    let second = simulated(case)?;
    let (a, b) = (&first.trace.events, &second.trace.events);
    let pairs = a.iter().zip(b).position(|(a, b)| a != b);
    let differs = pairs.or((a.len() != b.len()).then_some(a.len().min(b.len())));
    match differs {
        None if first.trace.tasks == second.trace.tasks => Ok(()),
        None => broken("determinism", case, "the tasks differ"),
        Some(at) => {
            let text = format!("event {at} differs: {:?}, then {:?}", a.get(at), b.get(at));
            broken("determinism", case, text)
        }
    }
}

/// Equal hogs on one CPU, each due 10 s of CPU time, get it within 2 %.
pub fn check_fair(scheduler: &Scheduler, nr_hogs: u32) -> Checked {
    let workload = endless_hogs(nr_hogs);
    let due = 10 * S;
    let until_ns = Some(due * u64::from(nr_hogs));
    let case = Case { until_ns, ..Case::new(&workload, scheduler, 1) };
    let run = simulated(&case)?;
    for task in &measures(&case, &run).tasks {
        if task.cpu_time_ns.abs_diff(due) * 50 > due {
            let text = format!(
                "task {:?} got {} ns of {due} ns by {} ns, more than 2 % off",
                task.name, task.cpu_time_ns, run.outcome.end_ns
            );
            return broken("fair", &case, text);
        }
    }
    Ok(())
}

/// Longest wait of a task of equal importance under a scheduler that claims that nobody starves.
pub const WAIT_MAX: Nanos = 2 * S;

/// No task of equal importance waits longer than [`WAIT_MAX`].
pub fn check_starvation_free(scheduler: &Scheduler, nr_cpus: u32) -> Checked {
    let workload = endless_hogs(8);
    let case = Case {
        until_ns: Some(10 * S),
        watchdog_ns: Some(WAIT_MAX),
        ..Case::new(&workload, scheduler, nr_cpus)
    };
    let run = simulated(&case)?;
    for task in &measures(&case, &run).tasks {
        if task.wait.ns_max > Some(WAIT_MAX) || task.cpu_time_ns == 0 {
            let text = format!("task {:?} waited {:?} ns", task.name, task.wait.ns_max);
            return broken("starvation-free", &case, text);
        }
    }
    Ok(())
}
