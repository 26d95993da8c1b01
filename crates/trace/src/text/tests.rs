// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts of every tool, whole and damaged.

use super::*;
use crate::synthetic::Synthetic;
use crate::{Dialect, FtraceSink, TraceCheck, WakeSource};
use proptest::prelude::*;
use schedlab_model::trace::MemorySink;
use schedlab_model::{CpuId, Event, EventKind, ObjectId, SwitchOut, TaskId};

fn read_text(text: &[u8]) -> Result<(MemorySink, Facts), ReadError> {
    let mut memory = MemorySink::default();
    let facts = read(text, Vec::new(), &mut memory)?;
    Ok((memory, facts))
}

/// One story in each tool's words: `sh` runs on CPU 1 from before the trace, wakes `worker 1` on
/// CPU 0, forks a child, which runs, execs (its name changes), exits and is reaped.
const FTRACE: &str = include_str!("../../tests/samples/ftrace.txt");

const TRACE_CMD: &str = include_str!("../../tests/samples/trace-cmd.txt");

const PERF: &str = include_str!("../../tests/samples/perf.txt");

/// What the three say, in the project's words. Tasks: 0 worker 1, 1 sh, 2 the child.
fn story(worker: TaskId, sh: TaskId, ls: TaskId) -> Vec<Event> {
    let at = |us: u64, cpu, kind| Event { time_ns: us * 1_000, cpu: CpuId(cpu), kind };
    let switch = |prev, next, out| EventKind::Switch { prev, next, out };
    vec![
        at(0, 0, EventKind::Lost { count: 0 }),
        at(2, 0, EventKind::Wakeup { task: worker, waker: Some(sh) }),
        at(5, 0, switch(None, Some(worker), SwitchOut::Idle)),
        at(12, 1, EventKind::Fork { task: ls, parent: Some(sh) }),
        at(20, 1, switch(Some(sh), Some(ls), SwitchOut::Sleeping)),
        at(30, 0, switch(Some(worker), None, SwitchOut::BlockedIo)),
        at(50, 1, EventKind::Exit { task: ls }),
        at(60, 1, switch(Some(ls), None, SwitchOut::Dead)),
    ]
}

#[test]
fn three_tools_tell_one_story() {
    for (text, dialect) in
        [(FTRACE, Dialect::Ftrace), (TRACE_CMD, Dialect::TraceCmd), (PERF, Dialect::Perf)]
    {
        let (memory, facts) = read_text(text.as_bytes()).expect(text);
        let id = |pid| TaskId(memory.tasks.iter().position(|t| t.pid == pid).unwrap() as u32);
        assert_eq!(memory.events, story(id(200), id(100), id(300)), "{dialect:?}");
        assert_eq!(memory.end_ns, 60_000);
        let names: Vec<&str> = memory.tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names, ["sh", "worker 1", "sh"], "{dialect:?}");
        assert_eq!(facts.last_names, [(id(300), "ls".to_string())]);
        assert_eq!((facts.dialect, facts.nr_cpus), (Some(dialect), 2));
        assert_eq!((facts.nr_switches, facts.nr_missing_switches), (4, 0));
        assert!(facts.is_nr_cpus_stated && !facts.is_own && !facts.is_cut_off);
        assert_eq!((facts.wakes, facts.start_clock_ns), (WakeSource::Wakeup, 500_000_010_000));
        let mut check = TraceCheck::new();
        read(text.as_bytes(), Vec::new(), &mut check).unwrap();
        assert_eq!(check.finish(), Ok(()));
    }
    assert_eq!(read_text(FTRACE.as_bytes()).unwrap().1.nr_overwritten_events, 2);
    let (_, facts) = read_text(PERF.as_bytes()).unwrap();
    assert_eq!(facts.nr_other_lines, 1);
    assert!(facts.other_line.unwrap().1.contains("__schedule"));
}

/// Windows line ends, other numbers of flags, and names given from a first pass.
#[test]
fn details_do_not_matter() {
    let want = read_text(FTRACE.as_bytes()).unwrap().0.events;
    for (from, to) in [("\n", "\r\n"), ("dNh4.", "dNh4"), (" .....", " ...."), ("d..2.", "d..2.1")]
    {
        let (memory, _) = read_text(FTRACE.replace(from, to).as_bytes()).unwrap();
        assert_eq!(memory.events, want, "{from:?}");
    }
    let mut memory = MemorySink::default();
    let names = vec!["one".to_string(), String::new(), "three".to_string()];
    read(FTRACE.as_bytes(), names, &mut memory).unwrap();
    let names: Vec<&str> = memory.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["one", "worker 1", "three"]);
}

