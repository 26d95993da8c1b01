// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launchers: tasks that only start other tasks, such as a shell or the parent of study S0's
//! children.
//!
//! They live as long as the whole run. If they counted as tasks, the mean turnaround and the
//! throughput would contain a task that does no work; the studies count jobs only. They are marked
//! in the list of tasks, and left out of the totals.

use schedlab_metrics::TaskMeasures;
use schedlab_model::{Op, Program, Workload};

/// Whether a program forks and does nothing else that takes time.
pub fn is_launcher(program: &Program) -> bool {
    let forks = program.ops.iter().any(|op| matches!(op, Op::Fork { .. }));
    let works = program.ops.iter().any(|op| {
        op.uses_objects()
            || matches!(
                op,
                Op::Run(_)
                    | Op::RunWall(_)
                    | Op::Sleep(_)
                    | Op::Timer { .. }
                    | Op::Io { .. }
                    | Op::Mem { .. }
                    | Op::MemRun { .. }
                    | Op::Yield
            )
    });
    forks && !works
}

/// Returns a function that decides which tasks of a run of `workload` are launchers.
pub fn of_workload(workload: &Workload) -> impl Fn(&TaskMeasures) -> bool {
    |task| {
        let spec = task.spec.and_then(|spec| workload.tasks.get(spec as usize));
        spec.is_some_and(|spec| is_launcher(&spec.program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::totals;
    use schedlab_model::TaskSpec;
    use schedlab_model::program::ProgramBuilder;

    fn workload() -> Workload {
        let shell = ProgramBuilder::new().op(Op::Fork { task: 1 }).op(Op::JoinAll).build();
        let job = ProgramBuilder::new().run(5).build();
        Workload::new("w", vec![TaskSpec::new("shell", shell), TaskSpec::new("job", job)])
    }

    fn task(spec: u32, turnaround_ns: u64) -> TaskMeasures {
        TaskMeasures {
            spec: Some(spec),
            cpu_time_ns: turnaround_ns,
            exit_ns: Some(turnaround_ns),
            turnaround_ns: Some(turnaround_ns),
            ..Default::default()
        }
    }

    #[test]
    fn the_totals_speak_of_the_jobs() {
        let mut tasks = [task(0, 1000), task(1, 200), task(1, 400)];
        let workload = workload();
        let marks = tasks.each_ref().map(of_workload(&workload));
        assert_eq!(marks, [true, false, false]);
        tasks[0].is_launcher = true;
        let totals = totals::summarise(&mut tasks, 1, 1000);
        assert_eq!(totals.turnaround_ns_mean, Some(300));
        assert_eq!((totals.nr_tasks, totals.nr_launchers), (2, 1));
        assert_eq!((totals.makespan_ns, totals.cpu_time_ns), (Some(400), 1600));
    }

    #[test]
    fn a_parent_that_works_is_a_task_like_others() {
        let both = ProgramBuilder::new().op(Op::Fork { task: 1 }).run(1).build();
        assert!(!is_launcher(&both));
        assert!(!is_launcher(&ProgramBuilder::new().run(1).build()));
    }
}
