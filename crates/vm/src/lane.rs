// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vm lane: a workload on a real kernel in a guest.
//!
//! The scheduler of a request names kernel and scheduler: `6.18`, `6.18:wrr`, `./vmlinuz:fifo`. A
//! kernel alone uses its own classes; `6.18:FIFO` sets one of its policies for the tasks. With a
//! counted clock a run is exact, and several may run at the same time; with several CPUs it is run
//! twice and compared. These CPUs run at the same time in a QEMU of schedlab's own
//! ([`crate::qemu::build`]); in others they take turns. The guest's trace is read like any trace:
//! measures, timeline and analysis are made here, with the same code as for every lane.

use crate::command::ShippedScheduler;
use crate::guest::{self, Initramfs};
use crate::identity::{self, Identity};
use crate::kernel::{Kernel, Store};
use crate::qemu::command::{MEMORY_MIB, MEMORY_SET_UP_MIB};
use crate::qemu::{Accel, Files, Guest, Qemu, Setup, build, live, snapshot};
use crate::setup::{self, FindSetup, no_setup};
use crate::shared::SharedFile;
use crate::{Cache, VmError, settings};
use schedlab_guest::protocol::{ExtRequest, GuestReply, GuestRequest, MAGIC, Message, Request};
use schedlab_host::ext::{self, Build};
use schedlab_model::{CpuMask, Nanos, Op, Policy, TraceSink, Workload};
use schedlab_run::policy::{RT_PRIORITY_DEFAULT, apply_policy};
use schedlab_run::sha::sha256;
use schedlab_run::{Lane, LaneError, LaneKind, Recorder, RunRequest, RunResult, Setting, Warning};
use schedlab_scx_source::{ReadySetup, SourceOptions};
use schedlab_trace::{Reader, binary};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Default stretch of time (ns) that each of several CPUs executes before the clock goes on.
pub const QUANTUM_NS: u64 = 2_000;
/// Most CPUs of a guest.
pub const CPUS_MAX: u32 = 64;
/// The scheduler with this name is the kernel's own.
pub const KERNEL: &str = "kernel";

/// What drives a guest's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// Counted instructions: the run is always the same, on any host.
    #[default]
    Counted,
    /// The host's time.
    Live,
}

/// Kernel and scheduler of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target<'a> {
    /// Series or path of a file.
    pub kernel: &'a str,
    /// Name of a sched_ext scheduler; `None`: the kernel's own classes.
    pub scheduler: Option<&'a str>,
    /// Policy for tasks without their own.
    pub policy: Option<Policy>,
}

impl<'a> Target<'a> {
    /// Splits `KERNEL[:SCHEDULER]` or `KERNEL:POLICY`. Policies are written in capitals, as
    /// everywhere: `fifo` is a scheduler for sched_ext, `FIFO` the kernel's own policy.
    pub fn parse(text: &'a str) -> Self {
        const POLICIES: [Policy; 5] =
            [Policy::Normal, Policy::Fifo, Policy::Rr, Policy::Batch, Policy::Idle];
        let (kernel, scheduler) = match text.rsplit_once(':') {
            Some((kernel, scheduler)) => (kernel, Some(scheduler)),
            None => (text, None),
        };
        let named = |policy: &Policy| scheduler == Some(policy.name());
        let policy = POLICIES.into_iter().find(named);
        let is_loaded = |name: &&str| *name != KERNEL && policy.is_none();
        Self { kernel, scheduler: scheduler.filter(is_loaded), policy }
    }
}

