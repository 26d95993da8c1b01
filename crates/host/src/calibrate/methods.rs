// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measurements. Each returns the samples (ns) of one repetition.
//!
//! The ping-pong over pipes is that of lmbench's lat_ctx (McVoy and Staelin, 1996). The measuring
//! thread is bound to one CPU, and so are the processes that it forks.

use crate::sys::{self, RawSchedAttr};
use schedlab_model::CpuMask;
use std::hint::black_box;

/// A reading of the clock.
pub fn clock() -> Vec<u64> {
    per_round(20, 100, || {
        black_box(sys::monotonic_ns());
    })
}

/// A system call that does nothing.
pub fn syscalls() -> Vec<u64> {
    per_round(40, 200, || {
        black_box(sys::getppid());
    })
}

/// Mean time of one `step` in each of `rounds` rounds of `count`.
fn per_round(rounds: u32, count: u64, mut step: impl FnMut()) -> Vec<u64> {
    (0..rounds)
        .map(|_| {
            let start = sys::monotonic_ns();
            for _ in 0..count {
                step();
            }
            (sys::monotonic_ns() - start) / count
        })
        .collect()
}

/// A process forked for a measurement, ended and reaped on drop.
struct Peer(u32);

impl Peer {
    fn start(body: impl FnOnce()) -> std::io::Result<Self> {
        match sys::fork()? {
            Some(pid) => Ok(Self(pid)),
            None => {
                body();
                sys::exit_now(0)
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        sys::kill_now(self.0 as i32);
        // A child that no longer exists is not an error here.
        let _ = sys::reap(self.0);
    }
}

/// Both ends of a channel, closed on drop.
struct Channel {
    read: i32,
    write: i32,
}

impl Channel {
    fn pipe() -> std::io::Result<Self> {
        let (read, write) = sys::pipe()?;
        Ok(Self { read, write })
    }

    fn socket() -> std::io::Result<Self> {
        let (read, write) = sys::socket_pair()?;
        Ok(Self { read, write })
    }

    /// A transfer: half of a write and a read, without waiting.
    fn transfers(&self) -> Vec<u64> {
        let both = per_round(40, 100, || {
            sys::write_byte(self.write);
            sys::read_byte(self.read);
        });
        both.into_iter().map(|ns| ns / 2).collect()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        sys::close(self.read);
        sys::close(self.write);
    }
}

/// One switch between two processes on one CPU that only yield to each other, including the system
/// call. As root under FIFO, where each yield switches. Otherwise samples in which not nearly every
/// yield switched are left out.
pub fn yields() -> std::io::Result<Vec<u64>> {
    const COUNT: u64 = 100;
    let enter_fifo = || {
        let fifo = RawSchedAttr {
            size: size_of::<RawSchedAttr>() as u32,
            policy: libc::SCHED_FIFO as u32,
            priority: 1,
            ..RawSchedAttr::default()
        };
        // Without the right to it, the check below decides.
        let _ = sys::sched_setattr(0, &fifo);
    };
    enter_fifo();
    let peer = Peer::start(|| {
        loop {
            sys::sched_yield();
        }
    })?;
    let mut samples = Vec::new();
    for _ in 0..50 {
        let before = sys::own_usage_of_thread().nr_involuntary;
        let start = sys::monotonic_ns();
        for _ in 0..COUNT {
            sys::sched_yield();
        }
        let took = sys::monotonic_ns() - start;
        if sys::own_usage_of_thread().nr_involuntary - before >= COUNT * 9 / 10 {
            samples.push(took / (2 * COUNT));
        }
    }
    drop(peer);
    let other = RawSchedAttr { size: size_of::<RawSchedAttr>() as u32, ..RawSchedAttr::default() };
    sys::sched_setattr(0, &other)?;
    Ok(samples)
}

/// A transfer of a byte through a pipe that only this thread uses.
pub fn own_pipe() -> std::io::Result<Vec<u64>> {
    Ok(Channel::pipe()?.transfers())
}

/// A transfer of a byte through a pair of sockets that only this thread uses.
pub fn own_socket() -> std::io::Result<Vec<u64>> {
    Ok(Channel::socket()?.transfers())
}

/// One hop of a ping-pong with a process on the same CPU: half a round trip.
pub fn ping_pong() -> std::io::Result<Vec<u64>> {
    let (there, back) = (Channel::pipe()?, Channel::pipe()?);
    let _peer = Peer::start(|| while sys::read_byte(there.read) && sys::write_byte(back.write) {})?;
    let rounds = per_round(50, 100, || {
        sys::write_byte(there.write);
        sys::read_byte(back.read);
    });
    Ok(rounds.into_iter().map(|round| round / 2).collect())
}

/// How late absolute timers end a sleep on this CPU, which is idle meanwhile.
pub fn timer_lateness() -> Vec<u64> {
    (0..40)
        .map(|_| {
            let deadline = sys::monotonic_ns() + 300_000;
            sys::sleep_until_ns(deadline);
            sys::monotonic_ns() - deadline
        })
        .collect()
}

/// Gaps in a busy loop of 150 ms, caused by ticks. Shorter gaps are noise of the clock; much longer
/// ones are other tasks or the hypervisor.
pub fn tick_gaps() -> Vec<u64> {
    const NOISE_NS: u64 = 400;
    const FOREIGN_NS: u64 = 40_000;
    let end = sys::monotonic_ns() + 150_000_000;
    let mut gaps = Vec::new();
    let mut before = sys::monotonic_ns();
    while before < end {
        let now = sys::monotonic_ns();
        if (NOISE_NS..FOREIGN_NS).contains(&(now - before)) {
            gaps.push(now - before);
        }
        before = now;
    }
    gaps
}

/// CPU time of fork in the parent; the child ends at once.
pub fn forks() -> std::io::Result<Vec<u64>> {
    let mut samples = Vec::new();
    for _ in 0..10 {
        let start = sys::thread_cpu_ns();
        let peer = Peer::start(|| {})?;
        samples.push(sys::thread_cpu_ns() - start);
        drop(peer);
    }
    Ok(samples)
}

/// Extra time of a pass over warm memory right after a move to another CPU.
pub fn migrations(home: &CpuMask, away: &CpuMask) -> std::io::Result<Vec<u64>> {
    let mut memory = vec![1u64; 8192];
    let mut pass = || {
        let start = sys::monotonic_ns();
        for word in memory.iter_mut().step_by(8) {
            *word = black_box(*word).wrapping_add(1);
        }
        sys::monotonic_ns() - start
    };
    let mut samples = Vec::new();
    for round in 0..40 {
        let warm = (0..3).map(|_| pass()).min().unwrap_or(0);
        sys::sched_setaffinity(0, if round % 2 == 0 { away } else { home })?;
        samples.push(pass().saturating_sub(warm));
    }
    sys::sched_setaffinity(0, home)?;
    Ok(samples)
}
