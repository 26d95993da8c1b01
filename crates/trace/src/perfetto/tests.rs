// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes what the sink wrote with a reader of its own, and compares it with the events.
//! `tests/perfetto_schema.rs` decodes it with the official schema.

use super::packets::SEQUENCE_ID;
use super::*;
use crate::synthetic::Synthetic;
use crate::varint;
use schedlab_model::trace::{MemorySink, ObjectInfo, WaitKind};

/// A decoded message: values of each field in order.
#[derive(Default, Debug)]
struct Message {
    numbers: BTreeMap<u64, Vec<u64>>,
    bytes: BTreeMap<u64, Vec<Vec<u8>>>,
}

impl Message {
    fn parse(bytes: &[u8]) -> Self {
        let (mut message, mut at) = (Self::default(), 0);
        while at < bytes.len() {
            let key = varint::get(bytes, &mut at).unwrap();
            if key & 7 == 1 {
                let value = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                message.numbers.entry(key >> 3).or_default().push(value);
                at += 8;
                continue;
            }
            let value = varint::get(bytes, &mut at).unwrap();
            match key & 7 {
                0 => message.numbers.entry(key >> 3).or_default().push(value),
                2 => {
                    let stop = at + value as usize;
                    message.bytes.entry(key >> 3).or_default().push(bytes[at..stop].to_vec());
                    at = stop;
                }
                wire => panic!("wire type {wire}"),
            }
        }
        message
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.numbers.get(&field).map(|values| values[0])
    }

    fn messages(&self, field: u64) -> Vec<Self> {
        self.bytes.get(&field).map_or(vec![], |all| all.iter().map(|b| Self::parse(b)).collect())
    }

    fn text(&self, field: u64) -> String {
        String::from_utf8(self.bytes[&field][0].clone()).unwrap()
    }

    fn packed(&self, field: u64) -> Vec<u64> {
        let Some(bytes) = self.bytes.get(&field).map(|all| &all[0]) else { return vec![] };
        let (mut values, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            values.push(varint::get(bytes, &mut at).unwrap());
        }
        values
    }
}

const SLICE_BEGIN: u64 = EventType::SliceBegin as u64;
const SLICE_END: u64 = EventType::SliceEnd as u64;
const INSTANT: u64 = EventType::Instant as u64;
const COUNTER: u64 = EventType::Counter as u64;

/// An event as the viewer reads it.
#[derive(Debug)]
struct TrackEvent {
    time_ns: Nanos,
    /// Empty where it has none.
    name: String,
    fields: Message,
}

/// The events of the file in order: times are added up, names looked up.
fn events(packets: &[Message]) -> Vec<TrackEvent> {
    let mut now = 0;
    let mut names = BTreeMap::new();
    let mut events = Vec::new();
    for packet in packets {
        for name in packet.messages(12).iter().flat_map(|interned| interned.messages(2)) {
            let before = names.insert(name.number(1).unwrap(), name.text(2));
            assert_eq!(before, None, "a name is written once");
        }
        for fields in packet.messages(11) {
            let time = packet.number(8).unwrap();
            let time_ns = match packet.number(58) {
                None => {
                    now += time;
                    now
                }
                clock => {
                    assert_eq!(clock, Some(6), "the clock of the switches");
                    time
                }
            };
            let name = fields.number(10).map(|number| names[&number].clone()).unwrap_or_default();
            events.push(TrackEvent { time_ns, name, fields });
        }
    }
    events
}

/// Track and value of each counter of an event.
fn counters(event: &Message) -> Vec<(u64, i64)> {
    let all = |field| event.numbers.get(&field).cloned().unwrap_or_default();
    let tracks = [all(11), all(31)].concat();
    let values = [all(30), all(12)].concat();
    assert_eq!(tracks.len(), values.len());
    // TrackEventData::kMaxNumExtraCounters of the viewer.
    assert!((1..=9).contains(&tracks.len()));
    tracks.into_iter().zip(values.into_iter().map(u64::cast_signed)).collect()
}

/// A switch as the viewer reads it: time, CPU, state of prev, pid of next.
type Switch = (Nanos, u64, u64, u64);
/// A wake-up: time, bundle's CPU, pid, target CPU, flags.
type Waking = (Nanos, u64, u64, u64, u64);

