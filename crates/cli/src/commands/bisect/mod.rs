// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab bisect`: the first bad one of several schedulers, or of the commits of a `.bpf.c`.

mod bad;
mod git;

use super::check::recipe::{self, Stored};
use super::diff::result::DiffResult;
use super::diff::{self, Party, show};
use crate::args::{MachineArgs, WorkloadArgs};
use crate::complete;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::machine;
use crate::output::Out;
use crate::schedulers::{Chosen, Schedulers};
use clap::Args;
use clap_complete::ArgValueCompleter;
use git::{Commit, Repository};
use schedlab_check::{Bisected, Case, Setting, Subject, Trial, Verdict, check_rule, play, rule};
use schedlab_model::trace::NullSink;
use schedlab_model::{CpuMask, Expectation, Machine, Workload};
use schedlab_run::{LaneError, LaneKind, RunRequest, run_and_check};
use schedlab_sim::SimLane;
use schedlab_sim::lane::options_of;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `bisect`.
#[derive(Debug, Args)]
pub struct BisectArgs {
    /// Schedulers in order, the first good and the last bad; with --git: the file
    #[arg(required = true, value_name = "SCHEDULER",
          add = ArgValueCompleter::new(complete::schedulers))]
    pub schedulers: Vec<String>,
    /// Built-in workload, such as hogs or hogs:n=4,work=100ms, or a file
    #[arg(last = true, required_unless_present = "case",
          add = ArgValueCompleter::new(complete::workloads))]
    pub workload: Option<String>,
    /// Search the commits of this range that change the file's directory
    #[arg(long, value_name = "GOOD..BAD")]
    pub git: Option<String>,
    /// Bad if this holds, such as run_delay_ns_p99>5ms [default: expectations and rules]
    #[arg(long, value_name = "MEASURE>VALUE", value_parser = bad::parse, conflicts_with = "case")]
    pub bad: Option<Expectation>,
    /// Bad if the case of this finding of `check` breaks a rule
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    pub case: Option<PathBuf>,
    /// CPUs, such as 4 or 0-3 [default: all CPUs of --machine, or 1]
    #[arg(long, value_name = "N|LIST", value_parser = input::model_cpus)]
    pub cpus: Option<u32>,
    /// Print JSON (`schedlab schema bisect`)
    #[arg(long)]
    pub json: bool,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Examples for the help.
pub const EXAMPLES: &str = "Examples:
  schedlab bisect linux-6.6 linux-6.12 linux-6.18 linux-7.2 --bad 'nr_switches>2000' -- hogs
  schedlab bisect linux-6.12 linux-6.18.44 linux-7.1 --case schedlab-check/NAME.finding.json
  schedlab bisect --git v1.0..HEAD my_sched.bpf.c -- my-workload.json

Without --bad and --case a scheduler is bad if an expectation of the workload fails, if its run
fails, or if it breaks a rule of `schedlab check`.
Exit code: 0 none is bad, 1 the first bad one was found.";

/// What `bisect --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BisectResult {
    /// Version of this form.
    pub schema_version: u32,
    /// The result in a sentence.
    pub sentence: String,
    /// The last good version.
    pub last_good: Option<String>,
    /// The first bad version.
    pub first_bad: Option<String>,
    /// The versions that were tried, in order.
    pub steps: Vec<BisectStep>,
    /// What the two decide differently.
    pub diff: Option<DiffResult>,
}

/// A version that was tried.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BisectStep {
    /// The version.
    pub version: String,
    /// `good`, `bad` or `untried`.
    pub verdict: String,
    /// Why it is bad, or why it was not tried.
    pub text: String,
}

/// The versions: schedulers, or commits of a file.
enum Versions<'a> {
    Named(&'a [String]),
    Commits { repository: Repository, commits: Vec<Commit>, folder: tempfile::TempDir },
}

/// A search.
struct Search<'a> {
    args: &'a BisectArgs,
    versions: Versions<'a>,
    /// The case of `--case`.
    case: Option<Stored>,
    steps: Vec<BisectStep>,
}

/// Runs the command.
pub fn bisect(args: &BisectArgs, out: &mut Out) -> CliResult<()> {
    let case = match &args.case {
        Some(path) => Some(recipe::read(path)?),
        None => None,
    };
    let versions = versions(args)?;
    let mut search = Search { args, versions, case, steps: Vec::new() };
    let count = search.count();
    let found = schedlab_check::bisect(count, &mut |index| search.step(index, out))?;
    let (mut result, ends) = search.result(found)?;
    if let Some((good, bad)) = ends {
        result.diff = search.difference(good, bad)?;
    }
    if args.json {
        out.json(&result)?;
    } else {
        out.line(&result.sentence)?;
        if let Some(diff) = &result.diff {
            out.line("\nWhat they decide differently (A is the last good, B the first bad):")?;
            show::print(diff, out)?;
        }
    }
    out.finish_now()?;
    if result.first_bad.is_some() { Err(CliError::Silent(Exit::Check)) } else { Ok(()) }
}

