// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines and tasks shared by the tests of placement and of load balancing.

#![allow(dead_code)] // each test file uses a part

use crate::rt_kernel::{Kernel, mask};
use schedlab_model::{CgroupSpec, CpuId, Machine, SchedAttr, TaskId, Topology};
use schedlab_sched::fair::FairClass;
use schedlab_sched::fair::rules::Rules;
use schedlab_sched::fair::tunables;
use schedlab_sched::kernels::MODELS;
use schedlab_sched::rt::Bandwidth;
use schedlab_sched::{Options, WakeFlags, WakeKind};

pub const RULES: [Rules; 4] =
    [Rules::LINUX_6_1, Rules::LINUX_6_12, Rules::LINUX_6_18, Rules::LINUX_7_1];

pub fn kernel_with(rules: Rules, machine: &Machine, bandwidth: Bandwidth) -> Kernel<FairClass> {
    let declared = if rules.is_eevdf() { tunables::EEVDF } else { tunables::CFS };
    let options = Options::defaults(declared);
    let fair = FairClass::new(rules, &options, machine, &[CgroupSpec::root()]);
    Kernel::with_lower(machine, bandwidth, fair)
}

/// A kernel at HZ 250 whose scheduler has these values of tunables.
pub fn kernel_set(rules: Rules, topology: Topology, set: &[(&str, u64)]) -> Kernel<FairClass> {
    let machine = Machine { topology: topology.clone(), ..Machine::flat(topology.nr_cpus()) };
    let model = MODELS.iter().find(|model| model.fair == rules).expect("rules of a model");
    let declared = &model.tunables();
    let mut options = Options::defaults(declared);
    for (name, value) in set {
        options.set(declared, name, *value).expect("the scheduler has it");
    }
    let rules = rules.with_features(&options);
    let fair = FairClass::new(rules, &options, &machine, &[CgroupSpec::root()]);
    Kernel::with_lower(&machine, Bandwidth::Off, fair)
}

pub fn kernel_of(rules: Rules, topology: Topology, hz: u32) -> Kernel<FairClass> {
    let machine = Machine { hz, topology: topology.clone(), ..Machine::flat(topology.nr_cpus()) };
    kernel_with(rules, &machine, Bandwidth::Off)
}

pub fn kernel(rules: Rules, nr_cpus: u32) -> Kernel<FairClass> {
    kernel_of(rules, Topology::flat(nr_cpus), 250)
}

/// `cores` cores of two hardware threads, siblings `c` and `c + cores`, one cache.
pub fn smt(cores: u32) -> Topology {
    let cpus = 2 * cores;
    Topology { core: (0..cpus).map(|cpu| cpu % cores).collect(), ..Topology::flat(cpus) }
}

/// Two caches of `cpus` CPUs each on one node.
pub fn two_caches(cpus: u32) -> Topology {
    let all = 2 * cpus;
    Topology { llc: (0..all).map(|cpu| cpu / cpus).collect(), ..Topology::flat(all) }
}

pub fn hog() -> SchedAttr {
    SchedAttr::default()
}

pub fn pinned(cpus: &[u32]) -> SchedAttr {
    SchedAttr { affinity: Some(mask(cpus)), ..SchedAttr::default() }
}

pub fn wakeup(this_cpu: u32, waker: Option<TaskId>) -> WakeFlags {
    WakeFlags {
        kind: WakeKind::Wakeup,
        sync: false,
        migrated: false,
        this_cpu: CpuId(this_cpu),
        waker,
    }
}
