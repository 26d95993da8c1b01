// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare -- COMMAND`: which policy, nice value or slice suits a command on this
//! machine.

use super::copies::{self, Copies};
use super::progress::Bar;
use super::results::{self, Expectations};
use super::{report, sim};
use crate::args::CompareArgs;
use crate::error::CliResult;
use crate::output::Out;
use schedlab_host::Output;
use schedlab_lab::ExperimentResult;
use schedlab_model::Policy;
use schedlab_run::{Keep, RunResult, Variant};

/// Default number of repetitions.
const REPETITIONS_DEFAULT: u32 = 3;

/// Default list of variants. FIFO needs permission to use real-time policies.
fn variants_default() -> Vec<Variant> {
    let mut policies = vec![Policy::Normal, Policy::Batch];
    if schedlab_host::lane::may_set_policies() {
        policies.push(Policy::Fifo);
    }
    let variant = |policy| Variant { policy: Some(policy), ..Variant::default() };
    policies.into_iter().map(variant).collect()
}

/// Runs the command of `args` under each variant and prints a table.
pub fn compare_command(args: &CompareArgs, out: &mut Out) -> CliResult<()> {
    let variants = match &args.host[..] {
        [] => variants_default(),
        given => given.to_vec(),
    };
    let cpus = match args.cpus {
        Some(cpus) => cpus.on_this_machine()?,
        None => schedlab_host::allowed_cpus(),
    };
    let nr_repetitions = args.repetitions.unwrap_or(REPETITIONS_DEFAULT);
    let mut runs: Vec<(usize, RunResult)> = Vec::new();
    let bar = Bar::of_runs(variants.len() * nr_repetitions as usize);
    for repetition in 0..nr_repetitions {
        for at in 0..variants.len() {
            // Rotate the order of the variants, so that changes on the machine affect all of them
            // alike.
            let which = (at + repetition as usize) % variants.len();
            let variant = &variants[which];
            let mut command = copies::command(&args.command, &args.tasks, variant)?;
            command.copies = args.copies.unwrap_or(1);
            command.cpus = cpus;
            command.output = Output::Null;
            let keep = if repetition == 0 { Keep::ALL } else { Keep::NOTHING };
            let keep = Keep { analysis: args.analysis.thresholds(), ..keep };
            let label = variant.to_string();
            let run = Copies { command, label, keep, seed: args.tasks.seed, repetition };
            runs.push((which, run.play(&mut schedlab_model::trace::NullSink)?));
            bar.step_called(&runs[runs.len() - 1].1.scheduler, None);
        }
    }
    bar.finish();
    runs.sort_by_key(|(which, run)| (*which, run.repetition));
    let runs: Vec<RunResult> = runs.into_iter().map(|(_, run)| run).collect();
    show(args, runs, out)
}

fn show(args: &CompareArgs, mut runs: Vec<RunResult>, out: &mut Out) -> CliResult<()> {
    results::warn(runs.iter());
    if args.json {
        sim::print_json(&mut runs, args.keep, out)?;
    } else if args.markdown {
        let none = Expectations::of(runs.iter());
        out.line(results::markdown(runs.iter(), &args.columns, &none)?)?;
    } else {
        out.line(results::comparison(runs.iter(), &args.columns)?)?;
    }
    let exits = copies::check_exits(runs.iter());
    if let Some(path) = &args.report {
        let title = runs.first().map(|run| run.workload.clone()).unwrap_or_default();
        report::write(path, None, &title, &[ExperimentResult::of_runs(&title, runs)])?;
    }
    out.finish_now()?;
    exits
}
