// SPDX-License-Identifier: MIT OR Apache-2.0
//! One recording of the kernel being read: its clock, its losses and what is known of it.

use super::{Context, Facts, Kernel, Translator, Who};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{CpuId, Event, EventKind, Nanos, TraceSink};

/// How far back a time may go. Lines of several CPUs are merged by the tools, by time stamps that
/// the CPUs took of their own clocks; those differ by microseconds.
pub const BACK_MAX_NS: Nanos = 10_000_000;

/// When and where an event happened, and who ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    /// By the recording's own clock.
    pub clock_ns: Nanos,
    pub cpu: u32,
    /// Who ran; `None` in an interrupt or where it is not known.
    pub who: Option<Who<'a>>,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub translator: Translator,
    pub facts: Facts,
    /// Whether an event has been read.
    pub has_begun: bool,
    /// Latest time by the recording's own clock.
    clock_ns: Nanos,
}

impl Recording {
    /// A recording whose tasks get these names: see [`crate::text::read`].
    pub fn new(names: Vec<String>) -> Self {
        Self { translator: Translator::new(names), ..Self::default() }
    }

    /// One event.
    pub fn event<S: TraceSink + ?Sized>(
        &mut self,
        at: At<'_>,
        kernel: Kernel<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        if kernel == Kernel::Other {
            self.facts.nr_other_events += 1;
            return Ok(());
        }
        self.begin(Some(at.clock_ns), sink);
        let time_ns = self.advance(at.clock_ns)?;
        let context = Context { time_ns, cpu: CpuId(at.cpu), who: at.who };
        self.translator.event(context, kernel, sink)
    }

    /// Events were lost on a CPU.
    pub fn lost<S: TraceSink + ?Sized>(&mut self, cpu: u32, count: u32, sink: &mut S) {
        self.begin(None, sink);
        self.facts.nr_losses += u64::from(count > 0);
        self.facts.nr_lost_events += u64::from(count);
        let (time_ns, kind) =
            (self.clock_ns - self.facts.start_clock_ns, EventKind::Lost { count });
        self.facts.nr_events += 1;
        sink.event(&Event { time_ns, cpu: CpuId(cpu), kind });
        self.translator.lost(CpuId(cpu));
    }

    /// The first event, or a loss before it.
    fn begin<S: TraceSink + ?Sized>(&mut self, first_ns: Option<Nanos>, sink: &mut S) {
        if !self.has_begun && !self.facts.is_own && self.facts.nr_losses == 0 {
            // Whatever runs now began before.
            let kind = EventKind::Lost { count: 0 };
            sink.event(&Event { time_ns: 0, cpu: CpuId(0), kind });
        }
        if let (false, Some(first_ns)) = (self.has_begun, first_ns) {
            self.has_begun = true;
            self.clock_ns = first_ns;
            self.facts.start_clock_ns = if self.facts.is_own { 0 } else { first_ns };
        }
    }

    /// Time since the start of the trace; time does not go back.
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

    /// The number of CPUs that the recording states.
    pub fn state_cpus(&mut self, nr_cpus: u32) {
        if nr_cpus > 0 && nr_cpus as usize <= NR_CPUS_MAX {
            self.facts.nr_cpus = nr_cpus;
            self.facts.is_nr_cpus_stated = true;
        }
    }

    /// The recording is over, after so many lines or records, at this time of the run or with its
    /// last event.
    pub fn finish<S: TraceSink + ?Sized>(
        mut self,
        nr_records: u64,
        stated_end_ns: Option<Nanos>,
        sink: &mut S,
    ) -> Result<Facts, String> {
        let last_ns = self.clock_ns.saturating_sub(self.facts.start_clock_ns);
        let end_ns = stated_end_ns.unwrap_or(last_ns).max(last_ns);
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
        facts.nr_records = nr_records;
        facts.nr_events += self.translator.counts.events;
        facts.nr_tasks = self.translator.nr_tasks() as u64;
        facts.end_ns = end_ns;
        facts.nr_switches = self.translator.counts.switches;
        facts.nr_missing_switches = self.translator.counts.missing_switches;
        facts.wakes = self.translator.wakes;
        facts.last_names = self.translator.names();
        facts.processes = self.translator.processes();
        sink.end(end_ns);
        Ok(self.facts)
    }
}