#[test]
fn what_is_missing_is_counted() {
    let without = |word: &str| -> String {
        FTRACE.lines().filter(|line| !line.contains(word)).map(|line| format!("{line}\n")).collect()
    };
    // The switch from sh to ls is missing: ls leaves a CPU to which it never came.
    let (_, facts) = read_text(without("next_pid=300").as_bytes()).unwrap();
    assert_eq!(facts.nr_missing_switches, 0, "nothing was known of CPU 1");
    let twice = FTRACE.replace("prev_comm=worker 1 prev_pid=200", "prev_comm=other prev_pid=201");
    let (_, facts) = read_text(twice.as_bytes()).unwrap();
    assert_eq!(facts.nr_missing_switches, 1);
    // After a loss on that CPU nothing is expected.
    let lost = twice.replace("        worker 1-200", "CPU:0 [LOST 7 EVENTS]\n        worker 1-200");
    let (memory, facts) = read_text(lost.as_bytes()).unwrap();
    assert_eq!((facts.nr_missing_switches, facts.nr_lost_events, facts.nr_losses), (0, 7, 1));
    assert!(memory.events.iter().any(|e| e.kind == EventKind::Lost { count: 7 }));
    // Without sched_wakeup, sched_waking wakes from the second time on.
    let waking = format!(
        "{}{}",
        without("sched_wakeup:"),
        "  a-1 [001] d..2. 500.000080: sched_waking: comm=x pid=200 prio=1 target_cpu=001\n"
    );
    let (memory, facts) = read_text(waking.as_bytes()).unwrap();
    assert_eq!(facts.wakes, WakeSource::Waking);
    assert!(matches!(memory.events.last().unwrap().kind, EventKind::Wakeup { .. }));
    let (_, facts) = read_text(without("wak").as_bytes()).unwrap();
    assert_eq!(facts.wakes, WakeSource::None);
}

#[test]
fn reports_of_losses() {
    for (line, want) in [
        ("CPU:1 [LOST 5 EVENTS]", Some((1, 5))),
        ("CPU:12 [LOST EVENTS]", Some((12, 1))),
        ("CPU:3 [12 EVENTS DROPPED]", Some((3, 12))),
        ("CPU:3 [EVENTS DROPPED]", Some((3, 1))),
        ("CPU:0 [LOST 99999999999 EVENTS]", Some((0, u32::MAX))),
        ("perf 12 [002] 1.5: PERF_RECORD_LOST lost 17", Some((2, 17))),
        ("CPU:1 is fine", None),
        ("CPU 1 is empty", None),
    ] {
        assert_eq!(loss(line.as_bytes()), Ok(want), "{line}");
    }
    assert!(loss(b"CPU:1024 [LOST 5 EVENTS]").unwrap_err().contains("0 to 1023"));
    assert!(loss(b"CPU:x [LOST 5 EVENTS]").is_err());
}

#[test]
fn a_process_id_used_again_is_another_task() {
    let again = format!(
        "{FTRACE}{}",
        "  sh-100 [001] ..... 500.000080: sched_process_fork: comm=sh pid=100 child_comm=sh \
         child_pid=300\n  sh-100 [001] d..2. 500.000081: sched_wakeup_new: comm=sh pid=300 \
         prio=120 target_cpu=001\n"
    );
    let (memory, _) = read_text(again.as_bytes()).unwrap();
    let with_300 = memory.tasks.iter().filter(|task| task.pid == 300).count();
    assert_eq!(with_300, 2);
    let forks = memory.events.iter().filter(|e| matches!(e.kind, EventKind::Fork { .. })).count();
    assert_eq!(forks, 2);
}

/// A thread that execs takes the number of its group's first thread.
#[test]
fn exec_of_a_thread_keeps_the_task() {
    let text = "  a-5 [000] d..2. 1.0: sched_switch: a:5 [1] S ==> b:6 [1]
  b-5 [000] ..... 2.0: sched_process_exec: filename=/x pid=5 old_pid=6
  b-5 [000] d..2. 3.0: sched_switch: b:5 [1] S ==> swapper/0:0 [120]
";
    let (memory, facts) = read_text(text.as_bytes()).unwrap();
    let prev = |e: &Event| match e.kind {
        EventKind::Switch { prev, .. } => prev,
        _ => None,
    };
    assert_eq!(prev(memory.events.last().unwrap()), Some(TaskId(1)));
    assert_eq!((memory.tasks.len(), facts.nr_missing_switches), (2, 0));
}

