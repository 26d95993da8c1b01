// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures what scheduling costs on this machine, for the simulator's cost model. About 2 seconds.
//!
//! Each figure is a median over many samples, with the 10th and 90th percentile as its spread. All
//! is done by one thread bound to a CPU and by processes that it forks; nothing of the machine is
//! changed. Methods:
//! - syscall: getppid in a loop.
//! - context switch: two processes on one CPU that yield to each other, minus the system call.
//! - wakeup: a hop of a pipe ping-pong of two processes on one CPU (lmbench's lat_ctx, McVoy and
//!   Staelin, 1996), minus its write, its read and one switch.
//! - idle exit: lateness of an absolute timer on an idle CPU, minus one switch.
//! - tick: length of the gaps that timer interrupts tear into a busy loop.
//! - migration: extra time of a pass over 64 KiB right after moving to another CPU. Where two
//!   CPUs do not share the last-level cache the same pair gives the dearer figure; else it keeps
//!   its default.
//! - fork: CPU time of fork in the parent.
//! - copy, device: page-cache writes, O_DIRECT reads and O_SYNC writes of a file.

use crate::error::HostError;
use crate::files::{self, FileNeeds, TaskFiles};
use crate::machine;
use crate::sys::{self, RawSchedAttr};
use schedlab_model::machine::Device;
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::{Amount, Costs, CpuMask, Nanos, Op};
use std::hint::black_box;

/// One measured figure, ns.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Figure {
    /// Name, as in [`Costs::NAMES`] or a field of [`Device`].
    pub name: &'static str,
    /// Median.
    pub median_ns: Nanos,
    /// 10th percentile.
    pub p10_ns: Nanos,
    /// 90th percentile.
    pub p90_ns: Nanos,
    /// Samples.
    pub count: u64,
}

/// What was measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calibration {
    /// Costs: measured where possible, else the default.
    pub costs: Costs,
    /// The device: likewise.
    pub device: Device,
    /// The figures behind them.
    pub figures: Vec<Figure>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

/// Measures on the CPUs that this process may use.
pub fn calibrate() -> Result<Calibration, HostError> {
    let cpus = machine::usable_cpus();
    let worker = std::thread::Builder::new().name("calibrate".into()).spawn(move || measure(&cpus));
    worker
        .map_err(|error| HostError::system("starting the calibration", &error))?
        .join()
        .map_err(|_| HostError::System("the calibration broke off".into()))?
        .map_err(|error| HostError::system("calibrating", &error))
}

/// Median and spread of `samples`; `None` without any.
fn figure(name: &'static str, mut samples: Vec<u64>) -> Option<Figure> {
    samples.sort_unstable();
    let at = |percent: usize| samples.get(samples.len().saturating_sub(1) * percent / 100).copied();
    Some(Figure {
        name,
        median_ns: at(50)?,
        p10_ns: at(10)?,
        p90_ns: at(90)?,
        count: samples.len() as u64,
    })
}

/// `figure` with a fixed part taken off every sample.
fn less(name: &'static str, samples: Vec<u64>, part_ns: u64) -> Option<Figure> {
    figure(name, samples.into_iter().map(|sample| sample.saturating_sub(part_ns)).collect())
}

fn median_of(figure: &Option<Figure>) -> u64 {
    figure.as_ref().map_or(0, |figure| figure.median_ns)
}

