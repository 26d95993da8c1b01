// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sim lane: a workload under a modelled scheduler on a modelled machine.
//!
//! The checker of the crate trace checks every run. A model whose trace is impossible gives an
//! error, never a number.

use crate::Inputs;
use crate::visible::Visible;
use schedlab_engine::{
    BlockedTask, Observer, SimConfig, SimError, SimOutcome, Simulation, simulate,
};
use schedlab_metrics::totals::settle;
use schedlab_metrics::{ModelCounters, RunTotals};
use schedlab_model::machine::SMT_SPEED_FULL;
use schedlab_model::trace::NullSink;
use schedlab_model::{
    Costs, CpuMask, KernelVersion, Machine, Memory, Nanos, Op, Preempt, SchedAttr, TaskSpec,
    TraceSink, Workload,
};
use schedlab_run::machine::{MachineSpec, set_costs};
use schedlab_run::place::unknown;
use schedlab_run::result::GroupResult;
use schedlab_run::{
    Lane, LaneError, LaneKind, MachineInfo, Recorder, RunRequest, RunResult, Schedulers, Setting,
    StudyError, Warning,
};
use schedlab_sched::boundary::options::SCX_CORE;
use schedlab_sched::{Options, Scheduler, SourceDigest, TunableKind, registry};
use schedlab_trace::TraceCheck;
use schedlab_workload::units;
use std::collections::BTreeSet;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Default of the longest wait of a runnable task, under a scheduler that claims to be free of
/// starvation: the longest timeout of sched_ext's watchdog.
pub const WATCHDOG_NS_DEFAULT: Nanos = 30_000_000_000;

/// Is called with the present time (ns) again and again while a run goes on. The run ends if it
/// breaks.
pub type Watch<'w> = dyn FnMut(Nanos) -> ControlFlow<()> + 'w;

/// How many instants a run handles between two calls of [`Watch`].
const INSTANTS_WATCHED: u32 = 1024;

/// How long a runnable task may wait before a simulation stops with an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Watchdog {
    /// [`WATCHDOG_NS_DEFAULT`] under a scheduler that claims to be free of starvation. Otherwise no
    /// limit, because such a scheduler may starve a task.
    #[default]
    Auto,
    /// No limit.
    Off,
    /// At most this long (ns), under every scheduler.
    After(Nanos),
}

impl Watchdog {
    fn ns(self, scheduler: &Scheduler) -> Option<Nanos> {
        match self {
            Self::Auto => scheduler.claims.starvation_free.then_some(WATCHDOG_NS_DEFAULT),
            Self::Off => None,
            Self::After(ns) => Some(ns),
        }
    }
}

/// The modelled machine. The request gives the number of its CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimLane {
    /// The machine of requests without one; `None`: a flat machine.
    pub machine: Option<Arc<MachineSpec>>,
    /// Ticks per second, in place of the machine's: 100, 250, 300 or 1000.
    pub hz: Option<u32>,
    /// Costs, in place of the machine's. Without either, the scheduler's default holds
    /// ([`Scheduler::costs`]).
    pub costs: Option<Costs>,
    /// Whether textbook schedulers are charged a flat machine's default costs, like all others: in
    /// experiments that compare them with kernels.
    pub charges_textbooks: bool,
    /// The preemption model, in place of the machine's. Without either, it is that of the
    /// scheduler's kernel ([`Scheduler::preempt`]).
    pub preempt: Option<Preempt>,
    /// Longest wait of a runnable task.
    pub watchdog: Watchdog,
    /// Schedulers in addition to those of the registry, such as compiled ones. They replace those
    /// of the registry with the same name.
    pub schedulers: Vec<Arc<Scheduler>>,
    /// Version that results contain.
    pub schedlab_version: String,
}

