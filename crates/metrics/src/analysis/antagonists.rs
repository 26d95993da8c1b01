// SPDX-License-Identifier: MIT OR Apache-2.0
//! Antagonists: the tasks that ran on the CPU where another task waited.
//!
//! Formula: over all waits of a task (as in `wait`), the time that each other task ran on the CPU
//! on whose queue it waited, while it waited there. This time, the time that the CPU was idle, and
//! the unknown time add up to the run delay, exactly, unless events are missing. Unit: ns.
//!
//! Source: SchedViz (google/schedviz, "antagonists"); `perf sched timehist` shows them one by one.
//!
//! The analysis also sums the same time by name: hundreds of tasks of one program are one
//! antagonist. A task counts under the name that it had when it ran.
//!
//! Bounded memory: [`COUNTERS`] counters for each task, and as many by name, with the algorithm
//! Space-Saving (A. Metwally, D. Agrawal, A. El Abbadi, ICDT 2005). With more antagonists than
//! counters, a value is between `ns` and `ns_most`; with fewer the two are equal. If a wait is
//! longer than the last [`STAYS_MAX`] stays on its CPU, its oldest part may be known only as sums
//! and count as `unnamed_ns`.

use super::follow::{Change, Move, Runs};
use super::names::{NameId, Names};
#[cfg(doc)]
use super::stays::STAYS_MAX;
use super::stays::StayLog;
use crate::life::State;
use schedlab_model::{CpuId, Nanos, TaskId};
use serde::{Deserialize, Serialize};

/// Number of counters for each task.
pub const COUNTERS: usize = 16;
/// Maximum number of antagonists in a result.
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
    /// How long it ran during the waits, at least (ns).
    pub ns: u64,
    /// How long it ran at most (ns); more than `ns` only if a task had more than 16 antagonists.
    pub ns_most: u64,
}

/// All tasks of one name that ran while another one waited for the same CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedAntagonist {
    /// Name.
    pub name: String,
    /// Number of the trace's tasks that have this name at the end.
    pub nr_tasks: u64,
    /// Process id, if only one task has the name; null in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How long they ran during the waits, at least (ns).
    pub ns: u64,
    /// How long they ran at most (ns); more than `ns` only if a task had antagonists of more than
    /// 16 names.
    pub ns_most: u64,
}

/// The tasks that ran while a task waited.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Antagonists {
    /// The tasks that ran longest, the longest first; at most 5.
    pub tasks: Vec<Antagonist>,
    /// Running time summed by task name, the longest first; at most 5.
    #[serde(default)]
    pub names: Vec<NamedAntagonist>,
    /// Time that all tasks ran, including unnamed ones (ns).
    pub ran_ns: u64,
    /// Time that the CPU ran no task of the run (ns).
    pub idle_ns: u64,
    /// Time that the trace or the memory of the analysis does not explain (ns).
    pub unnamed_ns: u64,
}

/// The keys with the most time, and the total time. Side by side in arrays, because dense traces
/// look for a key and for the least time some millions of times a second.
#[derive(Clone, Debug)]
struct Table {
    /// [`UNUSED`] where no key is counted.
    keys: [u32; COUNTERS],
    /// Above 0 where a key is counted.
    ns: [Nanos; COUNTERS],
    /// How much of `ns` may belong to other keys.
    error: [Nanos; COUNTERS],
    /// Where the last charge went: often the next one goes there too, as that of a name does.
    last: usize,
}

/// No key.
const UNUSED: u32 = u32::MAX;

impl Table {
    const EMPTY: Self =
        Self { keys: [UNUSED; COUNTERS], ns: [0; COUNTERS], error: [0; COUNTERS], last: 0 };

    /// Where `key` is counted.
    #[inline]
    fn position(&self, key: u32) -> Option<usize> {
        // Without a branch for each counter.
        let mut hits = 0;
        for (at, known) in self.keys.iter().enumerate() {
            hits |= u32::from(*known == key) << at;
        }
        (hits != 0).then(|| hits.trailing_zeros() as usize)
    }

    /// The counter with the least time, the first of several; an unused one if there is one.
    #[inline]
    fn least(&self) -> usize {
        const BITS: u32 = COUNTERS.ilog2();
        // Time and position in one number, and four searches that do not wait for each other.
        let mut least = [u64::MAX; 4];
        for (at, ns) in self.ns.iter().enumerate() {
            let lane = &mut least[at % 4];
            *lane = (*lane).min((*ns).min(u64::MAX >> BITS) << BITS | at as u64);
        }
        let [a, b, c, d] = least;
        (a.min(b).min(c.min(d)) % COUNTERS as u64) as usize
    }
}

/// [`Table`], made with the first key.
#[derive(Clone, Debug, Default)]
struct Counters(Option<Box<Table>>);

impl Counters {
    fn charge(&mut self, key: u32, ns: Nanos) {
        debug_assert!(ns > 0 && key != UNUSED, "key {key} is charged {ns} ns");
        let table = self.0.get_or_insert_with(|| Box::new(Table::EMPTY));
        if table.keys[table.last % COUNTERS] != key {
            table.last = table.position(key).unwrap_or_else(|| {
                let at = table.least();
                (table.keys[at], table.error[at]) = (key, table.ns[at]);
                at
            });
        }
        table.ns[table.last % COUNTERS] += ns;
    }

    /// Each key with its least and greatest time.
    fn all(&self) -> impl Iterator<Item = (u32, Nanos, Nanos)> {
        let counters = self.0.iter().flat_map(|table| {
            let times = table.ns.iter().zip(&table.error);
            table.keys.iter().zip(times).map(|(key, (ns, error))| (*key, ns - error, *ns))
        });
        counters.filter(|(key, ..)| *key != UNUSED)
    }

    /// The keys with the most time, each with its least and greatest time.
    fn most(&self) -> impl Iterator<Item = (u32, Nanos, Nanos)> {
        let mut counters: Vec<_> = self.all().collect();
        counters.sort_by_key(|(key, least_ns, _)| (std::cmp::Reverse(*least_ns), *key));
        counters.into_iter().take(NAMED_MAX)
    }

    fn total_ns(&self) -> Nanos {
        self.all().map(|(_, _, ns)| ns).sum()
    }
}

#[derive(Clone, Debug, Default)]
struct Waiter {
    /// Start of the wait on the present CPU.
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
            // If the trace showed only a task's exit, its end may be earlier than the event.
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

    /// Task 1 waits 0..10 on CPU 0 with task 0, then 10..16 on CPU 1, which is idle until 12 and
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

    /// With 30 antagonists and 16 counters, each value is a lower and an upper bound, and the sum
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

    /// A wait over very many stays is named completely if it began with a remembered stay.
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
        // If a wait begins within a block, its part in that block is not named.
        let of = script(50_001);
        let waited = 2 * (rounds - 50_001);
        assert_eq!(of.ran_ns + of.idle_ns + of.unnamed_ns, waited);
        assert!(of.unnamed_ns > 0 && of.unnamed_ns < waited / 10, "{of:?}");
    }
}
