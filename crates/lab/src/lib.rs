// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: what to run, in which lane, how often; and the results.
//!
//! `study` reads what was asked (`axis`: what varies; `document`: where in the file a mistake is),
//! `plan` makes single runs of it, `execute` runs them in their lanes, `experiment` groups them;
//! `view` puts results into rows with intervals and differences. `claims` judges what a study says
//! by the results of its experiments; `redrawn` fills the studies' own figures and tables;
//! `validate` compares lanes with one another.
//! `store` keeps results on disk run by run, `identity` tells which run a stored one is.

pub mod axis;
pub mod claims;
pub mod document;
pub mod execute;
pub mod experiment;
pub mod identity;
pub mod plan;
pub mod published;
pub mod redrawn;
pub mod store;
pub mod study;
pub mod validate;
pub mod view;

pub use execute::{ExecuteOptions, Failure, Outcome, execute, execute_some, run_and_check};
pub use experiment::{Experiment, ExperimentResult, FigureKind};
pub use plan::{Built, Makers, Plan, PlanInput, PlannedRun};
pub use study::Study;
pub use view::View;
