// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clocks of a program in simulated time.
//!
//! Source: clock_gettime(2), gettimeofday(2), time(2), getcpu(2).

use crate::calls::{Answer, Call};

/// The wall clock at boot (ns since 1970): 1 January 2026.
const BOOT_NS: u64 = 1_767_225_600 * SECOND;
const SECOND: u64 = 1_000_000_000;

/// Clocks that stand still while the program runs.
#[derive(Debug)]
pub(super) struct Clocks {
    /// Time since boot (ns).
    now: u64,
}

/// A time span in memory: seconds and a part of them.
pub(super) fn read_span(call: &Call, at: u64, part_ns: u64) -> Option<u64> {
    let bytes = call.read(at, 16)?;
    let word = |at: usize| i64::from_le_bytes(*bytes[at..].first_chunk().unwrap_or(&[0; 8]));
    let (seconds, part) = (u64::try_from(word(0)).ok()?, u64::try_from(word(8)).ok()?);
    Some(seconds.saturating_mul(SECOND).saturating_add(part.saturating_mul(part_ns)))
}

fn write_span(call: &Call, at: u64, ns: u64, part_ns: u64) -> Answer {
    let words = [ns / SECOND, ns % SECOND / part_ns];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    match at == 0 || call.write(at, &bytes) {
        true => Answer::Value(0),
        false => Answer::Error(libc::EFAULT),
    }
}

/// getcpu(2): always the first CPU.
pub(super) fn cpu(call: &Call) -> Answer {
    let is_written = call.args[..2].iter().all(|at| *at == 0 || call.write(*at, &[0; 4]));
    if is_written { Answer::Value(0) } else { Answer::Error(libc::EFAULT) }
}

/// Whether a clock counts from 1970.
pub(super) fn is_wall(clock: u64) -> bool {
    const WALL: [libc::clockid_t; 4] = [
        libc::CLOCK_REALTIME,
        libc::CLOCK_REALTIME_COARSE,
        libc::CLOCK_REALTIME_ALARM,
        libc::CLOCK_TAI,
    ];
    WALL.contains(&(clock as libc::clockid_t))
}

impl Clocks {
    /// Clocks at a time since boot.
    pub(super) fn new(now: u64) -> Self {
        Self { now }
    }

    /// Time since boot (ns).
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// It is this time now, or later.
    pub(super) fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// The time since boot of a time of a clock.
    pub(super) fn since_boot(&self, time: u64, is_wall: bool) -> u64 {
        if is_wall { time.saturating_sub(BOOT_NS) } else { time }
    }

    /// clock_gettime(2).
    pub(super) fn gettime(&self, call: &Call) -> Answer {
        let wall = if is_wall(call.args[0]) { BOOT_NS } else { 0 };
        write_span(call, call.args[1], self.now + wall, 1)
    }

    /// gettimeofday(2).
    pub(super) fn timeofday(&self, call: &Call) -> Answer {
        write_span(call, call.args[0], self.now + BOOT_NS, 1_000)
    }

    /// time(2).
    pub(super) fn seconds(&self, call: &Call) -> Answer {
        let seconds = (self.now + BOOT_NS) / SECOND;
        match call.args[0] == 0 || call.write(call.args[0], &seconds.to_le_bytes()) {
            true => Answer::Value(seconds as i64),
            false => Answer::Error(libc::EFAULT),
        }
    }
}
