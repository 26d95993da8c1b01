// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run, on the caller's side: starts the launcher, records while it works, and collects the
//! results.

use crate::attr::Abilities;
use crate::cgroup::{self, CpuController};
use crate::error::HostError;
use crate::files;
use crate::launcher::{self, LAUNCHER_NAME};
use crate::memory::{RunMemory, run_state};
use crate::pace::Pace;
use crate::plan::RunPlan;
use crate::procfs;
use crate::recorder::convert::{Converter, Names, OtherTime, TraceAccount};
use crate::recorder::merge::Merge;
use crate::sys;
use schedlab_model::TraceSink;
use schedlab_run::Warning;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

#[cfg(schedlab_bpf)]
use crate::recorder::{
    bpf::BpfRecorder,
    drain::{self, Drain},
};

/// How a run is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecorderChoice {
    /// BPF if it works; otherwise /proc and the tasks' own time stamps.
    #[default]
    Auto,
    /// BPF only.
    Bpf,
    /// /proc and the tasks' own time stamps.
    Schedstat,
}

/// Source of a result whose events come from the kernel.
pub const SOURCE_BPF: &str = "bpf";
/// Source of a result without events of the kernel.
pub const SOURCE_SCHEDSTAT: &str = "schedstat";

/// Prepares a recorder with rings of this size for the next run of this thread, which then starts
/// sooner. If it fails, that run reports the error.
#[cfg_attr(not(schedlab_bpf), allow(unused_variables))]
pub fn prepare_recorder(ring_size: u64) {
    #[cfg(schedlab_bpf)]
    let _ = BpfRecorder::make_ready(Some(ring_size));
}

/// The results of a recording.
#[derive(Debug, Default)]
pub struct Session {
    /// [`SOURCE_BPF`] or [`SOURCE_SCHEDSTAT`].
    pub source: &'static str,
    /// Sums of the trace by task number; empty without a trace.
    pub accounts: Vec<TraceAccount>,
    /// Names by task number.
    pub names: Vec<String>,
    /// Length of the run, ns.
    pub end_ns: u64,
    /// Time 0 (CLOCK_MONOTONIC).
    pub zero_ns: u64,
    /// Events passed to the sink.
    pub nr_events: u64,
    /// Events lost by the kernel side.
    pub nr_lost: u64,
    /// Switches and wake-ups that the kernel did not trace and that were inferred.
    pub nr_inferred: u64,
    /// Events that were too late for their place.
    pub nr_late: u64,
    /// CPU time of the drain thread, ns.
    pub drain_cpu_ns: u64,
    /// Tasks outside of the run that used its CPUs, by name, the longest time first.
    pub others: Vec<(String, OtherTime)>,
    /// Warnings of the recording.
    pub warnings: Vec<Warning>,
}

/// The launcher process, and the pipe that it waits on. A drop ends the run.
struct Launcher {
    pid: u32,
    /// Readable when it has ended; negative if the kernel has no pidfd.
    pidfd: i32,
    control: i32,
    /// Readable when a task's marks need a reader.
    alarm: i32,
    is_reaped: bool,
    /// Children that this process had before the run.
    children_before: Vec<u32>,
}

impl Launcher {
    fn start(plan: &mut RunPlan, memory: &RunMemory) -> Result<Self, HostError> {
        let failed = |what| move |error| HostError::system(what, &error);
        let (read, write) = sys::pipe().map_err(failed("making a pipe"))?;
        let alarm = sys::event_counter(0).map_err(failed("making a counter"))?;
        memory.header().set_alarm(alarm);
        let children_before = procfs::children_of_threads(sys::getpid());
        // If the launcher is killed, this process becomes the parent of the processes that its
        // commands have started.
        sys::become_subreaper(true).map_err(failed("taking orphans in"))?;
        match sys::fork().map_err(failed("starting the launcher"))? {
            None => launcher::run(plan, memory, read),
            Some(pid) => {
                sys::close(read);
                let pidfd = sys::pidfd_open(pid).unwrap_or(-1);
                Ok(Self { pid, pidfd, control: write, alarm, is_reaped: false, children_before })
            }
        }
    }

    /// Waits until it has ended or a task's marks need a reader, at most `ns`.
    fn wait(&self, ns: u64) {
        let mut items = [self.pidfd, self.alarm].map(|fd| sys::Pollable { fd, is_ready: false });
        sys::poll(&mut items, Some(std::time::Duration::from_nanos(ns)));
        if items[1].is_ready {
            let _ = sys::read_some(self.alarm, &mut [0; 8]);
        }
    }

