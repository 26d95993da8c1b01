// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that only start others: a shell, the parent of study S0's children.
//!
//! They live as long as the whole run. Counted as tasks, they would raise the mean turnaround and
//! the throughput of every figure by a task that does no work; the studies count jobs only. They
//! stay in the list of tasks, marked, and out of the totals.

use schedlab_metrics::totals::{self, settle};
use schedlab_metrics::{RunMeasures, TaskMeasures};
use schedlab_model::{Op, Program, Workload};

/// Whether a program forks and does nothing else that takes time of its own.
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

/// Marks the launchers among the tasks and takes them out of the totals. Without a task that works
/// the totals stay as they are.
pub fn leave_out(measures: &mut RunMeasures, workload: &Workload, nr_cpus: u32) {
    for task in &mut measures.tasks {
        task.is_launcher = task
            .spec
            .and_then(|spec| workload.tasks.get(spec as usize))
            .is_some_and(|spec| is_launcher(&spec.program));
    }
    let mut workers: Vec<TaskMeasures> =
        measures.tasks.iter().filter(|task| !task.is_launcher).cloned().collect();
    if workers.is_empty() || workers.len() == measures.tasks.len() {
        return;
    }
    let of_workers = totals::summarise(&mut workers, nr_cpus, measures.totals.end_ns);
    let totals = &mut measures.totals;
    totals.nr_launchers = (measures.tasks.len() - workers.len()) as u64;
    totals.nr_tasks = of_workers.nr_tasks;
    totals.nr_exited = of_workers.nr_exited;
    totals.makespan_ns = of_workers.makespan_ns;
    totals.throughput_per_s = of_workers.throughput_per_s;
    totals.jain_index = of_workers.jain_index;
    totals.turnaround_ns_mean = of_workers.turnaround_ns_mean;
    totals.response_ns_mean = of_workers.response_ns_mean;
    totals.turnaround = of_workers.turnaround;
    totals.response = of_workers.response;
    totals.run_delay = of_workers.run_delay;
    settle(totals, nr_cpus);
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut measures = RunMeasures {
            tasks: vec![task(0, 1000), task(1, 200), task(1, 400)],
            ..Default::default()
        };
        leave_out(&mut measures, &workload(), 1);
        assert_eq!(measures.totals.turnaround_ns_mean, 300);
        assert_eq!((measures.totals.nr_tasks, measures.totals.nr_launchers), (2, 1));
        assert_eq!(measures.totals.makespan_ns, Some(400));
        let marks: Vec<bool> = measures.tasks.iter().map(|task| task.is_launcher).collect();
        assert_eq!(marks, [true, false, false]);
    }

    #[test]
    fn a_parent_that_works_is_a_task_like_others() {
        let both = ProgramBuilder::new().op(Op::Fork { task: 1 }).run(1).build();
        assert!(!is_launcher(&both));
        assert!(!is_launcher(&ProgramBuilder::new().run(1).build()));
    }
}
