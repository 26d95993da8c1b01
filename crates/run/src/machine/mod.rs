// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modelled machines: the content of a machine file, and the part of a machine that a run uses.

pub mod costs_file;
mod file;

pub use file::{
    CachesTable, DeviceTable, InterruptTable, MachineFile, MachineSpec, TopologyTable,
    preempt_by_name,
};

use schedlab_model::kernel::KernelVersion;
use schedlab_model::machine::{Caches, KernelThread};
use schedlab_model::{Costs, Machine};

impl MachineSpec {
    /// A flat machine, as [`Machine::flat`].
    pub fn flat(nr_cpus: u32) -> Self {
        Self {
            machine: Machine::flat(nr_cpus),
            preempt: None,
            kernel_costs: Vec::new(),
            kernel_threads: Vec::new(),
            summary: String::new(),
            sources: Vec::new(),
            assumptions: Vec::new(),
        }
    }

    /// The costs under a kernel of this version; `None`: those of the machine.
    pub fn costs_under(&self, kernel: KernelVersion) -> Option<Costs> {
        let is_of = |(series, _): &&(KernelVersion, Costs)| {
            series.series_number() == kernel.series_number()
        };
        self.kernel_costs.iter().find(is_of).map(|(_, costs)| *costs)
    }

    /// Gives `machine`, a part of this one, the threads that a kernel of this version has.
    pub fn set_threads(&self, machine: &mut Machine, kernel: KernelVersion) {
        for (series, own) in &self.kernel_threads {
            let is_other = |thread: &&mut KernelThread| thread.name == own.name;
            if series.series_number() == kernel.series_number()
                && let Some(thread) = machine.threads.iter_mut().find(is_other)
            {
                thread.clone_from(own);
            }
        }
    }

    /// The machine with its first `nr_cpus` CPUs, as with the kernel's `maxcpus=`.
    pub fn first_cpus(&self, nr_cpus: u32) -> Result<Machine, String> {
        let own = self.machine.nr_cpus();
        if nr_cpus > own {
            return Err(format!(
                "machine {:?} has {own} CPUs, but the run is to have {nr_cpus}: give at most \
                 {own}, or another machine",
                self.machine.name
            ));
        }
        let mut machine = self.machine.clone();
        machine.topology = machine.topology.first_cpus(nr_cpus);
        let cpus = schedlab_model::CpuMask::first(nr_cpus);
        machine.interrupts.retain(|source| !source.cpus.and(&cpus).is_empty());
        Ok(machine)
    }
}

/// Whether `text` is the name of a file, not of a preset.
pub fn is_file(text: &str) -> bool {
    text.contains('/') || text.ends_with(".toml") || text.ends_with(".json")
}

/// Sets the costs of `machine`. If all costs are 0, caches refill in no time too.
pub fn set_costs(machine: &mut Machine, costs: Costs) {
    machine.costs = costs;
    if costs == Costs::ZERO {
        machine.caches = Caches::NONE;
    }
}
