// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run on this machine changes of its tasks: `FIFO`, `nice=5`, `BATCH+slice=1ms`.

use crate::StudyError;
use crate::place::unknown;
use crate::policy::{self, POLICIES};
use schedlab_model::{Nanos, Policy, Workload};
use schedlab_workload::units;
use std::fmt;
use std::str::FromStr;

/// Attributes that a variant may name, in addition to a policy.
const NAMES: [&str; 3] = ["nice", "slice", "weight"];

/// Attributes that the tasks of a run get, where they have none of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Variant {
    /// Policy; `None`: OTHER.
    pub policy: Option<Policy>,
    /// Nice value, -20 to 19.
    pub nice: Option<i8>,
    /// Custom slice of OTHER and BATCH (ns), from Linux 6.12 on.
    pub slice_ns: Option<Nanos>,
    /// cpu.weight of the control group that holds the whole run, 1 to 10000.
    pub weight: Option<u32>,
}

impl Variant {
    /// Gives the attributes to the tasks of `workload`; real-time policies get `rt_priority`.
    pub fn apply(&self, workload: &mut Workload, rt_priority: u8) {
        if let Some(policy) = self.policy {
            policy::apply_policy(workload, policy, rt_priority);
        }
        if let Some(nice) = self.nice {
            policy::apply_nice(workload, nice);
        }
        if let Some(slice_ns) = self.slice_ns {
            policy::apply_slice(workload, slice_ns);
        }
        if let Some(weight) = self.weight {
            // The first group is the one that holds all others.
            workload.cgroups.iter_mut().take(1).for_each(|group| group.weight = weight);
        }
    }

    /// Reads one part: a policy, or a name with its value.
    fn add(&mut self, part: &str) -> Result<(), StudyError> {
        let wrong = |text: &str, allowed: &str| {
            StudyError::new(format!("{part:?} is no {text}"), format!("allowed are {allowed}"))
        };
        let is_twice = match part.split_once('=') {
            None => {
                let names = POLICIES.iter().map(|policy| policy.name());
                let found = policy::policy_by_name(part).ok_or_else(|| {
                    unknown("policy or attribute", part, names.chain(["nice=N", "slice=TIME"]))
                })?;
                self.policy.replace(found).is_some()
            }
            Some(("nice", value)) => {
                let nice = value.parse::<i8>().ok().filter(|nice| (-20..=19).contains(nice));
                let nice = nice.ok_or_else(|| wrong("nice value", "nice=-20 to nice=19"))?;
                self.nice.replace(nice).is_some()
            }
            Some(("slice", value)) => {
                let slice = units::parse_duration(value).ok().filter(|ns| *ns > 0);
                let slice = slice.ok_or_else(|| wrong("slice", "times such as slice=1ms"))?;
                self.slice_ns.replace(slice).is_some()
            }
            Some(("weight", value)) => {
                let weight = value.parse::<u32>().ok().filter(|w| (1..=10_000).contains(w));
                let weight = weight.ok_or_else(|| wrong("weight", "weight=1 to weight=10000"))?;
                self.weight.replace(weight).is_some()
            }
            Some((name, _)) => return Err(unknown("attribute", name, NAMES.into_iter())),
        };
        match is_twice {
            true => Err(StudyError::new(format!("{part:?} is a second value"), "give one")),
            false => Ok(()),
        }
    }
}

impl FromStr for Variant {
    type Err = StudyError;

    /// Parts are joined by `+`: `BATCH+nice=5`.
    fn from_str(text: &str) -> Result<Self, StudyError> {
        let mut variant = Self::default();
        text.split('+').try_for_each(|part| variant.add(part.trim()))?;
        Ok(variant)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.policy.map(|policy| policy.name().to_owned()),
            self.nice.map(|nice| format!("nice={nice}")),
            self.slice_ns.map(|ns| format!("slice={}", units::format_duration(ns))),
            self.weight.map(|weight| format!("weight={weight}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::TaskSpec;

    #[test]
    fn a_variant_is_read_and_written_alike() {
        for text in ["FIFO", "nice=5", "BATCH+nice=-3+slice=1ms", "weight=50"] {
            assert_eq!(text.parse::<Variant>().unwrap().to_string(), text);
        }
        assert_eq!("fifo".parse::<Variant>().unwrap().policy, Some(Policy::Fifo));
        for (text, wanted) in [
            ("nice=20", "nice=-20 to nice=19"),
            ("slice=0ms", "slice=1ms"),
            ("slise=1ms", "did you mean `slice`?"),
            ("weight=0", "weight=10000"),
            ("FIVO", "did you mean `FIFO`?"),
            ("nice=1+nice=2", "second value"),
            ("", "policy or attribute"),
        ] {
            let error = text.parse::<Variant>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_task_has_of_its_own_stays() {
        let mut tasks = vec![TaskSpec::new("a", Default::default()); 2];
        tasks[1].attr.nice = 7;
        tasks[1].attr.slice_ns = Some(9);
        let mut workload = Workload::new("w", tasks);
        "nice=5+slice=1ms+weight=50".parse::<Variant>().unwrap().apply(&mut workload, 1);
        let attrs = workload.tasks.iter().map(|task| (task.attr.nice, task.attr.slice_ns));
        assert_eq!(attrs.collect::<Vec<_>>(), [(5, Some(1_000_000)), (7, Some(9))]);
        assert_eq!(workload.cgroups[0].weight, 50);
    }
}