#[derive(Default)]
struct Decoded {
    switches: Vec<Switch>,
    wakings: Vec<Waking>,
    /// Values of each counter by its track's name.
    counters: BTreeMap<u64, Vec<(Nanos, i64)>>,
    track_names: BTreeMap<u64, String>,
    open_slices: BTreeMap<u64, i64>,
    pids: Vec<u64>,
}

fn absolute(deltas: &[u64]) -> Vec<u64> {
    deltas
        .iter()
        .scan(0, |sum, delta| {
            *sum += delta;
            Some(*sum)
        })
        .collect()
}

fn decode(bytes: &[u8]) -> Decoded {
    let mut all = Decoded::default();
    let packets = Message::parse(bytes).messages(1);
    let clocks: Vec<_> =
        packets[0].messages(6)[0].messages(1).iter().map(|c| (c.number(1), c.number(3))).collect();
    assert_eq!(clocks, [(Some(6), None), (Some(64), Some(1))]);
    assert_eq!(packets[0].messages(59)[0].number(58), Some(64));
    for packet in &packets {
        assert_eq!(packet.number(10), Some(SEQUENCE_ID));
        for bundle in packet.messages(1) {
            let cpu = bundle.number(1).unwrap();
            for compact in bundle.messages(4) {
                decode_compact(&mut all, cpu, &compact);
            }
        }
        for tree in packet.messages(2) {
            all.pids.extend(tree.messages(1).iter().map(|process| process.number(1).unwrap()));
        }
        for track in packet.messages(60) {
            let name = if track.bytes.contains_key(&2) { track.text(2) } else { String::new() };
            let before = all.track_names.insert(track.number(1).unwrap(), name);
            assert_eq!(before, None, "a track is described once");
        }
        for event in packet.messages(11) {
            let track = event.number(11).unwrap();
            assert!(all.track_names.contains_key(&track), "a track is described before its use");
        }
    }
    for TrackEvent { time_ns, fields, .. } in events(&packets) {
        let track = fields.number(11).unwrap();
        let open = all.open_slices.entry(track).or_default();
        match fields.number(9).unwrap() {
            SLICE_BEGIN => *open += 1,
            SLICE_END => *open -= 1,
            COUNTER => {
                for (track, value) in counters(&fields) {
                    assert!(all.track_names.contains_key(&track));
                    all.counters.entry(track).or_default().push((time_ns, value));
                }
            }
            kind => assert_eq!(kind, INSTANT),
        }
        // A phase, and within it a block.
        assert!((0..=2).contains(&all.open_slices[&track]));
    }
    all
}

fn decode_compact(all: &mut Decoded, cpu: u64, compact: &Message) {
    let names = compact.bytes.get(&5).map_or(0, Vec::len) as u64;
    let times = absolute(&compact.packed(1));
    let (states, pids, index) = (compact.packed(2), compact.packed(3), compact.packed(6));
    assert_eq!([times.len(); 3], [states.len(), pids.len(), index.len()]);
    assert_eq!(times.len(), compact.packed(4).len());
    assert!(times.len() <= sched::BUNDLE_EVENTS as usize);
    for i in 0..times.len() {
        all.switches.push((times[i], cpu, states[i], pids[i]));
        assert!(index[i] < names);
    }
    let times = absolute(&compact.packed(7));
    let (pids, targets, flags) = (compact.packed(8), compact.packed(9), compact.packed(12));
    assert_eq!([times.len(); 3], [pids.len(), targets.len(), flags.len()]);
    for i in 0..times.len() {
        all.wakings.push((times[i], cpu, pids[i], targets[i], flags[i]));
        assert!(compact.packed(11)[i] < names);
    }
}

fn traced(what: Synthetic) -> (MemorySink, Decoded, Vec<u8>) {
    let (mut memory, mut sink) = (MemorySink::default(), PerfettoSink::new(Vec::new()));
    what.play(&mut (&mut memory, &mut sink));
    let bytes = sink.finish().unwrap();
    (memory, decode(&bytes), bytes)
}

