// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs by topological number (cid), for schedulers with a `struct sched_ext_ops_cid`.
//!
//! CPUs of one core, one cache and one node have consecutive cids. The core of the simulator knows
//! CPUs only: numbers are translated where the scheduler is called, and where it calls.
//!
//! Source: Linux kernel/sched/ext/cid.c and cid.h (7.2). All CPUs are online, so that every cid has
//! a topology. Schedulers below a scheduler (sub-schedulers) are not modelled.

use super::error::NativeError;
use super::host::with;
use super::kfuncs;
use super::maps::errno::EINVAL;
use super::object::{ObjectFile, Place};
use super::touch;
use super::zone::{Block, Zone, put};
use schedlab_model::machine::Topology;
use schedlab_model::{CpuId, CpuMask, KernelVersion};
use schedlab_scx::Kernel;
use schedlab_scx::consts::{DSQ_LOCAL_CPU_MASK, DSQ_LOCAL_ON, OPS_TID_TO_TASK};
use std::path::Path;

/// The first kernel with cids.
pub const SINCE: KernelVersion = KernelVersion::series(7, 2);

/// BPF_MAP_TYPE_ARENA.
pub const ARENA: u64 = 33;

/// Functions that the verifier refuses to a scheduler with cids, and what to call instead.
const CPU_ONLY: [(&str, &str); 24] = [
    ("__scx_bpf_select_cpu_and", "an own search"),
    ("scx_bpf_cpu_curr", "scx_bpf_cid_curr"),
    ("scx_bpf_cpu_node", "scx_bpf_cid_topo"),
    ("scx_bpf_cpu_rq", "scx_bpf_cid_curr"),
    ("scx_bpf_cpuperf_cap", "scx_bpf_cidperf_cap"),
    ("scx_bpf_cpuperf_cur", "scx_bpf_cidperf_cur"),
    ("scx_bpf_cpuperf_set", "scx_bpf_cidperf_set"),
    ("scx_bpf_get_idle_cpumask", "an own mask, kept by ops.update_idle"),
    ("scx_bpf_get_idle_cpumask_node", "an own mask, kept by ops.update_idle"),
    ("scx_bpf_get_idle_smtmask", "an own mask, kept by ops.update_idle"),
    ("scx_bpf_get_idle_smtmask_node", "an own mask, kept by ops.update_idle"),
    ("scx_bpf_get_online_cpumask", "scx_bpf_nr_online_cids"),
    ("scx_bpf_get_possible_cpumask", "scx_bpf_nr_cids"),
    ("scx_bpf_kick_cpu", "scx_bpf_kick_cid"),
    ("scx_bpf_pick_any_cpu", "an own search"),
    ("scx_bpf_pick_any_cpu_node", "an own search"),
    ("scx_bpf_pick_idle_cpu", "an own search"),
    ("scx_bpf_pick_idle_cpu_node", "an own search"),
    ("scx_bpf_put_cpumask", "masks of cids"),
    ("scx_bpf_put_idle_cpumask", "masks of cids"),
    ("scx_bpf_select_cpu_and", "an own search"),
    ("scx_bpf_select_cpu_dfl", "an own search"),
    ("scx_bpf_task_cpu", "scx_bpf_task_cid"),
    ("scx_bpf_test_and_clear_cpu_idle", "an own mask, kept by ops.update_idle"),
];

/// Refuses a scheduler with cids that no kernel would load: on a kernel without them, without an
/// arena, or with functions that take CPUs.
pub fn check(
    source: &Path,
    kernel: KernelVersion,
    objects: &[ObjectFile],
    has_arena: bool,
) -> Result<(), NativeError> {
    let refused = |why: String| Err(NativeError::Refused(format!("{}: {why}", source.display())));
    if kernel < SINCE {
        return refused(format!(
            "it counts CPUs by topology (struct sched_ext_ops_cid), which kernels know from \
             {SINCE} on, and the modelled kernel is {kernel}: give --set scx_core={SINCE}"
        ));
    }
    if !has_arena {
        return refused(
            "a scheduler that counts CPUs by topology must have an arena map, for its sets of CPUs"
                .into(),
        );
    }
    for symbol in objects.iter().flat_map(|object| &object.symbols) {
        let name = symbol.name.split("___").next().filter(|name| !name.is_empty());
        let is_called = matches!(symbol.place, Place::Undefined);
        let found = CPU_ONLY.iter().find(|(own, _)| is_called && Some(*own) == name);
        if let Some((name, instead)) = found {
            return refused(format!(
                "{name} takes CPUs by number, and this scheduler counts them by topology: the \
                 verifier refuses it; use {instead}"
            ));
        }
    }
    Ok(())
}