#[test]
fn errors_name_the_line_and_what_is_allowed() {
    let with = |from: &str, to: &str| {
        let error = read_text(FTRACE.replacen(from, to, 1).as_bytes()).unwrap_err();
        (error.place, error.what)
    };
    for (from, to, line, word) in [
        ("[000] d..2.", "[1024] d..2.", 11, "CPU \"1024\" is not allowed: allowed are 0 to 1023"),
        ("pid=200 prio", "pid=4194305 prio", 9, "0 to 4194304"),
        ("500.000030", "400.000030", 14, "the time goes back from 500000022000 to 400000030000 ns"),
        ("prev_state=S", "prev_state=Q", 14, "the state \"Q\" is not known: allowed are R S D"),
        ("child_pid=300", "", 12, "there is no field child_pid"),
        ("prev_pid=100", "prev_pid=300", 14, "a switch from process 300 to itself"),
        ("#P:2", "#P:1025", 3, "number of CPUs \"1025\" is not allowed"),
        ("#P:2", "#P:1", 18, "an event on CPU 1, but says that there are 1 CPUs"),
    ] {
        let (place, what) = with(from, to);
        assert!(what.contains(word), "{from} -> {to}: {what}");
        assert_eq!(place, Place::Line(line), "{from} -> {to}");
    }
    for (text, word) in [
        ("", "nothing but comments"),
        ("# tracer: nop\n", "nothing but comments"),
        ("hello\nworld\n", "line 1 is \"hello\""),
        ("a-1 [000] 1.0: irq_handler_entry: irq=1\n", "1 events of other kinds"),
        ("bash-1977    0d..2.  123us : sched_switch: x\n", "with a CPU in brackets"),
    ] {
        let error = read_text(text.as_bytes()).unwrap_err();
        assert!(error.what.contains(word), "{text:?}: {error}");
    }
    let long = vec![b'x'; 1 << 20];
    assert_eq!(read_text(&long).unwrap_err().place, Place::Line(1));
}

/// Bytes that are no text become longer when they are replaced; the name must still fit the log.
/// Found by the fuzz target `text_reader`.
#[test]
fn names_of_damaged_bytes_fit_the_log() {
    let mut text = FTRACE.as_bytes().to_vec();
    let at = FTRACE.find("worker 1").unwrap();
    text.splice(at..at + 8, std::iter::repeat_n(0xff, 3_000));
    check_stream(&text);
    let names = read_text(&text).unwrap().0.tasks;
    let longest = names.iter().map(|task| task.name.len()).max().unwrap();
    assert!((4_000..=COMM_MAX).contains(&longest), "{longest}");
}