#[test]
fn every_switch_and_wakeup_is_there() {
    for (seed, nr_cpus, nr_tasks) in [(1, 1, 3), (2, 4, 200)] {
        let (memory, decoded, bytes) =
            traced(Synthetic { seed, nr_cpus, nr_tasks, nr_events: 60_000 });
        let pid = |task: Option<TaskId>| task.map_or(0, |task| u64::from(task.0) + 1);
        let (mut switches, mut wakings) = (Vec::new(), Vec::new());
        for event in &memory.events {
            let cpu = u64::from(event.cpu.0);
            match event.kind {
                EventKind::Switch { next, out, .. } => {
                    let state = [0, 0x100, 0, 1, 2, 16][out as usize];
                    switches.push((event.time_ns, cpu, state, pid(next)));
                }
                EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. } => {
                    wakings.push((event.time_ns, cpu, pid(Some(task))));
                }
                _ => {}
            }
        }
        let mut got = decoded.switches;
        let mut got_wakings: Vec<_> = decoded.wakings.iter().map(|w| (w.0, w.3, w.2)).collect();
        for list in [&mut got_wakings, &mut wakings] {
            list.sort_unstable();
        }
        // Time does not go back on any CPU, in the order of the file.
        for cpu in 0..u64::from(nr_cpus) {
            let times: Vec<_> = got.iter().filter(|s| s.1 == cpu).map(|s| s.0).collect();
            assert!(times.is_sorted());
        }
        got.sort_unstable();
        switches.sort_unstable();
        assert_eq!(got, switches);
        assert_eq!(got_wakings, wakings);
        assert_eq!(decoded.pids, (1..=u64::from(nr_tasks)).collect::<Vec<_>>());
        assert!(decoded.open_slices.values().all(|&open| open == 0));
        // An arrow takes most: two instants with eight bytes of number each.
        assert!(bytes.len() < 35 * memory.events.len(), "{}", bytes.len() / memory.events.len());
    }
}

/// The viewer takes what runs on the bundle's CPU for the waker.
#[test]
fn a_wakeup_lies_on_the_wakers_cpu() {
    let mut sink = PerfettoSink::new(Vec::new());
    let event = |time_ns, cpu, kind| Event { time_ns, cpu: CpuId(cpu), kind };
    let (a, b) = (TaskId(0), TaskId(1));
    for id in 0..2 {
        sink.task(TaskId(id), &TaskInfo::default());
    }
    sink.event(&event(1, 3, EventKind::Fork { task: a, parent: None }));
    let run = EventKind::Switch { prev: None, next: Some(a), out: SwitchOut::Idle };
    sink.event(&event(2, 3, run));
    sink.event(&event(5, 1, EventKind::Wakeup { task: b, waker: Some(a) }));
    sink.event(&event(6, 1, EventKind::Wakeup { task: b, waker: None }));
    sink.end(9);
    let decoded = decode(&sink.finish().unwrap());
    let want = [(6, 1, 2, 1, 8), (1, 3, 1, 3, 8), (5, 3, 2, 1, 0)];
    assert_eq!(decoded.wakings, want);
}

/// What wakes whom: the arrow goes from the waker's track to where the wakee first runs.
#[test]
fn arrows_lead_from_the_waker_to_the_wakee() {
    let mut sink = PerfettoSink::new(Vec::new());
    let event = |time_ns, cpu, kind| Event { time_ns, cpu: CpuId(cpu), kind };
    let (a, b) = (TaskId(0), TaskId(1));
    for id in 0..2 {
        sink.task(TaskId(id), &TaskInfo::default());
    }
    let switch = |prev, next, out| EventKind::Switch { prev, next, out };
    let wakeup = |task, waker| EventKind::Wakeup { task, waker };
    for event in [
        event(1, 0, EventKind::Fork { task: a, parent: None }),
        event(2, 0, switch(None, Some(a), SwitchOut::Idle)),
        event(5, 1, wakeup(b, Some(a))),
        // Of a task that is runnable already, and by a timer: no arrow.
        event(6, 1, wakeup(b, Some(a))),
        event(8, 1, switch(None, Some(b), SwitchOut::Idle)),
        event(9, 1, switch(Some(b), None, SwitchOut::Sleeping)),
        event(10, 1, wakeup(b, None)),
        event(11, 1, switch(None, Some(b), SwitchOut::Idle)),
    ] {
        sink.event(&event);
    }
    sink.end(12);
    let mut arrows = Vec::new();
    for TrackEvent { time_ns, name, fields } in
        events(&Message::parse(&sink.finish().unwrap()).messages(1))
    {
        if fields.number(9) == Some(INSTANT) {
            let ends = (fields.number(47), fields.number(48));
            arrows.push((time_ns, name, fields.number(11).unwrap(), ends));
        }
    }
    let want = [
        (5, "wakes".into(), task_track(a), (Some(1), None)),
        (8, "woken".into(), task_track(b), (None, Some(1))),
        (12, "end of run".into(), TRACK_RUN, (None, None)),
    ];
    assert_eq!(arrows, want);
}

