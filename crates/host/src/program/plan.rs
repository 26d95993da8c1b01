// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a third-party program, as passed to the launcher: every command is found, checked
//! and ready to execute.

use super::output::OutputFile;
use schedlab_model::{Nanos, SchedAttr};
use schedlab_run::program::Matcher;
use std::path::PathBuf;

use crate::sys::ExecImage;

/// The commands around the program.
#[derive(Debug)]
pub struct ProgramPlan {
    /// The private directory, which the launcher creates.
    pub dir: PathBuf,
    /// Directories to create in it, outermost first.
    pub directories: Vec<PathBuf>,
    /// Commands before the program.
    pub setup: Vec<StepPlan>,
    /// Commands after the program.
    pub teardown: Vec<StepPlan>,
    /// Longest time (ns) of the setup, and of the teardown.
    pub setup_limit_ns: Nanos,
    /// The output of the steps.
    pub log: OutputFile,
    /// The output of the program.
    pub output: OutputFile,
}

/// A command before, next to or after the program.
#[derive(Debug)]
pub struct StepPlan {
    /// The program to execute.
    pub image: ExecImage,
    /// Its short name.
    pub name: String,
    /// How often it is started.
    pub count: u32,
    /// Whether it keeps running next to the program.
    pub stays: bool,
    /// Whether it is killed at the end, instead of being asked to end first.
    pub is_killed: bool,
    /// Its output when it is ready.
    pub ready_output: Option<Matcher>,
    /// A file that exists when it is ready.
    pub ready_path: Option<PathBuf>,
    /// Its scheduling attributes.
    pub attr: SchedAttr,
}
