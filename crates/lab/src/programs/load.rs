// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times of `load`, `multiload` and `cpuperf`.
//!
//! A job's real time is its turnaround, from fork to exit; that of a whole `multiload` goes from
//! the first fork to the last exit, which leaves out the shell's own start. A run of the workload
//! `cpuperf` has several rounds, of one job, of two, and so on: its jobs are taken in the order in
//! which they were forked. Other runs are one round.

use schedlab_metrics::TaskMeasures;
use schedlab_run::RunResult;
use std::fmt::Write as _;

/// The jobs of a run in the order of their forks, all of them ended.
fn jobs(run: &RunResult) -> Result<Vec<&TaskMeasures>, String> {
    let tasks = || run.measures.tasks.iter();
    let mut jobs: Vec<&TaskMeasures> = tasks().filter(|task| !task.is_launcher).collect();
    // A trace does not tell launchers; whoever lives as long as all others and does next to
    // nothing is one.
    if run.lane == "trace" && jobs.len() > 1 {
        jobs.retain(|task| !outlives_all(task, run));
    }
    jobs.sort_by_key(|task| task.id);
    if jobs.is_empty() {
        return Err(
            "it holds no tasks: the result of a sweep has none, `--json` of a run has".into()
        );
    }
    match jobs.iter().find(|task| task.exit_ns.is_none() || task.turnaround_ns.is_none()) {
        Some(task) => Err(format!("task {} did not end: it has no real time", task.name)),
        None => Ok(jobs),
    }
}

/// Whether a task was released first, ends last, and used less than a hundredth of the CPU time.
fn outlives_all(task: &TaskMeasures, run: &RunResult) -> bool {
    let tasks = &run.measures.tasks;
    let others = || tasks.iter().filter(|other| other.id != task.id);
    task.cpu_time_ns < run.measures.totals.cpu_time_ns / 100
        && others().all(|other| other.release_ns >= task.release_ns)
        && others().all(|other| other.exit_ns <= task.exit_ns || task.exit_ns.is_none())
}

/// What bash's `time` prints of each job, in the order in which they ended: real, user, system.
/// Times are cut to milliseconds, as bash does it. Where a lane does not tell user from system time
/// all CPU time is the user's.
pub fn time(run: &RunResult) -> Result<String, String> {
    let mut jobs = jobs(run)?;
    jobs.sort_by_key(|task| (task.exit_ns, task.id));
    let mut out = String::new();
    for job in jobs {
        let real = job.turnaround_ns.unwrap_or(0);
        let system = job.system_time_ns.unwrap_or(0);
        let user = job.user_time_ns.unwrap_or(job.cpu_time_ns);
        let _ = writeln!(
            out,
            "\nreal\t{}\nuser\t{}\nsys\t{}",
            minutes(real),
            minutes(user),
            minutes(system)
        );
    }
    Ok(out)
}

/// `0m1.858s`.
fn minutes(ns: u64) -> String {
    let ms = ns / 1_000_000;
    format!("{}m{}.{:03}s", ms / 60_000, ms / 1000 % 60, ms % 1000)
}

/// Lines of `cpuperf.data`: number of jobs, mean turnaround in seconds, jobs a second, separated by
/// tabulators; by the number of jobs, and one line each for repetitions, which a scatter plot shows
/// as they are.
pub fn cpuperf(runs: &[&RunResult]) -> Result<String, String> {
    let mut lines: Vec<(usize, f64, f64)> = Vec::new();
    for run in runs {
        for round in rounds(run)? {
            lines.push(round_line(&round)?);
        }
    }
    lines.sort_by_key(|line| line.0);
    let mut out = String::new();
    for (count, turnaround, throughput) in lines {
        let _ = writeln!(out, "{count}\t{turnaround:.3}\t{throughput:.3}");
    }
    Ok(out)
}

fn round_line(jobs: &[&TaskMeasures]) -> Result<(usize, f64, f64), String> {
    let turnaround = jobs.iter().map(|job| job.turnaround_ns.unwrap_or(0)).sum::<u64>();
    let first = jobs.iter().map(|job| job.release_ns).min().unwrap_or(0);
    let last = jobs.iter().filter_map(|job| job.exit_ns).max().unwrap_or(0);
    let real_ns = last.saturating_sub(first);
    if real_ns == 0 {
        return Err("its jobs took no time".into());
    }
    let count = jobs.len();
    Ok((count, turnaround as f64 / 1e9 / count as f64, count as f64 / (real_ns as f64 / 1e9)))
}

