// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler of this folder with tasks that no engine drives, for the tests of its parts.

use super::Staircase;
use super::tasks::Entry;
use super::variants::{Rules, rsdl_0_31, sd_0_48};
use crate::boundary::options::Options;
use schedlab_model::{CpuId, Machine, SchedAttr, TaskId};

/// Tasks of these nice values on CPU 0 at HZ=1000, none queued.
pub(super) fn with_tasks(rules: Rules, nr_cpus: u32, nices: &[i8]) -> Staircase {
    let info = if rules == Rules::Sd { sd_0_48() } else { rsdl_0_31() };
    let machine = Machine { hz: 1_000, ..Machine::flat(nr_cpus) };
    let mut staircase = Staircase::new(rules, &Options::defaults(&info.tunables), &machine);
    for (index, nice) in nices.iter().enumerate() {
        let task = TaskId(index as u32);
        staircase.rt.add_task(task);
        staircase.slots.add_task(task);
        staircase.idle.add_task(task);
        staircase.tasks.push(Entry::new(CpuId(0)));
        staircase.adopt(task, &SchedAttr { nice: *nice, ..SchedAttr::default() });
    }
    staircase
}
