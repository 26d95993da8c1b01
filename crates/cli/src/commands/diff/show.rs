// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison as text.

use super::result::{DiffResult, DiffSide, FirstDifference, Followed};
use crate::commands::explain::{print_decision, time};
use crate::commands::results;
use crate::error::CliResult;
use crate::output::Out;
use crate::table::percent;

/// CPUs whose tasks are shown for a placement or a migration.
const CPUS_SHOWN: usize = 8;

/// Prints the comparison, its result first.
pub fn print(result: &DiffResult, out: &mut Out) -> CliResult<()> {
    out.line(&result.sentence)?;
    for (letter, scheduler) in ["A", "B"].iter().zip(&result.schedulers) {
        let mut settings: Vec<String> =
            scheduler.tunables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.push(format!("preempt={}", scheduler.preempt));
        out.line(format!("  {letter}: {} ({})", scheduler.name, settings.join(", ")))?;
    }
    if let Some(text) = &result.workload_text {
        out.line("")?;
        out.line(text.trim_end())?;
    }
    if let Some(state) = &result.state {
        out.line("\nThe first number that differs:")?;
        out.line(format!("  {}", state.sentence))?;
    }
    if let Some(first) = &result.first {
        for (letter, side) in ["A", "B"].iter().zip(&first.sides) {
            out.line("")?;
            print_side(letter, first, side, out)?;
        }
    }
    if let Some(followed) = &result.followed {
        out.line("")?;
        print_followed(followed, out)?;
    }
    if let Some(versus) = &result.measures {
        out.line("")?;
        results::versus_lines(versus, out)?;
    }
    if let Some(command) = &result.file {
        out.line(format!("\nCompare it again: {command}"))?;
    }
    Ok(())
}

fn print_side(
    letter: &str,
    first: &FirstDifference,
    side: &DiffSide,
    out: &mut Out,
) -> CliResult<()> {
    let when = if side.picked_now { "" } else { "; its last pick there was" };
    out.line(format!("{letter} {}{when}", side.did))?;
    match &side.decision {
        Some(decision) => print_decision(decision, out)?,
        None => out.line(format!("  it has not picked on CPU {} before", first.cpu))?,
    }
    if matches!(first.kind.as_str(), "placement" | "migration") {
        for (cpu, (running, waiting)) in side.cpus.iter().enumerate().take(CPUS_SHOWN) {
            let running = running.as_deref().unwrap_or("no task");
            out.line(format!("  CPU {cpu} runs {running}, {waiting} wait"))?;
        }
    }
    Ok(())
}

fn print_followed(followed: &Followed, out: &mut Out) -> CliResult<()> {
    if followed.nr_decisions == 0 {
        let why = followed.stopped.as_deref().unwrap_or("there was nothing to decide");
        return out.line(format!("B cannot follow A's decisions: {why}"));
    }
    let share = followed.nr_differing as f64 / followed.nr_decisions as f64;
    out.line(format!(
        "If B follows A's decisions and keeps its own books, it disagrees in {} of {} picks ({}).",
        followed.nr_differing,
        followed.nr_decisions,
        percent(share)
    ))?;
    for (count, what) in [
        (followed.nr_other_task, "both switch, to different tasks"),
        (followed.nr_only_a, "only A preempts the running task"),
        (followed.nr_only_b, "only B would preempt the running task"),
    ] {
        if count > 0 {
            out.line(format!("  {count}: {what}"))?;
        }
    }
    if let Some(why) = &followed.stopped {
        out.line(format!("  counted up to {}: {why}", time(followed.until_ns)))?;
    }
    Ok(())
}
