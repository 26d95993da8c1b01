// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a natively compiled scheduler: its image, its maps, and the structs that were shown
//! to it.

use super::cids::Cids;
use super::dwarf::{MapDef, Type};
use super::error::NativeError;
use super::groups::Groups;
use super::image::{CALL, CALL_CPU, CALL_INSNS, CALL_RQ_NOW, Image, Sizes};
use super::insns;
use super::inspect::Inspector;
use super::layout::{EntityLayout, GroupLayout, RqLayout, TaskLayout};
use super::lines::Lines;
use super::maps::BpfMap;
use super::options::{Chosen, MachineWords};
use super::program::{Program, RUN_TIME};
use super::tasks::Tasks;
use super::touch;
use super::zone::{Block, Zone, put};
use schedlab_model::{CpuId, CpuMask};
use schedlab_scx::Kernel;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Size of the dump in a scheduler's own record of its end.
pub const DUMP_LEN: usize = 32_768;

/// First word of a map's variable after loading, together with its index.
const MAP_MARK: u64 = 0x5ced_1ab0_0000_0000;

/// Maps of task storage whose elements C finds without a call (`schedlab_storage` in vmlinux.h).
const STORAGES_MAX: u64 = 4;

/// Size of the handle of an inner map: that of a map's variable.
const HANDLE: usize = 32;

/// Bytes of stack for the scheduler's own calls.
const STACK: u64 = 1 << 18;

/// Bytes of stack for what it calls of the simulator.
const STACK_OF_CALLS: u64 = 1 << 18;

/// Bytes for local variables whose address is taken.
const FRAMES: u64 = 1 << 19;

/// Lines of bpf_printk() that are kept for error messages.
const LOG_LINES: usize = 16;

/// A `bpf_timer`.
#[derive(Debug)]
pub struct Timer {
    /// Its address; 0: it was removed.
    pub at: u64,
    /// The map that contains it.
    pub map: usize,
    /// Address of the key.
    pub key: u64,
    /// The callback; 0: not set.
    pub callback: u64,
}

/// State of a run.
#[derive(Debug)]
pub struct Run {
    /// The program.
    pub program: Arc<Program>,
    /// All memory that it may touch.
    pub zone: Zone,
    /// Its stack, and the frames of local variables whose address is taken.
    pub stack: Range<u64>,
    pub frames: Range<u64>,
    /// Code and data.
    pub image: Image,
    /// Names of places in the code.
    pub lines: Arc<Lines>,
    /// Sizes of sections that have grown.
    pub sizes: Sizes,
    /// Maps, in order of address where the address is in the image.
    pub maps: Vec<BpfMap>,
    /// Handles of inner maps that were created in the run.
    pub handles: Vec<Block>,
    /// Tasks.
    pub tasks: Tasks,
    /// Groups.
    pub groups: Groups,
    /// Objects and masks of the scheduler.
    objects: BTreeMap<u64, Block>,
    /// Objects that the running callback has freed. In a kernel, who reads them under RCU may still
    /// do so until it returns.
    freed: Vec<Block>,
    /// Freed objects, by size. They are reused only for objects of the scheduler, so that an old
    /// pointer leads nowhere else.
    spare: BTreeMap<usize, Vec<Block>>,
    /// Whether the user program runs, which reads ring buffers.
    pub has_user_program: bool,
    /// Reserved records of ring buffers: the map and the size.
    pub reservations: BTreeMap<u64, (usize, u64)>,
    /// Timers, by token.
    pub timers: Vec<Timer>,
    /// Last lines of bpf_printk().
    pub log: std::collections::VecDeque<String>,
    /// Keeps what the scheduler's author wants to see.
    pub inspector: Option<Arc<Inspector>>,
    /// Number of maps of task storage that C knows.
    nr_storages: u64,
    /// Address where the run time keeps the time and the CPU of a callback.
    call_at: u64,
    rq_layout: RqLayout,
    rqs: Vec<Block>,
    masks: Masks,
    /// Address of the run time's `runqueues`.
    runqueues: u64,
    /// Address of the run time's `cpufreq_cpu_data`: a pointer for each CPU.
    cpufreq: u64,
    /// Address of the run time's `__preempt_count`: a number for each CPU.
    preempt_count: u64,
    /// CPUs.
    pub nr_cpus: u32,
    /// CPUs by topology; empty until `ops.init`.
    pub cids: Cids,
    /// SCX_OPS_* bits of the scheduler.
    pub flags: u64,
}

/// Masks of the kernel, as C sees them.
#[derive(Debug)]
struct Masks {
    possible: Block,
    idle: Block,
    cores: Block,
    is_idle_shown: bool,
    nodes: Vec<(Block, Block)>,
}

