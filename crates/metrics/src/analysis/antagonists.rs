// SPDX-License-Identifier: MIT OR Apache-2.0
//! Antagonists: who ran on the CPU where a task waited.
//!
//! Formula: over all waits of a task (as in `wait`), the time that each other task ran on the CPU
//! on whose queue it waited, while it waited there. With the time that this CPU was idle and the
//! time of which nothing is known they add up to the run delay, exactly, unless events are
//! missing. Unit: ns.
//! Source: SchedViz (google/schedviz, "antagonists"); `perf sched timehist` shows them one by one.
//! The same time is also summed by name: hundreds of tasks of one program are one antagonist. A
//! task is counted under the name that it had when it ran.
//! Bounded memory: [`COUNTERS`] counters a task, and as many by name, by the algorithm Space-Saving
//! (A. Metwally, D. Agrawal, A. El Abbadi, ICDT 2005): with more antagonists than that a figure
//! lies between `ns` and `ns_most`; with fewer the two are equal. Of a wait longer
//! than the last [`STAYS_MAX`] stays on its CPU, a beginning of which only sums are remembered may
//! be in `unnamed_ns`.

use super::follow::{Change, Move, Runs};
use super::names::{NameId, Names};
#[cfg(doc)]
use super::stays::STAYS_MAX;
use super::stays::StayLog;
use crate::life::State;
use schedlab_model::{CpuId, Nanos, TaskId};
use serde::{Deserialize, Serialize};

/// Counters of each task.
pub const COUNTERS: usize = 16;
/// Antagonists that a result names.
pub const NAMED_MAX: usize = 5;

/// A task that ran while another one waited for the same CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Antagonist {
    /// Number of the task.
    pub task: u32,
    /// Process id; null in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Name.
    pub name: String,
    /// How long it ran meanwhile, at least.
    pub ns: u64,
    /// How long at most; more than `ns` only where a task had more than 16 antagonists.
    pub ns_most: u64,
}

/// All tasks of one name that ran while another one waited for the same CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedAntagonist {
    /// Name.
    pub name: String,
    /// Tasks of the trace that have it at the end.
    pub nr_tasks: u64,
    /// Process id, where one task only has the name; null in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How long they ran meanwhile, at least.
    pub ns: u64,
    /// How long at most; more than `ns` only where a task had antagonists of more than 16 names.
    pub ns_most: u64,
}

/// Who ran while a task waited.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Antagonists {
    /// The tasks that ran longest, the longest first; at most 5.
    pub tasks: Vec<Antagonist>,
    /// The same by name, the longest first; at most 5.
    #[serde(default)]
    pub names: Vec<NamedAntagonist>,
    /// Time that all tasks ran, those that are not named too.
    pub ran_ns: u64,
    /// Time that the CPU ran no task of the run.
    pub idle_ns: u64,
    /// Time of which the trace or the memory of the analysis does not tell.
    pub unnamed_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    key: u32,
    ns: Nanos,
    /// How much of `ns` may be another key's.
    error: Nanos,
}

/// The keys with the most time, and all time.
#[derive(Clone, Debug, Default)]
struct Counters(Vec<Counter>);

impl Counters {
    fn charge(&mut self, key: u32, ns: Nanos) {
        if let Some(counter) = self.0.iter_mut().find(|counter| counter.key == key) {
            counter.ns += ns;
        } else if self.0.len() < COUNTERS {
            self.0.push(Counter { key, ns, error: 0 });
        } else if let Some(least) = self.0.iter_mut().min_by_key(|counter| counter.ns) {
            *least = Counter { key, ns: least.ns + ns, error: least.ns };
        }
    }

    /// Those with the most time: key, and how long at least and at most.
    fn most(&self) -> impl Iterator<Item = (u32, Nanos, Nanos)> {
        let mut counters = self.0.clone();
        counters
            .sort_by_key(|counter| (std::cmp::Reverse(counter.ns - counter.error), counter.key));
        let one = |counter: Counter| (counter.key, counter.ns - counter.error, counter.ns);
        counters.into_iter().take(NAMED_MAX).map(one)
    }

