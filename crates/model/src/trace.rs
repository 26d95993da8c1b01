// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace events: what every lane records, in one form.
//!
//! Events are in order of time. Events at the same time are in the order in which they happened.

use crate::{ChannelKind, CpuId, Nanos, ObjectId, ObjectKind, TaskId};
use core::fmt;

/// Why a task left its CPU. As in the kernel (`__schedule` in kernel/sched/core.c), a switch is
/// voluntary if the task was no longer runnable. A switch by sched_yield is involuntary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SwitchOut {
    /// The CPU was idle: no task left it.
    Idle = 0,
    /// Still runnable: its slice ended or the scheduler preferred another task.
    Preempted = 1,
    /// Still runnable: it called sched_yield.
    Yielded = 2,
    /// Not runnable: it sleeps, or waits for a timer or another task.
    Sleeping = 3,
    /// Not runnable: it waits for a device (uninterruptible).
    BlockedIo = 4,
    /// It has exited.
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

    /// Name in results of how the slice ended.
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

/// What an event records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The CPU switches from `prev` to `next`. `None` is the idle task. `out` is why `prev` left.
    Switch {
        /// The task that leaves the CPU.
        prev: Option<TaskId>,
        /// The task that runs next.
        next: Option<TaskId>,
        /// Why `prev` left.
        out: SwitchOut,
    },
    /// `task` becomes runnable on the event's CPU after a sleep. `waker` is the task that woke it;
    /// `None` if a timer or a device did.
    Wakeup {
        /// The task that wakes.
        task: TaskId,
        /// The task that woke it.
        waker: Option<TaskId>,
    },
    /// `parent` creates `task` (`None`: the launcher does). It is runnable on the event's CPU.
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
        /// The CPU that it left.
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
    /// `task`, running on the event's CPU, is about to block on `object`. The switch follows. A
    /// task that sleeps, or waits for a timer or a device, has no such event, because its switch
    /// tells enough. In a recording of a kernel the wait may end before the switch.
    Block {
        /// The task.
        task: TaskId,
        /// The object it waits for, announced by [`TraceSink::object`].
        object: ObjectId,
    },
    /// `count` events of the event's CPU were lost before this time. A `count` of 0 means that the
    /// recording of a running system begins here, and that earlier events are unknown.
    Lost {
        /// Number of lost events.
        count: u32,
    },
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Time (ns since the start of the run).
    pub time_ns: Nanos,
    /// The CPU. For `Wakeup`, `Fork` and `Migrate` it is the CPU on which the task is placed.
    pub cpu: CpuId,
    /// What happened.
    pub kind: EventKind,
}

/// Facts about a task that hold for the whole trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskInfo {
    /// Name, unique in the run.
    pub name: String,
    /// Index of its description in the workload; `None` for a command on the host.
    pub spec: Option<u32>,
    /// Process id on the host, 0 in the simulator.
    pub pid: u32,
}

/// The kind of object that a task waits for.
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

    /// Name in results.
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

/// Facts about an object that hold for the whole trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObjectInfo {
    /// Name. The name of a set of objects is their names with `|` between them.
    pub name: String,
    /// Kind.
    pub kind: WaitKind,
}

/// The state of tasks and CPUs at the first event of a part of a longer trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A CPU runs this task; `None`: it is idle.
    Runs {
        /// The CPU.
        cpu: CpuId,
        /// The task that has it.
        task: Option<TaskId>,
    },
    /// A task waits for a CPU.
    Waits {
        /// The task.
        task: TaskId,
        /// On whose queue it waits.
        cpu: CpuId,
    },
    /// A task sleeps.
    Sleeps {
        /// The task.
        task: TaskId,
        /// Where it ran last.
        cpu: CpuId,
        /// Whether it waits for a device (uninterruptible).
        is_device: bool,
    },
}

/// A queue of a sched_ext scheduler (DSQ).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DispatchQueue {
    /// The local queue of a CPU.
    Local(CpuId),
    /// The global queue of a node.
    Global(u32),
    /// A queue that the scheduler made, by its id.
    Own(u64),
}