/// How guests are run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The clock.
    pub clock: Clock,
    /// Whether runs start from a snapshot of the booted guest, which the first run makes.
    pub uses_snapshots: bool,
    /// Longest real time of a boot, and of a run.
    pub limit: Duration,
    /// Files that are written in the guest before the run: path and text.
    pub writes: Vec<(String, String)>,
    /// The workload is repeated for this much of the guest's time, while the scheduler stays
    /// loaded; `None`: it runs once.
    pub soak: Option<Duration>,
    /// How the source of a scheduler is compiled.
    pub source: SourceOptions,
    /// Stretch of counted time (ns) that each of several CPUs executes before the clock goes on;
    /// `None`: [`QUANTUM_NS`] with a QEMU that can do it, otherwise the CPUs take turns.
    pub quantum_ns: Option<u64>,
    /// Whether runs with counted time on several CPUs are repeated and compared.
    pub is_compared: bool,
    /// Commands that load a scheduler. A target names one as it names a scheduler.
    pub commands: Vec<ShippedScheduler>,
    /// The file with the setup of a scheduler's file; `None`: it is searched.
    pub setup: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::Counted,
            uses_snapshots: true,
            limit: Duration::from_secs(300),
            writes: Vec::new(),
            soak: None,
            source: SourceOptions::default(),
            quantum_ns: None,
            is_compared: true,
            commands: Vec::new(),
            setup: None,
        }
    }
}

/// Most real time, in seconds, per second of the guest's time in a long run.
const SLOWDOWN_MAX: u32 = 6;

/// Gets messages about long operations: a download, a boot.
pub type Say = dyn Fn(&str) + Send + Sync;

/// The vm lane: real kernels in guests.
pub struct VmLane {
    /// How guests are run.
    pub options: Options,
    qemu: Qemu,
    /// The QEMU in which several CPUs with counted time run at the same time.
    parallel: Option<Qemu>,
    cache: Cache,
    initramfs: Initramfs,
    say: Box<Say>,
    find_setup: FindSetup,
    /// Kernels by the requested name; or why one is missing, so that the archive is not asked again
    /// in every run.
    kernels: Mutex<BTreeMap<String, Result<Kernel, VmError>>>,
}

impl fmt::Debug for VmLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VmLane").field("options", &self.options).field("qemu", &self.qemu).finish()
    }
}

/// The answer of one boot.
pub(crate) struct Answer {
    pub(crate) reply: GuestReply,
    trace: Vec<u8>,
}

/// The part of a run that stays the same when it is repeated.
struct Job<'a> {
    kernel: &'a Kernel,
    setup: Setup,
    request: Message,
    identity: Identity,
    /// The command that loads the scheduler.
    command: Option<String>,
    /// Where what is set in place of the scheduler's user program comes from.
    setup_origin: Option<String>,
    /// What the scheduler misses without its user program.
    setup_warning: Option<Warning>,
}

impl VmLane {
    /// A lane with the user's cache.
    pub fn new(options: Options, say: Box<Say>) -> Result<Self, VmError> {
        let cache = Cache::of_user()?;
        let qemu = Qemu::find_known(&cache)?;
        let parallel = match build::is_parallel(&qemu.version) {
            true => Some(qemu.clone()),
            // A QEMU that the user names is used for everything.
            false if super::qemu::named().is_some() => None,
            false => build::find(&cache),
        };
        Ok(Self {
            options,
            qemu,
            parallel,
            initramfs: guest::initramfs(&cache)?,
            cache,
            say,
            find_setup: no_setup,
            kernels: Mutex::default(),
        })
    }

    /// This lane, which sets up schedulers of files with what `find` finds.
    #[must_use]
    pub fn with_setups(self, find: FindSetup) -> Self {
        Self { find_setup: find, ..self }
    }

    /// QEMU and guest, as far as they influence results. Part of the keys of stored results.
    pub fn describe(&self) -> String {
        let Options { clock, writes, soak, quantum_ns, .. } = &self.options;
        let soak = soak.map(|soak| format!(" for {soak:?}")).unwrap_or_default();
        let Self { qemu, initramfs, parallel, .. } = self;
        let parallel = parallel.as_ref().map(|qemu| {
            format!(", several CPUs {} {}", qemu.version, quantum_ns.unwrap_or(QUANTUM_NS))
        });
        let parallel = parallel.unwrap_or_default();
        let qemu = &qemu.version;
        format!("{qemu}{parallel}, guest {}, {clock:?} {writes:?}{soak}", initramfs.sha256)
    }

    /// Where kernels and snapshots are kept.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Tells the user about a long operation.
    pub(crate) fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// The emulator of a machine.
    pub(crate) fn qemu(&self, setup: &Setup) -> &Qemu {
        self.parallel.as_ref().filter(|_| setup.quantum_ns.is_some()).unwrap_or(&self.qemu)
    }

