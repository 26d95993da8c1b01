// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a run on the host, without its events: the kernel's own counters of each task,
//! and how far trace and requested work agree with them.

use crate::memory::{RunMemory, Slot};
use crate::recorder::convert::{OtherTime, TraceAccount};
use crate::session::Session;
use crate::sys;
use schedlab_model::Nanos;
use schedlab_run::{MachineInfo, Warning};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums of the trace for a task, from its release to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceSums {
    /// Time on a CPU, ns.
    pub run_ns: Nanos,
    /// Time runnable but not running, ns.
    pub run_delay_ns: Nanos,
    /// Run delay (ns) by the kernel's clock rule, which counts short waits after a wake-up as run
    /// time.
    pub kernel_delay_ns: Nanos,
    /// Number of waits in it.
    pub nr_waits: u64,
}

/// One task. Counters run from its release to its exit. They come only from /proc/PID/schedstat,
/// wait4(2) and the task itself, so they exist without a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskOutcome {
    /// Number in the run.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Index of its description; `None` for a command.
    pub spec: Option<u32>,
    /// Process id.
    pub pid: u32,
    /// When it was released, ns after time 0.
    pub release_ns: Nanos,
    /// When its first instruction ran, ns after time 0; `None` if it never did.
    pub first_run_ns: Option<Nanos>,
    /// When its program ended by its own clock (ns after time 0); `None` if it was ended. For a
    /// command: the exit in the trace, if there is one.
    pub ended_ns: Option<Nanos>,
    /// CPU time by schedstat, ns.
    pub run_ns: Nanos,
    /// Run delay by schedstat, ns.
    pub run_delay_ns: Nanos,
    /// Number of its slices.
    pub nr_slices: u64,
    /// User time by wait4, us.
    pub user_us: u64,
    /// System time by wait4, us.
    pub system_us: u64,
    /// Voluntary switches (nvcsw).
    pub nr_voluntary_switches: u64,
    /// Involuntary switches (nivcsw).
    pub nr_involuntary_switches: u64,
    /// Exit code; or the negative number of the signal that ended it; `None`: not counted.
    pub exit_code: Option<i32>,
    /// Units of progress finished.
    pub nr_progress: u64,
    /// CPU time that its Run operations asked for, ns.
    pub requested_ns: Nanos,
    /// CPU time that they took by the thread's clock, ns.
    pub burned_ns: Nanos,
    /// Sums of the trace; `None` without a trace.
    pub trace: Option<TraceSums>,
}

/// How far the numbers agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SelfCheck {
    /// CPU time of all Run operations, |used - requested| by the threads' clocks, in millionths of
    /// the requested time. `None`: none was requested.
    pub calibration_error_ppm: Option<u64>,
    /// CPU time from schedstat beyond the requested time (system calls, forks, exits, and work
    /// other than Run), in millionths of the requested time.
    pub overhead_ppm: Option<i64>,
    /// Run delay of all tasks, |trace - schedstat|, the trace's by the kernel's clock rule, in
    /// millionths of schedstat's. `None`: no trace, or no delay.
    pub run_delay_error_ppm: Option<u64>,
    /// The same difference per wait (ns), to compare with the resolution of the two clocks.
    pub run_delay_error_ns_per_wait: Option<u64>,
    /// Waits that only one of the two has, summed over the tasks. `None`: no trace.
    pub nr_waits_off: Option<u64>,
    /// (trace - schedstat) CPU time of all tasks, in millionths: time that interrupts and the
    /// hypervisor took while a task was on the CPU.
    pub run_error_ppm: Option<i64>,
}

/// A finished run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostOutcome {
    /// The machine and its settings, including the figures of the self-check.
    pub machine: MachineInfo,
    /// What may distort the result.
    pub warnings: Vec<Warning>,
    /// `bpf` or `schedstat`.
    pub source: &'static str,
    /// Tasks by number.
    pub tasks: Vec<TaskOutcome>,
    /// Length of the run, ns.
    pub end_ns: Nanos,
    /// Events passed to the sink.
    pub nr_events: u64,
    /// Events lost by the recorder.
    pub nr_lost_events: u64,
    /// Switches and wake-ups that the kernel did not trace and that were inferred from its own
    /// accounts.
    pub nr_inferred_events: u64,
    /// Events whose time was moved to keep the order.
    pub nr_late_events: u64,
    /// Marks that tasks lost because their ring was full.
    pub nr_lost_marks: u64,
    /// CPU time of the recorder's thread, ns.
    pub recorder_cpu_ns: Nanos,
    /// Tasks outside of the run that used its CPUs, by name, the longest time first.
    pub others: Vec<(String, OtherTime)>,
    /// CPU time (ns) of everything that the run started, from wait4: tasks, their children, the
    /// commands around a program.
    pub descendants_cpu_ns: Nanos,
    /// Whether the limit ended the run.
    pub was_limited: bool,
    /// Descendants of commands that were still running and were killed.
    pub nr_leftover: u32,
    /// How far the numbers agree.
    pub check: SelfCheck,
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn since(last: &AtomicU64, base: &AtomicU64) -> u64 {
    load(last).saturating_sub(load(base))
}

