// SPDX-License-Identifier: MIT OR Apache-2.0
//! The servers as members of the class: their place in the queues, their bandwidth, and the result
//! when a server is picked.
//!
//! Each CPU may have two: the fair server, and from 7.0 on the ext server for the tasks of a
//! sched_ext scheduler. While such a scheduler has all fair tasks, the ext server is active,
//! otherwise the fair server. The other one has no tasks to serve and is inactive here. (In the
//! kernel it may stay active until it notices this.) A sched_ext scheduler in partial mode has no
//! server here.
//!
//! A class cannot pick a task of another class. When the server's deadline is the earliest, this
//! class picks no task and passes the pick down ([`Core::pass_pick_down`]). The real-time class
//! then picks none either, so the fair class picks.
//!
//! Source: Linux kernel/sched/deadline.c (__pick_task_dl, dl_server_start, dl_server_stop), 7.0
//! with sched_init_dl_servers and kernel/sched/ext.c (ext_server_init, enqueue_task_scx).

use super::cbs::to_ratio;
use super::fair_server::FairServers;
use super::queue::First;
use super::{DlClass, DlOptions, token_of_inactive_server};
use crate::boundary::core::Core;
use crate::boundary::explain::Fact;
use schedlab_model::{CpuId, Policy, TaskId};

/// How the bandwidth of a server counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ServerBandwidth {
    /// Whether it counts as active bandwidth of its CPU.
    active: bool,
    /// Whether the server has stopped and the timer of its 0-lag time runs.
    non_contending: bool,
    /// Number of the last 0-lag timer; older timers are invalid.
    departure: u32,
}

/// The active servers, one for each CPU, and their bandwidth.
#[derive(Debug)]
pub(super) struct Serving {
    pub servers: FairServers,
    bandwidth: u64,
    cpus: Vec<ServerBandwidth>,
    /// Whether they are the ext servers.
    is_ext: bool,
    /// The inactive servers.
    others: Option<Box<Serving>>,
}

impl Serving {
    /// The servers of a kernel that has them.
    pub fn new(options: &DlOptions, nr_cpus: u32) -> Option<Self> {
        let (rule, runtime, period) = options.server?;
        // Numbers distinguish the timers of the two.
        let one = |runtime, period, is_ext, departure| Self {
            servers: FairServers::new((rule, options.bug), runtime, period, nr_cpus),
            bandwidth: to_ratio(period, runtime),
            cpus: vec![ServerBandwidth { departure, ..Default::default() }; nr_cpus as usize],
            is_ext,
            others: None,
        };
        let ext = options
            .ext_server
            .map(|(runtime, period)| Box::new(one(runtime, period, true, 1 << 28)));
        Some(Self { others: ext, ..one(runtime, period, false, 0) })
    }

    /// Whether the other servers should be active: a scheduler has taken all fair tasks, or has
    /// given them back.
    fn are_others_due(&self, core: &Core) -> bool {
        core.is_taken_over(Policy::Normal) != self.is_ext && self.others.is_some()
    }

    /// Activates the other servers.
    fn change(&mut self, core: &Core) {
        let Some(mut others) = self.others.take() else { return };
        std::mem::swap(self, &mut others);
        self.others = Some(others);
        self.servers.begin(core);
    }
}

impl DlClass {
    /// Starts the servers that run before the first task.
    pub(super) fn start_servers(&mut self, core: &mut Core) {
        if core.is_taken_over(Policy::Normal) {
            // A launcher under a sched_ext scheduler leaves the servers alone.
            return;
        }
        let cpus = core.cpus;
        for cpu in cpus.iter() {
            if let Some(serving) = &mut self.serving {
                serving.servers.start_early(core, cpu);
            }
            self.follow_server(core, cpu);
        }
    }

    /// Updates the fair server of `cpu`. Returns true if the CPU should pick again.
    #[inline]
    pub(super) fn update_server(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        match &self.serving {
            Some(serving) if !serving.servers.may_wait(core, cpu) => self.sync_server(core, cpu),
            _ => false,
        }
    }

    #[inline(never)]
    fn sync_server(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.serving.as_ref().is_some_and(|serving| serving.are_others_due(core)) {
            self.change_servers(core);
        }
        let Some(serving) = &mut self.serving else { return false };
        let chooses = serving.servers.sync(core, cpu);
        self.follow_server(core, cpu);
        chooses
    }

    /// Stops the active servers and activates the others.
    fn change_servers(&mut self, core: &mut Core) {
        let cpus = core.cpus;
        for cpu in cpus.iter() {
            self.stop_server(core, cpu);
        }
        if let Some(serving) = &mut self.serving {
            serving.change(core);
        }
    }

    /// Handles the timer of the server of `cpu` (`dl_server_timer`).
    pub(super) fn server_timer(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(serving) = &mut self.serving else { return };
        let chooses = serving.servers.timer(core, cpu);
        self.follow_server(core, cpu);
        if chooses {
            self.server_preempts(core, cpu);
        }
    }

