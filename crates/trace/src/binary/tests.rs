// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log gives back what was written, and refuses everything else.

use super::*;
use crate::synthetic::Synthetic;
use crate::{Place, ReadError};
use proptest::prelude::*;
use schedlab_model::trace::{MemorySink, ObjectInfo, TaskInfo, WaitKind};
use schedlab_model::{CpuId, Event, EventKind, ObjectId, SwitchOut, TaskId, TraceSink};

fn log_of(what: Synthetic) -> (MemorySink, Vec<u8>) {
    let (mut memory, mut sink) = (MemorySink::default(), BinarySink::new(Vec::new(), what.nr_cpus));
    what.play(&mut (&mut memory, &mut sink));
    (memory, sink.finish().unwrap())
}

fn read_back(bytes: &[u8]) -> Result<MemorySink, ReadError> {
    let mut memory = MemorySink::default();
    Reader::new(bytes)?.replay(&mut memory)?;
    Ok(memory)
}

fn byte_of(error: &ReadError) -> u64 {
    match error.place {
        Place::Byte(at) => at,
        other => panic!("{other:?} in a binary file"),
    }
}

fn tiny() -> Vec<u8> {
    log_of(Synthetic { seed: 9, nr_cpus: 2, nr_tasks: 4, nr_events: 60 }).1
}

#[test]
fn gives_back_what_was_written() {
    for (seed, nr_cpus, nr_tasks) in [(1, 1, 1), (2, 2, 200), (3, 64, 3_000), (4, 1024, 5_000)] {
        let what = Synthetic { seed, nr_cpus, nr_tasks, nr_events: 50_000 };
        let (memory, bytes) = log_of(what);
        let back = read_back(&bytes).unwrap();
        assert_eq!(back.events, memory.events);
        assert_eq!(back.tasks, memory.tasks);
        assert_eq!(back.objects, memory.objects);
        assert_eq!(back.end_ns, memory.end_ns);
        assert!(bytes.len() < 9 * memory.events.len(), "{} bytes", bytes.len());
    }
}

/// Events that break the custody rules, after a loss for instance, come back unchanged too.
#[test]
fn gives_back_any_event() {
    let (a, b) = (TaskId(0), TaskId(1));
    let kinds = [
        EventKind::Switch { prev: Some(a), next: Some(b), out: SwitchOut::Yielded },
        EventKind::Switch { prev: Some(a), next: None, out: SwitchOut::Dead },
        EventKind::Switch { prev: None, next: None, out: SwitchOut::Idle },
        EventKind::Wakeup { task: a, waker: Some(a) },
        EventKind::Fork { task: b, parent: Some(b) },
        EventKind::Migrate { task: b, from: CpuId(6) },
        EventKind::Phase { task: a, phase: u32::MAX },
        EventKind::Progress { task: b },
        EventKind::Exit { task: b },
        EventKind::Lost { count: u32::MAX },
        EventKind::Block { task: b, object: ObjectId(0) },
    ];
    let mut sink = BinarySink::new(Vec::new(), 7);
    let info = TaskInfo { name: "Ωmega: a-1 b".into(), spec: Some(u32::MAX), pid: u32::MAX };
    sink.task(a, &info);
    sink.task(b, &TaskInfo::default());
    let object = ObjectInfo { name: "a|b".into(), kind: WaitKind::Children };
    sink.object(ObjectId(0), &object);
    let times = [
        0,
        1,
        127,
        128,
        1 << 20,
        1 << 40,
        u64::MAX - 9,
        u64::MAX - 1,
        u64::MAX,
        u64::MAX,
        u64::MAX,
    ];
    let events: Vec<Event> = (0..kinds.len())
        .map(|i| Event { time_ns: times[i], cpu: CpuId(i as u32 % 7), kind: kinds[i] })
        .collect();
    for event in &events {
        sink.event(event);
    }
    sink.end(u64::MAX);
    let back = read_back(&sink.finish().unwrap()).unwrap();
    assert_eq!(back.events, events);
    assert_eq!(back.tasks, [info, TaskInfo::default()]);
    assert_eq!(back.objects, [object]);
}

#[test]
fn every_truncation_is_an_error_with_its_place() {
    let bytes = tiny();
    for length in 0..bytes.len() {
        let error = read_back(&bytes[..length]).unwrap_err();
        assert!(byte_of(&error) <= length as u64, "{error}");
    }
    let error = read_back(&bytes[..bytes.len() - 1]).unwrap_err().to_string();
    assert!(error.contains("truncated"), "{error}");
}

