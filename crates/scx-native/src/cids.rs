// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs by topological number (cid), for schedulers with a `struct sched_ext_ops_cid`.
//!
//! CPUs of one core, one cache and one node have consecutive cids. The core of the simulator knows
//! CPUs only: numbers are translated where the scheduler is called, and where it calls. From 7.3 on
//! cids are in shards, parts of a cache.
//!
//! Source: Linux kernel/sched/ext/cid.c and cid.h (7.2 and 7.3). All CPUs are online, so that every
//! cid has a topology.

use super::error::NativeError;
use super::host::with;
use super::kfuncs;
use super::maps::errno::EINVAL;
use super::object::{ObjectFile, Place};
use super::program::Program;
use super::touch;
use super::zone::{Block, Zone, put};
use schedlab_model::machine::Topology;
use schedlab_model::{CpuId, CpuMask, KernelVersion};
use schedlab_scx::consts::{DSQ_LOCAL_CPU_MASK, DSQ_LOCAL_ON, OPS_TID_TO_TASK};
use schedlab_scx::{Callback, Kernel, OpsInfo};
use std::collections::BTreeSet;
use std::path::Path;

/// The first kernel with cids.
pub const SINCE: KernelVersion = KernelVersion::series(7, 2);
/// The first kernel with shards, `ops.init_cids` and members called `cpuctl_...`.
pub const SHARDS_SINCE: KernelVersion = KernelVersion::series(7, 3);

/// SCX_CID_SHARD_SIZE_DFL: cids of a shard, if the scheduler says nothing.
const SHARD_SIZE: u32 = 24;
/// SCX_CID_SHARD_MAX_CPUS: most cids of a shard.
const SHARD_SIZE_MAX: u32 = 512;

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

/// Whether `ops.enable` has the CPUs of a task as its argument, and `ops.set_cmask` follows.
pub fn are_told_at_enable(program: &Program) -> bool {
    program.is_cid_form && program.kernel >= SHARDS_SINCE
}

/// Refuses members of the struct that its kernel does not have, or the model. `below`: the group
/// below whose scheduler it is to attach.
pub fn check_members(program: &Program, info: &OpsInfo, below: u64) -> Result<(), NativeError> {
    let name = &info.name;
    let refused =
        |why: String| Err(NativeError::Refused(format!("{}: {why}", program.source.display())));
    // 1 is the root group, and 0 none.
    if below > 1 {
        return refused(format!(
            "scheduler {name} attaches below another one (sub_cgroup_id = {below}), and \
             sub-schedulers are not modelled; without sub_cgroup_id it runs as the only one"
        ));
    }
    if info.callbacks.has(Callback::InitCids) && !are_told_at_enable(program) {
        return refused(format!(
            "ops.init_cids exists in Linux {SHARDS_SINCE} and later, for schedulers that count \
             CPUs by topology (SCX_OPS_CID_DEFINE); the modelled kernel is {}: give --set \
             scx_core={SHARDS_SINCE}",
            program.kernel
        ));
    }
    Ok(())
}

/// Where a CPU is: the first cid and the number of its core, its cache, its node and its shard.
type Where = [i32; 8];
/// Words of a place that kernels without shards have.
const WORDS_WITHOUT_SHARDS: usize = 6;

/// The numbers of a machine's CPUs.
#[derive(Debug, Default)]
pub struct Cids {
    /// Whether the scheduler is called with cids.
    pub is_form: bool,
    cpu_of: Vec<i32>,
    cid_of: Vec<i32>,
    places: Vec<Where>,
    /// Whether the kernel has shards.
    has_shards: bool,
    /// Whether the numbers are final: `ops.init_cids` has returned.
    is_final: bool,
    /// The `struct scx_cmask` for `ops.set_cmask`.
    cmask: Option<Block>,
    /// The one of all CPUs that are online.
    online: Option<Block>,
}

/// Divides the cores of a cache among shards of `size` cids, as evenly as possible.
struct Shards {
    cores_each: usize,
    /// The first ones have one core more.
    nr_large: usize,
    cids_max: usize,
    nth: usize,
    cores: usize,
    cids: usize,
}

