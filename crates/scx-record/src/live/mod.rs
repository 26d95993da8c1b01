// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user program in simulated time: unchanged, next to a simulation of its scheduler.
//!
//! Until the attach it is recorded like every user program. Afterwards it goes on in steps. A step
//! lasts until all of its threads wait; the simulation stands still meanwhile. Its maps and
//! variables are those of the simulated scheduler ([`Backend`]), its clocks those of the
//! simulation, and its threads run one at a time, in an order that depends on nothing else
//! (`threads`).
//!
//! The vDSO reads clocks without a system call, so its functions are replaced by system calls
//! (`vdso`). Addresses and random bytes are the same in each run.

mod blocking;
mod clocks;
mod files;
mod futex;
mod maps;
mod rings;
mod sections;
mod threads;
mod vdso;

use crate::affinity::Affinities;
use crate::bpf::Bpf;
use crate::calls::{Answer, Call, Calls};
use crate::child::{self, Mode};
use crate::stage::Stage;
use crate::{RecordError, Recording, Request, failure};
use clocks::Clocks;
pub(crate) use rings::Ring;
use rings::Rings;
use sections::Sections;
use std::fs::File;
use std::ops::Range;
use std::process::Child;
use std::time::{Duration, Instant};
use threads::Threads;

/// The program's process id, as it sees it.
pub(crate) const PID: u32 = 900;
/// How long before the attach the program's clocks start (ns).
const BEFORE_ATTACH_NS: u64 = 100_000_000_000;
/// What a call of sched_yield takes before the attach (ns).
const YIELD_NS: u64 = 1_000;
/// Longest time of this machine that a step may take.
const STEP_MAX: Duration = Duration::from_secs(30);

/// The simulated scheduler, as its user program reaches it. Errors are error numbers.
pub trait Backend {
    /// The value of a key; all CPUs' values, each as a multiple of 8 bytes, in a map with one for
    /// each.
    ///
    /// # Errors
    /// There is no such map or key.
    fn lookup(&mut self, map: &str, key: &[u8]) -> Result<Vec<u8>, i32>;
    /// Sets the value of a key. An empty key: adds it to a queue.
    ///
    /// # Errors
    /// The map is full, or does not take it.
    fn update(&mut self, map: &str, key: &[u8], value: &[u8], flags: u64) -> Result<(), i32>;
    /// Removes a key.
    ///
    /// # Errors
    /// There is no such map or key.
    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), i32>;
    /// Removes the next value of a queue.
    ///
    /// # Errors
    /// There is none.
    fn pop(&mut self, map: &str) -> Result<Vec<u8>, i32>;
    /// The key after `key`, or the first one.
    ///
    /// # Errors
    /// There is none.
    fn next_key(&mut self, map: &str, key: Option<&[u8]>) -> Result<Vec<u8>, i32>;
    /// Runs a program with an argument, which it may change. Returns what the program returns.
    ///
    /// # Errors
    /// There is no such program.
    fn run(&mut self, program: &str, context: &mut [u8], cpu: Option<u32>) -> Result<i32, i32>;
    /// The bytes of a variable; `None`: the scheduler has none of this name.
    fn variable(&mut self, name: &str) -> Option<Vec<u8>>;
    /// Sets bytes of a variable from an offset on.
    fn set_variable(&mut self, name: &str, offset: usize, bytes: &[u8]);
    /// Removes the next record of a ring buffer, if it has at most `most` bytes.
    fn take_record(&mut self, map: &str, most: u64) -> Option<Vec<u8>>;
    /// Adds a record to a user ring buffer. Returns whether it has room.
    fn give_record(&mut self, map: &str, record: &[u8]) -> bool;
    /// The text of /proc/stat.
    fn times(&mut self) -> String;
}

/// What the program waits for after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// This time since boot (ns); `None`: for no time.
    Until(Option<u64>),
    /// Nothing: it called sched_yield.
    Yield,
}

/// Why the program's threads do not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pause {
    /// It has just attached its scheduler.
    Attached,
    /// All threads wait.
    Waits(Wait),
}

