// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab load`: loads a sched_ext scheduler on this machine until Ctrl-C, and prints its
//! counters each second.

use crate::args::ScxArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output::{Out, say};
use crate::setups;
use crate::table::{self, duration, number};
use clap::Args;
use schedlab_host::HostError;
use schedlab_host::ext::{self, Build, Counter, Description, ExitInfo, Loaded, OptionInfo, Source};
use schedlab_model::Nanos;
use schedlab_run::{LaneError, Warning};
use schedlab_scx_source::ReadySetup;
use schedlab_vm::setup::SetupQuery;
use serde_json::json;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between two lines of statistics.
const PERIOD: Duration = Duration::from_secs(1);
/// Time between two checks that the scheduler is still active.
const GLANCE: Duration = Duration::from_millis(100);
/// How long `--once` keeps the scheduler loaded.
const ONCE: Duration = Duration::from_millis(500);

/// Arguments of `load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Scheduler (`schedlab load --list`), or a file: ./my.bpf.c, my.bpf.o
    #[arg(required_unless_present = "list")]
    pub scheduler: Option<String>,
    /// Set an option, such as slice_ms=50 or slice=50ms (repeatable)
    #[arg(long = "set", short = 's', value_name = "OPTION=VALUE")]
    pub settings: Vec<String>,
    /// Unload after this time, such as 10s [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = crate::input::duration)]
    pub duration: Option<Nanos>,
    /// Load the scheduler, check that it works, and unload it
    #[arg(long, conflicts_with = "duration")]
    pub once: bool,
    /// List the schedulers
    #[arg(long, conflicts_with = "scheduler")]
    pub list: bool,
    /// Show the scheduler's options and counters without loading it
    #[arg(long, conflicts_with_all = ["once", "duration", "list"])]
    pub describe: bool,
    /// Print JSON: a line each second, or the list or description
    #[arg(long)]
    pub json: bool,
    /// How a source is compiled.
    #[command(flatten)]
    pub scx: ScxArgs,
}

/// Runs the command.
pub fn load(args: &LoadArgs, out: &mut Out) -> CliResult<()> {
    let Some(name) = &args.scheduler else { return list(args.json, out) };
    let source = Source::parse(name);
    let build = Build { source: args.scx.options_for_kernel()?, ..Build::default() };
    let settings = crate::input::pairs("--set", &args.settings)?;
    if args.describe {
        let description = ext::describe(&source, &build).map_err(problem)?;
        return if args.json { out.json(&description) } else { describe(&description, out) };
    }
    let setup = setup(&source, &build, args.scx.setup.as_deref())?;
    let interrupted = on_interrupt()?;
    let before = ext::kernel_state().unwrap_or_default();
    let loaded = ext::load(&source, &build, &settings, setup.as_ref()).map_err(problem)?;
    if !ext::stay_responsive() {
        say("note: this program could not make itself real-time; it may be slow to answer");
    }
    let limit = match (args.once, args.duration) {
        (true, _) => Some(ONCE),
        (false, limit) => limit.map(Duration::from_nanos),
    };
    let until = limit.map_or_else(|| "until Ctrl-C".into(), |limit| format!("for {limit:?}"));
    say(format!("{} schedules this machine {until}", loaded.name()));
    watch(&loaded, args.json, limit, &interrupted, out)?;
    let name = loaded.name().to_string();
    let last = loaded.stats().map_err(problem)?;
    let exit = loaded.detach().map_err(problem)?;
    let after = ext::kernel_state().unwrap_or_default();
    let rejected = after.nr_rejected.saturating_sub(before.nr_rejected);
    farewell(args.json, &name, &last, &exit, rejected, out)
}

/// What is set in place of the user program of a scheduler's file; warns if that seems to lack.
fn setup(source: &Source, build: &Build, file: Option<&Path>) -> CliResult<Option<ReadySetup>> {
    let Source::File(path) = source else {
        return match file {
            None => Ok(None),
            Some(_) => Err(CliError::usage_help(
                format!("--scx-setup: scheduler {source} is built in and needs no setup"),
                "a setup is for the file of a scheduler",
            )),
        };
    };
    let description = ext::describe(source, build).map_err(problem)?;
    let machine = crate::machine::spec("host")?.machine;
    let query = SetupQuery {
        scheduler: &description.name,
        source: path,
        file,
        topology: &machine.topology,
        hz: machine.hz,
        is_for_verifier: false,
    };
    let setup = setups::find(&query).map_err(LaneError::from)?;
    match (&setup, description.missing_setup()) {
        (Some(setup), _) => say(format!("{source} is set up ({})", setup.origin)),
        (None, Some(missing)) => {
            let advice = "Its authors' command loads it with its setup; --scx-setup applies one.";
            let name = source.to_string();
            let warning = Warning::scx_no_setup(&name, &missing.to_string(), advice);
            say(format!("warning: {}", warning.text));
        }
        (None, None) => {}
    }
    Ok(setup)
}

fn problem(error: HostError) -> CliError {
    LaneError::from(error).into()
}

