// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads traces that other tools printed: ftrace's `trace` and `trace_pipe`, `trace-cmd report`,
//! `perf script` and `perf sched script`.
//!
//! One pass in a fixed amount of memory (plus a few words per task). The text is treated as
//! hostile: lines, names, process ids, CPUs and tasks have limits, and an error names the line.
//! What a trace of another tool lacks is counted in [`Facts`] and never invented: tasks that lived
//! before it began, missing switches, lost events, a last line that was cut off.
//!
//! Time 0 is the first event. A text that schedlab wrote has a mark in its header ([`OWN_HEAD`])
//! and keeps its times. Every other trace begins on a running system; the sinks get a loss of 0
//! events ([`EventKind::Lost`]). Left out: the latency format of ftrace (its times are relative and
//! in whole microseconds).

mod fields;
mod lines;
mod prefix;
mod translate;

pub use fields::COMM_MAX;
pub use lines::LINE_MAX;
pub use prefix::PID_MAX;
pub use translate::WakeSource;

use crate::{Place, ReadError};
use fields::{Kernel, Who};
use lines::Line;
pub(crate) use lines::Lines;
use prefix::Prefix;
pub(crate) use prefix::shown;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{CpuId, Event, EventKind, Nanos, TaskId, TraceSink};
use std::io::Read;
use translate::{Context, Translator};

/// Header of a text that [`crate::FtraceSink`] wrote. Its times count from the start of the run.
pub const OWN_HEAD: &str = "# schedlab: the whole run, from 0 ns, CPUs ";
/// A line of such a text that announces an object: its kind and its name.
pub const OWN_OBJECT: &str = "# schedlab: object ";
/// The last line of such a text.
pub const OWN_END: &str = "# schedlab: end ";

/// How far back a time may go (ns). The tools merge lines of several CPUs by time stamps from the
/// CPUs' own clocks, which differ by microseconds.
pub const BACK_MAX_NS: Nanos = 10_000_000;

/// Which tool printed a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// tracefs: `trace` or `trace_pipe`.
    #[default]
    Ftrace,
    /// `trace-cmd report`.
    TraceCmd,
    /// `perf script` or `perf sched script`.
    Perf,
}

/// Facts about a trace in addition to its tasks and events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// The tool that printed it; `None` for schedlab's own formats.
    pub dialect: Option<Dialect>,
    /// CPUs of the machine, from the trace; or the greatest CPU number + 1, if the trace does not
    /// tell.
    pub nr_cpus: u32,
    /// Whether the trace tells `nr_cpus`.
    pub is_nr_cpus_stated: bool,
    /// Lines (text) or records read.
    pub nr_records: u64,
    /// Events passed to the sink.
    pub nr_events: u64,
    /// Tasks announced to the sink.
    pub nr_tasks: u64,
    /// Time of the first event by the trace's own clock (ns).
    pub start_clock_ns: Nanos,
    /// End of the trace (ns from its start).
    pub end_ns: Nanos,
    /// Whether schedlab recorded it: it contains the run from its start to its end.
    pub is_own: bool,
    /// Events that do not concern scheduling.
    pub nr_other_events: u64,
    /// Lines without an event, except headers and comments.
    pub nr_other_lines: u64,
    /// The first of them: its number and its text.
    pub other_line: Option<(u64, String)>,
    /// Switches.
    pub nr_switches: u64,
    /// Switches from a task that the trace does not show on that CPU: at least as many switches are
    /// missing.
    pub nr_missing_switches: u64,
    /// Events that the recorder lost, as far as it counted them.
    pub nr_lost_events: u64,
    /// How often the recorder reported a loss.
    pub nr_losses: u64,
    /// Events that the ring buffer overwrote before it was read (from ftrace's header).
    pub nr_overwritten_events: u64,
    /// Lines with a time before that of the line above. They get the latest time so far.
    pub nr_times_back: u64,
    /// The greatest such step back (ns).
    pub back_ns_max: Nanos,
    /// Whether the times are whole numbers without a decimal point, which are read as nanoseconds.
    pub is_clock_unknown: bool,
    /// Whether the last line was cut off. It is left out.
    pub is_cut_off: bool,
    /// Which events wake tasks; [`WakeSource::Wakeup`] for the project's own formats.
    pub wakes: WakeSource,
    /// The last name of each task that had several.
    pub last_names: Vec<(TaskId, String)>,
}

