// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks objects, and that each operation names an object of the right kind.
//!
//! Two things depend on the run and are not checked here: whether a task holds the mutex that it
//! unlocks, and whether a waiting task is ever woken. The lanes report these when they happen.

use super::{TaskSpec, Workload, WorkloadError};
use crate::{MutexProtocol, ObjectId, ObjectKind, Op, Policy};

/// The kind of object that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Mutex,
    Condvar,
    Barrier,
    Semaphore,
    Event,
    Channel,
}

impl Need {
    const fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Condvar => "condvar",
            Self::Barrier => "barrier",
            Self::Semaphore => "semaphore",
            Self::Event => "event",
            Self::Channel => "channel (pipe or socketpair)",
        }
    }

    const fn is_met(self, kind: ObjectKind) -> bool {
        matches!(
            (self, kind),
            (Self::Mutex, ObjectKind::Mutex { .. })
                | (Self::Condvar, ObjectKind::Condvar)
                | (Self::Barrier, ObjectKind::Barrier { .. })
                | (Self::Semaphore, ObjectKind::Semaphore { .. })
                | (Self::Event, ObjectKind::Event)
                | (Self::Channel, ObjectKind::Channel { .. })
        )
    }
}

/// The objects that an operation names, with the kind that it needs of each.
fn needs(op: &Op) -> [Option<(ObjectId, Need)>; 2] {
    let one = |object: &ObjectId, need| [Some((*object, need)), None];
    match op {
        Op::Lock { object } | Op::Unlock { object } => one(object, Need::Mutex),
        Op::Signal { object } | Op::Broadcast { object } => one(object, Need::Condvar),
        Op::Wait { condvar, mutex } | Op::Sync { condvar, mutex } => {
            [Some((*condvar, Need::Condvar)), Some((*mutex, Need::Mutex))]
        }
        Op::Barrier { object } => one(object, Need::Barrier),
        Op::SemWait { object } | Op::SemPost { object } => one(object, Need::Semaphore),
        Op::Suspend { object } | Op::Resume { object } => one(object, Need::Event),
        Op::Send { channel, .. } | Op::Receive { channel, .. } => one(channel, Need::Channel),
        _ => [None, None],
    }
}

impl Workload {
    /// Checks names and numbers of the objects, and the members of the sets.
    pub(super) fn check_objects(&self) -> Result<(), WorkloadError> {
        let mut names: Vec<&str> = self.objects.iter().map(|object| object.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(WorkloadError(format!(
                "two objects are called {:?}: give each its own name",
                twice[0]
            )));
        }
        for object in &self.objects {
            let (kind, name) = (object.kind.name(), &object.name);
            object
                .kind
                .check()
                .map_err(|what| WorkloadError(format!("{kind} {name:?}: {what}")))?;
        }
        for (index, set) in self.wait_sets.iter().enumerate() {
            self.check_set(set)
                .map_err(|what| WorkloadError(format!("wait set {index}: {what}")))?;
        }
        Ok(())
    }

    fn check_set(&self, set: &[ObjectId]) -> Result<(), String> {
        if set.is_empty() {
            return Err("it is empty: nothing could ever end the wait".into());
        }
        for &id in set {
            let Some(object) = self.objects.get(id.index()) else {
                return Err(self.no_such_object(id));
            };
            if !object.kind.is_pollable() {
                return Err(format!(
                    "it names {:?}, a {}: allowed are pipes, socketpairs and semaphores",
                    object.name,
                    object.kind.name()
                ));
            }
        }
        Ok(())
    }

    fn no_such_object(&self, id: ObjectId) -> String {
        match self.objects.len() {
            0 => format!("names object {id}, but the workload has none"),
            count => format!("names object {id}, but the workload has 0 to {}", count - 1),
        }
    }

