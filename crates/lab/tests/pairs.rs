// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs pairs of two modelled kernels. A shifted start changes one of them: that is its own
//! variation, and the other may differ by as much.

use schedlab_lab::claims::{Answer, ClaimResult, Evidence, PairResult, Word, judge};
use schedlab_lab::studies::{Machines, Source};
use schedlab_lab::{ExecuteOptions, ExperimentResult, Plan, PlanInput, execute};
use schedlab_model::CpuMask;
use schedlab_run::MachineSpec;
use schedlab_sim::SimLane;

/// Sleepers that wake next to hogs: the start decides which task a tick meets.
const STUDY: &str = r#"
name = "p"
[[experiment]]
name = "sleepers"
seeds = { first = 1, count = 5 }
parameters = { cpus = 1, hogs = 2 }
tasks = '''
{
  "global": { "duration": "400ms" },
  "tasks": {
    "hog": { "instance": {hogs}, "loop": 1, "run": "10s" },
    "sleeper": {
      "instance": 2, "delay": { "distribution": "uniform", "low": 0, "high": "20ms" },
      "run": "2ms", "sleep": { "distribution": "uniform", "low": "8ms", "high": "24ms" }
    }
  }
}
'''
[[experiment.runs]]
lane = "sim"
schedulers = ["linux-6.12"]
shift = { from = "20us", to = "80us", count = 8 }
[[experiment.runs]]
lane = "sim"
schedulers = ["linux-7.1"]
[[experiment.runs]]
lane = "sim"
schedulers = ["rr"]
set = { quantum = "40ms" }
[[experiment]]
name = "more hogs"
workload = "sleepers"
seeds = { first = 1, count = 5 }
parameters = { cpus = 1 }
axes = { hogs = [1, 6] }
tasks = "TASKS"
[[experiment.runs]]
lane = "sim"
schedulers = ["linux-7.1"]
[[claim]]
id = "run-delay"
text = "Both kernels let tasks wait for as long."
[claim.pairs]
what = "run delay"
experiment = "sleepers"
on = ["sim linux-6.12"]
against = "sim linux-7.1"
value = "run_delay_ns"
within = { factor = 1.000001 }
floor = "1ms"
why = "nearly nothing, so that only the variation accepts it"
[[claim.control]]
experiment = "sleepers"
model = "rr"
set = { quantum = "40ms" }
why = "a woken task waits for whole slices"
[[claim.knob]]
experiment = "sleepers"
name = "hogs"
values = [1, 6]
sweep = "more hogs"
"#;

struct NoMachines;

impl Machines for NoMachines {
    fn preset(&self, name: &str) -> Result<MachineSpec, String> {
        Err(format!("no machine {name}"))
    }

    fn parse(&self, text: &str) -> Result<MachineSpec, String> {
        Err(format!("no machine {text}"))
    }

    fn this_machine(&self) -> Result<String, String> {
        Err("not here".into())
    }
}

fn study() -> String {
    let tasks = STUDY.split("'''").nth(1).unwrap();
    STUDY.replace("\"TASKS\"", &format!("'''{tasks}'''"))
}

fn judged(text: &str) -> (ClaimResult, Vec<ExperimentResult>) {
    let source = Source::new("p.toml", text.into(), None).unwrap();
    let input = PlanInput {
        host_cpus: CpuMask::first(1),
        seed: 1,
        lanes: Vec::new(),
        host_repetitions: None,
        runs_max: 1_000,
        has_views: true,
    };
    let lane = SimLane::default();
    let mut plan = Plan::default();
    source.plan(&mut plan, &input, &NoMachines, &lane).unwrap();
    let outcome = execute(&plan, &[&lane], ExecuteOptions { threads: 1, seed: 1 }, &|_, error| {
        assert_eq!(error, None);
    });
    let evidence = Evidence {
        study: "p",
        results: &outcome.results,
        nr_cpus: 1,
        lanes: &[],
        plan: &plan,
        failures: &outcome.failures,
    };
    (judge(&source.study.claims, evidence).remove(0), outcome.results)
}

fn pair(claim: &ClaimResult) -> &PairResult {
    claim.checks[0].pair.as_ref().unwrap()
}

/// Run delay of a task, ns, but at least 1 ms. `unit` is its description and its place among equal
/// tasks by their delays, such as `hog/1`.
fn delays(results: &[ExperimentResult], unit: &str, seed: u64) -> (f64, Vec<f64>) {
    let (stem, rank) = unit.split_once('/').unwrap();
    let rank: usize = rank.parse().unwrap();
    let runs = results[0].runs.iter();
    let own = runs.filter(|run| run.scheduler == "linux-6.12" && run.seed == seed);
    let (mut still, mut shifted) = (0.0, Vec::new());
    for run in own {
        let tasks = run.measures.tasks.iter().filter(|task| task.name.starts_with(stem));
        let mut delays: Vec<u64> = tasks.map(|task| task.run_delay_ns).collect();
        delays.sort_unstable();
        let delay = (delays[rank - 1] as f64).max(1e6);
        match run.parameters.contains_key("shift") {
            true => shifted.push(delay),
            false => still = delay,
        }
    }
    (still, shifted)
}

#[test]
fn a_kernel_may_differ_as_much_as_from_itself_when_it_starts_later() {
    let (claim, results) = judged(&study());
    let found = pair(&claim);
    assert_eq!(found.units.len(), 4, "{found:#?}");
    for unit in &found.units {
        let mut greatest: f64 = 1.0;
        for seed in 1..=5 {
            let (still, shifted) = delays(&results, &unit.unit, seed);
            assert_eq!(shifted.len(), 8);
            for delay in shifted {
                greatest = greatest.max((delay / still).max(still / delay));
            }
        }
        let variation = unit.variation.unwrap();
        assert!((variation - greatest).abs() < 1e-9, "{unit:?}: {greatest}");
    }
    let answers: Vec<Answer> = claim.checks.iter().map(|check| check.answer).collect();
    assert_eq!(answers, [Answer::Holds; 3], "{claim:#?}");
    assert_eq!(Word::of(&claim.checks[0]), Word::HoldsByVariation);

    let without = study().replace("shift = {", "# {");
    let (claim, _) = judged(&without);
    assert_ne!(claim.checks[0].answer, Answer::Holds, "{claim:#?}");
    assert!(pair(&claim).units.iter().all(|unit| unit.variation.is_none()));
}
