// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes: creating, waiting for and ending them, and their rights.

use super::check;
use schedlab_model::Comm;
use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;

/// Ends the process at once: no destructor, no flush, no handler.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(code) }
}

/// Process id of the caller.
pub fn getpid() -> u32 {
    // SAFETY: cannot fail. A raw call: libc may not have seen the clone that made this process.
    unsafe { libc::syscall(libc::SYS_getpid) as u32 }
}

/// Thread id of the caller.
pub fn gettid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// fork(2): `Ok(None)` in the child, the child's pid in the parent. The child of a process with
/// threads may only do what is safe there (it takes no lock that another thread may hold; glibc
/// keeps its allocator usable).
pub fn fork() -> io::Result<Option<u32>> {
    // SAFETY: the caller follows the rule above.
    let pid = check(unsafe { libc::fork() }.into())?;
    Ok((pid != 0).then_some(pid as u32))
}

/// Forks a *sibling*: the child's parent is the caller's parent (CLONE_PARENT), so that one process
/// reaps all tasks, and every task is killed when it ends. Returns the pid and a pidfd to wait on;
/// `None` in the child. Only for processes with a single thread.
pub fn fork_sibling() -> io::Result<Option<(u32, i32)>> {
    let mut pidfd: i32 = -1;
    let flags = (libc::CLONE_PARENT | libc::CLONE_PIDFD | libc::SIGCHLD) as libc::c_ulong;
    // SAFETY: no new stack and no CLONE_VM: the child gets a copy of everything, as with fork; the
    // kernel writes the pidfd where the third argument points.
    let pid = check(unsafe {
        libc::syscall(libc::SYS_clone, flags, 0usize, &mut pidfd as *mut i32, 0usize, 0usize)
    })?;
    Ok((pid != 0).then_some((pid as u32, pidfd)))
}

/// A descriptor that becomes readable when `pid` has exited.
pub fn pidfd_open(pid: u32) -> io::Result<i32> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0u32) }).map(|fd| fd as i32)
}

/// Waits until a child has exited, without reaping it: `pid`, or any with `None`. Returns its pid.
pub fn wait_peek(pid: Option<u32>, is_blocking: bool) -> io::Result<Option<u32>> {
    // SAFETY: zeroed siginfo is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let (kind, id) = pid.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid));
    let hang = if is_blocking { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: `info` is valid for writing.
        let result =
            unsafe { libc::waitid(kind, id, &mut info, libc::WEXITED | libc::WNOWAIT | hang) };
        match check(result.into()) {
            Ok(_) => break,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    // SAFETY: waitid filled the child fields, or left zeros when no child was ready.
    let found = unsafe { info.si_pid() };
    Ok((found != 0).then_some(found as u32))
}

/// Exit code of a child that has ended, or the negative number of the signal that ended it, without
/// reaping it. `None`: the child is alive. A reaped child counts as ended with 0.
pub fn wait_code(pid: u32) -> Option<i32> {
    // SAFETY: zeroed siginfo is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    // SAFETY: `info` is valid for writing.
    let result = unsafe { libc::waitid(libc::P_PID, pid, &mut info, flags) };
    if result < 0 {
        let is_gone = io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        return is_gone.then_some(0);
    }
    // SAFETY: waitid filled the child fields, or left zeros when the child lives.
    let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
    let code = if info.si_code == libc::CLD_EXITED { status } else { -status };
    (found != 0).then_some(code)
}

/// The kernel's counters of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// User time, us.
    pub user_us: u64,
    /// System time, us.
    pub system_us: u64,
    /// Voluntary switches (ru_nvcsw).
    pub nr_voluntary: u64,
    /// Involuntary switches (ru_nivcsw).
    pub nr_involuntary: u64,
}

fn usage_of(raw: &libc::rusage) -> Usage {
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Usage {
        user_us: us(raw.ru_utime),
        system_us: us(raw.ru_stime),
        nr_voluntary: raw.ru_nvcsw as u64,
        nr_involuntary: raw.ru_nivcsw as u64,
    }
}

/// Reaps `pid`. Returns wait status and usage (its own and that of children it waited for).
pub fn reap(pid: u32) -> io::Result<(i32, Usage)> {
    let mut status = 0;
    // SAFETY: zeroed rusage is valid; both pointers are valid for writing.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: as above.
        let result = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, &mut raw) };
        match check(result.into()) {
            Ok(_) => return Ok((status, usage_of(&raw))),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn usage_now(who: i32) -> Usage {
    // SAFETY: zeroed rusage is valid, and valid for writing.
    unsafe {
        let mut raw: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut raw);
        usage_of(&raw)
    }
}

