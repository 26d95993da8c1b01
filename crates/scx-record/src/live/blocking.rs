// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that wait for time or for files.
//!
//! Source: nanosleep(2), clock_nanosleep(2), poll(2), select(2), epoll_wait(2), sigtimedwait(2).

use super::Served;
use super::clocks::{Clocks, is_wall, read_span};
use super::files;
use super::threads::Why;
use crate::calls::{Answer, Call};

const MILLISECOND: u64 = 1_000_000;
/// TIMER_ABSTIME.
const ABSOLUTE: u64 = 1;
/// Most files of a poll that are looked at.
const FILES_MAX: u64 = 1 << 12;

/// A time limit of a call; `None`: none.
type Limit = Option<u64>;

/// Decides about a call that may block.
pub(super) fn serve(clocks: &Clocks, call: &Call) -> Served {
    served(clocks, call).unwrap_or_else(|error| Served::Answer(Answer::Error(error)))
}

fn served(clocks: &Clocks, call: &Call) -> Result<Served, i32> {
    let args = call.args;
    Ok(match call.nr {
        libc::SYS_nanosleep => {
            let span = read_span(call, args[0], 1).ok_or(libc::EFAULT)?;
            sleep(clocks, Some(clocks.now().saturating_add(span)))
        }
        libc::SYS_clock_nanosleep => {
            let time = read_span(call, args[2], 1).ok_or(libc::EFAULT)?;
            let until = match args[1] & ABSOLUTE {
                0 => clocks.now().saturating_add(time),
                _ => clocks.since_boot(time, is_wall(args[0])),
            };
            sleep(clocks, Some(until))
        }
        libc::SYS_pause | libc::SYS_rt_sigsuspend => sleep(clocks, None),
        libc::SYS_rt_sigtimedwait => {
            Served::Blocks(Why::Signal, span_at(clocks, call, args[2], 1)?)
        }
        libc::SYS_poll => poll(clocks, call, milliseconds(clocks, args[2]))?,
        libc::SYS_ppoll => poll(clocks, call, span_at(clocks, call, args[2], 1)?)?,
        libc::SYS_select => select(clocks, call, span_at(clocks, call, args[4], 1_000)?)?,
        libc::SYS_pselect6 => select(clocks, call, span_at(clocks, call, args[4], 1)?)?,
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
            epoll(clocks, call, milliseconds(clocks, args[3]))
        }
        libc::SYS_epoll_pwait2 => epoll(clocks, call, span_at(clocks, call, args[3], 1)?),
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_accept
        | libc::SYS_accept4
            if files::would_wait(call, args[0] as u32) =>
        {
            Served::Blocks(Why::File(args[0] as u32), None)
        }
        _ => Served::Answer(Answer::Proceed),
    })
}

fn sleep(clocks: &Clocks, until: Limit) -> Served {
    match until {
        Some(until) if until <= clocks.now() => Served::Answer(Answer::Value(0)),
        _ => Served::Blocks(Why::Time, until),
    }
}

/// When a limit in milliseconds ends; negative: never.
fn milliseconds(clocks: &Clocks, limit: u64) -> Limit {
    let limit = u64::try_from(limit as i32).ok()?;
    Some(clocks.now().saturating_add(limit * MILLISECOND))
}

/// When a limit in memory ends; no address: never.
fn span_at(clocks: &Clocks, call: &Call, at: u64, part_ns: u64) -> Result<Limit, i32> {
    if at == 0 {
        return Ok(None);
    }
    let span = read_span(call, at, part_ns).ok_or(libc::EINVAL)?;
    Ok(Some(clocks.now().saturating_add(span)))
}

/// Blocks if no file is ready and there is time. Otherwise the kernel answers at once.
fn unless_ready(clocks: &Clocks, call: &Call, why: Why, until: Limit) -> Served {
    let is_over = until.is_some_and(|until| until <= clocks.now());
    match is_over || files::is_ready(call, &why) {
        true => Served::Answer(Answer::Proceed),
        false => Served::Blocks(why, until),
    }
}

fn poll(clocks: &Clocks, call: &Call, until: Limit) -> Result<Served, i32> {
    if call.args[1] > FILES_MAX {
        return Err(libc::EINVAL);
    }
    let bytes = call.read(call.args[0], 8 * call.args[1] as usize).ok_or(libc::EFAULT)?;
    let files = bytes
        .chunks_exact(8)
        .map(|entry| {
            let file = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            (file, i16::from_le_bytes([entry[4], entry[5]]))
        })
        .collect();
    Ok(unless_ready(clocks, call, Why::Poll { at: call.args[0], files }, until))
}

/// Of select(2) only the use as a sleep, and sets for reading.
fn select(clocks: &Clocks, call: &Call, until: Limit) -> Result<Served, i32> {
    let nr = call.args[0].min(FILES_MAX);
    let len = nr.div_ceil(64) as usize * 8;
    let mut files = Vec::new();
    for (set, events) in [(1, libc::POLLIN), (2, libc::POLLOUT), (3, libc::POLLPRI)] {
        if call.args[set] == 0 {
            continue;
        }
        let bytes = call.read(call.args[set], len).ok_or(libc::EFAULT)?;
        let is_set = |file: &u64| bytes[*file as usize / 8] >> (file % 8) & 1 == 1;
        files.extend((0..nr).filter(is_set).map(|file| (file as i32, events)));
    }
    let sets = [call.args[1], call.args[2], call.args[3]];
    Ok(unless_ready(clocks, call, Why::Select { sets, len, files }, until))
}

fn epoll(clocks: &Clocks, call: &Call, until: Limit) -> Served {
    unless_ready(clocks, call, Why::Epoll(call.args[0] as i32), until)
}
