// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary in sentences, computed from the data: what ran, how turnaround and throughput grow
//! with n, which scheduler is best, how far simulation and kernel agree. Plain text, no markup.

use crate::group::{Cell, Group};
use crate::number::{duration, percent_change, plural, significant};
use crate::pairs::Pair;
use schedlab_lab::FigureKind;
use schedlab_lab::against::{Against, Measure, SWITCHES, THROUGHPUT, TURNAROUND};
use schedlab_lab::answer::{Contender, answer};
use schedlab_run::{LaneKind, Origin};
use std::collections::BTreeSet;

/// All sentences, in order.
pub fn findings(groups: &[Group<'_>], pairs: &[Pair<'_>]) -> Vec<String> {
    let mut out: Vec<String> = groups.iter().filter_map(best).collect();
    out.push(scope(groups));
    for group in groups {
        let figures = &group.result.experiment.figures;
        if figures.contains(&FigureKind::TurnaroundAgainstN)
            || figures.contains(&FigureKind::ThroughputAgainstN)
        {
            out.extend(group.cpus().into_iter().filter_map(|cpus| growth(group, cpus)));
        }
    }
    out.extend(groups.iter().rev().find_map(best_turnaround));
    out.extend(agreement(pairs));
    out
}

/// Names the best line of an experiment with one point.
fn best(group: &Group<'_>) -> Option<String> {
    let is_one_point = group.cells.len() == group.configs.len() && group.cells.len() > 1;
    let contenders: Vec<_> = group
        .cells
        .iter()
        .map(|cell| Contender {
            label: group.configs[cell.config].label(),
            runs: cell.runs.clone(),
        })
        .collect();
    let answer = is_one_point.then(|| answer(&contenders)).flatten()?;
    Some(answer.text(duration, significant))
}

fn scope(groups: &[Group<'_>]) -> String {
    let runs = || groups.iter().flat_map(|g| g.cells.iter().flat_map(|c| c.runs.iter()));
    let simulated = runs().filter(|run| run.lane == LaneKind::Sim).count();
    let total = runs().count();
    let kernels: BTreeSet<&str> = runs()
        .filter(|run| run.lane != LaneKind::Sim && !run.machine.kernel.is_empty())
        .map(|run| run.machine.kernel.as_str())
        .collect();
    let what = format!(
        "{} in {}",
        plural(total, "run", "runs"),
        plural(groups.len(), "experiment", "experiments")
    );
    let on = if kernels.is_empty() {
        "on the running kernel".to_string()
    } else {
        format!("on kernel {}", kernels.into_iter().collect::<Vec<_>>().join(" and "))
    };
    if total > 0 && runs().all(|run| run.lane == Origin::Trace) {
        let files = plural(total, "trace", "traces");
        return format!("{files}, recorded elsewhere and read from files.");
    }
    match (simulated, total - simulated) {
        (0, _) => format!("{what}, all measured {on}."),
        (_, 0) => format!("{what}, all simulated."),
        (s, m) => format!("{what}: {s} simulated, {m} measured {on}."),
    }
}

/// The line that the sentences describe: the kernel's default policy, else any measured line, else
/// the first.
fn reference(group: &Group<'_>) -> usize {
    let configs = &group.configs;
    configs
        .iter()
        .position(|c| !c.is_simulated() && c.scheduler == "OTHER")
        .or_else(|| configs.iter().position(|c| !c.is_simulated()))
        .unwrap_or(0)
}

fn mean(cell: &Cell<'_>, measure: &Measure<'_>) -> Option<f64> {
    cell.estimate(|run| measure.read(run)).map(|e| e.mean)
}

fn growth(group: &Group<'_>, cpus: u64) -> Option<String> {
    let config = reference(group);
    let ns: Vec<u64> =
        group.ns(cpus).into_iter().filter(|n| group.cell(config, *n, cpus).is_some()).collect();
    let (first, last) = (*ns.first()?, *ns.last()?);
    if first == last {
        return None;
    }
    let read = |n: u64, measure: &Measure<'_>| mean(group.cell(config, n, cpus)?, measure);
    let (t0, t1) = (read(first, &TURNAROUND)?, read(last, &TURNAROUND)?);
    let (x0, x1) = (read(first, &THROUGHPUT)?, read(last, &THROUGHPUT)?);
    let line = &group.configs[config];
    let start = format!(
        "On {} under {} ({}), going from {} to {} tasks multiplies mean turnaround by {} \
         ({} to {})",
        plural(cpus as usize, "CPU", "CPUs"),
        line.label(),
        line.lane_words(),
        first,
        last,
        significant(t1 / t0),
        duration(t0),
        duration(t1),
    );
    // The curve bends where all CPUs are busy.
    let bend = ns.iter().copied().find(|n| *n >= cpus).filter(|n| *n > first && *n < last);
    let rest = match bend.and_then(|n| Some((n, read(n, &THROUGHPUT)?))) {
        Some((n, x)) => format!(
            "; throughput rises {}-fold up to n\u{a0}=\u{a0}{n} and then changes by {}",
            significant(x / x0),
            percent_change(x, x1)
        ),
        None => format!(
            "; throughput changes by {} (from {} to {} tasks a second)",
            percent_change(x0, x1),
            significant(x0),
            significant(x1)
        ),
    };
    Some(start + &rest + ".")
}

/// Lowest and highest mean turnaround among the measured lines (else the simulated ones), at the
/// experiment's most tasks on its fewest CPUs.
fn best_turnaround(group: &Group<'_>) -> Option<String> {
    let figures = &group.result.experiment.figures;
    if !figures.contains(&FigureKind::TurnaroundAgainstN) {
        return None;
    }
    let cpus = *group.cpus().first()?;
    let n = *group.ns(cpus).last()?;
    let measured = group.configs.iter().any(|c| !c.is_simulated());
    let mut ranked: Vec<(f64, String)> = (0..group.configs.len())
        .filter(|c| group.configs[*c].is_simulated() != measured)
        .filter_map(|c| {
            let value = mean(group.cell(c, n, cpus)?, &TURNAROUND)?;
            Some((value, group.configs[c].full_label()))
        })
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (best, worst) = (ranked.first()?, ranked.last()?);
    if best.0 * 1.02 > worst.0 {
        return Some(format!(
            "With {n} tasks on {} all policies give the same mean turnaround within 2 %.",
            plural(cpus as usize, "CPU", "CPUs")
        ));
    }
    Some(format!(
        "With {n} tasks on {} mean turnaround is lowest under {} ({}) and highest under {} ({}).",
        plural(cpus as usize, "CPU", "CPUs"),
        best.1,
        duration(best.0),
        worst.1,
        duration(worst.0)
    ))
}

/// A measure over all pairs, ascending by ratio, each with its pair.
pub fn compared<'p, 'a, 'm>(
    pairs: &'p [Pair<'a>],
    measure: &Measure<'m>,
) -> Vec<(Against<'m>, &'p Pair<'a>)> {
    let mut out: Vec<(Against<'m>, &Pair<'a>)> =
        pairs.iter().filter_map(|pair| Some((pair.against(measure)?, pair))).collect();
    out.sort_by(|a, b| a.0.ratio().total_cmp(&b.0.ratio()));
    out
}

