// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab diff`: the first decision in which two schedulers differ, and how often they differ if
//! one follows the other.

mod kernels;
mod measures;
mod random;
pub(super) mod result;
pub(super) mod show;

pub use kernels::TurnDiffResult;
pub use result::DiffResult;

use super::check::search;
use super::sim;
use crate::args::{MachineArgs, OutputArgs, SimArgs, WorkloadArgs};
use crate::complete;
use crate::error::{CliError, CliResult, Exit};
use crate::input::{self, Named};
use crate::machine;
use crate::output::{Out, say, without_panic_texts};
use crate::schedulers::{Chosen, Schedulers};
use clap::Args;
use clap_complete::ArgValueCompleter;
use result::Compared;
use schedlab_check::{Case, DiffError, Setting, Side, Subject, follow};
use schedlab_model::{Machine, Nanos, Workload};
use schedlab_run::{LaneKind, RunRequest};
use schedlab_sim::SimLane;
use schedlab_sim::lane::options_of;
use std::path::PathBuf;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Scheduler A (`schedlab list schedulers`), a file (.bpf.c), or a kernel: vm:6.12
    #[arg(add = ArgValueCompleter::new(complete::schedulers))]
    pub a: String,
    /// Scheduler B; the same as A to compare settings
    #[arg(add = ArgValueCompleter::new(complete::schedulers))]
    pub b: String,
    /// Built-in workload, such as hogs or hogs:n=4,work=100ms, or a file
    #[arg(required_unless_present = "random", conflicts_with = "random",
          add = ArgValueCompleter::new(complete::workloads))]
    pub workload: Option<String>,
    /// Search this many random workloads for one that differs, and make it small
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub random: Option<u64>,
    /// Also compare the measures of both over this many seeds
    #[arg(long, value_name = "N", conflicts_with = "random",
          value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub seeds: Option<u32>,
    /// CPUs [default: all CPUs of --machine, or 1; with --random: at most 2]
    #[arg(long, value_name = "N|LIST", value_parser = input::model_cpus)]
    pub cpus: Option<u32>,
    /// Set a tunable of A only (repeatable)
    #[arg(long = "set-a", value_name = "NAME=VALUE")]
    pub tunables_a: Vec<String>,
    /// Set a tunable of B only (repeatable)
    #[arg(long = "set-b", value_name = "NAME=VALUE")]
    pub tunables_b: Vec<String>,
    /// Directory for the workload that --random finds
    #[arg(long, short = 'o', value_name = "DIR", default_value = "schedlab-diff")]
    pub output: PathBuf,
    /// Print JSON (`schedlab schema diff`, with a kernel `schedlab schema diff-kernels`)
    #[arg(long)]
    pub json: bool,
    /// With a kernel: how much earlier or later a preemption may come [default: half a tick]
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = input::duration)]
    pub tolerance: Option<Nanos>,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Examples for the help.
pub const EXAMPLES: &str = "Examples:
  schedlab diff linux-6.12 linux-6.18 interactive --until 2s
  schedlab diff old.bpf.c new.bpf.c my-workload.json --cpus 2
  schedlab diff linux-7.2 linux-7.2 hogs:n=3 --set-b base_slice=3ms
  schedlab diff linux-6.12.0 linux-6.12 --random 1000
  schedlab diff linux-6.12 linux-7.2 interactive --seeds 20
  schedlab diff vm:6.12 vm:7.2 interactive --until 500ms --seeds 5
  schedlab diff linux-6.12 vm:6.12 --random 100

Both run on the same machine, each with the preemption model of its own kernel unless --preempt is
given. The choice among equal tasks is no difference. Kernels (vm:) run in guests with counted time,
on one CPU; a difference that only comes from other times is no choice, and ends with exit code 0.
Exit code: 0 the decisions are the same, 1 they differ.";

/// A scheduler of the comparison, with its settings.
pub struct Party {
    pub subject: Subject,
    pub tunables: Vec<(String, String)>,
    pub known: Schedulers,
}

/// Runs the command.
pub fn diff(args: &DiffArgs, out: &mut Out) -> CliResult<()> {
    if kernels::is_meant(args) {
        return kernels::diff(args, out);
    }
    if args.tolerance.is_some() {
        return Err(CliError::usage_help(
            "--tolerance is for comparisons with kernels",
            "models have the same clock: their times are compared exactly",
        ));
    }
    let parties =
        [party(args, &args.a, &args.tunables_a)?, party(args, &args.b, &args.tunables_b)?];
    let result = match args.random {
        Some(nr_seeds) => random::search(args, &parties, nr_seeds)?,
        None => Some(one_workload(args, &parties)?),
    };
    let Some(result) = result else {
        let count = args.random.unwrap_or_default();
        let text = format!("{} and {} decide alike in {count} random workloads.", args.a, args.b);
        match args.json {
            true => out.json(&serde_json::json!({ "same": true, "sentence": text }))?,
            false => out.line(text)?,
        }
        return out.finish_now();
    };
    match args.json {
        true => out.json(&result)?,
        false => show::print(&result, out)?,
    }
    out.finish_now()?;
    if result.same { Ok(()) } else { Err(CliError::Silent(Exit::Check)) }
}