impl Shards {
    fn new(nr_cpus: usize, nr_cores: usize, size: u32) -> Self {
        let nr = nr_cpus.div_ceil(size as usize).max(nr_cpus.div_ceil(SHARD_SIZE_MAX as usize));
        let nr = nr.max(1);
        let (cores_each, nr_large) = (nr_cores / nr, nr_cores % nr);
        let cids_max = size.min(SHARD_SIZE_MAX) as usize;
        Self { cores_each, nr_large, cids_max, nth: 0, cores: 0, cids: 0 }
    }

    /// Adds a core of `cids` threads; says whether a further shard begins with it.
    fn add(&mut self, cids: usize) -> bool {
        let most = self.cores_each + usize::from(self.nth < self.nr_large);
        let is_full = self.cores >= most || self.cids + cids > self.cids_max;
        let begins = self.cores > 0 && is_full;
        if begins {
            self.nth += 1;
            (self.cores, self.cids) = (0, 0);
        }
        self.cores += 1;
        self.cids += cids;
        begins
    }
}

impl Cids {
    /// The numbers by topology: node by node, in each cache by cache, in each core by core. Each
    /// time the part with the first CPU that has no number is next. `shard_size`: cids of a shard;
    /// 0: the kernel's default.
    pub fn new(topology: &Topology, is_form: bool, kernel: KernelVersion, shard_size: u32) -> Self {
        let nr = topology.node.len();
        let has_shards = kernel >= SHARDS_SINCE;
        let size = if shard_size == 0 { SHARD_SIZE } else { shard_size };
        let mut this = Self { is_form, has_shards, cid_of: vec![-1; nr], ..Self::default() };
        let mut numbers = [0; 4];
        while let Some(cpu) = this.first_without(0..nr, |_| true) {
            let node = topology.node[cpu];
            let of_node = this.begin(&mut numbers[2]);
            while let Some(cpu) = this.first_without(0..nr, |cpu| topology.node[cpu] == node) {
                let llc = (node, topology.llc[cpu]);
                let is_here = |cpu: usize| (topology.node[cpu], topology.llc[cpu]) == llc;
                let of_llc = this.begin(&mut numbers[1]);
                let here: Vec<usize> = (0..nr).filter(|cpu| is_here(*cpu)).collect();
                let cores: BTreeSet<u32> = here.iter().map(|cpu| topology.core[*cpu]).collect();
                let mut shards = Shards::new(here.len(), cores.len(), size);
                let mut of_shard = this.begin(&mut numbers[3]);
                while let Some(cpu) = this.first_without(0..nr, is_here) {
                    let core = topology.core[cpu];
                    let of_core = this.begin(&mut numbers[0]);
                    let own = here.iter().filter(|cpu| topology.core[**cpu] == core);
                    let own: Vec<usize> = own.copied().collect();
                    if shards.add(own.len()) {
                        of_shard = this.begin(&mut numbers[3]);
                    }
                    for cpu in own {
                        this.cid_of[cpu] = this.cpu_of.len() as i32;
                        this.cpu_of.push(cpu as i32);
                        let parts = [of_core, of_llc, of_node, of_shard];
                        let words = parts.map(|(first, number)| [first, number]);
                        this.places.push(words.concat().try_into().expect("eight words"));
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
        let size = CMASK_BITS as usize + 8 * words_of(self.cpu_of.len());
        let at = self.cmask.get_or_insert_with(|| zone.block(size)).address();
        self.write_cmask(at, |cpu| cpus.contains(cpu));
        at
    }

    /// Address of the `struct scx_cmask` of the CPUs that are online: all. 0 before the numbers are
    /// final.
    fn online(&mut self, zone: &Zone) -> u64 {
        if !self.is_form || !self.is_final {
            return 0;
        }
        if let Some(block) = &self.online {
            return block.address();
        }
        let block = zone.block(CMASK_BITS as usize + 8 * words_of(self.cpu_of.len()));
        let at = block.address();
        self.write_cmask(at, |_| true);
        self.online = Some(block);
        at
    }

    /// Writes a `struct scx_cmask` of all cids to `at`.
    fn write_cmask(&self, at: u64, is_set: impl Fn(CpuId) -> bool) {
        let nr = self.cpu_of.len();
        let mut words = vec![0u64; words_of(nr)];
        for (cid, cpu) in self.cpu_of.iter().enumerate() {
            if is_set(CpuId(*cpu as u32)) {
                words[cid / 64] |= 1 << (cid % 64);
            }
        }
        // SAFETY: the caller's block has the head and these words.
        unsafe {
            put(at, [0, nr as u32, words.len() as u32]);
            for (index, word) in words.into_iter().enumerate() {
                put(at + CMASK_BITS + 8 * index as u64, word);
            }
        }
    }

    /// `ops.init_cids` has returned: the numbers stay.
    pub fn finish(&mut self) {
        self.is_final = true;
    }

    /// Replaces the numbers by the scheduler's own: the cid of each CPU, and the first cid of each
    /// shard. Topology is lost.
    fn replace(&mut self, k: &mut Kernel<'_>, cid_of: &[i32], shards: &[i32]) {
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
        let shard_of = |cid: i32| shards.iter().rposition(|first| *first <= cid);
        let place = |cid: usize| match shard_of(cid as i32) {
            Some(shard) => [-1, -1, -1, -1, -1, -1, shards[shard], shard as i32],
            None => [-1; 8],
        };
        self.places = (0..cid_of.len()).map(place).collect();
        (self.cpu_of, self.cid_of) = (cpu_of, cid_of.to_vec());
    }
}

/// Offset of the bits of a `struct scx_cmask`.
pub const CMASK_BITS: u64 = 16;

/// Words of a `struct scx_cmask` for so many cids.
pub fn words_of(nr_cids: usize) -> usize {
    nr_cids.div_ceil(64) + 1
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
    let (place, nr_words) = with(|k, run| {
        let is_cid = run.cids.cpu(k, cid) >= 0;
        let nr_words = if run.cids.has_shards { 8 } else { WORDS_WITHOUT_SHARDS };
        (is_cid.then(|| run.cids.places[cid as usize]), nr_words)
    });
    let mut bytes = vec![0xff; size as usize];
    let words = place.iter().flat_map(|place| &place[..nr_words]);
    let known: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    let len = known.len().min(bytes.len());
    bytes[..len].copy_from_slice(&known[..len]);
    touch::copy_to(out, &bytes);
}

/// An array with the cid of each CPU, in `ops.init`. From 7.3 on lengths are numbers of elements, a
/// second array has the first cid of each shard, and the place is `ops.init_cids`.
pub extern "C" fn cid_override(from: u64, size: u32, shards_from: u64, nr_shards: u32) {
    let (nr, has_shards, is_final) =
        with(|k, run| (k.nr_cpu_ids() as usize, run.cids.has_shards, run.cids.is_final));
    let error = |text: String| with(|k, _| k.scx_error(format!("scx_bpf_cid_override: {text}")));
    let (wanted, unit) = if has_shards { (nr, "entries") } else { (nr * 4, "bytes") };
    if has_shards && is_final {
        return error("only ops.init_cids may call it".into());
    }
    if size as usize != wanted {
        let of = if has_shards { "cpu_to_cid " } else { "" };
        return error(format!("{of}expected {wanted} {unit}, got {size}"));
    }
    if has_shards && (nr_shards == 0 || nr_shards as usize > nr) {
        return error(format!("invalid shard_start count {nr_shards}"));
    }
    let cid_of = numbers_at(from, nr);
    let shards = if has_shards { numbers_at(shards_from, nr_shards as usize) } else { Vec::new() };
    match wrong_shards(&shards, nr as i32) {
        Some(what) if has_shards => error(what),
        _ => with(|k, run| run.cids.replace(k, &cid_of, &shards)),
    }
}

/// An array of the scheduler.
fn numbers_at(from: u64, nr: usize) -> Vec<i32> {
    let mut bytes = vec![0u8; nr * 4];
    touch::copy_from(from, &mut bytes);
    let word = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks_exact(4).map(word).collect()
}

/// What is wrong with the first cids of shards, in the kernel's words.
fn wrong_shards(starts: &[i32], nr_cids: i32) -> Option<String> {
    let first = *starts.first()?;
    if first != 0 {
        return Some(format!("shard_start[0] must be 0, got {first}"));
    }
    let max = SHARD_SIZE_MAX as i32;
    for (index, pair) in starts.windows(2).enumerate() {
        let (at, span) = (index + 1, pair[1].wrapping_sub(pair[0]));
        if pair[1] <= pair[0] {
            return Some(format!("shard_start not increasing at [{at}]"));
        }
        if pair[1] >= nr_cids {
            return Some(format!("shard_start[{at}]={} >= {nr_cids}", pair[1]));
        }
        if span > max {
            return Some(format!("shard[{index}] span {span} exceeds max {max}"));
        }
    }
    let span = nr_cids - starts.last()?;
    let last = starts.len() - 1;
    (span > max).then(|| format!("shard[{last}] span {span} exceeds max {max}"))
}

/// `scx_bpf_online_cmask`.
pub extern "C" fn online_cmask() -> u64 {
    with(|_, run| run.cids.online(&run.zone))
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

    /// The numbers in 7.3 with shards of `size` cids.
    fn cids_of(topology: &Topology, is_form: bool, size: u32) -> Cids {
        Cids::new(topology, is_form, SHARDS_SINCE, size)
    }

    /// The CPU of each cid.
    fn order(topology: &Topology) -> Vec<i32> {
        let cids = cids_of(topology, true, 0);
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
        let cids = cids_of(&topology, true, 0);
        assert_eq!(cids.places[3], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(cids.places[6], [6, 3, 4, 1, 4, 1, 4, 1]);
        let mixed = Topology { core: vec![0, 1, 2, 3], llc: vec![0, 1, 0, 1], node: vec![0; 4] };
        assert_eq!(order(&mixed), [0, 2, 1, 3]);
    }

    /// A cache that two nodes share counts as two, as in the kernel.
    #[test]
    fn a_cache_of_two_nodes_is_two_caches() {
        let topology = Topology { core: vec![0, 1], llc: vec![0, 0], node: vec![0, 1] };
        let cids = cids_of(&topology, true, 0);
        assert_eq!(cids.places, [[0; 8], [1; 8]]);
    }

    /// The first cid of the shard of each cid, by the layout of `scx_cid_init`: 10 CPUs in shards
    /// of four are three shards, of which the first have a core more; threads of a core stay
    /// together.
    #[test]
    fn caches_are_divided_into_shards_of_whole_cores() {
        let shards = |threads_per_core, size| {
            let cores_per_llc = 10 / threads_per_core;
            let (nodes, llcs_per_node, siblings_apart) = (1, 1, false);
            let shape =
                Shape { nodes, llcs_per_node, cores_per_llc, threads_per_core, siblings_apart };
            let cids = cids_of(&Topology::regular(shape), true, size);
            cids.places.iter().map(|place| place[6]).collect::<Vec<_>>()
        };
        assert_eq!(shards(1, 4), [0, 0, 0, 0, 4, 4, 4, 7, 7, 7]);
        assert_eq!(shards(2, 4), [0, 0, 0, 0, 4, 4, 4, 4, 8, 8]);
        // A core is larger than a shard is wanted.
        assert_eq!(shards(2, 1), [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]);
        assert_eq!(shards(2, 0), [0; 10]);
    }

    #[test]
    fn wrong_shards_are_named_in_the_kernels_words() {
        let wrong = |starts: &[i32], nr| wrong_shards(starts, nr).unwrap_or_default();
        assert_eq!(wrong(&[0, 2], 4), "");
        assert_eq!(wrong(&[1, 2], 4), "shard_start[0] must be 0, got 1");
        assert_eq!(wrong(&[0, 2, 2], 4), "shard_start not increasing at [2]");
        assert_eq!(wrong(&[0, 4], 4), "shard_start[1]=4 >= 4");
        assert_eq!(wrong(&[0, 600], 700), "shard[0] span 600 exceeds max 512");
        assert_eq!(wrong(&[0, 1], 700), "shard[1] span 699 exceeds max 512");
    }

    #[test]
    fn schedulers_with_cpus_are_called_with_cpus() {
        let topology = Topology { core: vec![0, 1, 2, 3], llc: vec![0, 1, 0, 1], node: vec![0; 4] };
        assert_eq!(cids_of(&topology, true, 0).arg(CpuId(2)), 1);
        assert_eq!(cids_of(&topology, false, 0).arg(CpuId(2)), 2);
    }
}
