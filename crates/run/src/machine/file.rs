// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine files: the tables that describe a modelled machine, and the checks of their values.
//!
//! Every preset is such a file (directory `machines/` of the repository). Missing values default to
//! those of a flat machine. Every value is checked; the error names what was found and what is
//! allowed.

use crate::place::allowed_words;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::kernel::KernelVersion;
use schedlab_model::machine::{
    Caches, Device, INTERVAL_NS_MIN, InterruptArrivals, InterruptSource, KernelThread, Shape,
    ThreadWakes,
};
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{Costs, CpuId, CpuMask, Machine, Nanos, Preempt, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A machine file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// Name in results.
    pub name: String,
    /// A description in one line.
    #[serde(default)]
    pub summary: String,
    /// Sources of the facts.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Assumptions, where facts are unknown.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// CPUs and what they share: a shape, or three lists.
    pub topology: TopologyTable,
    /// Speed of each hardware thread of a core while 2, 3, ... threads of the core are busy, in
    /// thousandths of its speed alone. The last entry also holds for more. Empty: threads do not
    /// slow each other.
    #[serde(default)]
    pub smt_speed: Vec<u32>,
    /// Ticks per second: 100, 250, 300 or 1000. Default: 250.
    #[serde(default)]
    pub hz: Option<u32>,
    /// Clock of the CPUs in MHz. Needed if the costs were measured at another clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Clock in MHz at which the costs were measured. On a slower machine the costs of instructions
    /// are longer, those of memory are not. Default: the machine's own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs_clock_mhz: Option<u32>,
    /// Preemption model of its kernel: none, voluntary, full or lazy. Default: that of the
    /// scheduler's kernel.
    #[serde(default)]
    pub preempt: Option<String>,
    /// Under `voluntary`: time (ns) between two points at which a system call can be preempted.
    #[serde(default)]
    pub preempt_point_ns: Option<u64>,
    /// Whether periods of cpu.max end at multiples of their length. Default: the kernel draws when
    /// the first one of a group ends, as Linux does since 6.3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aligns_periods: bool,
    /// From the creation of tasks to the start of the run (ns). Default: 0, each task is created at
    /// its release.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub set_up_ns: u64,
    /// Caches.
    #[serde(default)]
    pub caches: CachesTable,
    /// Costs (ns), with the names of a costs file.
    #[serde(default)]
    pub costs: BTreeMap<String, u64>,
    /// Costs that differ under kernels of a series, such as `6.12`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel_costs: BTreeMap<String, BTreeMap<String, u64>>,
    /// The block device.
    #[serde(default)]
    pub device: DeviceTable,
    /// Interrupts that take CPU time.
    #[serde(default, rename = "interrupt")]
    pub interrupts: Vec<InterruptTable>,
    /// Threads of the kernel.
    #[serde(default, rename = "thread")]
    pub threads: Vec<ThreadTable>,
}

/// The CPUs: a shape of equal parts, or three lists with one entry for each CPU.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TopologyTable {
    /// NUMA nodes. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Last-level caches per node. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llcs_per_node: Option<u32>,
    /// Cores that share a last-level cache. Required for a shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_per_llc: Option<u32>,
    /// Hardware threads per core. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_per_core: Option<u32>,
    /// Numbering of siblings: `apart` (x86: CPU c and CPU c + cores) or `adjacent`. Default: apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<String>,
    /// Core number of each CPU; CPUs with equal numbers are siblings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core: Vec<u32>,
    /// Number of each CPU's last-level cache. Default: all share one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub llc: Vec<u32>,
    /// NUMA node of each CPU. Default: all in one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node: Vec<u32>,
}

/// Cache sizes and speeds. A cache of size 0 is not modelled.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CachesTable {
    /// Size (bytes) of a core's own cache.
    #[serde(default)]
    pub core_bytes: Option<u64>,
    /// Size (bytes) of one last-level cache.
    #[serde(default)]
    pub llc_bytes: Option<u64>,
    /// Speed of refilling a core's cache from the last-level cache, bytes per second.
    #[serde(default)]
    pub llc_bytes_per_sec: Option<u64>,
    /// Speed of refilling it from memory of its own node, bytes per second.
    #[serde(default)]
    pub local_bytes_per_sec: Option<u64>,
    /// Speed of refilling it from memory of another node, bytes per second.
    #[serde(default)]
    pub remote_bytes_per_sec: Option<u64>,
}