    /// The guest's initial file system.
    pub(crate) fn initramfs(&self) -> &Initramfs {
        &self.initramfs
    }

    /// The kernel of this name, fetched if need be, and still what was fetched.
    pub fn kernel(&self, name: &str) -> Result<Kernel, VmError> {
        // One at a time: two runs must not fetch the same one.
        let mut kernels = self.kernels.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = kernels.get(name) {
            return known.clone();
        }
        let store = Store::new(self.cache.clone());
        let found = store.resolve(name, &*self.say);
        let found = found.and_then(|kernel| store.verify(&kernel).map(|()| kernel));
        kernels.insert(name.to_owned(), found.clone());
        found
    }

    /// The machine for a kernel.
    fn setup(&self, nr_cpus: u32, kernel: &Kernel) -> Result<Setup, VmError> {
        let of = |accel| Setup::new(accel, nr_cpus, MEMORY_MIB);
        match self.options.clock {
            Clock::Counted if nr_cpus > 1 && self.parallel.is_some() => {
                let quantum_ns = Some(self.options.quantum_ns.unwrap_or(QUANTUM_NS));
                Ok(Setup { quantum_ns, ..of(Accel::Counted) })
            }
            Clock::Counted if nr_cpus > 1 && self.options.quantum_ns.is_some() => {
                Err(VmError::Unavailable(format!(
                    "a quantum needs a QEMU in which CPUs run at the same time, here is {}: \
                     `schedlab qemu build` builds one",
                    self.qemu.version
                )))
            }
            Clock::Counted => self.qemu.check_counted(nr_cpus).map(|()| of(Accel::Counted)),
            Clock::Live => {
                let boot = Store::new(self.cache.clone()).boot_file(kernel)?;
                let files = self.files(kernel, &boot);
                live::accel(&self.cache, &self.qemu, files, &kernel.sha256, &*self.say).map(of)
            }
        }
    }

    fn files<'a>(&'a self, kernel: &Kernel, boot: &'a Path) -> Files<'a> {
        let is_packaged = kernel.package.is_some();
        Files { kernel: boot, initramfs: &self.initramfs.path, is_packaged }
    }

    /// Boots or resumes a guest, and makes the request once.
    pub(crate) fn ask(
        &self,
        kernel: &Kernel,
        setup: &Setup,
        request: &Message,
    ) -> Result<Answer, VmError> {
        let boot = Store::new(self.cache.clone()).boot_file(kernel)?;
        let files = self.files(kernel, &boot);
        let (limit, qemu) = (self.options.limit, self.qemu(setup));
        let mut guest = if self.uses_snapshots() {
            let machine = identity::of_machine(qemu, setup, kernel, &self.initramfs);
            // A guest looks at the protocol's number once, while it boots.
            let key = format!("{} {MAGIC:x}", machine.sha256());
            let path = snapshot::ensure(&self.cache, qemu, setup, files, &key, limit)?;
            snapshot::resume(qemu, setup, files, &path, request)?
        } else if self.options.clock == Clock::Counted {
            snapshot::boot_and_run(qemu, setup, files, request, limit)?
        } else {
            let wrong = |error: std::io::Error| VmError::Input(error.to_string());
            let shared = SharedFile::new().map_err(wrong)?;
            shared.ask(request).map_err(wrong)?;
            Guest::start(qemu, setup, files, (&[], &[]), shared)?
        };
        guest.wait(limit + self.options.soak.unwrap_or_default() * SLOWDOWN_MAX)?;
        let broken = |what: String| VmError::System(format!("the guest's answer: {what}"));
        let (reply, trace) = guest.shared.answer().map_err(|error| broken(error.to_string()))?;
        let reply: GuestReply =
            serde_json::from_slice(&reply).map_err(|error| broken(error.to_string()))?;
        Ok(Answer { reply, trace })
    }

    /// Whether snapshots are used. A live guest has none, because its state would depend on the
    /// host's time.
    fn uses_snapshots(&self) -> bool {
        self.options.uses_snapshots && self.options.clock == Clock::Counted
    }

