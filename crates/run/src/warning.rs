// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about results. Each has a code for programs and a text for people. This is the list of
//! all warnings; the code that finds one fills in its values.

use schedlab_workload::WarningKind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that may distort a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// Short name for programs, such as `rt-throttling`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub code: Code,
    /// Cause, consequence, next step.
    pub text: String,
}

/// Makes [`Code`] and, for each text of a code, a function of [`Warning`] with the text's values.
macro_rules! warnings {
    ($($(#[$doc:meta])+ $variant:ident $code:literal {
        $($new:ident($($value:ident: $type:ty),*) $text:literal)*
    })+) => {
        /// The subject of a warning. Files contain its name.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum Code {
            $($(#[$doc])+ $variant,)+
            /// The workload's file has a member without effect, or with an unexpected one.
            File(WarningKind),
            /// A code that this version does not know: the result is of another version.
            Other(String),
        }

        impl Code {
            /// Every code of this program, except those about files.
            const KNOWN: &[Self] = &[$(Self::$variant),+];

            /// Its name: lower-case words with hyphens.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $code,)+
                    Self::File(kind) => kind.code(),
                    Self::Other(name) => name,
                }
            }
        }

        impl Warning {
            $($(
                #[doc = concat!("The warning `", $code, "` with this text's values.")]
                pub fn $new($($value: $type),*) -> Self {
                    Self { code: Code::$variant, text: format!($text) }
                }
            )*)+
        }
    };
}

