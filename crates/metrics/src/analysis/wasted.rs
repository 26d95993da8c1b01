// SPDX-License-Identifier: MIT OR Apache-2.0
//! Violations of work conservation: a CPU is idle while a task that may run there waits on another.
//!
//! Formula: the overlap between an idle spell of a CPU and a wait of a task on another CPU's queue,
//! if it reaches the threshold. A migration restarts a wait. Unit: ns of an idle CPU. When a wait
//! ends, the finding names the CPU that was idle longest during it; when an idle spell ends, the
//! task that waited longest.
//!
//! Source: the sanity checker of J.-P. Lozi and others, The Linux Scheduler: a Decade of Wasted
//! Cores, EuroSys 2016, section 4.1. Short violations are normal, because balancing runs at
//! intervals.
//!
//! A task's affinity decides which CPUs it may use. If it is unknown (a trace of another tool), the
//! CPUs on which the task has run count.
//!
//! Left out: when a CPU's idle spell ends, the analysis looks only at the [`CANDIDATES_MAX`] tasks
//! that wait longest. Idle means: no task of the run; on the host a CPU may be busy with other
//! tasks.

use super::findings::{Findings, Longest, View};
use super::follow::{Change, Move, Runs, Turn};
use super::names::Names;
use crate::life::State;
use schedlab_model::{CpuId, Nanos, TaskId};
use serde::{Deserialize, Serialize};

/// Maximum number of waiting tasks examined when an idle spell ends.
pub const CANDIDATES_MAX: usize = 256;

/// A CPU that was idle while a task waited elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wasted {
    /// The idle CPU.
    pub cpu: u32,
    /// Start of the time in which the CPU was idle and the task waited (ns).
    pub from_ns: u64,
    /// End of that time (ns).
    pub to_ns: u64,
    /// Length of that time (ns).
    pub ns: u64,
    /// Number of the waiting task.
    pub task: u32,
    /// Its process id; null in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its name.
    pub name: String,
    /// The CPU on whose queue it waited.
    pub waited_on: u32,
    /// Cause. `throttled`: a cpu.max limit of its group, or real-time throttling, kept it from
    /// running. `late-balance`: it was moved in the end, so balancing was late. `not-balanced`: it
    /// ran where it waited, or still waits.
    pub cause: String,
}

/// An entry in the list of waiting tasks.
#[derive(Clone, Copy, Debug, Default)]
struct Waiter {
    is_waiting: bool,
    cpu: CpuId,
    since_ns: Nanos,
    before: Option<TaskId>,
    after: Option<TaskId>,
}

/// The waiting tasks, the longest wait first.
#[derive(Clone, Debug, Default)]
struct Queue {
    tasks: Vec<Waiter>,
    first: Option<TaskId>,
    last: Option<TaskId>,
}

impl Queue {
    fn push(&mut self, id: TaskId, now: Nanos, cpu: CpuId) {
        debug_assert!(!self.tasks[id.index()].is_waiting, "task {id} waits twice");
        let before = self.last.replace(id);
        let waiter = Waiter { is_waiting: true, cpu, since_ns: now, before, after: None };
        self.tasks[id.index()] = waiter;
        match before {
            Some(before) => self.tasks[before.index()].after = Some(id),
            None => self.first = Some(id),
        }
    }

    fn remove(&mut self, id: TaskId) {
        let Waiter { before, after, is_waiting, .. } = std::mem::take(&mut self.tasks[id.index()]);
        debug_assert!(is_waiting, "task {id} does not wait");
        match before {
            Some(before) => self.tasks[before.index()].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => self.tasks[after.index()].before = before,
            None => self.last = before,
        }
    }
}

/// Finds violations of work conservation.
#[derive(Clone, Debug)]
pub(crate) struct Violations {
    found: Longest<Wasted>,
    /// Start of each CPU's idle spell.
    idle_since: Vec<Option<Nanos>>,
    nr_idle: usize,
    queue: Queue,
    /// Task and time of the last finding, so that it appears only once if wait and idle spell end
    /// together.
    last: Option<(TaskId, Nanos)>,
}

impl Violations {
    pub fn new(view: View<'_>) -> Self {
        let idle = |(_, runs, since_ns)| (runs == Runs::Idle).then_some(since_ns);
        let idle_since: Vec<Option<Nanos>> = view.follower.cpus().map(idle).collect();
        Self {
            found: Longest::new(view.context.thresholds.wasted_ns, view.context),
            nr_idle: idle_since.iter().flatten().count(),
            idle_since,
            queue: Queue::default(),
            last: None,
        }
    }

    /// Handles a recording that begins while tasks are running: no CPU is known to be idle.
    pub fn attach(&mut self) {
        self.idle_since.fill(None);
        self.nr_idle = 0;
    }

    pub fn task(&mut self) {
        self.queue.tasks.push(Waiter::default());
    }

