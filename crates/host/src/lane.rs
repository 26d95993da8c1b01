// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host lane: a workload as real processes on the running kernel.

use crate::attr::{self, Adjustments, PolicyOverride};
use crate::error::HostError;
use crate::memory::{FORKS_MAX, RunMemory};
use crate::objects::Objects;
use crate::outcome::{self, HostOutcome, SelfCheck};
use crate::pace::Pace;
use crate::plan::{RunPlan, Work};
use crate::recorder::convert::Names;
use crate::session::{self, RecorderChoice, Session};
use crate::traps::Watch;
use crate::tunables::Tunables;
use crate::{machine, procfs, refuse, room, sys, waiting};
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{
    CgroupSpec, Change, CpuMask, MutexProtocol, Nanos, ObjectKind, Op, TraceSink, Workload,
};
use schedlab_run::Warning;
use std::sync::atomic::Ordering;

/// Default time after which a run that has not ended is ended.
pub const LIMIT_NS_DEFAULT: Nanos = 600 * 1_000_000_000;
/// Calibration error (in millionths) above which a run has a warning.
const CALIBRATION_ERROR_PPM_MAX: u64 = 20_000;
/// Difference of run delays (in millionths) above which a run has a warning.
const RUN_DELAY_ERROR_PPM_MAX: u64 = 1_000;

/// One run of a workload on the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRequest {
    /// The workload.
    pub workload: Workload,
    /// A policy for every task in place of its own.
    pub policy: Option<PolicyOverride>,
    /// CPUs of the run. No task leaves them.
    pub cpus: CpuMask,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The run ends at this time (ns) if it has not ended before; `None`: at the workload's
    /// duration.
    pub duration_ns: Option<Nanos>,
    /// A run without an end is ended after this time (ns), with a warning.
    pub limit_ns: Nanos,
    /// How events are recorded.
    pub recorder: RecorderChoice,
    /// How often launcher and recorder check; `None`: a default for the run's CPUs.
    pub pace: Option<Pace>,
}

impl HostRequest {
    /// A request with the default limit and recorder, on all CPUs that this process may use.
    pub fn new(workload: Workload, seed: u64) -> Self {
        Self {
            workload,
            policy: None,
            cpus: machine::usable_cpus(),
            seed,
            duration_ns: None,
            limit_ns: LIMIT_NS_DEFAULT,
            recorder: RecorderChoice::Auto,
            pace: None,
        }
    }
}

/// The host lane: runs workloads on the running kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostLane;

struct WorkloadNames<'a>(&'a [String], &'a Workload);

impl Names for WorkloadNames<'_> {
    fn task(&self, index: u32, spec: u32, nth: u32) -> TaskInfo {
        let name = self.0.get(index as usize).cloned().unwrap_or_else(|| {
            let task = self.1.tasks.get(spec as usize);
            format!("{}-{nth}", task.map_or("task", |task| task.name.as_str()))
        });
        TaskInfo { name, spec: Some(spec), pid: 0 }
    }

    fn objects(&self) -> Vec<ObjectInfo> {
        self.1.trace_objects()
    }

    fn stranger(&self, pid: u32, _parent: Option<&str>) -> TaskInfo {
        TaskInfo { name: format!("pid-{pid}"), spec: None, pid }
    }
}

impl HostLane {
    /// Runs the request's workload. Every event goes to `sink`.
    pub fn play(
        &self,
        request: &HostRequest,
        sink: &mut dyn TraceSink,
    ) -> Result<HostOutcome, HostError> {
        let mut adjustments = Adjustments::default();
        let workload = effective_workload(request, &mut adjustments)?;
        let arrivals = workload.arrivals(request.seed);
        let names: Vec<String> = arrivals.iter().map(|arrival| arrival.name.clone()).collect();
        room::check(arrivals.len() as u64, room::Kind::Task)?;
        let forks =
            workload.tasks.iter().any(|task| has_op(task, |op| matches!(op, Op::Fork { .. })));
        let sets =
            workload.tasks.iter().any(|task| has_op(task, |op| matches!(op, Op::SetAttr(_))));
        let slots = arrivals.len() as u32 + if forks { FORKS_MAX } else { 0 };
        let no_memory = |error| HostError::system("memory shared with the tasks", &error);
        let memory = RunMemory::new(slots, workload.tasks.len() as u32).map_err(no_memory)?;
        let objects = Objects::new(&workload, slots).map_err(no_memory)?;
        let has_ceilings = workload.objects.iter().any(|object| {
            matches!(object.kind, ObjectKind::Mutex { protocol: MutexProtocol::Ceiling { .. } })
        });
        let on_this_machine = || Pace::on_this_machine(Some(&workload), &request.cpus);
        let pace = request.pace.unwrap_or_else(on_this_machine);
        let mut plan = RunPlan {
            work: Work::Tasks { workload: workload.clone(), arrivals },
            seed: request.seed,
            user: session::task_user(),
            tasks_set_own: is_root() && !sys::has_cap_sys_nice(),
            needs_nice: (forks || sets || has_ceilings) && may_set_policies(),
            own_stamps: false,
            dir: None,
            groups: Default::default(),
            tunables: Tunables::read(&workload)?,
            objects,
            cpus: request.cpus,
            launcher_cpus: session::helper_cpus(&request.cpus),
            duration_ns: request.duration_ns.or(workload.duration_ns),
            limit_ns: request.limit_ns,
            pace,
            program: None,
        };
        let watch = Watch::start(&request.cpus);
        let names = WorkloadNames(&names, &workload);
        let session = session::run(&mut plan, &memory, request.recorder, &names, true, sink)?;
        let mut outcome = collect(&memory, session, true);
        let uses_rt = workload.tasks.iter().any(|task| task.attr.policy.is_rt());
        outcome.warnings.extend(watch.finish(uses_rt, &outcome));
        if adjustments.clamps_dropped {
            outcome.warnings.push(Warning::util_clamp());
        }
        if adjustments.priority_capped {
            outcome.warnings.push(Warning::rt_priority_capped(attr::TASK_PRIORITY_MAX));
        }
        outcome.warnings.extend(waiting::warnings(&outcome, &memory, &plan.objects));
        outcome.machine = machine::info(&request.cpus);
        machine::add_run_settings(&mut outcome);
        Ok(outcome)
    }
}

