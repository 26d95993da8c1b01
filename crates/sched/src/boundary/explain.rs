// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a class chose: the numbers that it compared, as data.
//!
//! The core asks right after [`crate::SchedClass::pick_task`], before the chosen task is taken off
//! its queue: what stands there then are the numbers of that very choice. Nothing is computed or
//! kept unless somebody asks. The text form for people is made elsewhere; here stand facts that a
//! program can check: a [`Rule`] names the facts that it orders by, so that a test can hold the
//! choice to the numbers.

use crate::boundary::core::Core;
use schedlab_model::{CgroupId, CpuId, Nanos, TaskId};

/// What a fact says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// A number, in the fact's unit; beyond 64 bits it stops at the end of the range.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Word(&'static str),
}

/// One thing that a class looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Name, the kernel's noun where it has one.
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

    /// The priorities that a wake-up compares: of the running task and of the woken one.
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

    /// Yes or no.
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

/// Who takes part in a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// A task.
    Task(TaskId),
    /// The tasks of a control group on this CPU, together.
    Group(CgroupId),
}

/// One of those among whom a class chose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Who.
    pub who: Who,
    /// It was running when the choice was made.
    pub running: bool,
    /// The rule took it into account; under EEVDF: it was eligible.
    pub considered: bool,
    /// It was chosen.
    pub chosen: bool,
    /// Its numbers.
    pub facts: Vec<Fact>,
}

impl Candidate {
    /// The value of a number among its facts.
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

/// By which rule a class chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The class does not say.
    Unstated,
    /// Nobody to choose from.
    Empty,
    /// The class holds its tasks back on purpose, for this reason.
    HeldBack(&'static str),
    /// There was only one.
    Alone,
    /// Of those considered, the least in these facts, the first one first.
    Least {
        /// Names of the facts.
        keys: &'static [&'static str],
        /// The same for people.
        text: &'static str,
    },
    /// Of those considered, the greatest in the first of these facts; of equals the least in the
    /// others, the first one first.
    Greatest {
        /// Names of the facts.
        keys: &'static [&'static str],
        /// The same for people.
        text: &'static str,
    },
    /// The running one goes on, for this reason.
    Keeps(&'static str),
    /// Somebody was named in advance and may go before the others, for this reason.
    Named(&'static str),
    /// The holder of the ticket that was drawn: facts `first_ticket` and `tickets`.
    Drawn {
        /// Number of the ticket drawn, from 0.
        ticket: u64,
        /// Tickets of all.
        total: u64,
    },
}

impl Rule {
    /// A word for programs.
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

    /// A phrase for people.
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

/// One choice: that of a class, or of one level of control groups within it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contest {
    /// The class.
    pub class: &'static str,
    /// The control group whose members were compared; `None` where a class knows none.
    pub group: Option<CgroupId>,
    /// The rule.
    pub rule: Rule,
    /// Numbers that belong to the queue and not to one of those in it.
    pub facts: Vec<Fact>,
    /// Those among whom it chose, in the order of the queue, the running one first.
    pub candidates: Vec<Candidate>,
    /// How many more there were.
    pub nr_omitted: u64,
}

impl Contest {
    /// A choice of nobody.
    pub const fn nobody(class: &'static str, rule: Rule) -> Self {
        Self { class, group: None, rule, facts: Vec::new(), candidates: Vec::new(), nr_omitted: 0 }
    }

    /// The one that was chosen.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }
}

/// Takes what classes say of a choice.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What they said, from the highest class and the outermost group inwards.
    pub contests: Vec<Contest>,
    /// Most candidates of a contest beside the chosen, the running and the focus.
    pub limit: usize,
    /// A task that is shown even where others are left out.
    pub focus: Option<TaskId>,
}

impl Explanation {
    /// Of at most `limit` candidates a contest, and `focus`.
    pub const fn new(limit: usize, focus: Option<TaskId>) -> Self {
        Self { contests: Vec::new(), limit, focus }
    }
}

/// What a class says of itself, for errors, results and whoever asks why it chose. Nothing here
/// changes what it decides.
pub trait Explain {
    /// Name for errors and explanations.
    fn name(&self) -> &'static str;

    /// Somebody may ask in this run why the class chose; it may keep notes for that from now on.
    /// Comes before anything else. Default: nothing.
    fn will_be_asked(&mut self) {}

    /// What a reader of the result must know of this run: a short name for programs, and a
    /// sentence. Asked at its end. Default: nothing.
    fn notes(&self, _core: &Core) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What bandwidth control has done to `group` so far; `None` if it has no limit. Default: none.
    fn bandwidth_stats(&self, _core: &Core, _group: CgroupId) -> Option<BandwidthStats> {
        None
    }

    /// Why [`crate::SchedClass::pick_task`] on `cpu` has just named whom it named, or nobody: the
    /// candidates and the numbers that it compared. Called only when somebody asks, right after
    /// that pick and before anything else. Default: one contest whose rule is not stated.
    fn explain_pick(&self, _core: &Core, _cpu: CpuId, into: &mut Explanation) {
        into.contests.push(Contest::nobody(self.name(), Rule::Unstated));
    }

    /// The numbers that decided whether `woken`, which has just become runnable, takes the CPU
    /// where `curr` runs; both are of this class. Called only when somebody asks, after
    /// [`crate::SchedClass::wakeup_preempt`]. Default: none.
    fn explain_preempt(&self, _core: &Core, _woken: TaskId, _curr: TaskId) -> Vec<Fact> {
        Vec::new()
    }

    /// The virtual runtime of `task` (ns at nice 0), relative to the min_vruntime of its queue; the
    /// class may be asked at every switch and tick. Default: none.
    fn vruntime(&self, _core: &Core, _task: TaskId) -> Option<i64> {
        None
    }

    /// The numbers of `task` that the class goes by. Called only when somebody asks. Default: none.
    fn explain_task(&self, _core: &Core, _task: TaskId) -> Vec<Fact> {
        Vec::new()
    }
}

/// What bandwidth control has done to a group: cpu.stat of cgroup v2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BandwidthStats {
    /// Periods that have ended while the period timer ran.
    pub nr_periods: u64,
    /// Those at whose end the group was throttled on some CPU.
    pub nr_throttled: u64,
    /// Time throttled, added up over the CPUs, ns.
    pub throttled_ns: Nanos,
    /// Periods in which the group used more than its quota (cpu.max.burst).
    pub nr_bursts: u64,
    /// CPU time used beyond the quota in those, ns.
    pub burst_ns: Nanos,
}
