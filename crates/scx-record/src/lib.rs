// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records what the user program of a sched_ext scheduler sets up before it attaches the scheduler:
//! variables, elements of maps, runs of programs. The result is a setup for the simulator
//! (docs/reference/sched-ext-setup.md).
//!
//! The program runs unchanged. It sees the files of the modelled machine, and schedlab answers its
//! calls of bpf(2) in place of the kernel. So neither root nor a kernel with sched_ext is needed,
//! only the type information (BTF) of such a kernel. The recording ends when the program, after it
//! has attached the scheduler, first waits for something.

mod arena;
mod bpf;
mod btf;
mod calls;
mod child;
mod file;
mod tree;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use bpf::Bpf;
use btf::Btf;
use calls::{Answer, Arrival, Call, Calls};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::machine::{Caches, Topology};
use schedlab_model::{CpuId, CpuMask};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// The struct by which type information of a kernel with sched_ext is known.
const OPS: &str = "sched_ext_ops";
/// The list of mounts.
const MOUNTS: &str = "/proc/self/mounts";
/// Time for what a program does right after the attach.
const AFTER_ATTACH: Duration = Duration::from_secs(2);
/// How often the program is looked at while it makes no call.
const LOOK: Duration = Duration::from_millis(50);
/// Lines of the program's output that an error shows.
const LINES_SHOWN: usize = 12;
/// Bytes of the program's output that are read for that.
const OUTPUT_MAX: u64 = 1 << 20;

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The request is wrong.
    #[error("{0}")]
    Input(String),
    /// This machine cannot do it.
    #[error("{0}")]
    Unavailable(String),
    /// The user program failed.
    #[error("{0}")]
    Program(String),
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(format!("cannot record: {error}"))
    }
}

/// What to record.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The user program and its arguments.
    pub command: &'a [OsString],
    /// The machine that the program sees.
    pub topology: &'a Topology,
    /// The machine's caches.
    pub caches: &'a Caches,
    /// Type information (BTF) of a kernel with sched_ext.
    pub types: &'a [u8],
    /// The release of this kernel.
    pub kernel: &'a str,
    /// How long the program may take to attach its scheduler.
    pub limit: Duration,
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The setup (TOML).
    pub text: String,
    /// What it lacks, one sentence each.
    pub notes: Vec<String>,
}

/// Whether the type information is that of a kernel with sched_ext.
pub fn has_sched_ext(types: &[u8]) -> bool {
    Btf::read(types).is_some_and(|types| types.has(OPS))
}

/// Runs the user program until it has attached its scheduler, and records its setup.
///
/// # Errors
/// This machine lacks something, or the program ends or takes too long before the attach.
pub fn record(request: &Request<'_>) -> Result<Recording, RecordError> {
    let kernel = Btf::read(request.types).filter(|types| types.has(OPS)).ok_or_else(|| {
        RecordError::Input(format!(
            "kernel {} has no sched_ext: its type information (BTF) lacks struct {OPS}. Take 6.16 \
             or later",
            request.kernel
        ))
    })?;
    let folder = tempfile::tempdir()?;
    let [sys, run, mounted] = ["sys", "run", "mounts"].map(|name| folder.path().join(name));
    tree::write(&sys, request.topology, request.caches, request.types)?;
    // An empty /run hides the services of this machine, such as the daemon of power profiles.
    fs::create_dir(&run)?;
    fs::write(&mounted, fs::read_to_string(MOUNTS)? + tree::MOUNT)?;
    let path = folder.path().join("output");
    let output = File::create(&path)?;
    let mounts: [(&Path, &str); 3] = [(&sys, "/sys"), (&run, "/run"), (&mounted, MOUNTS)];
    let mut bpf = Bpf::new(&kernel, request.topology.nr_cpus());
    let end = {
        let mut program = Program::start(request, &mounts, &output)?;
        program.follow(&mut bpf)?
    };
    let Some(state) = &bpf.attached else {
        return Err(failure(request, end, &path));
    };
    let command: Vec<_> = request.command.iter().map(|word| word.to_string_lossy()).collect();
    let head = file::Head {
        command: &command.join(" "),
        kernel: request.kernel,
        topology: request.topology,
    };
    let (text, notes) = file::write(&kernel, &bpf, state, &head);
    Ok(Recording { text, notes })
}

/// How the recording ended.
#[derive(Clone, PartialEq, Eq, Debug)]
enum End {
    /// The scheduler is attached and the program waits.
    Attached,
    /// The program ended: its status in words.
    Exit(String),
    /// The time was up.
    Late,
}

/// The running user program. It is killed when this is dropped.
struct Program<'a> {
    child: Child,
    calls: Calls,
    request: &'a Request<'a>,
    /// The CPUs that threads have chosen for themselves.
    affinity: BTreeMap<u32, CpuMask>,
    deadline: Instant,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        let group = self.child.id() as i32;
        // SAFETY: the group was made for the program, which has not been waited for yet or whose
        // end was seen; then there may be children of it left.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

impl<'a> Program<'a> {
    fn start(
        request: &'a Request<'a>,
        mounts: &[(&Path, &str)],
        output: &File,
    ) -> Result<Self, RecordError> {
        let (child, listener) = child::start(request.command, mounts, output)?;
        Ok(Self {
            child,
            calls: Calls(listener),
            request,
            affinity: BTreeMap::new(),
            deadline: Instant::now() + request.limit,
        })
    }

