// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses what users type: workloads, policies, CPUs, times.

use crate::args::WorkloadArgs;
use crate::error::{CliError, CliResult, Exit};
use schedlab_core::workload::{self, Changes, Source};
use schedlab_lab::studies::FILE_BYTES_MAX;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{CpuMask, Nanos};
use schedlab_run::SWITCH_JITTER_NS_MAX;
use schedlab_run::file::read_text;
use schedlab_workload::{WorkloadName, pair};

pub use schedlab_core::parse::{duration, hz, moment, policy, watchdog};
pub use schedlab_core::workload::Named;

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

/// Reads WORKLOAD and applies all options that change it.
///
/// `nr_cpus` is the number of CPUs of the machine that runs the workload: files refer to CPUs.
pub fn workload(text: &str, args: &WorkloadArgs, nr_cpus: u32) -> CliResult<Named> {
    let changes = Changes {
        params: args.params.iter().map(|text| pair("--param", text)).collect::<Result<_, _>>()?,
        policy: args.policy,
        priority: args.priority,
        nice: args.nice,
    };
    let named = match WorkloadName::parse(text)? {
        WorkloadName::Builtin(name, given) => {
            workload::make(Source::Builtin(name, given), &changes, nr_cpus)?
        }
        WorkloadName::File(path) => {
            let name = path.display().to_string();
            let text = read_text(path, FILE_BYTES_MAX)?;
            workload::make(Source::File { name: &name, text: &text }, &changes, nr_cpus)?
        }
    };
    Ok(named)
}

/// Reads the value of `--switch-jitter`.
pub fn jitter(text: &str) -> Result<Nanos, String> {
    let ns = duration(text)?;
    let is_allowed = ns <= SWITCH_JITTER_NS_MAX;
    is_allowed.then_some(ns).ok_or_else(|| "allowed are 1ns to 20us".into())
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
}
