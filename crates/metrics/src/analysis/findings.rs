// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of the longest findings of each kind, and what a CPU did during a wait: the cause.

use super::antagonists::{Antagonist, NAMED_MAX};
use super::context::{Context, Wanted};
use super::follow::{Follower, Runs};
use super::names::Names;
use super::stays::StayLog;
use schedlab_model::{CpuId, Nanos, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Default maximum number of listed findings of a kind, for all tasks or for each requested task.
pub const LISTED_MAX: usize = 100;

/// Findings of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings<T> {
    /// The length from which it is a finding (ns).
    pub threshold_ns: u64,
    /// Number of findings, of all tasks or of the requested ones.
    pub count: u64,
    /// Sum of their lengths (ns).
    pub ns: u64,
    /// The 100 longest, or those of each requested task, in order of time.
    pub longest: Vec<T>,
}

// Written by hand, because a derived one would require `T: Default`.
impl<T> Default for Findings<T> {
    fn default() -> Self {
        Self { threshold_ns: 0, count: 0, ns: 0, longest: Vec::new() }
    }
}

/// Collects findings: the longest of all tasks, or of each wanted task.
#[derive(Clone, Debug)]
pub(crate) struct Longest<T> {
    threshold_ns: Nanos,
    listed_max: usize,
    wanted: Wanted,
    /// One list for each wanted task, or one list for all tasks.
    groups: BTreeMap<u32, Kept<T>>,
}

#[derive(Clone, Debug)]
struct Kept<T> {
    count: u64,
    ns: u64,
    /// Findings by length, then in order of time.
    longest: BTreeMap<(Nanos, u64), T>,
}

impl<T> Longest<T> {
    pub fn new(threshold_ns: Nanos, context: &Context) -> Self {
        let (listed_max, wanted) = (context.listed_max, context.wanted.clone());
        Self { threshold_ns: threshold_ns.max(1), listed_max, wanted, groups: BTreeMap::new() }
    }

    pub const fn threshold_ns(&self) -> Nanos {
        self.threshold_ns
    }

    /// Counts a finding of `task`; calls `make` only if it is among the longest.
    pub fn add(&mut self, task: TaskId, names: &Names, ns: Nanos, make: impl FnOnce() -> T) {
        if !self.wanted.has(names.name(task), names.pid(task)) {
            return;
        }
        let group = if self.wanted.is_all() { 0 } else { task.0 };
        let kept = Kept { count: 0, ns: 0, longest: BTreeMap::new() };
        let group = self.groups.entry(group).or_insert(kept);
        group.count += 1;
        group.ns += ns;
        if group.longest.len() >= self.listed_max {
            match group.longest.first_key_value() {
                Some(((least, _), _)) if *least < ns => group.longest.pop_first(),
                _ => return,
            };
        }
        group.longest.insert((ns, group.count), make());
    }

    /// All findings in order of time, without those of tasks that no longer have a wanted name.
    pub fn finish(self, names: &Names, from_ns: impl Fn(&T) -> Nanos) -> Findings<T> {
        let mut found = Findings { threshold_ns: self.threshold_ns, ..Findings::default() };
        for (task, kept) in self.groups {
            let task = TaskId(task);
            if !self.wanted.has(names.name(task), names.pid(task)) {
                continue;
            }
            found.count += kept.count;
            found.ns += kept.ns;
            let mut all: Vec<(u64, T)> =
                kept.longest.into_iter().map(|((_, number), one)| (number, one)).collect();
            all.sort_by_key(|(number, _)| *number);
            found.longest.extend(all.into_iter().map(|(_, one)| one));
        }
        if !self.wanted.is_all() {
            found.longest.sort_by_key(from_ns);
        }
        found
    }
}

/// What a CPU did while a task waited there, by the relation to the task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanwhile {
    ran: Vec<(TaskId, Nanos)>,
    /// Time of tasks with a higher class or real-time priority.
    higher_ns: Nanos,
    /// Time of fair tasks while a real-time task waited.
    lower_ns: Nanos,
    /// Time of tasks of its own group.
    own_group_ns: Nanos,
    pub idle_ns: Nanos,
    unknown_ns: Nanos,
    length_ns: Nanos,
}

/// The parts of the analysis that findings use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub context: &'a Context,
    pub names: &'a Names,
    pub follower: &'a Follower,
    pub log: &'a StayLog,
}