    /// The answer, and how often it was checked: `2/2` runs gave it.
    fn ask_checked(&self, job: &Job<'_>) -> Result<(Answer, Option<String>), VmError> {
        let ask = || self.ask(job.kernel, &job.setup, &job.request);
        let first = ask()?;
        let may_differ = job.setup.accel == Accel::Counted && job.setup.nr_cpus > 1;
        if !may_differ || !self.options.is_compared {
            return Ok((first, None));
        }
        let second = ask()?;
        if first.trace == second.trace {
            return Ok((first, Some("2/2".into())));
        }
        let third = ask()?;
        for earlier in [first, second] {
            if earlier.trace == third.trace {
                return Ok((third, Some("2/3".into())));
            }
        }
        Err(VmError::Check(format!(
            "three runs with counted time on {} CPUs gave three different traces: nothing can be \
             said of this run. One CPU repeats exactly",
            job.setup.nr_cpus
        )))
    }

    fn job<'a>(&self, request: &RunRequest, kernel: &'a Kernel) -> Result<Job<'a>, VmError> {
        let target = Target::parse(&request.scheduler);
        let (mut ext, mut command) = (None, None);
        let mut writes = self.options.writes.clone();
        let named = |shipped: &&ShippedScheduler| Some(shipped.name.as_str()) == target.scheduler;
        if let Some(shipped) = self.options.commands.iter().find(named) {
            kernel.check_ext()?;
            if let Some(file) = &self.options.setup {
                return Err(VmError::Input(format!(
                    "setup {}: {} is a program that sets its scheduler up itself",
                    file.display(),
                    shipped.name
                )));
            }
            if let Some((name, _)) = request.tunables.first() {
                return Err(VmError::Input(format!(
                    "option {name}: {} is a program that sets its scheduler's options itself; \
                     give them as its arguments",
                    shipped.name
                )));
            }
            command = Some(shipped);
        } else if let Some(name) = target.scheduler {
            kernel.check_ext()?;
            let types = Store::new(self.cache.clone()).boot_file(kernel)?;
            let build = Build { source: self.options.source.clone(), types };
            ext = Some(scheduler(name, &build, &request.tunables)?);
        } else {
            for (name, value) in &request.tunables {
                writes.push(settings::write(name, value)?);
            }
        }
        let nr_cpus = nr_cpus(request)?;
        let mut setup = Setup { boot: request.boot.0, ..self.setup(nr_cpus, kernel)? };
        let (ready, setup_warning) = match &ext {
            Some(ext) => self.scheduler_setup(ext, nr_cpus, target.kernel, false)?,
            None => (None, None),
        };
        if ready.is_some() || command.is_some() {
            setup.memory_mib = MEMORY_SET_UP_MIB;
        }
        let setup_origin = ready.as_ref().map(|ready| ready.origin.clone());
        let run = GuestRequest {
            workload: request.workload.clone(),
            ext,
            cpus: request.cpus,
            seed: request.seed,
            until_ns: request.until_ns,
            instruction_ns: setup.accel.instruction_ns(),
            switch_jitter_ns: request.switch_jitter_ns,
            writes,
            soak_ns: self.options.soak.map(|soak| soak.as_nanos() as u64),
        };
        let request = match (command, ready) {
            (Some(command), _) => Request::RunUnder(run, command.pack()?),
            (None, Some(ready)) => Request::RunSetUp(run, ready),
            (None, None) => Request::Run(run),
        };
        let message = request.encode();
        let (rest, object) = without_object(request);
        let identity = identity::of_machine(self.qemu(&setup), &setup, kernel, &self.initramfs)
            .with_run(&rest.encode().bytes, &object);
        let command = command.map(|command| command.argv.join(" "));
        Ok(Job { kernel, setup, request: message, identity, command, setup_origin, setup_warning })
    }

    /// What is set in place of the user program of a scheduler's file.
    pub(crate) fn scheduler_setup(
        &self,
        request: &ExtRequest,
        nr_cpus: u32,
        kernel: &str,
        is_for_verifier: bool,
    ) -> Result<(Option<ReadySetup>, Option<Warning>), VmError> {
        let is_file = matches!(ext::Source::parse(&request.name), ext::Source::File(_));
        let hz = match is_file {
            true => self.hz(kernel).map_err(|error| VmError::System(error.text().into()))?,
            false => 0,
        };
        let file = self.options.setup.as_deref();
        setup::of_request(request, self.find_setup, file, (nr_cpus, hz), is_for_verifier)
    }
}