    /// Whether the launcher has ended; reaps it.
    fn has_ended(&mut self) -> bool {
        if !self.is_reaped && !matches!(sys::wait_peek(Some(self.pid), false), Ok(None)) {
            let _ = sys::reap(self.pid);
            self.is_reaped = true;
        }
        self.is_reaped
    }

    /// Cleans up after a launcher that was killed before it could do so. The kernel has killed its
    /// tasks; processes that they started, groups and files are left.
    fn clean_up_after(&self, plan: &RunPlan) {
        sys::kill_now(-(self.pid as i32));
        self.kill_orphans();
        if let Some(controller) = CpuController::detect() {
            cgroup::remove_stale(&controller);
        }
        plan.tunables.restore();
        files::remove_stale(self.pid);
        if let Some(program) = &plan.program {
            // It was not created yet, or has already been removed.
            let _ = std::fs::remove_dir_all(&program.dir);
        }
    }
}

impl Launcher {
    /// Kills and reaps the orphans that became children of this process since the run began.
    /// Repeats until there are none, because each that ends may leave children of its own.
    fn kill_orphans(&self) {
        loop {
            let now = procfs::children_of_threads(sys::getpid());
            let is_orphan = |pid: &u32| *pid != self.pid && !self.children_before.contains(pid);
            let orphans: Vec<u32> = now.into_iter().filter(is_orphan).collect();
            if orphans.is_empty() {
                return;
            }
            for pid in &orphans {
                sys::kill_now(*pid as i32);
                procfs::descendants(*pid).into_iter().for_each(|pid| sys::kill_now(pid as i32));
            }
            for pid in orphans {
                let _ = sys::wait_peek(Some(pid), true);
                let _ = sys::reap(pid);
            }
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        let _ = sys::become_subreaper(false);
        sys::close(self.control);
        sys::close(self.alarm);
        sys::close(self.pidfd);
        if !self.is_reaped {
            let _ = sys::wait_peek(Some(self.pid), true);
            let _ = sys::reap(self.pid);
        }
    }
}

/// The recorder of a run.
enum Source {
    #[cfg(schedlab_bpf)]
    Bpf {
        recorder: Box<BpfRecorder>,
        drain: Option<Drain>,
    },
    Own,
}

impl Source {
    fn open(
        choice: RecorderChoice,
        ring_size: Option<u64>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, HostError> {
        if choice == RecorderChoice::Schedstat {
            return Ok(Self::Own);
        }
        #[cfg(schedlab_bpf)]
        let failed = match BpfRecorder::attach(ring_size) {
            Ok(recorder) => {
                return Ok(Self::Bpf { recorder: Box::new(recorder), drain: None });
            }
            Err(error) => error,
        };
        #[cfg(not(schedlab_bpf))]
        let _ = ring_size;
        #[cfg(not(schedlab_bpf))]
        let failed = HostError::Unavailable(
            "BPF recorder: this build has none (clang was missing; see schedlab doctor)".into(),
        );
        if choice == RecorderChoice::Bpf {
            return Err(failed);
        }
        warnings.push(Warning::no_bpf(&failed.to_string()));
        Ok(Self::Own)
    }

    fn name(&self) -> &'static str {
        match self {
            #[cfg(schedlab_bpf)]
            Self::Bpf { .. } => SOURCE_BPF,
            Self::Own => SOURCE_SCHEDSTAT,
        }
    }

    fn nr_cpus(&mut self) -> u32 {
        match self {
            #[cfg(schedlab_bpf)]
            Self::Bpf { recorder, .. } => recorder.rings().map_or(0, |rings| rings.nr_cpus()),
            Self::Own => 0,
        }
    }

    #[cfg_attr(not(schedlab_bpf), allow(unused_variables))]
    fn start(&mut self, launcher_pid: u32, plan: &RunPlan) -> Result<(), HostError> {
        match self {
            #[cfg(schedlab_bpf)]
            Self::Bpf { recorder, drain } => {
                recorder.make_longer(plan.pace.switch_jitter_rounds, plan.seed);
                recorder.follow(launcher_pid);
                if let Some(rings) = recorder.rings() {
                    for cpu in plan.cpus.iter().filter(|cpu| cpu.0 < rings.nr_cpus()) {
                        rings.control(cpu.0).tells_others.store(1, Ordering::Relaxed);
                    }
                    let started = Drain::start(rings, plan.launcher_cpus, plan.pace.round_ns);
                    *drain = Some(
                        started.map_err(|e| HostError::system("starting the drain thread", &e))?,
                    );
                }
                Ok(())
            }
            Self::Own => Ok(()),
        }
    }

