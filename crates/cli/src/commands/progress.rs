// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress of a series of runs on a terminal, and the messages about failed runs.

use crate::error::{CliError, CliResult, Exit};
use crate::output::{is_watched, printable, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedlab_lab::{Failure, Plan, PlannedRun};
use schedlab_run::LaneError;
use std::collections::BTreeMap;

/// A progress bar for a terminal. In a pipe or a log it shows nothing.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar for all runs of `plan`.
    pub fn new(plan: &Plan) -> Self {
        Self::of_runs(plan.runs.len())
    }

    /// A bar for `count` runs.
    pub fn of_runs(count: usize) -> Self {
        let target =
            if is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(count as u64), target);
        let template = "{elapsed_precise} [{wide_bar}] {pos}/{len} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(250));
        Self { bar }
    }

    /// Counts runs that are already stored.
    pub fn skip(&self, count: usize) {
        self.bar.inc(count as u64);
    }

    /// Counts a finished run.
    pub fn step(&self, run: &PlannedRun, error: Option<&LaneError>) {
        self.step_called(&run.label(), error);
    }

    /// Counts a finished run by its name.
    pub fn step_called(&self, name: &str, error: Option<&LaneError>) {
        self.bar.inc(1);
        let label: String = name.chars().take(40).collect();
        let text = if error.is_some() { format!("{label}: failed") } else { label };
        self.bar.set_message(printable(&text).into_owned());
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// How the exit code treats runs that this machine cannot do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// The user asked for them by name, so the command fails.
    Fails,
    /// They are only reported, because a study must work on any machine; the other runs count.
    IsSaid,
}

/// Reports every failure once and returns the exit code. Failed checks take precedence over bad
/// input, and bad input over what this machine cannot do.
pub fn finish_with_failures(failures: &[Failure], unavailable: Unavailable) -> CliResult<()> {
    let mut texts: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for failure in failures {
        texts.entry(failure.error.text()).or_insert((0, &failure.label)).0 += 1;
    }
    for (text, (count, label)) in texts {
        let others = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        say(format!("no result: {label}{others}: {text}"));
    }
    let has = |wanted: fn(&LaneError) -> bool| failures.iter().any(|f| wanted(&f.error));
    if has(|error| matches!(error, LaneError::Check(_))) {
        Err(CliError::Silent(Exit::Check))
    } else if has(|error| matches!(error, LaneError::Input(_))) {
        Err(CliError::Silent(Exit::Usage))
    } else if has(|error| matches!(error, LaneError::System(_)))
        || (unavailable == Unavailable::Fails && !failures.is_empty())
    {
        Err(CliError::Silent(Exit::Unavailable))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_decides_the_exit_code() {
        let failure = |error| Failure { run: 0, label: "x".into(), error };
        let failures = [
            failure(LaneError::Unavailable("no".into())),
            failure(LaneError::Check("lost a task".into())),
        ];
        let exit = |failures: &[Failure]| match finish_with_failures(failures, Unavailable::Fails) {
            Err(CliError::Silent(exit)) => Some(exit),
            _ => None,
        };
        assert_eq!(exit(&failures), Some(Exit::Check));
        assert_eq!(exit(&failures[..1]), Some(Exit::Unavailable));
        assert_eq!(exit(&[]), None);
        assert!(finish_with_failures(&failures[..1], Unavailable::IsSaid).is_ok());
    }
}
