// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modelled machine: CPUs, their topology, the tick, the block device, and what things cost.

use crate::{CpuId, CpuMask, Memory, Nanos};

/// Which CPUs share what. Every vector has one entry a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// Core number of each CPU; CPUs with equal numbers are SMT siblings.
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

/// What the machine, never a scheduler, charges, in nanoseconds of CPU time.
///
/// A cost is charged to the task that runs when it arises (as the kernel's accounting does) and
/// delays its program; it is reported as overhead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Switching from one task to another, on the CPU that switches.
    pub context_switch_ns: Nanos,
    /// Each entry of a run queue that the pick looked at beyond the first.
    pub pick_entry_ns: Nanos,
    /// Waking a task, on the waker's CPU.
    pub wakeup_ns: Nanos,
    /// From the wake-up until an idle CPU runs its first instruction (interrupt and idle exit).
    pub idle_exit_ns: Nanos,
    /// First run of a task on a CPU other than its last one, same last-level cache.
    pub migration_ns: Nanos,
    /// The same across last-level caches.
    pub migration_llc_ns: Nanos,
    /// One timer tick, on the CPU that takes it.
    pub tick_ns: Nanos,
    /// Creating a task, on the parent's CPU.
    pub fork_ns: Nanos,
    /// Any other system call of a program (sleep, yield, timer, I/O submission, exit).
    pub syscall_ns: Nanos,
}

impl Costs {
    /// Everything is free: closed forms hold exactly.
    pub const ZERO: Self = Self {
        context_switch_ns: 0,
        pick_entry_ns: 0,
        wakeup_ns: 0,
        idle_exit_ns: 0,
        migration_ns: 0,
        migration_llc_ns: 0,
        tick_ns: 0,
        fork_ns: 0,
        syscall_ns: 0,
    };

    /// Typical figures of a current x86 server, used when the host has not been calibrated.
    /// Orders of magnitude from `perf bench sched pipe` and `lat_ctx` on such machines; `schedlab
    /// calibrate` measures this machine's own.
    pub const DEFAULT: Self = Self {
        context_switch_ns: 1_200,
        pick_entry_ns: 20,
        wakeup_ns: 900,
        idle_exit_ns: 2_500,
        migration_ns: 1_500,
        migration_llc_ns: 6_000,
        tick_ns: 1_500,
        fork_ns: 60_000,
        syscall_ns: 250,
    };

    /// Names, in the order of the fields; a costs file has one `name = integer` a line.
    pub const NAMES: [&'static str; 9] = [
        "context_switch_ns",
        "pick_entry_ns",
        "wakeup_ns",
        "idle_exit_ns",
        "migration_ns",
        "migration_llc_ns",
        "tick_ns",
        "fork_ns",
        "syscall_ns",
    ];

    /// The field called `name`.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut Nanos> {
        Some(match name {
            "context_switch_ns" => &mut self.context_switch_ns,
            "pick_entry_ns" => &mut self.pick_entry_ns,
            "wakeup_ns" => &mut self.wakeup_ns,
            "idle_exit_ns" => &mut self.idle_exit_ns,
            "migration_ns" => &mut self.migration_ns,
            "migration_llc_ns" => &mut self.migration_llc_ns,
            "tick_ns" => &mut self.tick_ns,
            "fork_ns" => &mut self.fork_ns,
            "syscall_ns" => &mut self.syscall_ns,
            _ => return None,
        })
    }

    /// The value called `name`.
    pub fn field(&self, name: &str) -> Option<Nanos> {
        let mut copy = *self;
        copy.field_mut(name).map(|value| *value)
    }
}

/// The block device: requests are served first come, first served by `queue_depth` servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Requests served at the same time, >= 1.
    pub queue_depth: u32,
    /// Fixed time of a read request.
    pub read_latency_ns: Nanos,
    /// Fixed time of a write request that must reach the medium.
    pub write_latency_ns: Nanos,
    /// Transfer speed of one server, >= 1.
    pub bytes_per_sec: u64,
    /// CPU time to copy 1,024 bytes between program and page cache.
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

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// CPUs and what they share.
    pub topology: Topology,
    /// Ticks a second: 100, 250, 300 or 1000.
    pub hz: u32,
    /// What things cost.
    pub costs: Costs,
    /// The block device.
    pub device: Device,
    /// What a program's own memory accesses cost.
    pub memory: Memory,
}

impl Machine {
    /// A flat machine at HZ=250 with default costs.
    pub fn flat(nr_cpus: u32) -> Self {
        Self {
            topology: Topology::flat(nr_cpus),
            hz: 250,
            costs: Costs::DEFAULT,
            device: Device::default(),
            memory: Memory::default(),
        }
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> u32 {
        self.topology.nr_cpus()
    }
}
