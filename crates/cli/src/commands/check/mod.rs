// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab check`: random workloads against the rules that every run must keep.

mod corpus;
mod finding;
pub(super) mod guest;
pub(super) mod place;
pub(super) mod recipe;
mod result;
pub(super) mod search;

pub use result::CheckResult;

use crate::args::ScxArgs;
use crate::complete;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output::{Out, say, without_panic_texts};
use crate::schedulers::{Chosen, Schedulers};
use crate::table::counted;
use clap::Args;
use clap_complete::ArgValueCompleter;
use corpus::Corpus;
use finding::{EXPLAIN, Finding, Found};
use guest::Guests;
use place::{InSim, Place};
use recipe::Recipe;
use result::{Checked, StatedBug, StatedRule};
use schedlab_check::{
    Breach, Case, LIMITS, RULES, Rule, Shape, Subject, UNCHECKED, Verdict, shrink,
};
use schedlab_model::Nanos;
use schedlab_run::LaneKind;
use schedlab_sched::bugs::BUGS;
use schedlab_sim::lane::options_of;
use schedlab_workload::write_rtapp_short;
use search::Search;
use std::path::PathBuf;
use std::time::Duration;

/// Time of a search, unless a number of cases is given.
const BUDGET: Duration = Duration::from_secs(60);

/// Most runs that shrinking takes.
pub(super) const SHRINK_RUNS_MAX: u32 = 1_000;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Schedulers (`schedlab list schedulers`), or files (.bpf.c); with --lane vm: kernels
    #[arg(required_unless_present_any = ["rules", "bugs"], value_name = "SCHEDULER",
          add = ArgValueCompleter::new(complete::schedulers))]
    pub schedulers: Vec<String>,
    /// Time to search, for each scheduler [default: 60s, or no limit with --seeds]
    #[arg(long, value_name = "TIME", value_parser = input::duration)]
    pub budget: Option<Nanos>,
    /// Maximum number of random cases, for each scheduler
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// Seed of the first case; each case has the next one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Maximum number of CPUs [default: 8, or 1 with --lane vm]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: Option<u32>,
    /// Lane: sim, or vm for real kernels in guests
    #[arg(long, value_name = "LANE", default_value = "sim")]
    pub lane: LaneKind,
    /// Directory for what is found: workload, trace, explanation
    #[arg(long, short = 'o', value_name = "DIR", default_value = "schedlab-check")]
    pub output: PathBuf,
    /// Directory of found cases, which are checked first [default: corpus in DIR of --output]
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Check only the case of this file (NAME.finding.json, or NAME.case.json of the corpus)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "budget"])]
    pub case: Option<PathBuf>,
    /// Report known limits of models, too
    #[arg(long)]
    pub known: bool,
    /// Do not judge this rule (repeatable)
    #[arg(long, value_name = "RULE", value_parser = rule_name,
          add = ArgValueCompleter::new(complete::rules))]
    pub skip: Vec<&'static str>,
    /// List the rules and the known limits, and exit
    #[arg(long)]
    pub rules: bool,
    /// List known bugs of kernels, and the models that can have them, and exit
    #[arg(long, conflicts_with = "rules")]
    pub bugs: bool,
    /// Print JSON (`schedlab schema check`)
    #[arg(long)]
    pub json: bool,
    /// Set a tunable, such as base_slice=3ms (repeatable)
    #[arg(long = "set", short = 's', value_name = "NAME=VALUE")]
    pub tunables: Vec<String>,
    /// Threads to simulate on [default: one for each CPU]
    #[arg(long, short = 'j', hide_short_help = true, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// How a .bpf.c is compiled.
    #[command(flatten)]
    pub scx: ScxArgs,
}

/// Examples for the help.
pub const EXAMPLES: &str = "Examples:
  schedlab check linux-6.18 --budget 30s
  schedlab check rr mlfq lottery --seeds 1000
  schedlab check ./my_sched.bpf.c --cpus 2 -o found
  schedlab check linux-7.1 --case found/linux-6.18.44-wait.finding.json
  schedlab check linux-7.1+P22               a kernel with a known bug
  schedlab check 6.12 6.18 --lane vm --seeds 200     real kernels in guests
  schedlab check --bugs
  schedlab check --rules

A found case is made as small as possible. DIR then has the workload, a trace and the explanation.
Exit code: 0 no rule was broken, 1 a rule was broken.";

/// The name of a rule.
fn rule_name(text: &str) -> Result<&'static str, String> {
    match schedlab_check::rule(text) {
        Some(rule) => Ok(rule.name),
        None => Err("no such rule; `schedlab check --rules` lists them".into()),
    }
}

