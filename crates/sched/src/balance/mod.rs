// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPU fair tasks run on: choice at wake-up and fork, and load balancing.
//!
//! The rules need only a few figures of the fair class ([`FairQueues`]), not its order of tasks, so
//! CFS and EEVDF share them; [`Generation`] names the differences. Subjects: [`domains`] who
//! balances with whom, `select` wake-ups, `idlest` forks, `stats` statistics of groups, `busiest`
//! whether, from where and how much, `detach` which tasks, `when` at which times, idle CPUs without
//! a tick included.
//!
//! Source: Linux kernel/sched/fair.c, 6.1.158 and 6.12.63. Left out: clusters, asymmetric capacity
//! and misfit tasks, energy-aware placement, NUMA balancing of memory, utilisation estimates
//! (util_est) and clamps; costs of balancing are not charged to a CPU. Statistics of idle CPUs are
//! decayed when they are read, not when an idle CPU is kicked to do so.
//!
//! [`domains`]: crate::domains

mod busiest;
mod detach;
mod idlest;
mod select;
mod stats;
mod when;

use crate::core::Core;
use crate::domains::Domains;
use crate::lists::PrioLists;
use schedlab_model::{CpuId, CpuMask, Machine, Nanos, TaskId};
use std::sync::Arc;

/// Figures of the fair class that placement and balancing use, and its part in moving a task. All
/// averages are those of the kernel's PELT (pelt.c), on its scale: 1,024 is one CPU in full use, or
/// one runnable task of nice 0.
pub trait FairQueues {
    /// Fair tasks on `cpu`, in all groups, the running one included; from 6.12 on without those
    /// whose dequeue is delayed (`cfs.h_nr_running`, `cfs.h_nr_runnable`).
    fn h_nr_running(&self, cpu: CpuId) -> u32;

    /// Those of them that count as idle (SCHED_IDLE; `cfs.idle_h_nr_running`).
    fn idle_h_nr_running(&self, cpu: CpuId) -> u32;

    /// Load of the root queue of `cpu` (`cfs.avg.load_avg`).
    fn cpu_load(&self, core: &Core, cpu: CpuId) -> u64;

    /// Utilisation of the root queue of `cpu` (`cfs.avg.util_avg`).
    fn cpu_util(&self, core: &Core, cpu: CpuId) -> u64;

    /// Runnable average of the root queue of `cpu` (`cfs.avg.runnable_avg`).
    fn cpu_runnable(&self, core: &Core, cpu: CpuId) -> u64;

    /// Load of `task`, scaled down the hierarchy of groups (`task_h_load`).
    fn task_h_load(&self, core: &Core, task: TaskId) -> u64;

    /// Utilisation of `task` (`task_util`).
    fn task_util(&self, core: &Core, task: TaskId) -> u64;

    /// When `task` last ran or was charged; 0 if never (`se.exec_start`).
    fn exec_start(&self, core: &Core, task: TaskId) -> Nanos;

    /// Whether `task` is the next or last buddy of its queue.
    fn is_buddy(&self, task: TaskId) -> bool;

    /// Takes waiting `task` off `from` to move it (deactivate_task). `false`: it only slept with a
    /// delayed dequeue, which is complete now, and there is nothing to move.
    fn detach_task(&mut self, core: &mut Core, task: TaskId, from: CpuId) -> bool;

    /// Puts `task`, whose CPU is `to` already, on the queue there (activate_task). With `preempt`
    /// it asks for a reschedule if the task comes before what runs there; without, `to` is about to
    /// pick.
    fn attach_task(&mut self, core: &mut Core, task: TaskId, to: CpuId, preempt: bool);
}

/// Kernel generation whose rules hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Generation {
    /// 6.1.158.
    V6_1,
    /// 6.12.63.
    V6_12,
}

/// Settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceOptions {
    /// Rules.
    pub generation: Generation,
    /// How long after it ran a task counts as cache-hot (`migration_cost`, 500 us).
    pub migration_cost: Nanos,
    /// Tasks looked at in one attempt (`nr_migrate`, 32).
    pub nr_migrate: u32,
    /// Modelled cost of one attempt of a CPU that is about to go idle, in ns. It is charged to no
    /// CPU; it decides whether an attempt is worth the expected idle time.
    pub newidle_cost: Nanos,
}

impl BalanceOptions {
    /// The kernel's defaults.
    pub fn new(generation: Generation) -> Self {
        Self { generation, migration_cost: 500_000, nr_migrate: 32, newidle_cost: 2_000 }
    }
}

/// What changes of a domain as one CPU sees it (`struct sched_domain`).
#[derive(Clone, Copy, Debug)]
struct DomainState {
    /// Jiffy of the last periodic attempt.
    last_balance: u64,
    /// Time between two attempts, ms.
    balance_interval: u64,
    /// Attempts that moved nothing since the last that did.
    nr_balance_failed: u32,
    max_newidle_lb_cost: Nanos,
    last_decay_max_lb_cost: u64,
}

/// What is kept of a CPU.
#[derive(Clone, Debug)]
struct CpuState {
    /// Jiffy from which on a tick balances.
    next_balance: u64,
    avg_idle: Nanos,
    /// Since when idle, until the next wake-up here.
    idle_stamp: Option<Nanos>,
    max_idle_balance_cost: Nanos,
    /// The running task is to be pushed to this CPU (`active_balance`, `push_cpu`).
    push_cpu: Option<CpuId>,
    /// Share of the CPU that higher classes use.
    higher: stats::HigherShare,
    domains: Vec<DomainState>,
}

/// What the CPUs of a last-level cache share (`struct sched_domain_shared`).
#[derive(Clone, Copy, Debug)]
struct LlcState {
    has_idle_cores: bool,
    nr_idle_scan: u32,
}

