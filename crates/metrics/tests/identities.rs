// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of the measures of any trace, checked on random ones.

use schedlab_metrics::analysis::{Context, Thresholds};
use schedlab_metrics::{Analyser, Analysis, Collector, RunMeasures, TaskMeasures};
use schedlab_model::trace::MemorySink;
use schedlab_model::{CpuId, CpuMask, Event, EventKind, SwitchOut, TraceSink};
use schedlab_trace::synthetic::Synthetic;
use schedlab_trace::{Slice, SliceEnd, SliceSink, TraceCheck, Window};

const TRACES: [Synthetic; 4] = [
    Synthetic { seed: 1, nr_cpus: 1, nr_tasks: 1, nr_events: 3_000 },
    Synthetic { seed: 2, nr_cpus: 1, nr_tasks: 12, nr_events: 20_000 },
    Synthetic { seed: 3, nr_cpus: 4, nr_tasks: 60, nr_events: 100_000 },
    Synthetic { seed: 4, nr_cpus: 16, nr_tasks: 500, nr_events: 60_000 },
];

fn record(what: Synthetic) -> MemorySink {
    let mut memory = MemorySink::default();
    what.play(&mut memory);
    memory
}

fn play(memory: &MemorySink, events: &[Event], sink: &mut impl TraceSink) {
    for (id, info) in (0..).map(schedlab_model::TaskId).zip(&memory.tasks) {
        sink.task(id, info);
    }
    for (id, info) in memory.objects.iter().enumerate() {
        sink.object(schedlab_model::ObjectId(id as u32), info);
    }
    for event in events {
        sink.event(event);
    }
    sink.end(memory.end_ns);
}

fn measure(nr_cpus: u32, memory: &MemorySink, events: &[Event]) -> RunMeasures {
    let mut collector = Collector::new(nr_cpus);
    play(memory, events, &mut collector);
    collector.finish()
}

fn life_ns(task: &TaskMeasures, end_ns: u64) -> u64 {
    task.turnaround_ns.unwrap_or(end_ns - task.release_ns)
}

fn explained_ns(task: &TaskMeasures) -> u64 {
    let off_queue = |part: Option<u64>| part.expect("a trace tells it");
    task.cpu_time_ns + task.run_delay_ns + off_queue(task.sleep_ns) + off_queue(task.blocked_io_ns)
}

/// turnaround = cpu_time + run_delay + sleep + blocked_io, to the nanosecond.
#[test]
fn turnaround_is_the_sum_of_its_parts() {
    for what in TRACES {
        let memory = record(what);
        let measures = measure(what.nr_cpus, &memory, &memory.events);
        assert_eq!(measures.tasks.len(), what.nr_tasks as usize);
        for task in &measures.tasks {
            assert_eq!(explained_ns(task), life_ns(task, memory.end_ns), "task {}", task.id);
            assert_eq!((task.unaccounted_ns, task.is_uncertain), (Some(0), false));
        }
        let totals = &measures.totals;
        assert_eq!((totals.nr_lost_events, totals.nr_inconsistent_events), (0, 0));
        let [utilisation, jain] = [totals.utilisation, totals.jain_index].map(Option::unwrap);
        assert!(utilisation > 0.0 && utilisation <= 1.0);
        assert!(
            (measures.tasks.iter().filter_map(|t| t.cpu_share).sum::<f64>() - 1.0).abs() < 1e-9
        );
        let n = what.nr_tasks as f64;
        assert!(jain >= 1.0 / n - 1e-12 && jain <= 1.0 + 1e-12);
    }
}

fn analyse(nr_cpus: u32, memory: &MemorySink, events: &[Event]) -> Analysis {
    let cpus = CpuMask::first(nr_cpus);
    let mut analyser = Analyser::new(Context { cpus, is_whole: true, ..Context::default() });
    play(memory, events, &mut analyser);
    analyser.finish()
}

