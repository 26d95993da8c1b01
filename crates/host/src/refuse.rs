// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a workload may say and this lane cannot do: refused by name before anything starts.

use crate::error::HostError;
use schedlab_model::{Op, SchedAttr, Workload};

/// What there is to do instead.
const INSTEAD: &str = "use the simulator (schedlab sim)";

/// Refuses the first thing that cannot be done.
pub fn check(workload: &Workload) -> Result<(), HostError> {
    for group in &workload.cgroups {
        if group.cpu_max.is_some() {
            return Err(HostError::Unavailable(format!(
                "group {:?}: the host lane does not set cpu.max: leave it out or {INSTEAD}",
                group.path
            )));
        }
    }
    for task in &workload.tasks {
        let refuse = |what: String| {
            let text = format!("task {:?}: {what}: leave it out or {INSTEAD}", task.name);
            Err(HostError::Unavailable(text))
        };
        if has_clamp(&task.attr) {
            return refuse("the host lane does not set util_min and util_max".into());
        }
        for (index, op) in task.program.ops.iter().enumerate() {
            let memory = matches!(op, Op::Mem { .. } | Op::MemRun { .. });
            if op.uses_objects() || memory || matches!(op, Op::Join { .. }) {
                let name = op.name();
                return refuse(format!("operation {index} ({name}): the host lane has none"));
            }
            if matches!(op, Op::SetAttr(attr) if has_clamp(attr)) {
                return refuse(format!(
                    "operation {index}: the host lane does not set util_min and util_max"
                ));
            }
        }
    }
    Ok(())
}

fn has_clamp(attr: &SchedAttr) -> bool {
    attr.util_min.is_some() || attr.util_max.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::program::ProgramBuilder;
    use schedlab_model::workload::CpuMax;
    use schedlab_model::{ObjectId, TaskSpec};

    #[test]
    fn what_the_lane_cannot_do_is_named() {
        let good = ProgramBuilder::new().run(1).build();
        let mut workload = Workload::new("w", vec![TaskSpec::new("a", good)]);
        assert!(check(&workload).is_ok());
        let text = |workload: &Workload| check(workload).unwrap_err().to_string();
        workload.cgroups[0].cpu_max = Some(CpuMax { quota_ns: 5_000_000, period_ns: 10_000_000 });
        assert!(text(&workload).contains("group \"/\": the host lane does not set cpu.max"));
        workload.cgroups[0].cpu_max = None;
        workload.tasks[0].attr.util_min = Some(5);
        assert!(text(&workload).contains("util_min"));
        workload.tasks[0].attr.util_min = None;
        workload.tasks[0].program.ops.push(Op::SemPost { object: ObjectId(0) });
        assert!(text(&workload).contains("task \"a\": operation 1 (sem_post)"));
    }
}
