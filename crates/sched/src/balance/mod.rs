// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPUs for fair tasks: placement at wake-up and fork, and load balancing.
//!
//! The rules need only a few figures of the fair class ([`FairQueues`]), not its order of tasks, so
//! CFS and EEVDF share them; [`BalanceRules`] names the differences. [`domains`] defines which CPUs
//! balance with each other. `select` places wake-ups and `idlest` forks. `stats` computes
//! statistics of groups, `busiest` decides whether, from where and how much to move. `sums` gives
//! the same results without asking every CPU. `detach` selects the tasks, and `when` the times,
//! including those of idle CPUs without a tick.
//!
//! Source: Linux kernel/sched/fair.c, 6.1.192, 6.12.117, 6.18.2 and 7.1.5. Left out: clusters,
//! asymmetric capacity, energy-aware placement, NUMA balancing of memory, clamps of utilisation;
//! costs of balancing are not charged to a CPU.
//!
//! [`domains`]: crate::boundary::domains

mod busiest;
mod detach;
pub mod early;
mod idlest;
mod select;
mod stats;
mod sums;
mod when;

pub use when::kicked_by;

use crate::boundary::core::Core;
use crate::boundary::domains::Domains;
use crate::boundary::explain::{Fact, Step, StepKind, StepLog};
use schedlab_model::{CpuId, CpuMask, Machine, Nanos, Policy, TaskId};

/// What placement and balancing need of the fair class: its figures, its list of tasks, and its
/// part in moving a task. All averages are those of the kernel's PELT (pelt.c), on its scale: 1,024
/// is one CPU in full use, or one runnable task of nice 0.
pub trait FairQueues {
    /// Fair tasks on `cpu`, in all groups, the running one included; from 6.12 on without those
    /// whose dequeue is delayed (`cfs.h_nr_running`, `cfs.h_nr_runnable`).
    fn h_nr_running(&self, cpu: CpuId) -> u32;

    /// Fair tasks on `cpu` whose dequeue is delayed.
    fn h_nr_delayed(&self, cpu: CpuId) -> u32;

    /// Whether `cpu` has tasks and all of them are SCHED_IDLE (`sched_idle_cpu`).
    fn sched_idle_cpu(&self, core: &Core, cpu: CpuId) -> bool;

    /// Updates the averages of `cpu` (`update_blocked_averages`).
    fn update_averages(&mut self, core: &Core, cpu: CpuId);

    /// Load of the root queue of `cpu` (`cfs.avg.load_avg`).
    fn cpu_load(&self, cpu: CpuId) -> u64;

    /// Utilisation of the root queue of `cpu`: the greater of its average and the estimates of its
    /// tasks (`cpu_util_cfs`).
    fn cpu_util(&self, cpu: CpuId) -> u64;

    /// Runnable average of the root queue of `cpu` (`cfs.avg.runnable_avg`).
    fn cpu_runnable(&self, cpu: CpuId) -> u64;

    /// All these figures of `cpu`, for statistics of groups.
    fn cpu_figures(&self, cpu: CpuId) -> CpuFigures {
        CpuFigures {
            load: self.cpu_load(cpu),
            util: self.cpu_util(cpu),
            runnable: self.cpu_runnable(cpu),
            h_nr_running: self.h_nr_running(cpu),
        }
    }

    /// CPUs whose figures may have changed since the last call; `None`: unknown. See
    /// [`Core::take_touched`].
    fn take_touched(&mut self) -> Option<CpuMask> {
        None
    }

    /// Whether some task may be SCHED_IDLE.
    fn may_have_sched_idle(&self) -> bool {
        true
    }

    /// Load of `task`, scaled down the hierarchy of groups (`task_h_load`).
    fn task_h_load(&self, task: TaskId) -> u64;

    /// Utilisation of `task` (`task_util`).
    fn task_util(&self, task: TaskId) -> u64;

    /// When `task` last ran or was charged; 0 if never (`se.exec_start`).
    fn exec_start(&self, task: TaskId) -> Nanos;

    /// Whether `task` is the next or last buddy of its queue.
    fn is_buddy(&self, task: TaskId) -> bool;

    /// Tail of the list of fair tasks of `cpu`: the least recently queued or set running
    /// (`rq->cfs_tasks`).
    fn tasks_tail(&self, cpu: CpuId) -> Option<TaskId>;

    /// The task before `task` in that list, towards the head.
    fn tasks_before(&self, task: TaskId) -> Option<TaskId>;

