// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the sinks take events, on one core: `cargo run --release -p schedlab-metrics --example
//! trace_speed [EVENTS]`. Prints the best of five for each, in million events a second, and the
//! bytes an event takes. A random trace on 4 CPUs with 200 tasks; a fixed 16-byte record for
//! comparison.

use schedlab_metrics::Collector;
use schedlab_model::trace::{MemorySink, TaskInfo};
use schedlab_model::{Event, EventKind, ObjectId, TaskId, TraceSink};
use schedlab_trace::synthetic::Synthetic;
use schedlab_trace::{
    BinarySink, FtraceSink, NdjsonSink, PerfettoSink, Reader, Slice, SliceSink, TraceCheck,
};
use std::hint::black_box;
use std::time::Instant;

const NR_CPUS: u32 = 4;
const ROUNDS: u32 = 5;

/// The plainest log: every event in 16 bytes.
#[derive(Default)]
struct Fixed16(Vec<u8>);

impl TraceSink for Fixed16 {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}

    #[inline]
    fn event(&mut self, event: &Event) {
        let id = |task: Option<TaskId>| task.map_or(0, |task| task.0 + 1) as u16;
        let (tag, a, b) = match event.kind {
            EventKind::Switch { prev, next, out } => (out as u8, id(prev), id(next)),
            EventKind::Wakeup { task, waker } => (8, id(Some(task)), id(waker)),
            EventKind::Fork { task, parent } => (9, id(Some(task)), id(parent)),
            EventKind::Exit { task } => (10, id(Some(task)), 0),
            EventKind::Migrate { task, from } => (11, id(Some(task)), from.0 as u16),
            EventKind::Phase { task, phase } => (12, id(Some(task)), phase as u16),
            EventKind::Progress { task } => (13, id(Some(task)), 0),
            EventKind::Block { task, object } => (15, id(Some(task)), object.0 as u16),
            EventKind::Lost { count } => (14, count as u16, 0),
        };
        let mut record = [0; 16];
        record[..8].copy_from_slice(&event.time_ns.to_le_bytes());
        record[8..10].copy_from_slice(&(event.cpu.0 as u16).to_le_bytes());
        record[10] = tag;
        record[12..14].copy_from_slice(&a.to_le_bytes());
        record[14..].copy_from_slice(&b.to_le_bytes());
        self.0.extend_from_slice(&record);
    }
}

fn report(what: &str, nr_events: usize, mut once: impl FnMut() -> usize) {
    let (mut best, mut bytes) = (f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        bytes = once();
        best = best.min(start.elapsed().as_secs_f64());
    }
    let rate = nr_events as f64 / best / 1e6;
    let size = bytes as f64 / nr_events as f64;
    println!("{what:<22} {rate:>8.1} M events/s   {size:>6.2} bytes/event");
}

fn play(memory: &MemorySink, sink: &mut impl TraceSink) {
    for (id, info) in (0..).map(TaskId).zip(&memory.tasks) {
        sink.task(id, info);
    }
    for (id, info) in (0..).map(ObjectId).zip(&memory.objects) {
        sink.object(id, info);
    }
    for event in &memory.events {
        sink.event(event);
    }
    sink.end(memory.end_ns);
}

fn main() {
    let nr_events = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(4_000_000);
    let mut memory = MemorySink::default();
    Synthetic { seed: 1, nr_cpus: NR_CPUS, nr_tasks: 200, nr_events }.play(&mut memory);
    let n = memory.events.len();
    println!("{n} events, {} tasks, {NR_CPUS} CPUs", memory.tasks.len());
    // One output buffer for all rounds, so that the page faults of a fresh one are not timed.
    let mut out: Vec<u8> = Vec::with_capacity(40 * n);
    report("binary log, write", n, || {
        out.clear();
        let mut sink = BinarySink::new(&mut out, NR_CPUS);
        play(&memory, &mut sink);
        sink.finish().expect("a buffer takes everything").len()
    });
    let log = out.clone();
    report("binary log, read", n, || {
        let reader = Reader::new(&log[..]).expect("the log was just written");
        assert!(reader.filter(|record| record.is_ok()).count() > n);
        log.len()
    });
    report("fixed 16 bytes, write", n, || {
        out.clear();
        let mut sink = Fixed16(std::mem::take(&mut out));
        play(&memory, &mut sink);
        out = sink.0;
        out.len()
    });
    report("measures", n, || {
        let mut sink = Collector::new(NR_CPUS);
        play(&memory, &mut sink);
        black_box(sink.finish());
        0
    });
    report("slices", n, || {
        let mut sum = 0;
        play(&memory, &mut SliceSink::new(|slice: Slice| sum += slice.end_ns - slice.start_ns));
        black_box(sum);
        0
    });
    report("check", n, || {
        let mut sink = TraceCheck::with_moves();
        play(&memory, &mut sink);
        sink.finish().expect("the trace is good");
        0
    });
    report("Perfetto", n, || {
        out.clear();
        let mut sink = PerfettoSink::new(&mut out);
        play(&memory, &mut sink);
        sink.finish().expect("a buffer takes everything").len()
    });
    report("ftrace text", n, || {
        let mut sink = FtraceSink::new(std::io::sink());
        play(&memory, &mut sink);
        sink.finish().expect("nothing fails");
        0
    });
    report("JSON lines", n, || {
        let mut sink = NdjsonSink::new(std::io::sink());
        play(&memory, &mut sink);
        sink.finish().expect("nothing fails");
        0
    });
}