impl Run {
    /// Loads `program` for a machine of `nr_cpus` CPUs, with the chosen options.
    pub fn new(
        program: Arc<Program>,
        chosen: &Chosen,
        machine: MachineWords,
    ) -> Result<Self, NativeError> {
        let nr_cpus = machine.nr_cpus;
        let sizes = array_sizes(&program, chosen, nr_cpus);
        let zone = Zone::new(program.is_checked).map_err(NativeError::Internal)?;
        let mut image = Image::load(&program, &sizes, &zone)?;
        let (stack, frames) = stacks(&program, &mut image, &zone)?;
        put_machine(&program, &mut image, machine)?;
        chosen.apply(&program, &mut image, machine)?;
        let tasks = Tasks::new(
            TaskLayout::read(&program, &image)?,
            checked(EntityLayout::read(&program, &image)?)?,
            nr_cpus,
            &zone,
        )
        .map_err(NativeError::Internal)?;
        let groups = Groups::new(GroupLayout::read(&program, &image)?, zone.clone());
        let rq_layout = RqLayout::read(&program, &image)?;
        let at = |name| program.run_time_symbol(name).map(|at| image.address(RUN_TIME, at.0, at.1));
        let (runqueues, cpufreq) = (at("runqueues")?, at("cpufreq_cpu_data")?);
        let (call_at, preempt_count) = (at(CALL)?, at("__preempt_count")?);
        let mask = || zone.block(std::mem::size_of::<[u64; 16]>());
        let mut this = Self {
            lines: Arc::new(Lines::new(Arc::clone(&program), image.clone(), stack.clone())),
            image,
            sizes,
            maps: Vec::new(),
            handles: Vec::new(),
            tasks,
            groups,
            objects: BTreeMap::new(),
            freed: Vec::new(),
            spare: BTreeMap::new(),
            has_user_program: false,
            reservations: BTreeMap::new(),
            timers: Vec::new(),
            log: std::collections::VecDeque::new(),
            inspector: None,
            rqs: (0..nr_cpus).map(|_| zone.block(rq_layout.size)).collect(),
            rq_layout,
            nr_storages: 0,
            call_at,
            masks: Masks {
                possible: mask(),
                idle: mask(),
                cores: mask(),
                is_idle_shown: false,
                nodes: Vec::new(),
            },
            runqueues,
            cpufreq,
            preempt_count,
            nr_cpus,
            cids: Cids::default(),
            flags: 0,
            program,
            zone,
            stack,
            frames,
        };
        let all = CpuMask::first(nr_cpus);
        // SAFETY: the block has the size of a mask.
        unsafe { put(this.masks.possible.address(), *all.words()) };
        this.make_maps()?;
        Ok(this)
    }

    fn make_maps(&mut self) -> Result<(), NativeError> {
        let program = Arc::clone(&self.program);
        for (object, map) in &program.maps {
            let address = self.image.address(*object, map.section, map.offset);
            self.add_map(&map.name, &map.def, address)?;
        }
        for (object, map) in &program.maps {
            let Some(from) = map.def.values_offset else { continue };
            let address = self.image.address(*object, map.section, map.offset);
            let size = program.objects[*object]
                .symbols_in(map.section)
                .find(|(_, range)| range.start == map.offset)
                .map_or(0, |(_, range)| range.end - range.start);
            let outer = self.map(address).expect("it was added above");
            let nr = self.maps[outer].def.max_entries;
            for index in 0..nr {
                let at = from + index * 8;
                if at + 8 > size {
                    break;
                }
                let bytes = self.image.bytes(address + at, 8);
                let handle = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                if handle != 0 {
                    self.maps[outer].set_inner(index as usize, handle);
                }
            }
        }
        Ok(())
    }

    /// Gives each empty place of the map of maps `name` a map, as a user program does. Without that
    /// a lookup there finds nothing.
    pub fn fill_inner_maps(&mut self, name: &str) -> Result<(), String> {
        let outer = self.maps.iter().position(|map| map.name == name);
        let outer = outer.ok_or("the scheduler has none")?;
        let def = self.maps[outer].def.inner.clone().ok_or("it is no map of maps")?;
        for index in self.maps[outer].empty_places() {
            let inner = self.add_inner(&format!("{name}[{index}]"), &def);
            let handle = inner.map_err(|error| error.to_string())?;
            self.maps[outer].set_inner(index, handle);
        }
        Ok(())
    }

