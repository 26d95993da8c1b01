// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines: CPUs and what they share, the tick, costs.

use super::{Draw, Feature, Shape};
use schedlab_model::machine::Caches;
use schedlab_model::{Costs, Machine, Topology};

impl Draw {
    pub(super) fn machine(&mut self, shape: &Shape) -> Machine {
        if self.has(Feature::Smp) {
            self.nr_cpus = self.choose(&[2, 2, 2, 2, 3, 4, 4, 8]).min(shape.cpus_max.max(1));
        }
        if self.has(Feature::Hz) {
            self.hz = self.choose(&[100, 300, 1_000]);
        }
        let mut machine = Machine { hz: self.hz, ..Machine::flat(self.nr_cpus) };
        if !self.has(Feature::Costs) {
            machine.costs = Costs::ZERO;
            machine.caches = Caches::NONE;
        }
        if self.has(Feature::Topology) && self.nr_cpus >= 2 {
            machine.topology = self.topology();
        }
        machine
    }

    fn topology(&mut self) -> Topology {
        let flat = Topology::flat(self.nr_cpus);
        let half = self.nr_cpus.div_ceil(2);
        let halves: Vec<u32> = (0..self.nr_cpus).map(|cpu| cpu / half).collect();
        match self.below(3) {
            0 => Topology { core: (0..self.nr_cpus).map(|cpu| cpu / 2).collect(), ..flat },
            1 => Topology { llc: halves, ..flat },
            _ => Topology { llc: halves.clone(), node: halves, ..flat },
        }
    }
}
