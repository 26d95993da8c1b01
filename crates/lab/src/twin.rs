// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the model of a measured policy or kernel among the simulated schedulers.
//!
//! `OTHER` and `BATCH`, and a kernel in a guest, belong to the newest modelled kernel that is not
//! newer than the running one. `FIFO` and `RR` belong to that kernel's model under the same policy,
//! if it was simulated; otherwise to the textbook `fcfs` and `rr`, which decide alike for tasks of
//! one priority (sched(7)).

use schedlab_model::{Policy, kernel::KernelVersion};
use schedlab_run::policy::{policy_by_name, textbook_policy};
use schedlab_run::{LaneKind, Origin};

/// One scheduler in one lane.
#[derive(Clone, Copy, Debug)]
pub struct Side<'s> {
    /// A lane, or a trace.
    pub lane: Origin,
    /// Scheduler or policy; in the vm lane a kernel, with its scheduler or policy after a colon.
    pub scheduler: &'s str,
    /// Parameters that distinguish it from the same scheduler with others: `policy=FIFO, n=4`.
    pub variant: &'s str,
    /// Release of the kernel that ran it; empty if unknown.
    pub kernel: &'s str,
}

impl<'s> Side<'s> {
    fn is_simulated(&self) -> bool {
        self.lane == LaneKind::Sim
    }

    /// The scheduler or policy that a measured side ran.
    fn rule(&self) -> &'s str {
        match self.lane {
            Origin::Lane(LaneKind::Vm) => {
                self.scheduler.split_once(':').map_or(Policy::Normal.name(), |(_, rule)| rule)
            }
            _ => self.scheduler,
        }
    }

    /// The kernel that it models, if any.
    fn model(&self) -> Option<KernelVersion> {
        self.scheduler.parse().ok()
    }

    /// The policy of a kernel model's run, if its variant names one.
    fn policy(&self) -> Option<Policy> {
        let value = self.variant.split(", ").find_map(|part| part.strip_prefix("policy="))?;
        policy_by_name(value)
    }

    fn without_policy(&self) -> Vec<&'s str> {
        self.variant.split(", ").filter(|part| !part.starts_with("policy=")).collect()
    }
}

/// Index of the model of `measured` among `all`, of which those that are not simulated never match.
pub fn twin_of(measured: &Side<'_>, all: &[Side<'_>]) -> Option<usize> {
    if measured.is_simulated() {
        return None;
    }
    let find = |accept: &dyn Fn(&Side<'_>) -> bool| {
        all.iter().position(|side| side.is_simulated() && accept(side))
    };
    let rule = measured.rule();
    // A user's own scheduler has the same name in both.
    let same_name = find(&|side| side.scheduler == rule);
    same_name.or_else(|| {
        let policy = policy_by_name(rule)?;
        let model = newest_model_for(measured.kernel, all);
        let is_model = |side: &Side<'_>| model.is_some() && side.model() == model;
        let is_default = |side: &Side<'_>| side.policy().is_none_or(|p| p == Policy::Normal);
        let under_policy = find(&|side| is_model(side) && side.policy() == Some(policy));
        under_policy.or_else(|| match policy {
            Policy::Normal | Policy::Batch => {
                let same = |side: &Side<'_>| side.without_policy() == measured.without_policy();
                find(&|side| is_model(side) && is_default(side) && same(side))
                    .or_else(|| find(&|side| is_model(side) && is_default(side)))
            }
            _ => find(&|side| textbook_policy(side.scheduler) == Some(policy)),
        })
    })
}

/// The newest model of a series that is not newer than `kernel`'s. `None` if the kernel is unknown
/// or older than every model.
fn newest_model_for(kernel: &str, all: &[Side<'_>]) -> Option<KernelVersion> {
    let running = KernelVersion::of_release(kernel)?.series_number();
    let models = all.iter().filter(|side| side.is_simulated()).filter_map(Side::model);
    models.filter(|model| model.series_number() <= running).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(lane: LaneKind, scheduler: &'static str, kernel: &'static str) -> Side<'static> {
        let (scheduler, variant) = match scheduler.split_once(' ') {
            Some(parts) => parts,
            None => (scheduler, ""),
        };
        Side { lane: lane.into(), scheduler, variant, kernel }
    }

    fn twin(
        lane: LaneKind,
        name: &'static str,
        kernel: &'static str,
        models: &[&'static str],
    ) -> Option<usize> {
        let mut all: Vec<Side<'_>> =
            models.iter().map(|model| side(LaneKind::Sim, model, "")).collect();
        let measured = side(lane, name, kernel);
        all.insert(0, measured);
        Some(twin_of(&measured, &all)? - 1)
    }

    #[test]
    fn policies_find_the_model_of_their_kernel() {
        let sims = ["linux-6.1", "linux-6.12", "linux-7.1", "rr", "fcfs"];
        let name = |policy, kernel| Some(sims[twin(LaneKind::Host, policy, kernel, &sims)?]);
        assert_eq!(name("OTHER", "6.18.44-cloud"), Some("linux-6.12"));
        assert_eq!(name("BATCH", "6.5.0"), Some("linux-6.1"));
        assert_eq!(name("OTHER", "5.10.0"), None);
        assert_eq!(name("OTHER", ""), None);
        assert_eq!(name("FIFO", "6.18.44"), Some("fcfs"));
        assert_eq!(name("SCHED_RR", "6.18.44"), Some("rr"));
        assert_eq!(name("DEADLINE", "6.18.44"), None);
    }

    #[test]
    fn a_model_run_under_the_policy_comes_before_the_textbook() {
        let sims = ["rr", "linux-6.1 policy=RR", "linux-6.12", "linux-6.12 policy=RR"];
        assert_eq!(twin(LaneKind::Host, "RR", "6.18.0", &sims), Some(3));
        assert_eq!(twin(LaneKind::Host, "OTHER", "6.18.0", &sims), Some(2));
    }

    #[test]
    fn a_kernel_in_a_guest_finds_its_model() {
        let sims = ["wrr", "linux-6.1", "linux-6.12", "linux-6.12 policy=FIFO"];
        let index = |name, kernel| twin(LaneKind::Vm, name, kernel, &sims);
        assert_eq!(index("6.12", "6.12.117+deb13-amd64"), Some(2));
        assert_eq!(index("6.12:FIFO", "6.12.117"), Some(3));
        assert_eq!(index("6.18:wrr", "6.18.15"), Some(0));
        assert_eq!(index("6.18:mine", "6.18.15"), None);
        assert_eq!(index("linux-6.12", ""), None, "its release is not known");
    }
}
