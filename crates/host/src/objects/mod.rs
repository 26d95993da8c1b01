// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objects of a workload on the running kernel: what its tasks share and wait on.
//!
//! | object | made of |
//! |---|---|
//! | mutex | a robust futex; FUTEX_LOCK_PI for inheritance; sched_setattr(2) for a ceiling |
//! | condition variable, event | a queue of futexes ([`queue`]) |
//! | barrier, semaphore | a futex; a semaphore in a set of objects is an eventfd(2) |
//! | channel | pipe(2) or socketpair(2) |
//! | set of objects | epoll(7), level-triggered |
//!
//! Memory is shared and allocated before the first fork. The launcher creates the descriptors; they
//! stay open only in tasks that use them, or that fork such tasks. Nothing here needs cleanup:
//! SIGKILL ends every wait.

mod channel;
mod counters;
pub mod mutex;
pub mod queue;

use crate::player::largest;
use crate::sys::{self, SharedMap};
use channel::{Channel, Closed};
use counters::{Barrier, Semaphore};
use mutex::{HeldMutexes, MutexCell};
use queue::WaitQueue;
use schedlab_model::trace::ObjectInfo;
use schedlab_model::workload::uses::{READS, Uses, WRITES};
use schedlab_model::{MutexProtocol, ObjectId, ObjectKind, Op, Workload};
use std::io;

/// The place of an object.
#[derive(Debug)]
enum Cell {
    Mutex { at: usize, protocol: MutexProtocol },
    Queue(WaitQueue),
    Barrier(Barrier),
    Semaphore(Semaphore),
    Channel(Channel),
}

/// The objects of one run.
#[derive(Debug, Default)]
pub struct Objects {
    map: Option<SharedMap>,
    cells: Vec<Cell>,
    sets: Vec<Vec<ObjectId>>,
    /// Names by the numbers of the trace.
    infos: Vec<ObjectInfo>,
    /// Uses by description.
    uses: Vec<Uses>,
}

/// Addresses and lengths of the functions that only tasks with objects call.
pub fn code() -> impl Iterator<Item = (usize, usize)> {
    let functions = [
        Objects::barrier as *const () as usize,
        Objects::sem_wait as *const () as usize,
        Objects::sem_post as *const () as usize,
        Objects::send as *const () as usize,
        Objects::receive as *const () as usize,
        Channel::send as *const () as usize,
        Channel::receive as *const () as usize,
        Semaphore::wait as *const () as usize,
        Semaphore::post as *const () as usize,
        WaitQueue::wait as *const () as usize,
        WaitQueue::grant as *const () as usize,
        HeldMutexes::lock as *const () as usize,
        sys::write_some as *const () as usize,
        sys::read_some as *const () as usize,
        sys::epoll_wait as *const () as usize,
        sys::futex_wait as *const () as usize,
        sys::futex_wake as *const () as usize,
        sys::futex_lock_pi as *const () as usize,
        sys::futex_unlock_pi as *const () as usize,
    ];
    functions.into_iter().map(|at| (at, sys::FUNCTION_LEN))
}

/// Space for an object that is not a queue: a cache line.
const CELL_LEN: usize = 64;

impl Objects {
    /// Memory for the objects of `workload`, of whose tasks at most `tasks_max` live at a time.
    pub fn new(workload: &Workload, tasks_max: u32) -> io::Result<Self> {
        let mut len = 0;
        let mut cells = Vec::with_capacity(workload.objects.len());
        let in_set = |index: usize| {
            workload.wait_sets.iter().flatten().any(|member| member.index() == index)
        };
        for (index, object) in workload.objects.iter().enumerate() {
            let at = len;
            len += CELL_LEN;
            cells.push(match object.kind {
                ObjectKind::Mutex { protocol } => Cell::Mutex { at, protocol },
                ObjectKind::Condvar | ObjectKind::Event => {
                    len = at + WaitQueue::len_for(tasks_max).next_multiple_of(CELL_LEN);
                    Cell::Queue(WaitQueue::new(at, tasks_max))
                }
                ObjectKind::Barrier { parties } => Cell::Barrier(Barrier { at, parties }),
                ObjectKind::Semaphore { initial } => {
                    Cell::Semaphore(Semaphore { at, initial, is_polled: in_set(index), fd: -1 })
                }
                ObjectKind::Channel { kind, capacity_bytes } => {
                    let message = largest_message(workload, index);
                    Cell::Channel(Channel::new(at, kind, capacity_bytes, message))
                }
            });
        }
        let objects = Self {
            map: (len > 0).then(|| SharedMap::new(len)).transpose()?,
            cells,
            sets: workload.wait_sets.clone(),
            infos: workload.trace_objects(),
            uses: Uses::of(workload),
        };
        objects.start();
        Ok(objects)
    }

