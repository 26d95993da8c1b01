// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the user program: with the machine's files instead of this one's, and with a filter that
//! hands its calls of bpf(2) to schedlab.
//!
//! The program gets a mount namespace of its own. Without root it gets a user namespace too
//! (user_namespaces(7)), in which it is root. The kernel sees none of its calls of bpf(2).
//!
//! Source: seccomp_unotify(2), mount_namespaces(7), include/uapi/linux/seccomp.h.

use crate::RecordError;
use crate::stage::Stage;
use std::ffi::{CString, OsString, c_int};
use std::io::{self, Read};
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The architecture of system calls (include/uapi/linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
/// The architecture of system calls (include/uapi/linux/audit.h).
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// System calls that schedlab answers.
const ANSWERED: &[libc::c_long] =
    &[libc::SYS_bpf, libc::SYS_sched_getaffinity, libc::SYS_sched_setaffinity, libc::SYS_epoll_ctl];

/// System calls of a program in simulated time that schedlab answers besides: clocks, what differs
/// between two runs, and what begins or ends a thread.
const TIMED: &[libc::c_long] = &[
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getcpu,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_sched_yield,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_exit,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_rt_sigsuspend,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
];

/// System calls of a program in simulated time that do nothing: they lock memory.
const LOCKS: &[libc::c_long] = &[libc::SYS_mlockall, libc::SYS_mlock, libc::SYS_mlock2];

/// ADDR_NO_RANDOMIZE (personality(2)).
const SAME_ADDRESSES: libc::c_ulong = 0x4_0000;

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Until its attach.
    Record,
    /// In simulated time.
    Live,
}

/// System calls that may block: one of them ends the recording once the scheduler is attached.
pub(crate) const BLOCKING: &[libc::c_long] = &[
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
];

/// System calls that succeed without an effect: they are about this machine's CPUs, not about the
/// modelled ones.
const EMPTY: &[libc::c_long] = &[libc::SYS_sched_setscheduler, libc::SYS_sched_setattr];

/// What failed before the program was executed, for the error.
const STEPS: &[&str] = &[
    "make a mount namespace (without root that takes user namespaces; Debian and Ubuntu can \
     forbid them with kernel.unprivileged_userns_clone and \
     kernel.apparmor_restrict_unprivileged_userns)",
    "make mounts private",
    "mount the machine's files over this machine's",
    "give up privileges (PR_SET_NO_NEW_PRIVS)",
    "filter system calls (seccomp with SECCOMP_RET_USER_NOTIF takes Linux 5.14)",
    "hand over the filter",
];

/// Everything that a forked process needs: it may not allocate.
struct Plan {
    mounts: Vec<(CString, CString)>,
    uid_map: Vec<u8>,
    gid_map: Vec<u8>,
    filter: Vec<libc::sock_filter>,
    mode: Mode,
    socket: UnixStream,
}

