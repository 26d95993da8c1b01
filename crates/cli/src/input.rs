// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people type, checked: workloads, policies, CPUs, `name=value` pairs.

use crate::args::WorkloadArgs;
use crate::error::{CliError, CliResult, Exit};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{CpuId, CpuMask, Nanos, Op, Policy, SchedAttr, Workload};
use schedlab_run::Warning;
use schedlab_run::policy;
use schedlab_sim::Watchdog;
use schedlab_workload::units;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest workload file that is read; rt-app files are a few kilobytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// A duration with its unit.
pub fn duration(text: &str) -> Result<Nanos, String> {
    match units::parse_duration(text) {
        Ok(0) => Err("it is 0: allowed is 1ns and more".into()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}

/// A time since the start of the run: a duration, or 0.
pub fn moment(text: &str) -> Result<Nanos, String> {
    if text == "0" {
        return Ok(0);
    }
    units::parse_duration(text).map_err(|error| error.to_string())
}

/// A duration, `auto` or `off`.
pub fn watchdog(text: &str) -> Result<Watchdog, String> {
    match text {
        "auto" => Ok(Watchdog::Auto),
        "off" => Ok(Watchdog::Off),
        _ => duration(text).map(Watchdog::After),
    }
}

/// Ticks a second that kernels are built with (kernel/Kconfig.hz).
pub fn hz(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(hz @ (100 | 250 | 300 | 1000)) => Ok(hz),
        _ => Err("allowed are 100, 250, 300 and 1000, as the kernel's".into()),
    }
}

/// A scheduling policy.
pub fn policy(text: &str) -> Result<Policy, String> {
    let names: Vec<&str> = policy::POLICIES.iter().map(|policy| policy.name()).collect();
    policy::policy_by_name(text)
        .ok_or_else(|| format!("no such policy: {}", crate::error::allowed_words(text, &names)))
}

/// CPUs in the kernel's list format: `0-3,8`.
pub fn cpu_list(text: &str) -> Result<CpuMask, String> {
    let wrong = || format!("expected CPUs such as 0 or 0-3,8, each below {NR_CPUS_MAX}");
    let number = |text: &str| {
        text.trim().parse::<u32>().ok().filter(|n| (*n as usize) < NR_CPUS_MAX).ok_or_else(wrong)
    };
    let mut mask = CpuMask::empty();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("{part:?} runs backwards: write {last}-{first}"));
        }
        (first..=last).for_each(|cpu| mask.set(CpuId(cpu)));
    }
    Ok(mask)
}

/// Splits `name=value`.
pub fn pair<'t>(option: &str, text: &'t str) -> CliResult<(&'t str, &'t str)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.trim(), value.trim())),
        _ => Err(CliError::usage_help(
            format!("{option} is {text:?}"),
            format!("write NAME=VALUE, as in {option} n=4"),
        )),
    }
}

/// What the argument WORKLOAD names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkloadName<'t> {
    /// A built-in with parameters.
    Builtin(&'t str, Vec<(&'t str, &'t str)>),
    /// The path of a file.
    File(&'t Path),
}

/// Tells files from built-ins: whatever ends in `.json` or contains a `/` is a path.
pub fn workload_name(text: &str) -> CliResult<WorkloadName<'_>> {
    let is_path = text.contains('/') || text.to_ascii_lowercase().ends_with(".json");
    if is_path {
        return Ok(WorkloadName::File(Path::new(text)));
    }
    let (name, parameters) = match text.split_once(':') {
        Some((name, parameters)) => (name, parameters),
        None => (text, ""),
    };
    let pairs = split_parameters(parameters);
    let pairs: CliResult<Vec<_>> = pairs.into_iter().map(|text| pair("--param", text)).collect();
    Ok(WorkloadName::Builtin(name, pairs?))
}

