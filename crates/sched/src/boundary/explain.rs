// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a class chose: the numbers that it compared, as data.
//!
//! The core asks right after [`crate::SchedClass::pick_task`], before the chosen task is taken off
//! its queue: what stands there then are the numbers of that very choice. Nothing is computed or
//! kept unless somebody asks. The text form for people is made elsewhere; here stand facts that a
//! program can check: a [`Rule`] names the facts that it orders by, so that a test can hold the
//! choice to the numbers.

use schedlab_model::{CgroupId, TaskId};

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
