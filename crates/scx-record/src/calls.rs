// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls of the traced program as they arrive, its memory, and the answers to it
//! (seccomp_unotify(2)).

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// SECCOMP_ADDFD_FLAG_SEND: give the new descriptor as the call's result.
const ADD_AND_ANSWER: u32 = 2;

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    id: u64,
    /// The thread.
    pub(crate) thread: u32,
    /// Number of the system call.
    pub(crate) nr: libc::c_long,
    pub(crate) args: [u64; 6],
}

/// What came of waiting for a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    Call(Call),
    /// Nothing came in time.
    Nothing,
    /// Every process with the filter has ended.
    Ended,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A number.
    Value(i64),
    /// An error (errno).
    Error(i32),
    /// A new descriptor of this file.
    File(OwnedFd),
    /// The kernel carries the call out.
    Proceed,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Calls(pub(crate) OwnedFd);

impl Calls {
    /// Waits for the next call.
    pub(crate) fn next(&self, patience: Duration) -> io::Result<Arrival> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = patience.as_millis().min(60_000) as libc::c_int;
        // SAFETY: one entry.
        match unsafe { libc::poll(&raw mut poll, 1, ms.max(1)) } {
            ..0 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(Arrival::Nothing),
                error => Err(error),
            },
            0 => Ok(Arrival::Nothing),
            _ if poll.revents & libc::POLLIN == 0 => Ok(Arrival::Ended),
            _ => self.receive(),
        }
    }

    fn receive(&self) -> io::Result<Arrival> {
        // SAFETY: all bytes 0 is a valid notification, and the kernel asks for it.
        let mut got: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes a notification.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut got)
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            // The thread was killed in between.
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(Arrival::Nothing),
                _ => Err(error),
            };
        }
        let (nr, args) = (libc::c_long::from(got.data.nr), got.data.args);
        Ok(Arrival::Call(Call { id: got.id, thread: got.pid, nr, args }))
    }

    /// Answers a call. A caller that has ended is no error.
    pub(crate) fn answer(&self, call: &Call, answer: Answer) -> io::Result<()> {
        let is_gone = |error: &io::Error| error.raw_os_error() == Some(libc::ENOENT);
        let done = match answer {
            Answer::File(file) => match self.give(call, file.as_raw_fd()) {
                Err(error) if !is_gone(&error) => self.send(call, 0, error.raw_os_error(), 0),
                done => done,
            },
            Answer::Value(value) => self.send(call, value, None, 0),
            Answer::Error(error) => self.send(call, 0, Some(error), 0),
            Answer::Proceed => {
                self.send(call, 0, None, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32)
            }
        };
        done.or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })
    }

    fn send(&self, call: &Call, val: i64, error: Option<i32>, flags: u32) -> io::Result<()> {
        let error = -error.unwrap_or(0);
        let answer = libc::seccomp_notif_resp { id: call.id, val, error, flags };
        // SAFETY: the kernel reads an answer.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn give(&self, call: &Call, file: RawFd) -> io::Result<()> {
        let add = libc::seccomp_notif_addfd {
            id: call.id,
            flags: ADD_AND_ANSWER,
            srcfd: file as u32,
            newfd: 0,
            newfd_flags: libc::O_CLOEXEC as u32,
        };
        // SAFETY: the kernel reads a request.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const add)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Call {
    /// Copies memory of the caller; `None`: it has none there.
    pub(crate) fn read(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: len };
        let theirs = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: len };
        // SAFETY: the kernel writes into `bytes`, which has that length, and checks the address of
        // the other process.
        let got = unsafe {
            libc::process_vm_readv(self.thread as i32, &raw const ours, 1, &raw const theirs, 1, 0)
        };
        (got == len as isize).then_some(bytes)
    }

    /// Writes memory of the caller. Returns whether it has it.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> bool {
        let ours = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let theirs = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: the kernel reads `bytes` and checks the address of the other process.
        let put = unsafe {
            libc::process_vm_writev(self.thread as i32, &raw const ours, 1, &raw const theirs, 1, 0)
        };
        put == bytes.len() as isize
    }

    /// The process of the caller.
    pub(crate) fn process(&self) -> Option<u32> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.thread)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        line.trim().parse().ok()
    }

    /// The number of the file behind one of the caller's descriptors.
    pub(crate) fn file(&self, descriptor: u32) -> Option<u64> {
        let path = format!("/proc/{}/fd/{descriptor}", self.thread);
        fs::metadata(path).ok().map(|of| of.ino())
    }
}

/// A file in memory, and its number.
pub(crate) fn memory_file(len: u64) -> io::Result<(File, u64)> {
    // SAFETY: the name ends with 0; the kernel makes a descriptor that is ours.
    let file = unsafe {
        let made = libc::memfd_create(c"bpf".as_ptr(), libc::MFD_CLOEXEC);
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(made)
    };
    file.set_len(len)?;
    let number = file.metadata()?.ino();
    Ok((file, number))
}

/// Where the first data of a file at `from` or behind it is; `None`: there is none.
pub(crate) fn data_from(file: &File, from: u64) -> Option<u64> {
    // SAFETY: it moves a position that nothing else depends on.
    let at = unsafe { libc::lseek(file.as_raw_fd(), i64::try_from(from).ok()?, libc::SEEK_DATA) };
    u64::try_from(at).ok()
}
