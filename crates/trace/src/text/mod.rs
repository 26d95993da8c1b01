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

pub use lines::LINE_MAX;

use crate::kernel::{At, Kernel, Recording, Who, clean};
pub use crate::kernel::{BACK_MAX_NS, COMM_MAX, PID_MAX};
use crate::{Dialect, Facts, Place, ReadError};
use lines::Line;
pub(crate) use lines::Lines;
use prefix::Prefix;
pub(crate) use prefix::shown;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{Nanos, TraceSink};
use std::io::Read;

/// Header of a text that [`crate::FtraceSink`] wrote. Its times count from the start of the run.
pub const OWN_HEAD: &str = "# schedlab: the whole run, from 0 ns, CPUs ";
/// A line of such a text that announces an object: its kind and its name.
pub const OWN_OBJECT: &str = "# schedlab: object ";
/// The last line of such a text.
pub const OWN_END: &str = "# schedlab: end ";

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
    let mut reader = Reader { recording: Recording::new(names), stated_end_ns: None };
    loop {
        let wrong = |number, what| ReadError { place: Place::Line(number), what };
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(what) => return Err(wrong(lines.number(), what)),
        };
        if line.is_cut_off {
            reader.recording.facts.is_cut_off = true;
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
    recording: Recording,
    /// End of the run, where the text says it.
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
        if let (true, Some(object)) =
            (self.recording.facts.is_own, text.strip_prefix(OWN_OBJECT.as_bytes()))
        {
            return self.recording.translator.object(object, sink);
        }
        if let Some(digits) = text.strip_prefix(OWN_HEAD.as_bytes()) {
            if self.recording.has_begun {
                return Err("the head of a trace stands in the midst of another".into());
            }
            self.recording.facts.is_own = true;
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
            self.recording.facts.nr_overwritten_events =
                count(written)?.saturating_sub(count(kept)?);
        }
        match words.next().and_then(|word| word.strip_prefix(b"P:")) {
            Some(digits) => self.stated_cpus(digits.trim_ascii()),
            None => Ok(()),
        }
    }

    fn stated_cpus(&mut self, digits: &[u8]) -> Result<(), String> {
        let nr_cpus = prefix::number(digits, NR_CPUS_MAX as u64, "number of CPUs")? as u32;
        self.recording.state_cpus(nr_cpus);
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
            self.recording.lost(cpu, count, sink);
            return Ok(());
        }
        if let Some(digits) = text.strip_prefix(b"cpus=") {
            self.recording.facts.dialect = Some(Dialect::TraceCmd);
            return self.stated_cpus(digits);
        }
        if text.starts_with(b"version = ") || text.starts_with(b"CPU ") {
            return Ok(());
        }
        self.recording.facts.nr_other_lines += 1;
        if self.recording.facts.other_line.is_none() {
            self.recording.facts.other_line = Some((line.number, clean(shown(text).as_bytes())));
        }
        Ok(())
    }

    fn event_line<S: TraceSink + ?Sized>(
        &mut self,
        prefix: &Prefix<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        let kernel = fields::parse(prefix.event, prefix.fields)?;
        if kernel != Kernel::Other {
            self.note_dialect(prefix);
        }
        let pid = prefix.pid.filter(|_| !prefix.in_irq);
        let who = pid.map(|pid| Who { comm: prefix.comm, pid });
        let at = At { clock_ns: prefix.time_ns, cpu: prefix.cpu, who };
        self.recording.event(at, kernel, sink)?;
        if let (Some(pid), Some(tgid)) = (prefix.pid, prefix.tgid) {
            self.recording.translator.belongs(pid, tgid);
        }
        Ok(())
    }

    fn note_dialect(&mut self, prefix: &Prefix<'_>) {
        self.recording.facts.is_clock_unknown |= !prefix.is_seconds;
        if self.recording.facts.dialect.is_none() {
            let found = if prefix.is_perf { Dialect::Perf } else { Dialect::Ftrace };
            self.recording.facts.dialect = Some(found);
        }
    }

    fn finish<S: TraceSink + ?Sized>(self, nr_lines: u64, sink: &mut S) -> Result<Facts, String> {
        let is_own = self.recording.facts.is_own;
        let is_empty_run = is_own && self.stated_end_ns.is_some();
        if !self.recording.has_begun && !is_empty_run {
            return Err(self.nothing_found(nr_lines));
        }
        if is_own && self.stated_end_ns.is_none() {
            return Err(
                "the text ends without the line that schedlab writes last: it was cut off; \
                        export it again"
                    .into(),
            );
        }
        self.recording.finish(nr_lines, self.stated_end_ns, sink)
    }

    fn nothing_found(&self, nr_lines: u64) -> String {
        let found = match &self.recording.facts.other_line {
            Some((number, text)) => format!("line {number} is {text:?}"),
            None if self.recording.facts.nr_other_events > 0 => {
                format!("{} events of other kinds", self.recording.facts.nr_other_events)
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