/// What is done about a call.
enum Served {
    /// Its thread goes on.
    Answer(Answer),
    /// Its thread waits.
    Blocks(threads::Why, Option<u64>),
    /// Its thread lets others go first.
    Yields,
    /// Its thread ends.
    Ends,
}

/// An arena that the program has mapped. The scheduler must have it at the same address, because
/// both keep pointers in it.
#[derive(Debug)]
pub struct SharedArena {
    /// The map.
    pub map: String,
    /// Its memory.
    pub file: File,
    /// Where the program has it.
    pub range: Range<u64>,
}

/// A running user program. It is killed when this is dropped.
#[derive(Debug)]
pub struct Live {
    child: Child,
    calls: Calls,
    threads: Threads,
    clocks: Clocks,
    bpf: Bpf,
    affinities: Affinities,
    sections: Sections,
    rings: Rings,
    stage: Stage,
    name: String,
    /// The call by which the scheduler was attached, until it is answered.
    attach: Option<(Call, Answer)>,
    random: u64,
}

impl Drop for Live {
    fn drop(&mut self) {
        crate::end(&mut self.child);
    }
}

impl Live {
    /// Starts the program and records its setup. It waits in its attach, which is at `attach_at` of
    /// its clocks (ns since boot).
    ///
    /// # Errors
    /// Those of [`crate::record`].
    pub fn start(
        request: &Request<'_>,
        attach_at: u64,
        times: &str,
    ) -> Result<(Self, Recording), RecordError> {
        let kernel = request.kernel_types()?;
        let stage = Stage::new(request)?;
        stage.show_times(times)?;
        let (child, listener) = child::start(request.command, &stage, Mode::Live)?;
        let nr_cpus = request.topology.nr_cpus();
        let mut live = Self {
            threads: Threads::new(child.id()),
            child,
            calls: Calls(listener),
            clocks: Clocks::new(attach_at.saturating_sub(BEFORE_ATTACH_NS)),
            bpf: Bpf::new(kernel, nr_cpus),
            affinities: Affinities::new(nr_cpus),
            sections: Sections::default(),
            rings: Rings::default(),
            stage,
            name: request.name(),
            attach: None,
            random: 0,
        };
        live.until_attached(request, attach_at)?;
        let recording = request.recording(&live.bpf)?;
        live.sections = Sections::new(live.bpf.shared());
        live.rings.set(live.bpf.rings());
        live.clocks.advance(attach_at);
        Ok((live, recording))
    }

    /// The arenas of its scheduler.
    pub fn arenas(&self) -> Vec<SharedArena> {
        let all = self.bpf.arenas(self.child.id()).into_iter();
        all.map(|(map, file, range)| SharedArena { map, file, range }).collect()
    }

