// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared helpers for the unit tests of the Linux schedulers.

use crate::boundary::core::{Core, Task, TaskState};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CgroupSpec, Comm, CpuId, Machine, SchedAttr};
use std::sync::Arc;

/// The state at the start of a run on `machine`.
pub fn core(machine: &Machine) -> Core {
    let random = Stream::new(1, Purpose::Scheduler, 0);
    Core::new(machine, vec![CgroupSpec::root()], random)
}

/// A sleeping task, the next one by id, in an address space of its own, last on `cpu`.
pub fn sleeping_task(core: &Core, cpu: CpuId, attr: SchedAttr) -> Task {
    Task {
        prio: attr.kernel_prio(),
        class: 0,
        attr: Arc::new(attr),
        state: TaskState::Sleeping,
        on_rq: false,
        sched_delayed: false,
        is_exiting: false,
        cpu,
        mm: core.tasks.len() as u32 + 1,
        cpus_allowed: Arc::new(core.cpus),
        nr_cpus_allowed: core.nr_cpus(),
        sum_exec_runtime: 0,
        exec_start: 0,
        burst_ns: None,
        burst_at: 0,
        nr_voluntary_switches: 0,
        nr_involuntary_switches: 0,
        nr_migrations: 0,
        release_ns: 0,
        age_ns: 0,
        name: Comm::default(),
        inherited_comm: None,
    }
}