    fn total_ns(&self) -> Nanos {
        self.0.iter().map(|counter| counter.ns).sum()
    }
}

#[derive(Clone, Debug, Default)]
struct Waiter {
    /// Since when it waits on its present CPU.
    since_ns: Nanos,
    tasks: Counters,
    names: Counters,
    ran_ns: Nanos,
    idle_ns: Nanos,
    unnamed_ns: Nanos,
}

impl Waiter {
    fn charge(&mut self, task: TaskId, name: NameId, ns: Nanos) {
        self.ran_ns += ns;
        self.tasks.charge(task.0, ns);
        self.names.charge(name.0, ns);
    }

    /// Time waited so far, whatever the CPU did meanwhile.
    fn told_ns(&self) -> Nanos {
        self.ran_ns + self.idle_ns + self.unnamed_ns
    }

    fn book(&mut self, log: &StayLog, names: &Names, cpu: CpuId, now: Nanos) {
        let (span, before) = ((self.since_ns, now), self.told_ns());
        let unseen = log.walk(cpu, span, |runs, ns| match runs {
            Runs::Task(task) => self.charge(task, names.id(task), ns),
            Runs::Idle => self.idle_ns += ns,
            Runs::Unknown => self.unnamed_ns += ns,
        });
        self.unnamed_ns += unseen;
        let (waited, told) = (now.saturating_sub(self.since_ns), self.told_ns() - before);
        debug_assert_eq!(told, waited, "a wait on CPU {cpu} from {} to {now}", self.since_ns);
        self.since_ns = now;
    }
}

/// The antagonists of every task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witnesses {
    tasks: Vec<Waiter>,
}

impl Witnesses {
    pub fn task(&mut self) {
        self.tasks.push(Waiter::default());
    }

    #[inline]
    pub fn change(&mut self, log: &StayLog, names: &Names, change: &Change) {
        let Some(task) = self.tasks.get_mut(change.task.index()) else { return };
        if change.past.state == State::Queued && change.past.is_known {
            // The time at which a task that only exited was seen to end may lie back.
            task.book(log, names, change.from, change.now);
        }
        if change.state == State::Queued {
            task.since_ns = change.now;
        }
    }

    pub fn moved(&mut self, log: &StayLog, names: &Names, moved: &Move) {
        if let Some(task) = self.tasks.get_mut(moved.task.index()) {
            task.book(log, names, moved.from, moved.now);
        }
    }

