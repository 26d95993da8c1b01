// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a program in simulated time. One runs at a time, until it waits, yields or ends;
//! the others stand in calls that are not answered yet. So their order depends on the program
//! alone.
//!
//! A new thread stands in its first call, by which the C library registers it (rseq,
//! set_robust_list). It gets its turn after those that were ready before.

use super::rings::Rings;
use super::{Wait, files, futex};
use crate::calls::{Answer, Arrival, Call, Calls};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// How often the running thread is looked at while it makes no call.
const LOOK: Duration = Duration::from_millis(50);
/// How long a new thread may take to its first call, or an ending one to its end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks at a sleeping thread after which it counts as waiting in a call that is not answered here.
const LOOKS: u32 = 3;

/// What a thread waits for, in addition to a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// Nothing else.
    Time,
    /// A signal.
    Signal,
    /// A wake-up of a futex.
    Futex { at: u64, value: u32, bits: u32 },
    /// Input of a file.
    File(u32),
    /// Events of an epoll.
    Epoll(i32),
    /// Events of files.
    Poll { at: u64, files: Vec<(i32, i16)> },
    /// The same, with sets.
    Select { sets: [u64; 3], len: usize, files: Vec<(i32, i16)> },
}

/// A thread that waits.
#[derive(Debug)]
struct Blocked {
    call: Call,
    why: Why,
    until: Option<u64>,
}

/// What comes next.
pub(super) enum Next {
    /// A call to decide about.
    Call(Call),
    /// All threads wait.
    Wait(Wait),
    /// The deadline has passed.
    Late,
    /// The program has ended.
    Ended,
}

/// The threads.
#[derive(Debug)]
pub(super) struct Threads {
    /// The process.
    process: u32,
    /// Threads that have been seen.
    known: BTreeSet<u32>,
    /// Calls of threads that are not the running one, as they arrive.
    arrived: BTreeMap<u32, Call>,
    /// Threads that can go on, in order: their calls, and answers if these are known.
    ready: VecDeque<(Call, Option<Answer>)>,
    /// Threads that wait, in order.
    blocked: Vec<Blocked>,
    yielded: Vec<Call>,
    running: Option<u32>,
    /// How often the running thread was found asleep.
    nr_asleep: u32,
}

/// The answer of a wait whose time is over.
fn timeout(blocked: &Blocked) -> Answer {
    let call = &blocked.call;
    match &blocked.why {
        Why::Time | Why::Epoll(_) | Why::File(_) => Answer::Value(0),
        Why::Signal => Answer::Error(libc::EAGAIN),
        Why::Futex { .. } => Answer::Error(libc::ETIMEDOUT),
        Why::Poll { at, files } => {
            let is_written =
                (0..files.len() as u64).all(|nth| call.write(at + 8 * nth + 6, &[0; 2]));
            if is_written { Answer::Value(0) } else { Answer::Error(libc::EFAULT) }
        }
        Why::Select { sets, len, .. } => {
            sets.iter().filter(|at| **at != 0).for_each(|at| {
                call.write(*at, &vec![0; *len]);
            });
            Answer::Value(0)
        }
    }
}

impl Threads {
    /// The first thread of a process runs.
    pub(super) fn new(process: u32) -> Self {
        Self {
            process,
            known: BTreeSet::from([process]),
            arrived: BTreeMap::new(),
            ready: VecDeque::new(),
            blocked: Vec::new(),
            yielded: Vec::new(),
            running: Some(process),
            nr_asleep: 0,
        }
    }

    /// Lets threads run until one makes a call, or all wait.
    pub(super) fn next(
        &mut self,
        calls: &Calls,
        now: u64,
        rings: &Rings,
        deadline: Instant,
    ) -> io::Result<Next> {
        loop {
            if Instant::now() > deadline {
                return Ok(Next::Late);
            }
            let Some(running) = self.running else {
                self.gather(calls)?;
                match self.ready.pop_front() {
                    Some((call, None)) => return Ok(Next::Call(call)),
                    Some((call, Some(answer))) => self.answer(calls, &call, answer)?,
                    None => match self.take_due(now, rings) {
                        Some((call, answer)) => self.answer(calls, &call, answer)?,
                        None => return Ok(Next::Wait(self.wait())),
                    },
                }
                continue;
            };
            match calls.next(LOOK)? {
                Arrival::Call(call) if call.thread == running => {
                    self.running = None;
                    return Ok(Next::Call(call));
                }
                Arrival::Call(call) => {
                    self.arrived.insert(call.thread, call);
                }
                Arrival::Nothing => self.look(running),
                Arrival::Ended => return Ok(Next::Ended),
            }
        }
    }

    /// The running thread makes no call: whether it still runs.
    fn look(&mut self, running: u32) {
        self.nr_asleep = match state(running) {
            None => {
                self.gone(running);
                return;
            }
            Some('S') => self.nr_asleep + 1,
            Some(_) => 0,
        };
        if self.nr_asleep >= LOOKS {
            self.running = None;
        }
    }

    fn gone(&mut self, thread: u32) {
        self.known.remove(&thread);
        self.running = self.running.filter(|running| *running != thread);
        self.notice_words();
    }