    fn add_inner(&mut self, name: &str, def: &MapDef) -> Result<u64, NativeError> {
        let handle = self.zone.block(HANDLE);
        let address = handle.address();
        self.handles.push(handle);
        self.add_map(name, def, address)?;
        Ok(address)
    }

    /// Writes into the variable of a map how its elements are found (`struct map` of rt.c).
    ///
    /// # Safety
    ///
    /// `address` is that of the variable of `map`, or of a handle.
    unsafe fn mark(&mut self, map: &BpfMap, address: u64) {
        const TASK_STORAGE: u64 = 29;
        let entries = u32::try_from(map.def.max_entries);
        let mut mark = MAP_MARK | self.maps.len() as u64;
        // SAFETY: the caller's promise; definitions of arrays have three words at least (type, key,
        // value), those of storage three too.
        unsafe {
            if let (2 | 6, Some((at, stride)), Ok(entries)) =
                (map.def.map_type, map.elements_at(), entries)
            {
                mark += if map.def.map_type == 2 { 1 << 32 } else { 2 << 32 };
                put(address + 8, at);
                put(address + 16, entries);
                put(address + 20, stride);
            } else if map.def.map_type == TASK_STORAGE && self.nr_storages < STORAGES_MAX {
                mark += 3 << 32;
                put(address + 8, self.nr_storages);
                self.nr_storages += 1;
            }
            put(address, mark);
        }
    }

    fn add_map(&mut self, name: &str, def: &MapDef, address: u64) -> Result<(), NativeError> {
        let map = BpfMap::new(name, def, address, self.nr_cpus, &self.zone).map_err(|error| {
            NativeError::Refused(format!("{}: {error}", self.program.source.display()))
        })?;
        // SAFETY: a map's variable and a handle have the words that are written; both are ours.
        unsafe { self.mark(&map, address) };
        self.maps.push(map);
        Ok(())
    }