    /// Checks the objects and sets that a task's operations name.
    pub(super) fn check_uses(&self, task: &TaskSpec) -> Result<(), String> {
        let mut priority = task.attr.rt_priority;
        let mut is_deadline = task.attr.policy == Policy::Deadline;
        for op in &task.program.ops {
            if let Op::SetAttr(attr) = op {
                priority = priority.max(attr.rt_priority);
                is_deadline |= attr.policy == Policy::Deadline;
            }
        }
        for (index, op) in task.program.ops.iter().enumerate() {
            let named = |what: String| format!("operation {index} ({}): {what}", op.name());
            for (id, need) in needs(op).into_iter().flatten() {
                let Some(object) = self.objects.get(id.index()) else {
                    return Err(named(self.no_such_object(id)));
                };
                let (name, kind) = (&object.name, object.kind);
                if !need.is_met(kind) {
                    let (found, needed) = (kind.name(), need.name());
                    return Err(named(format!("names {name:?}, a {found}; it needs a {needed}")));
                }
                if let ObjectKind::Mutex { protocol: MutexProtocol::Ceiling { rt_priority } } = kind
                    && (priority > rt_priority || is_deadline)
                {
                    let found =
                        if is_deadline { "a deadline".into() } else { priority.to_string() };
                    return Err(named(format!(
                        "the task has priority {found}, above the ceiling {rt_priority} of mutex \
                         {name:?}: raise the ceiling"
                    )));
                }
            }
            match op {
                Op::WaitAny { set } if *set as usize >= self.wait_sets.len() => {
                    let count = self.wait_sets.len();
                    return Err(named(format!("names wait set {set}; the workload has {count}")));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramBuilder;
    use crate::{ChannelKind, ObjectSpec, TaskSpec};

    const MUTEX: ObjectId = ObjectId(0);
    const CONDVAR: ObjectId = ObjectId(1);

    fn error_of(change: impl FnOnce(&mut Workload), op: Op) -> String {
        let program = ProgramBuilder::new().run(1).op(op).build();
        let mut workload = Workload::new("w", vec![TaskSpec::new("a", program)]);
        workload.add_object(ObjectSpec::new("m", ObjectKind::MUTEX));
        workload.add_object(ObjectSpec::new("c", ObjectKind::Condvar));
        change(&mut workload);
        workload.check(1).map_err(|error| error.to_string()).err().unwrap_or_default()
    }

    #[test]
    fn operations_name_objects_of_the_kind_they_need() {
        let cases = [
            (Op::Lock { object: MUTEX }, ""),
            (Op::Wait { condvar: CONDVAR, mutex: MUTEX }, ""),
            (
                Op::Lock { object: CONDVAR },
                "task \"a\": operation 1 (lock): names \"c\", a condvar; it needs a mutex",
            ),
            (
                Op::Wait { condvar: CONDVAR, mutex: CONDVAR },
                "task \"a\": operation 1 (wait): names \"c\", a condvar; it needs a mutex",
            ),
            (
                Op::Send { channel: ObjectId(7), bytes: crate::Amount::Constant(1) },
                "task \"a\": operation 1 (send): names object 7, but the workload has 0 to 1",
            ),
            (
                Op::WaitAny { set: 0 },
                "task \"a\": operation 1 (wait_any): names wait set 0; the workload has 0",
            ),
            (
                Op::Join { task: 1 },
                "task \"a\": operation 1: waits for a task that is not described",
            ),
        ];
        for (op, text) in cases {
            assert_eq!(error_of(|_| (), op), text);
        }
    }

    #[test]
    fn objects_and_sets_keep_their_ranges() {
        let object = |kind| {
            error_of(
                |workload| {
                    workload.add_object(ObjectSpec::new("x", kind));
                },
                Op::Yield,
            )
        };
        let none = ObjectKind::Barrier { parties: 0 };
        assert_eq!(object(none), "barrier \"x\": its parties is 0, allowed are 1 and more");
        let full = ObjectKind::Semaphore { initial: u32::MAX };
        assert!(object(full).contains("allowed are 0 to 2147483647"));
        let empty = ObjectKind::Channel { kind: ChannelKind::SocketPair, capacity_bytes: 0 };
        assert!(object(empty).starts_with("socketpair \"x\": its capacity in bytes is 0"));
        let twice = error_of(|w| w.objects[1].name = "m".into(), Op::Yield);
        assert!(twice.starts_with("two objects are called \"m\""), "{twice}");
        let set = |set: Vec<ObjectId>| error_of(|w| w.wait_sets.push(set), Op::Yield);
        assert!(set(vec![]).contains("wait set 0: it is empty"));
        assert!(set(vec![MUTEX]).contains("names \"m\", a mutex: allowed are pipes"));
    }

    #[test]
    fn a_task_above_the_ceiling_is_refused() {
        let ceiling = |rt_priority| {
            error_of(
                |workload| {
                    let protocol = MutexProtocol::Ceiling { rt_priority };
                    workload.objects[0].kind = ObjectKind::Mutex { protocol };
                    workload.tasks[0].attr.policy = Policy::Fifo;
                    workload.tasks[0].attr.rt_priority = 20;
                },
                Op::Lock { object: MUTEX },
            )
        };
        assert_eq!(ceiling(20), "");
        assert!(ceiling(19).contains("priority 20, above the ceiling 19 of mutex \"m\""));
        assert!(ceiling(0).contains("its ceiling is 0, allowed are 1 to 99"));
    }

    /// The numbers of a trace: objects, sets, children.
    #[test]
    fn what_a_trace_calls_them() {
        let program = ProgramBuilder::new().op(Op::JoinAll).build();
        let mut workload = Workload::new("w", vec![TaskSpec::new("a", program)]);
        let a = workload.add_object(ObjectSpec::new("a", ObjectKind::PIPE));
        let b = workload.add_object(ObjectSpec::new("b", ObjectKind::Semaphore { initial: 0 }));
        workload.wait_sets.push(vec![a, b]);
        let named: Vec<_> = workload
            .trace_objects()
            .into_iter()
            .map(|object| (object.name, object.kind.name()))
            .collect();
        let wanted = [("a", "pipe"), ("b", "semaphore"), ("a|b", "set"), ("children", "children")];
        assert_eq!(named, wanted.map(|(name, kind)| (name.to_string(), kind)));
        assert_eq!((workload.trace_set(0), workload.trace_children()), (ObjectId(2), ObjectId(3)));
    }
}
