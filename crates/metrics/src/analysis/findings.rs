// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of what was found, the longest of each kind, and what a CPU did during a wait: the cause.

use super::antagonists::{Antagonist, NAMED_MAX};
use super::context::Context;
use super::follow::{Follower, Runs};
use super::stays::StayLog;
use schedlab_model::{CpuId, Nanos, TaskId};
use serde::{Deserialize, Serialize};

/// Findings of one kind that are listed.
pub const LISTED_MAX: usize = 100;

/// Findings of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings<T> {
    /// From how long on it was one.
    pub threshold_ns: u64,
    /// How many there were.
    pub count: u64,
    /// Their lengths together.
    pub ns: u64,
    /// The 100 longest, in order of time.
    pub longest: Vec<T>,
}

// By hand: a derived one would ask it of `T`.
impl<T> Default for Findings<T> {
    fn default() -> Self {
        Self { threshold_ns: 0, count: 0, ns: 0, longest: Vec::new() }
    }
}

/// Gathers findings.
#[derive(Clone, Debug)]
pub(crate) struct Longest<T> {
    threshold_ns: Nanos,
    count: u64,
    ns: u64,
    kept: Vec<(Nanos, T)>,
}

impl<T> Longest<T> {
    pub const fn new(threshold_ns: Nanos) -> Self {
        Self { threshold_ns, count: 0, ns: 0, kept: Vec::new() }
    }

    pub const fn threshold_ns(&self) -> Nanos {
        self.threshold_ns
    }

    /// Counts a finding; `make` is asked for it only if it is among the longest.
    pub fn add(&mut self, ns: Nanos, make: impl FnOnce() -> T) {
        self.count += 1;
        self.ns += ns;
        if self.kept.len() < LISTED_MAX {
            self.kept.push((ns, make()));
            return;
        }
        let least = self.kept.iter().enumerate().min_by_key(|(_, one)| one.0);
        if let Some(at) = least.filter(|(_, one)| one.0 < ns).map(|(at, _)| at) {
            self.kept.remove(at);
            self.kept.push((ns, make()));
        }
    }

    /// All of them; they were added in order of time.
    pub fn finish(self) -> Findings<T> {
        Findings {
            threshold_ns: self.threshold_ns,
            count: self.count,
            ns: self.ns,
            longest: self.kept.into_iter().map(|(_, one)| one).collect(),
        }
    }
}

/// What a CPU did while a task waited there, by what it means for the task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanwhile {
    ran: Vec<(TaskId, Nanos)>,
    /// Tasks of a higher class or real-time priority.
    higher_ns: Nanos,
    /// Fair tasks, while a real-time one waited.
    lower_ns: Nanos,
    /// Tasks of its own group.
    own_group_ns: Nanos,
    pub idle_ns: Nanos,
    unknown_ns: Nanos,
    length_ns: Nanos,
}

/// What is asked of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub context: &'a Context,
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

    /// Whether a limit kept the task from running: its group's cpu.max, while none of its group
    /// ran there for most of the time; or real-time throttling, while the CPU was idle or ran fair
    /// tasks for most of it.
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

    /// Who ran longest, by number; the names are set at the end.
    pub fn ran(&self) -> Vec<Antagonist> {
        let mut ran = self.ran.clone();
        ran.sort_by_key(|(task, ns)| (std::cmp::Reverse(*ns), *task));
        let one = |(task, ns): (TaskId, Nanos)| Antagonist {
            task: task.0,
            name: String::new(),
            ns,
            ns_most: ns,
        };
        ran.into_iter().take(NAMED_MAX).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_listed_in_order_of_time_and_all_are_counted() {
        let mut longest = Longest::new(1);
        for at in 0..1_000u64 {
            longest.add(at * 7 % 1_000, || at);
        }
        let found = longest.finish();
        assert_eq!((found.count, found.ns, found.longest.len()), (1_000, 499_500, LISTED_MAX));
        assert!(found.longest.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(found.longest.iter().all(|at| at * 7 % 1_000 >= 900));
    }
}