    /// Moves `task` to the head of its list.
    fn tasks_move_to_head(&mut self, task: TaskId);

    /// Counts how often `waker` switches from one wakee to another (`record_wakee`).
    fn record_wakee(&mut self, core: &Core, waker: TaskId, task: TaskId);

    /// How often `task` switched wakees (`wakee_flips`).
    fn wakee_flips(&self, task: TaskId) -> u32;

    /// Replaces the CPU that `task` used recently by `cpu`; returns the old one.
    fn swap_recent_used_cpu(&mut self, task: TaskId, cpu: CpuId) -> Option<CpuId>;

    /// Average length of the idle periods of `cpu` (`rq->avg_idle`).
    fn avg_idle(&self, cpu: CpuId) -> Nanos;

    /// Records that `cpu` goes idle at `now`, or (`None`) found work after all (`rq->idle_stamp`).
    fn set_idle_stamp(&mut self, cpu: CpuId, now: Option<Nanos>);

    /// Limits `avg_idle` to twice `cost` (`rq->max_idle_balance_cost`).
    fn set_max_idle_balance_cost(&mut self, cpu: CpuId, cost: Nanos);

    /// Whether the group of `task` is throttled on `cpu` (throttled_lb_pair tests this for two
    /// CPUs).
    fn is_throttled_on(&self, _core: &Core, _task: TaskId, _cpu: CpuId) -> bool {
        false
    }

    /// Removes waiting `task` from `from` and assigns it to `to`, without queueing it there
    /// (detach_task). The dequeue of a sleeper that is delayed stays so.
    fn detach_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId);

    /// Queues detached `task` on `to` (attach_task). With `preempt` it requests a reschedule if the
    /// task should run before the running one. Without it, `to` is about to pick.
    fn attach_task(&mut self, core: &mut Core, task: TaskId, to: CpuId, preempt: bool);
}

/// Figures of a CPU; see the methods of [`FairQueues`] with these names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuFigures {
    /// `cpu_load`.
    pub load: u64,
    /// `cpu_util`.
    pub util: u64,
    /// `cpu_runnable`.
    pub runnable: u64,
    /// `h_nr_running`.
    pub h_nr_running: u32,
}

/// The differences between versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceRules {
    /// Whether cores count, not only CPUs (6.12). Idle CPUs then relieve cores with several tasks,
    /// groups are compared by tasks for each core, and a wholly idle core balances first.
    pub by_core: bool,
    /// Whether failures raise the limit on the utilisation that one attempt moves, not only on the
    /// load (6.12).
    pub relaxes_util: bool,
    /// Whether delayed sleepers move only to even out load (6.18).
    pub leaves_delayed: bool,
    /// Whether a CPU with only SCHED_IDLE tasks counts as busy for another SCHED_IDLE task (7.1).
    pub idle_policy_waits: bool,
    /// Whether a sync wake-up counts delayed sleepers of the waker's CPU (a bug of 6.12 to 6.15).
    pub sync_counts_delayed: bool,
    /// Whether the first idle thread of a busy core balances, and the first CPU of the group too (a
    /// bug of 6.6-rc).
    pub two_balance: bool,
    /// Whether an attempt looks at all tasks while none could be moved (a bug of 6.1 to 6.9).
    pub walks_pinned: bool,
}

impl BalanceRules {
    /// Rules of 6.1.192.
    pub const LINUX_6_1: Self = Self {
        by_core: false,
        relaxes_util: false,
        leaves_delayed: false,
        idle_policy_waits: false,
        sync_counts_delayed: false,
        two_balance: false,
        walks_pinned: false,
    };
    /// Rules of 6.12.117.
    pub const LINUX_6_12: Self = Self { by_core: true, relaxes_util: true, ..Self::LINUX_6_1 };
    /// Rules of 6.18.2.
    pub const LINUX_6_18: Self = Self { leaves_delayed: true, ..Self::LINUX_6_12 };
    /// Rules of 7.1.5.
    pub const LINUX_7_1: Self = Self { idle_policy_waits: true, ..Self::LINUX_6_18 };
}

