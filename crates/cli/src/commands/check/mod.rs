// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab check`: random workloads against the rules that every run must keep.

pub(super) mod finding;
pub(super) mod search;

pub use finding::CheckResult;

use crate::args::ScxArgs;
use crate::complete;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use crate::table::counted;
use clap::Args;
use clap_complete::ArgValueCompleter;
use finding::{Checked, Finding};
use schedlab_check::{Breach, Case, LIMITS, RULES, Shape, Subject, Verdict, play, shrink};
use schedlab_model::Nanos;
use schedlab_run::LaneKind;
use schedlab_sched::bugs::BUGS;
use schedlab_sim::lane::options_of;
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
    /// Schedulers (`schedlab list schedulers`), or files (.bpf.c)
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
    /// Maximum number of CPUs
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// Lane; only sim can repeat a run while a case is made smaller
    #[arg(long, value_name = "LANE", default_value = "sim")]
    pub lane: LaneKind,
    /// Directory for found cases; those in it are checked first
    #[arg(long, short = 'o', value_name = "DIR", default_value = "schedlab-check")]
    pub output: PathBuf,
    /// Check only the case of this finding (DIR/NAME.finding.json)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "budget"])]
    pub case: Option<PathBuf>,
    /// Report known limits of models, too
    #[arg(long)]
    pub known: bool,
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
  schedlab check --bugs
  schedlab check --rules

A found case is made as small as possible. DIR then has the workload, a trace and the explanation.
Exit code: 0 no rule was broken, 1 a rule was broken.";

/// Runs the command.
pub fn check(args: &CheckArgs, out: &mut Out) -> CliResult<()> {
    if args.rules {
        return list_rules(args.json, out);
    }
    if args.bugs {
        return list_bugs(args.json, out);
    }
    if args.lane != LaneKind::Sim {
        return Err(CliError::usage_help(
            format!("--lane {}: cases are checked in lane sim only", args.lane),
            "run a workload there with `schedlab run` or `schedlab vm` and analyse its trace",
        ));
    }
    let known = Schedulers::new(&args.scx, &args.tunables)?;
    known.check_settings(args.schedulers.iter().map(String::as_str))?;
    let mut results = Vec::new();
    for name in &args.schedulers {
        let scheduler = known.find(name)?;
        let tunables = known.tunables(&scheduler);
        let options = options_of(&scheduler, &tunables)?;
        let judges_limits = args.known;
        let subject = Subject { options, judges_limits, ..Subject::new(scheduler) };
        let result = check_one(args, &subject, &tunables, out)?;
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

/// Checks one scheduler: first the cases in the directory, then random ones.
fn check_one(
    args: &CheckArgs,
    subject: &Subject,
    tunables: &[(String, String)],
    out: &mut Out,
) -> CliResult<Checked> {
    let mut checked = Checked::new(&subject.scheduler.name);
    if let Some(path) = &args.case {
        let case = finding::read(path)?.case;
        checked.nr_stored = 1;
        return match play(&case, subject) {
            Verdict::Passed => Ok(checked),
            Verdict::Refused(why) => Err(CliError::usage(why)),
            Verdict::Broken(breach) => found(args, subject, tunables, (case, breach), checked, out),
        };
    }
    for known in finding::stored(&args.output, &subject.scheduler.name)? {
        checked.nr_stored += 1;
        let case = known.case;
        match play(&case, subject).breach() {
            Some(breach) if breach.rule.name == known.rule => {
                say(format!("stored case {}: still breaks rule {}", known.workload, known.rule));
                return found(args, subject, tunables, (case, breach), checked, out);
            }
            _ => say(format!("stored case {}: does not break rule {}", known.workload, known.rule)),
        }
    }
    let budget = args.budget.map(Duration::from_nanos);
    let search = Search {
        name: subject.scheduler.name.to_string(),
        play: &|case| play(case, subject),
        shape: Shape { cpus_max: args.cpus, ..subject.shape() },
        first: args.seed,
        nr_seeds: args.seeds,
        budget: budget.or(args.seeds.is_none().then_some(BUDGET)),
        threads: args.threads.map_or_else(search::threads, usize::from),
    };
    let searched = search.run();
    checked.nr_cases = searched.nr_cases;
    checked.nr_refused = searched.nr_refused;
    checked.elapsed_ns = searched.elapsed.as_nanos() as u64;
    let Some((seed, case, breach)) = searched.found else { return Ok(checked) };
    say(format!("case {seed} breaks rule {}; making it smaller", breach.rule.name));
    checked.found_at_seed = Some(seed);
    let mut test = |case: &Case| play(case, subject).breach();
    let small = shrink(&case, &breach, SHRINK_RUNS_MAX, &mut test);
    checked.nr_shrink_runs = small.nr_runs;
    found(args, subject, tunables, (small.case, small.breach), checked, out)
}

/// Writes the files of a finding.
fn found(
    args: &CheckArgs,
    subject: &Subject,
    tunables: &[(String, String)],
    (case, breach): (Case, Breach),
    mut checked: Checked,
    out: &mut Out,
) -> CliResult<Checked> {
    let finding = Finding::new(&args.output, subject, tunables, &case, &breach);
    finding.write(&args.output, subject, &case, &breach)?;
    if !args.json {
        out.line(&finding.text)?;
        out.line(format!("Rule {}: {}", finding.rule, finding.statement))?;
        out.line("")?;
        out.line(finding.workload_text(&case).trim_end())?;
        out.line("")?;
        for (what, command) in finding.commands() {
            out.line(format!("{what}: {command}"))?;
        }
        let count = finding.workload_text(&case).lines().count() as u64;
        out.line(format!(
            "The workload has {}; {} holds it, the trace and the explanation.",
            counted(count, "line", "lines"),
            args.output.display()
        ))?;
        out.line("")?;
    }
    checked.finding = Some(finding);
    Ok(checked)
}

fn list_bugs(is_json: bool, out: &mut Out) -> CliResult<()> {
    if is_json {
        let bugs: Vec<_> = BUGS.iter().map(finding::StatedBug::of).collect();
        return out.json(&bugs);
    }
    for bug in BUGS.iter().map(finding::StatedBug::of) {
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
        let rules: Vec<_> = RULES.iter().map(finding::StatedRule::of).collect();
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
    Ok(())
}
