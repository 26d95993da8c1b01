// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes every measure from the stream of events.
//!
//! Memory grows with the number of tasks, not with time. The idle task does not count as a task.
//! Events that name a task that was never announced, or that contradict earlier events, are counted
//! and are not errors, because a recording may have gaps. Lost events mark every task that was
//! alive then (`is_uncertain`). A loss of 0 events means that the recording began on a running
//! system: tasks that are not forked in it lived before (`is_release_unseen`).

use crate::account::Account;
use crate::facts::{Merged, TaskFacts, TraceFacts};
use crate::life::State;
use crate::{RunMeasures, TaskMeasures, totals};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{Found, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, TaskId, TraceSink};

/// After how many tasks the memory of their accounts is given back, while measures are made.
const GIVEN_BACK: usize = 1 << 16;

/// A sink that computes the measures.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    nr_cpus: u32,
    infos: Vec<TaskInfo>,
    accounts: Vec<Account>,
    /// The task that was last switched to on each CPU.
    running: Vec<Option<TaskId>>,
    /// Whether the recording began on a running system.
    is_attached: bool,
    /// Number of reported losses.
    epoch: u32,
    nr_lost_events: u64,
    nr_inconsistent_events: u64,
    nr_switches: u64,
    last_ns: Nanos,
    /// When the last phase began.
    last_phase_at: Option<Nanos>,
    end_ns: Option<Nanos>,
}

impl Collector {
    /// A collector for a machine (or a part of one) with `nr_cpus` CPUs. They are the capacity in
    /// `utilisation`.
    pub fn new(nr_cpus: u32) -> Self {
        Self { nr_cpus, ..Self::default() }
    }

    /// Sets the number of CPUs, if it becomes known only after the events.
    pub fn set_cpus(&mut self, nr_cpus: u32) {
        self.nr_cpus = nr_cpus;
    }

    /// The recording begins on a running system.
    #[cold]
    fn attach(&mut self) {
        if !std::mem::replace(&mut self.is_attached, true) {
            self.accounts.iter_mut().for_each(|account| account.life.attach());
        }
    }

    /// Notes that `next` runs on `cpu`. If the task that ran there is not `prev`, a switch is
    /// missing, and it is unknown when that task left.
    #[inline]
    fn note_running(
        &mut self,
        (now, cpu): (Nanos, CpuId),
        prev: Option<TaskId>,
        next: Option<TaskId>,
    ) {
        let slot = cpu.index();
        if slot >= self.running.len() {
            self.running.resize((slot + 1).min(NR_CPUS_MAX), None);
        }
        let Some(running) = self.running.get_mut(slot) else { return };
        let was = std::mem::replace(running, next);
        if was != prev
            && let Some(account) = was.and_then(|task| self.accounts.get_mut(task.index()))
        {
            account.vanish(now, cpu);
        }
    }

    /// Returns the account of a task, marked if events were lost since its last event.
    #[inline]
    fn account(&mut self, task: TaskId) -> Option<&mut Account> {
        let epoch = self.epoch;
        let account = self.accounts.get_mut(task.index());
        match account {
            Some(account) => {
                if account.epoch != epoch {
                    account.life.is_uncertain |= account.life.is_released();
                    account.epoch = epoch;
                }
                Some(account)
            }
            None => {
                self.nr_inconsistent_events += 1;
                None
            }
        }
    }

    /// Applies `step` to the account of `task`. It returns whether the event fits.
    #[inline]
    fn apply(&mut self, task: TaskId, step: impl FnOnce(&mut Account) -> bool) {
        let fits = self.account(task).is_none_or(step);
        self.nr_inconsistent_events += u64::from(!fits);
    }

    /// Returns the measures. If `end` was not called, the run ends with its last event.
    pub fn finish(self) -> RunMeasures {
        self.finish_without(|_| false)
    }

    /// Returns the measures of a run in which some tasks are launchers: they only fork other tasks
    /// and wait for them. Totals about jobs leave them out.
    pub fn finish_without(mut self, is_launcher: impl Fn(&TaskMeasures) -> bool) -> RunMeasures {
        let end_ns = self.end_ns.unwrap_or(self.last_ns).max(self.last_ns);
        let (mut tasks, mut merged) = (Vec::with_capacity(self.accounts.len()), Merged::new());
        // From the last task to the first, so that what is done can be given back.
        while let (Some(mut account), Some(info)) = (self.accounts.pop(), self.infos.pop()) {
            let id = self.accounts.len();
            if id.is_multiple_of(GIVEN_BACK) {
                self.accounts.shrink_to_fit();
                self.infos.shrink_to_fit();
            }
            if !account.life.is_released() {
                merged.add(&account);
                continue;
            }
            let has_missed = account.epoch != self.epoch && !account.life.is_dead();
            account.life.is_uncertain |= has_missed;
            account.close(end_ns);
            merged.add(&account);
            let stop_ns = account.life.exit_ns.unwrap_or(end_ns);
            let life_ns = stop_ns.checked_sub(account.life.release_ns);
            account.assert_sums(id, life_ns.filter(|_| self.nr_inconsistent_events == 0));
            let facts = TaskFacts { id: id as u32, info: &info, account: &account };
            let mut task = TaskMeasures::of(&facts);
            task.is_launcher = is_launcher(&task);
            tasks.push(task);
        }
        tasks.reverse();
        let trace = TraceFacts {
            merged,
            nr_switches: self.nr_switches,
            nr_lost_events: self.nr_lost_events,
            nr_inconsistent_events: self.nr_inconsistent_events,
            last_phase_at: self.last_phase_at,
        };
        let totals = totals::of_run(&mut tasks, self.nr_cpus, end_ns, Some(trace));
        RunMeasures { totals, model: None, tasks }
    }
}

