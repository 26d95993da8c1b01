// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sink without the threads of the kernel: what a recorder of a real run sees, which records the
//! tasks of the run and no others.

use schedlab_model::trace::{DispatchQueue, ObjectInfo, TaskInfo};
use schedlab_model::{Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};

/// Passes on what concerns tasks with ids from `nr_hidden` on, numbered from 0.
pub(crate) struct Visible<S> {
    inner: S,
    nr_hidden: u32,
}

impl<S> Visible<S> {
    pub fn new(inner: S, nr_hidden: u32) -> Self {
        Self { inner, nr_hidden }
    }

    fn shown(&self, task: TaskId) -> Option<TaskId> {
        task.0.checked_sub(self.nr_hidden).map(TaskId)
    }

    /// The event with the numbers of visible tasks; `None`: it concerns none.
    fn kind(&self, kind: EventKind) -> Option<EventKind> {
        let shown = |task| self.shown(task);
        Some(match kind {
            EventKind::Switch { prev, next, out } => {
                let (prev, next) = (prev.and_then(shown), next.and_then(shown));
                if prev.is_none() && next.is_none() {
                    return None;
                }
                let out = if prev.is_some() { out } else { SwitchOut::Idle };
                EventKind::Switch { prev, next, out }
            }
            EventKind::Wakeup { task, waker } => {
                EventKind::Wakeup { task: shown(task)?, waker: waker.and_then(shown) }
            }
            EventKind::Fork { task, parent } => {
                EventKind::Fork { task: shown(task)?, parent: parent.and_then(shown) }
            }
            EventKind::Exit { task } => EventKind::Exit { task: shown(task)? },
            EventKind::Migrate { task, from } => EventKind::Migrate { task: shown(task)?, from },
            EventKind::Phase { task, phase } => EventKind::Phase { task: shown(task)?, phase },
            EventKind::Progress { task } => EventKind::Progress { task: shown(task)? },
            EventKind::Block { task, object } => EventKind::Block { task: shown(task)?, object },
            EventKind::Lost { count } => EventKind::Lost { count },
        })
    }
}

impl<S: TraceSink> TraceSink for Visible<S> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if let Some(id) = self.shown(id) {
            self.inner.task(id, info);
        }
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.inner.object(id, info);
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        if self.nr_hidden == 0 {
            return self.inner.event(event);
        }
        if let Some(kind) = self.kind(event.kind) {
            self.inner.event(&Event { kind, ..*event });
        }
    }

    fn wants_vruntime(&self) -> bool {
        self.inner.wants_vruntime()
    }

    fn vruntime(&mut self, time_ns: Nanos, task: TaskId, value: i64) {
        if let Some(task) = self.shown(task) {
            self.inner.vruntime(time_ns, task, value);
        }
    }

    fn wants_queues(&self) -> bool {
        self.inner.wants_queues()
    }

    fn queue_length(&mut self, time_ns: Nanos, queue: DispatchQueue, nr_tasks: u32) {
        self.inner.queue_length(time_ns, queue, nr_tasks);
    }

    fn end(&mut self, end_ns: Nanos) {
        self.inner.end(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::CpuId;
    use schedlab_model::trace::MemorySink;

    #[test]
    fn a_thread_of_the_kernel_is_as_no_task_of_the_run() {
        let mut sink = Visible::new(MemorySink::default(), 2);
        let switch = |prev: Option<u32>, next: Option<u32>, out| {
            let [prev, next] = [prev, next].map(|task| task.map(TaskId));
            EventKind::Switch { prev, next, out }
        };
        for id in 0..3 {
            sink.task(TaskId(id), &TaskInfo { name: format!("t{id}"), ..TaskInfo::default() });
        }
        let kinds = [
            EventKind::Wakeup { task: TaskId(2), waker: Some(TaskId(1)) },
            switch(None, Some(2), SwitchOut::Idle),
            EventKind::Wakeup { task: TaskId(0), waker: Some(TaskId(2)) },
            switch(Some(2), Some(0), SwitchOut::Preempted),
            switch(Some(0), Some(1), SwitchOut::Sleeping),
            switch(Some(1), Some(2), SwitchOut::Sleeping),
        ];
        for kind in kinds {
            sink.event(&Event { time_ns: 0, cpu: CpuId(0), kind });
        }
        let seen: Vec<EventKind> = sink.inner.events.iter().map(|event| event.kind).collect();
        let expected = [
            EventKind::Wakeup { task: TaskId(0), waker: None },
            switch(None, Some(0), SwitchOut::Idle),
            switch(Some(0), None, SwitchOut::Preempted),
            switch(None, Some(0), SwitchOut::Idle),
        ];
        assert_eq!(seen, expected);
        assert_eq!(sink.inner.tasks.len(), 1);
    }
}
