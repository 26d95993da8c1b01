// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules: what must hold in every run, as a table.
//!
//! A rule of the trace sees events only, so it checks any lane. A rule of the state sees what the
//! classes of a model state of their picks ([`crate::states`]). A rule of pairs compares two runs
//! ([`crate::relations`]). The first breach ends the judgement, because later ones may follow from
//! it.

mod budgets;
mod changers;
mod due;
mod groups;
mod idle;
mod limits;
mod realtime;
mod share;
mod table;
mod unchecked;
mod wait;

pub(crate) use limits::limited;
pub use limits::{LIMITS, Limit};
pub(crate) use share::{cfs_latency, longest_slice};
pub use table::RULES;
pub use unchecked::{UNCHECKED, Unchecked};

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