/// Features of kernel/sched/features.h that placement and balancing use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceFeatures {
    /// CACHE_HOT_BUDDY: a buddy of its queue counts as cache-hot.
    pub cache_hot_buddy: bool,
    /// WA_IDLE: an idle CPU decides between the waker's CPU and the task's previous one.
    pub wa_idle: bool,
    /// WA_WEIGHT: the loads of these two CPUs decide.
    pub wa_weight: bool,
    /// WA_BIAS: the previous CPU's load counts slightly more.
    pub wa_bias: bool,
    /// SIS_UTIL: the busier a cache is, the fewer of its CPUs a wake-up searches.
    pub sis_util: bool,
    /// LB_MIN: tasks with little load do not move.
    pub lb_min: bool,
    /// NI_RANDOM: CPUs about to go idle search as often as searches have helped (7.0, 6.12.65,
    /// 6.1.160). Kernels without it behave as if it were off.
    pub ni_random: bool,
    /// NI_RATE: the rarer attempts are, the larger the share of them that is made (7.1).
    pub ni_rate: bool,
}

impl BalanceFeatures {
    /// Defaults of kernels before NI_RANDOM.
    pub const DEFAULT: Self = Self {
        cache_hot_buddy: true,
        wa_idle: true,
        wa_weight: true,
        wa_bias: true,
        sis_util: true,
        lb_min: false,
        ni_random: false,
        ni_rate: false,
    };
    /// Defaults of 7.0, and of the stable releases that took over NI_RANDOM.
    pub const LINUX_7_0: Self = Self { ni_random: true, ..Self::DEFAULT };
    /// Defaults of 7.1.
    pub const LINUX_7_1: Self = Self { ni_rate: true, ..Self::LINUX_7_0 };
}

/// Settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceOptions {
    /// Rules.
    pub rules: BalanceRules,
    /// Features.
    pub features: BalanceFeatures,
    /// How long a task counts as cache-hot after it ran (`migration_cost`, 500 us).
    pub migration_cost: Nanos,
    /// Maximum number of tasks examined in one attempt (`nr_migrate`, 32).
    pub nr_migrate: u32,
    /// What an attempt of a CPU that is about to go idle costs it (ns). It decides whether the next
    /// one is worth the expected idle time.
    pub newidle_cost: Nanos,
    /// What it costs in addition for each CPU of the domain (ns).
    pub newidle_cpu_cost: Nanos,
}

/// Recent success of the attempts of a CPU about to go idle (from 7.0 on).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NewidleRecord {
    /// Attempts, including skipped ones; halved when they reach 1,024.
    calls: u32,
    /// Attempts that pulled a task, each multiplied by the number that it represents; halved
    /// together with `calls`.
    successes: u32,
    /// How many of 1,024 attempts are made.
    ratio: u32,
    /// Time of the last update.
    renewed_at: Nanos,
    /// The draw of the next attempt, if it was needed before it.
    foreseen: Option<Option<u32>>,
}

impl NewidleRecord {
    /// The record of a new domain: it makes one half of the attempts (sd_init).
    const NEW: Self =
        Self { calls: 512, successes: 256, ratio: 512, renewed_at: 0, foreseen: None };
}

/// The variable state of a domain for one CPU (`struct sched_domain`).
#[derive(Clone, Copy, Debug)]
struct DomainState {
    /// Jiffy of the last periodic attempt.
    last_balance: u64,
    /// Time between two attempts (ms).
    balance_interval: u64,
    /// Number of attempts that moved nothing since the last one that did.
    nr_balance_failed: u32,
    max_newidle_lb_cost: Nanos,
    last_decay_max_lb_cost: u64,
    newidle: NewidleRecord,
}

/// State of a CPU.
#[derive(Clone, Debug)]
struct CpuState {
    /// First jiffy whose tick balances.
    next_balance: u64,
    max_idle_balance_cost: Nanos,
    /// The CPU to which the running task must be pushed (`active_balance`, `push_cpu`).
    push_cpu: Option<CpuId>,
    /// Share of the CPU that higher classes use.
    higher: stats::HigherShare,
    /// What that left to fair tasks when the CPU balanced last (`cpu_capacity`), 1 to 1,024.
    capacity: u64,
    /// First jiffy in which the CPU computes it again if it is about to go idle.
    next_capacity: u64,
    domains: Vec<DomainState>,
}

/// Shared state of the CPUs of a last-level cache (`struct sched_domain_shared`).
#[derive(Clone, Copy, Debug)]
struct LlcState {
    has_idle_cores: bool,
    nr_idle_scan: u32,
}

