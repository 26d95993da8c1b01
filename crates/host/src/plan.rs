// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a run, as passed to the launcher: all decisions are made and checked.

use crate::cgroup::Groups;
use crate::objects::Objects;
use crate::pace::Pace;
use crate::program::ProgramPlan;
use crate::sys::ExecImage;
use crate::tunables::Tunables;
use schedlab_model::{
    Arrival, Comm, CpuMask, Nanos, ObjectId, Program, SchedAttr, TaskSpec, Workload,
};
use std::path::PathBuf;

/// Where a command's output goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Output {
    /// To the caller's standard output and error.
    #[default]
    Inherit,
    /// To /dev/null.
    Null,
    /// To this descriptor.
    File(i32),
}

/// What the tasks do.
#[derive(Debug)]
pub enum Work {
    /// Tasks of a workload, with the attributes that the lane sets.
    Tasks {
        /// The workload.
        workload: Workload,
        /// Tasks that the launcher releases, in order of their numbers.
        arrivals: Vec<Arrival>,
    },
    /// Copies of a command.
    Command {
        /// The command.
        image: ExecImage,
        /// Attributes of every copy.
        attr: Box<SchedAttr>,
        /// Number of copies.
        copies: u32,
        /// Their output.
        output: Output,
        /// cpu.weight of a control group that holds them all; `None`: they get no group.
        weight: Option<u32>,
    },
}

/// The run.
#[derive(Debug)]
pub struct RunPlan {
    /// What the tasks do.
    pub work: Work,
    /// Seed of all random numbers.
    pub seed: u64,
    /// User and group that tasks run as; `None`: the caller's.
    pub user: Option<(u32, u32)>,
    /// Whether each task sets its own attributes before it gives up root, because the launcher may
    /// not set those of another user's task (root without CAP_SYS_NICE, as in a container).
    pub tasks_set_own: bool,
    /// Whether tasks change attributes while they run, so that they keep that right.
    pub needs_nice: bool,
    /// Whether tasks mark their own start and end, because nothing else records them.
    pub own_stamps: bool,
    /// Private directory for Io; the launcher creates it if a program needs one.
    pub dir: Option<PathBuf>,
    /// Control groups; the launcher creates them.
    pub groups: Groups,
    /// Tunables that tasks set; the launcher opens them.
    pub tunables: Tunables,
    /// Objects that tasks share; the launcher creates their descriptors.
    pub objects: Objects,
    /// CPUs of the run.
    pub cpus: CpuMask,
    /// CPUs for the launcher itself: those that the run leaves free, or all.
    pub launcher_cpus: CpuMask,
    /// The run ends at this time after time 0 (ns).
    pub duration_ns: Option<Nanos>,
    /// A run that has not ended is ended at this time (ns), with a warning.
    pub limit_ns: Nanos,
    /// How often launcher and recorder check.
    pub pace: Pace,
    /// The commands around a third-party program.
    pub program: Option<Box<ProgramPlan>>,
}

static NO_PROGRAM: Program = Program { ops: Vec::new(), nr_timers: 0 };

impl RunPlan {
    /// Program of a description; empty for a command.
    pub fn program(&self, spec: u32) -> &Program {
        match &self.work {
            Work::Tasks { workload, .. } => {
                workload.tasks.get(spec as usize).map_or(&NO_PROGRAM, |task| &task.program)
            }
            Work::Command { .. } => &NO_PROGRAM,
        }
    }

    /// Attributes of a description.
    pub fn attr(&self, spec: u32) -> &SchedAttr {
        match &self.work {
            Work::Tasks { workload, .. } => &workload.tasks[spec as usize].attr,
            Work::Command { attr, .. } => attr,
        }
    }

    /// A description of a workload. Panics for a command, which has none.
    pub fn task(&self, spec: u32) -> &TaskSpec {
        match &self.work {
            Work::Tasks { workload, .. } => &workload.tasks[spec as usize],
            Work::Command { .. } => panic!("a command has no description"),
        }
    }

    /// Number of a set of objects in the trace.
    pub fn trace_set(&self, set: u32) -> ObjectId {
        match &self.work {
            Work::Tasks { workload, .. } => workload.trace_set(set),
            Work::Command { .. } => ObjectId(set),
        }
    }

    /// Number of the exit of children in the trace.
    pub fn trace_children(&self) -> ObjectId {
        match &self.work {
            Work::Tasks { workload, .. } => workload.trace_children(),
            Work::Command { .. } => ObjectId(0),
        }
    }

    /// Tasks that the launcher starts: description and planned release, by number.
    pub fn released(&self) -> Vec<(u32, Nanos)> {
        match &self.work {
            Work::Tasks { arrivals, .. } => {
                arrivals.iter().map(|arrival| (arrival.spec, arrival.release_ns)).collect()
            }
            Work::Command { copies, .. } => vec![(0, 0); *copies as usize],
        }
    }

    /// Release time of the launcher's task `index` after time 0.
    pub fn release_ns(&self, index: u32) -> Nanos {
        match &self.work {
            Work::Tasks { arrivals, .. } => {
                arrivals.get(index as usize).map_or(0, |arrival| arrival.release_ns)
            }
            Work::Command { .. } => 0,
        }
    }

    /// Name that the launcher's task `index` has in the kernel.
    pub fn comm(&self, index: u32) -> Comm {
        match &self.work {
            Work::Tasks { arrivals, .. } => arrivals
                .get(index as usize)
                .map_or_else(Comm::default, |arrival| Comm::new(&arrival.name)),
            Work::Command { .. } => Comm::default(),
        }
    }

    /// Name of a description, for messages.
    pub fn spec_name(&self, spec: u32) -> &str {
        match &self.work {
            Work::Tasks { workload, .. } => {
                workload.tasks.get(spec as usize).map_or("?", |task| task.name.as_str())
            }
            Work::Command { .. } => "the command",
        }
    }
}
