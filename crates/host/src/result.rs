// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host lane as an implementation of `Lane`: makes a result from an outcome.
//!
//! With a trace the measures are the trace's. Without one they come from the tasks' own counters; a
//! warning names the measures that only a trace has.

use crate::lane::{HostLane, HostRequest, LIMIT_NS_DEFAULT};
use crate::outcome::{HostOutcome, TaskOutcome};
use crate::pace::Pace;
use crate::program::run_program;
use crate::session::{RecorderChoice, SOURCE_BPF};
use schedlab_metrics::{RunMeasures, TaskMeasures, totals, user_system};
use schedlab_model::time::NSEC_PER_USEC;
use schedlab_model::{TraceSink, Workload};
use schedlab_run::program::ProgramRun;
use schedlab_run::{
    CopyResult, Keep, Lane, LaneError, LaneKind, Recorder, RunRequest, RunResult, Warning,
    launchers,
};

/// Measures that need a trace.
pub const ABSENT_WITHOUT_TRACE: [&str; 8] = [
    "slice",
    "wait",
    "wakeup_latency",
    "nr_wakeups",
    "nr_migrations",
    "sleep_ns",
    "blocked_io_ns",
    "unaccounted_ns",
];

impl Lane for HostLane {
    fn kind(&self) -> LaneKind {
        LaneKind::Host
    }

    fn is_parallel(&self) -> bool {
        false
    }

    fn run(&self, request: &RunRequest, sink: &mut dyn TraceSink) -> Result<RunResult, LaneError> {
        request.refuse_switch_jitter("a run on this machine")?;
        request.refuse_boot("a run on this machine")?;
        self.run_at(request, None, sink)
    }
}

impl HostLane {
    /// Runs a request, with helpers that check at `pace`; `None`: a default for the run's CPUs.
    pub fn run_at(
        &self,
        request: &RunRequest,
        pace: Option<Pace>,
        sink: &mut dyn TraceSink,
    ) -> Result<RunResult, LaneError> {
        if let Some((name, _)) = request.tunables.first() {
            return Err(LaneError::Input(format!(
                "tunable {name:?}: the host lane has none, the kernel's scheduler is as it is"
            )));
        }
        if let Some(spec) = &request.machine {
            return Err(LaneError::Input(format!(
                "machine {:?}: the host lane runs on this machine only",
                spec.machine.name
            )));
        }
        if let Some(program) = &request.program {
            return run_of_program(request, program, sink);
        }
        let host_request = HostRequest {
            workload: request.workload.clone(),
            policy: None,
            cpus: request.cpus,
            seed: request.seed,
            duration_ns: request.until_ns,
            limit_ns: LIMIT_NS_DEFAULT,
            recorder: RecorderChoice::Auto,
            pace,
        };
        let nr_cpus = request.cpus.weight();
        let mut recorder = Recorder::of_run(&request.workload, &request.cpus, request.keep);
        let outcome = self.play(&host_request, &mut (&mut recorder, sink))?;
        let recorded = recorder.finish(&request.workload);
        let mut result = RunResult {
            source: outcome.source.into(),
            ..RunResult::of(self.kind(), request, recorded)
        };
        if outcome.source != SOURCE_BPF {
            result.measures = measures_without_trace(&outcome, &request.workload, nr_cpus);
            result.analysis = None;
        }
        fill_pids(&mut result.measures, &outcome);
        fill_user_system(&mut result.measures, &outcome, nr_cpus);
        result.warnings = outcome.warnings;
        if outcome.source != SOURCE_BPF {
            result.warnings.push(measures_absent());
        }
        result.machine = outcome.machine;
        Ok(result)
    }
}

/// Runs a program: measures of it and its descendants, and the figures from its output.
fn run_of_program(
    request: &RunRequest,
    program: &ProgramRun,
    sink: &mut dyn TraceSink,
) -> Result<RunResult, LaneError> {
    let nr_cpus = request.cpus.weight();
    let mut recorder = Recorder::new(nr_cpus, Keep { analysis: None, ..request.keep });
    let outcome = run_program(request, program, &mut (&mut recorder, sink))?;
    let mut recorded = recorder.finish(&request.workload);
    // A program has no tasks of a workload that could mark progress.
    recorded.progress = Vec::new();
    let host = outcome.command.host;
    let mut warnings = host.warnings.clone();
    if host.source != SOURCE_BPF {
        recorded.measures = measures_without_trace(&host, &request.workload, nr_cpus);
        warnings.push(measures_absent());
    }
    Ok(RunResult {
        machine: host.machine,
        source: host.source.into(),
        warnings,
        copies: outcome.command.copies.into_iter().map(CopyResult::from).collect(),
        figures: outcome.figures,
        ..RunResult::of(LaneKind::Host, request, recorded)
    })
}

fn measures_absent() -> Warning {
    Warning::measures_absent(&ABSENT_WITHOUT_TRACE.join(", "))
}

/// Sets the pids. A task is announced as soon as it is known, which can be before its process
/// exists.
fn fill_pids(measures: &mut RunMeasures, outcome: &HostOutcome) {
    for task in measures.tasks.iter_mut().filter(|task| task.pid.is_none()) {
        task.pid = outcome.tasks.iter().find(|t| t.id == task.id).map(|found| found.pid);
    }
}

/// Sets user and system time, which a trace does not contain. wait4 has them for reaped tasks.
fn fill_user_system(measures: &mut RunMeasures, outcome: &HostOutcome, nr_cpus: u32) {
    for task in &mut measures.tasks {
        let reaped = outcome.tasks.iter().find(|t| t.id == task.id && t.exit_code.is_some());
        task.user_time_ns = reaped.map(|found| found.user_us * NSEC_PER_USEC);
        task.system_time_ns = reaped.map(|found| found.system_us * NSEC_PER_USEC);
    }
    let (user, system) = user_system::of_tasks(&measures.tasks).unzip();
    (measures.totals.user_time_ns, measures.totals.system_time_ns) = (user, system);
    totals::settle(&mut measures.totals, nr_cpus);
}

/// Measures from schedstat, wait4 and the tasks' own time stamps.
pub fn measures_without_trace(
    outcome: &HostOutcome,
    workload: &Workload,
    nr_cpus: u32,
) -> RunMeasures {
    let is_launcher = launchers::of_workload(workload);
    let mut tasks: Vec<TaskMeasures> = outcome.tasks.iter().map(task_measures).collect();
    for task in &mut tasks {
        task.is_launcher = is_launcher(task);
    }
    let mut totals = totals::summarise(&mut tasks, nr_cpus, outcome.end_ns);
    totals.nr_lost_events = outcome.nr_lost_events;
    RunMeasures { totals, model: None, tasks }
}

fn task_measures(task: &TaskOutcome) -> TaskMeasures {
    let after_release = |time_ns: u64| time_ns.saturating_sub(task.release_ns);
    TaskMeasures {
        id: task.id,
        name: task.name.clone(),
        spec: task.spec,
        pid: Some(task.pid),
        release_ns: task.release_ns,
        first_run_ns: task.first_run_ns,
        exit_ns: task.ended_ns,
        response_ns: task.first_run_ns.map(after_release),
        turnaround_ns: task.ended_ns.map(after_release),
        cpu_time_ns: task.run_ns,
        run_delay_ns: task.run_delay_ns,
        nr_voluntary_switches: task.nr_voluntary_switches,
        nr_involuntary_switches: task.nr_involuntary_switches,
        nr_progress: task.nr_progress,
        ..TaskMeasures::default()
    }
}
