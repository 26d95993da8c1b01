// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program of somebody else's as the launcher gets it: every command found and ready to execute,
//! nothing left to check.

use super::output::OutputFile;
use schedlab_model::{Nanos, SchedAttr};
use schedlab_run::program::Matcher;
use std::path::PathBuf;

use crate::sys::ExecImage;

/// What stands around the program.
#[derive(Debug)]
pub struct ProgramPlan {
    /// The private directory, to be made by the launcher.
    pub dir: PathBuf,
    /// Directories to be made in it, outermost first.
    pub directories: Vec<PathBuf>,
    /// What runs before.
    pub setup: Vec<StepPlan>,
    /// What runs after.
    pub teardown: Vec<StepPlan>,
    /// Longest time of the setup, and of the teardown.
    pub setup_limit_ns: Nanos,
    /// What steps print.
    pub log: OutputFile,
    /// What the program prints.
    pub output: OutputFile,
}

/// A command before, beside or after the program.
#[derive(Debug)]
pub struct StepPlan {
    /// What it executes.
    pub image: ExecImage,
    /// Its short name.
    pub name: String,
    /// How often it is started.
    pub count: u32,
    /// Whether it stays beside the program.
    pub stays: bool,
    /// Whether it is killed in the end, instead of asked to end first.
    pub is_killed: bool,
    /// What it prints when it is ready.
    pub ready_output: Option<Matcher>,
    /// A file that is there when it is ready.
    pub ready_path: Option<PathBuf>,
    /// Its scheduling attributes.
    pub attr: SchedAttr,
}