    /// The antagonists of a task.
    pub fn of(&self, id: TaskId, names: &Names) -> Antagonists {
        let Some(waiter) = self.tasks.get(id.index()) else { return Antagonists::default() };
        for counters in [&waiter.tasks, &waiter.names] {
            let counted = counters.total_ns();
            assert_eq!(counted, waiter.ran_ns, "what ran while task {id} waited: {counters:?}");
        }
        let task = |(key, ns, ns_most)| {
            let task = TaskId(key);
            let (pid, name) = (names.pid(task), names.name(task).into());
            Antagonist { task: key, pid, name, ns, ns_most }
        };
        let name = |(key, ns, ns_most)| {
            let (name, nr_tasks, pid) = names.sharers(NameId(key));
            NamedAntagonist { name: name.into(), nr_tasks, pid, ns, ns_most }
        };
        Antagonists {
            tasks: waiter.tasks.most().map(task).collect(),
            names: waiter.names.most().map(name).collect(),
            ran_ns: waiter.ran_ns,
            idle_ns: waiter.idle_ns,
            unnamed_ns: waiter.unnamed_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::testing::analyse;
    use crate::testing::{Script, run};
    use schedlab_model::SwitchOut;

    /// Round robin, quantum 4, bursts 24, 3, 3: task 0 waits for 1 and 2 (3 each); task 1 for 0
    /// (4); task 2 for 0 (4) and 1 (3).
    #[test]
    fn round_robin_textbook_example() {
        let result = analyse(1, &run::round_robin(&[24, 3, 3], 4));
        let seen: Vec<Vec<(u32, u64, u64)>> = result
            .tasks
            .iter()
            .map(|t| t.antagonists.tasks.iter().map(|a| (a.task, a.ns, a.ns_most)).collect())
            .collect();
        assert_eq!(seen, [vec![(1, 3, 3), (2, 3, 3)], vec![(0, 4, 4)], vec![(0, 4, 4), (1, 3, 3)]]);
    }

    /// Task 1 waits 0..10 on CPU 0 beside task 0, then 10..16 on CPU 1, which is idle until 12 and
    /// then runs task 2.
    #[test]
    fn only_the_cpu_where_it_waits_counts() {
        let mut s = Script::new(3);
        s.fork(0, 0).fork(0, 1).fork(0, 2).switch(0, None, Some(0), SwitchOut::Idle);
        s.migrate(0, 2, 0, 1).migrate(10, 1, 0, 1);
        s.switch_on(1, 12, None, Some(2), SwitchOut::Idle);
        s.switch_on(1, 16, Some(2), Some(1), SwitchOut::Sleeping).end(20);
        let task = &analyse(2, &s).tasks[1].antagonists;
        let named: Vec<_> = task.tasks.iter().map(|a| (a.name.as_str(), a.ns)).collect();
        assert_eq!(named, [("t0", 10), ("t2", 4)]);
        assert_eq!((task.ran_ns, task.idle_ns, task.unnamed_ns), (14, 2, 0));
    }

    /// 30 antagonists, 16 counters: what is said is a lower and an upper bound, and the sum of all
    /// is exact. Task 0 waits while each of the others runs its number of ns.
    #[test]
    fn many_antagonists_have_bounds() {
        let mut s = Script::new(31);
        (0..31).for_each(|task| {
            s.fork(0, task);
        });
        let (mut now, mut prev) = (0, None);
        for task in (1..31).rev() {
            let out = if prev.is_none() { SwitchOut::Idle } else { SwitchOut::Sleeping };
            s.switch(now, prev, Some(task), out);
            (now, prev) = (now + u64::from(task), Some(task));
        }
        s.switch(now, prev, Some(0), SwitchOut::Sleeping).end(now);
        let of = &analyse(1, &s).tasks[0].antagonists;
        assert_eq!((of.ran_ns, of.idle_ns, of.unnamed_ns), (465, 0, 0));
        for one in &of.tasks {
            let truth = u64::from(one.task);
            assert!((one.ns..=one.ns_most).contains(&truth), "{one:?}");
        }
        assert!(of.tasks.iter().any(|one| one.task == 30), "{of:?}");
    }

    /// A wait over very many stays: all of it is named, where it began with what is remembered.
    #[test]
    fn a_very_long_wait_is_named() {
        let rounds = 100_000;
        let script = |waits_from: u64| {
            let mut s = Script::new(2);
            s.fork(0, 1);
            for round in 0..rounds {
                if round == waits_from {
                    s.fork(2 * round, 0);
                }
                s.switch(2 * round, None, Some(1), SwitchOut::Idle);
                s.switch(2 * round + 1, Some(1), None, SwitchOut::Sleeping);
                s.wakeup(2 * round + 1, 1);
            }
            s.switch(2 * rounds, None, Some(0), SwitchOut::Idle).end(2 * rounds);
            analyse(1, &s).tasks[0].antagonists.clone()
        };
        let of = script(0);
        assert_eq!((of.ran_ns, of.idle_ns, of.unnamed_ns), (rounds, rounds, 0));
        // Of a wait that begins within a block, the part in that block is not named.
        let of = script(50_001);
        let waited = 2 * (rounds - 50_001);
        assert_eq!(of.ran_ns + of.idle_ns + of.unnamed_ns, waited);
        assert!(of.unnamed_ns > 0 && of.unnamed_ns < waited / 10, "{of:?}");
    }
}
