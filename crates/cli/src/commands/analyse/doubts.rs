// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about a trace: what it does not show, or may show wrongly. Each warning names the
//! consequence and the remedy.

use super::Part;
use crate::table::duration;
use schedlab_metrics::RunMeasures;
use schedlab_run::Warning;
use schedlab_trace::{Facts, WakeSource};

/// All warnings that concern the figures, the most important first.
pub fn of(facts: &Facts, measures: &RunMeasures, part: Part) -> Vec<Warning> {
    let mut out = Vec::new();
    losses(facts, measures, &mut out);
    clocks(facts, &mut out);
    if facts.is_cut_off {
        out.push(Warning::trace_cut_off());
    }
    wakes(facts, measures, &mut out);
    if part.from_ns == 0 {
        before(measures, &mut out);
    }
    if !facts.is_nr_cpus_stated && facts.dialect.is_some() {
        out.push(Warning::trace_cpus_unknown(facts.nr_cpus));
    }
    if let Some((line, text)) = &facts.other_line {
        out.push(Warning::trace_other_lines(facts.nr_other_lines, *line, text));
    }
    out
}

fn losses(facts: &Facts, measures: &RunMeasures, out: &mut Vec<Warning>) {
    let totals = &measures.totals;
    let nr_uncertain = totals.nr_uncertain_tasks;
    if totals.nr_lost_events > 0 {
        out.push(Warning::trace_lost_events(totals.nr_lost_events, nr_uncertain));
    }
    if facts.nr_missing_switches > 0 {
        out.push(Warning::trace_missing_switches(facts.nr_missing_switches, facts.nr_switches));
    }
    if facts.nr_overwritten_events > 0 {
        out.push(Warning::trace_overwritten(facts.nr_overwritten_events));
    }
    if totals.nr_inconsistent_events > 0 {
        out.push(Warning::trace_inconsistent(totals.nr_inconsistent_events, nr_uncertain));
    }
}

fn clocks(facts: &Facts, out: &mut Vec<Warning>) {
    if facts.nr_times_back > 0 {
        out.push(Warning::trace_time_back(facts.nr_times_back, &duration(facts.back_ns_max)));
    }
    if facts.is_clock_unknown {
        out.push(Warning::trace_clock_unknown());
    }
}

fn wakes(facts: &Facts, measures: &RunMeasures, out: &mut Vec<Warning>) {
    match facts.wakes {
        WakeSource::Wakeup => {}
        _ if measures.tasks.is_empty() => {}
        WakeSource::Waking => out.push(Warning::trace_waking_only()),
        WakeSource::None => out.push(Warning::trace_without_wakeups()),
    }
}

/// Warns about tasks that lived before the trace began.
fn before(measures: &RunMeasures, out: &mut Vec<Warning>) {
    let all: Vec<_> = measures.tasks.iter().filter(|task| task.is_release_unseen).collect();
    if all.is_empty() {
        return;
    }
    let mut names: Vec<&str> = all.iter().map(|task| task.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let shown = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(8);
    let more = if more > 0 { format!(" and {more} more names") } else { String::new() };
    let names = format!("{shown}{more}");
    out.push(Warning::trace_tasks_before(all.len(), measures.tasks.len(), &names));
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::TaskMeasures;
    use schedlab_model::Nanos;

    const WHOLE: Part = Part { from_ns: 0, to_ns: Nanos::MAX };

    #[test]
    fn a_whole_trace_gives_no_doubt() {
        let facts = Facts { is_own: true, wakes: WakeSource::Wakeup, ..Facts::default() };
        let measures =
            RunMeasures { tasks: vec![TaskMeasures::default()], ..RunMeasures::default() };
        assert_eq!(of(&facts, &measures, WHOLE), []);
    }

    #[test]
    fn each_doubt_is_told() {
        let facts = Facts {
            dialect: Some(schedlab_trace::Dialect::Perf),
            nr_missing_switches: 1,
            nr_overwritten_events: 2,
            nr_times_back: 3,
            is_clock_unknown: true,
            is_cut_off: true,
            other_line: Some((4, "x".into())),
            ..Facts::default()
        };
        let task = TaskMeasures { name: "a".into(), is_release_unseen: true, ..Default::default() };
        let mut measures = RunMeasures { tasks: vec![task; 20], ..RunMeasures::default() };
        measures.totals.nr_lost_events = 5;
        measures.totals.nr_inconsistent_events = 6;
        let codes: Vec<String> =
            of(&facts, &measures, WHOLE).into_iter().map(|warning| warning.code.into()).collect();
        let want = [
            "trace-lost-events",
            "trace-missing-switches",
            "trace-overwritten",
            "trace-inconsistent",
            "trace-time-back",
            "trace-clock-unknown",
            "trace-cut-off",
            "trace-wakeups",
            "trace-tasks-before",
            "trace-cpus-unknown",
            "trace-other-lines",
        ];
        assert_eq!(codes, want);
    }
}