/// The states of a task are its life, and each is the measure of the same meaning. `measures` and
/// `analysis` are of the same trace.
fn assert_states_are_the_measures(measures: &RunMeasures, analysis: &Analysis) {
    assert_eq!(measures.tasks.len(), analysis.tasks.len());
    for (task, analysed) in measures.tasks.iter().zip(&analysis.tasks) {
        let sum = |names: [&str; 2]| -> u64 {
            let states = analysed.states.iter();
            states.filter(|s| names.contains(&s.state.as_str())).map(|s| s.ns).sum()
        };
        assert_eq!(sum(["running", ""]), task.cpu_time_ns, "task {}", task.id);
        assert_eq!(sum(["runnable", ""]), task.run_delay_ns, "task {}", task.id);
        assert_eq!(Some(sum(["blocked", "sleeping"])), task.sleep_ns, "task {}", task.id);
        assert_eq!(Some(sum(["device", ""])), task.blocked_io_ns, "task {}", task.id);
        assert_eq!(Some(sum(["unknown", ""])), task.unaccounted_ns, "task {}", task.id);
        let life_ns: u64 = analysed.states.iter().map(|state| state.ns).sum();
        assert_eq!(life_ns, analysed.life_ns);
    }
}

/// A trace cut into windows: what each task did in them adds up to what it did, and no event
/// counts twice.
#[test]
fn windows_add_up_to_the_whole() {
    for what in TRACES {
        let memory = record(what);
        let whole = measure(what.nr_cpus, &memory, &memory.events);
        let third = memory.end_ns / 3;
        let cuts = [(0, third), (third, 2 * third), (2 * third, u64::MAX)];
        let parts = cuts.map(|cut| {
            let mut sinks = (Collector::new(what.nr_cpus), Analyser::new(Context::default()));
            play(&memory, &memory.events, &mut Window::new(&mut sinks, cut, what.nr_cpus));
            let (measures, analysis) = (sinks.0.finish(), sinks.1.finish());
            assert_states_are_the_measures(&measures, &analysis);
            assert_eq!(measures.totals.nr_inconsistent_events, 0);
            measures
        });
        for task in &whole.tasks {
            let sum = |value: fn(&TaskMeasures) -> u64| -> u64 {
                let of = parts.iter().flat_map(|part| &part.tasks);
                of.filter(|part| part.id == task.id).map(value).sum()
            };
            let values: [fn(&TaskMeasures) -> u64; 7] = [
                |task| task.cpu_time_ns,
                |task| task.run_delay_ns,
                |task| task.sleep_ns.unwrap(),
                |task| task.blocked_io_ns.unwrap(),
                |task| task.nr_voluntary_switches,
                |task| task.nr_involuntary_switches,
                |task| task.nr_wakeups.unwrap(),
            ];
            for (number, value) in values.into_iter().enumerate() {
                assert_eq!(sum(value), value(task), "value {number} of task {}", task.id);
            }
        }
        let ends: u64 = parts.iter().map(|part| part.totals.end_ns).sum();
        assert_eq!(ends, memory.end_ns);
    }
}

#[test]
fn states_and_antagonists_add_up() {
    for what in TRACES {
        let memory = record(what);
        let measures = measure(what.nr_cpus, &memory, &memory.events);
        let analysis = analyse(what.nr_cpus, &memory, &memory.events);
        assert_states_are_the_measures(&measures, &analysis);
        for (task, analysed) in measures.tasks.iter().zip(&analysis.tasks) {
            assert_eq!(analysed.life_ns, life_ns(task, memory.end_ns));
            let who = &analysed.antagonists;
            assert_eq!(who.ran_ns + who.idle_ns + who.unnamed_ns, task.run_delay_ns);
        }
        let names = || analysis.tasks.iter().flat_map(|task| &task.states);
        assert!(names().any(|state| state.object.is_some()), "some task blocked on an object");
        // Runnable tasks by time: the integral is the time that tasks ran or waited.
        let runnable: u64 =
            measures.tasks.iter().map(|task| task.cpu_time_ns + task.run_delay_ns).sum();
        let area = analysis.depth.mean * memory.end_ns as f64;
        assert!((area - runnable as f64).abs() < 1.0 + 1e-9 * area, "{area} {runnable}");
        let of_cpus: f64 = analysis.cpus.iter().map(|cpu| cpu.mean).sum();
        assert!((of_cpus - analysis.depth.mean).abs() < 1e-9 * of_cpus.max(1.0));
    }
}

