// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a study ran: machines, kernels, conditions that affect its numbers, repetitions, order.

use crate::group::Group;
use crate::html::escape;
use crate::number::plural;
use schedlab_run::{LaneKind, RunResult};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Settings of a real machine that a reader of a study must know, with labels.
const SETTINGS: [(&str, &str); 6] = [
    ("kernel.sched_rt_runtime_us", "real-time tasks are held to (sched_rt_runtime_us, in 1 s)"),
    ("kernel.sched_rr_timeslice_ms", "quantum of RR (sched_rr_timeslice_ms)"),
    ("smt.active", "hyper-threads on (smt.active)"),
    ("kernel.sched_autogroup_enabled", "autogroup (sched_autogroup_enabled)"),
    ("virtualised", "virtualised"),
    ("clock", "clock of the guest"),
];

/// A list of facts; empty if the study has no run.
pub fn facts(study: &str, groups: &[Group<'_>]) -> String {
    let runs: Vec<&RunResult> = groups
        .iter()
        .filter(|group| group.result.experiment.study == study)
        .flat_map(|group| &group.result.runs)
        .collect();
    if runs.is_empty() {
        return String::new();
    }
    let mut out = String::from("<dl class=\"facts\">\n");
    for (lane, head) in [
        (LaneKind::Host, "measured"),
        (LaneKind::Vm, "measured in a guest"),
        (LaneKind::Sim, "simulated"),
    ] {
        let of_lane: Vec<&RunResult> =
            runs.iter().filter(|run| run.lane == lane).copied().collect();
        if !of_lane.is_empty() {
            let _ = writeln!(out, "<dt>{head}</dt><dd>{}</dd>", escape(&lane_words(&of_lane)));
        }
    }
    out += "</dl>\n";
    out
}

fn lane_words(runs: &[&RunResult]) -> String {
    let distinct = |read: &dyn Fn(&RunResult) -> String| -> Vec<String> {
        runs.iter().map(|run| read(run)).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let is_sim = runs[0].lane == LaneKind::Sim;
    let mut parts = vec![plural(runs.len(), "run", "runs")];
    if is_sim {
        parts.push(format!("under {}", distinct(&|run| run.scheduler.clone()).join(", ")));
    } else {
        let cpus = runs.iter().map(|run| run.machine.nr_cpus).max().unwrap_or(0) as usize;
        let models = distinct(&|run| run.machine.cpu_model.clone()).join(", ");
        let kernels = distinct(&|run| run.machine.kernel.clone()).join(", ");
        parts.push(format!("{models}, up to {}, kernel {kernels}", plural(cpus, "CPU", "CPUs")));
        parts.push("in random order".into());
    }
    let hz = distinct(&|run| run.machine.hz.map_or("unknown".into(), |hz| hz.to_string()));
    parts.push(format!("HZ {}", hz.join(", ")));
    let repetitions = runs.iter().map(|run| run.repetition).max().unwrap_or(0) + 1;
    parts.push(plural(repetitions as usize, "repetition", "repetitions"));
    for (name, words) in SETTINGS {
        let values: BTreeSet<&str> = runs
            .iter()
            .flat_map(|run| &run.machine.settings)
            .filter(|setting| setting.name == name)
            .map(|setting| setting.value.as_str())
            .collect();
        if !values.is_empty() {
            let values: Vec<&str> = values.into_iter().collect();
            parts.push(format!("{words}: {}", values.join(", ")));
        }
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};
    use schedlab_run::Setting;

    #[test]
    fn machine_and_throttling_are_named() {
        let mut host = run(Host, "RR", 10, 2);
        host.machine.cpu_model = "A <b> CPU".into();
        (host.machine.nr_cpus, host.machine.hz) = (2, Some(250));
        host.machine.settings =
            vec![Setting { name: "kernel.sched_rt_runtime_us".into(), value: "950000".into() }];
        let mut result = experiment("S2", vec![host, run(Sim, "linux-6.1", 10, 2)]);
        result.experiment.study = "S2".into();
        let results = [result];
        let text = facts("S2", &group_all(&results));
        assert!(text.contains("A &lt;b&gt; CPU, up to 2\u{a0}CPUs"), "{text}");
        assert!(text.contains("in 1 s): 950000") && text.contains("random order"), "{text}");
        assert!(text.contains("under linux-6.1"), "{text}");
        assert_eq!(facts("S9", &group_all(&results)), "");
    }
}
