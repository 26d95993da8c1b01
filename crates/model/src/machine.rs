// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modelled machine: CPUs, their topology, the tick, the block device, and what things cost.

use crate::cpumask::NR_CPUS_MAX;
use crate::{CpuId, CpuMask, Memory, Nanos};

mod caches;
mod costs;
mod interrupts;
mod preempt;
mod threads;

pub use caches::Caches;
pub use costs::Costs;
pub use interrupts::{INTERVAL_NS_MIN, InterruptArrivals, InterruptSource};
pub use preempt::Preempt;
pub use threads::{KernelThread, THREAD_PERIOD_NS_MIN, ThreadWakes};

/// Which CPUs share cores, caches and memory. Every vector has one entry for each CPU.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Topology {
    /// Core number of each CPU. CPUs with equal numbers are SMT siblings.
    pub core: Vec<u32>,
    /// Last-level-cache number of each CPU.
    pub llc: Vec<u32>,
    /// NUMA node of each CPU.
    pub node: Vec<u32>,
}

impl Topology {
    /// `nr_cpus` cores without SMT that share one cache and one node.
    pub fn flat(nr_cpus: u32) -> Self {
        Self {
            core: (0..nr_cpus).collect(),
            llc: vec![0; nr_cpus as usize],
            node: vec![0; nr_cpus as usize],
        }
    }

    /// A machine of equal parts. SMT siblings have distant numbers, as on x86 (CPU c and CPU c +
    /// number of cores), or adjacent ones ([`Shape::siblings_apart`]).
    pub fn regular(shape: Shape) -> Self {
        let Shape { nodes, llcs_per_node, cores_per_llc, threads_per_core, siblings_apart } = shape;
        let nr_cores = nodes * llcs_per_node * cores_per_llc;
        let core_of =
            |cpu: u32| if siblings_apart { cpu % nr_cores } else { cpu / threads_per_core };
        let cores = (0..nr_cores * threads_per_core).map(core_of);
        Self {
            llc: cores.clone().map(|core| core / cores_per_llc).collect(),
            node: cores.clone().map(|core| core / (cores_per_llc * llcs_per_node)).collect(),
            core: cores.collect(),
        }
    }

    /// Keeps only the first `nr_cpus` CPUs, as the kernel's `maxcpus=` does.
    pub fn first_cpus(&self, nr_cpus: u32) -> Self {
        let first = |level: &[u32]| level.iter().take(nr_cpus as usize).copied().collect();
        Self { core: first(&self.core), llc: first(&self.llc), node: first(&self.node) }
    }

