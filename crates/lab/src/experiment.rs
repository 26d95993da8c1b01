// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments: runs that belong in the same figures, with what was asked and with their results.

use crate::{LabError, View};
use schedlab_run::{RunResult, check_version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// CPU timeline of single runs (study S0).
    Timeline,
    /// Progress curves of single runs (study S0).
    Progress,
    /// Mean turnaround against n (study S1).
    TurnaroundAgainstN,
    /// Throughput against n (study S1).
    ThroughputAgainstN,
    /// Box plots over tasks and repetitions.
    Boxes,
}

/// What was asked: one group of runs that belong in the same figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Short name, such as `S0-1cpu-4`.
    pub name: String,
    /// Study that it belongs to, such as `S0`; empty for a user's own.
    pub study: String,
    /// Title for people.
    pub title: String,
    /// Description, for people.
    pub text: String,
    /// Figures to draw.
    pub figures: Vec<FigureKind>,
    /// How to arrange the runs in a table with intervals and differences; `None`: no table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
}

/// An experiment with its runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentResult {
    /// What was asked.
    pub experiment: Experiment,
    /// The runs, in a fixed order.
    pub runs: Vec<RunResult>,
}

impl Experiment {
    /// An experiment for runs outside any study, with the figures of single runs.
    pub fn of_runs(workload: &str) -> Self {
        Self {
            name: workload.into(),
            title: workload.into(),
            figures: vec![FigureKind::Timeline, FigureKind::Progress, FigureKind::Boxes],
            ..Self::default()
        }
    }
}

impl ExperimentResult {
    /// The result of runs outside any study.
    pub fn of_runs(workload: &str, runs: Vec<RunResult>) -> Self {
        Self { experiment: Experiment::of_runs(workload), runs }
    }
}

/// Parses the results in `text` of file `name`: one run, an array of runs, or an array of
/// experiments.
pub fn read_results(name: &str, text: &str) -> Result<Vec<ExperimentResult>, LabError> {
    let wrong = |what: String| {
        LabError::refused(
            format!("{name}: {what}"),
            "give what `schedlab sim --json`, `compare --json` or `demo` wrote; `schedlab schema` \
             prints its shape",
        )
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| wrong(format!("no JSON: {error}")))?;
    let is_experiments = value.get(0).is_some_and(|first| first.get("experiment").is_some());
    if is_experiments {
        let runs = value.as_array().into_iter().flatten().filter_map(|one| one["runs"].as_array());
        runs.flatten().try_for_each(check_version).map_err(wrong)?;
        return serde_json::from_value(value).map_err(|error| wrong(error.to_string()));
    }
    let values = if let Value::Array(runs) = value { runs } else { vec![value] };
    values.iter().try_for_each(check_version).map_err(wrong)?;
    let runs: Result<Vec<RunResult>, _> = values.into_iter().map(serde_json::from_value).collect();
    let runs = runs.map_err(|error| wrong(error.to_string()))?;
    let workload = runs.first().map(|run| run.workload.clone()).unwrap_or_default();
    Ok(vec![ExperimentResult::of_runs(&workload, runs)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::SCHEMA_VERSION;

    fn one() -> RunResult {
        RunResult { schema_version: SCHEMA_VERSION, workload: "w".into(), ..Default::default() }
    }

    #[test]
    fn every_shape_of_results_is_read() {
        let experiments = vec![ExperimentResult::of_runs("w", vec![one(), one()])];
        for (text, runs) in [
            (serde_json::to_string(&one()).unwrap(), 1),
            (serde_json::to_string(&vec![one(), one()]).unwrap(), 2),
            (serde_json::to_string(&experiments).unwrap(), 2),
        ] {
            let parsed = read_results("x.json", &text).unwrap();
            assert_eq!((parsed.len(), parsed[0].runs.len()), (1, runs));
        }
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "{", "{}", "[1]", "\"x\"", "[{\"experiment\": 1}]"] {
            assert!(read_results("x.json", text).is_err(), "{text}");
        }
    }

    /// Without the error, the counters of a first version's totals would be lost silently.
    #[test]
    fn results_of_another_version_are_refused_with_what_to_do() {
        let old = RunResult { schema_version: 1, schedlab_version: "0.0.9".into(), ..one() };
        let experiments = vec![ExperimentResult::of_runs("w", vec![one(), old.clone()])];
        for text in
            [serde_json::to_string(&old).unwrap(), serde_json::to_string(&experiments).unwrap()]
        {
            let error = read_results("x.json", &text).unwrap_err().to_string();
            assert!(error.contains("schema_version is 1, this program reads 2"), "{error}");
            assert!(error.contains("run the experiment again"), "{error}");
            assert!(error.contains("schedlab 0.0.9"), "{error}");
        }
    }
}
