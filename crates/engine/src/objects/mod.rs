// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tasks share and wait on: mutexes, condition variables, barriers, semaphores, events,
//! channels, sets of these, and the exit of children.
//!
//! Modelled as glibc (2.41) and Linux (6.12) do it, as far as a scheduler can tell:
//!
//! - **Normal mutex** (lowlevellock and futex): an unlock frees the mutex and wakes the first
//!   waiter, which tries again when it runs; a task that comes in between may take it first.
//!   Locking a free mutex, and unlocking one that nobody waited for, is no system call and costs
//!   nothing.
//! - **Priority inheritance** (FUTEX_LOCK_PI, kernel/locking/rtmutex.c): an unlock hands the mutex
//!   to the top waiter. Until that runs, a more important task that locks takes it away
//!   (`rt_mutex_steal`). The holder runs with the top waiter's priority, along chains: `boost.rs`.
//! - **Ceiling**: the holder runs at the ceiling from the moment it has the mutex. A fair task
//!   becomes a real-time one for that time (glibc would refuse it the lock). Waiting is as for a
//!   normal mutex. Each change of priority is a system call.
//! - **Order of waiters**: by real-time priority, then first come, first served, for futexes
//!   (`plist` in kernel/futex) and rt-mutexes alike; among fair tasks nice does not count. Deadline
//!   tasks stand before all others, at an rt-mutex by deadline.
//! - **Condition variable**: a woken task locks the mutex again as any other comer; nothing is
//!   requeued. No spurious wake-ups.
//! - **Semaphore**: a post wakes the first waiter, which tries again when it runs.
//! - **Event** (rt-app's suspend and resume): a resume with nobody waiting is lost.
//! - **Pipe and socket pair**: `channel.rs`.
//!
//! A wake-up costs the waker `wakeup_ns` and happens on its CPU. The time of a call passes after
//! its effect, but that of one that will block before it, where blocking takes time: `pay`. Left
//! out: spinning before a futex wait, robust lists, timeouts, signals, read-write locks, the
//! internal lock of a condition variable.

mod boost;
mod channel;
mod mutex;
mod pay;
mod queue;
mod spin;
mod stuck;
mod sync;
mod wait_set;

pub use stuck::BlockedTask;

use crate::engine::Engine;
use crate::error::SimError;
use crate::exec::Waiting;
use crate::step::Next;
use channel::{Channel, ChannelEnds};
use mutex::Mutex;
use queue::WaitQueue;
use schedlab_model::arrivals::Arrival;
use schedlab_model::{
    CpuId, EventKind, ObjectId, ObjectKind, Op, Step, TaskId, TraceSink, Workload,
};
use schedlab_sched::boundary::core::TaskState;
pub(crate) use spin::SPIN_ENDS;
use std::collections::VecDeque;

/// The state of an object.
#[derive(Debug)]
pub(crate) enum Object {
    Mutex(Mutex),
    Condvar(WaitQueue),
    Barrier { parties: u32, waiters: Vec<TaskId> },
    Semaphore { value: u32, waiters: WaitQueue, pollers: Vec<TaskId> },
    Event { waiters: Vec<TaskId> },
    Channel(Channel),
}

/// All objects of a run.
#[derive(Debug)]
pub(crate) struct Objects {
    objects: Vec<Object>,
    ends: ChannelEnds,
    /// Whether tasks of each description wait for children.
    joins: Vec<bool>,
    /// Tasks that spin for a mutex, in the order in which they began.
    spinners: Vec<(TaskId, ObjectId)>,
}

