// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attributes of a task.

use super::event::constant;
use super::json::{Json, Member, member, plain, text};
use crate::policy::{has_nice, has_slice};
use schedlab_model::{CpuMask, Policy, SchedAttr, Workload};

/// The attributes as members. `util_*`, `cpus` and `taskgroup` are left out if they equal those of
/// `base`. Policy and priority are written unless they are the defaults.
pub(super) fn attributes(workload: &Workload, attr: &SchedAttr, base: &SchedAttr) -> Vec<Member> {
    let mut members = Vec::new();
    if attr.policy != Policy::Normal {
        members.push(member("policy", text(format!("SCHED_{}", attr.policy.name()))));
    }
    if attr.policy.is_rt() {
        members.push(member("priority", plain(attr.rt_priority)));
    } else if attr.nice != 0 && has_nice(attr.policy) {
        members.push(member("priority", plain(attr.nice)));
    }
    if attr.policy == Policy::Deadline {
        let dl = &attr.deadline;
        members.push(member("dl-runtime", constant(dl.runtime_ns)));
        members.push(member("dl-deadline", constant(dl.deadline_ns)));
        members.push(member("dl-period", constant(dl.period_ns)));
        if dl.reclaim {
            members.push(member("dl-reclaim", plain(true)));
        }
    } else if let Some(slice_ns) = attr.slice_ns.filter(|_| has_slice(attr.policy)) {
        members.push(member("dl-runtime", constant(slice_ns)));
    }
    for (name, util, of_base) in
        [("util_min", attr.util_min, base.util_min), ("util_max", attr.util_max, base.util_max)]
    {
        if util != of_base {
            members.push(member(name, util.map_or_else(|| plain(-1), plain)));
        }
    }
    if attr.affinity != base.affinity {
        members.push(member("cpus", cpus(attr.affinity.as_ref())));
    }
    if attr.cgroup != base.cgroup {
        let path = workload.cgroups.get(attr.cgroup.index()).map_or("/", |group| &group.path);
        members.push(member("taskgroup", text(path)));
    }
    members
}

pub(super) fn cpus(mask: Option<&CpuMask>) -> Json {
    match mask {
        None => text("all"),
        Some(mask) => Json::List(mask.iter().map(|cpu| cpu.to_string()).collect()),
    }
}
