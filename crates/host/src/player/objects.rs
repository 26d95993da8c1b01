// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that act on objects: locks, signals, messages.

use super::{Failure, Player};
use crate::attr;
use crate::objects::mutex::{Taken, sleep_for_ever};
use crate::sys::{self, RawSchedAttr};
use schedlab_model::{MutexProtocol, ObjectId, Policy, Step};
use std::io;
use std::sync::atomic::Ordering;

/// Indices into [`super::STAGES`].
mod stage {
    pub const LOCK: u32 = 11;
    pub const LOCK_HELD: u32 = 12;
    pub const UNLOCK_FREE: u32 = 13;
    pub const WAIT_FREE: u32 = 14;
    pub const UNLOCK: u32 = 15;
    pub const CEILING: u32 = 16;
    pub const SEMAPHORE: u32 = 17;
    pub const CHANNEL: u32 = 18;
    pub const WAIT_ANY: u32 = 19;
    pub const OBJECT: u32 = 20;
}

/// Whether the program continues.
pub enum Goes {
    /// It continues.
    On,
    /// The other end of a channel is closed for good: the program ends.
    NoFurther,
}

impl Player<'_> {
    /// Executes one step that names objects.
    pub(super) fn act(&mut self, step: Step) -> Result<Goes, Failure> {
        let goes = match step {
            Step::Lock { object } => self.lock(object).map(|()| Goes::On),
            Step::Unlock { object } => self.unlock(object).map(|()| Goes::On),
            Step::Wait { condvar, mutex } => self.wait(condvar, mutex, false).map(|()| Goes::On),
            Step::Sync { condvar, mutex } => self.wait(condvar, mutex, true).map(|()| Goes::On),
            Step::Signal { object } => self.wake(object, 1).map(|()| Goes::On),
            Step::Broadcast { object } | Step::Resume { object } => {
                self.wake(object, u32::MAX).map(|()| Goes::On)
            }
            Step::Suspend { object } => self.suspend(object).map(|()| Goes::On),
            Step::Barrier { object } => {
                let objects = &self.plan.objects;
                let waited = objects.barrier(object, &mut || self.waits.begin(object));
                waited.map_err(Failure::on(stage::OBJECT, object)).map(|()| Goes::On)
            }
            Step::SemWait { object } => {
                let objects = &self.plan.objects;
                let waited = objects.sem_wait(object, &mut || self.waits.begin(object));
                waited.map_err(Failure::on(stage::SEMAPHORE, object)).map(|()| Goes::On)
            }
            Step::SemPost { object } => {
                let posted = self.plan.objects.sem_post(object);
                posted.map_err(Failure::on(stage::SEMAPHORE, object)).map(|()| Goes::On)
            }
            Step::Send { channel, bytes } => self.transfer(channel, bytes, true),
            Step::Receive { channel, bytes } => self.transfer(channel, bytes, false),
            Step::WaitAny { set } => self.wait_any(set).map(|()| Goes::On),
            _ => Ok(Goes::On),
        };
        self.waits.end();
        goes
    }

    fn lock(&mut self, object: ObjectId) -> Result<(), Failure> {
        if self.held.holds(object.0) {
            let error = io::Error::from_raw_os_error(libc::EDEADLK);
            return Err(Failure::on(stage::LOCK_HELD, object)(error));
        }
        let Some((cell, protocol)) = self.plan.objects.mutex(object) else { return Ok(()) };
        if let MutexProtocol::Ceiling { rt_priority } = protocol {
            let ceiling = rt_priority.max(self.held.ceiling());
            self.set_ceiling(ceiling).map_err(Failure::on(stage::CEILING, object))?;
        }
        let waits = &self.waits;
        let taken = self.held.lock(object.0, cell, protocol, &mut || waits.begin(object));
        if taken.map_err(Failure::on(stage::LOCK, object))? == Taken::Abandoned
            && !self.is_run_over()
        {
            let slot = self.memory.slot(self.index);
            slot.took_abandoned.store(object.0 + 1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn unlock(&mut self, object: ObjectId) -> Result<(), Failure> {
        let objects = &self.plan.objects;
        let Some((_, protocol)) = objects.mutex(object) else { return Ok(()) };
        if !self.held.holds(object.0) {
            let error = io::Error::from_raw_os_error(libc::EPERM);
            return Err(Failure::on(stage::UNLOCK_FREE, object)(error));
        }
        let cell_of = |id| objects.mutex(ObjectId(id)).map(|(cell, _)| cell);
        self.held.unlock(object.0, cell_of).map_err(Failure::on(stage::UNLOCK, object))?;
        if let MutexProtocol::Ceiling { .. } = protocol {
            let ceiling = self.held.ceiling();
            self.set_ceiling(ceiling).map_err(Failure::on(stage::CEILING, object))?;
        }
        Ok(())
    }

    /// Runs with at least the real-time priority `ceiling`, or with its own (0).
    pub(super) fn set_ceiling(&mut self, ceiling: u8) -> io::Result<()> {
        if ceiling == self.ceiling {
            return Ok(());
        }
        let is_below = |ceiling| self.attr.rt_priority < ceiling;
        if is_below(ceiling) || is_below(self.ceiling) {
            let mut raw = RawSchedAttr::new(&self.attr);
            if is_below(ceiling) {
                let policy = if self.attr.policy.is_rt() { self.attr.policy } else { Policy::Fifo };
                raw = RawSchedAttr {
                    size: raw.size,
                    policy: policy as u32,
                    priority: u32::from(ceiling),
                    ..RawSchedAttr::default()
                };
            }
            sys::sched_setattr(0, &raw)?;
        }
        self.ceiling = ceiling;
        Ok(())
    }

    /// Changes the task's own attributes. The ceilings of its mutexes still apply.
    pub(super) fn set_attr(&mut self, attr: &schedlab_model::SchedAttr) -> io::Result<()> {
        attr::apply_to_self(attr, self.attr.cgroup, self.plan)?;
        self.attr = *attr;
        let ceiling = std::mem::take(&mut self.ceiling);
        self.set_ceiling(ceiling)
    }

    /// Releases the mutex, waits, and locks it again. `signals`: first wakes a task that waits
    /// already.
    fn wait(&mut self, condvar: ObjectId, mutex: ObjectId, signals: bool) -> Result<(), Failure> {
        if !self.held.holds(mutex.0) {
            let error = io::Error::from_raw_os_error(libc::EPERM);
            return Err(Failure::on(stage::WAIT_FREE, mutex)(error));
        }
        if signals {
            self.wake(condvar, 1)?;
        }
        let objects = &self.plan.objects;
        let (queue, map) = objects.queue(condvar).map_err(Failure::on(stage::OBJECT, condvar))?;
        let ticket = queue.enter(map);
        self.unlock(mutex)?;
        queue.wait(map, ticket, &mut || self.waits.begin(condvar));
        self.lock(mutex)
    }

    fn wake(&self, object: ObjectId, most: u32) -> Result<(), Failure> {
        let queue = self.plan.objects.queue(object);
        let (queue, map) = queue.map_err(Failure::on(stage::OBJECT, object))?;
        queue.grant(map, most);
        Ok(())
    }

    fn suspend(&self, event: ObjectId) -> Result<(), Failure> {
        let queue = self.plan.objects.queue(event);
        let (queue, map) = queue.map_err(Failure::on(stage::OBJECT, event))?;
        queue.wait(map, queue.enter(map), &mut || self.waits.begin(event));
        Ok(())
    }

    fn transfer(&mut self, channel: ObjectId, bytes: u64, sends: bool) -> Result<Goes, Failure> {
        let (objects, waits) = (&self.plan.objects, &self.waits);
        let on_block = &mut || waits.begin(channel);
        let message = &mut self.buffers.message;
        let moved = if sends {
            objects.send(channel, bytes, message, on_block)
        } else {
            objects.receive(channel, bytes, message, on_block)
        };
        if moved.map_err(Failure::on(stage::CHANNEL, channel))?.is_ok() {
            return Ok(Goes::On);
        }
        if self.is_run_over() {
            sleep_for_ever();
        }
        let slot = self.memory.slot(self.index);
        slot.closed_channel.store(channel.0 + 1, Ordering::Relaxed);
        Ok(Goes::NoFurther)
    }

    fn wait_any(&self, set: u32) -> Result<(), Failure> {
        let object = self.plan.trace_set(set);
        let epoll = self.epolls.iter().find(|(of, _)| *of == set).map(|(_, epoll)| *epoll);
        if !self.plan.objects.seems_ready(set) {
            self.waits.begin(object);
        }
        sys::epoll_wait(epoll.unwrap_or(-1)).map_err(Failure::on(stage::WAIT_ANY, object))
    }

    /// Whether the launcher has begun to end the remaining tasks: later events are not part of the
    /// run.
    fn is_run_over(&self) -> bool {
        self.memory.header().end_ns.load(Ordering::Acquire) != 0
    }
}
