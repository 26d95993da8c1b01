// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler: its name, its claims, and how a run gets an instance.

use crate::boundary::class::SchedClass;
use crate::boundary::options::{Options, Tunable};
use crate::boundary::user::UserHalf;
use schedlab_model::{CgroupSpec, Costs, Machine, Preempt};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What a scheduler promises; the conformance suite checks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claims {
    /// No CPU stays idle while a task that may use it waits.
    pub work_conserving: bool,
    /// Every runnable task of equal importance runs again within bounded time.
    pub starvation_free: bool,
    /// Equal CPU hogs on one CPU get equal shares.
    pub fair: bool,
    /// Whether it needs to know the length of CPU bursts in advance.
    pub needs_burst: bool,
}

/// Scheduling classes of one run, highest priority first.
pub type Stack = Vec<Box<dyn SchedClass>>;

type MakeStack = dyn Fn(&Options, &Machine, &[CgroupSpec]) -> Result<Stack, String> + Send + Sync;

/// Makes the stack of classes of one run from the tunables, the machine and the control groups.
#[derive(Clone)]
pub struct Make {
    stack: Arc<MakeStack>,
    user_half: Option<UserHalf>,
}

impl Make {
    /// A factory that never fails.
    pub fn new(
        make: impl Fn(&Options, &Machine, &[CgroupSpec]) -> Stack + Send + Sync + 'static,
    ) -> Self {
        Self::fallible(move |options, machine, cgroups| Ok(make(options, machine, cgroups)))
    }

    /// A factory that may fail. The error states what was found and what is allowed.
    pub fn fallible(
        make: impl Fn(&Options, &Machine, &[CgroupSpec]) -> Result<Stack, String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { stack: Arc::new(make), user_half: None }
    }

    /// This factory, whose schedulers have a user half if it is `Some`.
    #[must_use]
    pub fn with_user_half(self, user_half: Option<UserHalf>) -> Self {
        Self { user_half, ..self }
    }
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Make")
    }
}

/// The source of a scheduler that came from a file, as a sum.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum SourceDigest {
    /// A scheduler for sched_ext, compiled for the simulator.
    SchedExt(String),
    /// A policy ([`crate::textbook::user`]).
    Policy(String),
}

impl SourceDigest {
    /// The sum.
    pub fn text(&self) -> &str {
        match self {
            Self::SchedExt(digest) | Self::Policy(digest) => digest,
        }
    }
}

/// A scheduler: one of the registry, or one made from a file.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Name: what it models, or the file from which it was made.
    pub name: Cow<'static, str>,
    /// One line for lists.
    pub summary: Cow<'static, str>,
    /// Source of its rules.
    pub source: Cow<'static, str>,
    /// What it leaves out or simplifies.
    pub leaves_out: Cow<'static, str>,
    /// What it promises.
    pub claims: Claims,
    /// Preemption model of the kernel that it reproduces, for machines that name none.
    pub preempt: Preempt,
    /// Costs on machines without their own: none under textbook schedulers, because textbooks
    /// charge nothing.
    pub costs: Costs,
    /// Its tunables.
    pub tunables: Vec<Tunable>,
    /// Identifies the source of a scheduler from a file: two with equal digests decide alike.
    /// `None` for schedulers in this program.
    pub digest: Option<SourceDigest>,
    /// Makes its stack of classes.
    pub make: Make,
}

impl Scheduler {
    /// The digest of its source, if it is one for sched_ext.
    pub fn scx_digest(&self) -> Option<&str> {
        match &self.digest {
            Some(SourceDigest::SchedExt(digest)) => Some(digest),
            Some(SourceDigest::Policy(_)) | None => None,
        }
    }

    /// Its user half, if one decides in the run.
    pub fn user_half(&self) -> Option<&UserHalf> {
        self.make.user_half.as_ref()
    }

    /// A fresh stack of classes for one run, highest priority first.
    ///
    /// # Errors
    /// If the scheduler does not support these options or this machine.
    pub fn stack(
        &self,
        options: &Options,
        machine: &Machine,
        cgroups: &[CgroupSpec],
    ) -> Result<Stack, String> {
        (self.make.stack)(options, machine, cgroups)
    }
}

/// Schedulers are equal if their names are.
impl PartialEq for Scheduler {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Scheduler {}