impl Default for SimLane {
    fn default() -> Self {
        Self {
            machine: None,
            hz: None,
            costs: None,
            charges_textbooks: false,
            preempt: None,
            watchdog: Watchdog::Auto,
            schedulers: Vec::new(),
            schedlab_version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

impl SimLane {
    /// Whether `scheduler` runs without costs by default, as a textbook scheduler.
    pub fn is_free(&self, scheduler: &Scheduler) -> bool {
        self.machine.is_none()
            && self.costs.is_none()
            && !self.charges_textbooks
            && scheduler.costs == Costs::ZERO
    }

    /// The machine of a run: the request's, or else the lane's, or else a flat one. It has as many
    /// CPUs as the request has.
    ///
    /// # Errors
    /// If the machine has fewer CPUs.
    pub fn machine_of(
        &self,
        request: &RunRequest,
        scheduler: &Scheduler,
    ) -> Result<Machine, LaneError> {
        let nr_cpus = request.cpus.weight();
        let flat = MachineSpec::flat(nr_cpus);
        let named = request.machine.as_deref().or(self.machine.as_deref());
        let spec = named.unwrap_or(&flat);
        let mut machine = spec.first_cpus(nr_cpus).map_err(LaneError::Input)?;
        machine.hz = self.hz.unwrap_or(machine.hz);
        let own = self.preempt.or(spec.preempt);
        machine.preempt = own.unwrap_or(scheduler.preempt);
        let own = (named.is_none() && !self.charges_textbooks).then_some(scheduler.costs);
        let kernel = kernel_of(request, scheduler);
        if let Some(kernel) = kernel {
            spec.set_threads(&mut machine, kernel);
        }
        let under = kernel.and_then(|kernel| spec.costs_under(kernel));
        let costs = self.costs.or(own).or(under);
        if let Some(costs) = costs {
            set_costs(&mut machine, costs);
        }
        Ok(machine)
    }
}

/// The kernel that `scheduler` models, or on which a scheduler for sched_ext is to run.
fn kernel_of(request: &RunRequest, scheduler: &Scheduler) -> Option<KernelVersion> {
    let Some(core) = scheduler.tunables.iter().find(|tunable| tunable.name == SCX_CORE) else {
        return scheduler.name.parse().ok();
    };
    let set = request.tunables.iter().find(|(name, _)| name == SCX_CORE);
    match (set, &core.kind) {
        (Some((_, version)), _) => version.parse().ok(),
        (None, TunableKind::Choice(words)) => words.iter().nth(core.default as usize)?.parse().ok(),
        (None, _) => None,
    }
}

impl SimLane {
    /// Everything in the lane that influences runs of `scheduler`, except their requests.
    pub fn identity(&self, scheduler: &str) -> impl Hash + use<'_> {
        let own = self.schedulers.iter().find(|found| found.name == scheduler);
        let digest = own.and_then(|found| found.digest.as_ref()).map(SourceDigest::text);
        let user = own.and_then(|found| found.user_half());
        let digest = user
            .map_or_else(|| digest.map(str::to_owned), |user| Some(format!("{digest:?} {user:?}")));
        (self.hz, self.costs, self.charges_textbooks, self.preempt, self.watchdog, digest)
    }
}

impl Lane for SimLane {
    fn kind(&self) -> LaneKind {
        LaneKind::Sim
    }

    fn is_parallel(&self) -> bool {
        true
    }

    fn run(&self, request: &RunRequest, sink: &mut dyn TraceSink) -> Result<RunResult, LaneError> {
        request.refuse_program(self.kind())?;
        self.run_observed(request, sink, None)
    }
}

impl SimLane {
    /// Finds the scheduler with this name.
    fn find(&self, name: &str) -> Result<&Arc<Scheduler>, LaneError> {
        let own = self.schedulers.iter().find(|scheduler| scheduler.name == name);
        own.or_else(|| registry::find(name)).ok_or_else(|| {
            let names: Vec<&str> = registry::names().collect();
            LaneError::Input(format!(
                "no scheduler is called {name:?}: allowed: {}",
                names.join(", ")
            ))
        })
    }

    /// Everything about the run of `request` before its first event.
    fn setup(&self, request: &RunRequest) -> Result<Setup<'_>, LaneError> {
        let scheduler = self.find(&request.scheduler)?;
        let options = options_of(scheduler, &request.tunables)?;
        let machine = Machine {
            boot: request.boot.0,
            switch_jitter_ns: request.switch_jitter_ns,
            ..self.machine_of(request, scheduler)?
        };
        let checked = request.workload.check(request.cpus.weight());
        checked.map_err(|error| LaneError::Input(error.to_string()))?;
        Ok(Setup { scheduler, options, machine, watchdog_ns: self.watchdog.ns(scheduler) })
    }

    /// Checks the request without running it.
    pub fn check(&self, request: &RunRequest) -> Result<(), LaneError> {
        let setup = self.setup(request)?;
        let config = setup.config(request);
        let grouped = schedlab_engine::grouped(&request.workload, &config).map_err(lane_error)?;
        let started = Simulation::new(&grouped, &config, NullSink, None);
        started.map(|_| ()).map_err(lane_error)
    }

    /// Everything that a simulation of `request` borrows.
    pub fn inputs(&self, request: &RunRequest) -> Result<Inputs, LaneError> {
        let mut setup = self.setup(request)?;
        // Who looks at single decisions knows the tasks of the workload only.
        setup.machine.threads.clear();
        let grouped = schedlab_engine::grouped(&request.workload, &setup.config(request));
        Ok(Inputs {
            workload: grouped.map_err(lane_error)?.into_owned(),
            scheduler: Arc::clone(setup.scheduler),
            seed: request.seed,
            until_ns: request.until_ns,
            watchdog_ns: setup.watchdog_ns,
            options: setup.options,
            machine: setup.machine,
        })
    }

    /// Runs the request. The observer, if there is one, sees every pick and does not change the
    /// run.
    pub fn run_observed(
        &self,
        request: &RunRequest,
        sink: &mut dyn TraceSink,
        observer: Option<&mut dyn Observer>,
    ) -> Result<RunResult, LaneError> {
        // An observer knows tasks by the engine's ids, so its sink needs them too.
        let hides = observer.is_none();
        self.run_by(request, sink, hides, |workload, config, sinks| {
            simulate(workload, config, sinks, observer)
        })
    }

    /// Runs the request, and calls `watch` every now and then.
    pub fn run_watched(
        &self,
        request: &RunRequest,
        sink: &mut dyn TraceSink,
        watch: &mut Watch<'_>,
    ) -> Result<RunResult, LaneError> {
        self.run_by(request, sink, true, |workload, config, sinks| {
            let grouped = schedlab_engine::grouped(workload, config)?;
            let mut simulation = Simulation::new(&grouped, config, sinks, None)?;
            while simulation.goes_on() {
                if watch(simulation.now()).is_break() {
                    simulation.cancel();
                }
                for _ in 0..INSTANTS_WATCHED {
                    if !simulation.advance() {
                        break;
                    }
                }
            }
            simulation.finish()
        })
    }

    /// Runs the request by a function that gets the workload and the sinks. `hides`: the sinks do
    /// not see threads of the machine's kernel.
    fn run_by(
        &self,
        request: &RunRequest,
        sink: &mut dyn TraceSink,
        hides: bool,
        run: impl FnOnce(&Workload, &SimConfig<'_>, &mut Sinks<'_>) -> Result<SimOutcome, SimError>,
    ) -> Result<RunResult, LaneError> {
        let setup = self.setup(request)?;
        let (name, nr_cpus) = (setup.scheduler.name.as_ref(), request.cpus.weight());
        let config = setup.config(request);
        // With autogroup, fair shares are those of its groups.
        let grouped = schedlab_engine::grouped(&request.workload, &config)
            .map_err(|error| LaneError::Input(error.to_string()))?;
        let mut recorder = Recorder::of_run(&grouped, &CpuMask::first(nr_cpus), request.keep);
        let mut check = TraceCheck::new();
        let nr_hidden = if hides { setup.machine.threads.len() as u32 } else { 0 };
        let sinks: &mut Sinks<'_> =
            &mut Visible::new((&mut recorder, (&mut check, sink)), nr_hidden);
        let outcome = run(&request.workload, &config, sinks).map_err(lane_error)?;
        check.finish().map_err(|violation| {
            LaneError::Check(format!(
                "scheduler {name:?}: {violation}; this is a defect of the model: please report it \
                 with the command line"
            ))
        })?;
        let mut recorded = recorder.finish(&request.workload);
        recorded.measures.model = Some(counters(&outcome));
        if knows_work(&request.workload, &setup.machine) {
            tell_user_time(&mut recorded.measures.totals, &outcome, nr_cpus);
        }
        Ok(RunResult {
            schedlab_version: self.schedlab_version.clone(),
            scheduler: name.into(),
            machine: setup.machine_info(request),
            source: "simulated".into(),
            groups: groups(&request.workload, &outcome),
            warnings: warnings(&request.workload, &outcome),
            ..RunResult::of(self.kind(), request, recorded)
        })
    }
}

/// The sinks of a run: the measures, the checker of the trace, and that of the caller.
type Sinks<'s> = Visible<(&'s mut Recorder, (&'s mut TraceCheck, &'s mut dyn TraceSink))>;