/// The block device.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DeviceTable {
    /// Requests served at the same time.
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// Fixed time of a read (ns).
    #[serde(default)]
    pub read_latency_ns: Option<u64>,
    /// Fixed time (ns) of a write that must reach the medium.
    #[serde(default)]
    pub write_latency_ns: Option<u64>,
    /// Transfer speed of one server, bytes per second.
    #[serde(default)]
    pub bytes_per_sec: Option<u64>,
    /// CPU time (ns) to copy 1,024 bytes between program and page cache.
    #[serde(default)]
    pub copy_kib_ns: Option<u64>,
}

/// A source of interrupts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InterruptTable {
    /// Name, such as `eth0`.
    pub name: String,
    /// CPUs that take them, such as `0-3,8`. Default: all.
    #[serde(default)]
    pub cpus: Option<String>,
    /// Interrupts per second on each of these CPUs, 1 to 1,000,000.
    pub per_second: u64,
    /// Time of the handler (ns).
    pub cost_ns: u64,
    /// Time (ns) of the softirq after it. Default: 0.
    #[serde(default)]
    pub softirq_ns: u64,
    /// `periodic` or `exponential`. Default: periodic.
    #[serde(default)]
    pub arrivals: Option<String>,
}

/// A thread of the kernel: with `period_ns`, `ticks_after_exit`, `after_check_ns`, `at_populated`,
/// `at_awaited_exit`, or `first_ns` alone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ThreadTable {
    /// Name, such as `kcompactd0`.
    pub name: String,
    /// CPU time of a visit (ns), without the switches.
    pub run_ns: u64,
    /// Time from one visit to the next (ns).
    #[serde(default)]
    pub period_ns: Option<u64>,
    /// Time of the first visit (ns), the only one without `period_ns`. Default: after one period.
    #[serde(default)]
    pub first_ns: Option<u64>,
    /// Number of visits after an exit, one at each tick.
    #[serde(default)]
    pub ticks_after_exit: Option<u32>,
    /// With `ticks_after_exit`: it comes again after a visit that preempts a fork earlier than
    /// this before its end (ns), when the fork goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_unlocked_ns: Option<u64>,
    /// It checks for stalls of a sched_ext scheduler: from the last check before the run to time 0
    /// (ns).
    #[serde(default)]
    pub after_check_ns: Option<u64>,
    /// It comes when a control group gets its first task or has lost its last one.
    #[serde(default)]
    pub at_populated: bool,
    /// It is the launcher, which comes when the task exits that it waits for.
    #[serde(default)]
    pub at_awaited_exit: bool,
    /// Priority (1 to 99) with the policy SCHED_FIFO. Default: the default policy.
    #[serde(default)]
    pub rt_priority: u8,
    /// The series of kernels, such as `7.2`, in which it replaces the thread of this name.
    /// Default: all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// A machine with its description.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MachineSpec {
    /// The machine. Its preemption model counts only if `preempt` is given.
    pub machine: Machine,
    /// Preemption model; `None`: that of the scheduler's kernel.
    pub preempt: Option<Preempt>,
    /// Costs under kernels of some series, if they differ from those of the machine.
    pub kernel_costs: Vec<(KernelVersion, Costs)>,
    /// Threads of kernels of some series, in place of those of the same names.
    pub kernel_threads: Vec<(KernelVersion, KernelThread)>,
    /// A description in one line.
    pub summary: String,
    /// Sources of the facts.
    pub sources: Vec<String>,
    /// Assumptions, where facts are unknown.
    pub assumptions: Vec<String>,
}

/// Largest single cost or latency: a second. A larger value is probably in the wrong unit.
const COST_NS_MAX: u64 = NSEC_PER_SEC;

/// Longest time from the creation of tasks to a run.
const SET_UP_NS_MAX: u64 = 600 * NSEC_PER_SEC;

/// Fastest clock: ten times that of existing CPUs.
const CLOCK_MHZ_MAX: u32 = 100_000;

