// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the setup has left in the kernel's scheduler settles before the tasks of a guest are
//! released, so that they begin as new ones do.
//!
//! - Threads of the kernel that follow the setup's exits (RCU's) are done before the roll call. A
//!   task that sleeps while they wait keeps a lag, which then decides who is first.
//! - CFS (to 6.5) keeps the virtual runtime of a sleeper, and lets it begin at most half a latency
//!   behind the queue's minimum (`place_entity` in kernel/sched/fair.c). The tasks of a setup lie
//!   closer together than that. A process therefore runs in each group until all queues have moved
//!   on by more; then all tasks begin at the same place. Not under schedulers for sched_ext: they
//!   would count that process as a task of the run, and some draw random numbers for it.

use super::{Launcher, Stop, failed};
use crate::sys;
use schedlab_model::kernel::KernelVersion;

/// Time (ns) in which the kernel's threads finish what exits have left to them: some ticks.
const EXITS_NS: u64 = 60_000_000;

/// CPU time (ns) of the process in each group: more than half of the latency of a CPU (6 ms).
const OUTRUN_NS: u64 = 5_000_000;

/// Longest time (ns) that it takes in a group with a limit.
const OUTRUN_NS_MAX: u64 = 50_000_000;

/// The first kernel whose sleepers keep a lag instead of a virtual runtime.
const EEVDF: KernelVersion = KernelVersion::series(6, 6);

impl Launcher<'_> {
    /// Waits until nothing is left to do for exits, if the pace asks for calm.
    pub(super) fn let_exits_pass(&self) -> Result<(), Stop> {
        if self.plan.pace.calm_ns > 0 { self.pause(EXITS_NS) } else { Ok(()) }
    }

    /// Lets the queues of all groups move on from the tasks, the innermost first, if the pace asks
    /// for calm and the kernel has CFS.
    pub(super) fn outrun_tasks(&self) -> Result<(), Stop> {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let has_cfs = KernelVersion::of_release(&release).is_some_and(|version| version < EEVDF);
        if !has_cfs || self.plan.pace.calm_ns == 0 || !self.outranks {
            return Ok(());
        }
        for group in self.plan.groups.ids().rev() {
            let Some(pid) = sys::fork().map_err(failed("making a process"))? else {
                sys::default_signals();
                burn();
                sys::exit_now(0)
            };
            let _ = self.plan.groups.join(pid, group);
            let _ = sys::reap(pid);
        }
        Ok(())
    }
}

fn burn() {
    let until = sys::monotonic_ns() + OUTRUN_NS_MAX;
    while sys::thread_cpu_ns() < OUTRUN_NS && sys::monotonic_ns() < until {
        std::hint::spin_loop();
    }
}
