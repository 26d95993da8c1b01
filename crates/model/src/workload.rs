// SPDX-License-Identifier: MIT OR Apache-2.0
//! A workload: tasks with programs and attributes, and the groups they run in.

use crate::{Amount, CgroupId, Nanos, Program, SchedAttr};

/// How a task comes into being at its release time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Release {
    /// Created by the launcher: the scheduler sees a fork (wake_up_new_task).
    #[default]
    Fork,
    /// It exists and sleeps already; the scheduler sees a wake-up. Used where a model must start
    /// from equal virtual times.
    Wakeup,
}

/// One kind of task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskSpec {
    /// Name; instances and forks get `name-k` (k from 0) when there is more than one.
    pub name: String,
    /// Attributes it starts with.
    pub attr: SchedAttr,
    /// How many the launcher starts; 0 means that only forks create it.
    pub instances: u32,
    /// Release time (ns) after the start of the run; drawn for each instance.
    pub release_ns: Amount,
    /// Open arrivals: each instance after the first is released this long (ns) after the one before.
    pub interarrival_ns: Option<Amount>,
    /// Kind of release.
    pub release: Release,
    /// What it does.
    pub program: Program,
    /// Names of the phases that `Op::Phase` numbers.
    pub phases: Vec<String>,
}

impl TaskSpec {
    /// A task with default attributes, released once at time 0.
    pub fn new(name: impl Into<String>, program: Program) -> Self {
        Self {
            name: name.into(),
            attr: SchedAttr::default(),
            instances: 1,
            release_ns: Amount::Constant(0),
            interarrival_ns: None,
            release: Release::Fork,
            program,
            phases: Vec::new(),
        }
    }
}

/// A control group of the cpu controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CgroupSpec {
    /// Path below the run's own group, such as `/a/b`; the root group is `/`.
    pub path: String,
    /// Parent group; the root group is its own parent.
    pub parent: CgroupId,
    /// cpu.weight, 1 to 10000, default 100.
    pub weight: u32,
}

impl CgroupSpec {
    /// The root group.
    pub fn root() -> Self {
        Self { path: "/".into(), parent: CgroupId(0), weight: 100 }
    }
}

/// A workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workload {
    /// Name for results and titles.
    pub name: String,
    /// Kinds of task. `Op::Fork` names them by index.
    pub tasks: Vec<TaskSpec>,
    /// Groups; index 0 is the root group.
    pub cgroups: Vec<CgroupSpec>,
    /// Ends the run at this time (ns) if it has not ended by itself.
    pub duration_ns: Option<Nanos>,
}

/// Why a workload cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadError(
    /// What was found, what is allowed, what to do.
    pub String,
);

impl std::fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WorkloadError {}

impl Workload {
    /// A workload with only the root group.
    pub fn new(name: impl Into<String>, tasks: Vec<TaskSpec>) -> Self {
        Self { name: name.into(), tasks, cgroups: vec![CgroupSpec::root()], duration_ns: None }
    }

    /// Total number of tasks that the launcher starts.
    pub fn nr_released(&self) -> u64 {
        self.tasks.iter().map(|task| u64::from(task.instances)).sum()
    }

    /// Checks everything that a lane relies on: programs, groups, attribute ranges, affinity within
    /// `nr_cpus`, no cycle of forks.
    pub fn check(&self, nr_cpus: u32) -> Result<(), WorkloadError> {
        if self.nr_released() == 0 {
            return Err(WorkloadError(format!(
                "workload {:?} releases no task: give at least one task `instance` >= 1",
                self.name
            )));
        }
        for task in &self.tasks {
            self.check_task(task, nr_cpus)
                .map_err(|what| WorkloadError(format!("task {:?}: {what}", task.name)))?;
        }
        self.check_cgroups()?;
        self.check_forks()
    }

