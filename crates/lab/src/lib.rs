// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: what to run, in which lane, how often; and the results.
//!
//! `study` reads what was asked (`axis`: what varies; `document`: where in the file a mistake is);
//! `studies` has the built-in ones, and reads the files that a study names. `plan` makes single
//! runs of it, `execute` runs them in their lanes, `experiment` groups them; `view` puts results
//! into rows with intervals and differences, and `answer` says who is best. `claims` judges what a
//! study says by the results of its experiments; `redrawn` fills the studies' own figures and
//! tables. `pairs` makes experiments of kernels and their models.
//! `store` keeps results on disk run by run, `identity` tells which run a stored one is; `error` is
//! why a study cannot be read or its results stored.

pub mod answer;
pub mod axis;
pub mod claims;
pub mod document;
pub mod error;
pub mod execute;
pub mod experiment;
pub mod identity;
pub mod pairs;
pub mod plan;
pub mod published;
pub mod redrawn;
pub mod store;
pub mod studies;
pub mod study;
pub mod view;

pub use error::LabError;
pub use execute::{ExecuteOptions, Failure, Outcome, execute, execute_some};
pub use experiment::{Experiment, ExperimentResult, FigureKind};
pub use plan::{Built, Makers, Plan, PlanInput, PlannedRun};
pub use study::Study;
pub use view::View;