    fn start(&self) {
        let Some(map) = &self.map else { return };
        for cell in &self.cells {
            if let Cell::Semaphore(semaphore) = cell {
                semaphore.start(map);
            }
        }
    }

    /// Names of the objects in a trace.
    pub fn infos(&self) -> &[ObjectInfo] {
        &self.infos
    }

    /// Creates descriptors and pages, in the launcher. The error names the object.
    pub fn open(&mut self) -> Result<(), String> {
        let Some(map) = &self.map else { return Ok(()) };
        for (cell, info) in self.cells.iter_mut().zip(&self.infos) {
            let opened = match cell {
                Cell::Channel(channel) => channel.open(map),
                Cell::Semaphore(semaphore) => semaphore.open(),
                _ => Ok(()),
            };
            opened.map_err(|error| {
                let advice = match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE) => ": raise the limit of open files",
                    Some(libc::EPERM) => {
                        ": its capacity is above /proc/sys/fs/pipe-max-size: lower it or be root"
                    }
                    _ => "",
                };
                format!("making {} {:?}: {error}{advice}", info.kind.name(), info.name)
            })?;
        }
        self.populate();
        Ok(())
    }

    /// Finds the pages of all objects, in the calling process.
    pub fn populate(&self) {
        if let Some(map) = &self.map {
            map.populate(0, usize::MAX / 2);
        }
    }

    /// Closes the descriptors that a task of description `to` does not need: of all, or of those
    /// that its parent of description `from` has.
    pub fn close_unused(&self, from: Option<u32>, to: u32) {
        let (from, to) = (from.map(|spec| &self.uses[spec as usize]), &self.uses[to as usize]);
        for (index, cell) in self.cells.iter().enumerate() {
            let has = from.map_or(READS | WRITES, |from| from.get(index));
            let unused = has & !to.get(index);
            close_ends(cell, unused);
        }
    }

    /// Closes every descriptor in the launcher, after all tasks have theirs.
    pub fn close_all(&self) {
        self.cells.iter().for_each(|cell| close_ends(cell, READS | WRITES));
    }

    fn map(&self) -> io::Result<&SharedMap> {
        self.map.as_ref().ok_or_else(bad)
    }

    /// A mutex and its protocol.
    pub fn mutex(&self, id: ObjectId) -> Option<(&MutexCell, MutexProtocol)> {
        match (self.cells.get(id.index()), &self.map) {
            // SAFETY: made of atomics, for which zero is valid.
            (Some(Cell::Mutex { at, protocol }), Some(map)) => {
                Some((unsafe { map.at(*at) }, *protocol))
            }
            _ => None,
        }
    }

    /// The queue of a condition variable or an event.
    pub fn queue(&self, id: ObjectId) -> io::Result<(WaitQueue, &SharedMap)> {
        match self.cells.get(id.index()) {
            Some(Cell::Queue(queue)) => Ok((*queue, self.map()?)),
            _ => Err(bad()),
        }
    }

    /// Waits for the other parties of a barrier.
    pub fn barrier(&self, id: ObjectId, on_block: &mut dyn FnMut()) -> io::Result<()> {
        match self.cells.get(id.index()) {
            Some(Cell::Barrier(barrier)) => barrier.wait(self.map()?, on_block),
            _ => return Err(bad()),
        }
        Ok(())
    }

    /// Decrements a semaphore, or waits.
    pub fn sem_wait(&self, id: ObjectId, on_block: &mut dyn FnMut()) -> io::Result<()> {
        match self.cells.get(id.index()) {
            Some(Cell::Semaphore(semaphore)) => semaphore.wait(self.map()?, on_block),
            _ => Err(bad()),
        }
    }

    /// Increments a semaphore.
    pub fn sem_post(&self, id: ObjectId) -> io::Result<()> {
        match self.cells.get(id.index()) {
            Some(Cell::Semaphore(semaphore)) => semaphore.post(self.map()?),
            _ => Err(bad()),
        }
    }

    fn channel(&self, id: ObjectId) -> io::Result<(&Channel, &SharedMap)> {
        match self.cells.get(id.index()) {
            Some(Cell::Channel(channel)) => Ok((channel, self.map()?)),
            _ => Err(bad()),
        }
    }

    /// Writes `bytes` bytes from `buffer` (its length at a time) into a channel.
    pub fn send(
        &self,
        id: ObjectId,
        bytes: u64,
        buffer: &[u8],
        on_block: &mut dyn FnMut(),
    ) -> io::Result<Result<(), Closed>> {
        let (channel, map) = self.channel(id)?;
        channel.send(map, bytes, buffer, on_block)
    }

    /// Reads `bytes` bytes into `buffer` (its length at a time) from a channel.
    pub fn receive(
        &self,
        id: ObjectId,
        bytes: u64,
        buffer: &mut [u8],
        on_block: &mut dyn FnMut(),
    ) -> io::Result<Result<(), Closed>> {
        let (channel, map) = self.channel(id)?;
        channel.receive(map, bytes, buffer, on_block)
    }

    /// An epoll instance for the set of objects `set`.
    pub fn epoll(&self, set: u32) -> io::Result<i32> {
        let members = self.sets.get(set as usize).ok_or_else(bad)?;
        sys::epoll_of(members.iter().filter_map(|id| match self.cells.get(id.index()) {
            Some(Cell::Channel(channel)) => Some(channel.read),
            Some(Cell::Semaphore(semaphore)) => Some(semaphore.fd),
            _ => None,
        }))
    }

    /// Whether an object of set `set` seems to be ready, by the tasks' own counts.
    pub fn seems_ready(&self, set: u32) -> bool {
        let (Some(map), Some(members)) = (&self.map, self.sets.get(set as usize)) else {
            return true;
        };
        members.iter().any(|id| match self.cells.get(id.index()) {
            Some(Cell::Channel(channel)) => channel.level(map) > 0,
            Some(Cell::Semaphore(semaphore)) => semaphore.level(map) > 0,
            _ => true,
        })
    }

    /// Channels whose capacity differs from the requested one: name, requested, actual (bytes).
    pub fn other_capacities(&self) -> Vec<(&str, u64, u64)> {
        let Some(map) = &self.map else { return Vec::new() };
        let with_names = self.cells.iter().zip(&self.infos);
        with_names
            .filter_map(|(cell, info)| match cell {
                Cell::Channel(channel) => {
                    let got = channel.capacity(map);
                    (got != 0 && got != channel.asked_bytes).then_some((
                        info.name.as_str(),
                        channel.asked_bytes,
                        got,
                    ))
                }
                _ => None,
            })
            .collect()
    }
}

/// Largest message (bytes) that a program sends to object `index`; 0: none.
fn largest_message(workload: &Workload, index: usize) -> u64 {
    let ops = workload.tasks.iter().flat_map(|task| &task.program.ops);
    let sizes = ops.filter_map(|op| match op {
        Op::Send { channel, bytes } if channel.index() == index => Some(largest(bytes)),
        _ => None,
    });
    sizes.max().unwrap_or(0)
}

fn close_ends(cell: &Cell, ends: u8) {
    match cell {
        Cell::Channel(channel) => {
            if ends & READS != 0 {
                sys::close(channel.read);
            }
            if ends & WRITES != 0 {
                sys::close(channel.write);
            }
        }
        Cell::Semaphore(semaphore) if semaphore.is_polled && ends & READS != 0 => {
            sys::close(semaphore.fd);
        }
        _ => {}
    }
}

/// The error for an operation on an object of another kind, which a checked workload never has.
fn bad() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}
