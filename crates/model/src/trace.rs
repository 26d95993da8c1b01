// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace events: what every lane records, in one form.
//!
//! Order: events come in time order; at equal times in the order in which they happened.

use crate::{ChannelKind, CpuId, Nanos, ObjectId, ObjectKind, TaskId};

/// How a task left its CPU. The kernel counts the switch as voluntary exactly when the task was not
/// runnable any more (Linux kernel/sched/core.c, `__schedule`): sched_yield counts as involuntary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SwitchOut {
    /// The CPU was idle: no task left.
    Idle = 0,
    /// Still runnable: its slice ended or another task came first.
    Preempted = 1,
    /// Still runnable: it called sched_yield.
    Yielded = 2,
    /// Sleeps, waits for a timer or for another task.
    Sleeping = 3,
    /// Waits for a device (uninterruptible).
    BlockedIo = 4,
    /// Has exited.
    Dead = 5,
}

impl SwitchOut {
    /// Every value, by its number.
    pub const ALL: [Self; 6] =
        [Self::Idle, Self::Preempted, Self::Yielded, Self::Sleeping, Self::BlockedIo, Self::Dead];

    /// Whether the kernel counts the switch as voluntary (nvcsw).
    pub const fn is_voluntary(self) -> bool {
        matches!(self, Self::Sleeping | Self::BlockedIo | Self::Dead)
    }

    /// A word for results: how the slice ended.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Preempted => "preempted",
            Self::Yielded => "yielded",
            Self::Sleeping => "sleeping",
            Self::BlockedIo => "blocked-io",
            Self::Dead => "exited",
        }
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The CPU changes from `prev` to `next`; `None` is the idle task. `out` tells how `prev` left.
    Switch {
        /// The task that leaves.
        prev: Option<TaskId>,
        /// The task that comes.
        next: Option<TaskId>,
        /// How `prev` left.
        out: SwitchOut,
    },
    /// `task` becomes runnable on the event's CPU after a sleep. `waker` is the task that woke it
    /// (`None`: a timer or a device).
    Wakeup {
        /// The task that wakes.
        task: TaskId,
        /// The task that woke it.
        waker: Option<TaskId>,
    },
    /// `task` is created by `parent` (`None`: the launcher), runnable on the event's CPU.
    Fork {
        /// The new task.
        task: TaskId,
        /// Its parent.
        parent: Option<TaskId>,
    },
    /// `task` exits on the event's CPU.
    Exit {
        /// The task.
        task: TaskId,
    },
    /// `task` moves from CPU `from` to the event's CPU.
    Migrate {
        /// The task.
        task: TaskId,
        /// Where it was.
        from: CpuId,
    },
    /// `task` enters phase number `phase` of its description.
    Phase {
        /// The task.
        task: TaskId,
        /// Index into the phases of its description.
        phase: u32,
    },
    /// `task` has finished one more unit of progress (study S0's records).
    Progress {
        /// The task.
        task: TaskId,
    },
    /// `task`, running on the event's CPU, is about to block on `object`. The switch out follows; a
    /// task that sleeps, waits for a timer or for a device has no such event, for its switch out
    /// says enough. In a recording of the kernel the wait may be over before the switch.
    Block {
        /// The task.
        task: TaskId,
        /// What it waits on, announced by [`TraceSink::object`].
        object: ObjectId,
    },
    /// Events were lost on the event's CPU before this time; `count` of them. With `count` 0 none
    /// was lost: the recording begins here, in the midst of things, and what came before is not
    /// known.
    Lost {
        /// How many.
        count: u32,
    },
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When (ns since the start of the run).
    pub time_ns: Nanos,
    /// On which CPU (for `Wakeup`, `Fork`, `Migrate`: the CPU the task is put on).
    pub cpu: CpuId,
    /// What.
    pub kind: EventKind,
}

/// What the trace says of a task beside its events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskInfo {
    /// Name, unique in the run.
    pub name: String,
    /// Index of its description in the workload; `None` for a command on the host.
    pub spec: Option<u32>,
    /// Process id on the host, 0 in the simulator.
    pub pid: u32,
}

/// What a task waits on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum WaitKind {
    /// A mutex.
    #[default]
    Mutex = 0,
    /// A condition variable.
    Condvar = 1,
    /// A barrier.
    Barrier = 2,
    /// A semaphore.
    Semaphore = 3,
    /// An event.
    Event = 4,
    /// A pipe.
    Pipe = 5,
    /// A socket pair.
    SocketPair = 6,
    /// Any of several objects.
    Set = 7,
    /// The exit of forked tasks.
    Children = 8,
}

