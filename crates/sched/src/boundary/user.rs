// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user half of a scheduler: the program that has loaded it and goes on deciding while it runs.
//!
//! It is a task of the run. The engine charges it a fixed CPU time for each step; then the class
//! lets the program do the step ([`crate::SchedClass::user_step`]) at one instant.

use schedlab_model::program::ProgramBuilder;
use schedlab_model::{Nanos, TaskSpec, Workload};

/// A user half, as a task.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UserHalf {
    /// Its program and arguments.
    pub command: Vec<String>,
    /// CPU time of a step (ns), at least 1.
    pub step_ns: Nanos,
}

/// What a user half does after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserNext {
    /// The next step.
    Work,
    /// It calls sched_yield, and then does the next step.
    Yield,
    /// It sleeps until the class wakes it ([`crate::Core::wake_user_half`]).
    Sleep,
}

impl UserHalf {
    /// The name of the task: that of the program's file.
    pub fn name(&self) -> &str {
        let path = self.command.first().map_or("", String::as_str);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// The workload with a task for the user half, the last one. Its program stands for a step.
    pub fn added_to(&self, workload: &Workload) -> Workload {
        let mut own = workload.clone();
        let mut name = self.name().to_owned();
        while own.tasks.iter().any(|task| task.name == name) {
            name.push_str(".user");
        }
        let mut task = TaskSpec::new(name, ProgramBuilder::new().run(self.step_ns).build());
        task.is_process = true;
        own.tasks.push(task);
        own
    }
}