/// Where a CPU is: the first cid and the number of its core, its cache and its node.
type Where = [i32; 6];

/// The numbers of a machine's CPUs.
#[derive(Debug, Default)]
pub struct Cids {
    /// Whether the scheduler is called with cids.
    pub is_form: bool,
    cpu_of: Vec<i32>,
    cid_of: Vec<i32>,
    places: Vec<Where>,
    /// The `struct scx_cmask` for `ops.set_cmask`.
    cmask: Option<Block>,
}

impl Cids {
    /// The numbers by topology: node by node, in each cache by cache, in each core by core. Each
    /// time the part with the first CPU that has no number is next.
    pub fn new(topology: &Topology, is_form: bool) -> Self {
        let nr = topology.node.len();
        let mut this =
            Self { is_form, cid_of: vec![-1; nr], places: Vec::new(), ..Self::default() };
        let mut numbers = [0; 3];
        while let Some(cpu) = this.first_without(0..nr, |_| true) {
            let node = topology.node[cpu];
            let of_node = this.begin(&mut numbers[2]);
            while let Some(cpu) = this.first_without(0..nr, |cpu| topology.node[cpu] == node) {
                let llc = (node, topology.llc[cpu]);
                let is_here = |cpu: usize| (topology.node[cpu], topology.llc[cpu]) == llc;
                let of_llc = this.begin(&mut numbers[1]);
                while let Some(cpu) = this.first_without(0..nr, is_here) {
                    let core = topology.core[cpu];
                    let of_core = this.begin(&mut numbers[0]);
                    for cpu in (0..nr).filter(|cpu| is_here(*cpu) && topology.core[*cpu] == core) {
                        this.cid_of[cpu] = this.cpu_of.len() as i32;
                        this.cpu_of.push(cpu as i32);
                        let [of_core, of_llc, of_node] = [of_core, of_llc, of_node];
                        this.places
                            .push([of_core.0, of_core.1, of_llc.0, of_llc.1, of_node.0, of_node.1]);
                    }
                }
            }
        }
        this
    }

    /// The first of `cpus` that has no number and for which `is_here` holds.
    fn first_without(
        &self,
        mut cpus: std::ops::Range<usize>,
        is_here: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        cpus.find(|cpu| self.cid_of[*cpu] < 0 && is_here(*cpu))
    }

    /// A part begins: its first cid and its number.
    fn begin(&self, next: &mut i32) -> (i32, i32) {
        *next += 1;
        (self.cpu_of.len() as i32, *next - 1)
    }

    /// What the scheduler is called with for `cpu`.
    #[inline]
    pub fn arg(&self, cpu: CpuId) -> u64 {
        match self.is_form {
            true => self.cid_of[cpu.index()] as u64,
            false => u64::from(cpu.0),
        }
    }

    /// The CPU that the scheduler means by a number. Negative numbers stay; one that is no cid is
    /// an error of the scheduler.
    #[inline]
    pub fn ret(&self, k: &mut Kernel<'_>, number: i32) -> i32 {
        match self.is_form && number >= 0 {
            true => self.cpu(k, number),
            false => number,
        }
    }

    /// The CPU of a cid.
    fn cpu(&self, k: &mut Kernel<'_>, cid: i32) -> i32 {
        let found = usize::try_from(cid).ok().and_then(|cid| self.cpu_of.get(cid));
        found.copied().unwrap_or_else(|| {
            k.scx_error(format!("invalid cid {cid}"));
            -EINVAL as i32
        })
    }