/// The number of a guest's CPUs.
fn nr_cpus(request: &RunRequest) -> Result<u32, VmError> {
    let nr_cpus = request.cpus.weight();
    if request.cpus != CpuMask::first(nr_cpus) || !(1..=CPUS_MAX).contains(&nr_cpus) {
        return Err(VmError::Input(format!(
            "CPUs {} of a guest: allowed are the first 1 to {CPUS_MAX}",
            request.cpus
        )));
    }
    Ok(nr_cpus)
}

/// A request without its object, or without the files of its command, and their SHA-256: they are a
/// part of the identity of their own.
fn without_object(mut request: Request) -> (Request, String) {
    let object = match &mut request {
        Request::Run(GuestRequest { ext: Some(ext), .. })
        | Request::RunSetUp(GuestRequest { ext: Some(ext), .. }, _)
        | Request::Verify(ext, _) => sha256(&std::mem::take(&mut ext.object)),
        Request::RunUnder(_, command) => {
            let files = std::mem::take(&mut command.files);
            let sums =
                files.iter().map(|file| format!("{} {}\n", sha256(&file.content), file.path));
            sha256(sums.collect::<String>().as_bytes())
        }
        Request::Run(_) | Request::RunSetUp(..) => "none".into(),
    };
    (request, object)
}

impl Lane for VmLane {
    fn kind(&self) -> LaneKind {
        LaneKind::Vm
    }

    fn is_parallel(&self) -> bool {
        self.options.clock == Clock::Counted
    }

    fn run(&self, request: &RunRequest, sink: &mut dyn TraceSink) -> Result<RunResult, LaneError> {
        request.refuse_program(self.kind())?;
        if self.options.clock != Clock::Counted {
            request.refuse_switch_jitter("a guest with the host's clock")?;
            request.refuse_boot("a guest with the host's clock")?;
        }
        if let Some(spec) = &request.machine {
            return Err(LaneError::Input(format!(
                "machine {:?}: a guest is QEMU's own machine; only the number of CPUs can be \
                 chosen",
                spec.machine.name
            )));
        }
        let target = Target::parse(&request.scheduler);
        let kernel = self.kernel(target.kernel)?;
        let mut request = request.clone();
        if let Some(policy) = target.policy {
            apply_policy(&mut request.workload, policy, RT_PRIORITY_DEFAULT);
        }
        let request = &request;
        let job = self.job(request, &kernel)?;
        let watch = (self.options.clock == Clock::Live).then(live::HostLoad::start);
        let ((answer, checked), nr_races) =
            live::despite_races(&job.setup, &*self.say, || self.ask_checked(&job))?;
        let load = watch.and_then(|watch| watch.finish());
        let mut result = self.result(request, &job, answer, sink)?;
        if let Some(checked) = checked {
            add(&mut result, "vm.checked", checked);
        }
        result.warnings.extend(job.setup_warning.clone());
        result.warnings.extend(job.setup.takes_turns().then(Warning::cpus_take_turns));
        result.warnings.extend(load);
        result.warnings.extend(live::race_warning(nr_races));
        Ok(result)
    }
}

fn add(result: &mut RunResult, name: &str, value: impl Into<String>) {
    result.machine.settings.push(Setting { name: name.into(), value: value.into() });
}

/// Adds the run's identity, and the part of it that must be equal for comparisons.
fn add_identity(result: &mut RunResult, job: &Job<'_>, trace: &[u8]) {
    add(result, "vm.identity", job.identity.sha256());
    // The part that must be equal for a comparison with a golden; kernel and object are tested.
    let conditions = job.identity.sha256_without(&["kernel", "boot", "object"]);
    add(result, "vm.conditions", conditions);
    // The order of turns does not depend on the guest's build, nor on how a scheduler was compiled.
    let conditions = job.identity.sha256_without(&["initramfs", "object"]);
    add(result, "vm.turn_conditions", conditions);
    add(result, "vm.trace", sha256(trace));
    add(result, "vm.clock", job.setup.accel.name());
    for (name, value) in job.identity.parts() {
        add(result, &format!("vm.{name}"), value);
    }
}