fn party(args: &DiffArgs, name: &str, own: &[String]) -> CliResult<Party> {
    let given: Vec<String> = args.machine.tunables.iter().chain(own).cloned().collect();
    let known = Schedulers::new(&args.machine.scx, &given)?;
    let Chosen { scheduler, tunables, .. } = known.without_policy(name)?;
    let options = options_of(&scheduler, &tunables)?;
    let subject = Subject { options, ..Subject::new(scheduler) };
    Ok(Party { subject, tunables, known })
}

fn one_workload(args: &DiffArgs, parties: &[Party; 2]) -> CliResult<DiffResult> {
    let mut lane = machine::sim_lane(&args.machine)?;
    // Both pay the same costs.
    let [a, b] = parties.each_ref().map(|party| party.subject.scheduler.costs);
    lane.charges_textbooks = a != b;
    let nr_cpus = machine::nr_cpus(&lane, args.cpus)?;
    let text = args.workload.as_deref().unwrap_or_default();
    let named = input::workload(text, &args.tasks, nr_cpus)?;
    named.warnings.iter().for_each(|warning| say(format!("warning: {}", warning.text)));
    let make = |repetition| -> CliResult<[RunRequest; 2]> {
        Ok([
            request(args, (&args.a, &parties[0]), &named, nr_cpus, repetition)?,
            request(args, (&args.b, &parties[1]), &named, nr_cpus, repetition)?,
        ])
    };
    let requests = make(0)?;
    let [request, _] = &requests;
    let machines = [
        machine_of(&lane, &requests[0], &parties[0])?,
        machine_of(&lane, &requests[1], &parties[1])?,
    ];
    let (a, b) = (machines[0].preempt, machines[1].preempt);
    if a != b {
        say(format!(
            "note: A has preemption model {}, B {}; --preempt sets one for both",
            a.name(),
            b.name()
        ));
    }
    let setting =
        Setting { workload: &request.workload, seed: request.seed, until_ns: request.until_ns };
    let mut result = compare(&setting, parties, &machines)?;
    if let Some(nr_seeds) = args.seeds {
        let all = (0..nr_seeds).map(make).collect::<CliResult<Vec<_>>>()?;
        result.measures = measures::compare(lane, parties, all, sim::threads(&args.machine))?;
    }
    Ok(result)
}

/// Compares the two schedulers on one workload.
pub(super) fn compare(
    setting: &Setting<'_>,
    parties: &[Party; 2],
    machines: &[Machine; 2],
) -> CliResult<DiffResult> {
    let side = |index: usize| Side {
        scheduler: &parties[index].subject.scheduler,
        options: &parties[index].subject.options,
        machine: &machines[index],
    };
    let sides = [side(0), side(1)];
    let diff = schedlab_check::diff(setting, &sides, true).map_err(failed)?;
    let differs = diff.first.is_some();
    let agreement = differs.then(|| without_panic_texts(|| follow(setting, &sides)));
    let preempt = machines.each_ref().map(|machine| machine.preempt.name().to_owned());
    let nr_cpus = machines[0].nr_cpus();
    Ok(DiffResult::new(&Compared { setting, parties, preempt, nr_cpus }, &diff, agreement))
}

fn failed(error: DiffError) -> CliError {
    match error.is_refusal {
        true => CliError::usage(error.to_string()),
        false => CliError::new(
            Exit::Check,
            error.to_string(),
            "`schedlab check` finds the smallest workload that shows the fault",
        ),
    }
}

fn machine_of(lane: &SimLane, request: &RunRequest, party: &Party) -> CliResult<Machine> {
    Ok(lane.machine_of(request, &party.subject.scheduler)?)
}

/// The run of one side.
fn request(
    args: &DiffArgs,
    (scheduler, party): (&str, &Party),
    named: &Named,
    nr_cpus: u32,
    repetition: u32,
) -> CliResult<RunRequest> {
    let sim = SimArgs {
        workload: named.workload.name.clone(),
        scheduler: vec![scheduler.to_owned()],
        cpus: args.cpus,
        repetitions: 1,
        switch_jitter: None,
        watch: false,
        tasks: args.tasks.clone(),
        machine: args.machine.clone(),
        output: OutputArgs::default(),
        inspect: crate::commands::InspectArgs::default(),
        user: crate::commands::ScxUserArgs::default(),
    };
    let request = sim::request(&sim, &party.known, named, nr_cpus, scheduler, repetition)?;
    let (request, warning) = request.bounded(LaneKind::Sim);
    if repetition == 0 && scheduler == args.a {
        warning.iter().for_each(|warning| say(format!("warning: {}", warning.text)));
    }
    Ok(request.into_owned())
}

/// The machines of a random case.
fn machines_of(case: &Case, parties: &[Party; 2]) -> [Machine; 2] {
    parties
        .each_ref()
        .map(|party| Machine { preempt: party.subject.scheduler.preempt, ..case.machine.clone() })
}

/// The path of a group of `workload`.
fn group_path(workload: &Workload, group: u32) -> String {
    workload.cgroups.get(group as usize).map_or_else(|| group.to_string(), |g| g.path.clone())
}