/// The engine's state of a task that uses objects.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// A step that continues when the task runs again: it was woken to try again, or the time of
    /// its call has passed.
    pub pending: Option<Step>,
    /// The time of the call on the way to the switch has passed: `pending` may block at once.
    pub is_paid: bool,
    /// The part of it that the step will charge again, after a wake-up.
    pub wake_paid_ns: schedlab_model::Nanos,
    /// The tasks that it has yet to wake in a call, or in one call each.
    pub wakes: Vec<TaskId>,
    /// It has forked a task.
    pub has_forked: bool,
    /// Whether it has slept, if it was forked and [`schedlab_model::Costs::child_sleep_ns`] > 0.
    pub has_slept: bool,
    /// Time (ns) of the pages that it has yet to copy after a fork.
    pub copies_ns: schedlab_model::Nanos,
    /// It has been switched out in the fork that it is in.
    pub is_switched: bool,
    /// Its last child, unless it has been switched out since that fork.
    pub young: Option<TaskId>,
    /// Its last child, if it has not written to its heap since that fork.
    pub heap_child: Option<TaskId>,
    /// It is in a part of a call in which it passes no point at which it might sleep.
    pub has_no_point: bool,
    /// It is exiting, and can be preempted again in a kernel that is not preemptible.
    pub has_freed: bool,
    /// It is exiting, and has left its autogroup.
    pub has_left_group: bool,
    /// It is exiting, and its parent knows.
    pub has_left: bool,
    /// Whether it has handed its first memory to RCU, as it exits.
    pub has_called_rcu: bool,
    /// It has exited, and its parent has not waited for it (only with threads of the kernel).
    pub is_zombie: bool,
    /// Some of its children are such.
    pub has_zombies: bool,
    /// The deadline task whose parameters it uses.
    pub donor: Option<TaskId>,
    /// Mutexes it holds, in order of locking.
    pub held: Vec<ObjectId>,
    /// Children in the order of their forks, without those that it has waited for. Only for tasks
    /// that wait for some.
    pub children: VecDeque<TaskId>,
    /// Children that exited since it last looked, if the kernel looks through a list.
    pub reaped: u32,
}

impl Objects {
    /// The objects of `workload` in their initial state.
    pub fn new(workload: &Workload, arrivals: &[Arrival]) -> Self {
        let state = |kind: ObjectKind| match kind {
            ObjectKind::Mutex { protocol } => Object::Mutex(Mutex::new(protocol)),
            ObjectKind::Condvar => Object::Condvar(WaitQueue::default()),
            ObjectKind::Barrier { parties } => Object::Barrier { parties, waiters: Vec::new() },
            ObjectKind::Semaphore { initial } => Object::Semaphore {
                value: initial,
                waiters: WaitQueue::default(),
                pollers: Vec::new(),
            },
            ObjectKind::Event => Object::Event { waiters: Vec::new() },
            ObjectKind::Channel { kind, capacity_bytes } => {
                Object::Channel(Channel::new(kind, capacity_bytes))
            }
        };
        let joins = |op: &Op| matches!(op, Op::JoinAll | Op::Join { .. });
        let objects: Vec<Object> =
            workload.objects.iter().map(|object| state(object.kind)).collect();
        let mut all = Self {
            ends: ChannelEnds::of(workload, &objects),
            objects,
            spinners: Vec::new(),
            joins: workload.tasks.iter().map(|t| t.program.ops.iter().any(joins)).collect(),
        };
        arrivals.iter().for_each(|arrival| all.open_ends(arrival.spec));
        all
    }

    /// Whether tasks of description `spec` wait for children.
    pub fn joins(&self, spec: u32) -> bool {
        self.joins[spec as usize]
    }

    fn mutex(&mut self, id: ObjectId) -> &mut Mutex {
        match &mut self.objects[id.index()] {
            Object::Mutex(mutex) => mutex,
            _ => unreachable!("the workload was checked: object {id} is a mutex"),
        }
    }

    fn condvar(&mut self, id: ObjectId) -> &mut WaitQueue {
        match &mut self.objects[id.index()] {
            Object::Condvar(waiters) => waiters,
            _ => unreachable!("the workload was checked: object {id} is a condition variable"),
        }
    }

