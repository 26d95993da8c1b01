// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: what to run, in which lane and how often; and the results.
//!
//! `study` parses the question (`axis`: what varies; `document`: positions of mistakes). `studies`
//! has the built-in studies and reads the files that a study names. `plan` makes single runs from a
//! study, `execute` runs them in their lanes, `experiment` groups them. `view` puts results into
//! rows with intervals and differences, and `answer` names the best. `versus` compares two
//! schedulers seed by seed, with the intervals of `ratio`. `twin` finds the model of a kernel, and
//! `against` compares the two with the kernel's own range. `claims` judges a study's claims by the
//! results of its experiments; `redrawn` fills the studies' own figures and tables. `pairs` makes
//! experiments from kernels and their models, `cases` those from generated workloads.
//!
//! `store` keeps results on disk run by run, and `identity` identifies stored runs. `error` holds
//! the reasons why a study cannot be read or its results stored.

pub mod against;
pub mod answer;
pub mod axis;
pub mod cases;
pub mod claims;
pub mod document;
pub mod error;
pub mod execute;
pub mod experiment;
pub mod identity;
pub mod pairs;
pub mod plan;
pub mod published;
pub mod ratio;
pub mod redrawn;
pub mod store;
pub mod studies;
pub mod study;
pub mod twin;
pub mod versus;
pub mod view;

pub use error::LabError;
pub use execute::{ExecuteOptions, Failure, Outcome, execute, execute_some};
pub use experiment::{Experiment, ExperimentResult, FigureKind};
pub use plan::{Built, Makers, Plan, PlanInput, PlannedRun};
pub use study::Study;
pub use view::View;