/// A channel that receives a message at Ctrl-C.
fn on_interrupt() -> CliResult<Receiver<()>> {
    let (sender, receiver) = mpsc::channel();
    ctrlc::set_handler(move || {
        let _ = sender.send(());
    })
    .map_err(|error| {
        CliError::new(Exit::Unavailable, format!("cannot wait for Ctrl-C: {error}"), "")
    })?;
    Ok(receiver)
}

/// Prints the counters until the time is over, the user presses Ctrl-C, or the scheduler ends.
fn watch(
    loaded: &Loaded,
    json: bool,
    limit: Option<Duration>,
    interrupted: &Receiver<()>,
    out: &mut Out,
) -> CliResult<()> {
    let since = Instant::now();
    let mut shown = loaded.stats().map_err(problem)?;
    let mut next = PERIOD;
    loop {
        let elapsed = since.elapsed();
        if loaded.exit().map_err(problem)?.is_some() || limit.is_some_and(|limit| elapsed >= limit)
        {
            return Ok(());
        }
        if elapsed >= next {
            let now = loaded.stats().map_err(problem)?;
            show_second(json, elapsed, &shown, &now, out)?;
            shown = now;
            next += PERIOD;
        }
        let left = limit.map_or(GLANCE, |limit| limit.saturating_sub(elapsed).min(GLANCE));
        match interrupted.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Prints one line: the counts since the line before.
fn show_second(
    json: bool,
    elapsed: Duration,
    before: &[Counter],
    now: &[Counter],
    out: &mut Out,
) -> CliResult<()> {
    let grown = |index: usize| {
        let old = before.get(index).map_or(0, |counter| counter.value);
        now[index].value.wrapping_sub(old)
    };
    if json {
        let counters: serde_json::Map<String, serde_json::Value> =
            (0..now.len()).map(|index| (now[index].name.clone(), grown(index).into())).collect();
        let elapsed_ns = elapsed.as_nanos() as u64;
        out.json_line(&json!({ "elapsed_ns": elapsed_ns, "counters": counters }))?;
        return out.finish_now();
    }
    let parts: Vec<String> = (0..now.len())
        .filter(|&index| grown(index) > 0)
        .map(|index| format!("{} {}", now[index].name, amount(&now[index].name, grown(index))))
        .collect();
    out.line(format!("{:>4} s  {}", elapsed.as_secs(), parts.join("  ")))?;
    out.finish_now()
}

fn amount(name: &str, value: u64) -> String {
    if name.ends_with("_ns") { duration(value) } else { value.to_string() }
}

/// Prints the sums and how the scheduler ended.
fn farewell(
    json: bool,
    name: &str,
    counters: &[Counter],
    exit: &ExitInfo,
    nr_rejected: u64,
    out: &mut Out,
) -> CliResult<()> {
    if json {
        out.json_line(&json!({ "exit": exit, "nr_rejected": nr_rejected, "totals": counters }))?;
    } else if !counters.is_empty() {
        let mut rows = table::table(&["counter", "in all", "what it counts"]);
        for counter in counters {
            let value = amount(&counter.name, counter.value);
            rows.add_row([
                counter.name.as_str().into(),
                number(value),
                counter.text.clone().into(),
            ]);
        }
        out.line(table::render(&rows))?;
    }
    out.finish_now()?;
    if nr_rejected > 0 {
        say(format!("{name} refused {nr_rejected} tasks"));
    }
    if exit.is_error() {
        return Err(CliError::new(
            Exit::Check,
            format!("{name} was ejected: {exit}"),
            "the kernel's own class schedules again; the kernel's log (dmesg) has the details",
        ));
    }
    say(format!("{name} ended: {exit}; the kernel's own class schedules again"));
    Ok(())
}

fn list(json: bool, out: &mut Out) -> CliResult<()> {
    if json {
        return out.json(&ext::builtin::SCHEDULERS);
    }
    let mut rows = table::table(&["scheduler", "simulated as", "what it does"]);
    for scheduler in ext::builtin::SCHEDULERS {
        rows.add_row([scheduler.name, scheduler.twin, scheduler.summary]);
    }
    out.line(table::render(&rows))?;
    out.line("\nOptions and statistics of one: schedlab load NAME --describe")
}

/// The name of an option on the command line.
fn shown_name(option: &OptionInfo) -> String {
    let base = option.name.strip_suffix("_ns").unwrap_or(&option.name);
    if option.alias.is_empty() { base.into() } else { format!("{base}, {}", option.alias) }
}

fn describe(description: &Description, out: &mut Out) -> CliResult<()> {
    out.line(format!("Options of {} (--set NAME=VALUE)", description.name))?;
    let mut rows = table::table(&["option", "takes", "if not set", "what it does"]);
    for option in &description.options {
        let default = option.show(option.default);
        rows.add_row([shown_name(option), option.range(), default, option.text.clone()]);
    }
    out.line(table::render(&rows))?;
    out.line("\nWhat it counts")?;
    let mut rows = table::table(&["counter", "what it counts"]);
    for counter in &description.counters {
        rows.add_row([&counter.name, &counter.text]);
    }
    out.line(table::render(&rows))
}
