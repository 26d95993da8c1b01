// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a run in the units of the studies' own programs: the records of `sched` and `sched_nice`,
//! and the line of time(1) that study S2 stored.
//!
//! Children are numbered in the order of their forks. Time counts from the first fork. The programs
//! read their clock just before it, so their times include one more call of fork(2).
//!
//! Sources: `sched.c` of Satoru Takeuchi, "Linux in Practice" (2018); `benchmark` of Shannon and
//! Eller, "An Analysis of Linux Schedulers" (2015).

use schedlab_run::RunResult;
use std::fmt::Write as _;

/// Nanoseconds in a millisecond.
const NS_PER_MS: f64 = 1e6;

/// Elapsed milliseconds of each record, by child in the order of forks; `None` if the run kept no
/// progress.
pub fn record_times_ms(run: &RunResult) -> Option<Vec<Vec<f64>>> {
    let mut curves: Vec<_> = run.progress.iter().filter(|one| !one.times_ns.is_empty()).collect();
    curves.sort_by_key(|curve| curve.task);
    let task_of = |id: u32| run.measures.tasks.iter().find(|task| task.id == id);
    let released = curves.iter().filter_map(|curve| Some(task_of(curve.task)?.release_ns));
    let start_ns = released.min()?;
    let ms = |time: &u64| time.saturating_sub(start_ns) as f64 / NS_PER_MS;
    Some(curves.iter().map(|curve| curve.times_ns.iter().map(ms).collect()).collect())
}

/// A run as time(1) shows it with `%e %U %S %P %c %w`: wall, user and system time (s), CPU use
/// (percent of one CPU), involuntary and voluntary switches. The wall time is the makespan; `None`
/// if wall, user or system time is unknown.
pub fn time_line(run: &RunResult) -> Option<String> {
    let totals = &run.measures.totals;
    let wall_ns = totals.makespan_ns.filter(|ns| *ns > 0)?;
    let (user_ns, system_ns) = (totals.user_time_ns?, totals.system_time_ns?);
    // time(1) divides whole milliseconds and truncates.
    let percent = u128::from(user_ns + system_ns) * 100 / u128::from(wall_ns);
    let mut line = String::new();
    for ns in [wall_ns, user_ns, system_ns] {
        let centis = ns / 10_000_000;
        let _ = write!(line, "{}.{:02}\t ", centis / 100, centis % 100);
    }
    let _ = write!(
        line,
        "{percent}%\t {}\t {}",
        totals.nr_involuntary_switches, totals.nr_voluntary_switches
    );
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::TaskMeasures;
    use schedlab_run::result::ProgressCurve;

    /// A parent and two children, forked at 1 and 2 ms.
    #[test]
    fn times_count_from_the_first_fork() {
        let mut run = RunResult::default();
        let task = |id, release_ns| TaskMeasures { id, release_ns, ..TaskMeasures::default() };
        run.measures.tasks = vec![task(0, 0), task(1, 1_000_000), task(2, 2_000_000)];
        let curve = |task, times: [u64; 2]| ProgressCurve { task, times_ns: times.to_vec() };
        run.progress = vec![curve(2, [2_999_999, 7_000_000]), curve(1, [2_000_000, 8_500_000])];
        assert_eq!(record_times_ms(&run), Some(vec![vec![1.0, 7.5], vec![1.999_999, 6.0]]));
        run.progress.clear();
        assert_eq!(record_times_ms(&run), None);
    }

    #[test]
    fn a_line_is_what_time_prints() {
        let mut run = RunResult::default();
        let totals = &mut run.measures.totals;
        totals.makespan_ns = Some(15_264_999_999);
        (totals.user_time_ns, totals.system_time_ns) = (Some(60_150_000_000), Some(9_999_999));
        (totals.nr_involuntary_switches, totals.nr_voluntary_switches) = (6352, 23);
        assert_eq!(time_line(&run).unwrap(), "15.26\t 60.15\t 0.00\t 394%\t 6352\t 23");
        run.measures.totals.user_time_ns = None;
        assert_eq!(time_line(&run), None);
    }
}