fn has_op(task: &schedlab_model::TaskSpec, test: impl Fn(&Op) -> bool) -> bool {
    task.program.ops.iter().any(test)
}

/// The workload with the attributes that will be set, checked against this machine.
fn effective_workload(
    request: &HostRequest,
    adjustments: &mut Adjustments,
) -> Result<Workload, HostError> {
    let online = machine::online_cpus();
    let nr_cpus = online.iter().last().map_or(1, |cpu| cpu.0 + 1);
    request.workload.check(nr_cpus).map_err(|error| HostError::Input(error.to_string()))?;
    refuse::check_memory(&request.workload, procfs::available_bytes().unwrap_or(u64::MAX) / 2)?;
    refuse::check_ceilings(&request.workload, may_set_policies())?;
    refuse::check_sessions(&request.workload)?;
    check_cpus(&request.cpus)?;
    check_policy(request.policy)?;
    let mut workload = request.workload.clone();
    for task in &mut workload.tasks {
        let named = |error: HostError| match error {
            HostError::Input(text) => HostError::Input(format!("task {:?}: {text}", task.name)),
            HostError::Unavailable(text) => {
                HostError::Unavailable(format!("task {:?}: {text}", task.name))
            }
            HostError::System(text) => HostError::System(text),
        };
        let mut adjust = |attr: &schedlab_model::SchedAttr| {
            let able = session::abilities();
            let (policy, cpus) = (request.policy, &request.cpus);
            let out = attr::effective(attr, policy, cpus, &online, able, adjustments)?;
            attr::check(&out, able)?;
            Ok(out)
        };
        task.attr = adjust(&task.attr).map_err(named)?;
        for op in &mut task.program.ops {
            if let Op::SetAttr(attr) = op {
                **attr = adjust(attr).map_err(named)?;
            }
            if let Op::Change(change) = op {
                keep_within(change, &request.cpus).map_err(named)?;
            }
        }
    }
    keep_groups_within(&mut workload.cgroups, &request.cpus)?;
    for object in &mut workload.objects {
        if let ObjectKind::Mutex { protocol: MutexProtocol::Ceiling { rt_priority } } =
            &mut object.kind
            && *rt_priority > attr::TASK_PRIORITY_MAX
        {
            *rt_priority = attr::TASK_PRIORITY_MAX;
            adjustments.priority_capped = true;
        }
    }
    // Another policy may have put a task above a ceiling.
    workload.check(nr_cpus).map_err(|error| HostError::Input(error.to_string()))?;
    Ok(workload)
}

/// Keeps the CPUs of a group within those of the run, which it gets instead of all.
fn keep_within(change: &mut Change, cpus: &CpuMask) -> Result<(), HostError> {
    let Change::Cpus { cpus: of_group, .. } = change else { return Ok(()) };
    let mask = of_group.map_or(*cpus, |mask| mask.and(cpus));
    if mask.is_empty() {
        return Err(HostError::Input(format!(
            "it gives a group CPU {}, but the run may use only CPU {cpus}: name one of these",
            of_group.unwrap_or(mask)
        )));
    }
    *of_group = Some(mask);
    Ok(())
}

/// Keeps the CPUs with which groups start within those of the run.
fn keep_groups_within(groups: &mut [CgroupSpec], cpus: &CpuMask) -> Result<(), HostError> {
    for group in groups {
        let Some(own) = group.cpus else { continue };
        let mask = own.and(cpus);
        if mask.is_empty() {
            return Err(HostError::Input(format!(
                "group {:?} has CPU {own}, but the run may use only CPU {cpus}: name one of these",
                group.path
            )));
        }
        group.cpus = Some(mask);
    }
    Ok(())
}