/// Usage of the calling process so far.
pub fn own_usage() -> Usage {
    usage_now(libc::RUSAGE_SELF)
}

/// Usage of the children that the calling process has waited for.
pub fn usage_of_children() -> Usage {
    usage_now(libc::RUSAGE_CHILDREN)
}

/// Usage of the calling thread so far.
pub fn own_usage_of_thread() -> Usage {
    usage_now(libc::RUSAGE_THREAD)
}

/// Exit code; or the negative number of the signal that ended the process.
pub fn exit_code(status: i32) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}

/// Whether files may be created in a directory (access(2), as the effective user).
pub fn may_write(dir: &CStr) -> bool {
    let flags = libc::W_OK | libc::X_OK;
    // SAFETY: the path ends with a zero.
    unsafe { libc::faccessat(libc::AT_FDCWD, dir.as_ptr(), flags, libc::AT_EACCESS) == 0 }
}

/// Sends a signal. If the process does not exist, nothing happens.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid, signal) };
}

/// Sends SIGKILL to `pid` (negative: the process group).
pub fn kill_now(pid: i32) {
    // SAFETY: no memory is involved. A process that no longer exists is not an error here.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Whether a process with this id exists.
pub fn exists(pid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let result = unsafe { libc::kill(pid as i32, 0) };
    result == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Makes the caller leader of a new process group.
pub fn new_process_group() -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::setpgid(0, 0) }.into()).map(drop)
}

/// Orphaned descendants become children of the caller, or (`false`) no longer do.
pub fn become_subreaper(is_one: bool) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, usize::from(is_one)) }.into())
        .map(drop)
}

/// Sends SIGKILL to the caller when its parent ends. A change of user clears this, so call it
/// after.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize) }.into()).map(drop)
}

/// Sets the timer slack of the calling thread (how late the kernel may fire its timers), ns.
pub fn set_timer_slack_ns(slack_ns: u64) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as usize) }.into()).map(drop)
}

/// Timer slack of the calling thread, ns.
pub fn timer_slack_ns() -> u64 {
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_GET_TIMERSLACK).max(0) as u64 }
}

/// Sets the name of the calling thread, which ps shows and sched_ext schedulers see.
pub fn set_name(name: Comm) {
    let bytes = name.to_bytes_with_nul();
    // SAFETY: 16 bytes with a zero at the end; the kernel copies at most 16.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

const CAP_SYS_NICE: u32 = 23;

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Becomes `uid`/`gid` for good, without other groups. With `keep_nice` it keeps only the right to
/// set scheduling attributes (CAP_SYS_NICE). Call only as root.
pub fn drop_privileges(uid: u32, gid: u32, keep_nice: bool) -> io::Result<()> {
    // SAFETY: calls without memory, or with the two valid structures below.
    unsafe {
        check(libc::prctl(libc::PR_SET_KEEPCAPS, usize::from(keep_nice)).into())?;
        check(libc::setgroups(0, std::ptr::null()).into())?;
        check(libc::setresgid(gid, gid, gid).into())?;
        check(libc::setresuid(uid, uid, uid).into())?;
        if keep_nice {
            let header = CapHeader { version: 0x2008_0522, pid: 0 };
            let nice = CapData {
                effective: 1 << CAP_SYS_NICE,
                permitted: 1 << CAP_SYS_NICE,
                inheritable: 0,
            };
            let data = [nice, CapData { effective: 0, permitted: 0, inheritable: 0 }];
            let header = &header as *const CapHeader;
            check(libc::syscall(libc::SYS_capset, header, data.as_ptr()))?;
        }
    }
    Ok(())
}

/// Prepares the process for a third-party program: it works in `dir`, creates files that only its
/// user can access, dumps no core, and cannot gain rights by executing programs.
pub fn confine(dir: &Path) -> io::Result<()> {
    std::env::set_current_dir(dir)?;
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `none` is valid for reading; the other calls have no memory.
    unsafe {
        libc::umask(0o077);
        check(libc::setrlimit(libc::RLIMIT_CORE, &none).into())?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into()).map(drop)
    }
}