fn versions(args: &BisectArgs) -> CliResult<Versions<'_>> {
    let Some(range) = &args.git else {
        return match args.schedulers.len() {
            1 => Err(CliError::usage_help(
                "one scheduler is no list",
                "give at least two in order, the first good and the last bad",
            )),
            _ => Ok(Versions::Named(&args.schedulers)),
        };
    };
    let [file] = &args.schedulers[..] else {
        return Err(CliError::usage_help(
            format!("--git takes one file, here are {}", args.schedulers.len()),
            "schedlab bisect --git GOOD..BAD FILE.bpf.c -- WORKLOAD",
        ));
    };
    let repository = Repository::of(Path::new(file))?;
    let commits = repository.commits(range)?;
    let folder = tempfile::tempdir()
        .map_err(|error| CliError::file("create a directory in", &std::env::temp_dir(), &error))?;
    Ok(Versions::Commits { repository, commits, folder })
}

impl Search<'_> {
    fn count(&self) -> usize {
        match &self.versions {
            Versions::Named(names) => names.len(),
            Versions::Commits { commits, .. } => commits.len(),
        }
    }

    /// Name of a version for people.
    fn name(&self, index: usize) -> String {
        match &self.versions {
            Versions::Named(names) => names[index].clone(),
            Versions::Commits { commits, .. } => {
                let commit = &commits[index];
                let id = commit.id.get(..12).unwrap_or(&commit.id);
                format!("{id} ({})", commit.subject)
            }
        }
    }

    /// The scheduler of a version, compiled if it is a file.
    fn party(&self, index: usize) -> CliResult<Party> {
        let machine = &self.args.machine;
        let known = Schedulers::new(&machine.scx, &machine.tunables)?;
        let Chosen { scheduler, tunables, .. } = match &self.versions {
            Versions::Named(names) => known.without_policy(&names[index])?,
            Versions::Commits { repository, commits, folder } => {
                let path = repository.extract(&commits[index], folder.path())?;
                let id = commits[index].id.get(..12).unwrap_or_default();
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                let scheduler = known.find_at(&format!("{id}/{file}"), &path)?;
                let tunables = known.tunables(&scheduler);
                Chosen { scheduler, policy: None, tunables }
            }
        };
        let options = options_of(&scheduler, &tunables)?;
        Ok(Party { subject: Subject { options, ..Subject::new(scheduler) }, tunables, known })
    }

    /// Tries a version and tells the result.
    fn step(&mut self, index: usize, out: &mut Out) -> CliResult<Trial> {
        let trial = match (self.party(index), &self.versions) {
            (Ok(party), _) => self.trial(&party)?,
            // A commit that does not compile is left out; a wrong name is an error.
            (Err(error), Versions::Commits { .. }) => Trial::Untried(error.text()),
            (Err(error), Versions::Named(_)) => return Err(error),
        };
        let (verdict, text) = match &trial {
            Trial::Good => ("good", String::new()),
            Trial::Bad(why) => ("bad", why.clone()),
            Trial::Untried(why) => ("untried", why.clone()),
        };
        let version = self.name(index);
        if !self.args.json {
            let first = text.lines().next().unwrap_or_default();
            let why = if first.is_empty() { String::new() } else { format!(": {first}") };
            let step = self.steps.len() + 1;
            out.line(format!("step {step}, {version}: {verdict}{why}"))?;
        }
        self.steps.push(BisectStep { version, verdict: verdict.into(), text });
        Ok(trial)
    }

    fn trial(&self, party: &Party) -> CliResult<Trial> {
        if let Some(Stored { case, recipe, .. }) = &self.case {
            return Ok(judged(match rule(&recipe.rule) {
                Some(rule) => check_rule(case, &party.subject, rule),
                None => play(case, &party.subject),
            }));
        }
        let (lane, mut request) = self.run_of(party)?;
        if let Some(bad) = &self.args.bad {
            request.workload.expect = vec![bad.clone()];
        }
        let result = match run_and_check(&lane, &request, &mut NullSink) {
            Ok(result) => result,
            Err(LaneError::Check(why)) => return Ok(Trial::Bad(why)),
            Err(error) => return Err(error.into()),
        };
        let is_bad = |holds: bool| holds == self.args.bad.is_some();
        if let Some(found) = result.expectations.iter().find(|one| is_bad(one.holds)) {
            let value = found.found.map_or_else(|| "none".into(), |value| value.to_string());
            let task = found.task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
            return Ok(Trial::Bad(format!("{}{task} is {value}", found.measure)));
        }
        if self.args.bad.is_some() {
            return Ok(Trial::Good);
        }
        let mut workload = request.workload.clone();
        workload.duration_ns = request.until_ns.or(workload.duration_ns);
        workload.duration_ns.get_or_insert(result.measures.totals.end_ns.max(1));
        let machine = lane.machine_of(&request, &party.subject.scheduler)?;
        Ok(judged(play(&Case { workload, machine, seed: request.seed }, &party.subject)))
    }

    /// The lane and the request of a version's run.
    fn run_of(&self, party: &Party) -> CliResult<(SimLane, RunRequest)> {
        let args = self.args;
        let mut lane = machine::sim_lane(&args.machine)?;
        let nr_cpus = machine::nr_cpus(&lane, args.cpus)?;
        let text = args.workload.as_deref().unwrap_or_default();
        let workload: Workload = input::workload(text, &args.tasks, nr_cpus)?.workload;
        let scheduler = &party.subject.scheduler;
        lane.schedulers = vec![Arc::clone(scheduler)];
        let request = RunRequest {
            tunables: party.tunables.clone(),
            seed: args.tasks.seed,
            until_ns: args.tasks.until,
            ..RunRequest::new(workload, scheduler.name.as_ref(), CpuMask::first(nr_cpus))
        };
        let request = request.bounded(LaneKind::Sim).0.into_owned();
        Ok((lane, request))
    }

    /// The result, and the versions to compare.
    fn result(&mut self, found: Bisected) -> CliResult<(BisectResult, Option<(usize, usize)>)> {
        let last = self.count() - 1;
        let mut ends = None;
        let sentence = match found {
            Bisected::NoneBad => format!("No version is bad: {} is good.", self.name(last)),
            Bisected::AllBad => {
                let name = self.name(0);
                return Err(CliError::usage_help(
                    format!("the first version, {name}, is bad already"),
                    "begin with a version that is good",
                ));
            }
            Bisected::NoEnd(index, why) => {
                let name = self.name(index);
                return Err(CliError::usage_help(
                    format!("{name} cannot be tried: {why}"),
                    "the first and the last version must run",
                ));
            }
            Bisected::Found { last_good, first_bad } => {
                ends = Some((last_good, first_bad));
                let (good, bad) = (self.name(last_good), self.name(first_bad));
                match first_bad - last_good - 1 {
                    0 => format!("The first bad version is {bad}; the last good one is {good}."),
                    count => format!(
                        "The first bad version is {bad} or one of {count} before it that cannot be \
                         tried; the last good one is {good}."
                    ),
                }
            }
        };
        let result = BisectResult {
            schema_version: 1,
            sentence,
            last_good: ends.map(|(good, _)| self.name(good)),
            first_bad: ends.map(|(_, bad)| self.name(bad)),
            steps: std::mem::take(&mut self.steps),
            diff: None,
        };
        Ok((result, ends))
    }

    /// What two versions decide differently; `None` if one of them fails.
    fn difference(&self, good: usize, bad: usize) -> CliResult<Option<DiffResult>> {
        let parties = [self.party(good)?, self.party(bad)?];
        let preempts = parties.each_ref().map(|party| party.subject.scheduler.preempt);
        let (workload, seed, until_ns, machines) = match &self.case {
            Some(Stored { case, .. }) => {
                let machine = |preempt| Machine { preempt, ..case.machine.clone() };
                (case.workload.clone(), case.seed, None, preempts.map(machine))
            }
            None => {
                let (lane, request) = self.run_of(&parties[0])?;
                let [a, b] = &parties;
                let machines = [
                    lane.machine_of(&request, &a.subject.scheduler)?,
                    lane.machine_of(&request, &b.subject.scheduler)?,
                ];
                (request.workload, request.seed, request.until_ns, machines)
            }
        };
        let setting = Setting { workload: &workload, seed, until_ns };
        Ok(diff::compare(&setting, &parties, &machines).ok())
    }
}

fn judged(verdict: Verdict) -> Trial {
    match verdict {
        Verdict::Passed => Trial::Good,
        Verdict::Broken(breach) => Trial::Bad(breach.to_string()),
        Verdict::Refused(why) => Trial::Untried(why),
    }
}