/// How many ratios of `found` are within `part` of 1.
pub fn within(found: &[(Against<'_>, &Pair<'_>)], part: f64) -> usize {
    found.iter().filter(|(against, _)| (against.ratio() - 1.0).abs() <= part).count()
}

/// How far models and kernels agree in turnaround and switches and, of a single pair, how exact
/// that is.
fn agreement(pairs: &[Pair<'_>]) -> Vec<String> {
    let exactness = match pairs {
        [pair] => pair.all().sentences(),
        _ => Vec::new(),
    };
    turnaround(pairs).into_iter().chain(exactness).collect()
}

fn turnaround(pairs: &[Pair<'_>]) -> Option<String> {
    let turnaround = compared(pairs, &TURNAROUND);
    let by_distance = |a: &&(Against<'_>, &Pair<'_>), b: &&(Against<'_>, &Pair<'_>)| {
        off(a.0.ratio()).total_cmp(&off(b.0.ratio()))
    };
    let farthest = turnaround.iter().max_by(by_distance)?;
    let switches = compared(pairs, &SWITCHES);
    let mut text = format!(
        "Simulation against kernel: of {} with equal parameters, simulated mean turnaround lies \
         within 5\u{a0}% of the measured one in {}; farthest is {} at n\u{a0}=\u{a0}{} on {} \
         ({} times)",
        plural(turnaround.len(), "pair", "pairs"),
        within(&turnaround, 0.05),
        farthest.1.label().replace('\u{f7}', "against"),
        farthest.1.measured.n,
        plural(farthest.1.measured.cpus as usize, "CPU", "CPUs"),
        significant(farthest.0.ratio()),
    );
    if let (Some(least), Some(most)) = (switches.first(), switches.last()) {
        text += &format!(
            "; switches are {} to {} times the measured",
            significant(least.0.ratio()),
            significant(most.0.ratio())
        );
    }
    Some(text + ".")
}

/// Distance of a ratio from 1, the same for 2 and 1/2.
fn off(ratio: f64) -> f64 {
    ratio.max(f64::MIN_POSITIVE).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use crate::pairs::pairs_of;
    use schedlab_run::LaneKind::Host;
    use schedlab_run::RunResult;

    fn measured(n: u64, turnaround: u64, throughput: f64) -> RunResult {
        let mut r = run(Host, "FIFO", n, 1);
        r.machine.kernel = "6.18.44".into();
        r.measures.totals.turnaround_ns_mean = Some(turnaround);
        r.measures.totals.throughput_per_s = Some(throughput);
        r
    }

    #[test]
    fn traces_were_not_measured_here() {
        let mut trace = measured(1, 5, 1.0);
        trace.lane = Origin::Trace;
        let results = [experiment("t", vec![trace])];
        let text = scope(&group_all(&results)).replace('\u{a0}', " ");
        assert_eq!(text, "1 trace, recorded elsewhere and read from files.");
    }

    #[test]
    fn sentences_hold_the_numbers_of_the_data() {
        let mut sim = measured(4, 110_000_000, 10.0);
        sim.lane = LaneKind::Sim.into();
        sim.scheduler = "fcfs".into();
        let mut result = experiment(
            "S1",
            vec![measured(1, 40_000_000, 10.0), measured(4, 100_000_000, 9.9), sim],
        );
        result.experiment.figures = vec![FigureKind::TurnaroundAgainstN];
        let results = [result];
        let groups = group_all(&results);
        let pairs = pairs_of(&groups);
        let text = findings(&groups, &pairs).join(" ").replace('\u{a0}', " ");
        assert!(text.contains("3 runs in 1 experiment: 1 simulated, 2 measured on kernel 6.18.44"));
        assert!(text.contains("multiplies mean turnaround by 2.50 (40.0 ms to 100 ms)"), "{text}");
        assert!(text.contains("throughput changes by \u{2212}1.0 %"), "{text}");
        assert!(text.contains("of 1 pair with equal parameters"), "{text}");
        assert!(text.contains("within 5 % of the measured one in 0"), "{text}");
        assert!(text.contains("fcfs against FIFO at n = 4 on 1 CPU (1.10 times)"), "{text}");
        assert!(text.contains("the uncertainty is unknown"), "{text}");
    }
}
