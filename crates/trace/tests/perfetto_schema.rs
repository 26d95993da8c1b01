// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes a Perfetto trace with the official schema (the Python package `perfetto`), in which
//! every field has a name and a type: a wrong field number shows as an unknown or missing field.
//! `scripts/install.sh test` installs the package into `python` in the target directory;
//! SCHEDLAB_PYTHON names another interpreter that has it. Without the package the test is skipped.

use schedlab_model::trace::MemorySink;
use schedlab_model::{EventKind, TraceSink};
use schedlab_testing::skip;
use schedlab_trace::PerfettoSink;
use schedlab_trace::synthetic::Synthetic;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prints what it finds as `name=number` lines.
const SCRIPT: &str = r#"
import sys
from collections import Counter
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
trace, found, begun, names = Trace(), Counter(), set(), {}
data = sys.stdin.buffer.read()
trace.ParseFromString(data)
for packet in trace.packet:
    compact = packet.ftrace_events.compact_sched
    found["switches"] += len(compact.switch_timestamp)
    for name in ("prev_state", "next_pid", "next_prio", "next_comm_index"):
        field = "switch_" + name
        assert len(getattr(compact, field)) == len(compact.switch_timestamp), field
    found["wakings"] += len(compact.waking_timestamp)
    for field in ("pid", "target_cpu", "prio", "comm_index", "common_flags"):
        assert len(getattr(compact, "waking_" + field)) == len(compact.waking_timestamp), field
    assert all(i < len(compact.intern_table) for i in compact.switch_next_comm_index)
    found["prio_120"] += sum(prio == 120 for prio in compact.switch_next_prio)
    found["processes"] += len(packet.process_tree.processes)
    found["threads"] += sum(t.tid == t.tgid and t.name != "" for t in packet.process_tree.threads)
    event = packet.track_event
    for clock in packet.clock_snapshot.clocks:
        found["clocks"] += 1
        found["delta_clock"] += clock.is_incremental * clock.clock_id
    found["default_clock"] += packet.trace_packet_defaults.timestamp_clock_id
    for name in packet.interned_data.event_names:
        assert name.iid and name.iid not in names, name
        names[name.iid] = name.name
    if packet.HasField("track_event"):
        assert len(event.extra_counter_track_uuids) == len(event.extra_counter_values) <= 8, event
        assert event.HasField("counter_value") == (event.type == TrackEvent.TYPE_COUNTER), event
        found["counters"] += event.HasField("counter_value") + len(event.extra_counter_values)
        assert not event.name_iid or event.name_iid in names, event
        assert event.track_uuid and packet.trusted_packet_sequence_id, packet
        found[TrackEvent.Type.Name(event.type)] += 1
        assert begun.isdisjoint(event.flow_ids), "an arrow begins once"
        begun.update(event.flow_ids)
        assert begun.issuperset(event.terminating_flow_ids), "an arrow ends after it begins"
        found["flows"] += len(event.flow_ids)
        found["flow_ends"] += len(event.terminating_flow_ids)
        assert not (event.flow_ids or event.terminating_flow_ids) or event.name_iid, event
    if packet.HasField("system_info"):
        found["linux"] += packet.system_info.utsname.sysname == "Linux"
# Fields that the schema does not know are dropped when unknown fields are discarded.
size = len(trace.SerializeToString())
trace.DiscardUnknownFields()
found["unknown_bytes"] = size - len(trace.SerializeToString())
for name, count in sorted(found.items()):
    print(f"{name}={count}")
"#;

/// What the script prints, or why it could not run.
fn decode(bytes: &[u8]) -> Result<String, String> {
    let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python/bin/python3");
    let named = std::env::var_os("SCHEDLAB_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or(installed);
    let probe = Command::new(&python).args(["-c", "import perfetto"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return Err(format!("{} has no package `perfetto`", python.display()));
    }
    let mut child = Command::new(&python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the official schema refuses the trace");
    Ok(String::from_utf8(output.stdout).unwrap())
}

/// Arrows that begin and end: of wake-ups and forks of tasks that were not runnable by tasks that
/// run.
fn arrows(memory: &MemorySink) -> (usize, usize) {
    let mut runs = vec![false; memory.tasks.len()];
    let mut runnable = runs.clone();
    let mut is_open = runs.clone();
    let (mut begun, mut ended) = (0, 0);
    for event in &memory.events {
        match event.kind {
            EventKind::Wakeup { task, waker: by } | EventKind::Fork { task, parent: by } => {
                if by.is_some_and(|by| runs[by.index()]) && !runnable[task.index()] {
                    begun += 1;
                    is_open[task.index()] = true;
                }
                runnable[task.index()] = true;
            }
            EventKind::Switch { prev, next, out } => {
                if let Some(prev) = prev {
                    runs[prev.index()] = false;
                    runnable[prev.index()] = !out.is_voluntary();
                }
                if let Some(next) = next {
                    runs[next.index()] = true;
                    ended += usize::from(std::mem::take(&mut is_open[next.index()]));
                }
            }
            _ => {}
        }
    }
    (begun, ended)
}

#[test]
fn the_official_schema_finds_every_event() {
    let (mut memory, mut sink) = (MemorySink::default(), PerfettoSink::new(Vec::new()));
    let what = Synthetic { seed: 11, nr_cpus: 3, nr_tasks: 40, nr_events: 30_000 };
    what.play(&mut (&mut memory as &mut dyn TraceSink, &mut sink));
    let found = match decode(&sink.finish().unwrap()) {
        Ok(found) => found,
        Err(reason) => return skip(reason),
    };
    let count =
        |is: fn(&EventKind) -> bool| memory.events.iter().filter(|event| is(&event.kind)).count();
    let switches = count(|kind| matches!(kind, EventKind::Switch { .. }));
    let wakings = count(|kind| matches!(kind, EventKind::Wakeup { .. } | EventKind::Fork { .. }));
    let phases = count(|kind| matches!(kind, EventKind::Phase { .. }));
    let blocks = count(|kind| matches!(kind, EventKind::Block { .. }));
    let (flows, flow_ends) = arrows(&memory);
    for line in [
        format!("switches={switches}"),
        format!("prio_120={switches}"),
        format!("wakings={wakings}"),
        "processes=40".into(),
        "threads=40".into(),
        "linux=1".into(),
        "clocks=2".into(),
        "delta_clock=64".into(),
        "default_clock=64".into(),
        "unknown_bytes=0".into(),
        format!("TYPE_SLICE_BEGIN={}", phases + blocks),
        format!("TYPE_SLICE_END={}", phases + blocks),
        format!("flows={flows}"),
        format!("flow_ends={flow_ends}"),
        format!("TYPE_INSTANT={}", 1 + flows + flow_ends),
    ] {
        assert!(found.lines().any(|found| found == line), "no {line} in\n{found}");
    }
}
