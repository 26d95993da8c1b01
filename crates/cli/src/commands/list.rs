// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab list`: lists schedulers, workloads, measures, studies and machines.

use super::machines;
use crate::args::{ListArgs, Listed};
use crate::error::{CliError, CliResult};
use crate::output::Out;
use crate::table;
use schedlab_lab::studies;
use schedlab_run::place::allowed_words;
use schedlab_sched::boundary::options::{Tunable, TunableKind};
use schedlab_sched::boundary::tunable_names;
use schedlab_sched::{Scheduler, registry};
use schedlab_workload::{BUILTINS, Builtin, units};
use serde_json::{Value, json};
use std::sync::Arc;

/// Runs the command.
pub fn list(args: &ListArgs, out: &mut Out) -> CliResult<()> {
    let Some(what) = args.what else {
        return overview(args, out);
    };
    if args.json {
        let all = as_json(what, args.name.as_deref())?;
        return out.json(&all);
    }
    match what {
        Listed::Schedulers => schedulers(args, out),
        Listed::Workloads => workloads(args, out),
        Listed::Measures => measures(args, out),
        Listed::Studies => list_studies(args, out),
        Listed::Machines => machines::list(args, out),
    }
}

fn overview(args: &ListArgs, out: &mut Out) -> CliResult<()> {
    if args.json {
        let kinds = [
            ("schedulers", Listed::Schedulers),
            ("workloads", Listed::Workloads),
            ("measures", Listed::Measures),
            ("studies", Listed::Studies),
            ("machines", Listed::Machines),
        ];
        let mut all = serde_json::Map::new();
        for (name, kind) in kinds {
            all.insert(name.into(), as_json(kind, None)?);
        }
        return out.json(&all);
    }
    out.line("Schedulers (schedlab list schedulers --long)")?;
    schedulers(args, out)?;
    out.line("\nWorkloads (schedlab list workloads --long)")?;
    workloads(args, out)?;
    out.line("\nStudies (schedlab list studies --long)")?;
    list_studies(args, out)?;
    out.line("\nMachines (schedlab list machines --long)")?;
    machines::list(args, out)?;
    out.line("\nMeasures: schedlab list measures")
}

/// The entry called `name`, or all entries.
pub fn select<'t, T>(
    what: &str,
    all: impl Iterator<Item = &'t T>,
    wanted: Option<&str>,
    name: impl Fn(&T) -> &str,
) -> CliResult<Vec<&'t T>> {
    let all: Vec<&T> = all.collect();
    let Some(wanted) = wanted else { return Ok(all) };
    let names: Vec<&str> = all.iter().map(|entry| name(entry)).collect();
    if !names.contains(&wanted) {
        let help = allowed_words(wanted, &names);
        return Err(CliError::usage_help(format!("no {what} is called {wanted:?}"), help));
    }
    Ok(all.into_iter().filter(|entry| name(entry) == wanted).collect())
}

fn selected_schedulers(args: &ListArgs) -> CliResult<Vec<&'static Arc<Scheduler>>> {
    let all = registry::SCHEDULERS.iter();
    select("scheduler", all, args.name.as_deref(), |info| &info.name)
}

fn schedulers(args: &ListArgs, out: &mut Out) -> CliResult<()> {
    let selected = selected_schedulers(args)?;
    if !args.long && args.name.is_none() {
        let mut rows = table::table(&["scheduler", "rules"]);
        for info in selected {
            rows.add_row([&info.name, &info.summary]);
        }
        return out.line(table::render(&rows));
    }
    for info in selected {
        out.line(&info.name)?;
        out.line(format!("  {}", info.summary))?;
        out.line(format!("  source:     {}", info.source))?;
        out.line(format!("  leaves out: {}", info.leaves_out))?;
        out.line(format!("  claims:     {}", claims(info).join(", ")))?;
        for tunable in &info.tunables {
            let file = tunable_names::file_name(tunable);
            out.line(format!(
                "  --set {}={}   {} ({}){}",
                tunable.name,
                value_text(tunable, tunable.default),
                tunable.text,
                range_text(tunable),
                file.map(|file| format!("; the kernel's {file}")).unwrap_or_default()
            ))?;
        }
        out.line("")?;
    }
    Ok(())
}

fn claims(info: &Scheduler) -> Vec<&'static str> {
    let claims = info.claims;
    [
        (claims.work_conserving, "work conserving"),
        (claims.starvation_free, "starvation free"),
        (claims.fair, "fair"),
        (claims.needs_burst, "must be told burst lengths"),
    ]
    .into_iter()
    .filter_map(|(holds, name)| holds.then_some(name))
    .collect()
}

/// A tunable's value as a user would write it.
pub fn value_text(tunable: &Tunable, value: u64) -> String {
    match &tunable.kind {
        TunableKind::Time { .. } => units::format_duration(value),
        TunableKind::Count { .. } => value.to_string(),
        TunableKind::Choice(words) => {
            words.get(value as usize).map_or_else(|| value.to_string(), Into::into)
        }
    }
}

