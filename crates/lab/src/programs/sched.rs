// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of `sched` and `sched_nice`: who had done how much at which time.
//!
//! Children are numbered in the order in which they were forked, from 0. Time is counted from the
//! first fork; the program reads its clock just before it, so that it counts the time of one call
//! of fork(2) more. A child prints its lines when it has done its work: blocks of lines stand in
//! the order in which the children ended.

use schedlab_run::RunResult;
use std::fmt::Write as _;

/// Nanoseconds of the unit in which times are printed.
const NS_PER_MS: u64 = 1_000_000;

/// A child's records.
struct Child {
    /// Number in the order of forks.
    number: usize,
    /// Time of each record, ns since the first fork.
    times_ns: Vec<u64>,
    /// When it ended, or its last record if it did not.
    end_ns: u64,
}

/// The children in the order of forks.
fn children(run: &RunResult) -> Result<Vec<Child>, String> {
    let mut curves: Vec<_> = run.progress.iter().filter(|one| !one.times_ns.is_empty()).collect();
    curves.sort_by_key(|curve| curve.task);
    let task_of = |id: u32| run.measures.tasks.iter().find(|task| task.id == id);
    let start = curves.iter().filter_map(|curve| Some(task_of(curve.task)?.release_ns)).min();
    let Some(start_ns) = start else {
        return Err("it holds no progress: `sched` and `sched_nice` mark theirs, and `--json \
                    --keep` or a trace keeps it"
            .into());
    };
    let child = |(number, curve): (usize, &&schedlab_run::ProgressCurve)| {
        let times_ns: Vec<u64> =
            curve.times_ns.iter().map(|time| time.saturating_sub(start_ns)).collect();
        let last = curve.times_ns.last().copied();
        let end_ns = task_of(curve.task).and_then(|task| task.exit_ns).or(last).unwrap_or(0);
        Child { number, times_ns, end_ns }
    };
    Ok(curves.iter().enumerate().map(child).collect())
}

/// Lines of `sched` and `sched_nice`: number of the child, milliseconds, percent, separated by
/// tabulators. Both numbers are cut to integers, as the program's are.
pub fn tsv(run: &RunResult) -> Result<String, String> {
    let mut children = children(run)?;
    let nr_records = children.iter().map(|child| child.times_ns.len()).max().unwrap_or(1);
    children.sort_by_key(|child| (child.end_ns, child.number));
    let mut out = String::new();
    for child in &children {
        for (index, time_ns) in child.times_ns.iter().enumerate() {
            let percent = (index + 1) * 100 / nr_records;
            let _ = writeln!(out, "{}\t{}\t{percent}", child.number, time_ns / NS_PER_MS);
        }
    }
    Ok(out)
}

/// The files `0.data`, `1.data` ... of `sched.py` and `sched-nice.py`, in this order: milliseconds
/// and the number of the record from 0.
pub fn data(run: &RunResult) -> Result<Vec<String>, String> {
    let file = |child: &Child| {
        let mut out = String::new();
        for (index, time_ns) in child.times_ns.iter().enumerate() {
            let _ = writeln!(out, "{}.{:06}\t{index}", time_ns / NS_PER_MS, time_ns % NS_PER_MS);
        }
        out
    };
    Ok(children(run)?.iter().map(file).collect())
}

/// Elapsed milliseconds of each record, by child in the order of forks, not cut.
pub fn record_times_ms(run: &RunResult) -> Result<Vec<Vec<f64>>, String> {
    let ms =
        |child: &Child| child.times_ns.iter().map(|ns| *ns as f64 / NS_PER_MS as f64).collect();
    Ok(children(run)?.iter().map(ms).collect())
}

/// The name under which study S0 keeps such a file: `2core-4process.tsv`,
/// `nice-1core-2process.tsv`.
pub fn tsv_name(run: &RunResult) -> String {
    let nice = if run.workload == "sched_nice" { "nice-" } else { "" };
    let count = run.progress.iter().filter(|one| !one.times_ns.is_empty()).count();
    format!("{nice}{}core-{count}process.tsv", schedlab_run::values::dimension(run, "cpus"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::TaskMeasures;
    use schedlab_run::ProgressCurve;

    /// A parent and two children, forked at 1 and 2 ms, four records each; the second ends first.
    fn run() -> RunResult {
        let mut run = RunResult { workload: "sched".into(), ..RunResult::default() };
        let task = |id, release_ns, exit_ns| TaskMeasures {
            id,
            release_ns,
            exit_ns: Some(exit_ns),
            ..TaskMeasures::default()
        };
        run.measures.tasks = vec![
            task(0, 0, 9_000_000),
            task(1, 1_000_000, 8_500_000),
            task(2, 2_000_000, 7_100_000),
        ];
        let curve = |task, times: [u64; 4]| ProgressCurve { task, times_ns: times.to_vec() };
        run.progress = vec![
            curve(2, [2_999_999, 4_000_000, 5_000_000, 7_000_000]),
            curve(1, [2_000_000, 3_000_001, 6_000_000, 8_499_999]),
        ];
        run
    }

    #[test]
    fn a_childs_lines_stand_together_and_who_ends_first_comes_first() {
        assert_eq!(
            tsv(&run()).unwrap(),
            "1\t1\t25\n1\t3\t50\n1\t4\t75\n1\t6\t100\n0\t1\t25\n0\t2\t50\n0\t5\t75\n0\t7\t100\n"
        );
    }

    #[test]
    fn the_python_program_has_a_file_a_child_and_counts_from_0() {
        let files = data(&run()).unwrap();
        assert_eq!(files[0], "1.000000\t0\n2.000001\t1\n5.000000\t2\n7.499999\t3\n");
        assert_eq!(files.len(), 2);
    }

    /// Percents are of what a whole task does, also for one that the run's end cut off.
    #[test]
    fn a_child_that_was_cut_off_does_not_reach_a_hundred() {
        let mut run = run();
        run.progress[0].times_ns.truncate(1);
        run.measures.tasks[2].exit_ns = None;
        assert!(tsv(&run).unwrap().starts_with("1\t1\t25\n0\t1\t25\n"));
    }

    #[test]
    fn files_have_the_studys_names() {
        let mut run = run();
        run.parameters.insert("cpus".into(), "2".into());
        assert_eq!(tsv_name(&run), "2core-2process.tsv");
        run.workload = "sched_nice".into();
        assert_eq!(tsv_name(&run), "nice-2core-2process.tsv");
    }

    #[test]
    fn without_progress_there_is_nothing_to_print() {
        let run = RunResult { progress: Vec::new(), ..run() };
        assert!(tsv(&run).unwrap_err().contains("--keep") && data(&run).is_err());
    }
}