    /// Answers calls until the recording ends.
    fn follow(&mut self, bpf: &mut Bpf<'_>) -> Result<End, RecordError> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(if bpf.attached.is_some() { End::Attached } else { End::Late });
            }
            match self.calls.next(left.min(LOOK))? {
                Arrival::Call(call) => {
                    if waits(&call)
                        && bpf.attached.as_ref().is_some_and(|at| at.thread == call.thread)
                    {
                        return Ok(End::Attached);
                    }
                    let was_attached = bpf.attached.is_some();
                    let answer = self.answer(bpf, &call);
                    self.calls.answer(&call, answer)?;
                    if bpf.attached.is_some() && !was_attached {
                        self.deadline = Instant::now() + AFTER_ATTACH;
                    }
                }
                Arrival::Nothing | Arrival::Ended => {
                    if let Some(status) = self.child.try_wait()? {
                        return Ok(End::Exit(status.to_string()));
                    }
                }
            }
        }
    }

    fn answer(&mut self, bpf: &mut Bpf<'_>, call: &Call) -> Answer {
        match call.nr {
            libc::SYS_bpf => {
                let chosen = self.affinity.get(&call.thread).and_then(CpuMask::first_cpu);
                bpf.answer(call, chosen.map(|cpu| cpu.0))
            }
            libc::SYS_sched_getaffinity => self.get_affinity(call),
            libc::SYS_sched_setaffinity => self.set_affinity(call),
            // Nothing ever arrives in a ring buffer here; a file in memory cannot be waited for.
            libc::SYS_epoll_ctl if bpf.has_made(call, call.args[2] as u32) => Answer::Value(0),
            _ => Answer::Proceed,
        }
    }

    fn all_cpus(&self) -> CpuMask {
        CpuMask::first(self.request.topology.nr_cpus())
    }

    /// sched_getaffinity(2): the CPUs of the machine that the thread has chosen, else all.
    fn get_affinity(&self, call: &Call) -> Answer {
        let words = self.request.topology.nr_cpus().div_ceil(64) as usize;
        if (call.args[1] as usize) < 8 * words {
            return Answer::Error(libc::EINVAL);
        }
        let mask = self.affinity.get(&thread(call)).copied().unwrap_or(self.all_cpus());
        let bytes: Vec<u8> =
            mask.words()[..words].iter().flat_map(|word| word.to_le_bytes()).collect();
        match call.write(call.args[2], &bytes) {
            true => Answer::Value(bytes.len() as i64),
            false => Answer::Error(libc::EFAULT),
        }
    }

    /// sched_setaffinity(2), on the machine's CPUs.
    fn set_affinity(&mut self, call: &Call) -> Answer {
        let len = (call.args[1] as usize).min(NR_CPUS_MAX / 8);
        let Some(bytes) = call.read(call.args[2], len) else { return Answer::Error(libc::EFAULT) };
        let all = self.all_cpus();
        let is_set = |cpu: &CpuId| {
            bytes.get(cpu.index() / 8).is_some_and(|byte| byte >> (cpu.index() % 8) & 1 == 1)
        };
        let chosen: CpuMask = all.iter().filter(is_set).collect();
        if chosen.is_empty() {
            return Answer::Error(libc::EINVAL);
        }
        match chosen == all {
            true => self.affinity.remove(&thread(call)),
            false => self.affinity.insert(thread(call), chosen),
        };
        Answer::Value(0)
    }
}

/// The thread that a call about affinity names.
fn thread(call: &Call) -> u32 {
    if call.args[0] == 0 { call.thread } else { call.args[0] as u32 }
}

/// Whether a call waits for something to happen or for time to pass, as the main loop of a user
/// program does. A lock is waited for without a time limit.
fn waits(call: &Call) -> bool {
    const WAIT: u64 = libc::FUTEX_WAIT as u64;
    const WAIT_BITSET: u64 = libc::FUTEX_WAIT_BITSET as u64;
    match call.nr {
        libc::SYS_futex => matches!(call.args[1] & 0x7f, WAIT | WAIT_BITSET) && call.args[3] != 0,
        _ => child::BLOCKING.contains(&call.nr),
    }
}

/// A text without the escape sequences of terminals (ECMA-48, CSI).
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        all + &part[end..]
    })
}

/// The error of a program that has not attached a scheduler.
fn failure(request: &Request<'_>, end: End, output: &Path) -> RecordError {
    use std::io::Read;
    let name = request.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let what = match end {
        End::Exit(status) => format!("{name} ended before it attached a scheduler ({status})"),
        End::Late | End::Attached => format!(
            "{name} has not attached a scheduler within {} s; --limit allows more time",
            request.limit.as_secs()
        ),
    };
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(output) {
        // What was read before an error is as good as nothing.
        let _ = file.take(OUTPUT_MAX).read_to_end(&mut bytes);
    }
    let text = without_colours(&String::from_utf8_lossy(&bytes));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
    match shown {
        [] => RecordError::Program(format!("{what}, and it printed nothing")),
        _ => RecordError::Program(format!(
            "{what}. The end of its output:\n  {}",
            shown.join("\n  ")
        )),
    }
}