impl Facts {
    /// The last names by task; empty for tasks with one name. For the argument `names` of [`read`].
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (task, name) in &self.last_names {
            names.resize(names.len().max(task.index() + 1), String::new());
            names[task.index()].clone_from(name);
        }
        names
    }
}

/// Reads a text to its end.
///
/// `names`, by task, replace the first names seen; a first pass finds them. On an error the sink
/// has all events before it, and no `end`.
pub fn read<R: Read, S: TraceSink + ?Sized>(
    source: R,
    names: Vec<String>,
    sink: &mut S,
) -> Result<Facts, ReadError> {
    let mut lines = Lines::new(source);
    let mut reader = Reader { translator: Translator::new(names), ..Reader::default() };
    loop {
        let wrong = |number, what| ReadError { place: Place::Line(number), what };
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(what) => return Err(wrong(lines.number(), what)),
        };
        if line.is_cut_off {
            reader.facts.is_cut_off = true;
            break;
        }
        reader.line(line, sink).map_err(|what| wrong(line.number, what))?;
    }
    let number = lines.number();
    reader.finish(number, sink).map_err(|what| ReadError { place: Place::Line(number), what })
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Reader {
    translator: Translator,
    facts: Facts,
    /// Whether an event has been read.
    has_begun: bool,
    /// Latest time by the trace's own clock.
    clock_ns: Nanos,
    /// End of the run, if the text tells it.
    stated_end_ns: Option<Nanos>,
}

impl Reader {
    fn line<S: TraceSink + ?Sized>(&mut self, line: Line<'_>, sink: &mut S) -> Result<(), String> {
        let Some(first) = line.text.iter().find(|byte| !byte.is_ascii_whitespace()) else {
            return Ok(());
        };
        if *first == b'#' {
            return self.comment(line.text.trim_ascii(), sink);
        }
        match prefix::parse(line.text) {
            Some(prefix) => self.event_line(&prefix?, sink),
            None => self.other_line(line, sink),
        }
    }

    /// Reads headers: `#P:2` of ftrace, `nrcpus online` of perf, and those of schedlab with its
    /// objects.
    fn comment<S: TraceSink + ?Sized>(&mut self, text: &[u8], sink: &mut S) -> Result<(), String> {
        if let (true, Some(object)) = (self.facts.is_own, text.strip_prefix(OWN_OBJECT.as_bytes()))
        {
            return self.translator.object(object, sink);
        }
        if let Some(digits) = text.strip_prefix(OWN_HEAD.as_bytes()) {
            if self.has_begun {
                return Err("the head of a trace stands in the midst of another".into());
            }
            self.facts.is_own = true;
            return self.stated_cpus(digits);
        }
        if let Some(end) = text.strip_prefix(OWN_END.as_bytes()) {
            let digits = &end[..end.iter().take_while(|byte| byte.is_ascii_digit()).count()];
            self.stated_end_ns = Some(prefix::number(digits, u64::MAX, "end")?);
            return Ok(());
        }
        if let Some(counts) = text.strip_prefix(b"# entries-in-buffer/entries-written: ") {
            return self.ring_counts(counts);
        }
        match text.strip_prefix(b"# nrcpus online :") {
            Some(digits) => self.stated_cpus(digits.trim_ascii()),
            None => Ok(()),
        }
    }

    /// `205/1000   #P:4`: events in the ring buffer, events written to it, CPUs.
    fn ring_counts(&mut self, text: &[u8]) -> Result<(), String> {
        let count = |digits: &[u8]| prefix::number(digits.trim_ascii(), u64::MAX, "event count");
        let mut words = text.split(|byte| *byte == b'#');
        let mut counts = words.next().unwrap_or_default().split(|byte| *byte == b'/');
        let (kept, written) = (counts.next().unwrap_or_default(), counts.next());
        if let Some(written) = written {
            self.facts.nr_overwritten_events = count(written)?.saturating_sub(count(kept)?);
        }
        match words.next().and_then(|word| word.strip_prefix(b"P:")) {
            Some(digits) => self.stated_cpus(digits.trim_ascii()),
            None => Ok(()),
        }
    }