impl MachineFile {
    /// Checks the file and returns the machine that it describes.
    pub fn spec(&self) -> Result<MachineSpec, String> {
        let mut machine = Machine::flat(1);
        if self.name.trim().is_empty() {
            return Err("`name` is empty: give the machine a name".into());
        }
        machine.name = self.name.clone();
        machine.topology = self.topology.topology()?;
        machine.smt_speed = self.smt_speed.clone();
        machine.hz = self.hz.unwrap_or(machine.hz);
        machine.preempt_point_ns = self.preempt_point_ns.unwrap_or(machine.preempt_point_ns);
        machine.aligns_periods = self.aligns_periods;
        machine.set_up_ns = in_range("set_up_ns", self.set_up_ns, 0, SET_UP_NS_MAX)?;
        machine.caches = self.caches.caches()?;
        machine.costs = self.at_own_clock(costs(Costs::DEFAULT, &self.costs)?)?;
        machine.device = self.device.device()?;
        let nr_cpus = machine.nr_cpus();
        machine.interrupts =
            self.interrupts.iter().map(|table| table.source(nr_cpus)).collect::<Result<_, _>>()?;
        let of_all = self.threads.iter().filter(|table| table.kernel.is_none());
        machine.threads = of_all.map(ThreadTable::thread).collect::<Result<_, _>>()?;
        let preempt = match &self.preempt {
            None => None,
            Some(name) => Some(preempt_by_name(name)?),
        };
        machine.preempt = preempt.unwrap_or(machine.preempt);
        machine.check()?;
        Ok(MachineSpec {
            preempt,
            kernel_costs: self.kernel_costs(&machine)?,
            kernel_threads: self.kernel_threads(&machine)?,
            machine,
            summary: self.summary.clone(),
            sources: self.sources.clone(),
            assumptions: self.assumptions.clone(),
        })
    }
}

impl MachineFile {
    /// The costs under each series of kernels that has its own, checked as those of `machine`.
    fn kernel_costs(&self, machine: &Machine) -> Result<Vec<(KernelVersion, Costs)>, String> {
        let of = |(series, given): (&String, &BTreeMap<String, u64>)| {
            let wrong = |error: String| format!("[kernel_costs.{series:?}]: {error}");
            let version: KernelVersion = series.parse().map_err(|_| {
                wrong("the name is no series of kernels: allowed are names such as 6.12".into())
            })?;
            let own = costs(costs(Costs::DEFAULT, &self.costs)?, given).map_err(wrong)?;
            let own = self.at_own_clock(own)?;
            Machine { costs: own, ..machine.clone() }.check().map_err(wrong)?;
            Ok((version, own))
        };
        self.kernel_costs.iter().map(of).collect()
    }

    /// The threads that differ under a series of kernels, checked as those of `machine`.
    fn kernel_threads(
        &self,
        machine: &Machine,
    ) -> Result<Vec<(KernelVersion, KernelThread)>, String> {
        let mut found = Vec::new();
        for table in &self.threads {
            let Some(series) = &table.kernel else { continue };
            let wrong = |error: &str| Err(format!("thread {:?}: {error}", table.name));
            let Ok(version) = series.parse::<KernelVersion>() else {
                return wrong("`kernel` is no series of kernels: allowed are names such as 6.12");
            };
            let thread = table.thread()?;
            if !machine.threads.iter().any(|other| other.name == thread.name) {
                return wrong("`kernel` is given, but no thread of this name is there without it");
            }
            Machine { threads: vec![thread.clone()], ..machine.clone() }.check()?;
            found.push((version, thread));
        }
        Ok(found)
    }

    /// Converts the costs to the machine's clock.
    fn at_own_clock(&self, costs: Costs) -> Result<Costs, String> {
        let mhz = |name: &str, value: Option<u32>| match value {
            Some(mhz) => in_range(name, mhz.into(), 1, CLOCK_MHZ_MAX.into()).map(|_| value),
            None => Ok(None),
        };
        let own = mhz("clock_mhz", self.clock_mhz)?;
        match (mhz("costs_clock_mhz", self.costs_clock_mhz)?, own) {
            (None, _) => Ok(costs),
            (Some(from), Some(to)) => Ok(costs.at_clock(from, to)),
            (Some(_), None) => Err("`costs_clock_mhz` is given but not `clock_mhz`: say both, or \
                                    neither where the costs are the machine's own"
                .into()),
        }
    }
}

/// Finds a preemption model by its name.
pub fn preempt_by_name(name: &str) -> Result<Preempt, String> {
    Preempt::by_name(name).ok_or_else(|| {
        let names = Preempt::ALL.map(Preempt::name).join(", ");
        format!("preemption model {name:?} is not known: allowed are {names}")
    })
}

/// `costs` with those that are `given`.
fn costs(mut costs: Costs, given: &BTreeMap<String, u64>) -> Result<Costs, String> {
    for (name, ns) in given {
        let field = costs.field_mut(name).ok_or_else(|| {
            format!("no cost is called {name:?}: {}", allowed_words(name, &Costs::NAMES))
        })?;
        *field = in_range(name, *ns, 0, COST_NS_MAX)?;
    }
    Ok(costs)
}

