// SPDX-License-Identifier: MIT OR Apache-2.0
//! A case: a workload on a machine, with the seed of its random numbers.

use crate::generate::{forks, steps};
use schedlab_model::{Machine, Workload};

/// Most steps of a run: short times in endless loops would take long to simulate.
const STEPS_MAX: u64 = 100_000;

/// Most forked tasks: each decision is judged against a list of all tasks.
const FORKS_MAX: u64 = 2_000;

/// Most CPUs and tasks, and longest duration (ns), of a case that is read from a file.
const CPUS_MAX: u32 = 64;
const TASKS_MAX: u64 = 10_000;
const DURATION_NS_MAX: u64 = 60_000_000_000;

/// A run that a scheduler is to be checked with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The workload. It has a duration, so every run of it ends.
    pub workload: Workload,
    /// The machine. Its preemption model is replaced by that of the scheduler.
    pub machine: Machine,
    /// Seed of the random numbers of the run.
    pub seed: u64,
}

impl Case {
    /// Checks that the case can be run, and that its run ends soon.
    ///
    /// # Errors
    /// What was found and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        self.machine.check()?;
        let nr_cpus = self.machine.nr_cpus();
        if nr_cpus > CPUS_MAX {
            return Err(format!("it has {nr_cpus} CPUs, allowed are {CPUS_MAX}"));
        }
        self.workload.check(nr_cpus).map_err(|error| error.to_string())?;
        let nr_tasks = self.workload.nr_released();
        if nr_tasks > TASKS_MAX {
            return Err(format!("it has {nr_tasks} tasks, allowed are {TASKS_MAX}"));
        }
        let end = match self.workload.duration_ns {
            None => return Err("it has no duration, so its run might not end".into()),
            Some(end) if end > DURATION_NS_MAX => {
                return Err(format!("it lasts {end} ns, allowed are {DURATION_NS_MAX}"));
            }
            Some(end) => end,
        };
        let nr_forks = forks(&self.workload, end);
        if nr_forks > FORKS_MAX {
            return Err(format!("it forks about {nr_forks} tasks, allowed are {FORKS_MAX}"));
        }
        match steps(&self.workload, end) {
            steps if steps > STEPS_MAX => {
                Err(format!("its run takes about {steps} steps, allowed are {STEPS_MAX}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::program::ProgramBuilder;
    use schedlab_model::{LoopCount, Op, TaskSpec};

    /// The check of a case in which a task runs for `run_ns`, forks a child that runs for
    /// `child_ns`, and waits for it if it `waits`, for 32 ms.
    fn checked(run_ns: u64, child_ns: u64, waits: bool) -> Result<(), String> {
        let mut body = ProgramBuilder::new();
        body.begin_loop(LoopCount::Forever).run(run_ns).op(Op::Fork { task: 1 });
        if waits {
            body.op(Op::JoinAll);
        }
        let parent = TaskSpec::new("a", body.end_loop().build());
        let child = TaskSpec::new("child", ProgramBuilder::new().run(child_ns).build());
        let mut workload = Workload::new("w", vec![parent, TaskSpec { instances: 0, ..child }]);
        workload.duration_ns = Some(32_000_000);
        Case { workload, machine: Machine::flat(1), seed: 1 }.check()
    }

    #[test]
    fn too_many_forks_are_refused() {
        assert_eq!(checked(20_000, 0, true), Ok(()));
        assert_eq!(checked(10_000, 10_000, true), Ok(()));
        assert_eq!(checked(1_000_000, 0, false), Ok(()));
        for (run_ns, child_ns) in [(1_000, 0), (10_000, 50_000)] {
            let error = checked(run_ns, child_ns, false).expect_err("it forks too much");
            assert!(error.contains("tasks, allowed are 2000"), "{error}");
        }
    }
}