impl VmLane {
    /// The result of the guest's lane, with what is computed here from its trace.
    fn result(
        &self,
        request: &RunRequest,
        job: &Job<'_>,
        answer: Answer,
        sink: &mut dyn TraceSink,
    ) -> Result<RunResult, LaneError> {
        let Answer { reply, trace } = answer;
        if let Some(error) = reply.error {
            return Err(with_log(error.into(), &reply.kernel_log));
        }
        let guests = reply.result.ok_or_else(|| {
            LaneError::System("the guest gave neither a result nor an error".into())
        })?;
        let mut recorder = Recorder::of_run(&request.workload, &request.cpus, request.keep);
        let end_ns = request.until_ns.or(request.workload.duration_ns);
        replay(&trace, end_ns.unwrap_or(Nanos::MAX), &mut (&mut recorder, sink))?;
        let recorded = recorder.finish(&request.workload);
        let mut result = RunResult {
            source: guests.source,
            warnings: guests.warnings.into_iter().filter(means_something).collect(),
            machine: guests.machine,
            ..RunResult::of(self.kind(), request, recorded)
        };
        for task in result.measures.tasks.iter_mut().filter(|task| task.pid.is_none()) {
            let same = guests.measures.tasks.iter().find(|found| found.id == task.id);
            task.pid = same.and_then(|found| found.pid);
        }
        result.warnings.extend(io_warning(&request.workload));
        add_identity(&mut result, job, &trace);
        for (when, state) in [("before", reply.ext_before), ("after", reply.ext_after)] {
            if let Some(state) = state {
                let text = format!("{} {}", state.state, state.ops);
                add(&mut result, &format!("vm.sched_ext_{when}"), text.trim_end());
            }
        }
        if let Some(command) = &job.command {
            add(&mut result, "vm.scheduler_command", command);
        }
        if let Some(origin) = &job.setup_origin {
            add(&mut result, "vm.scheduler_setup", origin);
        }
        if self.options.soak.is_some() {
            add(&mut result, "vm.rounds", reply.nr_rounds.to_string());
            add(&mut result, "vm.rounds_ns", reply.rounds_ns.to_string());
        }
        for (name, value) in reply.ext_counters {
            add(&mut result, &format!("vm.counter.{name}"), value.to_string());
        }
        if !reply.kernel_log.is_empty() {
            add(&mut result, "vm.kernel_log", reply.kernel_log.join("\n"));
        }
        Ok(result)
    }
}

/// The object of a scheduler for a guest, which checks the options when it loads it.
pub(crate) fn scheduler(
    name: &str,
    build: &Build,
    options: &[(String, String)],
) -> Result<ExtRequest, VmError> {
    let source = ext::Source::parse(name);
    let object = ext::object(&source, build).map_err(|error| VmError::Input(error.to_string()))?;
    Ok(ExtRequest { name: name.into(), object: object.into(), options: options.to_vec() })
}

/// The guest's error, with the last lines that the kernel logged.
fn with_log(error: LaneError, log: &[String]) -> LaneError {
    const SHOWN: usize = 8;
    let tail = match &log[log.len().saturating_sub(SHOWN)..] {
        [] => return error,
        lines => format!("; the kernel logged:\n    {}", lines.join("\n    ")),
    };
    match error {
        LaneError::Input(text) => LaneError::Input(text + &tail),
        LaneError::Unavailable(text) => LaneError::Unavailable(text + &tail),
        LaneError::Check(text) => LaneError::Check(text + &tail),
        LaneError::System(text) => LaneError::System(text + &tail),
    }
}