impl View<'_> {
    /// What `cpu` did during a wait of `task`.
    pub fn meanwhile(&self, task: TaskId, cpu: CpuId, span: (Nanos, Nanos)) -> Meanwhile {
        let facts = |task: TaskId| {
            let spec = self.follower.tasks.get(task.index()).and_then(|task| task.spec);
            self.context.spec(spec)
        };
        let own = facts(task);
        let mut seen = Meanwhile { length_ns: span.1 - span.0, ..Meanwhile::default() };
        let unseen_ns = self.log.walk(cpu, span, |runs, ns| match runs {
            Runs::Idle => seen.idle_ns += ns,
            Runs::Unknown => seen.unknown_ns += ns,
            Runs::Task(other) => {
                let theirs = facts(other);
                match theirs.rank().cmp(&own.rank()) {
                    std::cmp::Ordering::Less => seen.higher_ns += ns,
                    std::cmp::Ordering::Greater => seen.lower_ns += ns,
                    std::cmp::Ordering::Equal => {}
                }
                if theirs.group == own.group {
                    seen.own_group_ns += ns;
                }
                match seen.ran.iter_mut().find(|(known, _)| *known == other) {
                    Some((_, sum)) => *sum += ns,
                    None => seen.ran.push((other, ns)),
                }
            }
        });
        seen.unknown_ns += unseen_ns;
        seen
    }

    /// Whether a limit kept the task from running. Either its group has a cpu.max limit and none of
    /// the group ran there for most of the time. Or real-time throttling applied: the CPU was idle
    /// or ran fair tasks for most of the time.
    pub fn is_throttled(&self, task: TaskId, seen: &Meanwhile) -> bool {
        let spec = self.follower.tasks.get(task.index()).and_then(|task| task.spec);
        let facts = self.context.spec(spec);
        let by_group = self.context.is_limited(facts.group) && !seen.is_most(seen.own_group_ns);
        let by_class = facts.policy.is_rt() && seen.is_most(seen.idle_ns + seen.lower_ns);
        by_group || by_class
    }
}

impl Meanwhile {
    fn is_most(&self, ns: Nanos) -> bool {
        ns.saturating_mul(2) >= self.length_ns
    }

    /// Why a task waited: see [`super::starvation::Starved::cause`].
    pub fn cause(&self, is_throttled: bool) -> &'static str {
        match () {
            () if is_throttled => "throttled",
            () if self.is_most(self.higher_ns) => "higher-class",
            () if self.is_most(self.idle_ns) => "idle",
            () if self.is_most(self.unknown_ns) => "unknown",
            () => "same-class",
        }
    }

    /// The tasks that ran longest.
    pub fn ran(&self, names: &Names) -> Vec<Antagonist> {
        let mut ran = self.ran.clone();
        ran.sort_by_key(|(task, ns)| (std::cmp::Reverse(*ns), *task));
        let one = |(task, ns): (TaskId, Nanos)| Antagonist {
            task: task.0,
            pid: names.pid(task),
            name: names.name(task).into(),
            ns,
            ns_most: ns,
        };
        ran.into_iter().take(NAMED_MAX).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::trace::TaskInfo;

    fn two_tasks() -> Names {
        let mut names = Names::default();
        for (name, pid) in [("a", 7), ("b", 8)] {
            names.task(&TaskInfo { name: name.into(), pid, ..TaskInfo::default() });
        }
        names
    }

    #[test]
    fn the_longest_are_listed_in_order_of_time_and_all_are_counted() {
        let names = two_tasks();
        let mut longest = Longest::new(1, &Context::default());
        for at in 0..1_000u64 {
            longest.add(TaskId(0), &names, at * 7 % 1_000, || at);
        }
        let found = longest.finish(&names, |at| *at);
        assert_eq!((found.count, found.ns, found.longest.len()), (1_000, 499_500, LISTED_MAX));
        assert!(found.longest.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(found.longest.iter().all(|at| at * 7 % 1_000 >= 900));
    }

    /// Task a has only short waits, b many long ones: a's waits are listed nevertheless.
    #[test]
    fn a_wanted_task_has_a_list_of_its_own() {
        let names = two_tasks();
        for (wanted, count, listed) in [("a", 86, 86), ("8", 1_000, LISTED_MAX), ("c", 0, 0)] {
            let wanted = Wanted::new(vec![wanted.into()]);
            let mut longest = Longest::new(1, &Context { wanted, ..Context::default() });
            for at in 0..1_000u64 {
                longest.add(TaskId(1), &names, 1_000, || at);
                if at < 86 {
                    longest.add(TaskId(0), &names, 5, || at);
                }
            }
            let found = longest.finish(&names, |at| *at);
            assert_eq!((found.count, found.longest.len()), (count, listed));
        }
    }
}
