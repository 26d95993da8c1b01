// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison with a real kernel as text.

use super::result::{FirstTurn, FirstTurnSide, Runs, TurnDiffResult};
use crate::commands::explain::{print_decision, time};
use crate::commands::results;
use crate::error::CliResult;
use crate::output::Out;
use crate::table::{self, duration, number};

/// Most tasks of a side that are shown.
const TASKS_SHOWN: usize = 12;

/// Prints the comparison, its result first.
pub fn print(result: &TurnDiffResult, out: &mut Out) -> CliResult<()> {
    out.line(&result.sentence)?;
    for (letter, side) in ["A", "B"].iter().zip(&result.sides) {
        let mut parts: Vec<String> = side.kernel.iter().cloned().collect();
        parts.extend(side.tunables.iter().map(|(name, value)| format!("{name}={value}")));
        let parts = if parts.is_empty() { "a model".into() } else { parts.join(", ") };
        out.line(format!("  {letter}: {} ({parts})", side.name))?;
    }
    out.line(format!(
        "  Equal turns begin at most {} apart; a preemption may come {} earlier or later.",
        duration(result.apart_ns_max),
        duration(result.tolerance_ns)
    ))?;
    if let Some(why) = &result.stopped {
        out.line(format!("  Nothing is compared after that: {why}."))?;
    }
    if let Some(text) = &result.workload_text {
        out.line("")?;
        out.line(text.trim_end())?;
    }
    if let Some(first) = &result.first {
        print_first(first, out)?;
    }
    if let Some(runs) = &result.runs {
        out.line("")?;
        print_runs(runs, result.seed, out)?;
    }
    if let Some(versus) = &result.measures {
        results::versus_lines(versus, out)?;
    }
    if let Some(command) = &result.command {
        out.line(format!("\nCompare it again: {command}"))?;
    }
    Ok(())
}

fn print_first(first: &FirstTurn, out: &mut Out) -> CliResult<()> {
    out.line(match &first.timing {
        Some(why) => format!("  Times explain it, not a choice: {why}."),
        None => "  It is a choice: the same tasks can run on both sides.".into(),
    })?;
    for (letter, side) in ["A", "B"].iter().zip(&first.sides) {
        out.line(format!("\n{letter} {} at {}", side.did, time(side.time_ns)))?;
        print_tasks(side, out)?;
        if let Some(decision) = &side.decision {
            print_decision(decision, out)?;
        }
    }
    Ok(())
}

fn print_tasks(side: &FirstTurnSide, out: &mut Out) -> CliResult<()> {
    let mut rows = table::table(&["", "task", "state", "CPU time so far"]);
    for task in side.runnable.iter().take(TASKS_SHOWN) {
        let state = match task.waited_ns {
            None => "runs".to_owned(),
            Some(waited_ns) => format!("has waited {}", time(waited_ns)),
        };
        let cells = ["", &task.name, &state].map(comfy_table::Cell::new);
        rows.add_row(cells.into_iter().chain([number(time(task.ran_ns))]));
    }
    for line in table::render(&rows).lines() {
        out.line(format!("  {line}"))?;
    }
    match side.runnable.len().saturating_sub(TASKS_SHOWN) {
        0 => Ok(()),
        count => out.line(format!("  ... and {count} more tasks")),
    }
}

fn print_runs(runs: &Runs, seed: u64, out: &mut Out) -> CliResult<()> {
    let Runs { nr_runs, nr_choice, nr_timing } = runs;
    let nr_same = nr_runs - nr_choice - nr_timing;
    out.line(format!(
        "Of {nr_runs} runs with other seeds and starts, {nr_choice} differ first by a choice, \
         {nr_timing} by times, {nr_same} not at all; shown is that of seed {seed}."
    ))
}