/// What is kept of a task.
#[derive(Clone, Copy, Debug, Default)]
struct TaskState {
    last_wakee: Option<TaskId>,
    wakee_flips: u32,
    wakee_flip_decay_ts: u64,
    recent_used_cpu: CpuId,
}

/// Placement and balancing of one machine.
#[derive(Debug)]
pub struct Balancer {
    options: BalanceOptions,
    domains: Arc<Domains>,
    cpus: Vec<CpuState>,
    tasks: Vec<TaskState>,
    /// Fair tasks of each CPU, the least recently queued or run at the tail (`cfs_tasks`).
    cfs_tasks: PrioLists,
    /// By domain number; used where the domain is a last-level cache.
    llcs: Vec<LlcState>,
    /// By domain number and group: a lower level failed because of affinity (`sgc->imbalance`).
    imbalanced: Vec<Vec<bool>>,
    /// Some CPU has two tasks or more (`rd->overload`).
    overload: bool,
    /// Jiffy from which on a busy CPU's tick makes an idle one balance (`nohz.next_balance`).
    nohz_next_balance: u64,
}

impl Balancer {
    /// For `machine`.
    pub fn new(options: BalanceOptions, machine: &Machine) -> Self {
        let domains = Arc::new(Domains::new(&machine.topology));
        let cpus = (0..machine.nr_cpus())
            .map(|cpu| CpuState {
                next_balance: 0,
                avg_idle: 1_000_000,
                idle_stamp: Some(0),
                max_idle_balance_cost: options.migration_cost,
                push_cpu: None,
                higher: stats::HigherShare::default(),
                domains: domains
                    .iter(CpuId(cpu))
                    .map(|domain| DomainState {
                        last_balance: 0,
                        balance_interval: domain.min_interval_ms(),
                        nr_balance_failed: 0,
                        max_newidle_lb_cost: 0,
                        last_decay_max_lb_cost: 0,
                    })
                    .collect(),
            })
            .collect();
        let all = (0..domains.nr_domains() as u32).map(|index| domains.domain(index));
        let llcs = all
            .clone()
            .map(|domain| LlcState {
                has_idle_cores: domains.smt_active(),
                nr_idle_scan: domain.weight,
            })
            .collect();
        let imbalanced = all.map(|domain| vec![false; domain.groups.len()]).collect();
        Self {
            options,
            cpus,
            tasks: Vec::new(),
            cfs_tasks: PrioLists::new(machine.nr_cpus()),
            llcs,
            imbalanced,
            overload: false,
            nohz_next_balance: 0,
            domains,
        }
    }

    /// A task exists.
    pub fn task_new(&mut self, task: TaskId) {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, TaskState::default());
        }
        self.cfs_tasks.add_task(task);
    }

    /// The class has queued and counted `task` on `cpu`.
    pub fn task_queued(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        self.cfs_tasks.remove(task);
        self.cfs_tasks.add(cpu, task, 0, true);
        self.overload |= core.rq(cpu).nr_running >= 2;
    }

    /// The class has taken `task` off its queue.
    pub fn task_dequeued(&mut self, task: TaskId) {
        self.cfs_tasks.remove(task);
    }

    /// `task` starts to run.
    pub fn task_set_next(&mut self, task: TaskId) {
        self.cfs_tasks.requeue(task, true);
    }

    /// A task was woken on `cpu`: learns how long the CPU was idle.
    pub fn task_woken(&mut self, core: &Core, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if let Some(since) = state.idle_stamp.take() {
            let sample = (core.now - since) as i64;
            let average = state.avg_idle as i64;
            let max = 2 * state.max_idle_balance_cost;
            state.avg_idle = ((average + (sample - average) / 8) as Nanos).min(max);
        }
    }

    /// A new task is being forked on `cpu`.
    pub fn task_fork(&mut self, cpu: CpuId, task: TaskId) {
        self.tasks[task.index()].recent_used_cpu = cpu;
    }

    /// Whether the running task of `cpu` is about to be pushed away: until that is done
    /// ([`Balancer::push_running`]) the class picks nothing there, as if the stopper thread ran.
    #[inline]
    pub fn is_pushing(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].push_cpu.is_some()
    }

    /// Whether `cpu` is idle, or has only SCHED_IDLE work.
    #[inline]
    fn is_idle_ish(core: &Core, fair: &dyn FairQueues, cpu: CpuId) -> bool {
        core.idle_cpu(cpu) || Self::is_sched_idle(core, fair, cpu)
    }

    /// `sched_idle_cpu`: all tasks of `cpu` are SCHED_IDLE, and there is one.
    #[inline]
    fn is_sched_idle(core: &Core, fair: &dyn FairQueues, cpu: CpuId) -> bool {
        let nr_running = core.rq(cpu).nr_running;
        nr_running > 0 && nr_running == fair.idle_h_nr_running(cpu)
    }

    /// Whether all hardware threads of the core of `cpu` are idle.
    fn is_core_idle(&self, core: &Core, cpu: CpuId) -> bool {
        self.domains.smt_mask(cpu).iter().all(|sibling| core.idle_cpu(sibling))
    }

    fn new_idle_core(&mut self, core: &Core, cpu: CpuId) {
        if !self.domains.smt_active() {
            return;
        }
        let others = self.domains.smt_mask(cpu).and_not(&CpuMask::only(cpu));
        if let Some(llc) = self.domains.llc_id(cpu)
            && others.iter().all(|sibling| core.idle_cpu(sibling))
        {
            self.llcs[llc as usize].has_idle_cores = true;
        }
    }
}
