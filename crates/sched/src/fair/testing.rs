// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the unit tests of the fair class share.

use super::FairClass;
use super::rules::Rules;
use super::tunables;
use crate::class::SchedClass;
use crate::core::{Comm, Core, Task, TaskState};
use crate::flags::EnqueueFlags;
use crate::options::Options;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CgroupSpec, CpuId, CpuMask, Machine, SchedAttr, TaskId};

/// A class with tasks of these nice values queued on one CPU at HZ=250, scaled for `scaling_cpus`.
pub fn queued(rules: Rules, scaling_cpus: u64, nice: &[i8]) -> (FairClass, Core) {
    let machine = Machine::flat(1);
    let declared = if rules.is_eevdf() { tunables::EEVDF } else { tunables::CFS };
    let mut options = Options::defaults(declared);
    options.set(declared, "scaling_cpus", scaling_cpus).unwrap();
    let groups = vec![CgroupSpec::root()];
    let mut class = FairClass::new(rules, &options, &machine, &groups);
    let mut core = Core::new(&machine, groups, Stream::new(1, Purpose::Scheduler, 0));
    for (index, nice) in nice.iter().enumerate() {
        let task = TaskId(index as u32);
        let attr = SchedAttr { nice: *nice, ..SchedAttr::default() };
        core.tasks.push(Task {
            attr,
            prio: attr.kernel_prio(),
            class: 0,
            state: TaskState::Running,
            on_rq: true,
            sched_delayed: false,
            cpu: CpuId(0),
            mm: 0,
            cpus_allowed: CpuMask::first(1),
            nr_cpus_allowed: 1,
            sum_exec_runtime: 0,
            exec_start: 0,
            burst_ns: None,
            burst_at: 0,
            nr_voluntary_switches: 0,
            nr_involuntary_switches: 0,
            nr_migrations: 0,
            release_ns: 0,
            comm: Comm::default(),
        });
        class.task_new(&mut core, task);
        class.enqueue_task(&mut core, CpuId(0), task, EnqueueFlags::WAKEUP);
    }
    (class, core)
}
