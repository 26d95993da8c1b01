// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up results in the shapes of studies S0 and S1, from a toy round robin instead of schedlab's
//! engine. The example and the structure test share them.

use schedlab_lab::{Experiment, ExperimentResult, FigureKind};
use schedlab_metrics::samples::Samples;
use schedlab_metrics::{Distribution, RunMeasures, RunTotals, TaskMeasures};
use schedlab_run::LaneKind::{self, Host, Sim};
use schedlab_run::{
    Code, MachineInfo, ProgressCurve, RunResult, SCHEMA_VERSION, Setting, Slice, Warning,
};

const MS: u64 = 1_000_000;

/// A small generator of repeatable noise (Knuth's MMIX constants).
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound.max(1)
    }
}

/// One line of the figures.
#[derive(Clone, Copy)]
struct Line {
    lane: LaneKind,
    scheduler: &'static str,
    /// Policy of a modelled kernel, if not its default.
    policy: &'static str,
    slice_ns: u64,
    /// Greatest random addition to a slice, in parts of 1000.
    noise: u64,
}

const fn line(lane: LaneKind, scheduler: &'static str, slice_ns: u64, noise: u64) -> Line {
    Line { lane, scheduler, policy: "", slice_ns, noise }
}

/// A slice longer than any job.
const FOREVER_NS: u64 = u64::MAX / 4;

const LINES: [Line; 10] = [
    line(Sim, "linux-6.1", 6 * MS, 0),
    line(Sim, "linux-6.12", 4 * MS, 0),
    Line { policy: "FIFO", ..line(Sim, "linux-6.12", FOREVER_NS, 0) },
    Line { policy: "RR", ..line(Sim, "linux-6.12", 100 * MS, 0) },
    line(Sim, "rr", 10 * MS, 0),
    line(Sim, "fcfs", FOREVER_NS, 0),
    line(Host, "OTHER", 4 * MS, 300),
    line(Host, "FIFO", FOREVER_NS, 0),
    line(Host, "RR", 100 * MS, 20),
    line(Host, "BATCH", 5 * MS, 300),
];

struct Job<'a> {
    names: &'a [String],
    work_ns: u64,
    weights: &'a [u64],
    cpus: u32,
    seed: u64,
    trace: bool,
}

/// Runs `job` under `line`: each CPU takes the first waiting task for one slice.
fn play(line: Line, job: &Job<'_>) -> RunResult {
    let n = job.names.len();
    let mut noise = Noise(job.seed * 977 + line.slice_ns % 1013 + u64::from(job.cpus));
    let slow = if line.lane == Host { 1000 + noise.below(12) } else { 1000 };
    let work = job.work_ns * slow / 1000;
    let mut left = vec![work; n];
    let mut done_at = vec![0_u64; n];
    let mut first = vec![None; n];
    let mut clock = vec![0_u64; job.cpus as usize];
    let mut ready = vec![0_u64; n];
    let mut queue: std::collections::VecDeque<usize> = (0..n).collect();
    let mut slices = Vec::new();
    while !queue.is_empty() {
        let cpu = (0..clock.len()).min_by_key(|c| (clock[*c], *c)).expect("a CPU");
        let task = queue.pop_front().expect("checked above");
        let start = clock[cpu].max(ready[task]) + 2_000;
        let length = slice_length(line, job.weights[task], left[task], &mut noise);
        let end = start + length;
        first[task].get_or_insert(start);
        left[task] -= length;
        (clock[cpu], ready[task]) = (end, end);
        let ended = left[task] == 0;
        if ended {
            done_at[task] = end;
        } else {
            queue.push_back(task);
        }
        let end_word = if ended { "exited" } else { "preempted" };
        slices.push(Slice {
            cpu: cpu as u32,
            task: task as u32,
            start_ns: start,
            end_ns: end,
            end: end_word.into(),
        });
    }
    result(line, job, &slices, &first, &done_at, work)
}

fn slice_length(line: Line, weight: u64, left: u64, noise: &mut Noise) -> u64 {
    let slice = line.slice_ns.saturating_mul(weight) / 1024;
    let jitter = slice / 1000 * noise.below(line.noise + 1);
    (slice - slice.min(jitter / 2) + jitter).clamp(1, left)
}