    /// Handles a CPU that becomes idle or busy. Call it before the task changes of the same event.
    #[inline]
    pub fn turn(&mut self, view: View<'_>, turn: &Turn) {
        let at = turn.cpu.index();
        if at >= self.idle_since.len() {
            self.idle_since.resize(at + 1, None);
        }
        let next = (turn.runs == Runs::Idle).then_some(turn.now);
        let was = std::mem::replace(&mut self.idle_since[at], next);
        self.nr_idle = self.nr_idle + usize::from(next.is_some()) - usize::from(was.is_some());
        debug_assert_eq!(self.nr_idle, self.idle_since.iter().flatten().count(), "idle CPUs");
        if let Some(since_ns) = was.filter(|_| turn.was == Runs::Idle)
            && turn.now - since_ns >= self.found.threshold_ns()
        {
            self.idle_ends(view, turn, since_ns);
        }
    }

    fn idle_ends(&mut self, view: View<'_>, turn: &Turn, since_ns: Nanos) {
        let (now, threshold_ns) = (turn.now, self.found.threshold_ns());
        let mut next = self.queue.first;
        for _ in 0..CANDIDATES_MAX {
            let Some(task) = next else { return };
            let waiter = self.queue.tasks[task.index()];
            let from_ns = waiter.since_ns.max(since_ns);
            if now - from_ns < threshold_ns {
                return;
            }
            if waiter.cpu != turn.cpu && may_use(view, task, turn.cpu) {
                let is_moved = turn.runs == Runs::Task(task);
                return self.add(view, (task, waiter.cpu), turn.cpu, (from_ns, now), is_moved);
            }
            next = waiter.after;
        }
    }

    #[inline]
    pub fn change(&mut self, view: View<'_>, change: &Change) {
        let task = change.task;
        if task.index() >= self.queue.tasks.len() {
            return;
        }
        if self.queue.tasks[task.index()].is_waiting {
            if change.past.is_known {
                self.wait_ends(view, (task, change.from), change.now, change.cpu);
            }
            self.queue.remove(task);
        }
        if change.state == State::Queued {
            self.queue.push(task, change.now, change.cpu);
        }
    }

    pub fn moved(&mut self, view: View<'_>, moved: &Move) {
        if self.queue.tasks.get(moved.task.index()).is_some_and(|task| task.is_waiting) {
            self.wait_ends(view, (moved.task, moved.from), moved.now, moved.to);
            self.queue.remove(moved.task);
            self.queue.push(moved.task, moved.now, moved.to);
        }
    }

    /// Handles the end of a wait on `waited_on`; the task goes to `to`.
    #[inline]
    fn wait_ends(
        &mut self,
        view: View<'_>,
        (task, waited_on): (TaskId, CpuId),
        now: Nanos,
        to: CpuId,
    ) {
        let since_ns = self.queue.tasks[task.index()].since_ns;
        let is_long = now.saturating_sub(since_ns) >= self.found.threshold_ns();
        if !is_long || self.nr_idle == 0 || self.last == Some((task, now)) {
            return;
        }
        let idle = (0..).map(CpuId).zip(&self.idle_since);
        let idle = idle.filter_map(|(cpu, idle)| Some((cpu, (*idle)?.max(since_ns))));
        let longest = idle
            .filter(|(cpu, _)| *cpu != waited_on && may_use(view, task, *cpu))
            .min_by_key(|(cpu, from_ns)| (*from_ns, *cpu != to));
        if let Some((cpu, from_ns)) = longest
            && now.saturating_sub(from_ns) >= self.found.threshold_ns()
        {
            self.add(view, (task, waited_on), cpu, (from_ns, now), to != waited_on);
        }
    }

    fn add(
        &mut self,
        view: View<'_>,
        (task, waited_on): (TaskId, CpuId),
        cpu: CpuId,
        (from_ns, to_ns): (Nanos, Nanos),
        is_moved: bool,
    ) {
        self.last = Some((task, to_ns));
        self.found.add(task, view.names, to_ns - from_ns, || {
            let seen = view.meanwhile(task, waited_on, (from_ns, to_ns));
            let cause = match is_moved {
                _ if view.is_throttled(task, &seen) => "throttled",
                true => "late-balance",
                false => "not-balanced",
            };
            Wasted {
                cpu: cpu.0,
                from_ns,
                to_ns,
                ns: to_ns - from_ns,
                task: task.0,
                pid: view.names.pid(task),
                name: view.names.name(task).into(),
                waited_on: waited_on.0,
                cause: cause.into(),
            }
        });
    }

    pub fn finish(self, names: &Names) -> Findings<Wasted> {
        self.found.finish(names, |one| one.from_ns)
    }
}

