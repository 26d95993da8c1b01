// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules: what must hold in every run, as a table.
//!
//! A rule of the trace sees events only, so it checks any lane. A rule of the state sees what the
//! classes of a model state of their picks ([`crate::states`]). A rule of pairs compares two runs
//! ([`crate::relations`]). The first breach ends the judgement, because later ones may follow from
//! it.

mod budgets;
mod groups;
mod idle;
mod limits;
mod realtime;
mod share;
mod wait;

pub(crate) use limits::limited;
pub use limits::{LIMITS, Limit};
pub(crate) use share::{cfs_latency, longest_slice};

use crate::case::Case;
use crate::subject::{Family, Subject};
use crate::world::World;
use schedlab_model::program::SchedTunable;
use schedlab_model::time::{NSEC_PER_MSEC as MS, NSEC_PER_USEC as US, tick_nsec};
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{
    CgroupId, Change, Costs, CpuId, Event, EventKind, MutexProtocol, Nanos, ObjectId, ObjectKind,
    Op, Preempt, SchedAttr, TaskId, TraceSink, Workload,
};
use schedlab_trace::TraceCheck;
use std::fmt;

/// What a rule needs to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Events.
    Trace,
    /// The state that classes explain.
    State,
    /// Two runs, of a case and of the same with a change that must not matter.
    Pair,
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Name, for programs and people.
    pub name: &'static str,
    /// What must hold.
    pub statement: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// The schedulers and tasks that it holds for.
    pub holds_for: &'static str,
    /// How far a run may be from the statement.
    pub tolerance: &'static str,
    /// What looks like a breach and is none.
    pub traps: &'static str,
    /// What it needs to see.
    pub needs: Needs,
    /// Its checker for a case; `None` if the rule does not hold there. Rules of the state and of
    /// pairs, and those that the engine or the trace checker enforce, have none.
    make: Make,
}

type Make = Option<for<'c> fn(&Context<'c>) -> Option<Box<dyn Check + 'c>>>;

/// Rules are equal if their names are.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What two schedulers are compared by. It is no rule that a run must keep.
pub static DECISIONS: Rule = Rule {
    name: "same-decisions",
    statement: "Both schedulers make the same decisions.",
    source: "the other scheduler",
    holds_for: "two schedulers that are compared",
    tolerance: "the choice among equal tasks",
    traps: "a difference is no fault of either",
    needs: Needs::Trace,
    make: None,
};

/// A breach of a rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Breach {
    /// The rule.
    pub rule: &'static Rule,
    /// The kind of fault, of a rule that has several; else empty.
    pub kind: &'static str,
    /// When (ns).
    pub time_ns: Nanos,
    /// The CPU, if it is about one.
    pub cpu: Option<CpuId>,
    /// Name of the task, if it is about one.
    pub task: Option<String>,
    /// What was found, and what is allowed.
    pub text: String,
}