/// Passes the guest's trace to a sink, up to `end_ns`. A guest's launcher ends a run a little
/// later, and much later where it must wait for the fair server of a CPU.
pub fn replay(trace: &[u8], end_ns: Nanos, sink: &mut dyn TraceSink) -> Result<(), LaneError> {
    let wrong = |error: schedlab_trace::ReadError| {
        LaneError::System(format!("the guest's trace cannot be read: {error}"))
    };
    // A task is announced before its first event, which may be too late.
    let mut announced = Vec::new();
    for record in Reader::new(trace).map_err(wrong)? {
        match record.map_err(wrong)? {
            binary::Record::Task(id, info) => announced.push((id, info)),
            binary::Record::Object(id, info) => sink.object(id, &info),
            binary::Record::Event(event) if event.time_ns >= end_ns => {
                sink.end(end_ns);
                return Ok(());
            }
            binary::Record::Event(event) => {
                announced.drain(..).for_each(|(id, info)| sink.task(id, &info));
                sink.event(&event);
            }
            binary::Record::End(time_ns) => {
                announced.drain(..).for_each(|(id, info)| sink.task(id, &info));
                sink.end(time_ns.min(end_ns));
            }
        }
    }
    Ok(())
}

/// Transfers need a device, which a guest does not have.
fn io_warning(workload: &Workload) -> Option<Warning> {
    let is_io = |op: &Op| matches!(op, Op::Io { .. });
    let has_io = workload.tasks.iter().any(|task| task.program.ops.iter().any(is_io));
    has_io.then(Warning::io_in_memory)
}

/// Whether a warning of the guest's lane applies. A guest has no other load, its sched_ext
/// scheduler is the requested one, and what its lane did before the run does not count. Each
/// instruction takes some nanoseconds, so the kernel's accounts and the trace differ by the time
/// between two clock readings; the settings contain these figures.
fn means_something(warning: &Warning) -> bool {
    use schedlab_run::Code::{OtherLoad, RunDelayMismatch, SchedExt, Steal};
    !matches!(warning.code, OtherLoad | Steal | RunDelayMismatch | SchedExt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::trace::{MemorySink, TaskInfo};
    use schedlab_model::{CpuId, Event, EventKind, TaskId};

    #[test]
    fn a_target_is_a_kernel_and_maybe_a_scheduler() {
        let parse = Target::parse;
        let own = Target { kernel: "6.18", scheduler: None, policy: None };
        assert_eq!((parse("6.18"), parse("6.18:kernel")), (own.clone(), own.clone()));
        assert_eq!(parse("6.18:FIFO"), Target { policy: Some(Policy::Fifo), ..own.clone() });
        assert_eq!(parse("6.18:fifo"), Target { scheduler: Some("fifo"), ..own.clone() });
        assert_eq!(
            parse("./a:b/vmlinuz:wrr"),
            Target { kernel: "./a:b/vmlinuz", scheduler: Some("wrr"), policy: None }
        );
    }

    /// A launcher that waits for the fair server lets tasks go on after the end of the run.
    #[test]
    fn a_trace_ends_with_the_run() {
        let mut trace = Vec::new();
        let mut sink = binary::BinarySink::new(&mut trace, 1);
        for (task, time_ns) in [(0, 5), (1, 10)] {
            let id = TaskId(task);
            let info = TaskInfo { name: format!("t{task}"), spec: Some(0), pid: 0 };
            sink.task(id, &info);
            let kind = EventKind::Fork { task: id, parent: None };
            sink.event(&Event { time_ns, cpu: CpuId(0), kind });
        }
        sink.end(12);
        sink.finish().unwrap();
        let until = |end_ns| {
            let mut memory = MemorySink::default();
            replay(&trace, end_ns, &mut memory).unwrap();
            (memory.tasks.len(), memory.events.len(), memory.end_ns)
        };
        assert_eq!(until(Nanos::MAX), (2, 2, 12));
        assert_eq!(until(11), (2, 2, 11));
        assert_eq!(until(10), (1, 1, 10), "the task that comes at the end is not of the run");
    }

    #[test]
    fn a_trace_that_is_damaged_is_an_error() {
        for bytes in [&b""[..], b"text", &binary::MAGIC] {
            let mut sink = schedlab_model::trace::NullSink;
            let error = replay(bytes, Nanos::MAX, &mut sink).unwrap_err();
            assert!(matches!(&error, LaneError::System(text) if text.contains("trace")), "{error}");
        }
    }
}