fn measure(cpus: &CpuMask) -> std::io::Result<Calibration> {
    let mut order = cpus.iter();
    // The last CPU: interrupts of devices tend to go to the first.
    let home = order.by_ref().last().map_or(*cpus, CpuMask::only);
    let away = cpus.and_not(&home).first_cpu().map(CpuMask::only);
    sys::sched_setaffinity(0, &home)?;
    sys::set_timer_slack_ns(1)?;
    let read_clock = || {
        black_box(sys::monotonic_ns());
    };
    let clock = median_of(&figure("clock", per_round(200, 100, read_clock)));
    let own_pid = || {
        black_box(sys::getppid());
    };
    let syscall = figure("syscall_ns", per_round(200, 200, own_pid));
    let switch = less("context_switch_ns", yields()?, median_of(&syscall));
    let write_read = median_of(&figure("write_read", own_pipe()?));
    let hop = ping_pong()?;
    let wakeup = match &switch {
        Some(switch) => less("wakeup_ns", hop, write_read + switch.median_ns),
        None => None,
    };
    let idle_exit = less("idle_exit_ns", timer_lateness(), median_of(&switch) + clock);
    let tick = figure("tick_ns", tick_gaps());
    let fork = figure("fork_ns", forks()?);
    let migration = match &away {
        Some(away) => figure("migration_ns", migrations(&home, away)?),
        None => None,
    };
    let mut out = Calibration {
        costs: Costs::DEFAULT,
        device: Device::default(),
        figures: Vec::new(),
        notes: Vec::new(),
    };
    let measured = [switch, wakeup, idle_exit, migration, tick, fork, syscall];
    for found in measured.into_iter().flatten() {
        if let Some(cost) = out.costs.field_mut(found.name) {
            *cost = found.median_ns;
        }
        out.figures.push(found);
    }
    for name in Costs::NAMES {
        if !out.figures.iter().any(|found| found.name == name) {
            out.notes.push(format!("{name}: not measurable here, the default stays"));
        }
    }
    out.costs.migration_llc_ns = out.costs.migration_llc_ns.max(out.costs.migration_ns);
    device(&mut out);
    Ok(out)
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
        // Nothing can be done about a child that is gone already.
        let _ = sys::reap(self.0);
    }
}

/// Both ends of a pipe, closed on drop.
struct Pipe {
    read: i32,
    write: i32,
}

impl Pipe {
    fn new() -> std::io::Result<Self> {
        let (read, write) = sys::pipe()?;
        Ok(Self { read, write })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        sys::close(self.read);
        sys::close(self.write);
    }
}

