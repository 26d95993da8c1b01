// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refuses parts of a workload that this machine cannot do, before anything starts. The error names
//! them.

use crate::error::HostError;
use crate::player::{BufferNeeds, TASK_BYTES_MAX};
use schedlab_model::{MutexProtocol, ObjectKind, Workload};

/// Refuses a workload that needs too much memory. `available_bytes`: memory for all tasks together.
pub fn check_memory(workload: &Workload, available_bytes: u64) -> Result<(), HostError> {
    let mut sum: u64 = 0;
    for task in &workload.tasks {
        let bytes = BufferNeeds::of(task).total();
        if bytes > TASK_BYTES_MAX {
            return Err(HostError::Unavailable(format!(
                "task {:?}: it touches {bytes} bytes of memory, allowed are {TASK_BYTES_MAX} for \
                 each task of a host run: lower the sizes of mem, memrun and the working set",
                task.name
            )));
        }
        // A description that only forks create counts once.
        sum = sum.saturating_add(bytes.saturating_mul(u64::from(task.instances.max(1))));
    }
    if sum > available_bytes {
        return Err(HostError::Unavailable(format!(
            "the tasks touch {sum} bytes of memory together; a host run may use half of what is \
             available, {available_bytes} bytes now: lower the sizes of mem, memrun and the \
             working sets, or the number of tasks"
        )));
    }
    Ok(())
}

/// Refuses sessions, because all tasks of a host run are in one.
pub fn check_sessions(workload: &Workload) -> Result<(), HostError> {
    match workload.tasks.iter().find(|task| task.session.is_some()) {
        Some(task) => Err(HostError::Unavailable(format!(
            "task {:?}: a host run plays all tasks in one session: leave `session` out, or give \
             tasks a control group (`taskgroup`)",
            task.name
        ))),
        None => Ok(()),
    }
}

/// Refuses ceilings if no task may raise its priority.
pub fn check_ceilings(workload: &Workload, may_set_policies: bool) -> Result<(), HostError> {
    let is_ceiling = |object: &&schedlab_model::ObjectSpec| {
        matches!(object.kind, ObjectKind::Mutex { protocol: MutexProtocol::Ceiling { .. } })
    };
    match workload.objects.iter().find(is_ceiling) {
        Some(object) if !may_set_policies => Err(HostError::Unavailable(format!(
            "mutex {:?} has a priority ceiling: tasks may raise their priority only as root or \
             with CAP_SYS_NICE",
            object.name
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::program::ProgramBuilder;
    use schedlab_model::{Amount, ObjectSpec, Op, TaskSpec};

    #[test]
    fn a_ceiling_without_the_right_to_raise_is_refused_by_name() {
        let mut workload = Workload::new("w", Vec::new());
        let protocol = MutexProtocol::Ceiling { rt_priority: 5 };
        workload.add_object(ObjectSpec::new("m", ObjectKind::Mutex { protocol }));
        assert_eq!(check_ceilings(&workload, true), Ok(()));
        let error = check_ceilings(&workload, false).unwrap_err().to_string();
        assert!(error.contains("mutex \"m\"") && error.contains("CAP_SYS_NICE"), "{error}");
    }

    #[test]
    fn a_session_is_refused_by_name() {
        let mut workload = Workload::new("w", vec![TaskSpec::new("t", Default::default())]);
        assert_eq!(check_sessions(&workload), Ok(()));
        workload.tasks[0].session = Some(0);
        let error = check_sessions(&workload).unwrap_err().to_string();
        assert!(error.contains("task \"t\"") && error.contains("`taskgroup`"), "{error}");
    }

    #[test]
    fn too_much_memory_is_refused_by_name() {
        let with = |bytes, instances| {
            let op = Op::Mem { bytes: Amount::Constant(bytes) };
            let mut task = TaskSpec::new("a", ProgramBuilder::new().op(op).build());
            task.instances = instances;
            check_memory(&Workload::new("w", vec![task]), 1 << 20).map_err(|e| e.to_string())
        };
        assert_eq!(with(1 << 18, 4), Ok(()));
        assert!(with(1 << 18, 5).unwrap_err().contains("1310720 bytes of memory together"));
        assert!(with(u64::MAX, 1).unwrap_err().contains("task \"a\": it touches 184"));
    }
}
