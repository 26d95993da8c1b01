// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refuses workloads with parts that the simulator cannot do, before the run.

use schedlab_model::program::SchedTunable;
use schedlab_model::{CgroupId, Op, Policy, SchedAttr, Workload};
use schedlab_sched::{SchedClass, Scheduler};

/// Returns the first problem of the workload under `scheduler`, a stack of `classes`.
pub(crate) fn check(
    workload: &Workload,
    scheduler: &Scheduler,
    classes: &[Box<dyn SchedClass>],
) -> Result<(), String> {
    check_cpu_max(workload, &scheduler.name, classes)?;
    check_tunables(workload, scheduler, classes)?;
    let scheduler = &scheduler.name;
    let has_deadline = classes.iter().any(|class| class.owns(Policy::Deadline));
    for task in &workload.tasks {
        let refuse = |what: String| Err(format!("task {:?}: {what}", task.name));
        let is_left_out = |attr: &SchedAttr| attr.policy == Policy::Deadline && !has_deadline;
        let no_deadline = || format!("scheduler {scheduler:?} leaves out policy DEADLINE");
        if is_left_out(&task.attr) {
            return refuse(no_deadline());
        }
        for (index, op) in task.program.ops.iter().enumerate() {
            if matches!(op, Op::SetAttr(attr) if is_left_out(attr)) {
                return refuse(format!("operation {index}: {}", no_deadline()));
            }
        }
    }
    Ok(())
}

/// Refuses a tunable that the scheduler does not have, or that it reads only once.
fn check_tunables(
    workload: &Workload,
    scheduler: &Scheduler,
    classes: &[Box<dyn SchedClass>],
) -> Result<(), String> {
    let follows = classes.iter().any(|class| class.traits().follows_tunables);
    for task in &workload.tasks {
        for op in &task.program.ops {
            let Op::Tune { tunable, .. } = op else { continue };
            let name = tunable.model_name();
            let has = scheduler.tunables.iter().any(|known| known.name == name);
            let is_rt = matches!(tunable, SchedTunable::RtRuntime | SchedTunable::RtPeriod);
            if is_rt && has_deadline(workload) {
                return Err(format!(
                    "task {:?} sets {name}, and other tasks are SCHED_DEADLINE: models leave out \
                     an admission that changes during a run; leave out one of the two",
                    task.name
                ));
            }
            if !has || !follows {
                return Err(format!(
                    "task {:?} sets {}: scheduler {:?} has no such tunable that can change during \
                     a run: take one of linux-6.1 and later, or leave the change out",
                    task.name,
                    tunable.name(),
                    scheduler.name
                ));
            }
        }
    }
    Ok(())
}

/// Whether a task is ever SCHED_DEADLINE.
fn has_deadline(workload: &Workload) -> bool {
    has_attr(workload, |attr| attr.policy == Policy::Deadline)
}

/// Whether a task is ever a fair one.
fn has_fair(workload: &Workload) -> bool {
    has_attr(workload, |attr| attr.policy.is_fair() || attr.policy == Policy::Ext)
}

fn has_attr(workload: &Workload, is: fn(&SchedAttr) -> bool) -> bool {
    workload.tasks.iter().any(|task| {
        let later = |op: &Op| matches!(op, Op::SetAttr(attr) if is(attr));
        is(&task.attr) || task.program.ops.iter().any(later)
    })
}

/// Refuses a CPU limit of a group if the class of SCHED_OTHER does not enforce it; and one of the
/// root group, which has no such file.
fn check_cpu_max(
    workload: &Workload,
    scheduler: &str,
    classes: &[Box<dyn SchedClass>],
) -> Result<(), String> {
    let mut ids = (0..workload.cgroups.len() as u32).map(CgroupId);
    let Some(group) = ids.find(|group| workload.is_ever_limited(*group)) else {
        return Ok(());
    };
    let path = &workload.cgroups[group.index()].path;
    let taken = classes.iter().find(|class| class.takes_over(Policy::Normal));
    let fair = taken.or_else(|| classes.iter().find(|class| class.owns(Policy::Normal)));
    // A stack leaves out classes that have no tasks. A limit holds for fair tasks only.
    let is_needed = fair.is_some() || has_fair(workload);
    if is_needed && !fair.is_some_and(|class| class.traits().enforces_cpu_max) {
        return Err(format!(
            "group {path:?}: scheduler {scheduler:?} leaves out cpu.max: take one of linux-6.1 and \
             later, or leave the limit out"
        ));
    }
    if workload.cgroups[0].cpu_max.is_some() {
        return Err(format!(
            "group {path:?}: the root group has no cpu.max: limit a group below it"
        ));
    }
    Ok(())
}
