// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains the decisions of a class with the numbers that it compared, as data.
//!
//! The core asks right after [`crate::SchedClass::pick_task`], before the picked task leaves its
//! queue, so the numbers are those of that pick. Nothing is computed or kept unless an observer
//! asks. Another crate makes the text for people. The facts here can be checked by a program: a
//! [`Rule`] names the facts that it orders by, so a test can compare the pick with them.

use crate::boundary::core::Core;
use schedlab_model::trace::DispatchQueue;
use schedlab_model::{CgroupId, CpuId, Nanos, TaskId};
use std::cell::RefCell;

/// Value of a fact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// A number, in the fact's unit, limited to the range of 64 bits.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Word(&'static str),
}

/// A value that a class compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Name; the kernel's name if it has one.
    pub name: &'static str,
    /// Value.
    pub value: Value,
    /// `ns`, `vns` (virtual time: ns at nice 0) or empty for counts and words.
    pub unit: &'static str,
}

impl Fact {
    /// A plain number.
    pub fn number(name: &'static str, value: impl TryInto<i64>) -> Self {
        Self::with_unit(name, value, "")
    }

    /// The priorities that a wake-up compares: those of the running and of the woken task.
    pub fn prios(running: impl TryInto<i64>, woken: impl TryInto<i64>) -> Vec<Self> {
        vec![Self::number("running.prio", running), Self::number("woken.prio", woken)]
    }

    /// A time in ns.
    pub fn ns(name: &'static str, value: impl TryInto<i64>) -> Self {
        Self::with_unit(name, value, "ns")
    }

    /// A virtual time.
    pub fn vns(name: &'static str, value: i64) -> Self {
        Self::with_unit(name, value, "vns")
    }

    /// A yes or no.
    pub const fn flag(name: &'static str, value: bool) -> Self {
        Self { name, value: Value::Flag(value), unit: "" }
    }

    /// A word.
    pub const fn word(name: &'static str, value: &'static str) -> Self {
        Self { name, value: Value::Word(value), unit: "" }
    }

    fn with_unit(name: &'static str, value: impl TryInto<i64>, unit: &'static str) -> Self {
        let value = Value::Number(value.try_into().unwrap_or(i64::MAX));
        Self { name, value, unit }
    }
}

/// A candidate of a pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// A task.
    Task(TaskId),
    /// The tasks of a control group on this CPU, together.
    Group(CgroupId),
}

/// A candidate of a pick, with its numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The task or group.
    pub who: Who,
    /// Whether it was running at the time of the pick.
    pub running: bool,
    /// Whether the rule considered it; under EEVDF: whether it was eligible.
    pub considered: bool,
    /// Whether it was picked.
    pub chosen: bool,
    /// Its numbers.
    pub facts: Vec<Fact>,
}

impl Candidate {
    /// The value of the number called `name` among its facts.
    pub fn number(&self, name: &str) -> Option<i64> {
        number_in(&self.facts, name)
    }
}

/// The number called `name` among `facts`.
pub fn number_in(facts: &[Fact], name: &str) -> Option<i64> {
    facts.iter().find(|fact| fact.name == name).and_then(|fact| match fact.value {
        Value::Number(number) => Some(number),
        _ => None,
    })
}

/// The rule by which a class picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The class does not tell.
    Unstated,
    /// There was no candidate.
    Empty,
    /// The class holds its tasks back on purpose, for this reason.
    HeldBack(&'static str),
    /// There was only one candidate.
    Alone,
    /// The candidate with the least value of these facts; earlier facts count first.
    Least {
        /// Names of the facts.
        keys: &'static [&'static str],
        /// The facts in words.
        text: &'static str,
    },
    /// The candidate with the greatest value of the first fact. If equal, the one with the least
    /// value of the other facts; earlier facts count first.
    Greatest {
        /// Names of the facts.
        keys: &'static [&'static str],
        /// The facts in words.
        text: &'static str,
    },
    /// The running task continues, for this reason.
    Keeps(&'static str),
    /// A task was selected in advance and goes before the others, for this reason.
    Named(&'static str),
    /// The holder of the drawn ticket: facts `first_ticket` and `tickets`.
    Drawn {
        /// The ticket's number, from 0.
        ticket: u64,
        /// Number of all tickets.
        total: u64,
    },
}

impl Rule {
    /// Name of the rule, for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unstated => "unstated",
            Self::Empty => "empty",
            Self::HeldBack(_) => "held-back",
            Self::Alone => "alone",
            Self::Least { .. } => "least",
            Self::Greatest { .. } => "greatest",
            Self::Keeps(_) => "keeps",
            Self::Named(_) => "named",
            Self::Drawn { .. } => "drawn",
        }
    }

    /// Phrase for people.
    pub fn text(&self) -> String {
        match self {
            Self::Unstated => "the class does not say why".into(),
            Self::Empty => "no runnable task of this class here".into(),
            Self::HeldBack(why) => format!("held back: {why}"),
            Self::Alone => "the only runnable one".into(),
            Self::Least { text, .. } | Self::Greatest { text, .. } => (*text).into(),
            Self::Keeps(why) => format!("the running one goes on: {why}"),
            Self::Named(why) => (*why).into(),
            Self::Drawn { ticket, total } => {
                format!("ticket {ticket} was drawn of {total} (numbered from 0)")
            }
        }
    }
}