/// A run before its first event.
struct Setup<'l> {
    scheduler: &'l Arc<Scheduler>,
    options: Options,
    machine: Machine,
    watchdog_ns: Option<Nanos>,
}

impl Setup<'_> {
    fn config(&self, request: &RunRequest) -> SimConfig<'_> {
        SimConfig {
            machine: &self.machine,
            scheduler: self.scheduler,
            options: &self.options,
            seed: request.seed,
            until_ns: request.until_ns,
            watchdog_ns: self.watchdog_ns,
        }
    }

    fn machine_info(&self, request: &RunRequest) -> MachineInfo {
        let mut settings = settings(&self.machine, self.scheduler, &self.options);
        settings.extend(memory_settings(&self.machine.memory, &request.workload));
        MachineInfo {
            cpu_model: model_name(&self.machine),
            nr_cpus: request.cpus.weight(),
            hz: Some(self.machine.hz),
            kernel: self.scheduler.name.as_ref().into(),
            settings,
        }
    }
}

fn lane_error(error: SimError) -> LaneError {
    match error {
        SimError::Scheduler { .. } | SimError::Failed { .. } => LaneError::Check(error.to_string()),
        _ => LaneError::Input(error.to_string()),
    }
}

/// What bandwidth control did to the groups with a limit.
fn groups(workload: &Workload, outcome: &SimOutcome) -> Vec<GroupResult> {
    let limited = outcome.bandwidth.iter().map(|(group, stats)| GroupResult {
        path: workload.cgroups[group.index()].path.clone(),
        nr_periods: stats.nr_periods,
        nr_throttled: stats.nr_throttled,
        throttled_ns: stats.throttled_ns,
        nr_bursts: stats.nr_bursts,
        burst_ns: stats.burst_ns,
    });
    limited.collect()
}