    /// A task of a lower class than the running one was woken on `cpu`. If it starts the server
    /// again, in a period in which that had to run, the server is queued at once (dl_server_start).
    pub(super) fn server_hears(&mut self, core: &mut Core, cpu: CpuId) {
        let runs = |serving: &Serving| serving.servers.runs_at_once(cpu);
        if self.serving.as_ref().is_some_and(runs) && self.sync_server(core, cpu) {
            self.server_preempts(core, cpu);
        }
    }

    /// The place of the server of `cpu` has changed.
    fn server_preempts(&mut self, core: &mut Core, cpu: CpuId) {
        let queued = self.queues.server(cpu);
        match Self::dl_curr(core, cpu) {
            Some(curr) if queued.is_none_or(|deadline| deadline >= self.deadline(curr)) => {}
            _ => core.resched_curr(cpu),
        }
        if queued.is_some() && !self.pushable.is_empty(cpu) {
            self.push(core, cpu, cpu);
        }
    }

    /// Handles a change of the server of `cpu`: updates its place in the queue and its bandwidth.
    fn follow_server(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(serving) = &mut self.serving else { return };
        let (queued, active) = (serving.servers.queued(cpu), serving.servers.is_active(cpu));
        let (bw, counted) = (serving.bandwidth, &mut serving.cpus[cpu.index()]);
        let contends = counted.active && !counted.non_contending;
        if active && !contends {
            if !std::mem::replace(&mut counted.active, true) {
                self.grub.activate(cpu, bw);
            }
            counted.non_contending = false;
            counted.departure += 1;
        } else if !active && contends {
            let at = serving.servers.entity(cpu).zero_lag();
            counted.departure += 1;
            if at <= core.now {
                counted.active = false;
                self.grub.deactivate(cpu, bw);
            } else {
                counted.non_contending = true;
                let at = core.at_hrtimer_clock(at);
                core.start_timer(at, token_of_inactive_server(cpu, counted.departure));
            }
        }
        if self.queues.server(cpu) != queued {
            self.queues.set_server(cpu, queued);
            self.update_cpu(core, cpu);
        }
    }

    /// Handles the 0-lag time of the stopped server of `cpu`, if that timer is still valid.
    pub(super) fn server_inactive(&mut self, cpu: CpuId, departure: u32) {
        let mut next = self.serving.as_mut();
        while let Some(serving) = next {
            let counted = &mut serving.cpus[cpu.index()];
            // The number was part of a token, which keeps thirty bits.
            let is_meant = (counted.departure ^ departure) << 2 == 0;
            if is_meant && std::mem::take(&mut counted.non_contending) {
                counted.active = false;
                self.grub.deactivate(cpu, serving.bandwidth);
                return;
            }
            next = serving.others.as_deref_mut();
        }
    }

    /// The task that `cpu` should run. `None`: none, or the task that the fair class picks; the
    /// latter is recorded.
    pub(super) fn pick(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.update_server(core, cpu);
        let mut first = self.queues.first(cpu);
        if first == Some(First::Server) && !Self::has_fair_tasks(core, cpu) {
            if !self.server_yields(core, cpu) {
                self.stop_server(core, cpu);
            }
            first = self.queues.first(cpu);
        }
        core.pass_pick_down(cpu, first == Some(First::Server));
        match first {
            Some(First::Task(task)) => Some(task),
            _ => None,
        }
    }

    /// Whether the server of `cpu`, which has no task to run, yields instead of stopping.
    fn server_yields(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let Some(serving) = &mut self.serving else { return false };
        let yields = serving.servers.yields(core, cpu);
        if yields {
            self.follow_server(core, cpu);
        }
        yields
    }

    fn has_fair_tasks(core: &Core, cpu: CpuId) -> bool {
        core.rq(cpu).class_nr_running[usize::from(core.class_of(Policy::Normal))] > 0
    }

    fn stop_server(&mut self, core: &mut Core, cpu: CpuId) {
        if let Some(serving) = &mut self.serving {
            serving.servers.stop(cpu);
            self.follow_server(core, cpu);
        }
    }

    /// Handles the case that the server of `cpu` was picked, but the fair class picked no task.
    /// Either the task that it counted was asleep (delayed dequeue), or a sched_ext scheduler keeps
    /// it or moves it to another CPU. The server stops, and others may run.
    pub(super) fn server_found_nobody(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if !core.is_pick_passed_down(cpu) {
            return false;
        }
        core.pass_pick_down(cpu, false);
        if let Some(serving) = &mut self.serving
            && serving.is_ext
        {
            serving.servers.wait_for_next(cpu);
        }
        if !self.server_yields(core, cpu) {
            self.stop_server(core, cpu);
        }
        true
    }

    /// The state of the server of `cpu`, for the rules of the state.
    pub(super) fn server_facts(&self, cpu: CpuId) -> Option<Vec<Fact>> {
        self.serving.as_ref().map(|serving| serving.servers.facts(cpu))
    }
}
