// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks all parts of a workload that the lanes rely on.

use super::{CpuMax, TASKS_MAX, TaskSpec, Workload, WorkloadError};
use crate::{Policy, SchedAttr, Subject};

impl Workload {
    /// Checks all parts that the lanes rely on: programs, objects, groups, ranges of attributes,
    /// affinities within `nr_cpus`, and that no task forks itself through others.
    pub fn check(&self, nr_cpus: u32) -> Result<(), WorkloadError> {
        if self.nr_released() == 0 {
            return Err(WorkloadError(format!(
                "workload {:?} releases no task: give at least one task `instance` >= 1",
                self.name
            )));
        }
        self.check_objects()?;
        for task in &self.tasks {
            self.check_task(task, nr_cpus)
                .map_err(|what| WorkloadError(format!("task {:?}: {what}", task.name)))?;
        }
        self.check_cgroups()?;
        self.check_cpusets(nr_cpus).map_err(WorkloadError)?;
        self.check_sessions()?;
        self.check_forks()?;
        self.check_expectations()?;
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
        self.check_uses(task)?;
        for op in &task.program.ops {
            match op {
                crate::Op::SetAttr(attr) => self.check_attr(attr, nr_cpus)?,
                crate::Op::Change(change) => self.check_change(change, nr_cpus)?,
                crate::Op::Tune { tunable, value } => tunable.check(*value)?,
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
        check_deadline(attr)?;
        check_util(attr)?;
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
            if let Some(nice) = group.weight_nice.filter(|nice| !(-20..=19).contains(nice)) {
                return Err(WorkloadError(format!(
                    "group {:?}: weight as nice is {nice}, allowed are -20 to 19",
                    group.path
                )));
            }
            check_cpu_max(group.cpu_max)
                .map_err(|what| WorkloadError(format!("group {:?}: {what}", group.path)))?;
            if index > 0 && group.parent.index() >= index {
                return Err(WorkloadError(format!(
                    "group {:?} stands before its parent: describe parents first",
                    group.path
                )));
            }
        }
        Ok(())
    }

    /// Checks that each named task exists: a description, or an instance `name-k` of one.
    fn check_expectations(&self) -> Result<(), WorkloadError> {
        for expectation in &self.expect {
            let Subject::Task(name) = &expectation.subject else { continue };
            let is_known = self.tasks.iter().any(|task| {
                name.strip_prefix(task.name.as_str()).is_some_and(|rest| {
                    let number = rest.strip_prefix('-').unwrap_or_default();
                    let is_number =
                        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
                    rest.is_empty() || is_number
                })
            });
            if !is_known {
                let names: Vec<&str> = self.tasks.iter().map(|task| task.name.as_str()).collect();
                return Err(WorkloadError(format!(
                    "{:?} is expected of task {name:?}, which is not described: allowed are {}, \
                     and an instance of one of them as name-k",
                    expectation.measure,
                    names.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// The kernel's order of SCHED_DEADLINE's parameters (`__checkparam_dl`).
fn check_deadline(attr: &SchedAttr) -> Result<(), String> {
    let dl = &attr.deadline;
    let in_order =
        0 < dl.runtime_ns && dl.runtime_ns <= dl.deadline_ns && dl.deadline_ns <= dl.period_ns;
    if attr.policy == Policy::Deadline && !in_order {
        return Err(format!(
            "DEADLINE with runtime {} ns, deadline {} ns, period {} ns: it must be 0 < runtime <= \
             deadline <= period",
            dl.runtime_ns, dl.deadline_ns, dl.period_ns
        ));
    }
    Ok(())
}

/// SCHED_CAPACITY_SCALE: the utilisation of a CPU that is busy at full speed.
const UTIL_MAX: u16 = 1024;

fn check_util(attr: &SchedAttr) -> Result<(), String> {
    let (least, most) = (attr.util_min.unwrap_or(0), attr.util_max.unwrap_or(UTIL_MAX));
    if least > most || most > UTIL_MAX {
        return Err(format!(
            "util_min is {least} and util_max is {most}: allowed are 0 to {UTIL_MAX}, util_min not \
             above util_max"
        ));
    }
    Ok(())
}

/// Bounds of the kernel: `min_cfs_quota_period` and `max_cfs_quota_period`, kernel/sched/core.c.
pub(super) fn check_cpu_max(cpu_max: Option<CpuMax>) -> Result<(), String> {
    const MS: crate::Nanos = 1_000_000;
    let Some(CpuMax { quota_ns, period_ns, burst_ns }) = cpu_max else { return Ok(()) };
    if quota_ns < MS || !(MS..=1_000 * MS).contains(&period_ns) {
        return Err(format!(
            "cpu.max is {quota_ns} ns in each {period_ns} ns: allowed is a quota of 1 ms and more \
             in a period of 1 ms to 1 s"
        ));
    }
    if burst_ns > quota_ns {
        return Err(format!(
            "cpu.max.burst is {burst_ns} ns beside a quota of {quota_ns} ns: allowed is at most \
             the quota"
        ));
    }
    Ok(())
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