/// Counters that the engine has and the trace does not contain.
fn counters(outcome: &SimOutcome) -> ModelCounters {
    ModelCounters {
        nr_interrupts: outcome.nr_interrupts,
        interrupt_ns: outcome.interrupt_ns,
        cache_refill_ns: outcome.cache_refill_ns,
        nr_entries_scanned: outcome.nr_entries_scanned,
        nr_lock_waits: outcome.nr_lock_waits,
        lock_wait_ns: outcome.lock_wait_ns,
        lock_transfer_ns: outcome.lock_transfer_ns,
    }
}

/// Whether tasks get exactly the CPU time that their programs ask for. This is false if hardware
/// threads slow each other, and for tasks that are busy until a wall time.
fn knows_work(workload: &Workload, machine: &Machine) -> bool {
    let is_wall = |op: &Op| matches!(op, Op::RunWall(_));
    machine.smt_speed.iter().all(|speed| *speed == SMT_SPEED_FULL)
        && !workload.tasks.iter().any(|task| task.program.ops.iter().any(is_wall))
}

/// Splits the CPU time of all tasks into user and system time, if all have ended. A task that has
/// not ended did not use all the time that it asked for.
fn tell_user_time(totals: &mut RunTotals, outcome: &SimOutcome, nr_cpus: u32) {
    if outcome.nr_exited == outcome.nr_tasks && outcome.nr_tasks > 0 {
        let user = outcome.work_ns.saturating_add(outcome.cache_refill_ns).min(totals.cpu_time_ns);
        totals.user_time_ns = Some(user);
        totals.system_time_ns = Some(totals.cpu_time_ns - user);
        settle(totals, nr_cpus);
    }
}

