// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds which simulated configuration models which measured one, and how far the two agree.
//!
//! A policy of a running kernel is paired with the model of the same rule. `OTHER` and `BATCH`
//! belong to the newest modelled kernel that is not newer than the running one. `FIFO` and `RR`
//! belong to that kernel's model under the same policy, if it was simulated; otherwise to the
//! textbook `fcfs` and `rr`, which decide alike for tasks of one priority (sched(7)).

use crate::group::{Cell, Config, Group};
use schedlab_model::{Policy, kernel::KernelVersion};
use schedlab_run::policy::{policy_by_name, textbook_policy};
use schedlab_run::{RunResult, values};

/// A measure that both lanes have.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Name for people.
    pub name: &'static str,
    /// Name in results.
    pub measure: &'static str,
    /// If both values are below this floor, their ratio means nothing and is left out. For example,
    /// the run delay of a lone task may be 2 \u{b5}s here and 20 \u{b5}s there. 0: no floor.
    pub floor: f64,
}

impl Measure {
    /// Reads it from a run. Without a floor, 0 is left out because it has no ratio.
    pub fn read(&self, run: &RunResult) -> Option<f64> {
        values::run_value(run, self.measure).filter(|value| *value > 0.0 || self.floor > 0.0)
    }
}

/// Times below 0.1 ms come from the machinery, not from the policy.
pub const FLOOR_NS: f64 = 100_000.0;

/// Fewer switches than this come from the start and the end of a run.
pub const FLOOR_SWITCHES: f64 = 10.0;

/// Measures compared between simulation and kernel.
pub const MEASURES: [Measure; 6] = [
    measure("mean turnaround", "turnaround_ns_mean", 0.0),
    measure("makespan", "makespan_ns", 0.0),
    measure("throughput", "throughput_per_s", 0.0),
    measure("mean run delay", "run_delay_ns_mean", FLOOR_NS),
    measure("mean response", "response_ns_mean", FLOOR_NS),
    measure("switches", "nr_switches", FLOOR_SWITCHES),
];

const fn measure(name: &'static str, measure: &'static str, floor: f64) -> Measure {
    Measure { name, measure, floor }
}

/// Two cells with equal n and CPUs, one simulated, one measured.
#[derive(Debug)]
pub struct Pair<'a> {
    /// Experiment.
    pub group: &'a Group<'a>,
    /// Model's side.
    pub simulated: &'a Cell<'a>,
    /// Kernel's side.
    pub measured: &'a Cell<'a>,
}

impl Pair<'_> {
    /// Simulated divided by measured. `None` if a side is missing, the measured value is 0, or both
    /// are below the measure's floor.
    pub fn ratio(&self, measure: &Measure) -> Option<f64> {
        let simulated = self.simulated.estimate(|run| measure.read(run))?.mean;
        let measured = self.measured.estimate(|run| measure.read(run))?.mean;
        let told = measured.max(simulated) >= measure.floor;
        (measured > 0.0 && simulated.is_finite() && told).then(|| simulated / measured)
    }

    /// `linux-6.12 and OTHER`.
    pub fn label(&self) -> String {
        format!("{} \u{f7} {}", self.simulated_config().label(), self.measured_config().label())
    }

    /// The model's configuration.
    pub fn simulated_config(&self) -> &Config {
        &self.group.configs[self.simulated.config]
    }

    /// The policy's configuration.
    pub fn measured_config(&self) -> &Config {
        &self.group.configs[self.measured.config]
    }
}

/// All pairs of all experiments, in the report's order.
pub fn pairs_of<'a>(groups: &'a [Group<'a>]) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for group in groups {
        let twins = twins_of(group);
        for measured in &group.cells {
            let Some(twin) = twins[measured.config] else { continue };
            if let Some(simulated) = group.cell(twin, measured.n, measured.cpus) {
                pairs.push(Pair { group, simulated, measured });
            }
        }
    }
    pairs
}

/// For each configuration of `group`, the index of its simulated model.
pub fn twins_of(group: &Group<'_>) -> Vec<Option<usize>> {
    group
        .configs
        .iter()
        .enumerate()
        .map(|(index, config)| {
            if config.is_simulated() {
                return None;
            }
            let kernel = first_run(group, index).map_or("", |run| run.machine.kernel.as_str());
            twin(config, kernel, group)
        })
        .collect()
}

fn first_run<'a>(group: &'a Group<'_>, config: usize) -> Option<&'a RunResult> {
    group.cells.iter().find(|cell| cell.config == config)?.runs.first().copied()
}

fn twin(config: &Config, kernel: &str, group: &Group<'_>) -> Option<usize> {
    let find = |accept: &dyn Fn(&Config) -> bool| {
        group.configs.iter().position(|c| c.is_simulated() && accept(c))
    };
    // A user's own scheduler has the same name in both.
    let same_name = find(&|c| c.scheduler == config.scheduler);
    same_name.or_else(|| {
        let policy = policy_by_name(&config.scheduler)?;
        let model = newest_model_for(kernel, group);
        let is_model = |c: &Config| model.is_some() && model_of(c) == model;
        let is_default = |c: &Config| model_policy(c).is_none_or(|p| p == Policy::Normal);
        let under_policy = find(&|c| is_model(c) && model_policy(c) == Some(policy));
        under_policy.or_else(|| match policy {
            Policy::Normal | Policy::Batch => {
                let same_variant = |c: &Config| without_policy(c) == without_policy(config);
                find(&|c| is_model(c) && is_default(c) && same_variant(c))
                    .or_else(|| find(&|c| is_model(c) && is_default(c)))
            }
            _ => find(&|c| textbook_policy(&c.scheduler) == Some(policy)),
        })
    })
}

