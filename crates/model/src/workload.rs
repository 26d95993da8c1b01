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
    /// Open arrivals: each instance after the first is released this long (ns) after the last one.
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

/// Most tasks of a run: the kernel's own limit on process ids (`PID_MAX_LIMIT`,
/// include/linux/threads.h, 64-bit).
pub const TASKS_MAX: u64 = 4_194_304;

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

    /// Number of tasks that the launcher starts and that they fork, directly or through others. A
    /// fork in an endless loop counts once. Saturates; needs a workload without a cycle of forks.
    pub fn nr_tasks_least(&self) -> u64 {
        // Tasks in one tree, by description; filled from the leaves up.
        let mut sizes: Vec<u64> = vec![1; self.tasks.len()];
        for index in self.fork_order().unwrap_or_default() {
            sizes[index] = tree_size(&self.tasks[index].program, &sizes);
        }
        self.tasks.iter().zip(sizes).fold(0, |sum: u64, (task, size)| {
            sum.saturating_add(u64::from(task.instances).saturating_mul(size))
        })
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
        self.check_forks()?;
        let nr_tasks = self.nr_tasks_least();
        if nr_tasks > TASKS_MAX {
            return Err(WorkloadError(format!(
                "workload {:?} creates at least {nr_tasks} tasks, allowed are {TASKS_MAX} \
                 (the kernel's limit on process ids): lower `instance` or the forks",
                self.name
            )));
        }
        Ok(())
    }

    fn check_task(&self, task: &TaskSpec, nr_cpus: u32) -> Result<(), String> {
        task.program.check(self.tasks.len()).map_err(|error| error.to_string())?;
        if !task.release_ns.is_valid() || task.interarrival_ns.is_some_and(|a| !a.is_valid()) {
            return Err("a uniform release or interarrival time has its least value above its \
                        greatest"
                .into());
        }
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
                    "affinity is CPU {mask}, but the machine has CPUs 0-{}: name at least one \
                     of them",
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
        match self.fork_order() {
            Ok(_) => Ok(()),
            Err(cycle) => {
                let mut names: Vec<&str> =
                    cycle.iter().map(|&task| self.tasks[task].name.as_str()).collect();
                names.extend(names.first().copied());
                Err(WorkloadError(format!(
                    "cycle of forks: {}: a task may not fork, directly or through others, a task \
                     that forks it again",
                    names.join(" -> ")
                )))
            }
        }
    }

    /// Task descriptions in an order in which each stands after all that it forks, or the tasks of
    /// a cycle. Depth first with an own stack: files decide the depth.
    pub fn fork_order(&self) -> Result<Vec<usize>, Vec<usize>> {
        let targets = |task: usize| {
            self.tasks[task].program.ops.iter().filter_map(|op| match op {
                crate::Op::Fork { task } => Some(*task as usize),
                _ => None,
            })
        };
        let mut order = Vec::with_capacity(self.tasks.len());
        let mut seen = vec![false; self.tasks.len()];
        let mut done = vec![false; self.tasks.len()];
        for root in 0..self.tasks.len() {
            if seen[root] {
                continue;
            }
            seen[root] = true;
            let mut path = vec![(root, targets(root))];
            while let Some((task, rest)) = path.last_mut() {
                match rest.next() {
                    Some(next) if next >= self.tasks.len() || done[next] => {}
                    Some(next) if seen[next] => {
                        let start = path.iter().position(|(task, _)| *task == next).unwrap_or(0);
                        return Err(path[start..].iter().map(|(task, _)| *task).collect());
                    }
                    Some(next) => {
                        seen[next] = true;
                        path.push((next, targets(next)));
                    }
                    None => {
                        done[*task] = true;
                        order.push(*task);
                        path.pop();
                    }
                }
            }
        }
        Ok(order)
    }
}

/// 1 + the trees of all forks of a program.
fn tree_size(program: &crate::Program, sizes: &[u64]) -> u64 {
    let mut rounds = vec![1u64];
    let mut size: u64 = 1;
    for op in &program.ops {
        let factor = *rounds.last().unwrap_or(&1);
        match op {
            crate::Op::LoopBegin { count, .. } => rounds.push(match count {
                crate::LoopCount::Times(times) => factor.saturating_mul(*times),
                crate::LoopCount::Forever => factor,
            }),
            crate::Op::LoopEnd { .. } => {
                rounds.pop();
            }
            crate::Op::Fork { task } => {
                let child = sizes.get(*task as usize).copied().unwrap_or(1);
                size = size.saturating_add(factor.saturating_mul(child));
            }
            _ => {}
        }
    }
    size
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
        assert!(error.starts_with("cycle of forks: hog -> hog: "), "{error}");
    }

    #[test]
    fn a_tree_of_forks_beyond_the_kernels_limit_is_refused() {
        // Seven levels of 100 forks each: 10^14 tasks from a few lines.
        let tasks = (0..8u32)
            .map(|level| {
                let mut builder = ProgramBuilder::new();
                if level < 7 {
                    builder.begin_loop(crate::LoopCount::Times(100));
                    builder.op(Op::Fork { task: level + 1 }).end_loop();
                }
                let mut task = TaskSpec::new(format!("t{level}"), builder.run(1).build());
                task.instances = u32::from(level == 0);
                task
            })
            .collect();
        let workload = Workload::new("w", tasks);
        assert_eq!(workload.nr_tasks_least(), (0..8u32).map(|l| 100u64.pow(l)).sum::<u64>());
        let error = workload.check(1).unwrap_err().to_string();
        assert!(error.contains("allowed are 4194304"), "{error}");
    }
}