    /// Lets the recorder's thread do a round now, and the next one at its distance from this.
    fn begin_round(&self) {
        #[cfg(schedlab_bpf)]
        if let Self::Bpf { drain: Some(drain), .. } = self {
            drain.begin_round();
        }
    }

    /// Adds the new events. Returns the time up to which all events are known.
    fn next_round(&mut self, merge: &mut Merge) -> u64 {
        match self {
            #[cfg(schedlab_bpf)]
            Self::Bpf { drain: Some(drain), .. } => {
                let mut watermark_ns = 0;
                for batch in drain.batches.try_iter() {
                    for (cpu, records) in &batch.records {
                        merge.add_records(*cpu, records);
                    }
                    watermark_ns = batch.watermark_ns;
                }
                watermark_ns
            }
            _ => {
                let _ = merge;
                sys::monotonic_ns().saturating_sub(1_000_000)
            }
        }
    }

    /// Ends the recording and adds the rest. Returns the CPU time of the drain thread (ns), and its
    /// pid and name.
    fn finish(&mut self, merge: &mut Merge) -> (u64, Option<(u32, String)>) {
        match self {
            #[cfg(schedlab_bpf)]
            Self::Bpf { drain: Some(drain), .. } => {
                let ended = drain.stop();
                for batch in drain.batches.try_iter() {
                    for (cpu, records) in &batch.records {
                        merge.add_records(*cpu, records);
                    }
                }
                (ended.cpu_ns, Some((ended.pid, drain::NAME.into())))
            }
            _ => {
                let _ = merge;
                (0, None)
            }
        }
    }
}

/// When rounds are: at their distance, and before a planned time 0 so that most runs end before the
/// next one.
struct Rounds {
    pace: Pace,
    state: RoundState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RoundState {
    /// Time 0 is not planned yet.
    Waits,
    /// The next round is the last one before time 0.
    IsPlanned,
    /// Rounds have their distance.
    Counts,
}

impl Rounds {
    /// Time (ns) between two looks whether time 0 is planned.
    const LOOK_NS: u64 = 500_000_000;
    /// Time (ns) before time 0 of the last round before it: between two ticks.
    const LEAD_NS: u64 = 98_000_000;

    fn of(pace: Pace) -> Self {
        let state = if pace.calm_ns > 0 { RoundState::Waits } else { RoundState::Counts };
        Self { pace, state }
    }

    /// The pause before the next round. `planned_ns`: see `RunHeader`.
    fn pause_ns(&mut self, planned_ns: u64) -> u64 {
        if self.state == RoundState::Waits && planned_ns > 0 {
            self.state = RoundState::IsPlanned;
        }
        match self.state {
            RoundState::Waits => self.pace.round_ns.min(Self::LOOK_NS),
            RoundState::IsPlanned => {
                planned_ns.saturating_sub(Self::LEAD_NS).saturating_sub(sys::monotonic_ns())
            }
            RoundState::Counts => self.pace.round_ns,
        }
    }