/// One damaged byte never panics; where the log still reads, the damage changed only values.
#[test]
fn every_flipped_byte_is_an_error_or_another_trace() {
    let bytes = tiny();
    let good = read_back(&bytes).unwrap();
    let mut refused = 0;
    // Bytes 12 to 15 are the number of CPUs, which is no part of what is compared.
    for at in (0..12).chain(HEADER_LEN..bytes.len()) {
        for mask in [0x01, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            match read_back(&damaged) {
                Ok(other) => assert!(
                    other.events != good.events
                        || other.tasks != good.tasks
                        || other.objects != good.objects
                        || other.end_ns != good.end_ns
                ),
                Err(error) => {
                    assert!(byte_of(&error) <= bytes.len() as u64);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > bytes.len(), "only {refused} damages were found");
}

#[test]
fn errors_say_what_is_wrong() {
    let bytes = tiny();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut damaged = bytes.clone();
        change(&mut damaged);
        read_back(&damaged).unwrap_err().to_string()
    };
    assert!(error(&|b| b[1] = b'X').contains("no trace log"));
    assert!(error(&|b| b[8] = 9).contains("version 9"));
    assert!(error(&|b| b[11] = 1).contains("header"));
    assert!(error(&|b| b[12..16].fill(0)).contains("0 CPUs"));
    assert!(error(&|b| b[14] = 1).contains("65538 CPUs"));
    assert!(error(&|b| b.push(0)).contains("follow the end record"));
    // A name of 2^28 bytes in a file of 16: nothing of that size is allocated.
    let mut hostile = bytes[..HEADER_LEN].to_vec();
    hostile.extend([control::TASK, 0, 0, 0xff, 0xff, 0xff, 0x7f]);
    let error = read_back(&hostile).unwrap_err().to_string();
    assert!(error.contains("name length of") && error.contains("byte 16"), "{error}");
    // An event that names task 0 before there is one.
    let mut hostile = bytes[..HEADER_LEN].to_vec();
    hostile.extend([kind::EXIT | SAME_CPU, 0, 0]);
    let error = read_back(&hostile).unwrap_err().to_string();
    assert!(error.contains("there is none yet"), "{error}");
    // A task that blocks on object 1 of 1.
    let mut hostile = bytes[..HEADER_LEN].to_vec();
    hostile.extend([control::TASK, 0, 0, 0, control::OBJECT, 0, 0]);
    hostile.extend([kind::MARK | mark::BLOCK | SAME_CPU, 0, 0, 1]);
    let error = read_back(&hostile).unwrap_err().to_string();
    assert!(error.contains("object 1, but allowed are 0 to 0"), "{error}");
    // Version 1 knows no objects.
    hostile[8] = 1;
    let error = read_back(&hostile).unwrap_err().to_string();
    assert!(error.contains("byte 20: the record tag 0x18"), "{error}");
}

/// A log of version 1 differs in its number alone if it has no objects.
#[test]
fn version_1_is_read() {
    let mut sink = BinarySink::new(Vec::new(), 1);
    sink.task(TaskId(0), &TaskInfo::default());
    let fork = EventKind::Fork { task: TaskId(0), parent: None };
    sink.event(&Event { time_ns: 3, cpu: CpuId(0), kind: fork });
    sink.end(9);
    let mut bytes = sink.finish().unwrap();
    assert_eq!(bytes[8], 2);
    let new = read_back(&bytes).unwrap();
    bytes[8] = 1;
    let old = read_back(&bytes).unwrap();
    assert_eq!((old.events, old.tasks, old.end_ns), (new.events, new.tasks, new.end_ns));
}

/// The example of docs/reference/trace-format.md is exactly what is written.
#[test]
fn the_documented_example_is_the_log() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/trace-format.md");
    let page = std::fs::read_to_string(path).expect("the page of the formats is there");
    let (_, example) = page.split_once("### Example").expect("an example");
    let (example, _) = example.split_once("\n## ").expect("an end of the example");
    let hex = example.lines().filter_map(|line| line.strip_prefix("    "));
    let documented: Vec<u8> = hex
        .flat_map(|line| line.split_whitespace().take_while(|word| word.len() == 2))
        .map_while(|word| u8::from_str_radix(word, 16).ok())
        .collect();
    let a = TaskId(0);
    let mut sink = BinarySink::new(Vec::new(), 2);
    sink.task(a, &TaskInfo { name: "a".into(), spec: None, pid: 0 });
    for (time_ns, kind) in [
        (0, EventKind::Fork { task: a, parent: None }),
        (5, EventKind::Switch { prev: None, next: Some(a), out: SwitchOut::Idle }),
        (12, EventKind::Exit { task: a }),
        (12, EventKind::Switch { prev: Some(a), next: None, out: SwitchOut::Dead }),
    ] {
        sink.event(&Event { time_ns, cpu: CpuId(0), kind });
    }
    sink.end(12);
    assert_eq!(documented, sink.finish().unwrap());
}

#[test]
fn the_sink_refuses_what_the_reader_would() {
    let event =
        |time_ns, cpu| Event { time_ns, cpu: CpuId(cpu), kind: EventKind::Lost { count: 1 } };
    let errors = [
        {
            let mut sink = BinarySink::new(Vec::new(), 2);
            sink.event(&event(5, 0));
            sink.event(&event(4, 0));
            sink
        },
        {
            let mut sink = BinarySink::new(Vec::new(), 2);
            sink.event(&event(5, 2));
            sink
        },
        BinarySink::new(Vec::new(), 0),
        {
            let mut sink = BinarySink::new(Vec::new(), 2);
            sink.task(TaskId(0), &TaskInfo { name: "x".repeat(5_000), ..TaskInfo::default() });
            sink
        },
    ];
    for (mut sink, word) in errors.into_iter().zip(["comes after", "CPU 2", "0 CPUs", "5000 bytes"])
    {
        sink.end(9);
        let error = sink.finish().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    assert!(BinarySink::new(Vec::new(), 2).finish().unwrap_err().to_string().contains("not ended"));
}

proptest! {
    /// Random bytes after a good header: an error, never a panic.
    #[test]
    fn random_bytes_do_not_panic(tail in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = tiny()[..HEADER_LEN].to_vec();
        bytes.extend(&tail);
        let _ = read_back(&bytes);
    }

    /// Random bytes in the middle of a good log.
    #[test]
    fn random_damage_does_not_panic(
        at in 0usize..400,
        noise in proptest::collection::vec(any::<u8>(), 1..20),
    ) {
        let mut bytes = tiny();
        let at = at % bytes.len();
        let stop = (at + noise.len()).min(bytes.len());
        bytes[at..stop].copy_from_slice(&noise[..stop - at]);
        let _ = read_back(&bytes);
    }
}