    fn channel(&mut self, id: ObjectId) -> &mut Channel {
        match &mut self.objects[id.index()] {
            Object::Channel(channel) => channel,
            _ => unreachable!("the workload was checked: object {id} is a channel"),
        }
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// The state of `task` for its use of objects.
    pub(crate) fn shared(&mut self, task: TaskId) -> &mut Shared {
        self.tasks[task].shared.get_or_insert_default()
    }

    /// Executes a step on objects. `retried`: the task was woken during the step.
    pub(crate) fn object_step(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        step: Step,
        retried: bool,
    ) -> Next {
        if retried && !self.shared(task).wakes.is_empty() {
            return self.calls_again(task, step);
        }
        match step {
            Step::Lock { object } => self.lock(cpu, task, object, retried),
            Step::Unlock { object } => self.unlock(cpu, task, object),
            Step::Wait { condvar, mutex } => self.wait(cpu, task, condvar, mutex),
            Step::Sync { condvar, mutex } => {
                self.signal(cpu, task, condvar);
                self.wait(cpu, task, condvar, mutex)
            }
            Step::Signal { object } => self.signal(cpu, task, object),
            Step::Broadcast { object } => self.broadcast(cpu, task, object),
            Step::Barrier { object } => self.barrier(cpu, task, object),
            Step::SemWait { object } => self.sem_wait(cpu, task, object),
            Step::SemPost { object } => self.sem_post(cpu, task, object),
            Step::Suspend { object } => self.suspend(cpu, task, object),
            Step::Resume { object } => self.resume(cpu, task, object),
            Step::Send { channel, bytes } => self.send(cpu, task, channel, bytes, retried),
            Step::Receive { channel, bytes } => self.receive(cpu, task, channel, bytes, retried),
            Step::WaitAny { set } => self.wait_any(cpu, task, set),
            Step::Join { task: spec } => {
                self.charge(task, self.costs.syscall_ns);
                self.wait_for_children(cpu, task, Some(spec))
            }
            _ => unreachable!("step {step:?} touches no object"),
        }
    }

    /// `task`, running on `cpu`, blocks on `object`. It continues with `pending`.
    fn block_on(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        object: ObjectId,
        pending: Option<Step>,
    ) -> Next {
        debug_assert_eq!(self.tasks[task].waiting, Waiting::No, "task {task} waits twice");
        debug_assert_eq!(self.core.rq(cpu).curr, Some(task), "task {task} blocks without a CPU");
        self.tasks[task].waiting = Waiting::On(object);
        self.charge(task, self.costs.block_ns);
        if pending.is_some() {
            self.shared(task).pending = pending;
        }
        self.emit(cpu, EventKind::Block { task, object });
        Next::Block(TaskState::Sleeping)
    }

    /// `waker`, running on `cpu`, wakes `task` and is charged for it.
    fn wake_waiter(&mut self, cpu: CpuId, waker: TaskId, task: TaskId, sync: bool) {
        let waiting = self.tasks[task].waiting;
        debug_assert!(matches!(waiting, Waiting::On(_)), "task {task} does not wait: {waiting:?}");
        self.charge(waker, self.costs.wakeup_ns);
        self.wake_sync(task, cpu, Some(waker), sync);
    }

    /// The program of `task` uses an object in a way that is not allowed. Ends the run.
    #[cold]
    fn misuse(&mut self, task: TaskId, object: ObjectId, what: &'static str) -> Next {
        let spec = &self.workload.objects[object.index()];
        self.fail(SimError::Misuse {
            task: self.tasks[task].name.clone(),
            what,
            object: format!("{} {:?}", spec.kind.name(), spec.name),
            time_ns: self.core.now,
        });
        Next::Continue
    }

    /// Checks that an exiting task holds no mutex, because it could never be unlocked.
    pub(crate) fn check_exit(&mut self, task: TaskId) {
        let held = self.tasks[task].shared.as_ref().and_then(|s| s.held.first().copied());
        if let Some(mutex) = held {
            self.misuse(task, mutex, "exits while it holds");
        }
    }
}