/// Blocks every signal that can be blocked; they stay pending.
pub fn block_signals() {
    // SAFETY: the set is initialised before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// A descriptor that is readable while SIGTERM, SIGINT or SIGHUP is pending; the signals must be
/// blocked.
pub fn end_signals_fd() -> io::Result<i32> {
    // SAFETY: the set is initialised before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        check(libc::signalfd(-1, &set, flags).into()).map(|fd| fd as i32)
    }
}

/// Resets every signal to its default action and unblocks all: the initial state of a task.
pub fn default_signals() {
    // SAFETY: SIG_DFL is valid for every signal; failures (SIGKILL, SIGSTOP) change nothing.
    unsafe {
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// A pipe, both ends closed on exec: (read, write).
pub fn pipe() -> io::Result<(i32, i32)> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` holds two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    Ok((ends[0], ends[1]))
}

/// Closes a descriptor.
pub fn close(fd: i32) {
    // SAFETY: the caller owns `fd`.
    unsafe { libc::close(fd) };
}

/// Closes every descriptor from 3 on except those in `keep` (at most 8, in any order).
pub fn close_others(keep: &[i32]) {
    let mut sorted = [i32::MAX; 8];
    let count = keep.len().min(8);
    sorted[..count].copy_from_slice(&keep[..count]);
    sorted[..count].sort_unstable();
    let mut from = 3;
    for fd in sorted[..count].iter().copied().filter(|fd| *fd >= 3).chain([i32::MAX]) {
        if fd > from {
            // SAFETY: used only right after a fork, where nothing else uses these descriptors.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0u32) };
        }
        from = fd.saturating_add(1);
    }
}

/// Raises the soft limit of open files to the hard one.
pub fn raise_file_limit() {
    // SAFETY: `limit` is valid for both calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// A program with its arguments and environment, prepared before the fork so that nothing is
/// allocated after it.
#[derive(Debug)]
pub struct ExecImage {
    path: CString,
    _strings: Vec<CString>,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
}

impl ExecImage {
    /// `path` is the file; `argv[0]` is the name that the program sees.
    pub fn new(path: CString, argv: Vec<CString>, env: Vec<CString>) -> Self {
        let pointers = |strings: &[CString]| {
            let ends = strings.iter().map(|string| string.as_ptr());
            ends.chain([std::ptr::null()]).collect::<Vec<_>>()
        };
        let (argv_ptrs, envp) = (pointers(&argv), pointers(&env));
        Self { path, _strings: argv.into_iter().chain(env).collect(), argv: argv_ptrs, envp }
    }

    /// Replaces the program of this process. Returns only on failure.
    pub fn exec(&self) -> io::Error {
        // SAFETY: both arrays end with null and point into strings that `self` owns; moving a
        // CString does not move its bytes.
        unsafe { libc::execve(self.path.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Makes `from` the standard descriptor `to`.
pub fn redirect(from: i32, to: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::dup2(from, to) }.into()).map(drop)
}

/// Process id of the caller's parent.
pub fn getppid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) as u32 }
}

/// Reads one byte. Returns false at the end of the pipe.
pub fn read_byte(fd: i32) -> bool {
    let mut byte = 0u8;
    // SAFETY: one byte is valid for writing.
    unsafe { libc::read(fd, (&mut byte as *mut u8).cast(), 1) == 1 }
}

/// Writes one byte. Returns false if the pipe has no reader.
pub fn write_byte(fd: i32) -> bool {
    let byte = 1u8;
    // SAFETY: one byte is valid for reading. SIGPIPE is ignored by Rust's runtime.
    unsafe { libc::write(fd, (&byte as *const u8).cast(), 1) == 1 }
}
