// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether files of the program are ready, without a change to them (pidfd_getfd(2), poll(2)).

use super::threads::Why;
use crate::calls::Call;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A copy of a descriptor of the caller.
fn copy(call: &Call, file: i32) -> Option<OwnedFd> {
    let process = call.process()?;
    // SAFETY: the calls return new descriptors, which are ours.
    unsafe {
        let of = libc::syscall(libc::SYS_pidfd_open, process, 0);
        if of < 0 {
            return None;
        }
        let of = OwnedFd::from_raw_fd(of as i32);
        let copy = libc::syscall(libc::SYS_pidfd_getfd, of.as_raw_fd(), file, 0);
        (copy >= 0).then(|| OwnedFd::from_raw_fd(copy as i32))
    }
}

/// Whether a descriptor has one of these events. One that cannot be looked at is ready, so that the
/// kernel answers.
fn has(call: &Call, file: i32, events: i16) -> bool {
    if file < 0 {
        return false;
    }
    let Some(copy) = copy(call, file) else { return true };
    let mut poll = libc::pollfd { fd: copy.as_raw_fd(), events, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) != 0 }
}

/// Whether what a call waits for is there.
pub(super) fn is_ready(call: &Call, why: &Why) -> bool {
    match why {
        Why::File(file) => has(call, *file as i32, libc::POLLIN),
        Why::Epoll(file) => has(call, *file, libc::POLLIN),
        Why::Poll { files, .. } | Why::Select { files, .. } => {
            files.iter().any(|(file, events)| has(call, *file, *events))
        }
        Why::Time | Why::Signal | Why::Futex { .. } => false,
    }
}

/// Whether reading from a descriptor would wait: it is a pipe, a socket or the like that has
/// nothing, and that is not set to return at once.
pub(super) fn would_wait(call: &Call, file: u32) -> bool {
    let path = fs::read_link(format!("/proc/{}/fd/{file}", call.thread));
    if !path.is_ok_and(|path| !path.starts_with("/")) {
        return false;
    }
    let Some(copy) = copy(call, file as i32) else { return false };
    // SAFETY: a descriptor of ours.
    let flags = unsafe { libc::fcntl(copy.as_raw_fd(), libc::F_GETFL) };
    flags & libc::O_NONBLOCK == 0 && !has(call, file as i32, libc::POLLIN)
}