fn result(
    line: Line,
    job: &Job<'_>,
    slices: &[Slice],
    first: &[Option<u64>],
    done_at: &[u64],
    work: u64,
) -> RunResult {
    let tasks: Vec<TaskMeasures> = (0..job.names.len())
        .map(|task| {
            let mine: Vec<u64> = slices
                .iter()
                .filter(|slice| slice.task == task as u32)
                .map(|slice| slice.end_ns - slice.start_ns)
                .collect();
            TaskMeasures {
                id: task as u32,
                name: job.names[task].clone(),
                first_run_ns: first[task],
                exit_ns: Some(done_at[task]),
                response_ns: first[task],
                turnaround_ns: Some(done_at[task]),
                cpu_time_ns: work,
                run_delay_ns: done_at[task].saturating_sub(work),
                cpu_share: Some(1.0 / job.names.len() as f64),
                nr_involuntary_switches: mine.len() as u64 - 1,
                nr_voluntary_switches: 1,
                slice: distribution(mine),
                ..TaskMeasures::default()
            }
        })
        .collect();
    let totals = totals(&tasks, slices, job);
    let progress = if job.trace && slices.len() < 5000 {
        (0..job.names.len()).map(|task| curve(task as u32, slices, work)).collect()
    } else {
        Vec::new()
    };
    let mut run = RunResult {
        schema_version: SCHEMA_VERSION,
        schedlab_version: "0.1.0".into(),
        lane: line.lane.into(),
        scheduler: line.scheduler.into(),
        workload: "hogs".into(),
        seed: job.seed,
        source: if line.lane == Sim { "simulated".into() } else { "bpf".into() },
        machine: machine(line, job.cpus),
        measures: RunMeasures { totals, model: None, tasks },
        slices: if job.trace { slices.to_vec() } else { Vec::new() },
        progress,
        ..RunResult::default()
    };
    run.parameters.insert("n".into(), job.names.len().to_string());
    run.parameters.insert("cpus".into(), job.cpus.to_string());
    if !line.policy.is_empty() {
        run.parameters.insert("policy".into(), line.policy.into());
    }
    if matches!(line.scheduler, "RR" | "FIFO") && line.lane == Host {
        run.warnings.push(Warning {
            code: Code::RtThrottling,
            text: "kernel.sched_rt_runtime_us is 950000: real-time tasks may use at most 95 % of \
                   each second, so turnaround under FIFO and RR can be up to 5 % too long. Set it \
                   to -1 for the run."
                .into(),
        });
    }
    run
}

fn totals(tasks: &[TaskMeasures], slices: &[Slice], job: &Job<'_>) -> RunTotals {
    let n = tasks.len() as u64;
    let turnaround: Vec<u64> = tasks.iter().filter_map(|task| task.turnaround_ns).collect();
    let response: Vec<u64> = tasks.iter().filter_map(|task| task.response_ns).collect();
    let delay: Vec<u64> = tasks.iter().map(|task| task.run_delay_ns).collect();
    let makespan = *turnaround.iter().max().expect("a task");
    let busy: u64 = slices.iter().map(|slice| slice.end_ns - slice.start_ns).sum();
    RunTotals {
        end_ns: makespan,
        nr_tasks: n,
        nr_exited: n,
        makespan_ns: Some(makespan),
        throughput_per_s: Some(n as f64 * 1e9 / makespan as f64),
        utilisation: Some(busy as f64 / (makespan * u64::from(job.cpus)) as f64),
        jain_index: Some(1.0),
        cpu_time_ns: busy,
        run_delay_ns: delay.iter().sum(),
        nr_switches: slices.len() as u64,
        nr_voluntary_switches: n,
        nr_involuntary_switches: slices.len() as u64 - n,
        turnaround_ns_mean: Some(turnaround.iter().sum::<u64>() / n),
        response_ns_mean: Some(response.iter().sum::<u64>() / n),
        turnaround: distribution(turnaround),
        response: distribution(response),
        run_delay: distribution(delay),
        slice: distribution(slices.iter().map(|s| s.end_ns - s.start_ns).collect()),
        wait: distribution(waits(slices)),
        // Pretend that a third of each wait followed a wake-up.
        wakeup_latency: distribution(waits(slices).into_iter().map(|ns| ns / 3).collect()),
        ..RunTotals::default()
    }
}

/// Times between the slices of each task.
fn waits(slices: &[Slice]) -> Vec<u64> {
    let mut ends = std::collections::BTreeMap::new();
    let mut wait = |slice: &Slice| {
        slice.start_ns.saturating_sub(ends.insert(slice.task, slice.end_ns).unwrap_or(0))
    };
    slices.iter().map(&mut wait).collect()
}

fn distribution(values: Vec<u64>) -> Distribution {
    values.into_iter().collect::<Samples>().distribution()
}

/// A mark at each hundredth of the work.
fn curve(task: u32, slices: &[Slice], work: u64) -> ProgressCurve {
    let mut times_ns = Vec::new();
    let mut done = 0;
    for slice in slices.iter().filter(|slice| slice.task == task) {
        let length = slice.end_ns - slice.start_ns;
        while (times_ns.len() as u64 + 1) * work / 100 <= done + length && times_ns.len() < 100 {
            times_ns.push(slice.start_ns + (times_ns.len() as u64 + 1) * work / 100 - done);
        }
        done += length;
    }
    ProgressCurve { task, times_ns }
}