    /// Whether the scheduler has set an SCX_OPS_* bit.
    pub fn has_flag(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// All CPUs, as a mask for C.
    pub fn possible_mask(&self) -> u64 {
        self.masks.possible.address()
    }

    /// The idle CPUs (or cores), as a mask for C that stays up to date until the callback ends.
    pub fn idle_mask(&mut self, k: &mut Kernel<'_>, cores: bool) -> u64 {
        self.masks.is_idle_shown = true;
        self.refresh_idle(k);
        let masks = &self.masks;
        if cores { masks.cores.address() } else { masks.idle.address() }
    }

    /// The idle CPUs of one node, as a mask for C.
    pub fn idle_mask_of_node(&mut self, k: &mut Kernel<'_>, node: u32, cores: bool) -> u64 {
        let nr = k.nr_node_ids() as usize;
        let size = std::mem::size_of::<[u64; 16]>();
        let zone = &self.zone;
        self.masks.nodes.resize_with(nr, || (zone.block(size), zone.block(size)));
        self.masks.is_idle_shown = true;
        self.refresh_idle(k);
        let (idle, of_cores) = &self.masks.nodes[node as usize];
        if cores { of_cores.address() } else { idle.address() }
    }

    /// Updates the masks that the scheduler may read.
    pub fn refresh_idle(&mut self, k: &mut Kernel<'_>) {
        if !self.masks.is_idle_shown {
            return;
        }
        let (idle, cores) = (k.idle_cpumask(), k.idle_smtmask());
        // SAFETY: the blocks have the size of a mask.
        unsafe {
            put(self.masks.idle.address(), *idle.words());
            put(self.masks.cores.address(), *cores.words());
        }
        for (node, blocks) in self.masks.nodes.iter().enumerate() {
            let of_node = node_mask(k, node as u32);
            // SAFETY: as above.
            unsafe {
                put(blocks.0.address(), *idle.and(&of_node).words());
                put(blocks.1.address(), *cores.and(&of_node).words());
            }
        }
    }

    /// A callback begins: sets its time and its CPU. Masks that were passed before are no longer
    /// read.
    #[inline]
    pub fn begin(&mut self, k: &Kernel<'_>) {
        self.masks.is_idle_shown = false;
        // SAFETY: words of the run time's, which only C reads.
        unsafe {
            put(self.call_at, k.clock_ns());
            put(self.call_at + CALL_RQ_NOW, k.rq_clock_ns());
            put(self.call_at + CALL_CPU, k.this_cpu().0);
        }
        if !self.freed.is_empty() {
            self.forget_freed();
        }
    }

    /// A callback ends.
    #[inline]
    pub fn end(&self, k: &mut Kernel<'_>) {
        self.spend(k);
        k.spend(insns::CALLBACK);
    }

    /// The instructions since the last call have been executed.
    #[inline]
    pub fn spend(&self, k: &mut Kernel<'_>) {
        let at = (self.call_at + CALL_INSNS) as *mut u32;
        // SAFETY: a word of the run time's, which nobody else uses meanwhile.
        k.spend(unsafe { at.replace(0) });
    }

    /// What was freed may be used for other objects, and no longer by who had it.
    #[cold]
    fn forget_freed(&mut self) {
        for block in self.freed.drain(..) {
            self.zone.forbid(block.address(), block.size() as u64);
            self.spare.entry(block.size()).or_default().push(block);
        }
    }

    /// The allocated or freed object that `at` is in, or that ends before it: address, size, and
    /// whether it was freed.
    pub fn object_before(&self, at: u64) -> Option<(u64, u64, bool)> {
        let of = |block: &Block, is_freed| (block.address(), block.size() as u64, is_freed);
        let live = self.objects.range(..=at).next_back().map(|(_, block)| of(block, false));
        let spare = self.spare.values().flatten().filter(|block| block.address() <= at);
        let spare = spare.map(|block| of(block, true));
        spare.chain(live).max_by_key(|(start, ..)| *start)
    }

    /// The part of a kernel's variable `p` that belongs to a CPU; 0: there is no such CPU.
    pub fn per_cpu(&mut self, k: &mut Kernel<'_>, p: u64, cpu: u32) -> Result<u64, String> {
        match p {
            _ if p != self.runqueues && p != self.cpufreq && p != self.preempt_count => {
                Err("bpf_per_cpu_ptr of anything but runqueues, cpufreq_cpu_data and \
                     __preempt_count"
                    .into())
            }
            _ if cpu >= self.nr_cpus => Ok(0),
            _ if p == self.cpufreq => Ok(p + u64::from(cpu) * 8),
            _ if p == self.preempt_count => {
                let count = if k.this_cpu() == CpuId(cpu) { k.preempt_count() } else { 0 };
                let at = p + u64::from(cpu) * 4;
                // SAFETY: the run time has a number for each CPU.
                unsafe { put(at, count) };
                Ok(at)
            }
            _ => self.rq(k, cpu),
        }
    }

    /// `struct rq` of a CPU, up to date.
    pub fn rq(&mut self, k: &mut Kernel<'_>, cpu: u32) -> Result<u64, String> {
        let curr = match k.cpu_curr(cpu as i32).flatten() {
            Some(task) => self.tasks.show(k, &mut self.groups, task)?,
            None => self.tasks.idle(cpu),
        };
        let (l, base) = (&self.rq_layout, self.rqs[cpu as usize].address());
        let at = |field: usize| base + field as u64;
        let now = k.clock_ns();
        // SAFETY: fields of a struct of ours.
        unsafe {
            put(at(l.nr_running), k.rq_nr_running(CpuId(cpu)));
            put(at(l.curr), curr);
            put(at(l.idle), self.tasks.idle(cpu));
            put(at(l.clock), now);
            put(at(l.clock_task), now);
            put(at(l.clock_pelt), now);
            put(at(l.cpu), cpu);
            put(at(l.online), true);
            put(at(l.cpu_capacity), 1024u64);
        }
        Ok(base)
    }

    /// Memory for an object; 0: the size is too large.
    pub fn alloc(&mut self, size: u64) -> u64 {
        const SIZE_MAX: u64 = 1 << 28;
        if size > SIZE_MAX {
            return 0;
        }
        let size = (size.div_ceil(8) * 8).max(8) as usize;
        let block = match self.spare.get_mut(&size).and_then(Vec::pop) {
            Some(mut block) => {
                block.clear();
                self.zone.allow(block.address(), block.size() as u64);
                block
            }
            None => match self.zone.try_block(size as u64) {
                Ok(block) => block,
                Err(_) => return 0,
            },
        };
        let at = block.address();
        self.objects.insert(at, block);
        at
    }

    /// Frees an object. Returns false if it is not one.
    pub fn free(&mut self, at: u64) -> bool {
        let Some(block) = self.objects.remove(&at) else { return false };
        self.freed.push(block);
        true
    }

    /// Index of a map by the pointer that the scheduler passes.
    #[inline]
    pub fn map(&self, at: u64) -> Option<usize> {
        let mut word = [0u8; 8];
        if !touch::try_copy_from(at, &mut word) {
            return None;
        }
        let index = u64::from_le_bytes(word) as u32 as usize;
        (self.maps.get(index)?.address == at).then_some(index)
    }

    /// Ends timers whose struct is in the freed `range`.
    pub fn end_timers(&mut self, k: &mut Kernel<'_>, range: &Range<u64>) {
        for (token, timer) in self.timers.iter_mut().enumerate() {
            if timer.at != 0 && range.contains(&timer.at) {
                timer.at = 0;
                k.cancel_timer(token as u64);
            }
        }
    }

    /// Keeps a line of bpf_printk().
    pub fn print(&mut self, k: &Kernel<'_>, line: String) {
        if let Some(inspector) = &self.inspector {
            inspector.print(k, &line);
        }
        if self.log.len() == LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(line);
    }

    /// A copy of `bytes` that C may read until the run ends.
    pub fn keep(&mut self, bytes: &[u8]) -> u64 {
        let block = self.zone.block_of(bytes);
        let at = block.address();
        self.objects.insert(at, block);
        at
    }
}

/// Maps the stack of a run, and the frames of local variables whose address is taken; tells the
/// image where they are.
fn stacks(
    program: &Program,
    image: &mut Image,
    zone: &Zone,
) -> Result<(Range<u64>, Range<u64>), NativeError> {
    let region = |len| zone.region(len).map_err(NativeError::Internal);
    // Regions are apart, so that what is below the stack is not mapped.
    let stack = region(STACK + STACK_OF_CALLS)?;
    let stack = stack..stack + STACK + STACK_OF_CALLS;
    let limit = stack.start + STACK_OF_CALLS;
    image.put(image.words.stack_limit(), &limit.to_le_bytes());
    if !zone.is_checked() {
        return Ok((stack, 0..0));
    }
    let frames = region(FRAMES)?;
    zone.forbid_region(frames, FRAMES).map_err(NativeError::Internal)?;
    let (section, offset) = program.run_time_symbol("schedlab_frames")?;
    let at = image.address(RUN_TIME, section, offset);
    image.put(at, &[frames.to_le_bytes(), (frames + FRAMES).to_le_bytes()].concat());
    Ok((stack, frames..frames + FRAMES))
}

/// CPUs of a node.
pub fn node_mask(k: &Kernel<'_>, node: u32) -> CpuMask {
    let mut mask = CpuMask::empty();
    for cpu in k.possible_cpus().iter() {
        if k.cpu_node(cpu.0 as i32) == Some(node) {
            mask.set(cpu);
        }
    }
    mask
}

/// Writes what C reads about the machine.
fn put_machine(
    program: &Program,
    image: &mut Image,
    machine: MachineWords,
) -> Result<(), NativeError> {
    let (section, offset) = program.run_time_symbol("schedlab_nr_cpus")?;
    image.put(image.address(RUN_TIME, section, offset), &machine.nr_cpus.to_le_bytes());
    let (section, offset) = program.run_time_symbol("CONFIG_HZ")?;
    let hz = u64::from(machine.hz);
    image.put(image.address(RUN_TIME, section, offset), &hz.to_le_bytes());
    Ok(())
}

/// Checks that the words that the core keeps in a task's struct are where it expects them.
fn checked(layout: EntityLayout) -> Result<EntityLayout, NativeError> {
    use schedlab_scx::entity::Words;
    let own = EntityLayout {
        slice: std::mem::offset_of!(Words, slice),
        dsq_vtime: std::mem::offset_of!(Words, dsq_vtime),
        weight: std::mem::offset_of!(Words, weight),
        flags: std::mem::offset_of!(Words, flags),
        disallow: std::mem::offset_of!(Words, disallow),
        // Only in C.
        tid: layout.tid,
    };
    if layout == own {
        return Ok(layout);
    }
    Err(NativeError::Internal("struct sched_ext_entity is laid out in an unexpected way".into()))
}

/// Sections with one array of unknown length (RESIZABLE_ARRAY), with the length they get: an
/// element for each CPU, or as many as the option has.
fn array_sizes(program: &Program, chosen: &Chosen, nr_cpus: u32) -> Sizes {
    let mut sizes = Sizes::new();
    for (object, variable) in &program.variables {
        let name = &program.objects[*object].sections[variable.section].name;
        let alone = name
            .strip_suffix(variable.name.as_str())
            .is_some_and(|start| matches!(start, ".data." | ".rodata." | ".bss."));
        let Type::Array { of, nr: 1 } = &variable.of else { continue };
        if !alone {
            continue;
        }
        let nr = match variable.name.strip_suffix("_dump") {
            Some(_) if of.size() == 1 => DUMP_LEN,
            _ => chosen.nr_elements(&variable.name).max(nr_cpus as usize),
        };
        sizes.insert((*object, variable.section), nr * of.size() as usize);
    }
    sizes
}
