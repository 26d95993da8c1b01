// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the setup has left in the kernel's scheduler settles before the tasks of a guest are
//! released, so that they begin as new ones do.
//!
//! - A kernel prefers the CPUs where a task has been. Until the roll call is over every task uses
//!   only the last of its CPUs, where the launcher is, as in the simulator. Otherwise its first CPU
//!   would be where the setup happened to fork and wake it.
//! - Threads of the kernel that follow the setup's exits (RCU's) are done before the roll call, and
//!   before each task in it: looking whether a task sleeps gives RCU's thread work for some ticks.
//!   A task that sleeps while they wait keeps a lag, which then decides who is first.
//! - Policies are set after the roll call, at which each task goes to sleep alone and so leaves its
//!   queue without a lag. A real-time task would keep the one of its setup.
//! - CFS (to 6.5) keeps the virtual runtime of a sleeper, and lets it begin at most half a latency
//!   behind the queue's minimum (`place_entity` in kernel/sched/fair.c). The tasks of a setup lie
//!   closer together than that. A process therefore runs in each group until all queues have moved
//!   on by more; then all tasks begin at the same place. Policies are set after that: a real-time
//!   task keeps how far it was from the minimum (`detach_task_cfs_rq`) until it is fair.
//! - A scheduler for sched_ext keeps what it has seen of a task: its virtual time, how often it
//!   slept, whom it woke. So tasks are born with the launcher's policy, and come to the scheduler
//!   when all are set up. Their first callback is `ops.enable`, as for the simulator's.
//! - A kernel takes CPUs that are equally good in turn (`cpumask_any_and_distribute`). Each CPU
//!   remembers which one it chose last, and the setup makes it choose, too. So the
//!   launcher lets all CPUs choose the last one before the run.
//! - A kernel balances a domain at longer intervals, up to half a second, after it has found only
//!   tasks that may not move, as those of a setup. So it makes new domains when all tasks are there
//!   (`partition_sched_domains`). Their intervals grow to the usual longest one up to time 0.
//! - A fair server goes on with the period that the last fair task before the run has begun, such
//!   as a thread of the kernel. Its parameters are therefore set again just before the run.

use super::{Launcher, Stop, failed, leave_policy, take_policy};
use crate::cgroup::{CpuController, GROUP_PREFIX};
use crate::{machine, sys};
use schedlab_model::CpuMask;
use schedlab_model::kernel::KernelVersion;

/// Time (ns) in which the kernel's threads finish what exits and closed files have left to them:
/// some ticks.
const FINISH_NS: u64 = 60_000_000;

/// The longest time (ns) that a roll call waits for this: half of the calm before a run.
const FINISH_NS_MAX: u64 = 6_000_000_000;

/// How a roll call keeps out of the way of a task.
pub(super) struct RollCalm {
    /// Time (ns) before a task is called, in which the kernel's threads finish.
    pub(super) before_ns: u64,
    /// Time (ns) until the first look at a task that was called. A look takes the CPU from it.
    pub(super) look_ns: u64,
}

/// CPU time (ns) of the process in each group: more than half of the latency of a CPU (6 ms).
const OUTRUN_NS: u64 = 5_000_000;

/// Longest time (ns) that it takes in a group with a limit.
const OUTRUN_NS_MAX: u64 = 50_000_000;

/// The first kernel whose sleepers keep a lag instead of a virtual runtime.
const EEVDF: KernelVersion = KernelVersion::series(6, 6);

