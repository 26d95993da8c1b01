// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared helpers for the unit tests of the fair class.

use super::FairClass;
use super::rules::Rules;
use super::tunables;
use crate::boundary::class::SchedClass;
use crate::boundary::core::{Core, Task, TaskState};
use crate::boundary::flags::EnqueueFlags;
use crate::boundary::options::Options;
use crate::testing::{self, sleeping_task};
use schedlab_model::{CgroupSpec, CpuId, Machine, SchedAttr, TaskId};

/// A class with tasks of these nice values queued on one CPU at HZ=250, scaled for `scaling_cpus`.
pub fn queued(rules: Rules, scaling_cpus: u64, nice: &[i8]) -> (FairClass, Core) {
    let machine = Machine::flat(1);
    let declared = if rules.is_eevdf() { tunables::EEVDF } else { tunables::CFS };
    let mut options = Options::defaults(declared);
    options.set(declared, "scaling_cpus", scaling_cpus).unwrap();
    let mut class = FairClass::new(rules, &options, &machine, &[CgroupSpec::root()]);
    let mut core = testing::core(&machine);
    for (index, nice) in nice.iter().enumerate() {
        let task = TaskId(index as u32);
        let attr = SchedAttr { nice: *nice, ..SchedAttr::default() };
        let asleep = sleeping_task(&core, CpuId(0), attr);
        core.tasks.push(Task { state: TaskState::Running, on_rq: true, mm: 0, ..asleep });
        class.task_new(&mut core, task);
        class.enqueue_task(&mut core, CpuId(0), task, EnqueueFlags::WAKEUP);
    }
    (class, core)
}