impl Breach {
    /// Whether both are breaches of the same rule, by the same kind of fault.
    pub fn is_like(&self, other: &Self) -> bool {
        self.rule == other.rule && self.kind == other.kind
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: at {} ns", self.rule.name, self.time_ns)?;
        if let Some(cpu) = self.cpu {
            write!(f, " on CPU {cpu}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Copying a message or a block, which may take place in the kernel, takes less.
const COPY_NS: Nanos = 10 * US;

/// What a checker knows of its case.
#[derive(Clone, Copy)]
pub(crate) struct Context<'c> {
    pub case: &'c Case,
    pub subject: &'c Subject,
    pub family: Family,
    pub tick_ns: Nanos,
}

impl<'c> Context<'c> {
    pub fn new(case: &'c Case, subject: &'c Subject) -> Self {
        let tick_ns = tick_nsec(case.machine.hz);
        Self { case, subject, family: subject.family(), tick_ns }
    }

    pub fn workload(&self) -> &'c Workload {
        &self.case.workload
    }

    pub fn nr_cpus(&self) -> u32 {
        self.case.machine.nr_cpus()
    }

    /// How long a CPU may go on in the kernel before it acts on a request: costs of the machine,
    /// system calls that may not be preempted, and threads outside of the workload.
    pub fn kernel_ns(&self) -> Nanos {
        let costs = &self.case.machine.costs;
        if *costs == Costs::ZERO {
            return COPY_NS + self.subject.outside_ns;
        }
        let call = costs.fork_ns + costs.exit_ns + 20 * costs.syscall_ns + costs.tick_ns;
        let switch = 4 * (costs.context_switch_ns + costs.wakeup_ns) + costs.migration_llc_ns;
        let nr_tasks = self.workload().nr_released();
        let outside = COPY_NS + self.subject.outside_ns;
        call + switch + nr_tasks * (costs.pick_entry_ns + costs.wakeup_ns) + outside
    }

    /// Delay of a preemption among fair tasks.
    pub fn lazy_ns(&self) -> Nanos {
        match self.subject.scheduler.preempt {
            Preempt::Lazy => self.tick_ns,
            _ => 0,
        }
    }

    /// Whether a mutex may lend the priority of a task to another.
    pub fn lends_priority(&self) -> bool {
        let lends = |kind: &ObjectKind| match kind {
            ObjectKind::Mutex { protocol } => *protocol != MutexProtocol::None,
            _ => false,
        };
        self.workload().objects.iter().any(|object| lends(&object.kind))
    }

    /// Whether `group` or a group above it has a limit of CPU time.
    pub fn is_limited(&self, group: CgroupId) -> bool {
        let groups = &self.workload().cgroups;
        let mut at = group.index();
        loop {
            if self.workload().is_ever_limited(CgroupId(at as u32)) {
                return true;
            }
            if at == 0 {
                return false;
            }
            at = groups[at].parent.index();
        }
    }

    /// Whether the limit of `group` changes.
    pub fn changes_limit(&self, group: CgroupId) -> bool {
        let of =
            |change: &Change| matches!(change, Change::CpuMax { group: of, .. } if *of == group);
        self.workload().changes().any(of)
    }

    /// Whether groups have CPUs of their own at some time.
    pub fn has_cpusets(&self) -> bool {
        let changes = self.workload().changes().any(|change| matches!(change, Change::Cpus { .. }));
        changes || self.workload().has_cpusets()
    }

    /// Values that tasks give to `tunable`.
    pub fn tuned(&self, tunable: SchedTunable) -> impl Iterator<Item = u64> {
        let ops = self.workload().tasks.iter().flat_map(|task| &task.program.ops);
        ops.filter_map(move |op| match op {
            Op::Tune { tunable: of, value } if *of == tunable => Some(*value),
            _ => None,
        })
    }

    /// Whether the limit of real-time tasks changes.
    pub fn changes_rt_limit(&self) -> bool {
        let mut values =
            self.tuned(SchedTunable::RtRuntime).chain(self.tuned(SchedTunable::RtPeriod));
        values.next().is_some()
    }

    /// Real-time limits and fair servers hold nobody back before this time.
    pub fn rt_free_ns(&self) -> Nanos {
        if self.changes_rt_limit() { 0 } else { RT_FREE_NS }
    }

    /// All attributes that tasks ever have.
    pub fn attrs(&self) -> impl Iterator<Item = &'c SchedAttr> + use<'c> {
        self.workload().tasks.iter().flat_map(|task| {
            let changed = task.program.ops.iter().filter_map(|op| match op {
                Op::SetAttr(attr) => Some(&**attr),
                _ => None,
            });
            changed.chain([&task.attr])
        })
    }

    /// Whether a program has an operation of this kind.
    pub fn has_op(&self, spec: usize, is: fn(&Op) -> bool) -> bool {
        self.workload().tasks[spec].program.ops.iter().any(is)
    }
}

/// Where breaches go; only the first counts.
#[derive(Default)]
pub(crate) struct Found {
    pub rule: Option<&'static Rule>,
    pub breach: Option<Breach>,
}

impl Found {
    pub fn add(&mut self, time_ns: Nanos, cpu: Option<CpuId>, task: Option<&str>, text: String) {
        if self.breach.is_none()
            && let Some(rule) = self.rule
        {
            self.breach =
                Some(Breach { rule, kind: "", time_ns, cpu, task: task.map(str::to_owned), text });
        }
    }
}

/// A checker of one rule over one run.
pub(crate) trait Check {
    /// The state of `world` holds until `to`.
    fn pass(&mut self, _world: &World<'_>, _to: Nanos, _found: &mut Found) {}

    /// `event` has just been applied to `world`.
    fn event(&mut self, _world: &World<'_>, _event: &Event, _found: &mut Found) {}
}

/// Judges a trace by all rules that need nothing else.
pub struct Judge<'c> {
    world: World<'c>,
    checks: Vec<(&'static Rule, Box<dyn Check + 'c>)>,
    custody: TraceCheck,
    found: Found,
    /// Nothing more can be judged: events were lost, or a task is unknown.
    is_blind: bool,
}

impl<'c> Judge<'c> {
    /// A judge of a run of `case` under `subject`.
    pub fn new(case: &'c Case, subject: &'c Subject) -> Self {
        let context = Context::new(case, subject);
        let make = |rule: &'static Rule| {
            let make = rule.make.filter(|_| !limits::is_limited(&context, rule.name))?;
            Some((rule, make(&context)?))
        };
        Self {
            world: World::new(&case.workload, case.machine.nr_cpus()),
            checks: RULES.iter().filter_map(make).collect(),
            custody: TraceCheck::with_moves(),
            found: Found::default(),
            is_blind: false,
        }
    }

    /// The first breach.
    pub fn finish(self) -> Option<Breach> {
        self.found.breach
    }

    fn each(&mut self, f: impl Fn(&mut (dyn Check + 'c), &World<'c>, &mut Found)) {
        for (rule, check) in &mut self.checks {
            self.found.rule = Some(rule);
            f(&mut **check, &self.world, &mut self.found);
        }
    }

    fn pass(&mut self, to: Nanos) {
        if to > self.world.now {
            self.each(|check, world, found| check.pass(world, to, found));
            self.world.pass(to);
        }
    }

    fn is_done(&self) -> bool {
        self.is_blind || self.found.breach.is_some()
    }
}

impl TraceSink for Judge<'_> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.custody.task(id, info);
        self.is_blind |= !self.world.announce(info);
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.custody.object(id, info);
    }

    fn event(&mut self, event: &Event) {
        if self.is_done() {
            return;
        }
        self.custody.event(event);
        if let Some(violation) = self.custody.violation() {
            self.found.rule = rule("custody");
            let text = violation.what.clone();
            self.found.add(event.time_ns, Some(event.cpu), None, text);
            return;
        }
        if matches!(event.kind, EventKind::Lost { .. }) {
            self.is_blind = true;
            return;
        }
        self.pass(event.time_ns);
        self.world.apply(event);
        self.each(|check, world, found| check.event(world, event, found));
    }

    fn end(&mut self, end_ns: Nanos) {
        if !self.is_done() {
            self.pass(end_ns);
        }
    }
}

/// The rule called `name`.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// CPU at each switch in.
struct Affinity;

impl Check for Affinity {
    fn event(&mut self, world: &World<'_>, event: &Event, found: &mut Found) {
        let task = match event.kind {
            EventKind::Switch { next: Some(next), .. } => next,
            EventKind::Phase { task, .. } => task,
            _ => return,
        };
        let seen = world.task(task);
        if !seen.allowed.contains(event.cpu) {
            let text = format!(
                "task {:?} runs on CPU {}; it may use {}",
                seen.name, event.cpu, seen.allowed
            );
            found.add(event.time_ns, Some(event.cpu), Some(&seen.name), text);
        }
    }
}

/// CPUs of the group at each switch in.
struct Cpuset;

impl Check for Cpuset {
    fn event(&mut self, world: &World<'_>, event: &Event, found: &mut Found) {
        let EventKind::Switch { next: Some(task), .. } = event.kind else { return };
        let seen = world.task(task);
        let Some(attr) = seen.attr else { return };
        let Some(cpus) = world.group_cpus(attr.cgroup) else { return };
        if !cpus.contains(event.cpu) {
            let text =
                format!("task {:?} runs on CPU {}; its group has CPU {cpus}", seen.name, event.cpu);
            found.add(event.time_ns, Some(event.cpu), Some(&seen.name), text);
        }
    }
}

/// RT limits and fair servers act after this time at the earliest.
const RT_FREE_NS: Nanos = 900 * MS;

/// The rules of all runs. The names are part of the interface.
pub static RULES: [Rule; 46] = [
    Rule {
        name: "answers",
        statement: "Every answer of a class is possible: the task is runnable, allowed, in one \
                    place, and never lost.",
        source: "kernel/sched/core.c, as the engine checks it",
        holds_for: "all",
        tolerance: "none",
        traps: "none: the engine knows the state",
        needs: Needs::Trace,
        make: None,
    },
    Rule {
        name: "custody",
        statement: "A task is on one CPU at a time, a CPU runs one task, and only a runnable task \
                    is switched in.",
        source: "sched_switch, sched_wakeup",
        holds_for: "all",
        tolerance: "none",
        traps: "lost events; the wake-up of a running task is legal",
        needs: Needs::Trace,
        make: None,
    },
    Rule {
        name: "affinity",
        statement: "A task runs only on CPUs of its affinity.",
        source: "sched_setaffinity(2)",
        holds_for: "all",
        tolerance: "none",
        traps: "a change of the running task: the phases around it say which affinity holds",
        needs: Needs::Trace,
        make: Some(|_| Some(Box::new(Affinity))),
    },
    Rule {
        name: "cpuset",
        statement: "A task starts to run only on CPUs of its group.",
        source: "cpuset.cpus, Documentation/admin-guide/cgroup-v2.rst",
        holds_for: "all",
        tolerance: "none",
        traps: "a running task leaves after the change; a group of whose CPUs the group above has \
                none gets those; changes that overlap or are not marked by phases; CPUs that go \
                offline",
        needs: Needs::Trace,
        make: Some(|_| Some(Box::new(Cpuset))),
    },
    Rule {
        name: "idle-own-queue",
        statement: "A CPU does not idle while a task waits on its own queue.",
        source: "pick_next_task, kernel/sched/core.c",
        holds_for: "all",
        tolerance: "the time of a system call, if the machine has costs",
        traps: "throttled groups, throttled DEADLINE tasks",
        needs: Needs::Trace,
        make: Some(idle::own_queue),
    },
    Rule {
        name: "idle-other-queue",
        statement: "A CPU does not idle while a task that may use it waits elsewhere.",
        source: "the claim of the scheduler; kernel/sched/fair.c, load balancing",
        holds_for: "textbook schedulers that claim to be work-conserving; kernels from 6.1 on, if \
                    all tasks are equal, fair and free to move",
        tolerance: "textbook: the time of a system call; kernels: 100 ms",
        traps: "kernels balance load, not tasks: light, pinned or real-time tasks",
        needs: Needs::Trace,
        make: Some(idle::other_queue),
    },
    Rule {
        name: "rt-strict",
        statement: "No task of lower priority runs while a real-time task that may run there \
                    waits.",
        source: "sched(7), SCHED_FIFO",
        holds_for: "kernels from 6.1 on: every CPU that the task may use; earlier ones and \
                    sched_ext: the CPU on whose queue it waits",
        tolerance: "a tick for a task on another CPU's queue, and the time of a system call",
        traps: "the real-time limit and the fair server, so only the first 900 ms count; mutexes \
                that lend priorities; tasks that become runnable at one instant; early kernels' \
                children, which take their parents' place; 2.4 sends one CPU for several tasks",
        needs: Needs::Trace,
        make: Some(realtime::strict),
    },
    Rule {
        name: "rt-order",
        statement: "Among real-time tasks of equal priority on a CPU the first in the queue runs, \
                    and a SCHED_FIFO task is never preempted by an equal one.",
        source: "sched(7), SCHED_FIFO",
        holds_for: "kernels from 6.1 on, sched_ext",
        tolerance: "none",
        traps: "changes of attributes; a SCHED_RR task whose slice ends as it is preempted; a task \
                that cannot leave its CPU goes before one that can, so on several CPUs all must \
                be pinned; real kernels from 6.15 on move a task that exits to the tail",
        needs: Needs::Trace,
        make: Some(realtime::order),
    },
    Rule {
        name: "rr-slice",
        statement: "A SCHED_RR task gives way to an equal one at the end of its slice of 100 ms.",
        source: "sched(7), SCHED_RR; RR_TIMESLICE",
        holds_for: "kernels from 6.1 on, sched_ext",
        tolerance: "two ticks and the time of a system call",
        traps: "slices count in ticks",
        needs: Needs::Trace,
        make: Some(realtime::rr_slice),
    },
    Rule {
        name: "rt-limit",
        statement: "Real-time tasks do not keep fair ones from a CPU for more than a second.",
        source: "sched_rt_runtime_us to 6.11, the fair server from 6.12 on",
        holds_for: "kernels from 6.1 on",
        tolerance: "two ticks and the time of a system call",
        traps: "DEADLINE tasks, limits of groups, mutexes that lend priorities",
        needs: Needs::Trace,
        make: Some(realtime::limit),
    },
    Rule {
        name: "rt-timer",
        statement: "A timer ends the period of real-time tasks that are throttled.",
        source: "do_start_rt_bandwidth, kernel/sched/rt.c",
        holds_for: "kernels that throttle, up to 6.11",
        tolerance: "none",
        traps: "the timer of a limit that comes back starts when the limit is exceeded",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "deadline-budget",
        statement: "A SCHED_DEADLINE task gets no more than its runtime in each period.",
        source: "Documentation/scheduler/sched-deadline.rst",
        holds_for: "kernels from 6.1 on, sched_ext",
        tolerance: "two runtimes, because periods move, and two ticks",
        traps: "reclaiming (GRUB); an overrun of up to a tick, which is paid back",
        needs: Needs::Trace,
        make: Some(budgets::deadline),
    },
    Rule {
        name: "quota",
        statement: "A group gets no more than the quota of its cpu.max in each period.",
        source: "Documentation/scheduler/sched-bwc.rst",
        holds_for: "schedulers that enforce cpu.max",
        tolerance: "two quotas, the burst, and for each CPU a slice of 5 ms and two ticks",
        traps: "periods start at a random time; a CPU keeps what it has not used",
        needs: Needs::Trace,
        make: Some(budgets::quota),
    },
    Rule {
        name: "share",
        statement: "Two runnable members of a group on one CPU get CPU time in the ratio of their \
                    weights.",
        source: "Stoica and Abdel-Wahab 1995; kernel/sched/fair.c",
        holds_for: "kernels from 6.1 on, all weights; textbook schedulers that claim fairness, \
                    equal tasks",
        tolerance: "kernels: 4 times the longest slice and a tick, and the latency target of CFS; \
                    textbook: 500 ms",
        traps: "sched_yield, limits, mutexes that lend priorities, changes of attributes",
        needs: Needs::Trace,
        make: Some(share::share),
    },
    Rule {
        name: "wait",
        statement: "A fair task waits no longer than its rivals' slices take at its share.",
        source: "the bound of EEVDF, and of CFS with its latency",
        holds_for: "kernels from 6.1 on; several CPUs: tasks of the root group",
        tolerance: "3 times the bound, under CFS 6 times, and 20 ms",
        traps: "real-time and DEADLINE tasks, limits, sched_yield, SCHED_IDLE",
        needs: Needs::Trace,
        make: Some(wait::wait),
    },
    Rule {
        name: "starvation",
        statement: "Among equal tasks no runnable one waits for ever.",
        source: "the claim of the scheduler to starve nobody",
        holds_for: "schedulers that claim it, if all tasks have the same attributes",
        tolerance: "1 s, and 100 ms for each task",
        traps: "attributes that differ, limits",
        needs: Needs::Trace,
        make: Some(wait::starvation),
    },
    Rule {
        name: "eevdf-pick",
        statement: "The picked entity is eligible and has the earliest deadline, unless the \
                    running one is protected or the buddy of the queue is eligible.",
        source: "pick_eevdf, kernel/sched/fair.c, against a list",
        holds_for: "kernels from 6.6 on",
        tolerance: "none",
        traps: "a protected running entity, a buddy, a lone entity",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "average",
        statement: "The average virtual runtime of a queue is the weighted average over its \
                    entities, rounded down, and each entity's lag is its distance from it.",
        source: "avg_vruntime, kernel/sched/fair.c",
        holds_for: "kernels from 6.6 on",
        tolerance: "none",
        traps: "none: the sums are exact",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "slice-range",
        statement: "A slice is between 100 us and 100 ms.",
        source: "__setparam_fair, kernel/sched/syscalls.c",
        holds_for: "kernels from 6.12 on",
        tolerance: "none",
        traps: "a group without tasks has none",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "min-vruntime",
        statement: "The least virtual runtime of a queue never falls.",
        source: "update_min_vruntime, kernel/sched/fair.c",
        holds_for: "kernels from 6.1 to 6.18",
        tolerance: "none",
        traps: "it may lag behind after a change of attributes",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "counts",
        statement: "The number of entities of a queue is the number of its members, and nr_running \
                    of a CPU the number of its tasks.",
        source: "add_nr_running, account_entity_enqueue",
        holds_for: "all; queues with limits are left out",
        tolerance: "none",
        traps: "a task with a delayed dequeue counts",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "reweight",
        statement: "A change of weight keeps an entity's lag in service time.",
        source: "reweight_eevdf, kernel/sched/fair.c",
        holds_for: "kernels from 6.6 on",
        tolerance: "two virtual ns of rounding",
        traps: "the limit of the lag cuts it; the running entity is charged first",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "least-vruntime",
        statement: "After a change of weight the least virtual runtime of the queue is not \
                    behind all its entities.",
        source: "reweight_entity and update_min_vruntime, kernel/sched/fair.c",
        holds_for: "kernels from 6.6 to 6.18",
        tolerance: "none",
        traps: "later kernels have no least virtual runtime",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "empty-group",
        statement: "A queued group keeps its weight while it has no tasks.",
        source: "update_cfs_group, kernel/sched/fair.c",
        holds_for: "kernels after 6.12.0",
        tolerance: "none",
        traps: "6.12.0 has the bug",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "lag",
        statement: "An entity leaves its queue with the lag that it had while it counted \
                    there.",
        source: "update_entity_lag, kernel/sched/fair.c, against a list",
        holds_for: "kernels from 6.6 on",
        tolerance: "none",
        traps: "the limit of the lag; delayed sleepers have another rule",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "placed",
        statement: "A placed entity with no negative lag is eligible; a wake-up under CFS \
                    moves no virtual runtime back.",
        source: "place_entity, kernel/sched/fair.c",
        holds_for: "kernels from 6.1 on",
        tolerance: "none",
        traps: "CFS moves it back after a sleep of 60 s, which no run has",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "lone",
        statement: "The end of a slice asks for no other pick if the entity is alone in \
                    its queue.",
        source: "update_curr, kernel/sched/fair.c",
        holds_for: "kernels from 6.12 on",
        tolerance: "none",
        traps: "ticks of other classes",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "idle-protection",
        statement: "A SCHED_IDLE task that a waking normal task preempts does not go on \
                    because it is protected.",
        source: "check_preempt_wakeup_fair, kernel/sched/fair.c",
        holds_for: "kernels after 6.12.0",
        tolerance: "none",
        traps: "it may still have the earliest deadline; a change of attributes \
                    protects again",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "unthrottle",
        statement: "A queue that is released has time to use.",
        source: "distribute_cfs_runtime, kernel/sched/fair.c",
        holds_for: "schedulers that enforce cpu.max",
        tolerance: "none",
        traps: "none",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "refill",
        statement: "A refill adds the quota to a group's time, up to the quota and the \
                    burst.",
        source: "__refill_cfs_bandwidth_runtime, kernel/sched/fair.c",
        holds_for: "schedulers that enforce cpu.max",
        tolerance: "none",
        traps: "none",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "least-slice",
        statement: "The least slice of a queue is that of one of its entities.",
        source: "cfs_rq_min_slice, kernel/sched/fair.c, against a list",
        holds_for: "kernels from 6.12 on",
        tolerance: "none",
        traps: "an empty queue has none",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "server-waits",
        statement: "An active fair server is queued or waits for a timer.",
        source: "dl_server_timer, kernel/sched/deadline.c",
        holds_for: "kernels from 6.12 on",
        tolerance: "none",
        traps: "none",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "server-stays",
        statement: "A fair server stops when it is picked without a task to run, not before.",
        source: "dl_server_stop, kernel/sched/fair.c up to 6.16",
        holds_for: "kernels from 6.17 on",
        tolerance: "none",
        traps: "before 6.17 it stops when the last task leaves; 7.x stops it on idle CPUs",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "delayed",
        statement: "A group whose dequeue is delayed has no tasks.",
        source: "requeue_delayed_entity, unthrottle_cfs_rq, kernel/sched/fair.c",
        holds_for: "kernels from 6.12 on",
        tolerance: "none",
        traps: "none",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "server-budget",
        statement: "A fair server uses its runtime no faster than time passes.",
        source: "update_curr_dl_se, kernel/sched/deadline.c",
        holds_for: "kernels from 6.12 on",
        tolerance: "none",
        traps: "a new period renews the runtime; a server that starts again before its deadline \
                may get less (update_dl_revised_wakeup)",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "sync-wakeup",
        statement: "A sync wake-up counts the waker's CPU as free if the waker alone is \
                    runnable there.",
        source: "wake_affine_idle, kernel/sched/fair.c",
        holds_for: "kernels from 6.12 on",
        tolerance: "none",
        traps: "delayed sleepers are not runnable",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "one-balancer",
        statement: "One CPU of a group balances it at a time.",
        source: "should_we_balance, kernel/sched/fair.c",
        holds_for: "kernels from 6.1 on",
        tolerance: "none",
        traps: "CPUs that go idle just now may do so too",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "bounded-work",
        statement: "An attempt to balance looks at no more tasks than sched_nr_migrate.",
        source: "detach_tasks, kernel/sched/fair.c",
        holds_for: "kernels from 6.1 on",
        tolerance: "none",
        traps: "none",
        needs: Needs::State,
        make: None,
    },
    Rule {
        name: "same-names",
        statement: "Names of tasks change no decision.",
        source: "a name (comm) is for people; no class of kernel/sched reads it",
        holds_for: "all",
        tolerance: "none",
        traps: "a sched_ext scheduler may treat programs by their names",
        needs: Needs::Pair,
        make: None,
    },
    Rule {
        name: "any-order",
        statement: "The order in which endless tasks are released at one instant changes no share.",
        source: "Stoica and Abdel-Wahab 1995: the lag is bounded in any order of joining",
        holds_for: "kernels from 6.1 on; textbook schedulers that claim fairness, tasks without \
                    attributes",
        tolerance: "kernels: 4 times the longest slice and a tick, and the latency target of CFS, \
                    for each level of groups; textbook: 500 ms",
        traps: "tasks that sleep: small differences of time grow; so every task is made an \
                endless loop on one CPU",
        needs: Needs::Pair,
        make: None,
    },
    Rule {
        name: "same-weight",
        statement: "An endless task that changes between SCHED_NORMAL and SCHED_BATCH, which have \
                    the same weight, keeps its share, and so do the others.",
        source: "__sched_setscheduler puts a task back with the lag that it had",
        holds_for: "kernels from 6.1 on, tasks that differ in nothing else",
        tolerance: "as any-order",
        traps: "the system calls take time on machines with costs: these have none; between two \
                nice values a slice may end; a change cuts lags at their limit, which only those \
                of unequal tasks reach",
        needs: Needs::Pair,
        make: None,
    },
    Rule {
        name: "scaled-weights",
        statement: "Weights that are all scaled alike within a group change no share of endless \
                    tasks.",
        source: "Stoica and Abdel-Wahab 1995: only ratios of weights count",
        holds_for: "kernels from 6.1 on",
        tolerance: "as any-order",
        traps: "nice values scale exactly only if they are equal; groups scale by two; a group \
                with both tasks and groups is left as it is",
        needs: Needs::Pair,
        make: None,
    },
    Rule {
        name: "one-more-group",
        statement: "Endless tasks get the same shares if all of them are within one more group.",
        source: "a group that is alone gets the whole CPU; kernel/sched/fair.c",
        holds_for: "kernels from 6.1 on",
        tolerance: "as any-order",
        traps: "each level of groups adds a slice to the bound",
        needs: Needs::Pair,
        make: None,
    },
    Rule {
        name: "other-cpu",
        statement: "A busy task that is pinned to another CPU, with which nothing is shared, \
                    changes no decision on the first.",
        source: "queues of CPUs are their own; load balancing moves no pinned task",
        holds_for: "all but sched_ext, whose schedulers may have one queue for all CPUs",
        tolerance: "none",
        traps: "the other CPU is there in both runs, idle in the first, because slices depend on \
                the number of CPUs; amounts are constant, because a task more changes what others \
                draw",
        needs: Needs::Pair,
        make: None,
    },
    Rule {
        name: "same-values",
        statement: "Writing to cpu.weight what it holds changes nothing.",
        source: "__sched_group_set_shares, kernel/sched/fair.c",
        holds_for: "kernels from 6.1 on",
        tolerance: "none: on one CPU, where the same write to an empty group costs the same",
        traps: "the time of the write itself",
        needs: Needs::Pair,
        make: None,
    },
    Rule {
        name: "same-limit",
        statement: "Writing to cpu.max what it holds changes nothing.",
        source: "tg_set_cfs_bandwidth, kernel/sched/core.c",
        holds_for: "kernels from 6.1 on, which all refill the pool",
        tolerance: "none: on one CPU, where the same write to an empty group costs the same",
        traps: "the time of the write itself",
        needs: Needs::Pair,
        make: None,
    },
];