warnings! {
    /// Other processes used the CPUs of the run.
    OtherLoad "other-load" {
        other_load(percent: u64, ms: u64)
            "Other processes used {percent} % of the run's CPUs ({ms} ms): they delay the tasks. \
             Stop them, or choose other CPUs."
    }
    /// The hypervisor took time of the CPUs.
    Steal "steal" {
        steal(percent: u64, ms: u64)
            "The hypervisor took {percent} % of the run's CPUs ({ms} ms): wall times are too \
             long."
    }
    /// Nice values count within a session only.
    Autogroup "autogroup" {
        autogroup()
            "Autogroup is on: nice values count only among tasks of one session, and load of \
             another session competes as one group. Among the tasks of this run nice works. To \
             switch it off: sysctl kernel.sched_autogroup_enabled=0."
    }
    /// Real-time tasks stand still for a part of each period.
    RtThrottling "rt-throttling" {
        rt_throttling(runtime_us: i64, period_us: i64)
            "Real-time tasks get at most {runtime_us} of every {period_us} us of a CPU \
             (kernel.sched_rt_runtime_us): busy FIFO and RR tasks are throttled for the rest, \
             which adds wall time and involuntary switches."
    }
    /// The CPUs change their frequency.
    FrequencyScaling "frequency-scaling" {
        frequency_scaling(governor: &str)
            "CPU frequency may change during the run (governor {governor}): the same CPU time may \
             do different work. Choose the governor performance."
    }
    /// Nothing in the workload or the request ends the run.
    Endless "endless" {
        endless(task: &str, seconds: u64)
            "Task {task:?} loops for ever and the workload has no duration: the run ends after \
             {seconds} s. Set another end with --until, or give the task a `loop` count."
    }
    /// CPUs of the run share cores.
    Smt "smt" {
        smt()
            "CPUs of the run are hyperthreads that share cores, among themselves or with CPUs \
             outside of it: speed depends on the neighbour."
    }
    /// A sched_ext scheduler is loaded that the run did not ask for.
    SchedExt "sched-ext" {
        sched_ext(name: &str)
            "The sched_ext scheduler {name} is loaded: it may schedule OTHER, BATCH and IDLE \
             tasks instead of the kernel."
    }
    /// Timers fire late.
    TimerSlack "timer-slack" {
        timer_slack(slack_ns: u64)
            "Timers of this process may fire up to {slack_ns} ns late; tasks of the run set 1 ns."
    }
    /// The kernel has no utilisation clamps.
    UtilClamp "util-clamp" {
        util_clamp()
            "util_min and util_max were left out: this kernel has no CONFIG_UCLAMP_TASK."
    }
    /// The modelled CPUs have one speed.
    UtilClampIgnored "util-clamp-ignored" {
        util_clamp_ignored(task: &str)
            "Task {task:?} has util_min or util_max: the modelled CPUs have one speed, so they \
             change nothing."
    }
    /// Real-time priorities above that of the launcher.
    RtPriorityCapped "rt-priority-capped" {
        rt_priority_capped(priority_max: u8)
            "Real-time priorities above {priority_max} were lowered to it, so that the launcher \
             can end the run: the order among them is lost."
    }
    /// There is no trace, because BPF is not available.
    NoBpf "no-bpf" {
        no_bpf(cause: &str)
            "{cause}. Run time, run delay and switches come from /proc and wait4 instead, times \
             from the tasks themselves."
    }
    /// Measures that only a trace gives.
    MeasuresAbsent "measures-absent" {
        measures_absent(names: &str)
            "Without a trace these measures are unknown: {names}."
        wall_time_absent()
            "Without a trace the wall time of a copy that ends before an earlier one is unknown."
    }
    /// The runs have no trace: found by the report.
    NoRecorder "no-recorder" {
        no_recorder()
            "These runs were measured without the event recorder, from /proc/PID/schedstat and \
             the tasks' own time stamps: they have no timeline and no wake-up latency. Run as \
             root on a kernel with BTF to get both."
    }
    /// The recorder lost events.
    LostEvents "lost-events" {
        lost_events(nr: u64)
            "The recorder lost {nr} events, at the times given in the trace. Measures of the \
             affected tasks are uncertain."
        lost_events_counted(events: &str)
            "The recorder lost {events}. Switches, slices and run delay of these runs are too \
             low; record again with fewer tasks or a greater buffer."
    }
    /// Marks of tasks were lost.
    LostMarks "lost-marks" {
        lost_marks(nr: u64)
            "Tasks marked progress or waits faster than it could be read: {nr} marks are missing."
    }
    /// The kernel did not trace some switches and wake-ups.
    InferredEvents "inferred-events" {
        inferred_events(nr: u64)
            "Switches and wake-ups of the run that the kernel did not trace: {nr} (seen around \
             the threads of a hypervisor's agent). schedlab inferred them from the next switch, \
             with the scheduler's own time stamp; the reason of an untraced switch may be wrong."
    }
    /// Events contradict earlier ones: found by the report.
    InconsistentEvents "inconsistent-events" {
        inconsistent_events(events: &str, tasks: &str)
            "{events} contradict earlier events, which a complete recording never does; {tasks} \
             may have wrong figures. Record again; without lost events, this is a defect of \
             the recorder."
    }
    /// Tasks had not ended when the run did: found by the report.
    UnfinishedTasks "unfinished-tasks" {
        unfinished_tasks(nr: &str, of: &str)
            "{nr} of {of} tasks had not ended when the run did. Mean turnaround counts only those \
             that ended and there is no makespan; let the run last longer."
    }
    /// Run operations used other CPU time than asked for.
    Calibration "calibration" {
        calibration(percent: f64)
            "Run operations used {percent} % other CPU time than asked for (allowed: 2 %)."
    }
    /// Trace and kernel differ on the run delay.
    RunDelayMismatch "run-delay-mismatch" {
        run_delay_mismatch(percent: f64, ns_per_wait: u64, nr_waits: u64)
            "The trace's run delay differs from /proc/PID/schedstat by {percent} % ({ns_per_wait} \
             ns for each wait, {nr_waits} waits on one side only; allowed: 0.1 %). Do not \
             trust waits as short as that difference, nor any wait if waits are missing."
    }
    /// The limit ended the run.
    LimitReached "limit-reached" {
        limit_reached() "The run did not end by itself: its time limit ended it."
    }
    /// Processes outlived the command that started them.
    LeftoverProcesses "leftover-processes" {
        leftover_processes(nr: u32)
            "{nr} processes outlived the command that started them; schedlab killed them."
    }
    /// A signal ended a task.
    TaskCrashed "task-crashed" {
        task_crashed(task: &str, signal: i32) "Task {task} was ended by signal {signal}."
    }
    /// No task could go on.
    Deadlock "deadlock" {
        deadlock(waits: &str)
            "No task could go on, so the run was ended. Each waited for another: {waits}."
        deadlock_simulated(waits: &str)
            "Before the run ended, every task waited for another: {waits}."
    }
    /// Tasks waited when the limit ended the run.
    WaitingAtLimit "waiting-at-limit" {
        waiting_at_limit(waits: &str) "When the limit ended the run, tasks waited: {waits}."
    }
    /// A task ended holding a mutex.
    MutexAbandoned "mutex-abandoned" {
        mutex_abandoned(who: &str)
            "Tasks took over a mutex from one that had ended holding it: {who}."
    }
    /// All tasks at the other end of a channel had ended.
    ChannelClosed "channel-closed" {
        channel_closed(who: &str)
            "Tasks ended early because all tasks at the other end of a channel had ended: {who}."
    }
    /// The kernel made a channel of another size.
    ChannelCapacity "channel-capacity" {
        channel_capacity(name: &str, asked: u64, got: u64)
            "Channel {name:?} was to hold {asked} bytes; the kernel made it {got}."
    }
    /// A sched_ext scheduler was ejected in the simulator.
    ScxDisabled "scx-disabled" {}
    /// A task of a sched_ext scheduler waited when the run ended, too short for the watchdog.
    ScxShortRun "scx-short-run" {}
    /// A sched_ext scheduler ran without what its user program sets.
    ScxNoSetup "scx-no-setup" {
        scx_no_setup(name: &str, missing: &str, advice: &str)
            "{name} ran without its user program, which sets it up first: {missing}. It may decide \
             otherwise than its authors' command. {advice}"
    }
    /// No kernel's verifier has seen a sched_ext scheduler that was simulated.
    ScxNotVerified "scx-not-verified" {
        scx_not_verified(file: &str)
            "Not verified: a kernel may refuse it. To ask one: schedlab scx verify {file}"
    }
    /// The verifier of a kernel refuses a sched_ext scheduler that was simulated.
    ScxRefused "scx-refused" {
        scx_refused(kernel: &str, refusal: &str)
            "Linux {kernel} would not load this scheduler: {refusal}"
    }
    /// Transfers of a guest waited for no device.
    IoInMemory "io-in-memory" {
        io_in_memory()
            "Transfers (iorun) went to a file in the guest's memory: no task waited for a device, \
             as it would on a disk."
    }
    /// CPUs of a guest with counted time share one count of instructions.
    CpusTakeTurns "cpus-take-turns" {
        cpus_take_turns()
            "The guest's CPUs took turns and shared one clock: each of n busy CPUs did 1/n of the \
             work. Order and placement are meaningful, work, waits and latencies are not. \
             `schedlab qemu build` builds a QEMU in which all CPUs run at the same time."
    }
    /// Others used the host of a live guest.
    HostLoaded "host-loaded" {
        host_loaded(percent: u64)
            "Other processes used {percent} % of the host's CPU time during the run. A live \
             guest loses that time, so its slices and latencies are too long. Stop these \
             processes, or use the counted clock."
    }
    /// The emulator made the guest's kernel crash.
    EmulatorCrash "emulator-crash" {
        emulator_crash(often: &str)
            "The guest's kernel crashed {often} before this run because QEMU ran a breakpoint \
             (int3) that the kernel had removed from its code: a defect of QEMU's emulation of \
             several CPUs, not of the kernel. schedlab repeated the run."
    }
    /// The recorder of the trace lost events.
    TraceLostEvents "trace-lost-events" {
        trace_lost_events(nr: u64, nr_tasks: u64)
            "the recorder lost {nr} events or more; {nr_tasks} tasks are marked uncertain, and \
             time that no event explains counts as unaccounted; record with a larger buffer"
    }
    /// Tasks leave CPUs on which the trace does not show them.
    TraceMissingSwitches "trace-missing-switches" {
        trace_missing_switches(nr: u64, of: u64)
            "{nr} of {of} switches are from a task that the trace does not show on that CPU: at \
             least as many switches are missing; the time in between counts for no task"
    }
    /// The ring buffer overwrote older events.
    TraceOverwritten "trace-overwritten" {
        trace_overwritten(nr: u64)
            "the ring buffer overwrote {nr} older events before it was read: the trace shows the \
             last part of the recording only"
    }
    /// Events contradict earlier ones.
    TraceInconsistent "trace-inconsistent" {
        trace_inconsistent(nr: u64, nr_tasks: u64)
            "{nr} events contradict earlier ones; {nr_tasks} tasks are marked uncertain"
    }
    /// Lines are earlier than the line above.
    TraceTimeBack "trace-time-back" {
        trace_time_back(nr: u64, by: &str)
            "{nr} lines are earlier than the line above, by up to {by}; they get the \
             latest time so far; record with trace_clock=mono"
    }
    /// The unit of the times is unknown.
    TraceClockUnknown "trace-clock-unknown" {
        trace_clock_unknown()
            "the times are whole numbers without a decimal point: they are read as nanoseconds, \
             which is wrong for the trace clocks counter and x86-tsc; record with trace_clock=mono"
    }
    /// The last line has no end.
    TraceCutOff "trace-cut-off" {
        trace_cut_off()
            "the last line has no end: the file was cut off there; that line is left out"
    }
    /// Wake-ups are absent, or known only from where they were decided.
    TraceWakeups "trace-wakeups" {
        trace_waking_only()
            "the trace has sched_waking but no sched_wakeup: waits begin where the wake-up was \
             decided, up to some microseconds early, and the first wake-up of each task may be \
             missing; record sched_wakeup too"
        trace_without_wakeups()
            "the trace has no wake-ups: sleep and the following wait cannot be distinguished, and \
             count as unaccounted; record sched_wakeup too"
    }
    /// Tasks are older than the trace.
    TraceTasksBefore "trace-tasks-before" {
        trace_tasks_before(nr: usize, of: usize, names: &str)
            "{nr} of {of} tasks lived before the trace began ({names}): they have no response and \
             no turnaround, and what they did before their first event is not counted"
    }
    /// The trace does not say how many CPUs there are.
    TraceCpusUnknown "trace-cpus-unknown" {
        trace_cpus_unknown(nr_cpus: u32)
            "the trace does not say how many CPUs the machine has; {nr_cpus} is the greatest \
             number seen + 1, and the utilisation is relative to that"
    }
    /// Lines hold no event.
    TraceOtherLines "trace-other-lines" {
        trace_other_lines(nr: u64, line: u64, text: &str)
            "{nr} lines contain no event and are ignored; the first is line {line}: {text:?}"
    }
    /// The timeline does not hold all slices.
    TraceTimelineCut "trace-timeline-cut" {
        trace_timeline_cut(nr: usize, end_ns: u64, nr_left_out: u64)
            "the timeline has the first {nr} slices, up to {end_ns} ns; {nr_left_out} later ones \
             are left out, but all measures contain them; --task shows one task over a longer time"
    }
}