/// Every seventh event is gone, some losses are told: the sums hold all the same.
#[test]
fn states_add_up_in_a_trace_with_holes() {
    for what in TRACES {
        let memory = record(what);
        let mut events = Vec::new();
        for (at, event) in memory.events.iter().enumerate() {
            match at % 7 {
                3 if at % 70 == 3 => {
                    events.push(Event { kind: EventKind::Lost { count: 1 }, ..*event });
                }
                3 => {}
                _ => events.push(*event),
            }
        }
        let measures = measure(what.nr_cpus, &memory, &events);
        let analysis = analyse(what.nr_cpus, &memory, &events);
        assert_states_are_the_measures(&measures, &analysis);
    }
}

/// The collector's CPU times and slices are those of the slice stream, which is computed in another
/// way.
#[test]
fn cpu_time_and_slices_agree_with_the_slice_stream() {
    for what in TRACES {
        let memory = record(what);
        let measures = measure(what.nr_cpus, &memory, &memory.events);
        let mut cpu_time = vec![0; memory.tasks.len()];
        let mut whole = vec![0u64; memory.tasks.len()];
        let mut longest = 0;
        let mut sink = SliceSink::new(|slice: Slice| {
            cpu_time[slice.task.index()] += slice.end_ns - slice.start_ns;
            if slice.end != SliceEnd::Running {
                whole[slice.task.index()] += 1;
                longest = longest.max(slice.end_ns - slice.start_ns);
            }
        });
        play(&memory, &memory.events, &mut sink);
        for task in &measures.tasks {
            assert_eq!(task.cpu_time_ns, cpu_time[task.id as usize]);
            assert_eq!(task.slice.count, Some(whole[task.id as usize]));
        }
        assert_eq!(measures.totals.slice.ns_max, Some(longest));
    }
}

/// Counts and sums of the run are those of its tasks, and of the events.
#[test]
fn totals_are_the_sums() {
    let what = TRACES[2];
    let memory = record(what);
    let RunMeasures { totals, tasks, .. } = measure(what.nr_cpus, &memory, &memory.events);
    let count = |is: fn(&EventKind) -> bool| {
        memory.events.iter().filter(|event| is(&event.kind)).count() as u64
    };
    assert_eq!(totals.nr_switches, count(|k| matches!(k, EventKind::Switch { .. })));
    assert_eq!(totals.nr_migrations, Some(count(|k| matches!(k, EventKind::Migrate { .. }))));
    let outs = count(|k| matches!(k, EventKind::Switch { prev: Some(_), .. }));
    assert_eq!(totals.nr_voluntary_switches + totals.nr_involuntary_switches, outs);
    assert_eq!(totals.nr_exited, count(|k| matches!(k, EventKind::Exit { .. })));
    let sum = |field: fn(&TaskMeasures) -> u64| tasks.iter().map(field).sum::<u64>();
    let samples = |field: fn(&TaskMeasures) -> Option<u64>| tasks.iter().map(field).sum();
    assert_eq!(totals.wakeup_latency.count, samples(|task| task.wakeup_latency.count));
    assert_eq!(totals.wait.count, samples(|task| task.wait.count));
    assert_eq!(sum(|task| task.nr_progress), count(|k| matches!(k, EventKind::Progress { .. })));
    assert_eq!(totals.run_delay_ns, sum(|task| task.run_delay_ns));
    assert!(totals.wait.ns_max >= totals.wakeup_latency.ns_max);
    assert!(totals.wakeup_latency.ns_median <= totals.wakeup_latency.ns_p95);
    assert!(totals.wakeup_latency.ns_p95 <= totals.wakeup_latency.ns_p99);
}

/// With every tenth event lost the sum still holds, with its hole shown, and the tasks are marked.
#[test]
fn lost_events_are_counted_and_mark_the_tasks() {
    for what in TRACES {
        let memory = record(what);
        let mut events = Vec::new();
        for (index, event) in memory.events.iter().enumerate() {
            let kind = EventKind::Lost { count: 1 };
            events.push(if index % 10 == 7 { Event { kind, ..*event } } else { *event });
        }
        let measures = measure(what.nr_cpus, &memory, &events);
        let lost = events.len() / 10;
        assert!(measures.totals.nr_lost_events.abs_diff(lost as u64) <= 1);
        assert_eq!(measures.tasks.iter().filter(|task| !task.is_uncertain).count(), 0);
        assert_eq!(measures.totals.nr_uncertain_tasks, measures.tasks.len() as u64);
        assert!(measures.totals.nr_inconsistent_events > 0);
        for task in &measures.tasks {
            let life = life_ns(task, memory.end_ns);
            let unaccounted_ns = task.unaccounted_ns.expect("a trace tells it");
            assert_eq!(explained_ns(task) + unaccounted_ns, life, "task {}", task.id);
        }
        let mut check = TraceCheck::new();
        play(&memory, &events, &mut check);
        assert_eq!(check.finish(), Ok(()), "losses were reported: no violation");
    }
}