/// Small steps back, between CPUs whose clocks differ, are taken at the latest time and counted.
#[test]
fn small_steps_back_are_counted() {
    let text = FTRACE.replace("500.000040", "500.000029");
    let (memory, facts) = read_text(text.as_bytes()).unwrap();
    assert_eq!((facts.nr_times_back, facts.back_ns_max), (1, 1_000));
    assert!(memory.events.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
    assert!(memory.events.iter().filter(|event| event.time_ns == 20_000).count() == 2);
}

#[test]
fn a_last_line_that_was_cut_off_is_left_out() {
    let whole = read_text(FTRACE.as_bytes()).unwrap().0.events;
    let (memory, facts) = read_text(&FTRACE.as_bytes()[..FTRACE.len() - 1]).unwrap();
    assert!(facts.is_cut_off);
    assert_eq!(memory.events, whole[..whole.len() - 1]);
    for length in 0..FTRACE.len() {
        match read_text(&FTRACE.as_bytes()[..length]) {
            Ok((memory, _)) => assert_eq!(memory.events, whole[..memory.events.len()]),
            Err(error) => assert!(error.what.contains("no scheduling event"), "{error}"),
        }
    }
}

/// Whole numbers are taken as nanoseconds, and that is noted.
#[test]
fn clocks_without_a_point() {
    let text = FTRACE.replace("500.0000", "5000000");
    let (memory, facts) = read_text(text.as_bytes()).unwrap();
    assert!(facts.is_clock_unknown);
    assert_eq!((memory.end_ns, facts.start_clock_ns), (60, 500_000_010));
    let text = FTRACE.replace("500.000010", "500.000009999");
    assert_eq!(read_text(text.as_bytes()).unwrap().0.end_ns, 60_001);
}

fn own_text(what: Synthetic, memory: &mut MemorySink) -> Vec<u8> {
    let mut sink = FtraceSink::new(Vec::new()).with_cpus(what.nr_cpus);
    what.play(&mut (memory, &mut sink));
    sink.finish().unwrap()
}

/// What this project writes comes back event by event; only a yield reads as a preemption, and
/// every task has a process id.
#[test]
fn our_own_text_comes_back() {
    for (seed, nr_cpus, nr_tasks) in [(1, 1, 1), (2, 2, 30), (3, 64, 500), (4, 1024, 2_000)] {
        let what = Synthetic { seed, nr_cpus, nr_tasks, nr_events: 20_000 };
        let mut memory = MemorySink::default();
        let text = own_text(what, &mut memory);
        let (back, facts) = read_text(&text).unwrap();
        let as_read = |mut event: Event| {
            if let EventKind::Switch { out: out @ SwitchOut::Yielded, .. } = &mut event.kind {
                *out = SwitchOut::Preempted;
            }
            event
        };
        let want: Vec<Event> = memory.events.iter().map(|event| as_read(*event)).collect();
        assert_eq!(back.events.len(), want.len());
        assert!(back.events == want, "seed {seed}");
        assert_eq!(back.objects, memory.objects);
        let names = |memory: &MemorySink| {
            memory.tasks.iter().map(|task| task.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&back), names(&memory));
        assert_eq!(back.end_ns, memory.end_ns);
        assert!(facts.is_own && facts.nr_cpus == nr_cpus && facts.nr_missing_switches == 0);
        // A part of it is no whole run.
        let cut = &text[..text.len() - 5];
        assert!(read_text(cut).unwrap_err().what.contains("cut off"));
    }
}

/// A text with every kind of line, for the tests of damage.
fn seeds() -> Vec<Vec<u8>> {
    let what = Synthetic { seed: 9, nr_cpus: 3, nr_tasks: 6, nr_events: 120 };
    let own = own_text(what, &mut MemorySink::default());
    vec![FTRACE.into(), TRACE_CMD.into(), PERF.into(), own]
}

/// Whatever is read keeps the rules of the stream: known tasks, time forwards, CPUs in range.
fn check_stream(text: &[u8]) {
    let mut memory = MemorySink::default();
    let result = read(text, Vec::new(), &mut memory);
    assert!(memory.events.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
    assert!(memory.events.iter().all(|event| event.cpu.index() < NR_CPUS_MAX));
    let mut log = crate::BinarySink::new(Vec::new(), NR_CPUS_MAX as u32);
    for (id, info) in (0..).map(TaskId).zip(&memory.tasks) {
        log.task(id, info);
    }
    for (id, info) in (0..).map(ObjectId).zip(&memory.objects) {
        log.object(id, info);
    }
    memory.events.iter().for_each(|event| log.event(event));
    log.end(memory.end_ns.max(memory.events.last().map_or(0, |event| event.time_ns)));
    let bytes = log.finish().expect("what was read can be written");
    let mut again = MemorySink::default();
    crate::Reader::new(&bytes[..]).unwrap().replay(&mut again).expect("and read again");
    if let Ok(facts) = result {
        assert!(facts.end_ns == memory.end_ns && facts.nr_tasks == memory.tasks.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Bytes changed, cut out, doubled and put in: an error or another trace, never a panic.
    #[test]
    fn mutated_texts_are_read_or_refused(
        seed in 0usize..4,
        edits in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0u8..6, any::<u8>(), 1usize..40), 1..8),
    ) {
        let mut text = seeds().swap_remove(seed);
        for (at, what, byte, length) in edits {
            let at = at.index(text.len().max(1)).min(text.len());
            let stop = (at + length).min(text.len());
            match what {
                0 if at < text.len() => text[at] = byte,
                1 => drop(text.drain(at..stop)),
                2 => {
                    let piece = text[at..stop].to_vec();
                    text.splice(at..at, piece);
                }
                3 => text.truncate(at.max(1)),
                4 => text.insert(at, b"0123456789[]=:> -\n|#+"[usize::from(byte) % 21]),
                _ => drop(text.splice(at..stop, b"18446744073709551616".iter().copied())),
            }
        }
        check_stream(&text);
    }

    /// Any bytes at all.
    #[test]
    fn random_bytes_do_not_panic(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        check_stream(&text);
    }

    /// Lines made of the words of real ones.
    #[test]
    fn random_words_do_not_panic(
        words in proptest::collection::vec(prop::sample::select(vec![
            "sh-1", "<idle>-0", "[000]", "[001]", " ", "\n", "d..2.", "1.0:", "2.5:", "7:",
            "sched_switch:", "sched_wakeup:", "sched_wakeup_new:", "sched_process_fork:",
            "sched_process_exit:", "sched_process_exec:", "sched_migrate_task:", "==>", "comm=a",
            "prev_comm=b", "pid=1", "prev_pid=1", "next_pid=2", "next_comm=c", "prio=1",
            "prev_state=Z", "child_comm=d", "child_pid=3", "old_pid=2", "orig_cpu=0", "dest_cpu=1",
            "target_cpu=1", "a:1 [1]", "S", "CPU:1 [LOST 3 EVENTS]", "CPU:001", "B|1|phase 2",
        ]), 0..80),
    ) {
        check_stream(words.join(" ").as_bytes());
    }
}
