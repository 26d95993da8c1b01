// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions, and the groups that a kernel with autogroup makes for them.
//!
//! Each setsid(2) makes an autogroup with the shares of nice 0, or of the value written to
//! /proc/PID/autogroup. A task is in it while its control group is the root group. A child is in
//! its parent's session. Source: Linux kernel/sched/autogroup.c, 6.1. Left out: a task that calls
//! setsid itself, and how exiting tasks move back to the root group.

use super::{CgroupSpec, Workload, WorkloadError};
use crate::ids::ROOT_CGROUP;
use crate::{CgroupId, Op};

/// A session of tasks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct SessionSpec {
    /// Name.
    pub name: String,
    /// Nice value of its autogroup (/proc/PID/autogroup), -20 to 19.
    pub nice: i8,
}

/// Session of a task: one of the workload's, or `None` for that of the launcher.
type Session = Option<u32>;

impl Workload {
    pub(super) fn check_sessions(&self) -> Result<(), WorkloadError> {
        for session in &self.sessions {
            if !(-20..=19).contains(&session.nice) {
                return Err(WorkloadError(format!(
                    "session {:?}: nice is {}, allowed are -20 to 19",
                    session.name, session.nice
                )));
            }
        }
        for task in &self.tasks {
            if task.session.is_some_and(|session| session as usize >= self.sessions.len()) {
                return Err(WorkloadError(format!(
                    "task {:?}: its session is not described",
                    task.name
                )));
            }
        }
        Ok(())
    }

    /// Session of each task description: its own; or else that of the tasks that fork it; or else
    /// the launcher's.
    fn session_of_each(&self) -> Result<Vec<Session>, WorkloadError> {
        let order = self.fork_order().unwrap_or_default();
        // Found so far from those who create a task; `None`: nobody yet.
        let mut found: Vec<Option<Session>> = self
            .tasks
            .iter()
            .map(|task| match task.session {
                Some(own) => Some(Some(own)),
                None if task.instances > 0 => Some(None),
                None => None,
            })
            .collect();
        // Parents come before those they fork.
        for parent in order.into_iter().rev() {
            let session = found[parent].unwrap_or_default();
            for op in &self.tasks[parent].program.ops {
                let Op::Fork { task } = op else { continue };
                let child = *task as usize;
                if self.tasks[child].session.is_some() {
                    continue;
                }
                let known = *found[child].get_or_insert(session);
                if known != session {
                    return Err(WorkloadError(format!(
                        "task {:?} comes from two sessions, {} and {}: name its own with \
                         \"session\"",
                        self.tasks[child].name,
                        self.session_name(known),
                        self.session_name(session)
                    )));
                }
            }
        }
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn session_name(&self, session: Session) -> String {
        let named = session.and_then(|session| self.sessions.get(session as usize));
        named.map_or("the launcher's".into(), |session| format!("{:?}", session.name))
    }

    /// Returns the workload as a kernel with autogroup sees it: the tasks of the root group are in
    /// a group of their session. Fails if tasks of different sessions fork the same task
    /// description.
    pub fn with_autogroups(&self) -> Result<Self, WorkloadError> {
        let sessions = self.session_of_each()?;
        let mut grouped = self.clone();
        let mut groups: Vec<(Session, CgroupId)> = Vec::new();
        for (task, session) in grouped.tasks.iter_mut().zip(sessions) {
            let group = match groups.iter().find(|(known, _)| *known == session) {
                Some((_, group)) => *group,
                None => {
                    let id = CgroupId(grouped.cgroups.len() as u32);
                    let nice = session.map_or(0, |index| self.sessions[index as usize].nice);
                    let path = format!("/autogroup-{}", groups.len() + 1);
                    let group = CgroupSpec::new(path, ROOT_CGROUP, 100);
                    grouped.cgroups.push(CgroupSpec { weight_nice: Some(nice), ..group });
                    groups.push((session, id));
                    id
                }
            };
            let changes = task.program.ops.iter_mut().filter_map(|op| match op {
                Op::SetAttr(attr) => Some(attr.as_mut()),
                _ => None,
            });
            for attr in std::iter::once(&mut task.attr).chain(changes) {
                if attr.cgroup == ROOT_CGROUP {
                    attr.cgroup = group;
                }
            }
        }
        Ok(grouped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskSpec;
    use crate::program::ProgramBuilder;

    fn forker(name: &str, session: Session, child: Option<u32>) -> TaskSpec {
        let mut builder = ProgramBuilder::new();
        builder.run(1_000);
        if let Some(task) = child {
            builder.op(Op::Fork { task });
        }
        TaskSpec { session, ..TaskSpec::new(name, builder.build()) }
    }

    fn workload(tasks: Vec<TaskSpec>) -> Workload {
        let mut workload = Workload::new("w", tasks);
        let session = |name: &str, nice| SessionSpec { name: name.into(), nice };
        workload.sessions = vec![session("a", 0), session("b", -5)];
        workload
    }

    #[test]
    fn tasks_of_the_root_group_are_in_a_group_of_their_session() {
        let child = TaskSpec { instances: 0, ..forker("child", None, None) };
        let mut tasks = vec![
            forker("first", Some(1), Some(2)),
            forker("second", None, None),
            child,
            forker("third", Some(0), None),
        ];
        let mut apart = forker("apart", Some(0), None);
        apart.attr.cgroup = CgroupId(1);
        tasks.push(apart);
        let mut workload = workload(tasks);
        workload.cgroups.push(CgroupSpec::new("/own", ROOT_CGROUP, 300));
        workload.check(1).unwrap();
        let grouped = workload.with_autogroups().unwrap();
        grouped.check(1).unwrap();
        let of: Vec<u32> = grouped.tasks.iter().map(|task| task.attr.cgroup.0).collect();
        // The child is in its parent's session; who has a group of its own keeps it.
        assert_eq!(of, [2, 3, 2, 4, 1]);
        let nices: Vec<_> = grouped.cgroups.iter().map(|group| group.weight_nice).collect();
        assert_eq!(nices, [None, None, Some(-5), Some(0), Some(0)]);
    }

    #[test]
    fn a_child_of_two_sessions_must_say_which_is_its_own() {
        let child = TaskSpec { instances: 0, ..forker("child", None, None) };
        let mut two = workload(vec![
            forker("first", Some(0), Some(2)),
            forker("second", Some(1), Some(2)),
            child,
        ]);
        let error = two.with_autogroups().unwrap_err().to_string();
        assert!(error.contains("\"child\" comes from two sessions, \"b\" and \"a\""), "{error}");
        two.tasks[2].session = Some(1);
        assert_eq!(two.with_autogroups().unwrap().tasks[2].attr.cgroup, CgroupId(2));
    }

    #[test]
    fn what_is_not_described_or_out_of_range_is_refused() {
        let mut bad = workload(vec![forker("t", Some(7), None)]);
        assert!(bad.check(1).unwrap_err().to_string().contains("its session is not described"));
        bad.tasks[0].session = None;
        bad.sessions[0].nice = 20;
        assert!(bad.check(1).unwrap_err().to_string().contains("allowed are -20 to 19"));
    }
}