    /// The id of a queue as the core knows it: the local queue of a cid is that of its CPU.
    #[inline]
    pub fn dsq(&self, k: &mut Kernel<'_>, dsq: u64) -> u64 {
        if !self.is_form || dsq & DSQ_LOCAL_ON != DSQ_LOCAL_ON {
            return dsq;
        }
        let cpu = self.cpu(k, (dsq & DSQ_LOCAL_CPU_MASK) as i32);
        DSQ_LOCAL_ON | u64::from(cpu as u32)
    }

    /// Address of a `struct scx_cmask` of all cids, with those of `cpus` set. The next call uses
    /// the same memory, as a kernel does.
    pub fn cmask(&mut self, zone: &Zone, cpus: &CpuMask) -> u64 {
        const BITS: u64 = 16;
        let nr = self.cpu_of.len();
        let nr_words = nr.div_ceil(64) + 1;
        let block = self.cmask.get_or_insert_with(|| zone.block(BITS as usize + 8 * nr_words));
        let at = block.address();
        let mut words = vec![0u64; nr_words];
        for (cid, cpu) in self.cpu_of.iter().enumerate() {
            if cpus.contains(CpuId(*cpu as u32)) {
                words[cid / 64] |= 1 << (cid % 64);
            }
        }
        // SAFETY: the block has the head and these words.
        unsafe {
            put(at, [0, nr as u32, nr_words as u32]);
            for (index, word) in words.into_iter().enumerate() {
                put(at + BITS + 8 * index as u64, word);
            }
        }
        at
    }

    /// Replaces the numbers by the scheduler's own: the cid of each CPU. Topology is lost.
    fn replace(&mut self, k: &mut Kernel<'_>, cid_of: &[i32]) {
        let mut cpu_of = vec![-1; cid_of.len()];
        for (cpu, cid) in cid_of.iter().enumerate() {
            let place = usize::try_from(*cid).ok().and_then(|cid| cpu_of.get_mut(cid));
            let Some(place) = place else {
                k.scx_error(format!("invalid cid {cid}"));
                return;
            };
            if *place >= 0 {
                k.scx_error(format!("cid {cid} assigned to multiple cpus"));
                return;
            }
            *place = cpu as i32;
        }
        self.places = vec![[-1; 6]; cid_of.len()];
        (self.cpu_of, self.cid_of) = (cpu_of, cid_of.to_vec());
    }
}

/// The CPU of a cid that a function got.
fn cpu_of(cid: i32) -> Option<i32> {
    let cpu = with(|k, run| run.cids.cpu(k, cid));
    (cpu >= 0).then_some(cpu)
}

pub extern "C" fn cid_to_cpu(cid: i32) -> i32 {
    with(|k, run| run.cids.cpu(k, cid))
}

pub extern "C" fn cpu_to_cid(cpu: i32) -> i32 {
    with(|k, run| {
        let found = usize::try_from(cpu).ok().and_then(|cpu| run.cids.cid_of.get(cpu));
        found.copied().unwrap_or_else(|| {
            k.scx_error(format!("invalid CPU {cpu}"));
            -EINVAL as i32
        })
    })
}

/// `struct scx_cid_topo`. What the modelled kernel lacks of it reads as -1.
pub extern "C" fn cid_topo(cid: i32, out: u64, size: u64) {
    let place = with(|k, run| {
        let is_cid = run.cids.cpu(k, cid) >= 0;
        is_cid.then(|| run.cids.places[cid as usize])
    });
    let mut bytes = vec![0xff; size as usize];
    let known: Vec<u8> = place.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let len = known.len().min(bytes.len());
    bytes[..len].copy_from_slice(&known[..len]);
    touch::copy_to(out, &bytes);
}

/// `ops.init` only: an array with the cid of each CPU.
pub extern "C" fn cid_override(from: u64, size: u32) {
    let nr = with(|k, _| k.nr_cpu_ids()) as usize;
    if size as usize != nr * 4 {
        let text = format!("scx_bpf_cid_override: expected {} bytes, got {size}", nr * 4);
        with(|k, _| k.scx_error(text));
        return;
    }
    let mut bytes = vec![0u8; nr * 4];
    touch::copy_from(from, &mut bytes);
    let word = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let cid_of: Vec<i32> = bytes.chunks_exact(4).map(word).collect();
    with(|k, run| run.cids.replace(k, &cid_of));
}

