// SPDX-License-Identifier: MIT OR Apache-2.0
//! The raw data of study S2's `benchmark`: what time(1) printed of each cell and round.
//!
//! A line is `%e %U %S %P %c %w`: wall, user and system time in seconds with two decimals, CPU use
//! in whole percents (of one CPU), involuntary and voluntary switches, separated by a tabulator and
//! a blank. The wall time is the makespan; the switches are those of all tasks. Files are named by
//! policy, type of work and load, as the study's `analyze` and `plot` read them.

use schedlab_run::{RunResult, values};
use std::fmt::Write as _;

/// The file of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// `cfs-cpu-light.dat`.
    pub name: String,
    /// Its lines.
    pub text: String,
}

/// A run as time(1) shows it; `None` where its wall, user or system time is not known.
pub fn time_line(run: &RunResult) -> Option<String> {
    let totals = &run.measures.totals;
    let wall_ns = totals.makespan_ns.filter(|ns| *ns > 0)?;
    let (user_ns, system_ns) = (totals.user_time_ns?, totals.system_time_ns?);
    // time(1) divides whole milliseconds and cuts.
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

/// The study's name of a policy.
fn policy(run: &RunResult) -> Option<&'static str> {
    let label = values::scheduler_label(run);
    match label.rsplit(':').next().unwrap_or_default() {
        "FIFO" => Some("fcfs"),
        "RR" => Some("rr"),
        "OTHER" => Some("cfs"),
        _ if run.lane == "sim" && !label.contains(':') => Some("cfs"),
        _ => None,
    }
}

/// The study's name of a type of work and of a load.
fn work(run: &RunResult) -> Option<(&'static str, &'static str)> {
    let kind = match run.workload.as_str() {
        "prime" => "cpu",
        "rw" => "io",
        "mixed" => "mixed",
        _ => return None,
    };
    let load = match values::dimension(run, "n").as_str() {
        "10" => "light",
        "100" => "medium",
        "1000" => "heavy",
        _ => return None,
    };
    Some((kind, load))
}

/// Whether a run is of one of the study's cells.
pub fn is_cell(run: &RunResult) -> bool {
    policy(run).is_some() && work(run).is_some()
}

/// The files of all cells in the order of their first runs; runs that are of no cell are left out.
pub fn cells(runs: &[&RunResult]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for run in runs {
        let (Some(policy), Some((kind, load)), Some(line)) =
            (policy(run), work(run), time_line(run))
        else {
            continue;
        };
        let name = format!("{policy}-{kind}-{load}.dat");
        let at = cells.iter().position(|cell| cell.name == name).unwrap_or_else(|| {
            cells.push(Cell { name, text: String::new() });
            cells.len() - 1
        });
        cells[at].text += &format!("{line}\n");
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workload: &str, scheduler: &str, n: &str) -> RunResult {
        let mut run = RunResult {
            lane: "host".into(),
            scheduler: scheduler.into(),
            workload: workload.into(),
            ..RunResult::default()
        };
        run.parameters.insert("n".into(), n.into());
        let totals = &mut run.measures.totals;
        totals.makespan_ns = Some(15_264_999_999);
        (totals.user_time_ns, totals.system_time_ns) = (Some(60_150_000_000), Some(9_999_999));
        (totals.nr_involuntary_switches, totals.nr_voluntary_switches) = (6352, 23);
        run
    }

    #[test]
    fn a_line_is_what_time_prints() {
        let line = time_line(&run("prime", "OTHER", "10")).unwrap();
        assert_eq!(line, "15.26\t 60.15\t 0.00\t 394%\t 6352\t 23");
        let mut unknown = run("prime", "OTHER", "10");
        unknown.measures.totals.user_time_ns = None;
        assert_eq!(time_line(&unknown), None);
    }

    #[test]
    fn files_have_the_studys_names_and_a_line_a_round() {
        let runs = [
            run("prime", "OTHER", "10"),
            run("mixed", "RR", "1000"),
            run("prime", "OTHER", "10"),
            run("prime", "OTHER", "50"),
            run("hogs", "OTHER", "10"),
        ];
        let cells = cells(&runs.iter().collect::<Vec<_>>());
        let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names, ["cfs-cpu-light.dat", "rr-mixed-heavy.dat"]);
        assert_eq!(cells[0].text.lines().count(), 2);
        assert!(runs.map(|run| is_cell(&run)) == [true, true, true, false, false]);
        let mut model = run("rw", "linux-6.1", "100");
        model.lane = "sim".into();
        assert_eq!(super::cells(&[&model])[0].name, "cfs-io-medium.dat");
        model.parameters.insert("policy".into(), "FIFO".into());
        assert_eq!(super::cells(&[&model])[0].name, "fcfs-io-medium.dat");
    }
}
