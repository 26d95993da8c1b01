// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts for an analysis that no event contains: the CPUs of the run, and each task's initial
//! weight, rank and affinity.
//!
//! Left out: changes that a task makes to its own attributes while it runs, because the trace does
//! not contain them.

use super::findings::LISTED_MAX;
use schedlab_model::{CpuMask, Nanos, Policy};

/// Weight of a task of nice 0 (`NICE_0_LOAD`, Linux kernel/sched/sched.h, without its extra bits).
pub const WEIGHT_NICE_0: u64 = 1024;

/// The length from which a wait or an idle spell is a finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Thresholds {
    /// A runnable task that waits this long (ns) is starved.
    pub starved_ns: Nanos,
    /// A CPU that is idle this long (ns) while a task that may run there waits on another one
    /// wastes capacity.
    pub wasted_ns: Nanos,
}

impl Default for Thresholds {
    /// Starved: 100 ms, the delay that a user begins to notice (J. Nielsen, Usability Engineering,
    /// 1993, chapter 5). Wasted: 4 ms, a tick at HZ=250, at which an idle CPU looks for work at the
    /// latest.
    fn default() -> Self {
        Self { starved_ns: 100_000_000, wasted_ns: 4_000_000 }
    }
}

/// A task's attributes, as far as the analysis needs them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpecFacts {
    /// Weight among the tasks of its group; 1024 at nice 0.
    pub weight: u64,
    /// Policy.
    pub policy: Policy,
    /// The kernel's priority: -1 DEADLINE, 0 to 98 real-time, 100 and above fair; a lower value
    /// runs first.
    pub prio: i32,
    /// CPUs that it may use; `None`: unknown.
    pub cpus: Option<CpuMask>,
    /// Index of its group.
    pub group: u32,
}

impl Default for SpecFacts {
    fn default() -> Self {
        Self { weight: WEIGHT_NICE_0, policy: Policy::Normal, prio: 120, cpus: None, group: 0 }
    }
}

impl SpecFacts {
    /// Rank among the classes: a task of a lower rank runs first, whatever the weights. All fair
    /// tasks have the same rank.
    pub fn rank(&self) -> i32 {
        self.prio.min(100)
    }
}

/// A control group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupFacts {
    /// Index of the parent, lower than its own; the root group 0 is its own parent.
    pub parent: u32,
    /// Weight among its siblings in units of a task's weight: 1024 for cpu.weight 100.
    pub weight: u64,
    /// Whether it has a cpu.max limit.
    pub is_limited: bool,
}

impl GroupFacts {
    /// The root group.
    pub const ROOT: Self = Self { parent: 0, weight: WEIGHT_NICE_0, is_limited: false };
}

/// The requested tasks, by name or process id; empty: all tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted(Vec<(String, Option<u32>)>);

impl Wanted {
    /// Requests tasks with these names; a number is also a process id.
    pub fn new(names: Vec<String>) -> Self {
        let number = |name: &String| name.parse().ok();
        Self(
            names
                .into_iter()
                .map(|name| (number(&name), name))
                .map(|(n, name)| (name, n))
                .collect(),
        )
    }

    /// Whether all tasks are requested.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Each given name or number.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Whether this task is requested.
    pub fn has(&self, name: &str, pid: Option<u32>) -> bool {
        let is_it = |(wanted, number): &(String, Option<u32>)| {
            wanted == name || (pid.is_some() && *number == pid)
        };
        self.0.is_empty() || self.0.iter().any(is_it)
    }
}

/// The complete context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Context {
    /// CPUs of the run; empty: unknown.
    pub cpus: CpuMask,
    /// Whether the trace begins with the run, so that these CPUs are idle at first.
    pub is_whole: bool,
    /// Attributes by the index of a task's description.
    pub specs: Vec<SpecFacts>,
    /// Attributes of tasks without a description.
    pub other: SpecFacts,
    /// Groups, parents first; at least the root group.
    pub groups: Vec<GroupFacts>,
    /// Thresholds for findings.
    pub thresholds: Thresholds,
    /// Tasks whose findings are listed; the other measures cover all tasks.
    pub wanted: Wanted,
    /// Maximum number of listed findings of a kind, for all tasks or for each wanted task.
    pub listed_max: usize,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            cpus: CpuMask::empty(),
            is_whole: false,
            specs: Vec::new(),
            other: SpecFacts::default(),
            groups: vec![GroupFacts::ROOT],
            thresholds: Thresholds::default(),
            wanted: Wanted::default(),
            listed_max: LISTED_MAX,
        }
    }
}

impl Context {
    /// The attributes of a task with this description.
    pub fn spec(&self, spec: Option<u32>) -> &SpecFacts {
        spec.and_then(|spec| self.specs.get(spec as usize)).unwrap_or(&self.other)
    }

    /// Whether the group or one above it has a cpu.max limit.
    pub fn is_limited(&self, group: u32) -> bool {
        let mut group = group as usize;
        while let Some(facts) = self.groups.get(group) {
            if facts.is_limited || facts.parent as usize >= group {
                return facts.is_limited;
            }
            group = facts.parent as usize;
        }
        false
    }
}