/// A scheduler's number is a counter below the task's own track; it may be negative. Of two at one
/// instant the viewer can show the last one only.
#[test]
fn vruntime_is_a_counter_of_the_task() {
    let mut sink = PerfettoSink::new(Vec::new());
    sink.task(TaskId(0), &TaskInfo::default());
    assert!(sink.wants_vruntime());
    for (time, value) in [(1, 5), (4, 9), (4, -7)] {
        sink.vruntime(time, TaskId(0), value);
    }
    sink.end(9);
    let decoded = decode(&sink.finish().unwrap());
    let track = vruntime_track(TaskId(0));
    assert_eq!(decoded.track_names[&track], "vruntime");
    assert_eq!(decoded.counters[&track], [(1, 5), (4, -7)]);
    assert_eq!(decoded.counters.len(), 1);
}

/// A queue has a counter from its first task on; lengths that stay the same are written once.
#[test]
fn queues_are_counters_from_their_first_task_on() {
    let mut sink = PerfettoSink::new(Vec::new());
    let (local, own) = (DispatchQueue::Local(CpuId(3)), DispatchQueue::Own(0x1f));
    for (time, queue, nr) in [(1, local, 0), (2, own, 2), (3, own, 2), (4, local, 1), (5, own, 0)] {
        sink.queue_length(time, queue, nr);
    }
    sink.end(9);
    let decoded = decode(&sink.finish().unwrap());
    assert_eq!(decoded.track_names[&queue_track(0)], "DSQ 0x1f");
    assert_eq!(decoded.track_names[&queue_track(1)], "DSQ local of CPU 3");
    assert_eq!(decoded.counters[&queue_track(0)], [(2, 2), (5, 0)]);
    assert_eq!(decoded.counters[&queue_track(1)], [(4, 1)]);
}

/// More counters than one event takes, at one instant, and a recording whose time goes back.
#[test]
fn no_counter_is_left_out() {
    let mut sink = PerfettoSink::new(Vec::new());
    let times = [(3, 20), (7, 1), (5, 2)];
    for id in 0..20 {
        sink.task(TaskId(id), &TaskInfo::default());
    }
    for (time, nr_tasks) in times {
        (0..nr_tasks).for_each(|id| sink.vruntime(time, TaskId(id), i64::from(id) - 10));
    }
    sink.end(9);
    let decoded = decode(&sink.finish().unwrap());
    for id in 0..20 {
        let value = i64::from(id) - 10;
        let with_it = times.iter().filter(|(_, nr_tasks)| id < *nr_tasks);
        let want: Vec<_> = with_it.map(|(time, _)| (*time, value)).collect();
        assert_eq!(decoded.counters[&vruntime_track(TaskId(id))], want);
    }
}

/// Without counters the rest of the file is the same.
#[test]
fn counters_may_be_left_out() {
    let what = Synthetic { seed: 5, nr_cpus: 2, nr_tasks: 20, nr_events: 5_000 };
    let decoded = [true, false].map(|has_counters| {
        let mut sink = PerfettoSink::new(Vec::new()).with_counters(has_counters);
        what.play(&mut sink);
        assert_eq!(sink.wants_vruntime(), has_counters);
        sink.vruntime(sink.tasks.len() as u64, TaskId(0), 1);
        decode(&sink.finish().unwrap())
    });
    assert!(decoded[1].counters.is_empty() && !decoded[0].counters.is_empty());
    assert_eq!(decoded[0].switches, decoded[1].switches);
    assert_eq!(decoded[0].wakings, decoded[1].wakings);
    let has_slices = |one: &Decoded| one.track_names.keys().filter(|t| *t % 4 == 1).count();
    assert_eq!(has_slices(&decoded[0]), has_slices(&decoded[1]));
}