    fn stated_cpus(&mut self, digits: &[u8]) -> Result<(), String> {
        let nr_cpus = prefix::number(digits, NR_CPUS_MAX as u64, "number of CPUs")? as u32;
        if nr_cpus > 0 {
            self.facts.nr_cpus = nr_cpus;
            self.facts.is_nr_cpus_stated = true;
        }
        Ok(())
    }

    /// Reads a line without an event: a report of lost events, a header of trace-cmd, or other
    /// text.
    fn other_line<S: TraceSink + ?Sized>(
        &mut self,
        line: Line<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        let text = line.text.trim_ascii();
        if let Some((cpu, count)) = loss(text)? {
            self.begin(None, sink);
            return self.lost(cpu, count, sink);
        }
        if let Some(digits) = text.strip_prefix(b"cpus=") {
            self.facts.dialect = Some(Dialect::TraceCmd);
            return self.stated_cpus(digits);
        }
        if text.starts_with(b"version = ") || text.starts_with(b"CPU ") {
            return Ok(());
        }
        self.facts.nr_other_lines += 1;
        if self.facts.other_line.is_none() {
            self.facts.other_line = Some((line.number, translate::clean(shown(text).as_bytes())));
        }
        Ok(())
    }

    fn lost<S: TraceSink + ?Sized>(
        &mut self,
        cpu: u32,
        count: u32,
        sink: &mut S,
    ) -> Result<(), String> {
        self.facts.nr_losses += u64::from(count > 0);
        self.facts.nr_lost_events += u64::from(count);
        let (time_ns, kind) =
            (self.clock_ns - self.facts.start_clock_ns, EventKind::Lost { count });
        self.facts.nr_events += 1;
        sink.event(&Event { time_ns, cpu: CpuId(cpu), kind });
        self.translator.lost(CpuId(cpu));
        Ok(())
    }

    /// The first event, or a loss before it.
    fn begin<S: TraceSink + ?Sized>(&mut self, first_ns: Option<Nanos>, sink: &mut S) {
        if !self.has_begun && !self.facts.is_own && self.facts.nr_losses == 0 {
            // Tasks that run now began before.
            let kind = EventKind::Lost { count: 0 };
            sink.event(&Event { time_ns: 0, cpu: CpuId(0), kind });
        }
        if let (false, Some(first_ns)) = (self.has_begun, first_ns) {
            self.has_begun = true;
            self.clock_ns = first_ns;
            self.facts.start_clock_ns = if self.facts.is_own { 0 } else { first_ns };
        }
    }

    fn event_line<S: TraceSink + ?Sized>(
        &mut self,
        prefix: &Prefix<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        let kernel = fields::parse(prefix.event, prefix.fields)?;
        if kernel == Kernel::Other {
            self.facts.nr_other_events += 1;
            return Ok(());
        }
        self.begin(Some(prefix.time_ns), sink);
        self.note_dialect(prefix);
        let time_ns = self.advance(prefix.time_ns)?;
        let pid = prefix.pid.filter(|_| !prefix.in_irq);
        let at = Context {
            time_ns,
            cpu: CpuId(prefix.cpu),
            who: pid.map(|pid| Who { comm: prefix.comm, pid }),
        };
        self.translator.event(at, kernel, sink)
    }

    fn note_dialect(&mut self, prefix: &Prefix<'_>) {
        self.facts.is_clock_unknown |= !prefix.is_seconds;
        if self.facts.dialect.is_none() {
            let found = if prefix.is_perf { Dialect::Perf } else { Dialect::Ftrace };
            self.facts.dialect = Some(found);
        }
    }

    /// The time since the start of the trace. Time does not go back.
    fn advance(&mut self, clock_ns: Nanos) -> Result<Nanos, String> {
        if clock_ns < self.clock_ns {
            let back_ns = self.clock_ns - clock_ns;
            if back_ns > BACK_MAX_NS {
                return Err(format!(
                    "the time goes back from {} to {clock_ns} ns; at most {BACK_MAX_NS} ns are \
                     allowed, for CPUs whose clocks differ: sort the lines by time, record with \
                     trace_clock=mono, and give one recording at a time",
                    self.clock_ns
                ));
            }
            self.facts.nr_times_back += 1;
            self.facts.back_ns_max = self.facts.back_ns_max.max(back_ns);
        }
        self.clock_ns = self.clock_ns.max(clock_ns);
        Ok(self.clock_ns - self.facts.start_clock_ns)
    }

