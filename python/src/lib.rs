// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Python module `schedlab._core`: requests and results as JSON, columns as Arrow, schedulers
//! written in Python. The package `schedlab` around it has the types that people use.

mod columns;
mod environment;
mod error;
mod plan;
mod policy;

use columns::Table;
use error::{SchedlabError, raise};
use policy::PythonPolicy;
use pyo3::prelude::*;
use schedlab_core::{Ask, Columns, Request, simulate_with};
use schedlab_sched::textbook::user;
use schedlab_sched::{TunableKind, registry};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a simulation gives.
#[pyclass(frozen, module = "schedlab._core")]
struct Outcome {
    /// The result as `schedlab sim --json` prints it.
    #[pyo3(get)]
    result_json: String,
    /// Remarks, such as which name an alias stands for.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Digests of the result and of the events, if wanted.
    #[pyo3(get)]
    digest: Option<(String, String)>,
    /// End of the run (ns).
    #[pyo3(get)]
    end_ns: u64,
    /// Names of the tasks, by number.
    #[pyo3(get)]
    names: Vec<String>,
    /// Slices.
    #[pyo3(get)]
    slices: Py<Table>,
    /// States of tasks.
    #[pyo3(get)]
    states: Py<Table>,
    /// Runnable tasks of each CPU.
    #[pyo3(get)]
    queues: Py<Table>,
    /// Units of progress.
    #[pyo3(get)]
    progress: Py<Table>,
}

/// Runs a request (JSON). `policy` makes a scheduler for the run, in place of the request's, and
/// `watch` is called with the simulated time (ns); the run ends if it returns False.
#[pyfunction]
#[pyo3(signature = (request, policy=None, watch=None))]
fn simulate(
    py: Python<'_>,
    request: &str,
    policy: Option<Py<PyAny>>,
    watch: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let request = Request::from_json(request).map_err(raise)?;
    let raised = policy::Raised::default();
    let scheduler = policy.map(|make| {
        let raised = raised.clone();
        let name = request.scheduler.clone();
        Arc::new(user::scheduler(&name, move || PythonPolicy::new(&make, &raised)))
    });
    let watched = raised.clone();
    let simulated = py.detach(|| {
        let mut watching = |now: u64| {
            let goes_on = Python::attach(|py| -> PyResult<bool> {
                py.check_signals()?;
                let Some(watch) = &watch else { return Ok(true) };
                let answer = watch.bind(py).call1((now,))?;
                Ok(answer.is_none() || answer.is_truthy()?)
            });
            match goes_on {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => ControlFlow::Break(()),
                Err(error) => {
                    watched.keep(error);
                    ControlFlow::Break(())
                }
            }
        };
        simulate_with(&request, scheduler, Some(&mut watching))
    });
    let simulated = match simulated {
        Ok(simulated) => simulated,
        // An exception of a callback comes out as itself.
        Err(error) => return Err(raised.take().unwrap_or_else(|| raise(error))),
    };
    let result_json = simulated.result_json();
    let digest = simulated.digest.map(|digest| (digest.result, digest.events));
    outcome(py, result_json, simulated.columns, simulated.notes, digest)
}

/// The columns of a result (JSON) that the command line has printed.
#[pyfunction]
fn recorded(py: Python<'_>, result: String) -> PyResult<Outcome> {
    let wrong = |error: serde_json::Error| {
        let text = format!("this is no result of schedlab: {error}");
        raise(schedlab_core::Error::usage(text, ""))
    };
    let found: schedlab_run::RunResult = serde_json::from_str(&result).map_err(wrong)?;
    outcome(py, result, Columns::of_result(&found), Vec::new(), None)
}

/// An outcome with its columns as tables.
fn outcome(
    py: Python<'_>,
    result_json: String,
    columns: Columns,
    notes: Vec<String>,
    digest: Option<(String, String)>,
) -> PyResult<Outcome> {
    Ok(Outcome {
        result_json,
        notes,
        digest,
        end_ns: columns.end_ns,
        slices: Py::new(py, columns::slices(columns.slices, &columns.names)?)?,
        states: Py::new(py, columns::states(columns.states, &columns.names)?)?,
        queues: Py::new(py, columns::queues(columns.queues)?)?,
        progress: Py::new(py, columns::progress(columns.progress, &columns.names)?)?,
        names: columns.names,
    })
}