/// Splits `n=4,nice=0,5,work=1s` before each part that has a `=`: values may contain commas.
fn split_parameters(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (index, _) in text.match_indices(',') {
        let rest = &text[index + 1..];
        let next = rest.split(',').next().unwrap_or_default();
        if next.contains('=') || next.is_empty() {
            parts.push(&text[start..index]);
            start = index + 1;
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// A workload and the parameters it was made with.
#[derive(Clone, Debug)]
pub struct Named {
    /// The workload, with `--policy`, `--priority` and `--nice` applied.
    pub workload: Workload,
    /// The parameters that were given, for the result.
    pub parameters: BTreeMap<String, String>,
    /// What in the file has no effect.
    pub warnings: Vec<Warning>,
}

/// Reads WORKLOAD and everything that bends it.
///
/// `nr_cpus` is the number of CPUs of the machine that shall run it: files name CPUs.
pub fn workload(text: &str, args: &WorkloadArgs, nr_cpus: u32) -> CliResult<Named> {
    let mut parameters = Vec::new();
    let name = workload_name(text)?;
    if let WorkloadName::Builtin(_, given) = &name {
        parameters.extend(given.iter().copied());
    }
    for text in &args.params {
        parameters.push(pair("--param", text)?);
    }
    let mut warnings = Vec::new();
    let mut workload = match name {
        WorkloadName::Builtin(name, _) => builtin(name, &parameters)?,
        WorkloadName::File(path) => {
            if !args.params.is_empty() {
                return Err(CliError::usage_help(
                    format!("--param is given, but {} is a file", path.display()),
                    "parameters belong to built-in workloads; change the file instead",
                ));
            }
            read_file(path, nr_cpus, &mut warnings)?
        }
    };
    if let Some(nice) = args.nice {
        apply_nice(&mut workload, nice);
    }
    if let Some(policy) = args.policy {
        if policy == Policy::Deadline {
            return Err(CliError::usage_help(
                "--policy deadline needs a runtime and a period for each task",
                "write them into an rt-app file (dl-runtime, dl-period)",
            ));
        }
        policy::apply_policy(
            &mut workload,
            policy,
            args.priority.unwrap_or(policy::RT_PRIORITY_DEFAULT),
        );
    }
    let parameters =
        parameters.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Ok(Named { workload, parameters, warnings })
}

/// A built-in workload.
pub fn builtin(name: &str, parameters: &[(&str, &str)]) -> CliResult<Workload> {
    schedlab_workload::builtin(name, parameters).map_err(|error| {
        let names: Vec<&str> = schedlab_workload::BUILTINS.iter().map(|b| b.name).collect();
        let help = if names.contains(&name) {
            format!("`schedlab list workloads {name}` shows its parameters")
        } else {
            "`schedlab list workloads` shows all; a file must end in .json or contain a /".into()
        };
        CliError::usage_help(error.to_string(), help)
    })
}

/// Gives tasks with the default nice value another one.
fn apply_nice(workload: &mut Workload, nice: i8) {
    let apply = |attr: &mut SchedAttr| {
        if attr.nice == 0 {
            attr.nice = nice;
        }
    };
    for task in &mut workload.tasks {
        apply(&mut task.attr);
        for op in &mut task.program.ops {
            if let Op::SetAttr(attr) = op {
                apply(attr);
            }
        }
    }
}

/// Reads an rt-app file. Its error shows the line.
fn read_file(path: &Path, nr_cpus: u32, warnings: &mut Vec<Warning>) -> CliResult<Workload> {
    let text = read_text(path, FILE_BYTES_MAX)?;
    rtapp(&path.display().to_string(), &text, nr_cpus, warnings)
}

/// Reads the text of an rt-app file called `name`.
pub fn rtapp(
    name: &str,
    text: &str,
    nr_cpus: u32,
    warnings: &mut Vec<Warning>,
) -> CliResult<Workload> {
    let read = schedlab_workload::read_rtapp(name, text, nr_cpus)
        .map_err(|error| CliError::Report { exit: Exit::Usage, diagnostic: error })?;
    schedlab_run::expect::check(&read.workload)
        .map_err(|text| CliError::usage(format!("{name}: {text}")))?;
    warnings.extend(read.warnings.iter().map(|warning| Warning {
        code: warning.kind.code().into(),
        text: format!("{name}:{}:{}: {}", warning.line, warning.column, warning.text),
    }));
    Ok(read.workload)
}

/// Reads a text file of at most `bytes_max`.
pub fn read_text(path: &Path, bytes_max: u64) -> CliResult<String> {
    use std::io::Read;
    let wrong = |error: std::io::Error| CliError::file("read", path, &error);
    let mut bytes = Vec::new();
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(wrong)?)
    };
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > bytes_max {
        return Err(CliError::usage(format!(
            "{} is larger than {}, the most that is read",
            path.display(),
            units::format_bytes(bytes_max)
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        CliError::usage_help(
            format!(
                "{} is no text: byte {} is not UTF-8",
                path.display(),
                error.utf8_error().valid_up_to()
            ),
            "give a text file",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_may_hold_commas() {
        assert_eq!(split_parameters("n=4,nice=0,5,work=1s"), ["n=4", "nice=0,5", "work=1s"]);
        assert_eq!(split_parameters(""), [""; 0]);
        assert_eq!(split_parameters("cpus=0,2"), ["cpus=0,2"]);
    }

    #[test]
    fn files_are_told_from_builtins() {
        assert_eq!(
            workload_name("hogs:n=4").unwrap(),
            WorkloadName::Builtin("hogs", vec![("n", "4")])
        );
        assert_eq!(workload_name("a.json").unwrap(), WorkloadName::File(Path::new("a.json")));
        assert_eq!(workload_name("./hogs").unwrap(), WorkloadName::File(Path::new("./hogs")));
        assert!(workload_name("hogs:4").is_err());
    }

    #[test]
    fn cpu_lists_are_the_kernels() {
        assert_eq!(cpu_list("0-2,8").unwrap().to_string(), "0-2,8");
        for bad in ["", "a", "3-1", "0-", "-1", "1024", "0-99999999999"] {
            assert!(cpu_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(hz("251").unwrap_err().contains("100, 250, 300 and 1000"));
        assert!(duration("0ms").is_err() && duration("5").is_err());
        assert_eq!(watchdog("off"), Ok(Watchdog::Off));
        assert!(policy("ffo").unwrap_err().contains("did you mean `FIFO`?"));
    }
}