/// Checks that the run's CPUs exist and may be used.
pub fn check_cpus(cpus: &CpuMask) -> Result<(), HostError> {
    let usable = machine::usable_cpus();
    let missing = cpus.and_not(&usable);
    if cpus.is_empty() || !missing.is_empty() {
        return Err(HostError::Input(format!(
            "CPU {cpus} asked for, but this process may use CPU {usable}: name some of these"
        )));
    }
    Ok(())
}

/// Checks the override.
pub fn check_policy(policy: Option<PolicyOverride>) -> Result<(), HostError> {
    let Some(PolicyOverride { policy, rt_priority }) = policy else { return Ok(()) };
    let allowed = if policy.is_rt() { 1..=attr::TASK_PRIORITY_MAX } else { 0..=0 };
    if !allowed.contains(&rt_priority) {
        return Err(HostError::Input(format!(
            "policy {} with priority {rt_priority}: allowed are {} to {}",
            policy.name(),
            allowed.start(),
            allowed.end()
        )));
    }
    if policy == schedlab_model::Policy::Deadline {
        return Err(HostError::Input(
            "policy DEADLINE cannot replace another: it needs runtime, deadline and period, which \
             the workload must give"
                .into(),
        ));
    }
    Ok(())
}

/// Reads all results that the run left in its memory.
pub fn collect(memory: &RunMemory, session: Session, has_specs: bool) -> HostOutcome {
    let tasks = outcome::tasks(memory, &session, has_specs);
    let header = memory.header();
    let mut outcome = HostOutcome {
        source: session.source,
        check: SelfCheck::of(&tasks),
        end_ns: session.end_ns,
        nr_events: session.nr_events,
        nr_lost_events: session.nr_lost,
        nr_inferred_events: session.nr_inferred,
        nr_late_events: session.nr_late,
        nr_lost_marks: (0..memory.nr_slots()).map(|task| memory.marks(task).nr_lost()).sum(),
        recorder_cpu_ns: session.drain_cpu_ns,
        others: session.others,
        descendants_cpu_ns: header.descendants_cpu_us.load(Ordering::Relaxed) * 1_000,
        was_limited: header.was_limited.load(Ordering::Relaxed) == 1,
        nr_leftover: header.nr_leftover.load(Ordering::Relaxed),
        warnings: session.warnings,
        tasks,
        ..HostOutcome::default()
    };
    let warnings = run_warnings(&outcome);
    outcome.warnings.extend(warnings);
    outcome
}

/// Warnings from the run itself.
fn run_warnings(outcome: &HostOutcome) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if outcome.nr_lost_events > 0 {
        warnings.push(Warning::lost_events(outcome.nr_lost_events));
    }
    if outcome.nr_inferred_events > 0 {
        warnings.push(Warning::inferred_events(outcome.nr_inferred_events));
    }
    if outcome.nr_lost_marks > 0 {
        warnings.push(Warning::lost_marks(outcome.nr_lost_marks));
    }
    if outcome.was_limited {
        warnings.push(Warning::limit_reached());
    }
    if outcome.nr_leftover > 0 {
        warnings.push(Warning::leftover_processes(outcome.nr_leftover));
    }
    warnings.extend(check_warnings(outcome));
    warnings
}

/// Warnings from the check of the run's numbers.
fn check_warnings(outcome: &HostOutcome) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let check = &outcome.check;
    if let Some(ppm) = check.calibration_error_ppm.filter(|ppm| *ppm > CALIBRATION_ERROR_PPM_MAX) {
        warnings.push(Warning::calibration(ppm as f64 / 10_000.0));
    }
    let off = check.run_delay_error_ppm.unwrap_or(0);
    let per_wait = check.run_delay_error_ns_per_wait.unwrap_or(0);
    let missing = check.nr_waits_off.unwrap_or(0);
    if off > RUN_DELAY_ERROR_PPM_MAX || missing > 0 {
        warnings.push(Warning::run_delay_mismatch(off as f64 / 10_000.0, per_wait, missing));
    }
    if let Some(task) = outcome.tasks.iter().find(|task| {
        task.exit_code.is_some_and(|code| code < 0)
            && task.ended_ns.is_none()
            && !outcome.was_limited
            && task.exit_code != Some(-libc::SIGKILL)
    }) {
        warnings.push(Warning::task_crashed(&task.name, -task.exit_code.unwrap_or(0)));
    }
    warnings
}

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    sys::euid() == 0
}

/// Whether this process may set real-time policies and attributes of other users' tasks
/// (CAP_SYS_NICE).
pub fn may_set_policies() -> bool {
    sys::has_cap_sys_nice()
}