    fn until_attached(&mut self, request: &Request<'_>, attach_at: u64) -> Result<(), RecordError> {
        let deadline = Instant::now() + request.limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(pause) = self.go_on(None, left)? else {
                let limit = request.limit.as_secs();
                return Err(self.error(&format!("has not attached a scheduler within {limit} s")));
            };
            match pause {
                Pause::Attached => return Ok(()),
                Pause::Waits(Wait::Yield) => self.clocks.advance(self.clocks.now() + YIELD_NS),
                Pause::Waits(Wait::Until(Some(at))) if at < attach_at => self.clocks.advance(at),
                Pause::Waits(Wait::Until(_)) => {
                    return Err(self.error("waits for ever before it attaches a scheduler"));
                }
            }
            self.threads.release_yielded();
        }
    }

    /// Lets the program go on at a time since boot (ns) until all of its threads wait.
    ///
    /// # Errors
    /// The program has ended, or does not come to wait.
    pub fn step(&mut self, now: u64, backend: &mut dyn Backend) -> Result<Wait, RecordError> {
        self.clocks.advance(now);
        self.stage.show_times(&backend.times())?;
        self.sections.pull(backend)?;
        self.rings.pull(backend)?;
        if let Some((call, answer)) = self.attach.take() {
            self.stage.show_attached()?;
            self.threads.answer_first(call, answer);
        }
        self.threads.release_yielded();
        let pause = self.go_on(Some(backend), STEP_MAX)?;
        self.sections.push(backend)?;
        self.rings.push(backend)?;
        match pause {
            Some(Pause::Waits(wait)) => Ok(wait),
            Some(Pause::Attached) => Err(self.error("attaches a second scheduler")),
            None => Err(self.error(&format!(
                "has not come to wait within {} s of this machine's time",
                STEP_MAX.as_secs()
            ))),
        }
    }

    /// The bytes that the program wrote to stdout and stderr are in its output file; an error shows
    /// the last lines.
    fn error(&self, what: &str) -> RecordError {
        failure(&format!("{} {what}", self.name), &self.stage.output())
    }

    /// Answers calls until all threads wait. `None`: the time is up.
    fn go_on(
        &mut self,
        mut backend: Option<&mut dyn Backend>,
        limit: Duration,
    ) -> Result<Option<Pause>, RecordError> {
        let deadline = Instant::now() + limit;
        loop {
            let next =
                match self.threads.next(&self.calls, self.clocks.now(), &self.rings, deadline)? {
                    threads::Next::Call(call) => call,
                    threads::Next::Wait(wait) => return Ok(Some(Pause::Waits(wait))),
                    threads::Next::Late => return Ok(None),
                    threads::Next::Ended => {
                        let status = self.child.wait()?;
                        let when = match backend {
                            Some(_) => "",
                            None => " before it attached a scheduler",
                        };
                        let what = format!("ended ({status}){when}");
                        return Err(self.error(&what));
                    }
                };
            let was_attached = self.bpf.attached.is_some();
            let served = match &mut backend {
                Some(backend) => self.serve(&next, Some(&mut **backend))?,
                None => self.serve(&next, None)?,
            };
            match served {
                Served::Answer(answer) if self.bpf.attached.is_some() != was_attached => {
                    self.attach = Some((next, answer));
                    return Ok(Some(Pause::Attached));
                }
                Served::Answer(answer) => self.threads.answer(&self.calls, &next, answer)?,
                Served::Blocks(why, until) => self.threads.block(next, why, until),
                Served::Yields => self.threads.yields(next),
                Served::Ends => self.threads.end(&self.calls, &next)?,
            }
        }
    }

    /// Decides about a call.
    fn serve(
        &mut self,
        call: &Call,
        backend: Option<&mut dyn Backend>,
    ) -> Result<Served, RecordError> {
        let answer = match call.nr {
            libc::SYS_bpf => self.bpf_call(call, backend)?,
            libc::SYS_sched_getaffinity => self.affinities.get(call),
            libc::SYS_sched_setaffinity => self.affinities.set(call),
            libc::SYS_epoll_ctl if self.bpf.has_made(call, call.args[2] as u32) => {
                let number = call.file(call.args[2] as u32).unwrap_or(0);
                self.rings.watch(call, number);
                Answer::Value(0)
            }
            libc::SYS_getpid => Answer::Value(i64::from(PID)),
            libc::SYS_getcpu => clocks::cpu(call),
            libc::SYS_getrandom => self.random(call),
            libc::SYS_clock_gettime => self.clocks.gettime(call),
            libc::SYS_gettimeofday => self.clocks.timeofday(call),
            libc::SYS_time => self.clocks.seconds(call),
            libc::SYS_arch_prctl | libc::SYS_set_tid_address => {
                vdso::replace(call.thread)?;
                Answer::Proceed
            }
            libc::SYS_sched_yield => return Ok(Served::Yields),
            libc::SYS_exit => return Ok(Served::Ends),
            libc::SYS_futex => return Ok(self.threads.futex(&self.clocks, call)),
            _ => {
                return Ok(match threads::ring_events(call, &self.rings) {
                    Some(answer) => Served::Answer(answer),
                    None => blocking::serve(&self.clocks, call),
                });
            }
        };
        Ok(Served::Answer(answer))
    }

    /// getrandom(2): the same bytes in each run (splitmix64).
    fn random(&mut self, call: &Call) -> Answer {
        const MOST: u64 = 1 << 16;
        let len = call.args[1].min(MOST) as usize;
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = self.random;
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.extend_from_slice(&(word ^ word >> 31).to_le_bytes());
        }
        match call.write(call.args[0], &bytes[..len]) {
            true => Answer::Value(len as i64),
            false => Answer::Error(libc::EFAULT),
        }
    }
}
