// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about the workload that the analysis of its trace needs: weights, ranks, affinities and
//! groups.

use schedlab_metrics::analysis::{Context, GroupFacts, SpecFacts, Thresholds};
use schedlab_model::weights::{group_weight, task_weight};
use schedlab_model::{CgroupId, CpuMask, SchedAttr, Workload};

/// The facts about a task that starts with `attr` in a run on `cpus`.
pub fn facts(attr: &SchedAttr, cpus: &CpuMask) -> SpecFacts {
    SpecFacts {
        weight: task_weight(attr),
        policy: attr.policy,
        prio: attr.kernel_prio(),
        cpus: Some(attr.affinity.map_or(*cpus, |own| own.and(cpus))),
        group: attr.cgroup.0,
    }
}

/// The context of a run of `workload` on `cpus` whose trace is complete.
pub fn context(workload: &Workload, cpus: &CpuMask, thresholds: Thresholds) -> Context {
    let groups = (0u32..).zip(&workload.cgroups).map(|(id, group)| GroupFacts {
        parent: group.parent.0,
        weight: group_weight(group),
        is_limited: workload.is_ever_limited(CgroupId(id)),
    });
    Context {
        cpus: *cpus,
        is_whole: true,
        specs: workload.tasks.iter().map(|task| facts(&task.attr, cpus)).collect(),
        other: facts(&SchedAttr::default(), cpus),
        groups: groups.collect(),
        thresholds,
        ..Context::default()
    }
}