/// A task that was gone before the loss, or came after it, is not marked.
#[test]
fn a_loss_marks_only_tasks_that_were_alive() {
    let at = |time_ns, kind| Event { time_ns, cpu: CpuId(0), kind };
    let task = schedlab_model::TaskId;
    let life = |id: u32, from: u64| {
        let (some, start) = (Some(task(id)), EventKind::Fork { task: task(id), parent: None });
        [
            at(from, start),
            at(from + 1, EventKind::Switch { prev: None, next: some, out: SwitchOut::Idle }),
            at(from + 5, EventKind::Switch { prev: some, next: None, out: SwitchOut::Dead }),
        ]
    };
    let mut events = vec![at(0, EventKind::Fork { task: task(2), parent: None })];
    events.extend(life(0, 1));
    events.push(at(10, EventKind::Lost { count: 3 }));
    events.extend(life(1, 20));
    let memory =
        MemorySink { tasks: vec![Default::default(); 3], end_ns: 30, ..MemorySink::default() };
    let measures = measure(1, &memory, &events);
    let marks: Vec<bool> = measures.tasks.iter().map(|task| task.is_uncertain).collect();
    assert_eq!(marks, [false, false, true]);
    assert_eq!(measures.totals.nr_lost_events, 3);
}

/// Events that name unknown tasks are counted, and nothing panics.
#[test]
fn nonsense_is_counted() {
    let mut collector = Collector::new(1);
    for (time_ns, kind) in [
        (9, EventKind::Exit { task: schedlab_model::TaskId(7) }),
        (3, EventKind::Wakeup { task: schedlab_model::TaskId(u32::MAX), waker: None }),
    ] {
        collector.event(&Event { time_ns, cpu: CpuId(u32::MAX), kind });
    }
    let measures = collector.finish();
    assert_eq!(measures.totals.nr_inconsistent_events, 3);
    assert!(measures.tasks.is_empty());
}

/// With thresholds of 1 ns every wait is a finding; progress ends at what was measured; a task is
/// never further behind than it waited nor further ahead than it ran.
#[test]
fn progress_is_the_cpu_time_and_findings_are_waits() {
    for what in TRACES {
        let memory = record(what);
        let measures = measure(what.nr_cpus, &memory, &memory.events);
        let cpus = CpuMask::first(what.nr_cpus);
        let thresholds = Thresholds { starved_ns: 1, wasted_ns: 1 };
        let context = Context { cpus, is_whole: true, thresholds, ..Context::default() };
        let mut analyser = Analyser::new(context);
        play(&memory, &memory.events, &mut analyser);
        let analysis = analyser.finish();
        let nr_waits: u64 = measures.tasks.iter().filter_map(|task| task.wait.count).sum();
        let starved = &analysis.starved;
        // Waits of no length are none; those that the end cuts off come to the finished ones.
        assert!(starved.count <= nr_waits + measures.totals.nr_tasks);
        assert_eq!(starved.ns, measures.totals.run_delay_ns);
        let longest = starved.longest.iter().map(|one| one.ns).max();
        assert!(longest >= measures.totals.wait.ns_max);
        for (task, analysed) in measures.tasks.iter().zip(&analysis.tasks) {
            if let Some(progress) = &analysed.progress {
                assert_eq!(progress.cpu_time_ns.last().copied().unwrap_or(0), task.cpu_time_ns);
                assert_eq!(progress.units.last().copied().unwrap_or(0), task.nr_progress);
            }
            let lag = analysed.lag.expect("the CPUs are known");
            assert!(lag.behind_ns_max <= task.run_delay_ns && lag.ahead_ns_max <= task.cpu_time_ns);
        }
        assert_eq!(analysis.wasted.count > 0, what.nr_cpus > 1, "{what:?}");
        for one in &analysis.wasted.longest {
            assert!(one.cpu != one.waited_on && one.to_ns - one.from_ns == one.ns, "{one:?}");
        }
    }
}