impl fmt::Display for DispatchQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(cpu) => write!(f, "DSQ local of CPU {cpu}"),
            Self::Global(node) => write!(f, "DSQ global of node {node}"),
            Self::Own(id) => write!(f, "DSQ {id:#x}"),
        }
    }
}

/// Takes events as they come. A sink that keeps nothing costs nothing.
pub trait TraceSink {
    /// Announces a task, before the first event that names it. Ids ascend.
    fn task(&mut self, id: TaskId, info: &TaskInfo);

    /// Announces an object, before the first event that names it. Ids ascend. The default ignores
    /// objects.
    fn object(&mut self, _id: ObjectId, _info: &ObjectInfo) {}

    /// The task has another name from now on, because it called exec or prctl. Sinks that keep the
    /// first name need not implement it.
    fn renamed(&mut self, _id: TaskId, _name: &str) {}

    /// What the recording finds at its start. Called only at time 0, after the loss of 0 events
    /// ([`EventKind::Lost`]) with which such a recording begins. It counts as no event: a task that
    /// is found waiting was not woken. Sinks that write need not implement it.
    fn found(&mut self, _found: Found) {}

    /// One event.
    fn event(&mut self, event: &Event);

    /// Whether the sink uses virtual runtimes. A simulator asks once, before the run, and computes
    /// none if the sink does not. Default: no.
    fn wants_vruntime(&self) -> bool {
        false
    }

    /// Takes the virtual runtime of a task (ns at nice 0), relative to the min_vruntime of its
    /// queue. Traces of events do not contain it. Called only if [`TraceSink::wants_vruntime`].
    fn vruntime(&mut self, _time_ns: Nanos, _task: TaskId, _value: i64) {}

    /// Whether the sink uses the lengths of dispatch queues. A simulator asks once, before the run.
    /// Default: no.
    fn wants_queues(&self) -> bool {
        false
    }

    /// Takes the number of tasks in a dispatch queue. It may be the same as before. Traces of
    /// events do not contain it. Called only if [`TraceSink::wants_queues`].
    fn queue_length(&mut self, _time_ns: Nanos, _queue: DispatchQueue, _nr_tasks: u32) {}

    /// The run ended at `end_ns`. Called once, last.
    fn end(&mut self, _end_ns: Nanos) {}
}

/// A sink that keeps nothing.
#[derive(Default, Debug, Clone, Copy)]
pub struct NullSink;

impl TraceSink for NullSink {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}
    fn event(&mut self, _event: &Event) {}
}

/// A sink that keeps everything in memory, for tests and short runs.
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
    fn renamed(&mut self, id: TaskId, name: &str) {
        (**self).renamed(id, name);
    }
    fn found(&mut self, found: Found) {
        (**self).found(found);
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
    fn wants_queues(&self) -> bool {
        (**self).wants_queues()
    }
    fn queue_length(&mut self, time_ns: Nanos, queue: DispatchQueue, nr_tasks: u32) {
        (**self).queue_length(time_ns, queue, nr_tasks);
    }
    fn end(&mut self, end_ns: Nanos) {
        (**self).end(end_ns);
    }
}

/// A pair of sinks: both take everything.
impl<A: TraceSink, B: TraceSink> TraceSink for (A, B) {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.0.task(id, info);
        self.1.task(id, info);
    }
    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.0.object(id, info);
        self.1.object(id, info);
    }
    fn renamed(&mut self, id: TaskId, name: &str) {
        self.0.renamed(id, name);
        self.1.renamed(id, name);
    }
    fn found(&mut self, found: Found) {
        self.0.found(found);
        self.1.found(found);
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
    fn wants_queues(&self) -> bool {
        self.0.wants_queues() || self.1.wants_queues()
    }
    fn queue_length(&mut self, time_ns: Nanos, queue: DispatchQueue, nr_tasks: u32) {
        self.0.queue_length(time_ns, queue, nr_tasks);
        self.1.queue_length(time_ns, queue, nr_tasks);
    }
    fn end(&mut self, end_ns: Nanos) {
        self.0.end(end_ns);
        self.1.end(end_ns);
    }
}