    /// Waits for the next round and does it. Returns the time up to which all events are known.
    fn next(
        &mut self,
        planned_ns: u64,
        launcher: &Launcher,
        source: &mut Source,
        merge: &mut Merge,
    ) -> u64 {
        launcher.wait(self.pause_ns(planned_ns));
        if self.state == RoundState::IsPlanned {
            self.state = RoundState::Counts;
            source.begin_round();
        }
        source.next_round(merge)
    }
}

/// Runs `plan` and records it to `sink`.
pub fn run(
    plan: &mut RunPlan,
    memory: &RunMemory,
    choice: RecorderChoice,
    names: &dyn Names,
    has_slots: bool,
    sink: &mut dyn TraceSink,
) -> Result<Session, HostError> {
    let mut session = Session::default();
    let mut source = Source::open(choice, plan.pace.ring_size, &mut session.warnings)?;
    session.source = source.name();
    plan.own_stamps = session.source == SOURCE_SCHEDSTAT;
    let nr_launched = plan.released().len() as u32;
    let mut merge = Merge::new(source.nr_cpus());
    let mut converter = Converter::new(memory, names, sink, nr_launched, has_slots);
    let mut launcher = Launcher::start(plan, memory)?;
    let header = memory.header();
    if plan.program.is_some() {
        // Commands before a program, and servers next to it, are not recorded.
        sys::write_byte(launcher.control);
        while header.state.load(Ordering::Acquire) == run_state::SETUP && !launcher.has_ended() {
            launcher.wait(plan.pace.round_ns);
        }
    }
    source.start(launcher.pid, plan)?;
    sys::write_byte(launcher.control);
    let mut has_begun = false;
    let mut rounds = Rounds::of(plan.pace);
    let mut own = vec![(launcher.pid, LAUNCHER_NAME.to_string())];
    loop {
        let is_over = launcher.has_ended();
        let watermark_ns = if is_over {
            let (drain_cpu_ns, drained) = source.finish(&mut merge);
            session.drain_cpu_ns = drain_cpu_ns;
            own.extend(drained);
            u64::MAX
        } else {
            let planned_ns = header.planned_ns.load(Ordering::Acquire);
            rounds.next(planned_ns, &launcher, &mut source, &mut merge)
        };
        collect_marks(memory, &mut merge);
        let zero_ns = header.zero_ns.load(Ordering::Acquire);
        if zero_ns != 0 && !has_begun {
            let early_ns = header.early_ns.load(Ordering::Acquire);
            converter.begin(zero_ns, Some(early_ns).filter(|ns| *ns != 0));
            has_begun = true;
        }
        if let ended @ 1.. = header.end_ns.load(Ordering::Acquire) {
            converter.end_ns = ended;
        }
        // On CPUs of the run, converting takes time from its tasks: it waits for their end.
        if has_begun && (is_over || merge.nr_waiting() >= plan.pace.kept_max) {
            merge.emit(watermark_ns, |time_ns, item| converter.item(time_ns, item));
        }
        if is_over {
            break;
        }
    }
    check_end(&launcher, plan, memory)?;
    session.zero_ns = header.zero_ns.load(Ordering::Acquire);
    session.end_ns = header.end_ns.load(Ordering::Acquire).saturating_sub(session.zero_ns);
    converter.infer_exits();
    (session.nr_events, session.nr_lost) = (converter.nr_events, converter.nr_lost);
    session.nr_inferred = converter.nr_inferred;
    session.nr_late = merge.nr_late;
    session.others = name_others(&converter.others, &own);
    (session.accounts, session.names) = converter.finish();
    Ok(session)
}

/// Names the tasks outside of the run. Those of one name are one entry. `own`: pids and names of
/// schedlab's tasks that have ended.
fn name_others(
    others: &BTreeMap<u32, OtherTime>,
    own: &[(u32, String)],
) -> Vec<(String, OtherTime)> {
    // A task may give itself any name.
    let read = |pid| procfs::comm(pid).map(|name| name.replace(char::is_control, "?"));
    let mut named: BTreeMap<String, OtherTime> = BTreeMap::new();
    for (pid, time) in others {
        let known = own.iter().find(|(of, _)| of == pid).map(|(_, name)| name.clone());
        let name = known.or_else(|| read(*pid)).unwrap_or_else(|| "(ended)".into());
        let sum = named.entry(name).or_default();
        sum.cpu_ns += time.cpu_ns;
        sum.nr_turns += time.nr_turns;
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_by_key(|(_, time)| std::cmp::Reverse(time.cpu_ns));
    named
}

fn collect_marks(memory: &RunMemory, merge: &mut Merge) {
    for task in 0..memory.nr_slots() {
        memory.marks(task).drain(|time_ns, mark| merge.add_mark(time_ns, task, mark));
    }
}

/// Checks that the run succeeded.
fn check_end(launcher: &Launcher, plan: &RunPlan, memory: &RunMemory) -> Result<(), HostError> {
    let header = memory.header();
    match header.state.load(Ordering::Acquire) {
        run_state::DONE => Ok(()),
        run_state::FAILED => {
            let text = header.error().unwrap_or_else(|| "unknown failure".into());
            Err(HostError::System(text))
        }
        _ => {
            launcher.clean_up_after(plan);
            Err(HostError::System(
                "the launcher process was killed before the run ended; its tasks, what they had \
                 started, groups and files were removed"
                    .into(),
            ))
        }
    }
}

/// CPUs for the launcher and the drain thread: those that the run leaves free, or all.
pub fn helper_cpus(run: &schedlab_model::CpuMask) -> schedlab_model::CpuMask {
    let all = sys::sched_getaffinity(0).unwrap_or(*run);
    let free = all.and_not(run);
    if free.is_empty() { all.or(run) } else { free }
}

/// User and group of the tasks: those of the user who called sudo, otherwise nobody; `None` if not
/// root.
pub fn task_user() -> Option<(u32, u32)> {
    const NOBODY: u32 = 65_534;
    if sys::euid() != 0 {
        return None;
    }
    let id = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != 0);
    Some(id("SUDO_UID").zip(id("SUDO_GID")).unwrap_or((NOBODY, NOBODY)))
}

/// What this kernel supports; read once per process.
pub fn abilities() -> &'static Abilities {
    static ABILITIES: std::sync::OnceLock<Abilities> = std::sync::OnceLock::new();
    ABILITIES.get_or_init(Abilities::detect)
}
