// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and process ids of tasks in the kernel's formats.

use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, ObjectId, TaskId};

/// Name and process id of a task.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    /// Name without control characters.
    pub comm: String,
    /// Process id. That of a simulated task is its number + 1, because 0 is the idle task.
    pub pid: u32,
    /// The kernel's priority; 120 if unknown.
    pub prio: i32,
    /// Index of the description.
    pub spec: Option<u32>,
    /// The CPU where it last ran or was placed.
    pub cpu: Option<CpuId>,
}

/// Names of all tasks, and the running task of each CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    tasks: Vec<Name>,
    /// Kind and name of each object, without control characters.
    objects: Vec<String>,
    /// Kernel priority of each description.
    spec_prio: Vec<i32>,
    running: Vec<Option<TaskId>>,
}

/// The name without control characters.
fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}

/// Priority of a fair task at nice 0.
const DEFAULT_PRIO: i32 = 120;

impl Names {
    /// Sets the kernel priority of each description of the workload.
    pub fn set_prio(&mut self, spec_prio: Vec<i32>) {
        self.spec_prio = spec_prio;
    }

    /// Adds a task.
    pub fn add(&mut self, id: TaskId, info: &TaskInfo) {
        let prio = info.spec.and_then(|spec| self.spec_prio.get(spec as usize));
        self.tasks.push(Name {
            comm: clean(&info.name),
            pid: if info.pid == 0 { id.0.saturating_add(1) } else { info.pid },
            prio: prio.copied().unwrap_or(DEFAULT_PRIO),
            spec: info.spec,
            cpu: None,
        });
    }

    /// Adds an object.
    pub fn add_object(&mut self, info: &ObjectInfo) {
        self.objects.push(format!("{} {}", info.kind.name(), clean(&info.name)));
    }

    /// Kind and name of an object that was added, such as `mutex m`.
    pub fn object(&self, id: ObjectId) -> Option<&str> {
        self.objects.get(id.index()).map(String::as_str)
    }

    /// The name of a task that was added.
    pub fn get(&self, id: TaskId) -> Option<&Name> {
        self.tasks.get(id.index())
    }

    /// The running task of a CPU.
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.running.get(cpu.index()).copied().flatten()
    }

    /// The task `next` now runs on `cpu`.
    pub fn set_running(&mut self, cpu: CpuId, next: Option<TaskId>) {
        if cpu.index() >= self.running.len() {
            self.running.resize(cpu.index() + 1, None);
        }
        self.running[cpu.index()] = next;
        if let Some(name) = next.and_then(|task| self.tasks.get_mut(task.index())) {
            name.cpu = Some(cpu);
        }
    }
}
