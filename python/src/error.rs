// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exception of the module: the command line's texts, with what programs need of them.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    schedlab._core,
    SchedlabError,
    PyException,
    "Why a request has no result. `kind` is usage, check, unavailable or cancelled, `help` the \
     advice, `line` and `column` the place in a workload file."
);

/// The exception for an error.
pub fn raise(error: schedlab_core::Error) -> PyErr {
    let raised = SchedlabError::new_err(error.one_line());
    Python::attach(|py| {
        let value = raised.value(py);
        let (line, column) = error.position().unzip();
        let set = [
            value.setattr("kind", error.kind.name()),
            value.setattr("text", error.text),
            value.setattr("help", error.help),
            value.setattr("line", line),
            value.setattr("column", column),
        ];
        set.into_iter().find_map(Result::err)
    })
    .unwrap_or(raised)
}