fn in_range(name: &str, found: u64, least: u64, most: u64) -> Result<u64, String> {
    if (least..=most).contains(&found) {
        Ok(found)
    } else {
        Err(format!("`{name}` is {found}, allowed are {least} to {most}"))
    }
}

impl TopologyTable {
    fn topology(&self) -> Result<Topology, String> {
        let shaped = [self.nodes, self.llcs_per_node, self.cores_per_llc, self.threads_per_core];
        let is_shaped = shaped.iter().any(Option::is_some) || self.siblings.is_some();
        let is_listed = !(self.core.is_empty() && self.llc.is_empty() && self.node.is_empty());
        match (is_shaped, is_listed) {
            (true, true) => Err("[topology] has a shape and lists: keep one of them".into()),
            (_, false) => self.shape(),
            (false, true) => self.lists(),
        }
    }

    fn shape(&self) -> Result<Topology, String> {
        let cores_per_llc = self.cores_per_llc.ok_or(
            "[topology] needs `cores_per_llc` (and may have nodes, llcs_per_node, \
             threads_per_core), or the lists core, llc and node",
        )?;
        let one = |count: Option<u32>| count.unwrap_or(1);
        let siblings_apart = match self.siblings.as_deref() {
            None | Some("apart") => true,
            Some("adjacent") => false,
            Some(other) => {
                return Err(format!("`siblings` is {other:?}, allowed are apart and adjacent"));
            }
        };
        let shape = Shape {
            nodes: one(self.nodes),
            llcs_per_node: one(self.llcs_per_node),
            cores_per_llc,
            threads_per_core: one(self.threads_per_core),
            siblings_apart,
        };
        let counts =
            [shape.nodes, shape.llcs_per_node, shape.cores_per_llc, shape.threads_per_core];
        let nr_cpus = counts.iter().try_fold(1_u32, |product, count| product.checked_mul(*count));
        match nr_cpus {
            Some(nr_cpus) if (1..=NR_CPUS_MAX as u32).contains(&nr_cpus) => {
                Ok(Topology::regular(shape))
            }
            _ => Err(format!(
                "[topology] gives {} x {} x {} x {} CPUs, allowed are 1 to {NR_CPUS_MAX}",
                counts[0], counts[1], counts[2], counts[3]
            )),
        }
    }

    fn lists(&self) -> Result<Topology, String> {
        let nr_cpus = self.core.len().max(self.llc.len()).max(self.node.len());
        let or = |list: &Vec<u32>, default: Vec<u32>| {
            if list.is_empty() { default } else { list.clone() }
        };
        let topology = Topology {
            core: or(&self.core, (0..nr_cpus as u32).collect()),
            llc: or(&self.llc, or(&self.node, vec![0; nr_cpus])),
            node: or(&self.node, vec![0; nr_cpus]),
        };
        topology.check().map_err(|error| format!("[topology]: {error}"))?;
        Ok(topology)
    }
}

impl CachesTable {
    fn caches(&self) -> Result<Caches, String> {
        let known = Caches::default();
        let speed = |name: &str, given: Option<u64>, default: u64| {
            in_range(name, given.unwrap_or(default), 1, 1 << 50)
        };
        let size = |name: &str, given: Option<u64>, default: u64| {
            in_range(name, given.unwrap_or(default), 0, 1 << 50)
        };
        Ok(Caches {
            core_bytes: size("core_bytes", self.core_bytes, known.core_bytes)?,
            llc_bytes: size("llc_bytes", self.llc_bytes, known.llc_bytes)?,
            llc_bytes_per_sec: speed(
                "llc_bytes_per_sec",
                self.llc_bytes_per_sec,
                known.llc_bytes_per_sec,
            )?,
            local_bytes_per_sec: speed(
                "local_bytes_per_sec",
                self.local_bytes_per_sec,
                known.local_bytes_per_sec,
            )?,
            remote_bytes_per_sec: speed(
                "remote_bytes_per_sec",
                self.remote_bytes_per_sec,
                known.remote_bytes_per_sec,
            )?,
        })
    }
}

