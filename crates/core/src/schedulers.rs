// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers of the registry: their names, what an unknown name is answered with, and the
//! request that a scheduler runs.

use crate::workload::Named;
use crate::{Error, SimLane};
use schedlab_model::{CpuMask, Nanos, Policy};
use schedlab_run::place::allowed_words;
use schedlab_run::{Keep, RunRequest, policy};
use schedlab_sched::{Scheduler, registry};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Finds the scheduler called `name`. The error suggests similar names and lists what is allowed.
pub fn find(name: &str) -> Result<&'static Arc<Scheduler>, Error> {
    registry::find(name).ok_or_else(|| unknown(name))
}

/// The error for a name that no scheduler has.
pub fn unknown(name: &str) -> Error {
    let names: Vec<&str> = registry::names().collect();
    let around = registry::kernels_around(name)
        .map(|around| around.into_iter().flatten().collect())
        .or_else(|| registry::kernels_of_major(name));
    let allowed = match around.as_deref() {
        Some([only]) => format!("nearest is {only}; allowed: {}", names.join(", ")),
        Some(models) => {
            format!("nearest are {}; allowed: {}", models.join(" and "), names.join(", "))
        }
        None => allowed_words(name, &names),
    };
    let help = if name.contains('+') {
        "`schedlab check --bugs` lists the known bugs and the models that can have each"
    } else if name.contains('=') {
        "tunables follow the scheduler's name after colons: linux-6.12:FIFO:base_slice=3ms"
    } else {
        "`schedlab list schedulers` says what each is; a name with a / in it is a file with a \
         scheduler for sched_ext"
    };
    Error::usage(format!("no scheduler is called {name:?}: {allowed}"), help)
}

/// A note about the alias `name` of `scheduler`, if it is one.
pub fn alias_note(name: &str, scheduler: &Scheduler) -> Option<String> {
    (scheduler.name != name).then(|| format!("note: {name} stands for {}", scheduler.name))
}

/// A note about the named schedulers that run without costs by default in `lane`, if there are any.
pub fn free_note<'s>(lane: &SimLane, names: impl Iterator<Item = &'s str>) -> Option<String> {
    let is_free = |name: &&str| registry::find(name).is_some_and(|found| lane.is_free(found));
    let free: BTreeSet<&str> = names.filter(is_free).collect();
    let names: Vec<&str> = free.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "note: switches and ticks cost nothing under {}, as in textbooks; --costs default \
             charges them",
            names.join(", ")
        )
    })
}

/// Everything about one run except the lane.
#[derive(Clone, Debug)]
pub struct Planned<'r> {
    /// The workload.
    pub named: &'r Named,
    /// The scheduler.
    pub scheduler: &'r Scheduler,
    /// Policy of tasks that name none, and the real-time priority for it.
    pub policy: Option<(Policy, Option<u8>)>,
    /// Tunables of the scheduler, as text with units.
    pub tunables: Vec<(String, String)>,
    /// Number of CPUs.
    pub nr_cpus: u32,
    /// The machine as the request names it, for the result.
    pub machine: Option<&'r str>,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Ends the run at this time (ns).
    pub until_ns: Option<Nanos>,
    /// What the result keeps.
    pub keep: Keep,
}

impl Planned<'_> {
    /// The request for the lane.
    pub fn request(self) -> RunRequest {
        let mut workload = self.named.workload.clone();
        let mut parameters = self.named.parameters.clone();
        if let Some((policy, priority)) = self.policy {
            let priority = priority.unwrap_or(policy::RT_PRIORITY_DEFAULT);
            policy::apply_policy(&mut workload, policy, priority);
            parameters.insert("policy".into(), policy.name().into());
        }
        parameters.insert("cpus".into(), self.nr_cpus.to_string());
        if let Some(machine) = self.machine {
            parameters.insert("machine".into(), machine.into());
        }
        RunRequest {
            tunables: self.tunables,
            parameters,
            seed: self.seed.wrapping_add(u64::from(self.repetition)),
            repetition: self.repetition,
            until_ns: self.until_ns,
            keep: self.keep,
            ..RunRequest::new(workload, self.scheduler.name.as_ref(), CpuMask::first(self.nr_cpus))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_near_ones() {
        let error = find("linux-6.13").unwrap_err();
        assert!(error.text.contains("nearest are linux-6.12"), "{error}");
        assert!(find("lottry").unwrap_err().text.contains("did you mean `lottery`?"));
        assert_eq!(
            alias_note("cfs", find("cfs").unwrap()).unwrap(),
            "note: cfs stands for linux-6.1"
        );
    }
}
