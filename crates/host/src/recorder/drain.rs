// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that empties the rings.
//!
//! It wakes on a timer or when asked to, never because of an event, copies the records, and passes
//! them on. Sorting and the sink's work happen on the caller's thread at normal priority. As root
//! the thread runs at SCHED_FIFO just below the launcher, so that no task of a run can keep it from
//! emptying the rings in time.

use super::ring::{Record, Rings};
use crate::attr::DRAIN_PRIORITY;
use crate::sys::{self, RawSchedAttr};
use schedlab_model::CpuMask;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The records of one round.
#[derive(Debug, Default)]
pub struct Batch {
    /// (CPU, its records in order); CPUs without any are left out.
    pub records: Vec<(u32, Vec<Record>)>,
    /// Every record of a later batch is later than this.
    pub watermark_ns: u64,
}

/// What a drain thread leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ended {
    /// Its pid, as the kernel counts threads.
    pub pid: u32,
    /// Its CPU time (ns).
    pub cpu_ns: u64,
}

/// Name of the thread.
pub const NAME: &str = "schedlab-drain";

/// A running drain thread.
#[derive(Debug)]
pub struct Drain {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Ended>>,
    /// Batches, in order.
    pub batches: Receiver<Batch>,
}

impl Drain {
    /// Starts the thread on `cpus`, with a round every `round_ns`.
    pub fn start(rings: Rings, cpus: CpuMask, round_ns: u64) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, batches) = channel();
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name(NAME.into())
            .spawn(move || work(&rings, cpus, round_ns, &seen, &sender))?;
        Ok(Self { stop, thread: Some(thread), batches })
    }

    /// Lets the thread do a round now; the following ones come at their distance after it.
    pub fn begin_round(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Ends the thread after one more round. The batches remain.
    pub fn stop(&mut self) -> Ended {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ended::default() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(
    rings: &Rings,
    cpus: CpuMask,
    round_ns: u64,
    stop: &AtomicBool,
    sender: &Sender<Batch>,
) -> Ended {
    // Without the rights it works at normal priority: the recorder counts and reports losses.
    let raw = RawSchedAttr {
        size: size_of::<RawSchedAttr>() as u32,
        policy: libc::SCHED_FIFO as u32,
        priority: u32::from(DRAIN_PRIORITY),
        ..RawSchedAttr::default()
    };
    let _ = sys::sched_setaffinity(0, &cpus);
    let _ = sys::sched_setattr(0, &raw);
    let mut next_ns = sys::monotonic_ns();
    loop {
        let is_last = stop.load(Ordering::Acquire);
        let batch = round(rings);
        if sender.send(batch).is_err() || is_last {
            return Ended { pid: sys::gettid(), cpu_ns: sys::thread_cpu_ns() };
        }
        next_ns = (next_ns + round_ns).max(sys::monotonic_ns());
        // Who ends the run does not wait for the next round.
        let pause_ns = next_ns.saturating_sub(sys::monotonic_ns());
        std::thread::park_timeout(Duration::from_nanos(pause_ns));
        next_ns = next_ns.min(sys::monotonic_ns());
    }
}

fn round(rings: &Rings) -> Batch {
    // A store may become visible a little later than the clock was read; 0.1 ms is ample.
    let watermark_ns = sys::monotonic_ns().saturating_sub(100_000);
    let mut batch = Batch { records: Vec::new(), watermark_ns };
    for cpu in 0..rings.nr_cpus() {
        rings.settle(cpu);
        let mut records = Vec::new();
        rings.drain(cpu, &mut records);
        if !records.is_empty() {
            batch.records.push((cpu, records));
        }
    }
    batch
}