    fn finish<S: TraceSink + ?Sized>(
        mut self,
        nr_lines: u64,
        sink: &mut S,
    ) -> Result<Facts, String> {
        let is_empty_run = self.facts.is_own && self.stated_end_ns.is_some();
        if !self.has_begun && !is_empty_run {
            return Err(self.nothing_found(nr_lines));
        }
        if self.facts.is_own && self.stated_end_ns.is_none() {
            return Err(
                "the text ends without the line that schedlab writes last: it was cut off; \
                        export it again"
                    .into(),
            );
        }
        let last_ns = self.clock_ns.saturating_sub(self.facts.start_clock_ns);
        let end_ns = self.stated_end_ns.unwrap_or(last_ns).max(last_ns);
        let seen = self.translator.cpu_max + 1;
        let facts = &mut self.facts;
        if facts.is_nr_cpus_stated && facts.nr_cpus < seen {
            return Err(format!(
                "the trace has an event on CPU {}, but says that there are {} CPUs",
                seen - 1,
                facts.nr_cpus
            ));
        }
        facts.nr_cpus = facts.nr_cpus.max(seen);
        facts.nr_records = nr_lines;
        facts.nr_events += self.translator.counts.events;
        facts.nr_tasks = self.translator.nr_tasks() as u64;
        facts.end_ns = end_ns;
        facts.nr_switches = self.translator.counts.switches;
        facts.nr_missing_switches = self.translator.counts.missing_switches;
        facts.wakes = self.translator.wakes;
        facts.last_names = self.translator.names();
        sink.end(end_ns);
        Ok(self.facts)
    }

    fn nothing_found(&self, nr_lines: u64) -> String {
        let found = match &self.facts.other_line {
            Some((number, text)) => format!("line {number} is {text:?}"),
            None if self.facts.nr_other_events > 0 => {
                format!("{} events of other kinds", self.facts.nr_other_events)
            }
            None => "nothing but comments and empty lines".into(),
        };
        format!(
            "no scheduling event in {nr_lines} lines ({found}); wanted are lines of ftrace, \
             `trace-cmd report` or `perf script` with a CPU in brackets, such as \
             `sh-7 [000] d..2. 8317.072645: sched_switch: prev_comm=...`; record at least the \
             events sched_switch and sched_wakeup, with perf on all CPUs (-a)"
        )
    }
}

/// Reads a report of lost events: its CPU and their number (1 if the tool does not tell). ftrace's
/// `CPU:1 [LOST 5 EVENTS]`, trace-cmd's `CPU:1 [5 EVENTS DROPPED]`, perf's `PERF_RECORD_LOST lost
/// 5`.
fn loss(text: &[u8]) -> Result<Option<(u32, u32)>, String> {
    let number_in = |text: &[u8]| {
        let mut words = text.split(|byte| !byte.is_ascii_digit()).filter(|word| !word.is_empty());
        words.next().map(|digits| prefix::number(digits, u64::MAX, "count of lost events"))
    };
    let count_in = |text: &[u8]| match number_in(text).transpose() {
        Ok(count) => Ok(count.unwrap_or(1).min(u64::from(u32::MAX)) as u32),
        Err(error) => Err(error),
    };
    if let Some(rest) = text.strip_prefix(b"CPU:") {
        let Some(bracket) = memchr::memchr(b'[', rest) else { return Ok(None) };
        let what = &rest[bracket..];
        let is_loss = memchr::memmem::find(what, b"LOST").is_some()
            || memchr::memmem::find(what, b"DROPPED").is_some();
        if !is_loss {
            return Ok(None);
        }
        let cpu = prefix::number(rest[..bracket].trim_ascii(), NR_CPUS_MAX as u64 - 1, "CPU")?;
        return Ok(Some((cpu as u32, count_in(what)?)));
    }
    match memchr::memmem::find(text, b"PERF_RECORD_LOST") {
        // perf gives the CPU in brackets before it; a loss on any CPU makes all uncertain.
        Some(at) => {
            let bracket = memchr::memrchr(b'[', &text[..at]);
            let cpu = bracket.map(|bracket| number_in(&text[bracket..at]));
            let cpu = cpu.flatten().transpose()?.unwrap_or(0).min(NR_CPUS_MAX as u64 - 1);
            Ok(Some((cpu as u32, count_in(&text[at + 16..])?)))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