impl WaitKind {
    /// Every value, by its number.
    pub const ALL: [Self; 9] = [
        Self::Mutex,
        Self::Condvar,
        Self::Barrier,
        Self::Semaphore,
        Self::Event,
        Self::Pipe,
        Self::SocketPair,
        Self::Set,
        Self::Children,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Condvar => "condvar",
            Self::Barrier => "barrier",
            Self::Semaphore => "semaphore",
            Self::Event => "event",
            Self::Pipe => "pipe",
            Self::SocketPair => "socketpair",
            Self::Set => "set",
            Self::Children => "children",
        }
    }
}

impl From<ObjectKind> for WaitKind {
    fn from(kind: ObjectKind) -> Self {
        match kind {
            ObjectKind::Mutex { .. } => Self::Mutex,
            ObjectKind::Condvar => Self::Condvar,
            ObjectKind::Barrier { .. } => Self::Barrier,
            ObjectKind::Semaphore { .. } => Self::Semaphore,
            ObjectKind::Event => Self::Event,
            ObjectKind::Channel { kind: ChannelKind::Pipe, .. } => Self::Pipe,
            ObjectKind::Channel { kind: ChannelKind::SocketPair, .. } => Self::SocketPair,
        }
    }
}

/// What the trace says of an object beside the events that name it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObjectInfo {
    /// Name; of a wait set the names of its objects with `|` between them.
    pub name: String,
    /// Kind.
    pub kind: WaitKind,
}

/// Takes events as they come. A sink that keeps nothing costs nothing.
pub trait TraceSink {
    /// A new task: called before the first event that names it, with ids in ascending order.
    fn task(&mut self, id: TaskId, info: &TaskInfo);

    /// A new object: called before the first event that names it, with ids in ascending order. A
    /// sink that has no place for it need not implement it.
    fn object(&mut self, _id: ObjectId, _info: &ObjectInfo) {}

    /// One event.
    fn event(&mut self, event: &Event);

    /// Whether the sink has a place for virtual runtimes. A simulator asks once, before the run,
    /// and computes none for a sink that has not. Default: no.
    fn wants_vruntime(&self) -> bool {
        false
    }

    /// The virtual runtime of a task (ns at nice 0), relative to the min_vruntime of its queue. No
    /// part of the trace proper. Called only where [`TraceSink::wants_vruntime`].
    fn vruntime(&mut self, _time_ns: Nanos, _task: TaskId, _value: i64) {}

    /// The run is over at `end_ns`. Called once, last.
    fn end(&mut self, _end_ns: Nanos) {}
}

/// Keeps nothing.
#[derive(Default, Debug, Clone, Copy)]
pub struct NullSink;

impl TraceSink for NullSink {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}
    fn event(&mut self, _event: &Event) {}
}

/// Keeps everything in memory: for tests and short runs.
#[derive(Default, Debug, Clone)]
pub struct MemorySink {
    /// Tasks by id.
    pub tasks: Vec<TaskInfo>,
    /// Objects by id.
    pub objects: Vec<ObjectInfo>,
    /// Events in order.
    pub events: Vec<Event>,
    /// End of the run.
    pub end_ns: Nanos,
}

impl TraceSink for MemorySink {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        assert_eq!(id.index(), self.tasks.len(), "task ids come in ascending order");
        self.tasks.push(info.clone());
    }
    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        assert_eq!(id.index(), self.objects.len(), "object ids come in ascending order");
        self.objects.push(info.clone());
    }
    fn event(&mut self, event: &Event) {
        self.events.push(*event);
    }
    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = end_ns;
    }
}

impl<S: TraceSink + ?Sized> TraceSink for &mut S {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        (**self).task(id, info);
    }
    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        (**self).object(id, info);
    }
    #[inline]
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }
    fn wants_vruntime(&self) -> bool {
        (**self).wants_vruntime()
    }
    fn vruntime(&mut self, time_ns: Nanos, task: TaskId, value: i64) {
        (**self).vruntime(time_ns, task, value);
    }
    fn end(&mut self, end_ns: Nanos) {
        (**self).end(end_ns);
    }
}

/// Passes everything to two sinks.
impl<A: TraceSink, B: TraceSink> TraceSink for (A, B) {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.0.task(id, info);
        self.1.task(id, info);
    }
    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.0.object(id, info);
        self.1.object(id, info);
    }
    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }
    fn wants_vruntime(&self) -> bool {
        self.0.wants_vruntime() || self.1.wants_vruntime()
    }
    fn vruntime(&mut self, time_ns: Nanos, task: TaskId, value: i64) {
        self.0.vruntime(time_ns, task, value);
        self.1.vruntime(time_ns, task, value);
    }
    fn end(&mut self, end_ns: Nanos) {
        self.0.end(end_ns);
        self.1.end(end_ns);
    }
}
