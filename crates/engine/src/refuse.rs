// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a workload may say and the simulator cannot do: refused by name before the run.

use schedlab_model::{Op, Policy, SchedAttr, Workload};
use schedlab_sched::SchedClass;

/// Says the first thing that cannot be done under `scheduler`, a stack of `classes`.
pub(crate) fn check(
    workload: &Workload,
    scheduler: &str,
    classes: &[Box<dyn SchedClass>],
) -> Result<(), String> {
    for group in &workload.cgroups {
        if group.cpu_max.is_some() {
            return Err(format!(
                "group {:?}: cpu.max is not modelled by any scheduler: leave it out",
                group.path
            ));
        }
    }
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
