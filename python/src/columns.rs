// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns as Arrow tables: the vectors become buffers without a copy, and pass to other libraries
//! by the PyCapsule interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Int32Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use schedlab_core::{END_NAMES, Progress, Queues, STATE_NAMES, Slices, States};
use std::sync::Arc;

use crate::error::SchedlabError;

/// A table of columns. pyarrow, polars, pandas and DuckDB read it by its Arrow interface.
#[pyclass(frozen, module = "schedlab._core")]
pub struct Table {
    batch: RecordBatch,
}

fn wrong(error: ArrowError) -> PyErr {
    SchedlabError::new_err(error.to_string())
}

fn table(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
    Ok(Table { batch: RecordBatch::try_from_iter(columns).map_err(wrong)? })
}

/// Words by their numbers.
fn words(numbers: Vec<u8>, names: &[&str]) -> PyResult<ArrayRef> {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let array = DictionaryArray::<UInt8Type>::try_new(UInt8Array::from(numbers), values);
    Ok(Arc::new(array.map_err(wrong)?))
}

/// Names of tasks by their numbers.
fn task_names(tasks: &[u32], names: &[String]) -> PyResult<ArrayRef> {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let keys = Int32Array::from_iter_values(tasks.iter().map(|task| *task as i32));
    let array = DictionaryArray::<Int32Type>::try_new(keys, values);
    Ok(Arc::new(array.map_err(wrong)?))
}

/// The slices as a table.
pub fn slices(slices: Slices, names: &[String]) -> PyResult<Table> {
    let name = task_names(&slices.task, names)?;
    table(vec![
        ("cpu", Arc::new(UInt32Array::from(slices.cpu))),
        ("task", Arc::new(UInt32Array::from(slices.task))),
        ("name", name),
        ("start_ns", Arc::new(UInt64Array::from(slices.start_ns))),
        ("end_ns", Arc::new(UInt64Array::from(slices.end_ns))),
        ("end", words(slices.end, &END_NAMES)?),
    ])
}

/// The states as a table.
pub fn states(states: States, names: &[String]) -> PyResult<Table> {
    let name = task_names(&states.task, names)?;
    table(vec![
        ("task", Arc::new(UInt32Array::from(states.task))),
        ("name", name),
        ("start_ns", Arc::new(UInt64Array::from(states.start_ns))),
        ("end_ns", Arc::new(UInt64Array::from(states.end_ns))),
        ("state", words(states.state, &STATE_NAMES)?),
    ])
}

/// The lengths of the queues as a table.
pub fn queues(queues: Queues) -> PyResult<Table> {
    table(vec![
        ("time_ns", Arc::new(UInt64Array::from(queues.time_ns))),
        ("cpu", Arc::new(UInt32Array::from(queues.cpu))),
        ("nr_running", Arc::new(UInt32Array::from(queues.nr_running))),
    ])
}

/// The units of progress as a table.
pub fn progress(progress: Progress, names: &[String]) -> PyResult<Table> {
    let name = task_names(&progress.task, names)?;
    table(vec![
        ("task", Arc::new(UInt32Array::from(progress.task))),
        ("name", name),
        ("time_ns", Arc::new(UInt64Array::from(progress.time_ns))),
    ])
}

#[pymethods]
impl Table {
    /// The table as a stream of one record batch. The buffers are shared, not copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that wants other types converts them itself, as the interface allows.
        let _ = requested_schema;
        let schema: SchemaRef = self.batch.schema();
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(wrong)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        let names = self.column_names().join(", ");
        format!("Table({} rows: {names})", self.batch.num_rows())
    }

    /// A column as a list of numbers or words.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(column) = self.batch.column_by_name(name) else {
            let names = self.column_names().join(", ");
            return Err(pyo3::exceptions::PyKeyError::new_err(format!(
                "no column is called {name:?}: allowed are {names}"
            )));
        };
        let column = column.as_any();
        if let Some(numbers) = column.downcast_ref::<UInt64Array>() {
            return PyList::new(py, numbers.values().iter());
        }
        if let Some(numbers) = column.downcast_ref::<UInt32Array>() {
            return PyList::new(py, numbers.values().iter());
        }
        if let Some(words) = column.downcast_ref::<DictionaryArray<UInt8Type>>() {
            let keys = words.keys().values().iter().map(|key| usize::from(*key));
            return PyList::new(py, keys.map(|key| word(words.values(), key)).collect::<Vec<_>>());
        }
        if let Some(words) = column.downcast_ref::<DictionaryArray<Int32Type>>() {
            let keys = words.keys().values().iter().map(|key| *key as usize);
            return PyList::new(py, keys.map(|key| word(words.values(), key)).collect::<Vec<_>>());
        }
        Ok(PyList::empty(py))
    }
}

/// A word of a dictionary.
fn word(values: &ArrayRef, key: usize) -> String {
    let values = values.as_any().downcast_ref::<StringArray>();
    values.map_or_else(String::new, |values| values.value(key).to_owned())
}
