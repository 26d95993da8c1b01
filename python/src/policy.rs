// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler written in Python: an object with the callbacks `enqueue`, `pick` and others.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_sched::textbook::user::{TaskView, UserPolicy, Why};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of a callback, which ends the run and then comes out as itself.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps the exception if it is the first. Returns its text.
    pub fn keep(&self, error: PyErr) -> String {
        let text = error.to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        text
    }

    /// The exception.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A task, as a policy sees it.
#[pyclass(frozen, get_all, eq, hash, module = "schedlab._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Task {
    /// Number, in order of creation.
    id: u32,
    /// Name.
    name: String,
    /// Nice value.
    nice: i8,
    /// Policy, such as FIFO.
    policy: String,
    /// The kernel's priority; lower is more important.
    prio: i32,
    /// The CPU that it is on, or was on last.
    cpu: u32,
    /// CPU time so far (ns).
    ran_ns: u64,
    /// When it was released (ns).
    released_ns: u64,
}

#[pymethods]
impl Task {
    /// A task with these properties, for tests of policies.
    #[new]
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (id, name="task".into(), nice=0, policy="OTHER".into(), prio=120, cpu=0,
        ran_ns=0, released_ns=0))]
    fn new(
        id: u32,
        name: String,
        nice: i8,
        policy: String,
        prio: i32,
        cpu: u32,
        ran_ns: u64,
        released_ns: u64,
    ) -> Self {
        Self { id, name, nice, policy, prio, cpu, ran_ns, released_ns }
    }

    fn __repr__(&self) -> String {
        format!("Task({}, {:?})", self.id, self.name)
    }
}

impl From<&TaskView> for Task {
    fn from(view: &TaskView) -> Self {
        Self {
            id: view.id,
            name: view.name.clone(),
            nice: view.nice,
            policy: view.policy.name().into(),
            prio: view.prio,
            cpu: view.cpu,
            ran_ns: view.ran_ns,
            released_ns: view.released_ns,
        }
    }
}

/// The callbacks of a Python object.
pub struct PythonPolicy {
    object: Py<PyAny>,
    dequeue: bool,
    tick: bool,
    quantum: bool,
    raised: Raised,
}

impl PythonPolicy {
    /// The policy that the callable `make` returns.
    pub fn new(make: &Py<PyAny>, raised: &Raised) -> Result<Self, String> {
        Python::attach(|py| {
            let object = make.bind(py).call0().map_err(|error| raised.keep(error))?;
            for name in ["enqueue", "pick"] {
                if !has(&object, name) {
                    return Err(format!("a scheduler needs the method {name}: add it"));
                }
            }
            Ok(Self {
                dequeue: has(&object, "dequeue"),
                tick: has(&object, "tick"),
                quantum: has(&object, "quantum"),
                object: object.unbind(),
                raised: raised.clone(),
            })
        })
    }

    fn call<T>(
        &self,
        ask: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Result<T, String> {
        Python::attach(|py| ask(py, self.object.bind(py)).map_err(|error| self.raised.keep(error)))
    }
}

/// Whether `object` has a method called `name` that is not None.
fn has(object: &Bound<'_, PyAny>, name: &str) -> bool {
    object.getattr(name).is_ok_and(|method| method.is_callable())
}

impl UserPolicy for PythonPolicy {
    fn enqueue(&mut self, now: Nanos, task: &TaskView, why: Why) -> Result<bool, String> {
        self.call(|py, object| {
            let named = PyDict::new(py);
            named.set_item("now", now)?;
            named.set_item("why", why.name())?;
            object.call_method("enqueue", (Task::from(task),), Some(&named))?.is_truthy()
        })
    }

    fn dequeue(&mut self, now: Nanos, task: &TaskView) -> Result<(), String> {
        if !self.dequeue {
            return Ok(());
        }
        self.call(|py, object| {
            let named = PyDict::new(py);
            named.set_item("now", now)?;
            object.call_method("dequeue", (Task::from(task),), Some(&named)).map(|_| ())
        })
    }

    fn pick(&mut self, now: Nanos, cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
        self.call(|py, object| {
            let named = PyDict::new(py);
            named.set_item("now", now)?;
            named.set_item("waiting", waiting.iter().map(|task| task.0).collect::<Vec<_>>())?;
            let picked = object.call_method("pick", (cpu.0,), Some(&named))?;
            // A task or its number.
            if let Ok(task) = picked.cast::<Task>() {
                return Ok(TaskId(task.get().id));
            }
            Ok(TaskId(picked.extract()?))
        })
    }

    fn tick(&mut self, now: Nanos, task: &TaskView, ran: Nanos) -> Result<bool, String> {
        self.call(|py, object| {
            let named = PyDict::new(py);
            named.set_item("now", now)?;
            named.set_item("ran_ns", ran)?;
            object.call_method("tick", (Task::from(task),), Some(&named))?.is_truthy()
        })
    }

    fn has_ticks(&self) -> bool {
        self.tick
    }

    fn quantum(&mut self, _now: Nanos, task: &TaskView) -> Result<Option<Nanos>, String> {
        if !self.quantum {
            return Ok(None);
        }
        self.call(|_, object| object.call_method1("quantum", (Task::from(task),))?.extract())
    }
}

/// What runs in the process of a policy that is scored.
#[pyfunction]
pub fn policy_script() -> &'static str {
    include_str!("../../crates/script/src/policy.py")
}