/// Runs the command.
pub fn check(args: &CheckArgs, out: &mut Out) -> CliResult<()> {
    if args.rules {
        return list_rules(args.json, out);
    }
    if args.bugs {
        return list_bugs(args.json, out);
    }
    let mut results = Vec::new();
    for place in places(args)? {
        let mut run = Run { args, place: &*place, out };
        let result = run.check()?;
        if !args.json {
            out.line(result.sentence())?;
            out.finish_now()?;
        }
        results.push(result);
    }
    let is_broken = results.iter().any(|result| result.finding.is_some());
    if args.json {
        out.json(&CheckResult::new(results))?;
    }
    out.finish_now()?;
    if is_broken { Err(CliError::Silent(Exit::Check)) } else { Ok(()) }
}

/// Where the cases of each scheduler are played.
fn places(args: &CheckArgs) -> CliResult<Vec<Box<dyn Place>>> {
    match args.lane {
        LaneKind::Sim => in_sim(args),
        LaneKind::Vm => {
            let guests = Guests::new(&args.scx)?;
            let place = |name: &String| -> CliResult<Box<dyn Place>> {
                let place = guests.place(name, &args.tunables, args.known)?;
                Ok(Box::new(place.skipping(&args.skip)))
            };
            args.schedulers.iter().map(place).collect()
        }
        LaneKind::Host => Err(CliError::usage_help(
            "--lane host: cases are checked in lanes sim and vm only",
            "a random case may use all of a CPU: let a guest play it (--lane vm)",
        )),
    }
}

fn in_sim(args: &CheckArgs) -> CliResult<Vec<Box<dyn Place>>> {
    let known = Schedulers::new(&args.scx, &args.tunables)?;
    known.check_settings(args.schedulers.iter().map(String::as_str))?;
    let place = |name: &String| -> CliResult<Box<dyn Place>> {
        let Chosen { scheduler, tunables, .. } = known.without_policy(name)?;
        let options = options_of(&scheduler, &tunables)?;
        let (judges_limits, skipped) = (args.known, args.skip.clone());
        let subject = Subject { options, judges_limits, skipped, ..Subject::new(scheduler) };
        Ok(Box::new(InSim { subject, tunables }))
    };
    args.schedulers.iter().map(place).collect()
}

/// The check of one scheduler.
struct Run<'a> {
    args: &'a CheckArgs,
    place: &'a dyn Place,
    out: &'a mut Out,
}

