// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records what the user program of a sched_ext scheduler sets up before it attaches the scheduler:
//! variables, elements of maps, runs of programs. The result is a setup for the simulator
//! (docs/reference/sched-ext-setup.md).
//!
//! The program runs unchanged. It sees the files of the modelled machine, and schedlab answers its
//! calls of bpf(2) in place of the kernel. So neither root nor a kernel with sched_ext is needed,
//! only the type information (BTF) of such a kernel. The recording ends when the program, after it
//! has attached the scheduler, first waits for something.
//!
//! Or it goes on from there, in the simulated time of its scheduler (`live`).
#![cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(dead_code, reason = "programs run in simulated time on x86-64 Linux only")
)]

mod affinity;
mod arena;
mod bpf;
mod btf;
mod calls;
mod child;
mod file;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod live;
mod stage;
mod tree;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use live::{Backend, Live, SharedArena, Wait};

use affinity::Affinities;
use bpf::Bpf;
use btf::Btf;
use calls::{Answer, Arrival, Call, Calls};
use child::Mode;
use schedlab_model::machine::{Caches, Topology};
use stage::Stage;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The struct by which type information of a kernel with sched_ext is known.
const OPS: &str = "sched_ext_ops";
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
    let kernel = request.kernel_types()?;
    let stage = Stage::new(request)?;
    let mut bpf = Bpf::new(kernel, request.topology.nr_cpus());
    let end = {
        let mut program = Program::start(request, &stage)?;
        program.follow(&mut bpf)?
    };
    let name = request.name();
    match end {
        _ if bpf.attached.is_some() => request.recording(&bpf),
        End::Exit(status) => Err(failure(
            &format!("{name} ended before it attached a scheduler ({status})"),
            &stage.output(),
        )),
        End::Late | End::Attached => Err(request.late(&stage.output())),
    }
}

impl Request<'_> {
    /// The types of the kernel that the program sees.
    fn kernel_types(&self) -> Result<Arc<Btf>, RecordError> {
        let types = Btf::read(self.types).filter(|types| types.has(OPS));
        types.map(Arc::new).ok_or_else(|| {
            RecordError::Input(format!(
                "kernel {} has no sched_ext: its type information (BTF) lacks struct {OPS}. Take \
                 6.16 or later",
                self.kernel
            ))
        })
    }

    /// The program's name.
    fn name(&self) -> String {
        let name = self.command.first().map(|name| name.to_string_lossy());
        name.unwrap_or_default().into_owned()
    }

    /// The error of a program that takes too long.
    fn late(&self, output: &Path) -> RecordError {
        let (name, limit) = (self.name(), self.limit.as_secs());
        failure(
            &format!(
                "{name} has not attached a scheduler within {limit} s; --limit allows more time"
            ),
            output,
        )
    }

    /// What was recorded until the attach.
    fn recording(&self, bpf: &Bpf) -> Result<Recording, RecordError> {
        let Some(state) = &bpf.attached else {
            return Err(RecordError::Program("no scheduler is attached".into()));
        };
        let command: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let head = file::Head {
            command: &command.join(" "),
            kernel: self.kernel,
            topology: self.topology,
        };
        let (text, notes) = file::write(bpf.kernel(), bpf, state, &head);
        Ok(Recording { text, notes })
    }
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
struct Program {
    child: Child,
    calls: Calls,
    affinities: Affinities,
    deadline: Instant,
}

impl Drop for Program {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Kills a user program and its children.
fn end(child: &mut Child) {
    let group = child.id() as i32;
    // SAFETY: the group was made for the program, which has not been waited for yet or whose end
    // was seen; then there may be children of it left.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    let _ = child.wait();
}

impl Program {
    fn start(request: &Request<'_>, stage: &Stage) -> Result<Self, RecordError> {
        let (child, listener) = child::start(request.command, stage, Mode::Record)?;
        Ok(Self {
            child,
            calls: Calls(listener),
            affinities: Affinities::new(request.topology.nr_cpus()),
            deadline: Instant::now() + request.limit,
        })
    }

    /// Answers calls until the recording ends.
    fn follow(&mut self, bpf: &mut Bpf) -> Result<End, RecordError> {
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

    fn answer(&mut self, bpf: &mut Bpf, call: &Call) -> Answer {
        match call.nr {
            libc::SYS_bpf => bpf.answer(call, self.affinities.cpu(call.thread)),
            libc::SYS_sched_getaffinity => self.affinities.get(call),
            libc::SYS_sched_setaffinity => self.affinities.set(call),
            // Nothing ever arrives in a ring buffer here; a file in memory cannot be waited for.
            libc::SYS_epoll_ctl if bpf.has_made(call, call.args[2] as u32) => Answer::Value(0),
            _ => Answer::Proceed,
        }
    }
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

/// The error of a program: what it did, and the end of its output.
fn failure(what: &str, output: &Path) -> RecordError {
    use std::io::Read;
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