/// Most tasks that a warning names.
const NAMED_MAX: usize = 8;

/// Warnings about what the result leaves out, or what its reader must know.
fn warnings(workload: &Workload, outcome: &SimOutcome) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let has_clamp = |attr: &SchedAttr| attr.util_min.is_some() || attr.util_max.is_some();
    let clamps = |task: &&TaskSpec| {
        let sets = |op: &Op| matches!(op, Op::SetAttr(attr) if has_clamp(attr));
        has_clamp(&task.attr) || task.program.ops.iter().any(sets)
    };
    if let Some(task) = workload.tasks.iter().find(clamps) {
        warnings.push(Warning::util_clamp_ignored(&task.name));
    }
    let notes = outcome.notes.iter();
    warnings.extend(notes.map(|(code, text)| Warning { code: (*code).into(), text: text.clone() }));
    if !outcome.blocked.is_empty() {
        let named = some_of(&outcome.blocked, ToString::to_string);
        warnings.push(Warning::deadlock_simulated(&named));
    }
    if !outcome.cut_off.is_empty() {
        let named = |one: &BlockedTask| format!("{} {}", one.task, one.object);
        warnings.push(Warning::channel_closed(&some_of(&outcome.cut_off, named)));
    }
    warnings
}

/// The names of the first tasks, and how many more there are.
fn some_of(tasks: &[BlockedTask], name: impl Fn(&BlockedTask) -> String) -> String {
    let named: Vec<String> = tasks.iter().take(NAMED_MAX).map(name).collect();
    let more = match tasks.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        count => format!("; and {count} more"),
    };
    named.join("; ") + &more
}

impl Schedulers for SimLane {
    fn check_name(&self, name: &str) -> Result<(), StudyError> {
        self.find(name).map(|_| ()).map_err(|_| unknown("scheduler", name, registry::names()))
    }

    fn check_tunables(&self, name: &str, tunables: &[(String, String)]) -> Result<(), LaneError> {
        options_of(self.find(name)?, tunables).map(|_| ())
    }
}

/// `modelled`, with the machine's name unless it is flat.
fn model_name(machine: &Machine) -> String {
    match machine.name.as_str() {
        "flat" => "modelled".into(),
        name => format!("modelled: {name}"),
    }
}

/// The scheduler's defaults, changed by the request's tunables.
pub fn options_of(
    scheduler: &Scheduler,
    tunables: &[(String, String)],
) -> Result<Options, LaneError> {
    let mut options = Options::defaults(&scheduler.tunables);
    for (name, value) in tunables {
        let parse = |text: &str| units::parse_duration(text).map_err(|error| error.to_string());
        options.set_text(&scheduler.tunables, name, value, parse).map_err(|error| {
            LaneError::Input(format!("scheduler {:?}: {error}", scheduler.name))
        })?;
    }
    Ok(options)
}

/// Settings of memory speed, if a program accesses memory.
fn memory_settings(memory: &Memory, workload: &Workload) -> Vec<Setting> {
    let touches = |op: &Op| matches!(op, Op::Mem { .. } | Op::MemRun { .. });
    if !workload.tasks.iter().any(|task| task.program.ops.iter().any(touches)) {
        return Vec::new();
    }
    let values = [
        ("cache_bytes", memory.cache_bytes),
        ("cache_kib_ns", memory.cache_kib_ns),
        ("dram_kib_ns", memory.dram_kib_ns),
        ("cache_access_ns", memory.cache_access_ns),
        ("dram_access_ns", memory.dram_access_ns),
    ];
    let setting = |(name, value): (&str, u64)| Setting {
        name: format!("memory.{name}"),
        value: value.to_string(),
    };
    values.map(setting).into()
}