/// The kernel that a configuration models, if any.
fn model_of(config: &Config) -> Option<KernelVersion> {
    config.scheduler.parse().ok()
}

/// The policy of a kernel model's run, if its variant names one: `policy=FIFO`.
fn model_policy(config: &Config) -> Option<Policy> {
    let value = config.variant.split(", ").find_map(|part| part.strip_prefix("policy="))?;
    policy_by_name(value)
}

fn without_policy(config: &Config) -> String {
    let parts = config.variant.split(", ").filter(|part| !part.starts_with("policy="));
    parts.collect::<Vec<_>>().join(", ")
}

/// The newest model of a series that is not newer than `kernel`'s. `None` if the kernel is unknown
/// or older than every model.
fn newest_model_for(kernel: &str, group: &Group<'_>) -> Option<KernelVersion> {
    let running = KernelVersion::of_release(kernel)?.series_number();
    let models = group.configs.iter().filter(|config| config.is_simulated()).filter_map(model_of);
    models.filter(|model| model.series_number() <= running).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};

    fn host(scheduler: &str, kernel: &str) -> RunResult {
        let mut r = run(Host, scheduler, 2, 1);
        r.machine.kernel = kernel.into();
        r
    }

    fn twin_name(host_run: RunResult, sims: &[&str]) -> Option<String> {
        let mut runs: Vec<RunResult> = sims.iter().map(|s| run(Sim, s, 2, 1)).collect();
        runs.push(host_run);
        let results = [experiment("x", runs)];
        let groups = group_all(&results);
        let twin = twins_of(&groups[0]).last().copied().flatten()?;
        Some(groups[0].configs[twin].scheduler.clone())
    }

    #[test]
    fn policies_find_the_model_of_their_kernel() {
        let sims = ["linux-6.1", "linux-6.12", "linux-7.1", "rr", "fcfs"];
        let name = |policy, kernel| twin_name(host(policy, kernel), &sims);
        assert_eq!(name("OTHER", "6.18.44-cloud").as_deref(), Some("linux-6.12"));
        assert_eq!(name("BATCH", "6.5.0").as_deref(), Some("linux-6.1"));
        assert_eq!(name("OTHER", "5.10.0"), None);
        assert_eq!(name("OTHER", ""), None);
        assert_eq!(name("FIFO", "6.18.44").as_deref(), Some("fcfs"));
        assert_eq!(name("SCHED_RR", "6.18.44").as_deref(), Some("rr"));
        assert_eq!(name("DEADLINE", "6.18.44"), None);
    }

    #[test]
    fn a_model_run_under_the_policy_comes_before_the_textbook() {
        let mut runs: Vec<RunResult> =
            ["rr", "linux-6.1", "linux-6.12"].iter().map(|s| run(Sim, s, 2, 1)).collect();
        for model in ["linux-6.1", "linux-6.12"] {
            let mut under_rr = run(Sim, model, 2, 1);
            under_rr.parameters.insert("policy".into(), "RR".into());
            runs.push(under_rr);
        }
        runs.extend([host("RR", "6.18.0"), host("OTHER", "6.18.0")]);
        let results = [experiment("x", runs)];
        let groups = group_all(&results);
        let labels: Vec<String> = twins_of(&groups[0])
            .into_iter()
            .flatten()
            .map(|twin| groups[0].configs[twin].label())
            .collect();
        assert_eq!(labels, ["linux-6.12 (RR)", "linux-6.12"]);
    }

    #[test]
    fn ratio_is_simulated_by_measured_and_absent_for_zero() {
        let mut sim = run(Sim, "fcfs", 2, 1);
        let mut real = host("FIFO", "6.18.0");
        sim.measures.totals.turnaround_ns_mean = Some(90);
        real.measures.totals.turnaround_ns_mean = Some(100);
        let results = [experiment("x", vec![sim, real])];
        let groups = group_all(&results);
        let pairs = pairs_of(&groups);
        assert_eq!(pairs.len(), 1);
        assert_eq!(pairs[0].ratio(&MEASURES[0]), Some(0.9));
        assert_eq!(pairs[0].ratio(&MEASURES[5]), None);
    }

    #[test]
    fn a_ratio_of_next_to_nothing_is_left_out() {
        let mut sim = run(Sim, "fcfs", 2, 1);
        let mut real = host("FIFO", "6.18.0");
        sim.measures.totals.response_ns_mean = Some(2_000);
        real.measures.totals.response_ns_mean = Some(99_000);
        let mut results = [experiment("x", vec![sim, real])];
        assert_eq!(pairs_of(&group_all(&results))[0].ratio(&MEASURES[4]), None);
        results[0].runs[1].measures.totals.response_ns_mean = Some(100_000);
        assert_eq!(pairs_of(&group_all(&results))[0].ratio(&MEASURES[4]), Some(0.02));
    }
}
