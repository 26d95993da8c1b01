// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an analysis must know that no event tells: the CPUs of the run, and the weight, the rank
//! and the affinity with which each task starts.
//!
//! Left out: what a task changes of its own attributes while it runs, for the trace does not say
//! it.

use super::findings::LISTED_MAX;
use schedlab_model::{CpuMask, Nanos, Policy};

/// Weight of a task of nice 0 (`NICE_0_LOAD`, Linux kernel/sched/sched.h, without its extra bits).
pub const WEIGHT_NICE_0: u64 = 1024;

/// From how long on a wait is a finding.
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

/// A task's attributes as far as they bear on the analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpecFacts {
    /// Weight among the tasks of its group; 1024 at nice 0.
    pub weight: u64,
    /// Policy.
    pub policy: Policy,
    /// The kernel's priority: -1 DEADLINE, 0 to 98 real-time, from 100 on fair; less comes first.
    pub prio: i32,
    /// CPUs that it may use; `None`: not known.
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
    /// Standing among the classes: a task of a lesser rank runs before this one whatever the
    /// weights. All fair tasks have the same.
    pub fn rank(&self) -> i32 {
        self.prio.min(100)
    }
}

/// A control group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupFacts {
    /// Index of the parent, less than its own; the root group 0 is its own.
    pub parent: u32,
    /// Weight among its siblings in units of a task's weight: 1024 for cpu.weight 100.
    pub weight: u64,
    /// Whether it has a cpu.max.
    pub is_limited: bool,
}

impl GroupFacts {
    /// The root group.
    pub const ROOT: Self = Self { parent: 0, weight: WEIGHT_NICE_0, is_limited: false };
}

/// Which tasks are asked for: by name or process id. Without any, all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted(Vec<(String, Option<u32>)>);

impl Wanted {
    /// Tasks with one of these names; a number is also a process id.
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

    /// Whether all tasks are.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Each name or number that was given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Whether this task is.
    pub fn has(&self, name: &str, pid: Option<u32>) -> bool {
        let is_it = |(wanted, number): &(String, Option<u32>)| {
            wanted == name || (pid.is_some() && *number == pid)
        };
        self.0.is_empty() || self.0.iter().any(is_it)
    }
}

/// Everything of the kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Context {
    /// CPUs of the run; empty: not known.
    pub cpus: CpuMask,
    /// Whether the trace begins with the run, so that these CPUs are idle at first.
    pub is_whole: bool,
    /// By the index of a task's description.
    pub specs: Vec<SpecFacts>,
    /// Of tasks without a description.
    pub other: SpecFacts,
    /// Groups, parents first; at least the root group.
    pub groups: Vec<GroupFacts>,
    /// What is a finding.
    pub thresholds: Thresholds,
    /// Tasks whose findings are gathered; the other measures are made of all.
    pub wanted: Wanted,
    /// Findings of a kind that are listed, of all tasks or of each wanted one.
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
    /// What is known of a task with this description.
    pub fn spec(&self, spec: Option<u32>) -> &SpecFacts {
        spec.and_then(|spec| self.specs.get(spec as usize)).unwrap_or(&self.other)
    }

    /// Whether the group or one above it has a cpu.max.
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
