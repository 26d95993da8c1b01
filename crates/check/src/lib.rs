// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds bugs of schedulers: random cases, rules that every run must keep, and shrinking.
//!
//! - [`generate`] makes a [`Case`] of a seed.
//! - [`play`] simulates it and judges the run by the [`RULES`]: those of the trace by a
//!   [`Judge`], which can watch any lane, and those of the state by a [`StateJudge`].
//! - [`check`] plays a case, and then the [`pair`] of one metamorphic rule, whose runs must agree.
//! - [`shrink`] makes a case that breaks a rule as small as it can.
//! - [`diff()`] finds the first decision in which two schedulers differ, and [`follow`] how often
//!   they differ if one follows the other. [`compare_turns`] does so for recorded runs of kernels.
//! - [`bisect()`] finds the first bad one of several versions.
//!
//! This crate reads no file, clock or environment. The same seed gives the same case, the same
//! breach and the same small case on every machine.

mod bisect;
mod case;
mod diff;
mod generate;
mod inherit;
mod play;
mod relations;
mod rules;
mod shrink;
mod states;
mod steps;
mod subject;
mod tree;
mod world;

pub use bisect::{Bisected, Trial, bisect};
pub use case::Case;
pub use diff::{
    Agreement, Choice, Counts, Diff, DiffError, Difference, Kind, Recording, Runnable, Setting,
    Side, StateDifference, TurnDiff, TurnDifference, TurnSide, compare_turns, diff, follow,
    play_both,
};
pub use generate::{Feature, Features, Shape, Tunes, generate};
pub use inherit::inherit;
pub use play::{Verdict, play};
pub use relations::{Pair, check, check_rule, pair};
pub use rules::{
    Breach, DECISIONS, Judge, LIMITS, Limit, Needs, RULES, Rule, UNCHECKED, Unchecked, rule,
};
pub use shrink::{Shrunk, shrink};
pub use states::StateJudge;
pub use subject::{Family, Subject};