pub extern "C" fn kick_cid(cid: i32, flags: u64) {
    if let Some(cpu) = cpu_of(cid) {
        kfuncs::kick_cpu(cpu, flags);
    }
}

pub extern "C" fn cidperf_cap(cid: i32) -> u32 {
    cpu_of(cid).map_or(schedlab_scx::consts::CPUPERF_ONE, |cpu| kfuncs::cpuperf_cap(cpu))
}

pub extern "C" fn cidperf_cur(cid: i32) -> u32 {
    cpu_of(cid).map_or(schedlab_scx::consts::CPUPERF_ONE, |cpu| kfuncs::cpuperf_cur(cpu))
}

pub extern "C" fn cidperf_set(cid: i32, perf: u32) {
    if let Some(cpu) = cpu_of(cid) {
        kfuncs::cpuperf_set(cpu, perf);
    }
}

pub extern "C" fn cid_curr(cid: i32) -> u64 {
    cpu_of(cid).map_or(0, |cpu| kfuncs::cpu_curr(cpu))
}

/// All CPUs are online, so that this is `scx_bpf_nr_online_cids` too.
pub extern "C" fn nr_cids() -> u32 {
    with(|k, _| k.nr_cpu_ids())
}

pub extern "C" fn this_cid() -> i32 {
    with(|k, run| run.cids.cid_of[k.this_cpu().index()])
}

pub extern "C" fn task_cid(p: u64) -> i32 {
    let cpu = kfuncs::task_cpu(p);
    with(|_, run| run.cids.cid_of[cpu as usize])
}

/// The task with a number (`p->scx.tid`); 0: it does not exist.
pub extern "C" fn tid_to_task(tid: u64) -> u64 {
    super::helpers::ok(with(|k, run| {
        if !run.has_flag(OPS_TID_TO_TASK) {
            k.scx_error("scx_bpf_tid_to_task() called without SCX_OPS_TID_TO_TASK".to_owned());
            return Ok(0);
        }
        match super::tasks::task_of_tid(k, tid) {
            Some(task) => run.tasks.show(k, &mut run.groups, task),
            None => Ok(0),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::machine::Shape;

    /// The CPU of each cid.
    fn order(topology: &Topology) -> Vec<i32> {
        let cids = Cids::new(topology, true);
        for (cpu, cid) in cids.cid_of.iter().enumerate() {
            assert_eq!(cids.cpu_of[*cid as usize], cpu as i32);
        }
        cids.cpu_of
    }

    #[test]
    fn cids_follow_nodes_caches_and_cores() {
        assert_eq!(order(&Topology::flat(3)), [0, 1, 2]);
        let shape = Shape {
            nodes: 2,
            llcs_per_node: 1,
            cores_per_llc: 2,
            threads_per_core: 2,
            siblings_apart: true,
        };
        let topology = Topology::regular(shape);
        assert_eq!(order(&topology), [0, 4, 1, 5, 2, 6, 3, 7]);
        let cids = Cids::new(&topology, true);
        assert_eq!(cids.places[3], [2, 1, 0, 0, 0, 0]);
        assert_eq!(cids.places[6], [6, 3, 4, 1, 4, 1]);
        let mixed = Topology { core: vec![0, 1, 2, 3], llc: vec![0, 1, 0, 1], node: vec![0; 4] };
        assert_eq!(order(&mixed), [0, 2, 1, 3]);
    }

    /// A cache that two nodes share counts as two, as in the kernel.
    #[test]
    fn a_cache_of_two_nodes_is_two_caches() {
        let topology = Topology { core: vec![0, 1], llc: vec![0, 0], node: vec![0, 1] };
        let cids = Cids::new(&topology, true);
        assert_eq!(cids.places, [[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]);
    }

    #[test]
    fn schedulers_with_cpus_are_called_with_cpus() {
        let topology = Topology { core: vec![0, 1, 2, 3], llc: vec![0, 1, 0, 1], node: vec![0; 4] };
        assert_eq!(Cids::new(&topology, true).arg(CpuId(2)), 1);
        assert_eq!(Cids::new(&topology, false).arg(CpuId(2)), 2);
    }
}