impl Run<'_> {
    fn corpus(&self) -> Corpus {
        let default = || self.args.output.join("corpus");
        Corpus::new(self.args.corpus.clone().unwrap_or_else(default))
    }

    /// Checks first the cases of the corpus, then random ones.
    fn check(&mut self) -> CliResult<Checked> {
        let mut checked = Checked::new(self.place.target().1);
        if let Some(path) = &self.args.case {
            let stored = recipe::read(path)?;
            checked.nr_stored = 1;
            return match self.again(&stored.case, &stored.recipe) {
                Verdict::Passed => Ok(checked),
                Verdict::Refused(why) => Err(CliError::usage(why)),
                Verdict::Broken(breach) => {
                    checked.finding = Some(self.found(&stored.case, breach)?);
                    Ok(checked)
                }
            };
        }
        if self.check_stored(&mut checked)? {
            return Ok(checked);
        }
        let searched = self.search().run();
        checked.nr_cases = searched.nr_cases;
        checked.nr_refused = searched.nr_refused;
        checked.elapsed_ns = searched.elapsed.as_nanos() as u64;
        self.place.failure()?;
        let Some((seed, case, breach)) = searched.found else { return Ok(checked) };
        say(format!("case {seed} breaks rule {}; making it smaller", breach.rule.name));
        checked.found_at_seed = Some(seed);
        let mut test = |case: &Case| self.place.check_rule(case, breach.rule).breach();
        let runs_max = self.place.pace().shrink_runs_max;
        let small = without_panic_texts(|| shrink(&case, &breach, runs_max, &mut test));
        checked.nr_shrink_runs = small.nr_runs;
        checked.finding = Some(self.found(&small.case, small.breach)?);
        Ok(checked)
    }

    /// The verdict on a stored case: of the rule that it broke, else of all.
    fn again(&self, case: &Case, recipe: &Recipe) -> Verdict {
        without_panic_texts(|| match schedlab_check::rule(&recipe.rule) {
            Some(rule) => self.place.check_rule(case, rule),
            None => self.place.check(case),
        })
    }

    /// Checks the cases of the corpus. Returns whether one of them breaks a rule.
    fn check_stored(&mut self, checked: &mut Checked) -> CliResult<bool> {
        let (lane, name) = self.place.target();
        for stored in self.corpus().cases(lane, name) {
            checked.nr_stored += 1;
            let (file, rule) = (&stored.file, &stored.recipe.rule);
            match self.again(&stored.case, &stored.recipe) {
                Verdict::Passed => say(format!("stored case {file}: does not break rule {rule}")),
                Verdict::Refused(why) => {
                    say(format!("warning: stored case {file} cannot be played: {why}"));
                }
                Verdict::Broken(breach) => {
                    let still = if breach.rule.name == rule { "still breaks" } else { "breaks" };
                    say(format!("stored case {file}: {still} rule {}", breach.rule.name));
                    checked.finding = Some(self.found(&stored.case, breach)?);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn search(&self) -> Search<'_> {
        let (args, shape) = (self.args, self.place.shape());
        let budget = args.budget.map(Duration::from_nanos);
        Search {
            name: self.place.target().1.to_owned(),
            play: Box::new(|case| self.place.check(case)),
            shape: Shape { cpus_max: args.cpus.unwrap_or(shape.cpus_max), ..shape },
            first: args.seed,
            nr_seeds: args.seeds,
            budget: budget.or(args.seeds.is_none().then_some(BUDGET)),
            threads: args.threads.map_or_else(search::threads, usize::from),
            batch: self.place.pace().batch,
        }
    }

    /// Writes the files of a finding, and adds its case to the corpus.
    fn found(&mut self, case: &Case, breach: Breach) -> CliResult<Finding> {
        let found = self.both(case, breach);
        let folder = &self.args.output;
        let finding = Finding::new(folder, self.place, &found);
        finding.write(folder, self.place, &found)?;
        let text = write_rtapp_short(&found.case.workload);
        if self.args.case.is_none() {
            self.corpus().keep(finding.recipe.clone(), text.clone())?;
        }
        if !self.args.json {
            self.print(&finding, &text)?;
        }
        Ok(finding)
    }

    /// The case, or the pair that a rule of pairs makes of it.
    fn both(&self, case: &Case, breach: Breach) -> Found {
        let rule: &'static Rule = breach.rule;
        match self.place.pair(case, rule) {
            Some([case, changed]) => Found { case, changed: Some(changed), breach },
            None => Found { case: self.place.fit(case), changed: None, breach },
        }
    }

    fn print(&mut self, finding: &Finding, text: &str) -> CliResult<()> {
        let out = &mut *self.out;
        out.line(&finding.text)?;
        out.line(format!("Rule {}: {}", finding.recipe.rule, finding.statement))?;
        out.line("")?;
        out.line(text.trim_end())?;
        out.line("")?;
        let folder = &self.args.output;
        // A run that fails cannot be explained, then or now.
        let is_useful = |what: &str| what != EXPLAIN || finding.is_explained(folder);
        for (what, command) in finding.commands().into_iter().filter(|(what, _)| is_useful(what)) {
            out.line(format!("{what}: {command}"))?;
        }
        let count = text.lines().count() as u64;
        out.line(format!(
            "The workload has {}; {} holds {}.",
            counted(count, "line", "lines"),
            folder.display(),
            finding.holds(folder)
        ))?;
        out.line("")
    }
}

fn list_bugs(is_json: bool, out: &mut Out) -> CliResult<()> {
    if is_json {
        let bugs: Vec<_> = BUGS.iter().map(StatedBug::of).collect();
        return out.json(&bugs);
    }
    for bug in BUGS.iter().map(StatedBug::of) {
        out.line(format!("{}: {}", bug.id, bug.statement))?;
        out.line(format!("    kernels: {}", bug.kernels))?;
        out.line(format!("    source: {}", bug.source))?;
        match bug.left_out {
            Some(reason) => out.line(format!("    not modelled: {reason}"))?,
            None => out.line(format!("    schedulers: {}", bug.schedulers.join(", ")))?,
        }
    }
    Ok(())
}

fn list_rules(is_json: bool, out: &mut Out) -> CliResult<()> {
    if is_json {
        let rules: Vec<_> = RULES.iter().map(StatedRule::of).collect();
        return out.json(&rules);
    }
    for rule in &RULES {
        out.line(format!("{}: {}", rule.name, rule.statement))?;
        for (name, text) in [
            ("holds for", rule.holds_for),
            ("tolerance", rule.tolerance),
            ("traps", rule.traps),
            ("source", rule.source),
        ] {
            out.line(format!("    {name}: {text}"))?;
        }
    }
    out.line("\nKnown limits, which --known reports, too:")?;
    for limit in &LIMITS {
        out.line(format!("{}: {}", limit.rules.join(", "), limit.occurs))?;
        out.line(format!("    {}", limit.reason))?;
    }
    out.line("\nWhat no rule checks:")?;
    for unchecked in &UNCHECKED {
        out.line(format!("{}\n    {}", unchecked.statement, unchecked.reason))?;
    }
    Ok(())
}
