// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace does not show, or shows in a way that may be wrong: each as a warning that says
//! what follows from it and what to do.

use super::warning;
use crate::table::duration;
use schedlab_metrics::RunMeasures;
use schedlab_run::Warning;
use schedlab_trace::{Facts, WakeSource};

/// Everything that bears on the figures, in order of weight.
pub fn of(facts: &Facts, measures: &RunMeasures) -> Vec<Warning> {
    let mut out = Vec::new();
    losses(facts, measures, &mut out);
    clocks(facts, &mut out);
    if facts.is_cut_off {
        out.push(warning(
            "trace-cut-off",
            "the last line has no end: the file was cut off there; that line is left out".into(),
        ));
    }
    wakes(facts, measures, &mut out);
    before(measures, &mut out);
    if !facts.is_nr_cpus_stated && facts.dialect.is_some() {
        out.push(warning(
            "trace-cpus-unknown",
            format!(
                "the trace does not say how many CPUs the machine has; {} is the greatest number \
                 seen + 1, and the utilisation is relative to that",
                facts.nr_cpus
            ),
        ));
    }
    if let Some((line, text)) = &facts.other_line {
        out.push(warning(
            "trace-other-lines",
            format!(
                "{} lines hold no event and are passed over; the first is line {line}: {text:?}",
                facts.nr_other_lines
            ),
        ));
    }
    out
}

fn losses(facts: &Facts, measures: &RunMeasures, out: &mut Vec<Warning>) {
    let totals = &measures.totals;
    if totals.nr_lost_events > 0 {
        out.push(warning(
            "trace-lost-events",
            format!(
                "the recorder lost {} events or more; {} tasks are marked uncertain, and time that \
                 no event explains is booked as unaccounted; record with a larger buffer",
                totals.nr_lost_events, totals.nr_uncertain_tasks
            ),
        ));
    }
    if facts.nr_missing_switches > 0 {
        out.push(warning(
            "trace-missing-switches",
            format!(
                "{} of {} switches are by a task that was not seen to come to its CPU: at least so \
                 many switches are missing; the time in between is nobody's CPU time",
                facts.nr_missing_switches, facts.nr_switches
            ),
        ));
    }
    if facts.nr_overwritten_events > 0 {
        out.push(warning(
            "trace-overwritten",
            format!(
                "the ring buffer overwrote {} older events before it was read: the trace shows the \
                 last part of the recording only",
                facts.nr_overwritten_events
            ),
        ));
    }
    if totals.nr_inconsistent_events > 0 {
        out.push(warning(
            "trace-inconsistent",
            format!(
                "{} events do not fit what came before them; {} tasks are marked uncertain",
                totals.nr_inconsistent_events, totals.nr_uncertain_tasks
            ),
        ));
    }
}

fn clocks(facts: &Facts, out: &mut Vec<Warning>) {
    if facts.nr_times_back > 0 {
        out.push(warning(
            "trace-time-back",
            format!(
                "{} lines are earlier than the line above, by up to {}; they are taken at the \
                 latest time; record with trace_clock=mono",
                facts.nr_times_back,
                duration(facts.back_ns_max)
            ),
        ));
    }
    if facts.is_clock_unknown {
        out.push(warning(
            "trace-clock-unknown",
            "the times are whole numbers without a point: they are taken as nanoseconds, which is \
             wrong for the trace clocks counter and x86-tsc; record with trace_clock=mono"
                .into(),
        ));
    }
}

fn wakes(facts: &Facts, measures: &RunMeasures, out: &mut Vec<Warning>) {
    let text = match facts.wakes {
        WakeSource::Wakeup => return,
        _ if measures.tasks.is_empty() => return,
        WakeSource::Waking => {
            "the trace has sched_waking but no sched_wakeup: waits begin where the wake-up was \
             decided, up to some microseconds early, and the first wake-up of each task may be \
             missing; record sched_wakeup too"
        }
        WakeSource::None => {
            "the trace has no wake-ups: how long a task slept and how long it then waited cannot \
             be told apart, and is booked as unaccounted; record sched_wakeup too"
        }
    };
    out.push(warning("trace-wakeups", text.into()));
}

/// Tasks that lived before the trace began.
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
    out.push(warning(
        "trace-tasks-before",
        format!(
            "{} of {} tasks lived before the trace began ({shown}{more}): they have no response \
             and no turnaround, and what they did before their first event is not counted",
            all.len(),
            measures.tasks.len()
        ),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::TaskMeasures;

    #[test]
    fn a_whole_trace_gives_no_doubt() {
        let facts = Facts { is_own: true, wakes: WakeSource::Wakeup, ..Facts::default() };
        let measures =
            RunMeasures { tasks: vec![TaskMeasures::default()], ..RunMeasures::default() };
        assert_eq!(of(&facts, &measures), []);
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
            of(&facts, &measures).into_iter().map(|warning| warning.code).collect();
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
