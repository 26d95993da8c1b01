// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes every measure from the event stream, as it passes.
//!
//! Memory grows with the number of tasks and not with time. Idle is no task. Events that name a
//! task which was never announced, or that contradict what came before, are counted and never
//! fatal: a recording may have holes. Lost events mark every task that was alive then
//! (`is_uncertain`).

use crate::account::Account;
use crate::samples::Samples;
use crate::{RunMeasures, TaskMeasures, totals};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, EventKind, Nanos, TaskId, TraceSink};

/// The measuring sink.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    nr_cpus: u32,
    infos: Vec<TaskInfo>,
    accounts: Vec<Account>,
    /// How often a loss was reported.
    epoch: u32,
    nr_lost_events: u64,
    nr_inconsistent_events: u64,
    nr_switches: u64,
    last_ns: Nanos,
    end_ns: Option<Nanos>,
}

impl Collector {
    /// A collector for a machine (or a part of one) with `nr_cpus` CPUs: the capacity of
    /// `utilisation`.
    pub fn new(nr_cpus: u32) -> Self {
        Self { nr_cpus, ..Self::default() }
    }

    /// The account of a task, marked if events were lost since it was last seen.
    #[inline]
    fn account(&mut self, task: TaskId) -> Option<&mut Account> {
        let epoch = self.epoch;
        let account = self.accounts.get_mut(task.index());
        match account {
            Some(account) => {
                if account.epoch != epoch {
                    account.is_uncertain |= account.is_released();
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

    /// Applies `step` to the account of `task`; it tells whether the event fitted.
    #[inline]
    fn apply(&mut self, task: TaskId, step: impl FnOnce(&mut Account) -> bool) {
        let fits = self.account(task).is_none_or(step);
        self.nr_inconsistent_events += u64::from(!fits);
    }

    /// The measures. Without a call of `end`, the run ends with its last event.
    pub fn finish(mut self) -> RunMeasures {
        let end_ns = self.end_ns.unwrap_or(self.last_ns).max(self.last_ns);
        let mut tasks = Vec::with_capacity(self.accounts.len());
        let (mut latencies, mut waits, mut slices) =
            (Samples::merged(), Samples::merged(), Samples::merged());
        for (id, (account, info)) in self.accounts.iter_mut().zip(self.infos).enumerate() {
            if !account.is_released() {
                continue;
            }
            account.is_uncertain |= account.epoch != self.epoch && !account.is_dead();
            account.close(end_ns);
            latencies.merge(account.wakeup_latency.samples());
            waits.merge(account.run_delay.waits());
            slices.merge(account.slices.samples());
            tasks.push(TaskMeasures {
                id: id as u32,
                name: info.name,
                spec: info.spec,
                pid: info.pid,
                ..account.measures()
            });
        }
        let mut totals = totals::summarise(&mut tasks, self.nr_cpus, end_ns);
        totals.nr_switches = self.nr_switches;
        totals.nr_lost_events = self.nr_lost_events;
        totals.nr_inconsistent_events = self.nr_inconsistent_events;
        totals.wakeup_latency = latencies.distribution();
        totals.wait = waits.distribution();
        totals.slice = slices.distribution();
        RunMeasures { totals, tasks }
    }
}

impl TraceSink for Collector {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if id.index() != self.infos.len() {
            self.nr_inconsistent_events += 1;
            return;
        }
        self.infos.push(info.clone());
        self.accounts.push(Account::new(self.epoch));
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
                account.exit(now);
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
            EventKind::Phase { .. } | EventKind::Block { .. } => {}
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