/// Whether a task may run on a CPU, as far as known.
fn may_use(view: View<'_>, task: TaskId, cpu: CpuId) -> bool {
    let Some(task) = view.follower.tasks.get(task.index()) else { return false };
    view.context
        .spec(task.spec)
        .cpus
        .map_or_else(|| task.seen_on.contains(cpu), |cpus| cpus.contains(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{analyse_with, context};
    use crate::analysis::{Context, GroupFacts, SpecFacts, Thresholds};
    use crate::testing::Script;
    use schedlab_model::{CpuMask, EventKind, SwitchOut};

    const LIMITS: Thresholds = Thresholds { starved_ns: 1_000_000, wasted_ns: 20 };

    /// A finding: CPU, start, end, task, CPU where it waited, cause.
    type Told = (u32, u64, u64, u32, u32, String);

    fn told(context: Context, script: &Script) -> Vec<Told> {
        let found = analyse_with(Context { thresholds: LIMITS, ..context }, script).wasted;
        let all = found.longest.into_iter();
        all.map(|w| (w.cpu, w.from_ns, w.to_ns, w.task, w.waited_on, w.cause)).collect()
    }

    fn specs(all: Vec<SpecFacts>) -> Context {
        Context { specs: all, ..context(2) }
    }

    /// Tasks 0 and 1 on CPU 0; CPU 1 is idle all the time. Task 1 waits 0..50, task 0 50..100.
    fn two_on_one() -> Script {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.switch(50, Some(0), Some(1), SwitchOut::Preempted).end(100);
        s
    }

    #[test]
    fn an_idle_cpu_beside_a_queue_is_told() {
        let found = told(specs(vec![SpecFacts::default(); 2]), &two_on_one());
        assert_eq!(found, [], "nothing is known of where the tasks may run");
        let all = SpecFacts { cpus: Some(CpuMask::first(2)), ..SpecFacts::default() };
        let found = told(specs(vec![all; 2]), &two_on_one());
        let want: [Told; 2] =
            [(1, 0, 50, 1, 0, "not-balanced".into()), (1, 50, 100, 0, 0, "not-balanced".into())];
        assert_eq!(found, want);
        // Affinity causes no violation; a limit is a cause.
        let pinned = SpecFacts { cpus: Some(CpuMask::only(CpuId(0))), ..SpecFacts::default() };
        assert_eq!(told(specs(vec![all, pinned]), &two_on_one()).len(), 1);
        let limited = GroupFacts { parent: 0, weight: 1024, is_limited: true };
        let groups = vec![GroupFacts::ROOT, limited];
        let inside = SpecFacts { group: 1, ..all };
        let found = told(Context { groups, ..specs(vec![all, inside]) }, &two_on_one());
        assert_eq!((found[0].5.as_str(), found[1].5.as_str()), ("throttled", "not-balanced"));
    }

    /// CPU 1 is idle from 10 on. Task 1, which has waited since 5, moves there at 40. Then CPU 1 is
    /// idle only from 50 to 60, which is too short.
    #[test]
    fn balancing_that_comes_late() {
        let mut s = Script::new(3);
        s.fork(0, 0).on(0, 1, EventKind::Fork { task: TaskId(2), parent: None });
        s.switch(0, None, Some(0), SwitchOut::Idle);
        s.switch_on(1, 0, None, Some(2), SwitchOut::Idle).fork(5, 1);
        s.switch_on(1, 10, Some(2), None, SwitchOut::Sleeping).migrate(40, 1, 0, 1);
        s.switch_on(1, 40, None, Some(1), SwitchOut::Idle);
        s.switch_on(1, 50, Some(1), None, SwitchOut::Sleeping).wakeup(45, 2);
        s.switch_on(1, 60, None, Some(2), SwitchOut::Idle).end(70);
        let all = SpecFacts { cpus: Some(CpuMask::first(2)), ..SpecFacts::default() };
        let found = told(specs(vec![all; 3]), &s);
        assert_eq!(found, [(1, 10, 40, 1, 0, "late-balance".to_string())]);
    }

    /// Some recorders leave out migrate events. The test also has a task of unknown affinity that
    /// has run on both CPUs.
    #[test]
    fn what_was_seen_to_run_somewhere_may_run_there() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch_on(1, 0, None, Some(1), SwitchOut::Idle);
        s.switch_on(1, 5, Some(1), None, SwitchOut::Sleeping);
        s.switch(0, None, Some(0), SwitchOut::Idle).wakeup(10, 1);
        s.switch_on(1, 60, None, Some(1), SwitchOut::Idle).end(70);
        let found = told(context(2), &s);
        assert_eq!(found, [(1, 10, 60, 1, 0, "late-balance".to_string())]);
    }

    /// A task that waits on the queue of the idle CPU itself, until it runs there.
    #[test]
    fn its_own_cpu_wastes_nothing() {
        let mut s = Script::new(1);
        s.fork(0, 0).switch(60, None, Some(0), SwitchOut::Idle).end(70);
        let all = SpecFacts { cpus: Some(CpuMask::first(1)), ..SpecFacts::default() };
        assert_eq!(told(Context { specs: vec![all], ..context(1) }, &s), []);
    }

    /// The idle spell ends while the wait continues.
    #[test]
    fn another_task_takes_the_idle_cpu() {
        let mut s = Script::new(3);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.on(30, 1, EventKind::Fork { task: TaskId(2), parent: None });
        s.switch_on(1, 30, None, Some(2), SwitchOut::Idle);
        s.switch(80, Some(0), Some(1), SwitchOut::Sleeping).end(90);
        let all = SpecFacts { cpus: Some(CpuMask::first(2)), ..SpecFacts::default() };
        let found = told(specs(vec![all; 3]), &s);
        assert_eq!(found, [(1, 0, 30, 1, 0, "not-balanced".to_string())]);
    }
}