    /// Checks that there are 1 to 1,024 CPUs, that every core is within one last-level cache, and
    /// every cache within one node, as the kernel requires.
    pub fn check(&self) -> Result<(), String> {
        let nr_cpus = self.core.len();
        if !(1..=NR_CPUS_MAX).contains(&nr_cpus) {
            return Err(format!("it has {nr_cpus} CPUs, allowed are 1 to {NR_CPUS_MAX}"));
        }
        for (name, level) in [("llc", &self.llc), ("node", &self.node)] {
            if level.len() != nr_cpus {
                return Err(format!(
                    "`core` has {nr_cpus} entries and `{name}` {}: give each one entry a CPU",
                    level.len()
                ));
            }
        }
        nests("core", &self.core, "last-level cache", &self.llc)?;
        nests("last-level cache", &self.llc, "node", &self.node)
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> u32 {
        self.core.len() as u32
    }

    fn sharing(level: &[u32], cpu: CpuId) -> CpuMask {
        let own = level[cpu.index()];
        (0..level.len() as u32).map(CpuId).filter(|c| level[c.index()] == own).collect()
    }

    /// CPUs of `cpu`'s core, `cpu` included.
    pub fn smt_span(&self, cpu: CpuId) -> CpuMask {
        Self::sharing(&self.core, cpu)
    }

    /// CPUs that share `cpu`'s last-level cache.
    pub fn llc_span(&self, cpu: CpuId) -> CpuMask {
        Self::sharing(&self.llc, cpu)
    }

    /// CPUs of `cpu`'s NUMA node.
    pub fn node_span(&self, cpu: CpuId) -> CpuMask {
        Self::sharing(&self.node, cpu)
    }
}

/// Checks that CPUs with equal numbers in `inner` have equal numbers in `outer`.
fn nests(inner_name: &str, inner: &[u32], outer_name: &str, outer: &[u32]) -> Result<(), String> {
    let mut seen = std::collections::BTreeMap::new();
    for (cpu, (part, whole)) in inner.iter().zip(outer).enumerate() {
        let (first, known) = *seen.entry(part).or_insert((cpu, whole));
        if known != whole {
            return Err(format!(
                "CPUs {first} and {cpu} share {inner_name} {part} but lie in {outer_name}s {known} \
                 and {whole}: number every {inner_name} of the machine differently"
            ));
        }
    }
    Ok(())
}

/// The shape of a machine of equal parts; every count is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// NUMA nodes.
    pub nodes: u32,
    /// Last-level caches of a node.
    pub llcs_per_node: u32,
    /// Cores that share a last-level cache.
    pub cores_per_llc: u32,
    /// Hardware threads of a core.
    pub threads_per_core: u32,
    /// Siblings have distant numbers (x86) rather than adjacent ones (POWER, most Arm).
    pub siblings_apart: bool,
}

/// The block device. `queue_depth` servers serve requests in order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    /// Requests served at the same time, >= 1.
    pub queue_depth: u32,
    /// Fixed time of a read request (ns).
    pub read_latency_ns: Nanos,
    /// Fixed time (ns) of a write request that must reach the medium.
    pub write_latency_ns: Nanos,
    /// Transfer speed of one server, bytes per second, >= 1.
    pub bytes_per_sec: u64,
    /// CPU time (ns) to copy 1,024 bytes between program and page cache.
    pub copy_kib_ns: Nanos,
}

impl Default for Device {
    /// A SATA solid-state disk.
    fn default() -> Self {
        Self {
            queue_depth: 8,
            read_latency_ns: 90_000,
            write_latency_ns: 250_000,
            bytes_per_sec: 450_000_000,
            copy_kib_ns: 120,
        }
    }
}

/// A machine. CPU frequency and hotplug are not modelled: every CPU exists for the whole run and
/// runs at one speed, except for the effect of busy siblings ([`Machine::smt_speed`]).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    /// Name shown in results.
    pub name: String,
    /// CPUs and what they share.
    pub topology: Topology,
    /// Ticks a second: 100, 250, 300 or 1000.
    pub hz: u32,
    /// CPU time that the kernel takes.
    pub costs: Costs,
    /// The block device.
    pub device: Device,
    /// CPU time of a program's own memory accesses.
    pub memory: Memory,
    /// Speed of each hardware thread of a core while 2, 3, ... threads of that core are busy, in
    /// thousandths of its speed alone. The last entry also holds for more threads. Empty: threads
    /// do not slow each other.
    pub smt_speed: Vec<u32>,
    /// Cache sizes and speeds, for tasks with a known working set.
    pub caches: Caches,
    /// When a CPU acts on a request to reschedule.
    pub preempt: Preempt,
    /// Under [`Preempt::Voluntary`]: time (ns, >= 1) between two points of a system call at which
    /// it might sleep, from the start of the call.
    pub preempt_point_ns: Nanos,
    /// Interrupts that take CPU time.
    pub interrupts: Vec<InterruptSource>,
    /// Threads of the kernel.
    pub threads: Vec<KernelThread>,
    /// Whether periods of cpu.max end at multiples of their length. Otherwise the kernel draws when
    /// the first one of a group ends, since 6.3.
    pub aligns_periods: bool,
    /// From the creation of the workload's tasks to the start of the run (ns). A task with a later
    /// release is as old. 0: each task is created at its release.
    pub set_up_ns: Nanos,
    /// Number of the boot, from 0: each draws other random numbers in the scheduler.
    pub boot: u32,
    /// Every switch to a task takes longer, by a time of its own up to this one (ns), on that
    /// task's time. Shows what depends on microseconds.
    pub switch_jitter_ns: Nanos,
}