/// The counter agrees with a count made from the events, and ends above or at 0 at all times.
#[test]
fn runnable_tasks_are_counted() {
    let (memory, decoded, _) =
        traced(Synthetic { seed: 8, nr_cpus: 2, nr_tasks: 30, nr_events: 10_000 });
    let totals = |at: Nanos| -> i64 {
        let counters = decoded.counters.iter().filter(|(track, _)| **track % 4 == 0);
        counters
            .map(|(_, values)| {
                values.iter().take_while(|v| v.0 <= at).last().map_or(0, |value| value.1)
            })
            .sum()
    };
    let mut runnable = 0;
    let mut asleep: Vec<bool> = vec![true; memory.tasks.len()];
    for (index, event) in memory.events.iter().enumerate() {
        match event.kind {
            EventKind::Fork { task, .. } | EventKind::Wakeup { task, .. } => {
                runnable += i64::from(std::mem::replace(&mut asleep[task.index()], false));
            }
            EventKind::Switch { prev: Some(task), out, .. } if out.is_voluntary() => {
                runnable -= 1;
                asleep[task.index()] = true;
            }
            _ => {}
        }
        let is_last = memory.events.get(index + 1).is_none_or(|e| e.time_ns > event.time_ns);
        if is_last && index % 97 == 0 {
            assert_eq!(totals(event.time_ns), runnable, "at {}", event.time_ns);
        }
    }
    assert!(decoded.counters.values().flatten().all(|value| value.1 >= 0));
}

/// A block lasts until the wake-up, and ends with its phase.
#[test]
fn blocks_are_slices_that_name_the_object() {
    let mut sink = PerfettoSink::new(Vec::new());
    let task = TaskId(0);
    sink.task(task, &TaskInfo { name: "job".into(), ..TaskInfo::default() });
    sink.object(ObjectId(0), &ObjectInfo { name: "m".into(), kind: WaitKind::Mutex });
    let block = EventKind::Block { task, object: ObjectId(0) };
    for (time_ns, kind) in [
        (1, EventKind::Phase { task, phase: 0 }),
        (2, block),
        (5, EventKind::Wakeup { task, waker: None }),
        (6, block),
        (7, EventKind::Phase { task, phase: 1 }),
    ] {
        sink.event(&Event { time_ns, cpu: CpuId(0), kind });
    }
    sink.end(9);
    let bytes = sink.finish().unwrap();
    let slices: Vec<(u64, u64, String)> = events(&Message::parse(&bytes).messages(1))
        .into_iter()
        .map(|event| (event.time_ns, event.fields.number(9).unwrap(), event.name))
        .filter(|event| [SLICE_BEGIN, SLICE_END].contains(&event.1))
        .collect();
    let begin = |time, name: &str| (time, SLICE_BEGIN, name.to_string());
    let end = |time| (time, SLICE_END, String::new());
    let wanted = [
        begin(1, "phase 0"),
        begin(2, "blocked on mutex m"),
        end(5),
        begin(6, "blocked on mutex m"),
        end(7),
        end(7),
        begin(7, "phase 1"),
        end(9),
    ];
    assert_eq!(slices, wanted);
}

#[test]
fn phases_have_their_names_and_progress_counts_up() {
    let mut sink = PerfettoSink::new(Vec::new()).with_phases(vec![vec!["warm-up".into()]]);
    let info = TaskInfo { name: "job".into(), spec: Some(0), pid: 77 };
    sink.task(TaskId(0), &info);
    let event = |time_ns, kind| Event { time_ns, cpu: CpuId(0), kind };
    for (time, phase) in [(1, 0), (2, 1)] {
        sink.event(&event(time, EventKind::Phase { task: TaskId(0), phase }));
    }
    for time in [3, 4] {
        sink.event(&event(time, EventKind::Progress { task: TaskId(0) }));
    }
    sink.end(9);
    let bytes = sink.finish().unwrap();
    let names: Vec<String> = events(&Message::parse(&bytes).messages(1))
        .into_iter()
        .filter(|event| event.fields.number(9) == Some(SLICE_BEGIN))
        .map(|event| event.name)
        .collect();
    assert_eq!(names, ["warm-up", "phase 1"]);
    let decoded = decode(&bytes);
    assert_eq!(decoded.counters[&progress_track(TaskId(0))], [(3, 1), (4, 2)]);
    assert_eq!((decoded.pids, decoded.open_slices[&task_track(TaskId(0))]), (vec![77], 0));
}