/// One switch of two processes on one CPU that do nothing but yield to each other, the system call
/// included. As root under FIFO, where each yield switches; else the samples without a switch for
/// nearly every yield are left out.
fn yields() -> std::io::Result<Vec<u64>> {
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
    for _ in 0..200 {
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

/// A write and a read of a pipe that only this thread uses.
fn own_pipe() -> std::io::Result<Vec<u64>> {
    let pipe = Pipe::new()?;
    Ok(per_round(100, 100, || {
        sys::write_byte(pipe.write);
        sys::read_byte(pipe.read);
    }))
}

/// One hop of a ping-pong with a process on the same CPU: half a round trip.
fn ping_pong() -> std::io::Result<Vec<u64>> {
    let (there, back) = (Pipe::new()?, Pipe::new()?);
    let _peer = Peer::start(|| while sys::read_byte(there.read) && sys::write_byte(back.write) {})?;
    let rounds = per_round(200, 100, || {
        sys::write_byte(there.write);
        sys::read_byte(back.read);
    });
    Ok(rounds.into_iter().map(|round| round / 2).collect())
}

/// How late absolute timers end a sleep on this CPU, which is idle meanwhile.
fn timer_lateness() -> Vec<u64> {
    (0..300)
        .map(|_| {
            let deadline = sys::monotonic_ns() + 300_000;
            sys::sleep_until_ns(deadline);
            sys::monotonic_ns() - deadline
        })
        .collect()
}

/// Gaps in a busy loop of 400 ms: interrupts of the tick. Shorter ones are noise of the clock, much
/// longer ones other tasks or the hypervisor.
fn tick_gaps() -> Vec<u64> {
    const NOISE_NS: u64 = 400;
    const FOREIGN_NS: u64 = 40_000;
    let end = sys::monotonic_ns() + 400_000_000;
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
fn forks() -> std::io::Result<Vec<u64>> {
    let mut samples = Vec::new();
    for _ in 0..60 {
        let start = sys::thread_cpu_ns();
        let peer = Peer::start(|| {})?;
        samples.push(sys::thread_cpu_ns() - start);
        drop(peer);
    }
    Ok(samples)
}

/// Extra time of a pass over warm memory right after a move to another CPU.
fn migrations(home: &CpuMask, away: &CpuMask) -> std::io::Result<Vec<u64>> {
    let mut memory = vec![1u64; 8192];
    let mut pass = || {
        let start = sys::monotonic_ns();
        for word in memory.iter_mut().step_by(8) {
            *word = black_box(*word).wrapping_add(1);
        }
        sys::monotonic_ns() - start
    };
    let mut samples = Vec::new();
    for round in 0..200 {
        let warm = (0..3).map(|_| pass()).min().unwrap_or(0);
        sys::sched_setaffinity(0, if round % 2 == 0 { away } else { home })?;
        samples.push(pass().saturating_sub(warm));
    }
    sys::sched_setaffinity(0, home)?;
    Ok(samples)
}

/// Copying and the device, in a private directory.
fn device(out: &mut Calibration) {
    let needs = FileNeeds { any: true, reads: true, sync: true };
    let dir = match files::make_dir(None, needs) {
        Ok(dir) => dir,
        Err(why) => {
            out.notes.push(format!("device: {why}"));
            return;
        }
    };
    let op = Op::Io { direction: IoDirection::Read, bytes: Amount::Constant(1), sync: true };
    let mut task = TaskFiles::new(Some(dir.clone()), 0);
    let mut program = ProgramBuilder::new();
    program.op(op);
    if let Err(error) = task.open(&program.build()) {
        out.notes.push(format!("device: {error}"));
    } else {
        measure_device(&mut task, out);
    }
    // The system's own cleaning takes what will not go.
    let _ = std::fs::remove_dir_all(dir);
}

fn measure_device(task: &mut TaskFiles, out: &mut Calibration) {
    let mut timed = |is_read: bool, bytes: u64, is_sync: bool, count: u32| -> Vec<u64> {
        let mut sample = || {
            let start = sys::monotonic_ns();
            let is_moved = task.transfer(is_read, bytes, is_sync).is_ok();
            is_moved.then(|| sys::monotonic_ns() - start)
        };
        (0..count).filter_map(|_| sample()).collect()
    };
    // The first pass makes the pages of the file.
    timed(false, files::FILE_LEN, false, 1);
    let copies = timed(false, 1 << 16, false, 200);
    let copies = copies.into_iter().map(|ns| ns / 64).collect();
    let copy = figure("copy_kib_ns", copies);
    let read = figure("read_latency_ns", timed(true, files::BLOCK, true, 100));
    let write = figure("write_latency_ns", timed(false, files::BLOCK, true, 50));
    let device = &mut out.device;
    for (found, field) in [
        (copy, &mut device.copy_kib_ns),
        (read, &mut device.read_latency_ns),
        (write, &mut device.write_latency_ns),
    ] {
        if let Some(found) = found {
            *field = found.median_ns;
            out.figures.push(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_medians_with_their_spread() {
        let figure = figure("x", (0..=100).rev().collect()).unwrap();
        assert_eq!((figure.p10_ns, figure.median_ns, figure.p90_ns), (10, 50, 90));
        assert_eq!(super::figure("x", Vec::new()), None);
        assert_eq!(less("x", vec![3, 10, 20], 8).unwrap().median_ns, 2);
    }

    #[test]
    fn this_machine_costs_something() {
        let found = calibrate().unwrap();
        assert!((20..1_000_000).contains(&found.costs.syscall_ns), "{found:?}");
        assert!((100..5_000_000).contains(&found.costs.context_switch_ns), "{found:?}");
        assert!((1_000..100_000_000).contains(&found.costs.fork_ns), "{found:?}");
        assert!(found.figures.iter().all(|figure| figure.p10_ns <= figure.p90_ns));
        for figure in &found.figures {
            println!("{figure:?}");
        }
    }
}
