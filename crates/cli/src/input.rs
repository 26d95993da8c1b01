// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses what users type: workloads, policies, CPUs, times.

use crate::args::WorkloadArgs;
use crate::error::{CliError, CliResult, Exit};
use schedlab_lab::LabError;
use schedlab_lab::studies::{self, FILE_BYTES_MAX};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{CpuMask, Nanos, Policy, Workload};
use schedlab_run::Warning;
use schedlab_run::file::read_text;
use schedlab_run::policy;
use schedlab_sim::Watchdog;
use schedlab_workload::{WorkloadName, pair, units};
use std::collections::BTreeMap;

/// Parses a duration with its unit.
pub fn duration(text: &str) -> Result<Nanos, String> {
    match units::parse_duration(text) {
        Ok(0) => Err("it is 0: allowed is 1ns and more".into()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}

/// Splits a command into words. Single and double quotes keep words together.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut is_in_word) = (None, false);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => {
                is_in_word = false;
                continue;
            }
            _ => {}
        }
        if !is_in_word {
            words.push(String::new());
            is_in_word = true;
        }
        let is_quote = matches!(c, '"' | '\'') && (quote.is_none() || quote == Some(c));
        if let (false, Some(word)) = (is_quote, words.last_mut()) {
            word.push(c);
        }
    }
    match quote {
        Some(open) => Err(format!("a quote {open} is not closed")),
        None => Ok(words),
    }
}

/// Parses a time since the start of the run: a duration, or 0.
pub fn moment(text: &str) -> Result<Nanos, String> {
    if text == "0" {
        return Ok(0);
    }
    units::parse_duration(text).map_err(|error| error.to_string())
}

/// Parses a duration, `auto` or `off`.
pub fn watchdog(text: &str) -> Result<Watchdog, String> {
    match text {
        "auto" => Ok(Watchdog::Auto),
        "off" => Ok(Watchdog::Off),
        _ => duration(text).map(Watchdog::After),
    }
}

/// Parses a number of ticks per second that kernels can be built with (kernel/Kconfig.hz).
pub fn hz(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(hz @ (100 | 250 | 300 | 1000)) => Ok(hz),
        _ => Err("allowed are 100, 250, 300 and 1000, as the kernel's".into()),
    }
}

/// Parses a scheduling policy.
pub fn policy(text: &str) -> Result<Policy, String> {
    let names: Vec<&str> = policy::POLICIES.iter().map(|policy| policy.name()).collect();
    policy::policy_by_name(text).ok_or_else(|| {
        format!("no such policy: {}", schedlab_run::place::allowed_words(text, &names))
    })
}

/// The value of `--cpus`: a number of CPUs, or a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cpus {
    /// The first CPUs, this many.
    Count(u32),
    /// These CPUs.
    List(CpuMask),
}

impl Cpus {
    /// The number of CPUs.
    pub fn count(&self) -> u32 {
        match self {
            Self::Count(count) => *count,
            Self::List(mask) => mask.weight(),
        }
    }

    /// The CPUs as a mask of this machine. This process must be allowed to use them.
    pub fn on_this_machine(&self) -> CliResult<CpuMask> {
        let allowed = schedlab_host::allowed_cpus();
        let missing = match self {
            Self::Count(count) if *count <= allowed.weight() => {
                return Ok(allowed.iter().take(*count as usize).collect());
            }
            Self::Count(count) => format!("asks for {count}"),
            Self::List(mask) if mask.and_not(&allowed).is_empty() => return Ok(*mask),
            Self::List(mask) => format!("names {}", mask.and_not(&allowed)),
        };
        Err(CliError::new(
            Exit::Unavailable,
            format!("--cpus {missing}, but this process may use CPUs {allowed}"),
            "ask only for those; `taskset -p $$` shows what a shell may use",
        ))
    }
}

/// Parses a number of CPUs, or a list in the kernel's format: `4`, `0-3,8`.
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let allowed = format!("allowed are 1 to {NR_CPUS_MAX} CPUs, or a list such as 0-3,8");
    if !text.bytes().all(|byte| byte.is_ascii_digit()) || text.is_empty() {
        let list = text.parse::<CpuMask>();
        return list.map(Cpus::List).map_err(|error| format!("{error}; {allowed}"));
    }
    match text.parse::<u32>() {
        Ok(0) => Err(format!("{allowed}; CPU 0 alone is 0-0")),
        Ok(count) if count as usize <= NR_CPUS_MAX => Ok(Cpus::Count(count)),
        _ => Err(allowed),
    }
}

