// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of control groups while the workload runs.

use super::check::check_cpu_max;
use super::{CgroupSpec, CpuMax, Workload};
use crate::ids::ROOT_CGROUP;
use crate::{CgroupId, CpuMask, Nanos, Op};

/// A change that a task makes with [`Op::Change`]: it writes a control file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Change {
    /// cpu.weight of a group.
    Weight {
        /// The group.
        group: CgroupId,
        /// 1 to 10000.
        weight: u32,
    },
    /// cpu.max of a group, and cpu.max.burst if it changes.
    CpuMax {
        /// The group.
        group: CgroupId,
        /// `None`: no limit.
        cpu_max: Option<CpuMax>,
    },
    /// cpuset.cpus of a group: where its tasks and those of the groups below it may run.
    Cpus {
        /// The group.
        group: CgroupId,
        /// `None`: those of its parent.
        cpus: Option<CpuMask>,
    },
}

impl Change {
    /// The group that changes.
    pub const fn group(&self) -> CgroupId {
        match self {
            Self::Weight { group, .. } | Self::CpuMax { group, .. } | Self::Cpus { group, .. } => {
                *group
            }
        }
    }

    /// Makes the change apply to group `to`.
    pub fn set_group(&mut self, to: CgroupId) {
        match self {
            Self::Weight { group, .. } | Self::CpuMax { group, .. } | Self::Cpus { group, .. } => {
                *group = to
            }
        }
    }

    /// Applies the change to the description of its group, which does not have its CPUs.
    pub fn apply(&self, spec: &mut CgroupSpec) {
        match self {
            Self::Weight { weight, .. } => {
                spec.weight = *weight;
                spec.weight_nice = None;
            }
            Self::CpuMax { cpu_max, .. } => spec.cpu_max = *cpu_max,
            Self::Cpus { .. } => {}
        }
    }
}

/// The kernel's default period of cpu.max (ns).
pub const CPU_MAX_PERIOD_NS: Nanos = 100_000_000;

/// One write of cpu.max or cpu.max.burst, and the limit that the group has after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuMaxWrite {
    /// Quota (ns); `None`: no limit.
    pub quota_ns: Option<Nanos>,
    /// Period (ns).
    pub period_ns: Nanos,
    /// Burst (ns).
    pub burst_ns: Nanos,
    /// Whether cpu.max.burst is written; otherwise cpu.max.
    pub is_burst: bool,
}

impl CpuMax {
    /// The writes that turn the limit `old` into `new`, in an order that the kernel accepts: the
    /// burst is never above the quota. A group without a limit has a burst of 0.
    pub fn writes(old: Option<Self>, new: Option<Self>) -> impl Iterator<Item = CpuMaxWrite> {
        let state = |max: Option<Self>, burst_ns, is_burst| CpuMaxWrite {
            quota_ns: max.map(|max| max.quota_ns),
            period_ns: max.map_or(CPU_MAX_PERIOD_NS, |max| max.period_ns),
            burst_ns,
            is_burst,
        };
        let burst = |max: Option<Self>| max.map_or(0, |max| max.burst_ns);
        let (was, is) = (burst(old), burst(new));
        let lowers = (is < was).then(|| state(old, is, true));
        let limits = state(new, was.min(is), false);
        let raises = (is > was).then(|| state(new, is, true));
        lowers.into_iter().chain([limits]).chain(raises)
    }
}

impl Workload {
    /// All changes that tasks make.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        let ops = self.tasks.iter().flat_map(|task| &task.program.ops);
        ops.filter_map(|op| match op {
            Op::Change(change) => Some(&**change),
            _ => None,
        })
    }

    /// Whether `group` has a limit of CPU time at some time.
    pub fn is_ever_limited(&self, group: CgroupId) -> bool {
        let spec = self.cgroups.get(group.index());
        let limits = |change: &Change| match change {
            Change::CpuMax { group: of, cpu_max } => *of == group && cpu_max.is_some(),
            _ => false,
        };
        spec.is_some_and(|spec| spec.cpu_max.is_some()) || self.changes().any(limits)
    }

    pub(super) fn check_change(&self, change: &Change, nr_cpus: u32) -> Result<(), String> {
        let named = |what: String| Err(format!("change of a group: {what}"));
        let group = change.group();
        if group == ROOT_CGROUP {
            return named("the root group has none of these files: change a group below it".into());
        }
        if group.index() >= self.cgroups.len() {
            return named(format!("control group {group} is not described"));
        }
        match change {
            Change::Weight { weight, .. } if !(1..=10_000).contains(weight) => {
                named(format!("weight is {weight}, allowed are 1 to 10000"))
            }
            Change::Weight { .. } => Ok(()),
            Change::CpuMax { cpu_max, .. } => check_cpu_max(*cpu_max).or_else(named),
            Change::Cpus { cpus: Some(cpus), .. }
                if cpus.and(&CpuMask::first(nr_cpus)).is_empty() =>
            {
                named(format!(
                    "its CPUs are {cpus}, but the machine has CPUs 0-{}: name at least one of them",
                    nr_cpus.saturating_sub(1)
                ))
            }
            Change::Cpus { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskSpec;
    use crate::program::ProgramBuilder;

    fn max(quota_ns: Nanos, burst_ns: Nanos) -> Option<CpuMax> {
        Some(CpuMax { quota_ns, period_ns: 10_000_000, burst_ns })
    }

    /// Quota and burst after each write.
    fn writes(old: Option<CpuMax>, new: Option<CpuMax>) -> Vec<(Option<Nanos>, Nanos, bool)> {
        CpuMax::writes(old, new).map(|w| (w.quota_ns, w.burst_ns, w.is_burst)).collect()
    }

    #[test]
    fn the_burst_is_never_above_the_quota_between_two_writes() {
        assert_eq!(writes(None, max(5, 0)), [(Some(5), 0, false)]);
        assert_eq!(writes(None, max(5, 5)), [(Some(5), 0, false), (Some(5), 5, true)]);
        assert_eq!(writes(max(5, 5), max(3, 2)), [(Some(5), 2, true), (Some(3), 2, false)]);
        assert_eq!(writes(max(5, 5), None), [(Some(5), 0, true), (None, 0, false)]);
        assert_eq!(writes(max(3, 2), max(9, 8)), [(Some(9), 2, false), (Some(9), 8, true)]);
    }

    #[test]
    fn impossible_changes_name_what_is_allowed() {
        let error = |change| {
            let program = ProgramBuilder::new().op(Op::Change(Box::new(change))).build();
            let mut workload = Workload::new("w", vec![TaskSpec::new("t", program)]);
            workload.cgroups.push(CgroupSpec::new("/a", ROOT_CGROUP, 100));
            workload.check(1).unwrap_err().to_string()
        };
        let weight = |group, weight| Change::Weight { group: CgroupId(group), weight };
        assert!(error(weight(1, 0)).ends_with("weight is 0, allowed are 1 to 10000"));
        assert!(error(weight(0, 5)).contains("the root group has none"));
        assert!(error(weight(2, 5)).contains("control group 2 is not described"));
        let short = Change::CpuMax { group: CgroupId(1), cpu_max: max(5, 0) };
        assert!(error(short).contains("a quota of 1 ms and more"));
        let far = CpuMask::only(crate::CpuId(7));
        let away = Change::Cpus { group: CgroupId(1), cpus: Some(far) };
        assert!(error(away).contains("CPUs are 7, but the machine has CPUs 0-0"));
    }
}
