// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tasks that wait for ever, when nothing more can happen, and what they wait for.

use super::Object;
use crate::engine::Engine;
use crate::exec::Waiting;
use schedlab_model::{ObjectId, TaskId, TraceSink};
use std::fmt;

/// What a task does with a channel.
pub(super) const READS_FROM: &str = "reads from";
pub(super) const WRITES_TO: &str = "writes to";

/// A task that waits for ever, or would.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockedTask {
    /// Its name.
    pub task: String,
    /// What it does with the object: "waits for", "reads from", "writes to".
    pub act: &'static str,
    /// Kind and name of the object.
    pub object: String,
    /// The task that holds it, if it is a mutex.
    pub holder: Option<String>,
}

impl fmt::Display for BlockedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {:?} {} {}", self.task, self.act, self.object)?;
        match &self.holder {
            Some(holder) => write!(f, ", held by {holder:?}"),
            None => Ok(()),
        }
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Every task that waits for another one, in order of their numbers.
    pub(crate) fn blocked_tasks(&self) -> Vec<BlockedTask> {
        self.tasks.ids().filter_map(|task| self.blocked_task(task)).collect()
    }

    fn blocked_task(&self, task: TaskId) -> Option<BlockedTask> {
        let exec = &self.tasks[task];
        let blocked = |act, object, holder| {
            Some(BlockedTask { task: exec.name.clone(), act, object, holder })
        };
        match exec.waiting {
            Waiting::No | Waiting::Event | Waiting::Move => None,
            Waiting::AnyChild => blocked("waits for", "all tasks it forked".into(), None),
            Waiting::Child(child) => {
                let name = &self.tasks[child].name;
                blocked("waits for", format!("the task {name:?} it forked"), None)
            }
            Waiting::On(id) => {
                let (act, holder) = self.act_on(task, id);
                blocked(act, self.object_name(id), holder)
            }
        }
    }

    pub(super) fn object_name(&self, id: ObjectId) -> String {
        match self.workload.objects.get(id.index()) {
            Some(object) => format!("{} {:?}", object.kind.name(), object.name),
            None => {
                let info = self.workload.trace_objects().swap_remove(id.index());
                format!("any of {:?}", info.name)
            }
        }
    }

    fn act_on(&self, task: TaskId, id: ObjectId) -> (&'static str, Option<String>) {
        match self.objects.objects.get(id.index()) {
            Some(Object::Mutex(mutex)) => {
                let holder = mutex.holder.map(|holder| self.tasks[holder].name.clone());
                ("waits for", holder)
            }
            Some(Object::Channel(channel)) if channel.readers.contains(task) => (READS_FROM, None),
            Some(Object::Channel(_)) => (WRITES_TO, None),
            _ => ("waits for", None),
        }
    }
}