/// One pick: of a class, or within one control group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contest {
    /// The class.
    pub class: &'static str,
    /// The control group whose members were compared; `None` if the class has no groups.
    pub group: Option<CgroupId>,
    /// The rule.
    pub rule: Rule,
    /// Numbers of the whole queue, not of a candidate.
    pub facts: Vec<Fact>,
    /// The candidates, in the order of the queue, the running one first.
    pub candidates: Vec<Candidate>,
    /// Number of candidates that are not listed.
    pub nr_omitted: u64,
}

impl Contest {
    /// A pick of no task.
    pub const fn nobody(class: &'static str, rule: Rule) -> Self {
        Self { class, group: None, rule, facts: Vec::new(), candidates: Vec::new(), nr_omitted: 0 }
    }

    /// The candidate that was picked.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }
}

/// Something that a class did to its state between two picks, for the rules of the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// An entity got another weight. Facts: `queued`, `old`, `new`; `lag` and `lag_after`, against
    /// the average before the change; `limit` of the lag; for a group `empty`; for a queue with a
    /// least virtual runtime, how far the least of the list is `ahead` of it.
    Reweighted,
    /// An entity left its queue. Facts: `lag` against the average of the list with it, `limit`, and
    /// the lag that it keeps, `vlag`.
    Left,
    /// An entity was placed under EEVDF. Facts: `lag` that it brings, whether it is `eligible`.
    Placed,
    /// An entity was placed at a wake-up under CFS. Facts: its virtual runtime `before`, `after`.
    PlacedCfs,
    /// The end of a slice asked for another pick. Fact: `nr_queued` of the queue.
    SliceEnded,
    /// A waking task told a running SCHED_IDLE one to leave.
    IdlePreempted,
    /// A throttled queue of a group may run again. Fact: its time, `remaining`.
    Unthrottled,
    /// The pool of a group was refilled. Facts: its time `before` and `after`.
    Refilled,
    /// Counts and minima of a queue at the pick. Facts, where they exist: `h_nr_runnable` and
    /// `found`; `min_slice` and `found`; how many groups with tasks count as leaving,
    /// `delayed_busy`.
    Queue,
    /// The load of a queue at the pick. Facts: `load`, and the `sum` of its entities' weights.
    Load,
    /// The weight of a group that has tasks on the CPU. Facts: `weight`, the `least` that it may
    /// be, and the `most`.
    GroupWeight,
    /// Load averages of the CPU's tasks at the pick. Facts: the greatest utilisation, `util`, and
    /// how far a task's time runnable is `short` of it at most.
    Averages,
    /// The fair server of the CPU. Facts: `active`, `queued`, `timer`, its `runtime` and
    /// `deadline`, when it was last charged, `charged_at`, and how often it has stopped without
    /// having been picked, `early_stops`.
    Server,
    /// A wake-up compared the waker's CPU and the previous one. Facts: `sync`, `idle` for the
    /// waker's CPU, `nr_running` and `nr_delayed` there, `chosen` for its choice.
    SyncWakeup,
    /// A CPU may balance its group. Fact: `passing`, how many CPUs of the group may.
    Balances,
    /// Tasks were looked at to be moved. Facts: `examined` and `limit`.
    Examined,
}

/// A [`StepKind`] with its numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What happened.
    pub kind: StepKind,
    /// The CPU whose queue it is about.
    pub cpu: CpuId,
    /// The entity, if it is about one; of a group's pool, the group.
    pub who: Option<Who>,
    /// The numbers.
    pub facts: Vec<Fact>,
}

impl Step {
    /// The number called `name`.
    pub fn number(&self, name: &str) -> Option<i64> {
        number_in(&self.facts, name)
    }