    /// Gives the calls of new threads their turn, in the order in which the threads were made.
    /// Waits for those that have made none yet.
    fn gather(&mut self, calls: &Calls) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/task", self.process)) else {
            return Ok(());
        };
        let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut new: Vec<u32> = ids.filter(|id| !self.known.contains(id)).collect();
        new.extend(self.arrived.keys().filter(|id| self.known.contains(id)));
        new.sort_unstable();
        for thread in new {
            let deadline = Instant::now() + PATIENCE;
            while !self.arrived.contains_key(&thread) {
                match calls.next(LOOK)? {
                    Arrival::Call(call) => {
                        self.arrived.insert(call.thread, call);
                    }
                    Arrival::Nothing if state(thread).is_some() && Instant::now() < deadline => {}
                    Arrival::Nothing | Arrival::Ended => break,
                }
            }
            // One that makes no call in time is not waited for again.
            self.known.insert(thread);
            if let Some(call) = self.arrived.remove(&thread) {
                self.ready.push_back((call, None));
            }
        }
        Ok(())
    }

    /// A waiting thread that can go on, and the answer to its call: the one whose time came first,
    /// else the first whose files are ready.
    fn take_due(&mut self, now: u64, rings: &Rings) -> Option<(Call, Answer)> {
        let due = |(nth, blocked): (usize, &Blocked)| {
            blocked.until.filter(|until| *until <= now).map(|until| (until, nth))
        };
        if let Some((_, nth)) = self.blocked.iter().enumerate().filter_map(due).min() {
            let blocked = self.blocked.remove(nth);
            let answer = timeout(&blocked);
            return Some((blocked.call, answer));
        }
        let has_records = |blocked: &Blocked| ring_events(&blocked.call, rings);
        let ring = self.blocked.iter().enumerate();
        let ring = ring.filter_map(|(nth, blocked)| Some((nth, has_records(blocked)?))).next();
        if let Some((nth, answer)) = ring {
            return Some((self.blocked.remove(nth).call, answer));
        }
        let is_ready = |blocked: &Blocked| files::is_ready(&blocked.call, &blocked.why);
        let nth = self.blocked.iter().position(is_ready)?;
        Some((self.blocked.remove(nth).call, Answer::Proceed))
    }

    /// What the program waits for when no thread can go on.
    fn wait(&self) -> Wait {
        match self.yielded.is_empty() {
            true => Wait::Until(self.blocked.iter().filter_map(|blocked| blocked.until).min()),
            false => Wait::Yield,
        }
    }

    /// Answers a call; its thread runs.
    pub(super) fn answer(&mut self, calls: &Calls, call: &Call, answer: Answer) -> io::Result<()> {
        self.running = Some(call.thread);
        self.nr_asleep = 0;
        calls.answer(call, answer)
    }

    /// A call gets its answer before others do.
    pub(super) fn answer_first(&mut self, call: Call, answer: Answer) {
        self.ready.push_front((call, Some(answer)));
    }

    /// A thread waits.
    pub(super) fn block(&mut self, call: Call, why: Why, until: Option<u64>) {
        self.blocked.push(Blocked { call, why, until });
    }

    /// A thread lets others go first.
    pub(super) fn yields(&mut self, call: Call) {
        self.yielded.push(call);
    }

    /// Threads that have yielded go on.
    pub(super) fn release_yielded(&mut self) {
        let calls = self.yielded.drain(..);
        self.ready.extend(calls.map(|call| (call, Some(Answer::Value(0)))));
    }

    /// A thread ends. The kernel clears a word that another thread may wait for.
    pub(super) fn end(&mut self, calls: &Calls, call: &Call) -> io::Result<()> {
        calls.answer(call, Answer::Proceed)?;
        let deadline = Instant::now() + PATIENCE;
        while state(call.thread).is_some_and(|state| state != 'Z') && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.gone(call.thread);
        Ok(())
    }

    /// Wakes threads whose futex has changed without a call.
    fn notice_words(&mut self) {
        let mut nth = 0;
        while let Some(blocked) = self.blocked.get(nth) {
            match blocked.why {
                Why::Futex { at, value, .. }
                    if futex::word(&blocked.call, at).is_some_and(|word| word != value) =>
                {
                    let call = self.blocked.remove(nth).call;
                    self.ready.push_back((call, Some(Answer::Value(0))));
                }
                _ => nth += 1,
            }
        }
    }

    /// Wakes up to `nr` threads that wait for the futex at `of` with one of these bits. Returns how
    /// many.
    pub(super) fn wake(&mut self, of: u64, nr: u32, by: u32) -> i64 {
        let (mut woken, mut nth) = (0, 0);
        while woken < i64::from(nr)
            && let Some(blocked) = self.blocked.get(nth)
        {
            match blocked.why {
                Why::Futex { at, bits, .. } if at == of && bits & by != 0 => {
                    let call = self.blocked.remove(nth).call;
                    self.ready.push_back((call, Some(Answer::Value(0))));
                    woken += 1;
                }
                _ => nth += 1,
            }
        }
        woken
    }

    /// Lets up to `nr` threads that wait for one futex wait for another. Returns how many.
    pub(super) fn requeue(&mut self, from: u64, to: u64, nr: u32) -> i64 {
        let mut moved = 0;
        for blocked in &mut self.blocked {
            if let Why::Futex { at, .. } = &mut blocked.why
                && *at == from
                && moved < i64::from(nr)
            {
                *at = to;
                moved += 1;
            }
        }
        moved
    }
}

/// The answer to a call of epoll_wait(2) if ring buffers that it watches have records.
pub(super) fn ring_events(call: &Call, rings: &Rings) -> Option<Answer> {
    const WAITS: [libc::c_long; 3] =
        [libc::SYS_epoll_wait, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2];
    let events =
        WAITS.contains(&call.nr).then(|| rings.events(call.args[0] as u32, call.args[2]))?;
    let nr = (events.len() / 12) as i64;
    (nr > 0).then(|| match call.write(call.args[1], &events) {
        true => Answer::Value(nr),
        false => Answer::Error(libc::EFAULT),
    })
}

/// The state of a thread in a letter; `None`: it has ended.
fn state(thread: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}