impl From<&str> for Code {
    fn from(name: &str) -> Self {
        let known = Self::KNOWN.iter().find(|code| code.name() == name).cloned();
        let of_file = || WarningKind::ALL.into_iter().find(|kind| kind.code() == name);
        known.or_else(|| of_file().map(Self::File)).unwrap_or_else(|| Self::Other(name.into()))
    }
}

impl From<String> for Code {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.name().into()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// All codes, those of files too.
    fn codes() -> impl Iterator<Item = Code> {
        Code::KNOWN.iter().cloned().chain(WarningKind::ALL.map(Code::File))
    }

    #[test]
    fn a_code_is_read_as_it_was_written_whoever_wrote_it() {
        for code in codes().chain([Code::Other("of-a-later-version".into())]) {
            let warning = Warning { code: code.clone(), text: "x".into() };
            let json = serde_json::to_string(&warning).unwrap();
            assert_eq!(json, format!(r#"{{"code":"{code}","text":"x"}}"#));
            assert_eq!(serde_json::from_str::<Warning>(&json).unwrap(), warning);
        }
    }

    #[test]
    fn every_code_is_unique_and_in_the_pages() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let pages: String = ["guide", "reference", "internals"]
            .iter()
            .flat_map(|folder| std::fs::read_dir(docs.join(folder)).unwrap())
            .filter_map(|page| std::fs::read_to_string(page.unwrap().path()).ok())
            .collect();
        let mut seen = BTreeSet::new();
        for code in codes() {
            assert!(pages.contains(&format!("`{code}`")), "no page names the warning {code}");
            assert!(seen.insert(code.to_string()), "{code} stands for two things");
        }
    }
}