fn range_text(tunable: &Tunable) -> String {
    match &tunable.kind {
        TunableKind::Time { min, max } => {
            format!("{} to {}", units::format_duration(*min), units::format_duration(*max))
        }
        TunableKind::Count { min, max } => format!("{min} to {max}"),
        TunableKind::Choice(words) => words.iter().collect::<Vec<_>>().join(" | "),
    }
}

fn workloads(args: &ListArgs, out: &mut Out) -> CliResult<()> {
    let selected = select("workload", BUILTINS.iter(), args.name.as_deref(), |b| b.name)?;
    if !args.long && args.name.is_none() {
        let mut rows = table::table(&["workload", "study", "what it does"]);
        for builtin in selected {
            rows.add_row([builtin.name, builtin.study, builtin.summary]);
        }
        return out.line(table::render(&rows));
    }
    for builtin in selected {
        let study = match builtin.study {
            "" => String::new(),
            study => format!(" (study {study})"),
        };
        out.line(format!("{}{study}", builtin.name))?;
        out.line(format!("  {}", builtin.summary))?;
        for param in builtin.params {
            out.line(format!(
                "  --param {}={}   {} ({})",
                param.name,
                param.default,
                param.help,
                param.kind.allowed()
            ))?;
        }
        out.line("")?;
    }
    Ok(())
}

fn measures(args: &ListArgs, out: &mut Out) -> CliResult<()> {
    let all = super::schema::measures();
    let selected = select("measure", all.iter(), args.name.as_deref(), |m| m.name.as_str())?;
    let mut rows = table::table(&["measure", "of", "meaning"]);
    for measure in selected {
        rows.add_row([&measure.name, &measure.of, &measure.meaning]);
    }
    out.line(table::render(&rows))
}

fn list_studies(args: &ListArgs, out: &mut Out) -> CliResult<()> {
    let all: Vec<_> = studies::built_in()?.into_iter().map(|source| source.study).collect();
    let selected = select("study", all.iter(), args.name.as_deref(), |s| s.name.as_str())?;
    if !args.long && args.name.is_none() {
        let mut rows = table::table(&["study", "title"]);
        for study in selected {
            rows.add_row([&study.name, &study.title]);
        }
        return out.line(table::render(&rows));
    }
    for study in selected {
        out.line(format!("{}: {}", study.name, study.title))?;
        out.line(study.text.trim())?;
        for spec in &study.experiments {
            out.line(format!(
                "  {}: {} on {}",
                spec.name,
                spec.title,
                spec.workloads().join(", ")
            ))?;
            for runs in &spec.runs {
                out.line(format!(
                    "    {}: {} x{}",
                    runs.lane,
                    runs.schedulers.join(", "),
                    runs.repetitions.unwrap_or(1)
                ))?;
            }
        }
        out.line("")?;
    }
    Ok(())
}

fn as_json(what: Listed, name: Option<&str>) -> CliResult<Value> {
    Ok(match what {
        Listed::Schedulers => {
            let all = registry::SCHEDULERS.iter();
            let all = select("scheduler", all, name, |info| &info.name)?;
            all.into_iter().map(|scheduler| scheduler_json(scheduler)).collect()
        }
        Listed::Workloads => {
            let all = select("workload", BUILTINS.iter(), name, |b| b.name)?;
            all.into_iter().map(workload_json).collect()
        }
        Listed::Measures => {
            let all = super::schema::measures();
            let all = select("measure", all.iter(), name, |m| m.name.as_str())?;
            all.into_iter()
                .map(|m| json!({"name": m.name, "of": m.of, "meaning": m.meaning}))
                .collect()
        }
        Listed::Studies => {
            let all: Vec<_> = studies::built_in()?.into_iter().map(|source| source.study).collect();
            let all = select("study", all.iter(), name, |s| s.name.as_str())?;
            all.into_iter().map(|s| json!({"name": s.name, "title": s.title})).collect()
        }
        Listed::Machines => machines::as_json(name)?,
    })
}

fn scheduler_json(info: &Scheduler) -> Value {
    let tunables: Vec<Value> = info
        .tunables
        .iter()
        .map(|t| {
            json!({
                "name": t.name,
                "default": value_text(t, t.default),
                "allowed": range_text(t),
                "kernel_file": tunable_names::file_name(t),
                "text": t.text,
            })
        })
        .collect();
    json!({
        "name": info.name,
        "summary": info.summary,
        "source": info.source,
        "leaves_out": info.leaves_out,
        "claims": claims(info),
        "tunables": tunables,
    })
}

fn workload_json(builtin: &Builtin) -> Value {
    let params: Vec<Value> = builtin
        .params
        .iter()
        .map(|p| {
            json!({
                "name": p.name,
                "default": p.default,
                "allowed": p.kind.allowed(),
                "text": p.help,
            })
        })
        .collect();
    json!({
        "name": builtin.name,
        "study": builtin.study,
        "summary": builtin.summary,
        "params": params,
    })
}