/// Settings of machine and scheduler that influence the result.
fn settings(machine: &Machine, scheduler: &Scheduler, options: &Options) -> Vec<Setting> {
    let costs = Costs::NAMES.iter().map(|name| Setting {
        name: format!("costs.{name}"),
        value: machine.costs.field(name).unwrap_or_default().to_string(),
    });
    let tunables = scheduler.tunables.iter().map(|tunable| {
        let value = options.get(&tunable.name);
        Setting {
            name: format!("{}.{}", scheduler.name, tunable.name),
            value: match &tunable.kind {
                TunableKind::Time { .. } => units::format_duration(value),
                TunableKind::Count { .. } => value.to_string(),
                TunableKind::Choice(words) => words.get(value as usize).unwrap_or_default().into(),
            },
        }
    });
    let user = scheduler.user_half().into_iter().flat_map(|half| {
        let step = units::format_duration(half.step_ns);
        [("command", half.command.join(" ")), ("step", step)]
    });
    let user = user.map(|(name, value)| Setting { name: format!("user_half.{name}"), value });
    tunables.chain(user).chain(machine_settings(machine)).chain(costs).collect()
}

/// Settings of the machine that influence the result, except costs.
fn machine_settings(machine: &Machine) -> Vec<Setting> {
    let topology = &machine.topology;
    let count = |level: &[u32]| level.iter().collect::<BTreeSet<_>>().len().to_string();
    let mut settings = vec![
        ("machine.name", machine.name.clone()),
        ("machine.preempt", machine.preempt.name().into()),
        ("machine.nr_cores", count(&topology.core)),
        ("machine.nr_llcs", count(&topology.llc)),
        ("machine.nr_nodes", count(&topology.node)),
        ("machine.core_bytes", machine.caches.core_bytes.to_string()),
        ("machine.llc_bytes", machine.caches.llc_bytes.to_string()),
    ];
    if !machine.smt_speed.is_empty() {
        let speeds: Vec<String> = machine.smt_speed.iter().map(u32::to_string).collect();
        settings.push(("machine.smt_speed", speeds.join(",")));
    }
    let mut settings: Vec<Setting> =
        settings.into_iter().map(|(name, value)| Setting { name: name.into(), value }).collect();
    for source in &machine.interrupts {
        settings.push(Setting {
            name: format!("machine.interrupt.{}", source.name),
            value: format!(
                "every {} ns, {} ns + {} ns, {:?}",
                source.interval_ns, source.cost_ns, source.softirq_ns, source.arrivals
            ),
        });
    }
    for thread in &machine.threads {
        settings.push(Setting {
            name: format!("machine.thread.{}", thread.name),
            value: format!("{:?}, {} ns", thread.wakes, thread.run_ns),
        });
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::program::ProgramBuilder;
    use schedlab_model::{Amount, ObjectKind, ObjectSpec, Policy};
    use schedlab_run::Code;

    #[test]
    fn the_textbook_rules_of_policies_are_schedulers() {
        for name in ["fcfs", "rr"] {
            assert!(schedlab_run::policy::textbook_policy(name).is_some_and(Policy::is_rt));
            assert!(registry::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_changes_nothing_and_who_waits_for_ever_is_said() {
        let mut workload = Workload::new("w", Vec::new());
        let pipe = workload.add_object(ObjectSpec::new("p", ObjectKind::PIPE));
        let bytes = Amount::Constant(1 << 20);
        let program = ProgramBuilder::new().op(Op::Mem { bytes }).receive(pipe, 5).build();
        let mut task = TaskSpec::new("reader", program);
        task.attr.util_min = Some(100);
        workload.tasks.push(task);
        workload.duration_ns = Some(5_000_000);
        let request = RunRequest::new(workload, "linux-6.12", CpuMask::first(1));
        let result = SimLane::default().run(&request, &mut schedlab_model::trace::NullSink);
        let result = result.unwrap();
        let codes: Vec<&Code> = result.warnings.iter().map(|one| &one.code).collect();
        assert_eq!(codes, [&Code::UtilClampIgnored, &Code::Deadlock]);
        assert!(result.warnings[1].text.contains("task \"reader\" reads from pipe \"p\""));
        assert!(result.machine.setting("memory.dram_kib_ns").is_some());
    }
}
