// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables on the command line: `--set slice=10ms` for every scheduler of the command, or
//! `--set linux-6.12:base_slice=3ms` for one of them.

use super::sim::known_scheduler;
use crate::error::{CliError, CliResult};
use crate::input;
use crate::made;
use schedlab_run::{LaneKind, policy};

/// Scheduler, if one is named, tunable and value.
type Setting<'t> = (Option<&'t str>, &'t str, &'t str);

fn parse(text: &str) -> CliResult<Setting<'_>> {
    let (name, value) = input::pair("--set", text)?;
    Ok(match name.split_once(':') {
        Some((scheduler, name)) => (Some(scheduler.trim()), name.trim(), value),
        None => (None, name, value),
    })
}

/// What `texts` say for `scheduler`.
pub fn of_scheduler(texts: &[String], scheduler: &str) -> CliResult<Vec<(String, String)>> {
    let mut tunables = Vec::new();
    for text in texts {
        let (only, name, value) = parse(text)?;
        // Options that take several values are given when the scheduler is compiled.
        if only.is_none_or(|only| only == scheduler) && !made::is_array(scheduler, name) {
            tunables.push((name.to_string(), value.to_string()));
        }
    }
    Ok(tunables)
}

/// A setting for a scheduler that does not run would be lost without a word.
pub fn check_schedulers<'s>(
    texts: &[String],
    schedulers: impl Iterator<Item = &'s str>,
) -> CliResult<()> {
    let mut running = Vec::new();
    for scheduler in schedulers {
        running.push(policy::scheduler_of(LaneKind::Sim, scheduler)?.0);
    }
    for text in texts {
        let (Some(scheduler), ..) = parse(text)? else { continue };
        known_scheduler(scheduler)?;
        if !running.iter().any(|name| name == scheduler) {
            return Err(CliError::usage_help(
                format!("--set {text}: {scheduler} does not run here, but {}", running.join(", ")),
                format!("add --scheduler {scheduler}, or leave that --set out"),
            ));
        }
    }
    Ok(())
}
