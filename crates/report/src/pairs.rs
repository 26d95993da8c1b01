// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs simulated configurations with the measured ones that they model, and says how far the two
//! agree.

use crate::group::{Cell, Config, Group};
use schedlab_lab::against::{Against, MEASURES, Measure, ModelAndKernel};
use schedlab_lab::twin::{Side, twin_of};
use schedlab_run::RunResult;

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
    /// A measure of both, with the kernel's own range.
    pub fn against<'m>(&self, measure: &Measure<'m>) -> Option<Against<'m>> {
        Against::of(*measure, &self.simulated.runs, &self.measured.runs)
    }

    /// All measures that both have.
    pub fn all(&self) -> ModelAndKernel<'static> {
        ModelAndKernel::of(MEASURES, &self.simulated.runs, &self.measured.runs)
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
pub fn twins_of<'g>(group: &'g Group<'_>) -> Vec<Option<usize>> {
    let side = |(index, config): (usize, &'g Config)| Side {
        lane: config.lane,
        scheduler: &config.scheduler,
        variant: &config.variant,
        kernel: first_run(group, index).map_or("", |run| run.machine.kernel.as_str()),
    };
    let sides: Vec<Side<'_>> = group.configs.iter().enumerate().map(side).collect();
    sides.iter().map(|measured| twin_of(measured, &sides)).collect()
}

fn first_run<'a>(group: &'a Group<'_>, config: usize) -> Option<&'a RunResult> {
    group.cells.iter().find(|cell| cell.config == config)?.runs.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_lab::against;
    use schedlab_run::LaneKind::{Host, Sim};

    fn host(scheduler: &str, kernel: &str) -> RunResult {
        let mut r = run(Host, scheduler, 2, 1);
        r.machine.kernel = kernel.into();
        r
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
        let ratio = |measure| pairs[0].against(measure).map(|against| against.ratio());
        assert_eq!(ratio(&against::TURNAROUND), Some(0.9));
        assert_eq!(ratio(&against::SWITCHES), None);
    }
}