/// Parses `--cpus` for modelled machines and guests, whose CPUs are numbered from 0. Returns their
/// number.
pub fn model_cpus(text: &str) -> Result<u32, String> {
    match cpus(text)? {
        Cpus::List(mask) if mask != CpuMask::first(mask.weight()) => Err(format!(
            "the CPUs of a modelled machine and of a guest are numbered from 0: allowed are 1 to \
             {NR_CPUS_MAX}, or a list from 0 on, such as 0-{}",
            mask.weight().max(2) - 1
        )),
        cpus => Ok(cpus.count()),
    }
}

/// Splits each `name=value` of `option`.
pub fn pairs(option: &str, texts: &[String]) -> CliResult<Vec<(String, String)>> {
    let pairs = texts.iter().map(|text| pair(option, text));
    Ok(pairs.map(|found| found.map(|(n, v)| (n.into(), v.into()))).collect::<Result<_, _>>()?)
}

/// A workload and the parameters that made it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The workload, with `--policy`, `--priority` and `--nice` applied.
    pub workload: Workload,
    /// The given parameters, for the result.
    pub parameters: BTreeMap<String, String>,
    /// Warnings about entries of the file that have no effect.
    pub warnings: Vec<Warning>,
}

/// Reads WORKLOAD and applies all options that change it.
///
/// `nr_cpus` is the number of CPUs of the machine that runs the workload: files refer to CPUs.
pub fn workload(text: &str, args: &WorkloadArgs, nr_cpus: u32) -> CliResult<Named> {
    let mut parameters = Vec::new();
    let name = WorkloadName::parse(text)?;
    if let WorkloadName::Builtin(_, given) = &name {
        parameters.extend(given.iter().copied());
    }
    for text in &args.params {
        parameters.push(pair("--param", text)?);
    }
    let mut warnings = Vec::new();
    let mut workload = match name {
        WorkloadName::Builtin(name, _) => {
            schedlab_workload::builtin(name, &parameters).map_err(LabError::from)?
        }
        WorkloadName::File(path) => {
            if !args.params.is_empty() {
                return Err(CliError::usage_help(
                    format!("--param is given, but {} is a file", path.display()),
                    "parameters belong to built-in workloads; change the file instead",
                ));
            }
            let text = read_text(path, FILE_BYTES_MAX)?;
            studies::rtapp(&path.display().to_string(), &text, nr_cpus, &mut warnings)?
        }
    };
    if let Some(nice) = args.nice {
        policy::apply_nice(&mut workload, nice);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_the_words_of_a_command_together() {
        let of = |text| words(text).unwrap();
        assert_eq!(of("  ./scx_lavd --slice  5 "), ["./scx_lavd", "--slice", "5"]);
        assert_eq!(of("'a b'c \"d'e\" ''"), ["a bc", "d'e", ""]);
        assert_eq!(of(" "), [""; 0]);
        assert!(words("a 'b").unwrap_err().contains("not closed"));
    }

    #[test]
    fn cpus_are_a_number_or_a_list() {
        assert_eq!(cpus("4"), Ok(Cpus::Count(4)));
        assert_eq!(cpus("0-2,8").unwrap().count(), 4);
        assert_eq!(cpus("3-3").map(|cpus| cpus.count()), Ok(1));
        for bad in ["", "a", "3-1", "0-", "-1", "1025", "0-99999999999", "+1", "1,"] {
            assert!(cpus(bad).unwrap_err().contains("a list such as 0-3,8"), "{bad}");
        }
        assert!(cpus("0").unwrap_err().contains("0-0"));
        assert_eq!((model_cpus("3"), model_cpus("0-2")), (Ok(3), Ok(3)));
        assert!(model_cpus("1-2").unwrap_err().contains("from 0 on, such as 0-1"));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(hz("251").unwrap_err().contains("100, 250, 300 and 1000"));
        assert!(duration("0ms").is_err() && duration("5").is_err());
        assert_eq!(watchdog("off"), Ok(Watchdog::Off));
        assert!(policy("ffo").unwrap_err().contains("did you mean `FIFO`?"));
    }
}