fn machine(line: Line, cpus: u32) -> MachineInfo {
    let setting = |name: &str, value: &str| Setting { name: name.into(), value: value.into() };
    if line.lane == Sim {
        return MachineInfo {
            cpu_model: "modelled".into(),
            nr_cpus: cpus,
            hz: Some(250),
            kernel: line.scheduler.into(),
            settings: vec![setting("context switch", "1.2 \u{b5}s")],
        };
    }
    MachineInfo {
        cpu_model: "Example CPU <1.0> & Co".into(),
        nr_cpus: cpus,
        hz: Some(250),
        kernel: "6.18.44-example".into(),
        settings: vec![
            setting("kernel.sched_rt_runtime_us", "950000"),
            setting("kernel.sched_autogroup_enabled", "0"),
        ],
    }
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("hog-{i}")).collect()
}

fn experiment(
    name: &str,
    study: &str,
    title: &str,
    text: &str,
    figures: &[FigureKind],
    runs: Vec<RunResult>,
) -> ExperimentResult {
    let experiment = Experiment {
        name: name.into(),
        study: study.into(),
        title: title.into(),
        text: text.into(),
        figures: figures.to_vec(),
        view: None,
    };
    ExperimentResult { experiment, runs }
}

fn s0(n: usize, cpus: u32) -> ExperimentResult {
    let names = names(n);
    let weights = vec![1024; n];
    let job =
        Job { names: &names, work_ns: 100 * MS, weights: &weights, cpus, seed: 1, trace: true };
    experiment(
        &format!("S0-{cpus}cpu-{n}"),
        "S0",
        &format!("{n} CPU hogs on {cpus} CPU{}", if cpus == 1 { "" } else { "s" }),
        "Each hog needs 100 ms of CPU time and marks its progress at each hundredth. On one CPU \
         only one of them can move at any moment.",
        &[FigureKind::Timeline, FigureKind::Progress],
        LINES.iter().map(|line| play(*line, &job)).collect(),
    )
}

fn s1(cpus: u32) -> ExperimentResult {
    let mut runs = Vec::new();
    for n in 1..=5 {
        let (names, weights) = (names(n), vec![1024; n]);
        for line in LINES {
            let repetitions = if line.lane == Host { 4 } else { 1 };
            for repetition in 0..repetitions {
                let seed = 7 + u64::from(repetition) * 31 + n as u64;
                let job = Job {
                    names: &names,
                    work_ns: 200 * MS,
                    weights: &weights,
                    cpus,
                    seed,
                    trace: false,
                };
                let mut run = play(line, &job);
                run.repetition = repetition;
                runs.push(run);
            }
        }
    }
    experiment(
        &format!("S1-{cpus}cpu"),
        "S1",
        &format!("Turnaround and throughput on {cpus} CPU{}", if cpus == 1 { "" } else { "s" }),
        "n equal jobs of 200 ms of CPU time, released together.",
        &[FigureKind::TurnaroundAgainstN, FigureKind::ThroughputAgainstN, FigureKind::Boxes],
        runs,
    )
}

/// A name without a blank that is wider than a phone.
const WIDE_NAME: &str = "a_name_of_64_characters_without_a_blank_that_no_phone_has_room_for";

/// One timeline of `work_ns` / 8.4 us slices, with a task whose name contains hostile HTML, and one
/// whose name is long.
fn big(work_ns: u64, text: &str) -> ExperimentResult {
    let mut names = names(6);
    names.push(WIDE_NAME.into());
    names.push("</script><img src=x onerror=alert(1)>".into());
    let weights = [1024, 1024, 820, 655, 526, 423, 335, 1024];
    let line = line(Sim, "linux-6.12", 100_000, 400);
    let job = Job { names: &names, work_ns, weights: &weights, cpus: 4, seed: 3, trace: true };
    let run = play(line, &job);
    experiment(
        "big-<b>timeline</b>",
        "",
        &format!("A long timeline <script>alert(2)</script> of {WIDE_NAME}"),
        text,
        &[FigureKind::Timeline],
        vec![run],
    )
}

/// All experiments of the example.
pub fn all() -> Vec<ExperimentResult> {
    // A little over 100,000; the test counts them.
    let big = big(840 * MS, "One hundred thousand slices, to see that zooming stays fluent.");
    vec![s0(2, 1), s0(4, 1), s0(4, 2), s1(1), s1(2), big]
}

/// Only a timeline of a little over 1,000,000 slices.
#[allow(dead_code, reason = "the structure test does not use it, the example does")]
pub fn long() -> Vec<ExperimentResult> {
    vec![big(8_400 * MS, "A million slices, to see that they open.")]
}

/// The small experiments, for tests that need no long timeline.
#[allow(dead_code, reason = "the example does not use it, the structure test does")]
pub fn small() -> Vec<ExperimentResult> {
    vec![s0(2, 1), s1(2)]
}