/// The jobs by round.
fn rounds(run: &RunResult) -> Result<Vec<Vec<&TaskMeasures>>, String> {
    let jobs = jobs(run)?;
    let is_told = matches!(run.workload.as_str(), "load" | "multiload");
    let rounds = if is_told { None } else { growing_rounds(&jobs) };
    if rounds.is_none() && run.workload == "cpuperf" {
        return Err(format!("{} jobs are not rounds of 1, 2, 3 ... jobs", jobs.len()));
    }
    Ok(rounds.unwrap_or_else(|| vec![jobs]))
}

/// Rounds of 1, 2, 3 ... jobs, each begun when all before it had ended; `None` if it was not so.
fn growing_rounds<'r>(jobs: &[&'r TaskMeasures]) -> Option<Vec<Vec<&'r TaskMeasures>>> {
    let mut rounds: Vec<Vec<&TaskMeasures>> = Vec::new();
    let mut rest = jobs;
    let mut ended_ns = 0;
    while !rest.is_empty() {
        let (round, later) = rest.split_at_checked(rounds.len() + 1)?;
        if round.iter().any(|job| job.release_ns < ended_ns) {
            return None;
        }
        ended_ns = round.iter().filter_map(|job| job.exit_ns).max()?;
        rounds.push(round.to_vec());
        rest = later;
    }
    Some(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn job(id: u32, release_ms: u64, exit_ms: u64) -> TaskMeasures {
        TaskMeasures {
            id,
            name: format!("load-{id}"),
            release_ns: release_ms * MS,
            exit_ns: Some(exit_ms * MS),
            turnaround_ns: Some((exit_ms - release_ms) * MS),
            cpu_time_ns: 1_499 * MS + 999_999,
            ..TaskMeasures::default()
        }
    }

    fn run(workload: &str, jobs: Vec<TaskMeasures>) -> RunResult {
        let mut run = RunResult { workload: workload.into(), ..RunResult::default() };
        let end = jobs.iter().filter_map(|job| job.exit_ns).max();
        let shell = TaskMeasures { is_launcher: true, exit_ns: end, ..TaskMeasures::default() };
        run.measures.tasks = std::iter::once(shell).chain(jobs).collect();
        run
    }

    /// Three jobs on one CPU, as a reader of the study has them.
    #[test]
    fn times_are_those_of_bash_in_the_order_of_exits() {
        let mut run = run("multiload", vec![job(1, 0, 4_428), job(2, 0, 64_443), job(3, 0, 4_000)]);
        run.measures.tasks[2].user_time_ns = Some(1_475 * MS);
        run.measures.tasks[2].system_time_ns = Some(7 * MS);
        assert_eq!(
            time(&run).unwrap(),
            "\nreal\t0m4.000s\nuser\t0m1.499s\nsys\t0m0.000s\n\
             \nreal\t0m4.428s\nuser\t0m1.499s\nsys\t0m0.000s\n\
             \nreal\t1m4.443s\nuser\t0m1.475s\nsys\t0m0.007s\n"
        );
    }

    #[test]
    fn runs_become_lines_by_the_number_of_jobs() {
        let two = run("multiload", vec![job(1, 10, 3_010), job(2, 20, 4_010)]);
        let one = run("multiload", vec![job(1, 0, 1_858)]);
        assert_eq!(cpuperf(&[&two, &one]).unwrap(), "1\t1.858\t0.538\n2\t3.495\t0.500\n");
    }

    #[test]
    fn a_run_of_cpuperf_is_taken_apart_into_its_rounds() {
        let jobs = vec![job(1, 0, 1000), job(2, 1001, 3000), job(3, 1002, 3001)];
        assert_eq!(
            cpuperf(&[&run("cpuperf", jobs.clone())]).unwrap(),
            "1\t1.000\t1.000\n2\t1.999\t1.000\n"
        );
        let at_once = run("cpuperf", vec![job(1, 0, 1000), job(2, 999, 3000), job(3, 999, 3001)]);
        assert!(cpuperf(&[&at_once]).unwrap_err().contains("rounds of 1, 2, 3"));
        let all = cpuperf(&[&run("multiload", jobs)]).unwrap();
        assert_eq!(all, "3\t1.666\t1.000\n", "one multiload is one round");
    }

    #[test]
    fn a_trace_does_not_name_its_shell() {
        let mut run = run("trace", vec![job(1, 0, 1000), job(2, 0, 2000)]);
        run.lane = "trace".into();
        run.measures.tasks[0].is_launcher = false;
        run.measures.totals.cpu_time_ns = 3_000 * MS;
        assert_eq!(cpuperf(&[&run]).unwrap(), "2\t1.500\t1.000\n");
    }

    #[test]
    fn jobs_that_did_not_end_have_no_real_time() {
        let mut cut = run("multiload", vec![job(1, 0, 1000)]);
        cut.measures.tasks[1].exit_ns = None;
        assert!(time(&cut).unwrap_err().contains("load-1 did not end"));
        assert!(cpuperf(&[&RunResult::default()]).is_err());
    }
}
