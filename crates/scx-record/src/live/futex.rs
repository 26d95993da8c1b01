// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futexes of a program whose threads run one at a time. A woken thread goes on when its turn
//! comes, in the order of the waits.
//!
//! Source: futex(2).

use super::Served;
use super::clocks::{Clocks, read_span};
use super::threads::{Threads, Why};
use crate::calls::{Answer, Call};

/// Operations (include/uapi/linux/futex.h), without their flags.
mod op {
    pub const WAIT: u64 = 0;
    pub const WAKE: u64 = 1;
    pub const REQUEUE: u64 = 3;
    pub const CMP_REQUEUE: u64 = 4;
    pub const WAIT_BITSET: u64 = 9;
    pub const WAKE_BITSET: u64 = 10;
    pub const MASK: u64 = 0x7f;
    pub const REALTIME: u64 = 1 << 8;
}

/// The word at an address of the caller.
pub(super) fn word(call: &Call, at: u64) -> Option<u32> {
    Some(u32::from_le_bytes(*call.read(at, 4)?.first_chunk()?))
}

impl Threads {
    /// Decides about a call of futex(2).
    pub(super) fn futex(&mut self, clocks: &Clocks, call: &Call) -> Served {
        let [at, flags, value, limit, other, last] = call.args;
        let value = value as u32;
        match flags & op::MASK {
            op::WAIT => self.futex_wait(clocks, call, u32::MAX),
            op::WAIT_BITSET => self.futex_wait(clocks, call, last as u32),
            op::WAKE => Served::Answer(Answer::Value(self.wake(at, value, u32::MAX))),
            op::WAKE_BITSET => Served::Answer(Answer::Value(self.wake(at, value, last as u32))),
            op::CMP_REQUEUE if word(call, at) != Some(last as u32) => {
                Served::Answer(Answer::Error(libc::EAGAIN))
            }
            op::REQUEUE | op::CMP_REQUEUE => {
                let woken = self.wake(at, value, u32::MAX);
                let moved = self.requeue(at, other, limit as u32);
                Served::Answer(Answer::Value(woken + moved))
            }
            _ => Served::Answer(Answer::Proceed),
        }
    }

    fn futex_wait(&mut self, clocks: &Clocks, call: &Call, bits: u32) -> Served {
        let [at, flags, value, limit, ..] = call.args;
        let error = |error| Served::Answer(Answer::Error(error));
        match word(call, at) {
            None => return error(libc::EFAULT),
            Some(found) if found != value as u32 => return error(libc::EAGAIN),
            Some(_) => {}
        }
        let until = match limit {
            0 => None,
            limit => {
                let Some(span) = read_span(call, limit, 1) else { return error(libc::EINVAL) };
                // A plain wait is given a span, one with bits a time.
                Some(match flags & op::MASK {
                    op::WAIT => clocks.now().saturating_add(span),
                    _ => clocks.since_boot(span, flags & op::REALTIME != 0),
                })
            }
        };
        if until.is_some_and(|until| until <= clocks.now()) {
            return error(libc::ETIMEDOUT);
        }
        Served::Blocks(Why::Futex { at, value: value as u32, bits }, until)
    }
}