impl TraceSink for Collector {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if id.index() != self.infos.len() {
            self.nr_inconsistent_events += 1;
            return;
        }
        debug_assert_eq!(self.infos.len(), self.accounts.len(), "an account belongs to a task");
        self.infos.push(info.clone());
        self.accounts.push(Account::new(self.epoch, self.is_attached));
    }

    fn found(&mut self, found: Found) {
        let now = self.last_ns;
        if let Found::Runs { cpu, task } = found {
            self.note_running((now, cpu), None, task);
        }
        if let Some((task, _, state)) = State::found(found)
            && let Some(account) = self.account(task)
        {
            account.life.found(state, now);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        let (now, cpu) = (event.time_ns, event.cpu);
        if now < self.last_ns {
            self.nr_inconsistent_events += 1;
        }
        self.last_ns = self.last_ns.max(now);
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                self.nr_switches += u64::from(prev.is_some() || next.is_some());
                self.note_running((now, cpu), prev, next);
                if let Some(prev) = prev {
                    self.apply(prev, |account| account.switch_out(now, cpu, out));
                }
                if let Some(next) = next {
                    self.apply(next, |account| account.switch_in(now, cpu));
                }
            }
            EventKind::Wakeup { task, .. } => self.apply(task, |account| account.wakeup(now)),
            EventKind::Fork { task, .. } => self.apply(task, |account| account.fork(now)),
            EventKind::Exit { task } => self.apply(task, |account| {
                account.life.exit(now);
                true
            }),
            EventKind::Migrate { task, .. } => self.apply(task, |account| {
                account.migrations.count();
                true
            }),
            EventKind::Progress { task } => self.apply(task, |account| {
                account.nr_progress += 1;
                true
            }),
            EventKind::Phase { .. } => self.last_phase_at = Some(event.time_ns),
            EventKind::Block { .. } => {}
            EventKind::Lost { count: 0 } => self.attach(),
            EventKind::Lost { count } => {
                self.nr_lost_events += u64::from(count);
                self.epoch += 1;
            }
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = Some(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Script, measure};
    use schedlab_model::{EventKind, SwitchOut};

    /// Task 0 runs when the recording begins, task 1 sleeps, task 2 is forked in it.
    #[test]
    fn what_lived_before_the_recording_has_no_response() {
        let mut s = Script::new(3);
        s.on(0, 0, EventKind::Lost { count: 0 }).wakeup(5, 1).fork(6, 2);
        s.switch(10, Some(0), Some(1), SwitchOut::Preempted);
        s.exit(30, 1).switch(30, Some(1), Some(2), SwitchOut::Dead);
        s.exit(40, 2).switch(40, Some(2), Some(0), SwitchOut::Dead).end(50);
        let m = measure(1, &s);
        let unseen: Vec<bool> = m.tasks.iter().map(|task| task.is_release_unseen).collect();
        assert_eq!(unseen, [true, true, false]);
        let responses: Vec<_> = m.tasks.iter().map(|task| task.response_ns).collect();
        assert_eq!(responses, [None, None, Some(24)]);
        let turnarounds: Vec<_> = m.tasks.iter().map(|task| task.turnaround_ns).collect();
        assert_eq!(turnarounds, [None, None, Some(34)]);
        // What task 0 ran before its first event is not known and not counted.
        let times: Vec<_> = m.tasks.iter().map(|t| (t.cpu_time_ns, t.run_delay_ns)).collect();
        assert_eq!(times, [(10, 30), (20, 5), (10, 24)]);
        // The wake-up is one, though the sleep before it was not seen.
        assert_eq!([m.tasks[1].nr_wakeups, m.tasks[1].wakeup_latency.ns_max], [Some(1), Some(5)]);
        assert_eq!((m.totals.nr_inconsistent_events, m.totals.nr_uncertain_tasks), (0, 0));
        assert_eq!((m.totals.makespan_ns, m.totals.nr_exited), (None, 2));
    }

    /// Without that mark the same events do not fit together.
    #[test]
    fn a_whole_recording_knows_every_release() {
        let mut s = Script::new(2);
        s.switch(10, Some(0), Some(1), SwitchOut::Preempted).end(50);
        let m = measure(1, &s);
        assert_eq!((m.totals.nr_inconsistent_events, m.totals.nr_uncertain_tasks), (2, 2));
        assert!(m.tasks.iter().all(|task| !task.is_release_unseen));
    }

    /// Task 0 came to the CPU, and another leaves it: in between a switch is missing. The time
    /// since is nobody's CPU time.
    #[test]
    fn a_missing_switch_is_no_cpu_time() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(10, None, Some(0), SwitchOut::Idle);
        s.switch(40, Some(1), None, SwitchOut::Sleeping).end(100);
        let m = measure(1, &s);
        let [a, b] = &m.tasks[..] else { panic!("two tasks") };
        assert_eq!((a.cpu_time_ns, a.unaccounted_ns, a.is_uncertain), (0, Some(90), true));
        assert_eq!((b.cpu_time_ns, b.unaccounted_ns, b.is_uncertain), (0, Some(40), true));
        assert_eq!((b.sleep_ns, m.totals.cpu_time_ns), (Some(60), 0));
        assert_eq!(m.totals.nr_inconsistent_events, 1);
    }
}