/// Starts `command` with the files of `stage`. Returns it, and the file by which its calls arrive.
pub(crate) fn start(
    command: &[OsString],
    stage: &Stage,
    mode: Mode,
) -> Result<(Child, OwnedFd), RecordError> {
    let name = command.first().ok_or_else(|| RecordError::Input("no command is given".into()))?;
    let fails = |what: &str, error: io::Error| {
        RecordError::Unavailable(format!("cannot {what} for {}: {error}", name.display()))
    };
    let (ours, theirs) = UnixStream::pair().map_err(|error| fails("make a socket", error))?;
    let path = |path: &[u8]| CString::new(path).map_err(|error| fails("use a path", error.into()));
    let output = stage.create_output()?;
    let mounts = stage
        .mounts()
        .iter()
        .map(|(from, to)| {
            Ok((path(from.as_os_str().as_bytes())?, path(to.as_os_str().as_bytes())?))
        })
        .collect::<Result<Vec<_>, RecordError>>()?;
    // SAFETY: these return numbers.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let map = |id: u32| format!("0 {id} 1").into_bytes();
    let (uid_map, gid_map) = (map(uid), map(gid));
    let plan = Plan { mounts, uid_map, gid_map, filter: filter(mode), mode, socket: theirs };
    let copy = || output.try_clone().map_err(|error| fails("make a file", error));
    let mut made = Command::new(name);
    made.args(&command[1..]).stdin(Stdio::null()).stdout(copy()?).stderr(copy()?).process_group(0);
    // The variable by which tools look for another machine's files; and errors without traces.
    made.env_remove("SCX_SYSFS_PREFIX").env("RUST_BACKTRACE", "0");
    // SAFETY: `enter` makes system calls only and does not allocate.
    unsafe { made.pre_exec(move || enter(&plan)) };
    let spawned = made.spawn();
    drop(made);
    let mut child = spawned.map_err(|error| match failed_step(&ours) {
        Some(step) => fails(step, error),
        None => RecordError::Input(format!(
            "cannot start {}: {error}. Give the program that loads the scheduler and its \
             arguments after --",
            name.display()
        )),
    })?;
    match receive(&ours) {
        Ok(listener) => Ok((child, listener)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(fails("get its system calls", error))
        }
    }
}

/// The step that the forked process wrote before it failed.
fn failed_step(socket: &UnixStream) -> Option<&'static str> {
    let _ = socket.set_nonblocking(true);
    let mut step = [0];
    let mut socket = socket;
    socket.read_exact(&mut step).ok()?;
    STEPS.get(usize::from(step[0])).copied()
}

fn op(code: u32, yes: u8, no: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k }
}

/// The filter: which system calls arrive here, and which do nothing.
#[allow(clippy::unnecessary_cast, reason = "libraries of C differ in the type of limits")]
fn filter(mode: Mode) -> Vec<libc::sock_filter> {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = |answer: u32| op(libc::BPF_RET | libc::BPF_K, 0, 0, answer);
    let args = offset_of!(libc::seccomp_data, args) as u32;
    let mut all = vec![
        op(load, 0, 0, offset_of!(libc::seccomp_data, arch) as u32),
        op(equal, 1, 0, ARCH),
        // The calls of another architecture would have other numbers and pass by.
        give(libc::SECCOMP_RET_KILL_PROCESS),
        op(load, 0, 0, offset_of!(libc::seccomp_data, nr) as u32),
    ];
    let is_live = mode == Mode::Live;
    let of_live = |calls: &'static [libc::c_long]| if is_live { calls } else { &[] };
    for (calls, answer) in [
        (ANSWERED, libc::SECCOMP_RET_USER_NOTIF),
        (BLOCKING, libc::SECCOMP_RET_USER_NOTIF),
        (of_live(TIMED), libc::SECCOMP_RET_USER_NOTIF),
        (EMPTY, libc::SECCOMP_RET_ERRNO),
        (of_live(LOCKS), libc::SECCOMP_RET_ERRNO),
    ] {
        for call in calls {
            all.extend([op(equal, 0, 1, *call as u32), give(answer)]);
        }
    }
    // A higher limit of locked memory takes privileges that a user namespace does not give.
    all.extend([
        op(equal, 0, 5, libc::SYS_prlimit64 as u32),
        op(load, 0, 0, args + 8),
        op(equal, 0, 3, libc::RLIMIT_MEMLOCK as u32),
        // Only a call with a new limit.
        op(load, 0, 0, args + 16),
        op(equal, 1, 0, 0),
        give(libc::SECCOMP_RET_ERRNO),
        give(libc::SECCOMP_RET_ALLOW),
    ]);
    all
}

