// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading trace.dat, the files of `trace-cmd record`, in versions 6 and 7.
//!
//! A head describes the events; then follow, for each CPU, the pages of the kernel's ring buffer
//! as they were. One pass over them, all CPUs at once in order of time, in a few pages of memory a
//! CPU. With the cargo feature `zstd` also the compressed files that version 7 writes by default.
//! Sources: Documentation/trace-cmd/trace-cmd.dat.v{6,7}.5.txt of trace-cmd; Linux
//! kernel/trace/ring_buffer.c and lib/traceevent's kbuffer-parse.c for the pages.
//! Left out: recordings of big-endian machines, other instances than the one with events, and the
//! clocks of guests (`TIME_SHIFT`).

mod header;
mod pages;
mod section;

use crate::kernel::{At, Kernel, PID_MAX, Recording, Who};
use crate::tracepoint::head::Head;
use crate::{Dialect, Facts, Place, ReadError};
use header::Header;
use pages::{Cpu, Item};
use schedlab_model::TraceSink;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Seek};

/// The first bytes of a file.
pub const MAGIC: &[u8] = crate::tracepoint::head::MAGIC;

/// Reads a file. `names`: see [`crate::text::read`].
pub fn read<R: Read + Seek, S: TraceSink + ?Sized>(
    mut source: R,
    names: Vec<String>,
    sink: &mut S,
) -> Result<Facts, ReadError> {
    let wrong = |what| ReadError { place: Place::Byte(0), what };
    let header = Header::read(&mut source).map_err(wrong)?;
    let mut session = Session::new(&header, names);
    let mut cpus = header.cpus(&mut source).map_err(wrong)?;
    let mut order = BinaryHeap::new();
    for (index, cpu) in cpus.iter_mut().enumerate() {
        let next = cpu.advance(&mut source).map_err(|what| cpu.wrong(what))?;
        order.extend(next.map(|time_ns| Reverse((time_ns, index))));
    }
    while let Some(Reverse((_, index))) = order.pop() {
        let cpu = &mut cpus[index];
        // As long as no other CPU has an earlier event, it goes on.
        loop {
            session.item(&header.head, cpu, sink).map_err(|what| cpu.wrong(what))?;
            let next = cpu.advance(&mut source).map_err(|what| cpu.wrong(what))?;
            let Some(time_ns) = next else { break };
            if order.peek().is_some_and(|Reverse(first)| *first < (time_ns, index)) {
                order.push(Reverse((time_ns, index)));
                break;
            }
        }
    }
    session.finish(&header, sink).map_err(wrong)
}

/// What has been read so far.
struct Session {
    recording: Recording,
    nr_records: u64,
}

impl Session {
    fn new(header: &Header, names: Vec<String>) -> Self {
        let mut recording = Recording::new(names);
        recording.facts.dialect = Some(Dialect::TraceCmd);
        recording.facts.is_clock_unknown = header.is_clock_unknown;
        Self { recording, nr_records: 0 }
    }

    /// Takes what a CPU has next.
    fn item<S: TraceSink + ?Sized>(
        &mut self,
        head: &Head,
        cpu: &Cpu,
        sink: &mut S,
    ) -> Result<(), String> {
        let (clock_ns, raw) = match cpu.item() {
            Item::Lost(count) => {
                self.recording.lost(cpu.number, count, sink);
                return Ok(());
            }
            Item::Event(time_ns, raw) => (time_ns, raw),
        };
        self.nr_records += 1;
        let parsed = head.formats.parse(raw)?;
        let is_waker = matches!(parsed.kernel, Kernel::Wake { .. }) && !parsed.in_irq;
        let who = (is_waker && parsed.pid <= PID_MAX).then(|| {
            let comm = head.comms.get(&parsed.pid).map_or(&b"<...>"[..], |comm| comm);
            Who { comm, pid: parsed.pid }
        });
        self.recording.event(At { clock_ns, cpu: cpu.number, who }, parsed.kernel, sink)
    }

    fn finish<S: TraceSink + ?Sized>(
        mut self,
        header: &Header,
        sink: &mut S,
    ) -> Result<Facts, String> {
        if !self.recording.has_begun {
            return Err(format!(
                "no scheduling event in {} events; record with `trace-cmd record -e sched`",
                self.nr_records
            ));
        }
        // CPUs that are offline leave gaps in the numbers.
        let seen = self.recording.translator.cpu_max + 1;
        self.recording.state_cpus(header.nr_cpus.max(seen));
        self.recording.finish(self.nr_records, None, sink)
    }
}

#[cfg(test)]
mod tests;
