// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects that tasks share and wait for: mutexes, condition variables, barriers, semaphores,
//! events, channels.

use crate::trace::WaitKind;

/// What a mutex does against priority inversion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum MutexProtocol {
    /// Nothing: a normal mutex (PTHREAD_PRIO_NONE).
    #[default]
    None,
    /// The holder runs with the priority of the most important task that waits for it
    /// (PTHREAD_PRIO_INHERIT).
    Inherit,
    /// The holder runs with at least this priority (PTHREAD_PRIO_PROTECT).
    Ceiling {
        /// `sched_priority`, 1 to 99. No task with a higher priority may lock the mutex.
        rt_priority: u8,
    },
}

/// How a channel is implemented.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum ChannelKind {
    /// pipe(2).
    Pipe,
    /// socketpair(2), AF_UNIX, SOCK_STREAM; messages go one way.
    SocketPair,
}

/// Kind of an object, with its initial state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum ObjectKind {
    /// A mutex, unlocked.
    Mutex {
        /// What it does against priority inversion.
        protocol: MutexProtocol,
    },
    /// A condition variable.
    Condvar,
    /// A barrier.
    Barrier {
        /// Number of tasks that must arrive before all continue, >= 1.
        parties: u32,
    },
    /// A semaphore.
    Semaphore {
        /// Its initial value, at most [`SEM_VALUE_MAX`].
        initial: u32,
    },
    /// An event to suspend on. A resume wakes all waiting tasks; it has no effect if none waits.
    Event,
    /// A stream of bytes from writers to readers.
    Channel {
        /// How it is implemented.
        kind: ChannelKind,
        /// Bytes it can hold before a writer must wait, 1 to [`CHANNEL_BYTES_MAX`].
        capacity_bytes: u64,
    },
}

/// Greatest value of a semaphore (SEM_VALUE_MAX of glibc).
pub const SEM_VALUE_MAX: u32 = i32::MAX as u32;

/// Capacity of a pipe: 16 pages of 4,096 bytes (pipe(7), "Pipe capacity").
pub const PIPE_BYTES: u64 = 65_536;

/// Largest message (bytes) that is written to a pipe whole or not at all (PIPE_BUF, pipe(7)).
pub const PIPE_ATOMIC_BYTES: u64 = 4_096;

/// Size of a socket's send buffer (net.core.wmem_default on x86-64), in bytes of kernel memory.
pub const SOCKET_SNDBUF_BYTES: u64 = 212_992;

/// Largest piece (bytes) into which a stream socket splits a message: SKB_MAX_ALLOC plus 32 KiB of
/// pages (`unix_stream_sendmsg`, net/unix/af_unix.c, 6.12).
pub const SOCKET_PIECE_BYTES: u64 = 16_064 + 32_768;

/// Kernel memory (bytes) that a message of `message` bytes takes in a socket. It is 256 bytes of
/// `struct sk_buff`, plus data and 320 bytes of `struct skb_shared_info` in a slab of a power of
/// two. Data that does not fit into one page with the latter takes whole pages
/// (`unix_stream_sendmsg`; `truesize` in include/linux/skbuff.h, 6.12).
pub const fn socket_memory_bytes(message: u64) -> u64 {
    const PAGE: u64 = 4096;
    const SHARED: u64 = 320;
    let beyond = message.saturating_sub(PAGE - SHARED).next_multiple_of(PAGE);
    let in_pages = if beyond < message { beyond } else { message };
    let linear = ((message - in_pages).next_multiple_of(64) + SHARED).next_power_of_two();
    256 + if linear < 512 { 512 } else { linear } + in_pages.next_multiple_of(PAGE)
}

/// How many bytes of messages of `message` bytes each fit into a send buffer of `sndbuf` bytes. The
/// kernel accepts one more message while the memory of those before it is below `sndbuf`.
pub const fn socket_payload_bytes(sndbuf: u64, message: u64) -> u64 {
    let piece = match message {
        0 => 1,
        SOCKET_PIECE_BYTES.. => SOCKET_PIECE_BYTES,
        _ => message,
    };
    sndbuf.div_ceil(socket_memory_bytes(piece)).saturating_mul(piece)
}

/// Largest capacity of a channel: the largest value of F_SETPIPE_SZ (fcntl(2)).
pub const CHANNEL_BYTES_MAX: u64 = 1 << 31;

impl ObjectKind {
    /// A normal mutex.
    pub const MUTEX: Self = Self::Mutex { protocol: MutexProtocol::None };

    /// A pipe with the kernel's default capacity.
    pub const PIPE: Self = Self::Channel { kind: ChannelKind::Pipe, capacity_bytes: PIPE_BYTES };

    /// Name of the kind in messages and traces.
    pub fn name(self) -> &'static str {
        WaitKind::from(self).name()
    }

    /// Whether [`crate::Op::WaitAny`] can wait for it.
    pub const fn is_pollable(&self) -> bool {
        matches!(self, Self::Semaphore { .. } | Self::Channel { .. })
    }

    /// Checks that the numbers of the kind are allowed. The error names the number and its range.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (what, found, allowed) = match *self {
            Self::Barrier { parties: 0 } => ("parties", 0, "1 and more".to_owned()),
            Self::Semaphore { initial } if initial > SEM_VALUE_MAX => {
                ("value", u64::from(initial), format!("0 to {SEM_VALUE_MAX}"))
            }
            Self::Channel { capacity_bytes, .. }
                if !(1..=CHANNEL_BYTES_MAX).contains(&capacity_bytes) =>
            {
                ("capacity in bytes", capacity_bytes, format!("1 to {CHANNEL_BYTES_MAX}"))
            }
            Self::Mutex { protocol: MutexProtocol::Ceiling { rt_priority } }
                if !(1..=99).contains(&rt_priority) =>
            {
                ("ceiling", u64::from(rt_priority), "1 to 99".to_owned())
            }
            _ => return Ok(()),
        };
        Err(format!("its {what} is {found}, allowed are {allowed}"))
    }
}

/// An object of a workload.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct ObjectSpec {
    /// Name, unique in the workload.
    pub name: String,
    /// Kind.
    pub kind: ObjectKind,
}

impl ObjectSpec {
    /// An object.
    pub fn new(name: impl Into<String>, kind: ObjectKind) -> Self {
        Self { name: name.into(), kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that went into a socket pair of Linux 6.18 before a write would have had to wait.
    #[test]
    fn a_socket_takes_what_the_kernel_lets_it_take() {
        let exact = [(1, 278), (100, 27_800), (1_000, 93_000), (3_777, 166_188), (4_000, 176_000)];
        let larger = [(9_000, 189_000), (16_000, 208_000), (20_000, 220_000)];
        for (message, bytes) in exact.into_iter().chain(larger) {
            let found = socket_payload_bytes(SOCKET_SNDBUF_BYTES, message);
            assert_eq!(found, bytes, "messages of {message} bytes");
        }
        // Of long messages the last piece is shorter.
        for (message, bytes) in [(49_000, 232_544), (100_000, 236_544), (1 << 20, 219_264_u64)] {
            let off = socket_payload_bytes(SOCKET_SNDBUF_BYTES, message).abs_diff(bytes);
            assert!(off * 8 <= bytes, "messages of {message} bytes: off by {off}");
        }
    }
}