    fn check_task(&self, task: &TaskSpec, nr_cpus: u32) -> Result<(), String> {
        task.program.check(self.tasks.len()).map_err(|error| error.to_string())?;
        self.check_attr(&task.attr, nr_cpus)?;
        for op in &task.program.ops {
            match op {
                crate::Op::SetAttr(attr) => self.check_attr(attr, nr_cpus)?,
                crate::Op::Phase(phase) if *phase as usize >= task.phases.len() => {
                    return Err(format!("phase {phase} has no name"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_attr(&self, attr: &SchedAttr, nr_cpus: u32) -> Result<(), String> {
        if !(-20..=19).contains(&attr.nice) {
            return Err(format!("nice is {}, allowed are -20 to 19", attr.nice));
        }
        if attr.policy.is_rt() != (1..=99).contains(&attr.rt_priority) {
            return Err(format!(
                "real-time priority is {}, allowed are 1 to 99 for FIFO and RR and 0 for {}",
                attr.rt_priority,
                if attr.policy.is_rt() { "the others" } else { attr.policy.name() }
            ));
        }
        if let Some(mask) = &attr.affinity {
            let machine = crate::CpuMask::first(nr_cpus);
            if mask.and(&machine).is_empty() {
                return Err(format!(
                    "affinity is CPU {mask}, but the machine has CPUs 0-{}: name at least one of them",
                    nr_cpus.saturating_sub(1)
                ));
            }
        }
        if attr.cgroup.index() >= self.cgroups.len() {
            return Err(format!("control group {} is not described", attr.cgroup));
        }
        Ok(())
    }

    fn check_cgroups(&self) -> Result<(), WorkloadError> {
        if self.cgroups.is_empty() {
            return Err(WorkloadError("group 0, the root group, is missing".into()));
        }
        for (index, group) in self.cgroups.iter().enumerate() {
            if !(1..=10_000).contains(&group.weight) {
                return Err(WorkloadError(format!(
                    "group {:?}: weight is {}, allowed are 1 to 10000 (default 100)",
                    group.path, group.weight
                )));
            }
            if index > 0 && group.parent.index() >= index {
                return Err(WorkloadError(format!(
                    "group {:?} stands before its parent: describe parents first",
                    group.path
                )));
            }
        }
        Ok(())
    }

    /// A chain of forks that comes back to where it started would never end.
    fn check_forks(&self) -> Result<(), WorkloadError> {
        let targets: Vec<Vec<usize>> = self
            .tasks
            .iter()
            .map(|task| {
                task.program
                    .ops
                    .iter()
                    .filter_map(|op| match op {
                        crate::Op::Fork { task } => Some(*task as usize),
                        _ => None,
                    })
                    .collect()
            })
            .collect();
        // Remove tasks whose targets are all removed; what is left forks in a cycle.
        let mut open: Vec<bool> = vec![true; targets.len()];
        while let Some(done) =
            (0..targets.len()).find(|&task| open[task] && targets[task].iter().all(|&t| !open[t]))
        {
            open[done] = false;
        }
        match open.iter().position(|&is_open| is_open) {
            None => Ok(()),
            Some(task) => Err(WorkloadError(format!(
                "task {:?} forks, directly or through others, a task that forks it again: \
                 break the cycle of forks",
                self.tasks[task].name
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuId, CpuMask, Op, program::ProgramBuilder};

    fn hog() -> TaskSpec {
        TaskSpec::new("hog", ProgramBuilder::new().run(1_000).build())
    }

    #[test]
    fn impossible_affinity_says_what_is_allowed() {
        let mut task = hog();
        task.attr.affinity = Some(CpuMask::only(CpuId(7)));
        let error = Workload::new("w", vec![task]).check(2).unwrap_err().to_string();
        assert!(error.contains("CPU 7") && error.contains("0-1"), "{error}");
    }

    #[test]
    fn cyclic_forks_are_refused() {
        let mut a = hog();
        a.program.ops.push(Op::Fork { task: 1 });
        let mut b = hog();
        b.instances = 0;
        b.program.ops.push(Op::Fork { task: 1 });
        let error = Workload::new("w", vec![a, b]).check(1).unwrap_err().to_string();
        assert!(error.contains("cycle of forks"), "{error}");
    }
}