/// Placement and balancing of one machine.
#[derive(Debug)]
pub struct Balancer {
    options: BalanceOptions,
    domains: Domains,
    cpus: Vec<CpuState>,
    /// State by domain number; used if the domain is a last-level cache.
    llcs: Vec<LlcState>,
    /// By domain number and group: whether a lower level failed because of affinity
    /// (`sgc->imbalance`).
    imbalanced: Vec<Vec<bool>>,
    /// Number of set flags, by domain number.
    nr_imbalanced: Vec<u32>,
    /// Sums of large domains; see [`sums`].
    sums: sums::Sums,
    /// Whether some CPU has two or more tasks (`rd->overload`).
    overload: bool,
    /// First jiffy at which a busy CPU's tick makes an idle CPU balance (`nohz.next_balance`).
    nohz_next_balance: u64,
    /// Whether a CPU went idle since the last update (`nohz.needs_update`).
    nohz_needs_update: bool,
    /// First jiffy at which a busy CPU's tick refreshes the averages of idle CPUs
    /// (`nohz.next_blocked`).
    nohz_next_blocked: u64,
    /// What it did since the last explained pick, if an observer asks.
    audit: Option<StepLog>,
}

impl Balancer {
    /// Records steps from now on.
    pub fn begin_audit(&mut self) {
        self.audit = Some(StepLog::default());
    }

    /// Hands over the steps.
    pub fn drain_steps(&self, into: &mut Vec<Step>) {
        if let Some(audit) = &self.audit {
            audit.drain(into);
        }
    }

    fn note(&self, kind: StepKind, cpu: CpuId, facts: impl FnOnce() -> Vec<Fact>) {
        if let Some(audit) = &self.audit {
            audit.add(Step { kind, cpu, who: None, facts: facts() });
        }
    }

    /// The tunables `migration_cost` and `nr_migrate` have new values.
    pub fn set_limits(&mut self, migration_cost: Nanos, nr_migrate: u32) {
        (self.options.migration_cost, self.options.nr_migrate) = (migration_cost, nr_migrate);
    }

    /// Features were switched.
    pub fn set_features(&mut self, features: BalanceFeatures) {
        self.options.features = features;
    }

    /// A balancer for `machine`.
    pub fn new(options: BalanceOptions, machine: &Machine) -> Self {
        let domains = Domains::new(&machine.topology);
        let cpus = (0..machine.nr_cpus())
            .map(|cpu| CpuState {
                next_balance: 0,
                max_idle_balance_cost: options.migration_cost,
                push_cpu: None,
                higher: stats::HigherShare::default(),
                capacity: stats::SCALE,
                next_capacity: 0,
                domains: domains
                    .iter(CpuId(cpu))
                    .map(|domain| DomainState {
                        last_balance: 0,
                        // Until time 0 a launcher's CPUs have found nothing to move.
                        balance_interval: match machine.set_up_ns {
                            0 => domain.min_interval_ms(),
                            _ => domain.max_interval_ms(),
                        },
                        nr_balance_failed: 0,
                        max_newidle_lb_cost: 0,
                        last_decay_max_lb_cost: 0,
                        newidle: NewidleRecord::NEW,
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
        let imbalanced: Vec<_> = all.map(|domain| vec![false; domain.groups.len()]).collect();
        Self {
            options,
            audit: None,
            cpus,
            llcs,
            nr_imbalanced: vec![0; imbalanced.len()],
            imbalanced,
            sums: sums::Sums::new(options.rules.by_core, &domains),
            overload: false,
            nohz_next_balance: 0,
            nohz_needs_update: false,
            nohz_next_blocked: 0,
            domains,
        }
    }

    /// Records that the class has queued and counted a task on `cpu`.
    #[inline]
    pub fn task_queued(&mut self, core: &Core, cpu: CpuId) {
        self.overload |= core.rq(cpu).nr_running >= 2;
    }

    /// Whether the running task of `cpu` is about to be pushed away. Until that is done
    /// ([`Balancer::push_running`]) the class picks nothing there, as if the stopper thread ran.
    #[inline]
    pub fn is_pushing(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].push_cpu.is_some()
    }

    /// Whether `cpu` is idle, or has only SCHED_IDLE tasks, which `task` preempts.
    #[inline]
    fn is_idle_for(&self, core: &Core, fair: &impl FairQueues, task: TaskId, cpu: CpuId) -> bool {
        core.idle_cpu(cpu)
            || fair.may_have_sched_idle()
                && self.counts_as_idle(core, task)
                && fair.sched_idle_cpu(core, cpu)
    }

    /// Whether a CPU with only SCHED_IDLE tasks counts as idle for `task`.
    #[inline]
    fn counts_as_idle(&self, core: &Core, task: TaskId) -> bool {
        !self.options.rules.idle_policy_waits || core.task(task).attr.policy != Policy::Idle
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