/// Reads slot `id` into an outcome.
fn task_outcome(slot: &Slot, id: u32, session: &Session, has_specs: bool) -> TaskOutcome {
    let after_zero = |time: &AtomicU64| load(time).checked_sub(session.zero_ns);
    let is_reaped = slot.is_reaped.load(Ordering::Acquire) == 1;
    let status = slot.status.load(Ordering::Relaxed);
    let trace = session.accounts.get(id as usize).map(|account: &TraceAccount| TraceSums {
        run_ns: account.run_ns,
        run_delay_ns: account.run_delay_ns,
        kernel_delay_ns: account.kernel_delay_ns(),
        nr_waits: account.nr_waits,
    });
    TaskOutcome {
        id,
        name: session.names.get(id as usize).cloned().unwrap_or_default(),
        spec: has_specs.then(|| slot.spec.load(Ordering::Relaxed)),
        pid: slot.pid.load(Ordering::Relaxed),
        release_ns: after_zero(&slot.released_ns).unwrap_or(0),
        first_run_ns: after_zero(&slot.first_ns),
        ended_ns: after_zero(&slot.ended_ns),
        run_ns: since(&slot.last.run_ns, &slot.base.run_ns),
        run_delay_ns: since(&slot.last.run_delay_ns, &slot.base.run_delay_ns),
        nr_slices: since(&slot.last.nr_slices, &slot.base.nr_slices),
        user_us: since(&slot.last.user_us, &slot.base.user_us),
        system_us: since(&slot.last.system_us, &slot.base.system_us),
        nr_voluntary_switches: since(&slot.last.nr_voluntary, &slot.base.nr_voluntary),
        nr_involuntary_switches: since(&slot.last.nr_involuntary, &slot.base.nr_involuntary),
        exit_code: is_reaped.then(|| sys::exit_code(status)),
        nr_progress: u64::from(slot.nr_progress.load(Ordering::Relaxed)),
        requested_ns: load(&slot.requested_ns),
        burned_ns: load(&slot.burned_ns),
        trace: trace.filter(|_| session.source == crate::session::SOURCE_BPF),
    }
}

/// Every task that was released, by number.
pub fn tasks(memory: &RunMemory, session: &Session, has_specs: bool) -> Vec<TaskOutcome> {
    (0..memory.nr_slots())
        .map(|id| task_outcome(memory.slot(id), id, session, has_specs))
        .filter(|task| task.pid != 0)
        .collect()
}

fn ppm(difference: i128, of: u128) -> Option<i64> {
    (of > 0).then(|| {
        let ppm = difference * 1_000_000 / of as i128;
        ppm.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    })
}

impl SelfCheck {
    /// Compares the sums over `tasks`. Requested work leaves out tasks that the end of the run cut
    /// off, because their last operation is unfinished.
    pub fn of(tasks: &[TaskOutcome]) -> Self {
        let sum = |get: &dyn Fn(&TaskOutcome) -> u64| -> u128 {
            tasks.iter().map(|task| u128::from(get(task))).sum()
        };
        let finished: Vec<&TaskOutcome> =
            tasks.iter().filter(|task| task.ended_ns.is_some()).collect();
        let sum_finished = |get: &dyn Fn(&TaskOutcome) -> u64| -> u128 {
            finished.iter().map(|task| u128::from(get(task))).sum()
        };
        let requested = sum_finished(&|task| task.requested_ns);
        let burned = sum_finished(&|task| task.burned_ns);
        let ran = sum_finished(&|task| task.run_ns);
        let difference = |a: u128, b: u128| a as i128 - b as i128;
        let mut check = Self {
            calibration_error_ppm: ppm(difference(burned, requested), requested)
                .map(i64::unsigned_abs),
            overhead_ppm: ppm(difference(ran, requested), requested),
            ..Self::default()
        };
        if tasks.iter().any(|task| task.trace.is_some()) {
            let trace =
                |get: &dyn Fn(&TraceSums) -> u64| sum(&|task| task.trace.as_ref().map_or(0, get));
            let delay = sum(&|task| task.run_delay_ns);
            let off = difference(trace(&|sums| sums.kernel_delay_ns), delay);
            let waits = trace(&|sums| sums.nr_waits);
            check.run_delay_error_ppm = ppm(off, delay).map(i64::unsigned_abs);
            check.run_delay_error_ns_per_wait =
                (waits > 0).then(|| (off.unsigned_abs() / waits) as u64);
            let waits_off = |task: &TaskOutcome| {
                task.trace.map_or(0, |sums| sums.nr_waits.abs_diff(task.nr_slices))
            };
            check.nr_waits_off = Some(tasks.iter().map(waits_off).sum());
            let run = sum(&|task| task.run_ns);
            check.run_error_ppm = ppm(difference(trace(&|sums| sums.run_ns), run), run);
        }
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_compares_sums_and_leaves_out_what_is_not_there() {
        let task = TaskOutcome {
            ended_ns: Some(9),
            requested_ns: 1_000_000,
            burned_ns: 1_001_000,
            run_ns: 1_010_000,
            run_delay_ns: 500_000,
            ..TaskOutcome::default()
        };
        let check = SelfCheck::of(std::slice::from_ref(&task));
        assert_eq!(check.calibration_error_ppm, Some(1_000));
        assert_eq!(check.overhead_ppm, Some(10_000));
        assert_eq!(check.run_delay_error_ppm, None);
        let traced = TaskOutcome {
            trace: Some(TraceSums {
                run_ns: 1_009_899,
                run_delay_ns: 500_300,
                kernel_delay_ns: 500_100,
                nr_waits: 10,
            }),
            nr_slices: 12,
            ..task.clone()
        };
        let check = SelfCheck::of(&[traced]);
        assert_eq!(check.run_delay_error_ppm, Some(200));
        assert_eq!(check.run_delay_error_ns_per_wait, Some(10));
        assert_eq!(check.run_error_ppm, Some(-100));
        assert_eq!(check.nr_waits_off, Some(2));
        let cut_off = TaskOutcome { ended_ns: None, ..task };
        assert_eq!(SelfCheck::of(&[cut_off]).calibration_error_ppm, None);
    }
}
