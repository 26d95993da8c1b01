// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipes, socket pairs, event counters, and waiting for several of them.

use super::check;
use std::io;

/// Repeats a call while signals interrupt it.
fn unbroken(mut call: impl FnMut() -> libc::c_long) -> io::Result<usize> {
    loop {
        match check(call()) {
            Ok(result) => return Ok(result as usize),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sets the capacity of a pipe (bytes). Returns the kernel's value (whole pages, a power of two).
pub fn set_pipe_capacity(fd: i32, bytes: u64) -> io::Result<u64> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    // SAFETY: no memory is involved.
    check(unsafe { libc::fcntl(fd, libc::F_SETPIPE_SZ, bytes) }.into()).map(|got| got as u64)
}

/// Makes transfers through `fd` fail instead of waiting.
pub fn set_nonblocking(fd: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    unsafe {
        let flags = check(libc::fcntl(fd, libc::F_GETFL).into())? as i32;
        check(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK).into()).map(drop)
    }
}

/// A connected pair of stream sockets, closed on exec.
pub fn socket_pair() -> io::Result<(i32, i32)> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` holds two descriptors.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) }.into())?;
    Ok((ends[0], ends[1]))
}

fn set_socket_option(fd: i32, option: i32, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    let value: *const i32 = &value;
    // SAFETY: `value` points to an int, as both options want.
    check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, value.cast(), len) }.into())
        .map(drop)
}

/// Sets the send buffer of a socket (bytes of kernel memory). Returns the kernel's value.
pub fn set_send_buffer(fd: i32, bytes: u64) -> io::Result<u64> {
    // The kernel doubles the value (socket(7)).
    let half = i32::try_from(bytes / 2).unwrap_or(i32::MAX);
    // Beyond net.core.wmem_max only with CAP_NET_ADMIN.
    set_socket_option(fd, libc::SO_SNDBUFFORCE, half)
        .or_else(|_| set_socket_option(fd, libc::SO_SNDBUF, half))?;
    let mut got: i32 = 0;
    let mut len = size_of::<i32>() as libc::socklen_t;
    let to: *mut i32 = &mut got;
    // SAFETY: `got` and `len` are valid for writing.
    check(
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, to.cast(), &mut len) }
            .into(),
    )?;
    Ok(got.max(0) as u64)
}

/// A counter that is readable while above 0; each read decrements it (EFD_SEMAPHORE).
pub fn event_counter(initial: u32) -> io::Result<i32> {
    let flags = libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC;
    // SAFETY: no memory is involved.
    check(unsafe { libc::eventfd(initial, flags) }.into()).map(|fd| fd as i32)
}

/// Writes as many of `bytes` as one call accepts.
pub fn write_some(fd: i32, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is valid for reading.
    unbroken(|| unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) } as libc::c_long)
}

/// Reads at most `bytes.len()` bytes; 0: no writer is left.
pub fn read_some(fd: i32, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is valid for writing.
    unbroken(|| unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) } as libc::c_long)
}

/// An epoll instance that waits for any of `fds` to become readable (level-triggered).
pub fn epoll_of(fds: impl Iterator<Item = i32>) -> io::Result<i32> {
    // SAFETY: no memory is involved.
    let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }.into())? as i32;
    for fd in fds {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        // SAFETY: `event` is valid.
        let added =
            check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) }.into());
        match added {
            // The same object twice in a set is allowed.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
            Err(error) => {
                super::close(epoll);
                return Err(error);
            }
            Ok(_) => {}
        }
    }
    Ok(epoll)
}

/// Waits until a descriptor in `epoll` is ready.
pub fn epoll_wait(epoll: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event.
    unbroken(|| unsafe { libc::epoll_wait(epoll, &mut event, 1, -1) }.into()).map(drop)
}

/// Makes a write without a reader fail, instead of killing the process with a signal.
pub fn ignore_broken_pipes() {
    // SAFETY: SIG_IGN is valid for SIGPIPE.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