/// Default of [`Machine::preempt_point_ns`]. An assumption: about the time to allocate and copy one
/// page.
pub const PREEMPT_POINT_NS_DEFAULT: Nanos = 2_000;

/// Full speed of a hardware thread, as a value of [`Machine::smt_speed`].
pub const SMT_SPEED_FULL: u32 = 1_000;

impl Machine {
    /// A flat machine: HZ=250, default costs, preemptible everywhere, no interrupts.
    pub fn flat(nr_cpus: u32) -> Self {
        Self {
            name: "flat".into(),
            topology: Topology::flat(nr_cpus),
            hz: 250,
            costs: Costs::DEFAULT,
            device: Device::default(),
            memory: Memory::default(),
            smt_speed: Vec::new(),
            caches: Caches::default(),
            preempt: Preempt::Full,
            preempt_point_ns: PREEMPT_POINT_NS_DEFAULT,
            interrupts: Vec::new(),
            threads: Vec::new(),
            aligns_periods: false,
            set_up_ns: 0,
            boot: 0,
            switch_jitter_ns: 0,
        }
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> u32 {
        self.topology.nr_cpus()
    }

    /// Checks all values that the engine relies on. The error names the value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        self.topology.check()?;
        if ![100, 250, 300, 1000].contains(&self.hz) {
            return Err(format!("`hz` is {}, allowed are 100, 250, 300 and 1000", self.hz));
        }
        let tick = crate::time::tick_nsec(self.hz);
        if self.costs.timer_delay_ns >= tick {
            return Err(format!(
                "`timer_delay_ns` is {}, allowed are 0 to {}: less than a tick",
                self.costs.timer_delay_ns,
                tick - 1
            ));
        }
        let whole_ns = self.costs.tick_ns.saturating_add(self.costs.tick_entity_ns);
        if self.costs.tick_resched_ns > whole_ns {
            return Err(format!(
                "`tick_resched_ns` is {}, allowed are 0 to {whole_ns}: it is a part of a tick \
                 (`tick_ns` and `tick_entity_ns`)",
                self.costs.tick_resched_ns
            ));
        }
        if self.costs.clock_lead_ns > self.costs.tick_resched_ns {
            return Err(format!(
                "`clock_lead_ns` is {}, allowed are 0 to {}: no more than `tick_resched_ns`",
                self.costs.clock_lead_ns, self.costs.tick_resched_ns
            ));
        }
        if let Some(speed) = self.smt_speed.iter().find(|s| !(1..=SMT_SPEED_FULL).contains(*s)) {
            return Err(format!(
                "`smt_speed` has {speed}, allowed are 1 to {SMT_SPEED_FULL} (thousandths)"
            ));
        }
        if self.preempt_point_ns == 0 {
            return Err("`preempt_point_ns` is 0, least is 1".into());
        }
        self.threads.iter().try_for_each(KernelThread::check)?;
        for source in &self.interrupts {
            let name = &source.name;
            if source.interval_ns < INTERVAL_NS_MIN {
                return Err(format!(
                    "interrupt {name:?} comes every {} ns, least is {INTERVAL_NS_MIN}",
                    source.interval_ns
                ));
            }
            if source.cpus.and(&CpuMask::first(self.nr_cpus())).is_empty() {
                return Err(format!(
                    "interrupt {name:?} goes to CPUs {}, but the machine has CPUs 0-{}",
                    source.cpus,
                    self.nr_cpus() - 1
                ));
            }
        }
        (0..self.nr_cpus()).try_for_each(|cpu| self.check_time_left(CpuId(cpu)))
    }
}

#[cfg(test)]
mod tests;