/// Turns `-1` with errno into an error.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// What the forked process does before it executes the program.
fn enter(plan: &Plan) -> io::Result<()> {
    let steps: [&dyn Fn() -> io::Result<()>; 3] =
        [&|| unshare(plan), &|| mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE), &|| {
            plan.mounts.iter().try_for_each(|(from, to)| mount(from, to, libc::MS_BIND))
        }];
    for (nth, step) in steps.iter().enumerate() {
        step().inspect_err(|_| tell(plan, nth))?;
    }
    if plan.mode == Mode::Live {
        // Where it is forbidden, addresses differ between runs, on which few programs depend.
        // SAFETY: a flag of this process.
        unsafe { libc::personality(SAME_ADDRESSES) };
    }
    // SAFETY: flags of this process.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    // SAFETY: the same.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
        .inspect_err(|_| tell(plan, 3))?;
    let listener = listen(&plan.filter).inspect_err(|_| tell(plan, 4))?;
    send(&plan.socket, listener).inspect_err(|_| tell(plan, 5))
}

fn tell(plan: &Plan, step: usize) {
    let byte = step as u8;
    // SAFETY: one byte is read from a variable.
    unsafe { libc::write(plan.socket.as_raw_fd(), (&raw const byte).cast(), 1) };
}

fn unshare(plan: &Plan) -> io::Result<()> {
    // SAFETY: it concerns this process alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0 {
        return Ok(());
    }
    // SAFETY: the same.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
    write_file(c"/proc/self/setgroups", b"deny")?;
    write_file(c"/proc/self/uid_map", &plan.uid_map)?;
    write_file(c"/proc/self/gid_map", &plan.gid_map)
}

fn write_file(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: the path ends with 0, the text has that length, the file is ours.
    unsafe {
        let file = check(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let nr = libc::write(file, text.as_ptr().cast(), text.len());
        let result = check(nr as c_int);
        libc::close(file);
        result.map(drop)
    }
}

fn mount(from: &std::ffi::CStr, to: &std::ffi::CStr, flags: libc::c_ulong) -> io::Result<()> {
    let none = std::ptr::null();
    // SAFETY: both texts end with 0.
    let result = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), none, flags, none.cast()) };
    check(result).map(drop)
}

fn listen(filter: &[libc::sock_filter]) -> io::Result<RawFd> {
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program and its instructions exist during the call.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    check(listener as c_int)
}

/// Memory for a control message with one file.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A message of one byte, to send or to receive with a file.
fn message(
    byte: &mut u8,
    control: &mut Control,
    done: impl FnOnce(&mut libc::msghdr) -> isize,
) -> isize {
    let mut part = libc::iovec { iov_base: (&raw mut *byte).cast(), iov_len: 1 };
    // SAFETY: all bytes 0 is a valid message header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: arithmetic.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as _;
    done(&mut header)
}

/// Sends a file (unix(7), SCM_RIGHTS).
fn send(socket: &UnixStream, file: RawFd) -> io::Result<()> {
    let mut byte = u8::MAX;
    let mut control = Control([0; 64]);
    let sent = message(&mut byte, &mut control, |header| {
        // SAFETY: the control buffer has room for one message with one file.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(first).cast::<RawFd>().write_unaligned(file);
            libc::sendmsg(socket.as_raw_fd(), header, 0)
        }
    });
    check(sent as c_int).map(drop)
}

/// Receives a file.
fn receive(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = 0;
    let mut control = Control([0; 64]);
    let mut file = -1;
    let got = message(&mut byte, &mut control, |header| {
        // SAFETY: the kernel fills the buffers of the header; a first control message exists if
        // the macro returns one.
        unsafe {
            let got = libc::recvmsg(socket.as_raw_fd(), header, libc::MSG_CMSG_CLOEXEC);
            let first = libc::CMSG_FIRSTHDR(header);
            if got == 1 && !first.is_null() && (*first).cmsg_type == libc::SCM_RIGHTS {
                file = libc::CMSG_DATA(first).cast::<RawFd>().read_unaligned();
            }
            got
        }
    });
    check(got as c_int)?;
    match file {
        ..0 => Err(io::Error::other("no filter arrived")),
        // SAFETY: the kernel has just made this descriptor for us.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
    }
}