impl Launcher<'_> {
    /// Lets the fair servers of the run's CPUs begin with its first fair task, where the
    /// kernel has such servers.
    pub(super) fn renew_servers(&self) -> Result<(), Stop> {
        for cpu in self.plan.cpus.iter() {
            let path = format!("/sys/kernel/debug/sched/fair_server/cpu{}/runtime", cpu.0);
            if !std::path::Path::new(&path).exists() {
                continue;
            }
            // The launcher becomes a fair task there for a moment, which starts the server. 6.12
            // corrupts the bandwidth of SCHED_DEADLINE if the server is stopped (dl_server_stop),
            // and prints a warning, which takes 4 ms.
            let is_there = sys::sched_setaffinity(0, &CpuMask::only(cpu)).is_ok();
            if is_there && leave_policy().is_ok() {
                take_policy(sys::RESET_ON_FORK).map_err(failed("setting the launcher's policy"))?;
                rewrite(&path);
            }
        }
        let _ = sys::sched_setaffinity(0, &self.plan.launcher_cpus);
        Ok(())
    }

    /// Lets the kernel make new domains, if the pace asks for calm and there are several CPUs: a
    /// group has the first CPU for itself for a moment. No task of the run may be kept from it by
    /// that, so all sleep on other CPUs, and none has SCHED_DEADLINE yet.
    ///
    /// A kernel that refuses it keeps the intervals that the setup has left.
    pub(super) fn renew_domains(&self) {
        let Some(CpuController::V2(root)) = CpuController::detect().filter(|_| self.gathers())
        else {
            return;
        };
        let Some(first) = self.plan.cpus.first_cpu() else { return };
        let switch = root.join("cgroup.subtree_control");
        let enabled = std::fs::read_to_string(&switch).unwrap_or_default();
        let was_on = enabled.split_whitespace().any(|name| name == "cpuset");
        let _ = std::fs::write(&switch, "+cpuset");
        let dir = root.join(format!("{GROUP_PREFIX}domains"));
        if std::fs::create_dir(&dir).is_ok() {
            let write = |name: &str, text: &str| std::fs::write(dir.join(name), text);
            let _ = write("cpuset.cpus", &first.0.to_string())
                .and_then(|()| write("cpuset.cpus.partition", "root"))
                .and_then(|()| write("cpuset.cpus.partition", "member"));
            let _ = std::fs::remove_dir(&dir);
        }
        if !was_on {
            let _ = std::fs::write(&switch, "-cpuset");
        }
    }

    /// Lets each CPU of the run choose the last of them, as in the simulator at time 0. A new
    /// affinity makes the CPU that sets it choose, even if the task need not move.
    pub(super) fn end_turns(&self) {
        let Some(last) = self.plan.cpus.iter().last() else { return };
        let go = |mask: &CpuMask| _ = sys::sched_setaffinity(0, mask);
        let home = CpuMask::only(last);
        go(&home);
        for cpu in self.plan.cpus.iter().filter(|cpu| *cpu != last) {
            go(&CpuMask::only(cpu));
            go(&home);
        }
        go(&self.plan.launcher_cpus);
    }

    /// Lets the tasks have the launcher's policy until their own is set, if the pace asks for calm
    /// and a scheduler for sched_ext is loaded.
    pub(super) fn lend_policy(&mut self) {
        let is_wanted = self.plan.pace.calm_ns > 0 && self.outranks && !self.plan.tasks_set_own;
        self.lends_policy =
            is_wanted && machine::sched_ext_scheduler().is_some() && take_policy(0).is_ok();
    }

    /// Whether tasks use only one of their CPUs until the roll call is over: the pace asks for
    /// calm.
    pub(super) fn gathers(&self) -> bool {
        self.plan.pace.calm_ns > 0 && !self.plan.tasks_set_own && self.plan.cpus.weight() > 1
    }

    /// The CPUs that a task of description `spec` may use.
    fn own_cpus(&self, spec: u32) -> CpuMask {
        self.plan.attr(spec).affinity.unwrap_or(self.plan.cpus)
    }

    /// The last CPU that a task of description `spec` may use.
    pub(super) fn last_cpu(&self, spec: u32) -> CpuMask {
        let own = self.own_cpus(spec);
        own.iter().last().map_or(own, CpuMask::only)
    }

    /// Lets a task of description `spec`, which sleeps, use all its CPUs, if it was kept on one.
    ///
    /// # Errors
    /// The kernel refuses it. The task would stay on one CPU, and nobody would know.
    pub(super) fn let_go(&self, pid: u32, spec: u32) -> Result<(), Stop> {
        if !self.gathers() {
            return Ok(());
        }
        let set = sys::sched_setaffinity(pid, &self.own_cpus(spec));
        set.map_err(|error| self.failed_task(spec, &format!("setting its CPUs: {error}")))
    }

    /// How the roll call of `count` tasks keeps out of their way. If the pace asks for calm,
    /// nothing is left for the kernel's threads when a task runs, and it sleeps before the first
    /// look.
    pub(super) fn calm_of_roll(&self, count: u32) -> RollCalm {
        if self.plan.pace.calm_ns == 0 {
            return RollCalm { before_ns: 0, look_ns: 50_000 };
        }
        let before_ns = FINISH_NS.min(FINISH_NS_MAX / u64::from(count.max(1)));
        RollCalm { before_ns, look_ns: 1_000_000 }
    }

    /// Whether queues move on from the tasks: the pace asks for calm and the kernel has CFS.
    pub(super) fn outruns_tasks(&self) -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let has_cfs = KernelVersion::of_release(&release).is_some_and(|version| version < EEVDF);
        has_cfs && self.plan.pace.calm_ns > 0 && self.outranks
    }

    /// Lets the queues of all groups move on from the tasks, the innermost first. A process joins
    /// its group itself: while the launcher waits in the kernel for such a move, another one would
    /// use up its time in the wrong group.
    pub(super) fn outrun_tasks(&self) -> Result<(), Stop> {
        for group in self.plan.groups.ids().rev() {
            let Some(pid) = sys::fork().map_err(failed("making a process"))? else {
                sys::default_signals();
                let _ = self.plan.groups.join(sys::getpid(), group);
                burn();
                sys::exit_now(0)
            };
            let _ = sys::reap(pid);
        }
        Ok(())
    }
}

/// Writes what a file holds: the kernel then forgets the period and budget of a server.
fn rewrite(path: &str) {
    if let Ok(runtime) = std::fs::read(path) {
        let _ = std::fs::write(path, runtime);
    }
}

fn burn() {
    let until = sys::monotonic_ns() + OUTRUN_NS_MAX;
    while sys::thread_cpu_ns() < OUTRUN_NS && sys::monotonic_ns() < until {
        std::hint::spin_loop();
    }
}