impl DeviceTable {
    fn device(&self) -> Result<Device, String> {
        let known = Device::default();
        let ns = |name: &str, given: Option<u64>, default: Nanos| {
            in_range(name, given.unwrap_or(default), 0, COST_NS_MAX)
        };
        let depth = self.queue_depth.unwrap_or(known.queue_depth);
        Ok(Device {
            queue_depth: in_range("queue_depth", depth.into(), 1, 65_536)? as u32,
            read_latency_ns: ns("read_latency_ns", self.read_latency_ns, known.read_latency_ns)?,
            write_latency_ns: ns(
                "write_latency_ns",
                self.write_latency_ns,
                known.write_latency_ns,
            )?,
            bytes_per_sec: in_range(
                "bytes_per_sec",
                self.bytes_per_sec.unwrap_or(known.bytes_per_sec),
                1,
                1 << 50,
            )?,
            copy_kib_ns: ns("copy_kib_ns", self.copy_kib_ns, known.copy_kib_ns)?,
        })
    }
}

impl InterruptTable {
    fn source(&self, nr_cpus: u32) -> Result<InterruptSource, String> {
        let wrong = |error: String| format!("interrupt {:?}: {error}", self.name);
        let most = NSEC_PER_SEC / INTERVAL_NS_MIN;
        let per_second = in_range("per_second", self.per_second, 1, most).map_err(wrong)?;
        let arrivals = match self.arrivals.as_deref() {
            None | Some("periodic") => InterruptArrivals::Periodic,
            Some("exponential") => InterruptArrivals::Exponential,
            Some(other) => {
                return Err(wrong(format!(
                    "`arrivals` is {other:?}, allowed are periodic and exponential"
                )));
            }
        };
        let cpus = match &self.cpus {
            None => CpuMask::first(nr_cpus),
            Some(list) => cpu_list(list).map_err(wrong)?,
        };
        Ok(InterruptSource {
            name: self.name.clone(),
            cpus,
            interval_ns: NSEC_PER_SEC / per_second,
            cost_ns: in_range("cost_ns", self.cost_ns, 0, COST_NS_MAX).map_err(wrong)?,
            softirq_ns: in_range("softirq_ns", self.softirq_ns, 0, COST_NS_MAX).map_err(wrong)?,
            arrivals,
        })
    }
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl ThreadTable {
    fn thread(&self) -> Result<KernelThread, String> {
        let wrong = |error: String| format!("thread {:?}: {error}", self.name);
        let run_ns = in_range("run_ns", self.run_ns, 1, COST_NS_MAX).map_err(wrong)?;
        let others = (self.ticks_after_exit, self.after_check_ns);
        let events = (self.at_populated, self.at_awaited_exit);
        let wakes = match (self.period_ns, self.first_ns, others, events) {
            (Some(period_ns), first_ns, (None, None), (false, false)) => {
                ThreadWakes::Periodic { first_ns: first_ns.unwrap_or(period_ns), period_ns }
            }
            (None, Some(at_ns), (None, None), (false, false)) => ThreadWakes::Once { at_ns },
            (None, None, (Some(ticks), None), (false, false)) => {
                let fork_unlocked_ns = self.fork_unlocked_ns;
                ThreadWakes::AfterExit { ticks, fork_unlocked_ns }
            }
            _ if self.fork_unlocked_ns.is_some() => {
                let text = "`fork_unlocked_ns` goes with `ticks_after_exit` only: leave it out";
                return Err(wrong(text.into()));
            }
            (None, None, (None, Some(after_ns)), (false, false)) => {
                ThreadWakes::AtChecks { after_ns }
            }
            (None, None, (None, None), (true, false)) => ThreadWakes::AtPopulated,
            (None, None, (None, None), (false, true)) => ThreadWakes::AtAwaitedExit,
            _ => {
                return Err(wrong(
                    "it needs either `period_ns`, with or without `first_ns`, or `first_ns` alone \
                     (one visit), or `ticks_after_exit`, or `after_check_ns`, or `at_populated`, \
                     or `at_awaited_exit`"
                        .into(),
                ));
            }
        };
        Ok(KernelThread { name: self.name.clone(), wakes, rt_priority: self.rt_priority, run_ns })
    }
}

/// Reads CPUs in the kernel's list format.
fn cpu_list(text: &str) -> Result<CpuMask, String> {
    let wrong = || format!("`cpus` is {text:?}, expected CPUs such as 0 or 0-3,8");
    let mut mask = CpuMask::empty();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let number = text.trim().parse::<u32>().ok();
            number.filter(|cpu| (*cpu as usize) < NR_CPUS_MAX).ok_or_else(wrong)
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        (first..=last).for_each(|cpu| mask.set(CpuId(cpu)));
    }
    Ok(mask)
}