/// Checks a request (JSON) without running it.
#[pyfunction]
fn validate(request: &str) -> PyResult<()> {
    let request = Request::from_json(request).map_err(raise)?;
    schedlab_core::validate(&request).map_err(raise)
}

/// Answers a question (JSON) about the run of a request (JSON); the answer is JSON.
#[pyfunction]
fn explain(py: Python<'_>, request: &str, ask: &str) -> PyResult<String> {
    let request = Request::from_json(request).map_err(raise)?;
    let ask: Ask = serde_json::from_str(ask)
        .map_err(|error| raise(schedlab_core::Error::usage(error.to_string(), "")))?;
    let answer = py.detach(|| schedlab_core::explain_request(&request, &ask)).map_err(raise)?;
    serde_json::to_string(&answer).map_err(|error| SchedlabError::new_err(error.to_string()))
}

/// Every scheduler of the registry with its tunables, as JSON.
#[pyfunction]
fn list_schedulers() -> String {
    let tunable = |tunable: &schedlab_sched::Tunable| {
        let (kind, min, max) = match &tunable.kind {
            TunableKind::Time { min, max } => ("time", *min, *max),
            TunableKind::Count { min, max } => ("count", *min, *max),
            TunableKind::Choice(words) => ("choice", 0, words.len().saturating_sub(1) as u64),
        };
        let words: Vec<&str> = match &tunable.kind {
            TunableKind::Choice(words) => words.iter().collect(),
            _ => Vec::new(),
        };
        json!({
            "name": tunable.name, "kind": kind, "min": min, "max": max, "words": words,
            "default": tunable.default, "text": tunable.text,
        })
    };
    let scheduler = |scheduler: &Arc<schedlab_sched::Scheduler>| {
        json!({
            "name": scheduler.name, "summary": scheduler.summary, "source": scheduler.source,
            "leaves_out": scheduler.leaves_out,
            "tunables": scheduler.tunables.iter().map(tunable).collect::<Vec<_>>(),
        })
    };
    json!(registry::SCHEDULERS.iter().map(scheduler).collect::<Vec<_>>()).to_string()
}

/// Every built-in workload with its parameters, as JSON.
#[pyfunction]
fn list_workloads() -> String {
    let builtins = schedlab_workload::BUILTINS.iter();
    let all = builtins.map(|entry| json!({ "name": entry.name, "summary": entry.summary }));
    json!(all.collect::<Vec<_>>()).to_string()
}

/// The names of the modelled machines.
#[pyfunction]
fn list_machines() -> Vec<&'static str> {
    schedlab_core::machine::PRESETS.iter().map(|(name, _)| *name).collect()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("SchedlabError", module.py().get_type::<SchedlabError>())?;
    module.add("END_NAMES", schedlab_core::END_NAMES)?;
    module.add("STATE_NAMES", schedlab_core::STATE_NAMES)?;
    module.add_class::<Outcome>()?;
    module.add_class::<Table>()?;
    module.add_class::<policy::Task>()?;
    module.add_class::<environment::Episode>()?;
    module.add_class::<environment::Candidate>()?;
    module.add_class::<plan::Plan>()?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(recorded, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)?;
    module.add_function(wrap_pyfunction!(list_schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(list_workloads, module)?)?;
    module.add_function(wrap_pyfunction!(plan::list_measures, module)?)?;
    module.add_function(wrap_pyfunction!(plan::t_975, module)?)?;
    module.add_function(wrap_pyfunction!(plan::program, module)?)?;
    module.add_function(wrap_pyfunction!(plan::timeline_script, module)?)?;
    module.add_function(wrap_pyfunction!(policy::policy_script, module)?)?;
    module.add_function(wrap_pyfunction!(list_machines, module)?)
}