    /// Whether the flag called `name` is set.
    pub fn flag(&self, name: &str) -> bool {
        self.facts.iter().any(|fact| fact.name == name && fact.value == Value::Flag(true))
    }
}

/// Most steps that wait for the next explained pick.
const STEPS_MAX: usize = 4_096;

/// Steps that nobody has asked for yet; of many, the first.
#[derive(Debug, Default)]
pub struct StepLog {
    steps: RefCell<Vec<Step>>,
}

impl StepLog {
    /// Keeps a step, unless too many wait.
    pub fn add(&self, step: Step) {
        let mut steps = self.steps.borrow_mut();
        if steps.len() < STEPS_MAX {
            steps.push(step);
        }
    }

    /// Hands over the steps.
    pub fn drain(&self, into: &mut Vec<Step>) {
        into.append(&mut self.steps.borrow_mut());
    }
}

/// Collects the explanations of a pick.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The picks, from the highest class and the outermost group inwards.
    pub contests: Vec<Contest>,
    /// What classes did since the last explained pick on any CPU. Classes may forget some.
    pub steps: Vec<Step>,
    /// Most candidates of a pick that are listed, in addition to the picked, the running and the
    /// focus.
    pub limit: usize,
    /// A task that is always listed.
    pub focus: Option<TaskId>,
}

impl Explanation {
    /// Lists at most `limit` candidates for each pick, and always `focus`.
    pub const fn new(limit: usize, focus: Option<TaskId>) -> Self {
        Self { contests: Vec::new(), steps: Vec::new(), limit, focus }
    }
}

/// Callbacks with which a class explains itself, for errors, results and observers. They do not
/// change what it decides.
pub trait Explain {
    /// Name for errors and explanations.
    fn name(&self) -> &'static str;

    /// An observer may ask in this run. The class may record data for its answers from now on.
    /// Called first. Default: nothing.
    fn will_be_asked(&mut self) {}

    /// Notes for the reader of the result: a short name for programs, and a sentence. Called at the
    /// end of a run. Default: none.
    fn notes(&self, _core: &Core) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Statistics of bandwidth control for `group`; `None` if it has no limit. Default: `None`.
    fn bandwidth_stats(&self, _core: &Core, _group: CgroupId) -> Option<BandwidthStats> {
        None
    }

    /// Explains the last [`crate::SchedClass::pick_task`] on `cpu`: the candidates, and the numbers
    /// that it compared. Called only for an observer, right after the pick. Default: one pick
    /// without a rule.
    fn explain_pick(&self, _core: &Core, _cpu: CpuId, into: &mut Explanation) {
        into.contests.push(Contest::nobody(self.name(), Rule::Unstated));
    }

    /// The numbers that decided whether `woken`, which just became runnable, preempts `curr`. Both
    /// are of this class. Called only for an observer, after [`crate::SchedClass::wakeup_preempt`].
    /// Default: none.
    fn explain_preempt(&self, _core: &Core, _woken: TaskId, _curr: TaskId) -> Vec<Fact> {
        Vec::new()
    }

    /// The virtual runtime of `task` (ns at nice 0), relative to the min_vruntime of its queue. May
    /// be called at every switch and tick. Default: `None`.
    fn vruntime(&self, _core: &Core, _task: TaskId) -> Option<i64> {
        None
    }

    /// Whether the class has dispatch queues. Asked before the run. Default: no.
    fn has_queues(&self) -> bool {
        false
    }

    /// Calls `tell` with the length of each dispatch queue of the class. Called at every switch and
    /// wake-up if [`Explain::has_queues`]. Default: none.
    fn queue_lengths(&self, _tell: &mut dyn FnMut(DispatchQueue, u32)) {}

    /// The numbers of `task` on which the class's decisions depend. Called only for an observer.
    /// Default: none.
    fn explain_task(&self, _core: &Core, _task: TaskId) -> Vec<Fact> {
        Vec::new()
    }
}

/// Statistics of bandwidth control for a group, as in cpu.stat of cgroup v2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BandwidthStats {
    /// Periods that ended while the period timer ran.
    pub nr_periods: u64,
    /// Periods at whose end the group was throttled on some CPU.
    pub nr_throttled: u64,
    /// Time throttled (ns), summed over the CPUs.
    pub throttled_ns: Nanos,
    /// Periods in which the group used more than its quota (cpu.max.burst).
    pub nr_bursts: u64,
    /// CPU time (ns) beyond the quota in those periods.
    pub burst_ns: Nanos,
}
