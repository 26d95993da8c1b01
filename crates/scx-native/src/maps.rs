// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF maps in memory, separate for each run.
//!
//! Semantics: kernel/bpf/{arraymap,hashtab,queue_stack_maps,bpf_local_storage,ringbuf}.c of Linux
//! 6.18; error numbers are the kernel's. The kernel leaves two points open. Here an iteration over
//! a hash is in the order of the keys' bytes, and a full LRU hash drops the element that was
//! updated longest ago. Ring buffers accept data and drop it, because no program reads them here. A
//! map whose size the scheduler's user program would set (no `max_entries`) gets one entry for each
//! CPU. Empty places in an array of maps get a map made from the template.

use super::dwarf::MapDef;
use super::zone::Block;
use std::collections::{BTreeMap, VecDeque};

/// Error numbers of Linux.
pub mod errno {
    #![allow(missing_docs, reason = "the names say it")]
    pub const ENOENT: i64 = 2;
    pub const E2BIG: i64 = 7;
    pub const EFAULT: i64 = 14;
    pub const EBUSY: i64 = 16;
    pub const EEXIST: i64 = 17;
    pub const EINVAL: i64 = 22;
    pub const EOPNOTSUPP: i64 = 95;
}
use errno::*;

/// BPF_NOEXIST.
const NOEXIST: u64 = 1;
/// BPF_EXIST. For queues it means: remove the oldest element if the queue is full.
const EXIST: u64 = 2;

/// Most bytes of one map.
const BYTES_MAX: u64 = 1 << 32;

/// The content of a map.
#[derive(Debug)]
enum Store {
    Array {
        block: Block,
        /// Copies: one for each CPU, or 1 for plain arrays.
        copies: u64,
    },
    Hash {
        elements: BTreeMap<Vec<u8>, Element>,
        /// Removed elements. A pointer to one still refers to memory of this map, as in the kernel.
        spare: Vec<Element>,
        is_percpu: bool,
        is_lru: bool,
        updates: u64,
    },
    Queue {
        elements: VecDeque<Vec<u8>>,
        is_stack: bool,
    },
    /// Handles of inner maps, by index; and the memory of which such handles consist.
    Maps {
        inner: Vec<Option<u64>>,
    },
    /// Storage of tasks or groups, by number.
    Storage {
        blocks: Vec<Option<Block>>,
        spare: Vec<Block>,
    },
    Ring,
    Arena(Arena),
}

/// An element of a hash.
#[derive(Debug)]
struct Element {
    block: Block,
    key: Block,
    updated: u64,
}

/// Pages that schedulers allocate.
#[derive(Debug)]
struct Arena {
    base: u64,
    used: Vec<bool>,
}

const PAGE: u64 = 4096;

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; the run that used it is over.
        unsafe { libc::munmap(self.base as *mut _, self.used.len() * PAGE as usize) };
    }
}

/// A map.
#[derive(Debug)]
pub struct BpfMap {
    /// Name.
    pub name: String,
    /// Definition, with defaults.
    pub def: MapDef,
    /// Its address in C.
    pub address: u64,
    nr_cpus: u64,
    store: Store,
}

fn round8(size: u64) -> u64 {
    size.div_ceil(8) * 8
}

/// Name of a type, for messages.
fn type_name(map_type: u64) -> String {
    let name = match map_type {
        3 => "PROG_ARRAY",
        4 => "PERF_EVENT_ARRAY",
        7 => "STACK_TRACE",
        8 => "CGROUP_ARRAY",
        11 => "LPM_TRIE",
        28 => "INODE_STORAGE",
        30 => "BLOOM_FILTER",
        _ => return format!("type {map_type}"),
    };
    format!("BPF_MAP_TYPE_{name}")
}

impl BpfMap {
    /// An empty map on a machine with `nr_cpus` CPUs.
    pub fn new(name: &str, def: &MapDef, address: u64, nr_cpus: u32) -> Result<Self, String> {
        let mut def = def.clone();
        let nr_cpus = u64::from(nr_cpus);
        let is_sized = !matches!(def.map_type, 27 | 29 | 31 | 32);
        if is_sized && def.max_entries == 0 {
            def.max_entries = nr_cpus;
        }
        let bytes = round8(def.value_size).saturating_mul(def.max_entries);
        let array = |copies: u64| {
            let all = bytes.saturating_mul(copies);
            if all > BYTES_MAX {
                return Err(format!("map {name} takes {all} bytes, the limit is {BYTES_MAX}"));
            }
            Ok(Store::Array { block: Block::new(all as usize), copies })
        };
        let hash = |is_percpu: bool, is_lru: bool| Store::Hash {
            elements: BTreeMap::new(),
            spare: Vec::new(),
            is_percpu,
            is_lru,
            updates: 0,
        };
        let queue = |is_stack: bool| Store::Queue { elements: VecDeque::new(), is_stack };
        let store = match def.map_type {
            1 => hash(false, false),
            2 => array(1)?,
            5 => hash(true, false),
            6 => array(nr_cpus)?,
            9 => hash(false, true),
            10 => hash(true, true),
            12 => {
                let nr = usize::try_from(def.max_entries.min(1 << 24)).expect("it fits");
                Store::Maps { inner: vec![None; nr] }
            }
            22 => queue(false),
            23 => queue(true),
            27 | 31 => Store::Ring,
            29 | 32 => Store::Storage { blocks: Vec::new(), spare: Vec::new() },
            33 => Store::Arena(Arena::new(def.max_entries)?),
            other => {
                return Err(format!(
                    "map {name} is of {}, which the simulator does not have; it has ARRAY, \
                     PERCPU_ARRAY, HASH, LRU_HASH and their PERCPU forms, QUEUE, STACK, \
                     ARRAY_OF_MAPS, TASK_STORAGE, CGRP_STORAGE, RINGBUF, USER_RINGBUF, ARENA",
                    type_name(other)
                ));
            }
        };
        if matches!(def.map_type, 2 | 6 | 12) {
            def.key_size = 4;
        }
        Ok(Self { name: name.into(), def, address, nr_cpus, store })
    }

    /// Address of the value of `key`, for `cpu` if each CPU has one; 0: there is none.
    #[inline]
    pub fn lookup(&mut self, key: &[u8], cpu: u32) -> u64 {
        match &mut self.store {
            Store::Array { block, copies } => {
                let index = index_of(key);
                if index >= self.def.max_entries {
                    return 0;
                }
                let stride = round8(self.def.value_size);
                let copy = if *copies == 1 { 0 } else { u64::from(cpu) };
                block.address() + (copy * self.def.max_entries + index) * stride
            }
            Store::Hash { elements, is_percpu, .. } => elements.get(key).map_or(0, |element| {
                let copy = if *is_percpu { u64::from(cpu) } else { 0 };
                element.block.address() + copy * round8(self.def.value_size)
            }),
            Store::Maps { inner } => {
                let index = usize::try_from(index_of(key)).unwrap_or(usize::MAX);
                inner.get(index).copied().flatten().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Address and size of the elements of an array, so that C finds them without a call.
    pub fn elements_at(&self) -> Option<(u64, u32)> {
        let stride = u32::try_from(round8(self.def.value_size)).ok()?;
        match &self.store {
            Store::Array { block, .. } => Some((block.address(), stride)),
            _ => None,
        }
    }

    /// Sets the inner map at an index.
    pub fn set_inner(&mut self, index: usize, address: u64) {
        if let Store::Maps { inner } = &mut self.store
            && let Some(place) = inner.get_mut(index)
        {
            *place = Some(address);
        }
    }

    /// `bpf_map_update_elem` without the value: returns the address of the value, or an error
    /// number.
    pub fn insert(&mut self, key: &[u8], flags: u64, cpu: u32) -> Result<u64, i64> {
        if flags > EXIST {
            return Err(EINVAL);
        }
        let value_size = round8(self.def.value_size);
        let (max_entries, nr_cpus) = (self.def.max_entries, self.nr_cpus);
        match &mut self.store {
            Store::Array { .. } if flags == NOEXIST => Err(EEXIST),
            Store::Array { .. } => match self.lookup(key, cpu) {
                0 => Err(E2BIG),
                at => Ok(at),
            },
            Store::Hash { elements, spare, is_percpu, is_lru, updates } => {
                let exists = elements.contains_key(key);
                if exists && flags == NOEXIST {
                    return Err(EEXIST);
                }
                if !exists && flags == EXIST {
                    return Err(ENOENT);
                }
                *updates += 1;
                if !exists {
                    if elements.len() as u64 >= max_entries {
                        if !*is_lru {
                            return Err(E2BIG);
                        }
                        let oldest = elements.iter().min_by_key(|(_, element)| element.updated);
                        let oldest = oldest.map(|(key, _)| key.clone());
                        spare.extend(oldest.and_then(|key| elements.remove(&key)));
                    }
                    let copies = if *is_percpu { nr_cpus } else { 1 };
                    let mut block = match spare.pop() {
                        Some(element) => element.block,
                        None => Block::new((value_size * copies) as usize),
                    };
                    block.clear();
                    let element = Element { block, key: block_of(key), updated: 0 };
                    elements.insert(key.to_vec(), element);
                }
                let element = elements.get_mut(key).expect("it is there now");
                element.updated = *updates;
                let copy = if *is_percpu { u64::from(cpu) } else { 0 };
                Ok(element.block.address() + copy * value_size)
            }
            _ => Err(EOPNOTSUPP),
        }
    }

    /// `bpf_map_delete_elem`: returns the address range of the removed value, or an error number.
    pub fn delete(&mut self, key: &[u8]) -> Result<std::ops::Range<u64>, i64> {
        let Store::Hash { elements, spare, .. } = &mut self.store else { return Err(EINVAL) };
        let element = elements.remove(key).ok_or(ENOENT)?;
        let start = element.block.address();
        spare.push(element);
        Ok(start..start + round8(self.def.value_size))
    }

    /// Addresses of keys and values, for an iteration.
    pub fn elements(&self, cpu: u32) -> Vec<(u64, u64)> {
        let size = round8(self.def.value_size);
        match &self.store {
            Store::Hash { elements, is_percpu, .. } => {
                let copy = if *is_percpu { u64::from(cpu) } else { 0 };
                let at = |e: &Element| (e.key.address(), e.block.address() + copy * size);
                elements.values().map(at).collect()
            }
            Store::Array { block, copies } => {
                let copy = if *copies == 1 { 0 } else { u64::from(cpu) };
                let first = block.address() + copy * self.def.max_entries * size;
                (0..self.def.max_entries).map(|index| (0, first + index * size)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The key of the element at `address`: its index in an array, or the address of its key in a
    /// hash.
    pub fn key_of(&self, address: u64) -> Option<KeyOf> {
        match &self.store {
            Store::Array { block, .. } if block.contains(address) => {
                let stride = round8(self.def.value_size).max(1);
                let index = (address - block.address()) / stride % self.def.max_entries.max(1);
                Some(KeyOf::Index(index as u32))
            }
            Store::Hash { elements, .. } => {
                let found = elements.values().find(|element| element.block.contains(address))?;
                Some(KeyOf::At(found.key.address()))
            }
            _ => None,
        }
    }

    /// `bpf_map_push_elem`.
    pub fn push(&mut self, value: Vec<u8>, flags: u64) -> i64 {
        let Store::Queue { elements, .. } = &mut self.store else { return -EOPNOTSUPP };
        if flags & !EXIST != 0 {
            return -EINVAL;
        }
        if elements.len() as u64 >= self.def.max_entries {
            if flags & EXIST == 0 {
                return -E2BIG;
            }
            elements.pop_front();
        }
        elements.push_back(value);
        0
    }

    /// `bpf_map_pop_elem` and, if `keep`, `bpf_map_peek_elem`.
    pub fn pop(&mut self, keep: bool) -> Result<Vec<u8>, i64> {
        let Store::Queue { elements, is_stack } = &mut self.store else { return Err(EOPNOTSUPP) };
        let value = match (*is_stack, keep) {
            (false, false) => elements.pop_front(),
            (true, false) => elements.pop_back(),
            (false, true) => elements.front().cloned(),
            (true, true) => elements.back().cloned(),
        };
        value.ok_or(ENOENT)
    }

    /// Address of the storage of task or group `number`, created if `create`; 0: there is none. And
    /// whether it is new.
    pub fn storage(&mut self, number: usize, create: bool) -> (u64, bool) {
        let Store::Storage { blocks, spare } = &mut self.store else { return (0, false) };
        if let Some(Some(block)) = blocks.get(number) {
            return (block.address(), false);
        }
        if !create {
            return (0, false);
        }
        if blocks.len() <= number {
            blocks.resize_with(number + 1, || None);
        }
        let mut block = spare.pop().unwrap_or_else(|| Block::new(self.def.value_size as usize));
        block.clear();
        (blocks[number].insert(block).address(), true)
    }

    /// Removes the storage of task or group `number`. Returns whether there was one.
    pub fn drop_storage(&mut self, number: usize) -> bool {
        let Store::Storage { blocks, spare } = &mut self.store else { return false };
        let Some(block) = blocks.get_mut(number).and_then(Option::take) else { return false };
        spare.push(block);
        true
    }

    /// Whether it is storage of tasks.
    pub fn is_task_storage(&self) -> bool {
        self.def.map_type == 29
    }

    /// Allocates pages of an arena. Returns their address, or 0.
    pub fn alloc_pages(&mut self, at: u64, nr: u64) -> u64 {
        match &mut self.store {
            Store::Arena(arena) => arena.alloc(at, nr),
            _ => 0,
        }
    }

    /// Frees pages.
    pub fn free_pages(&mut self, at: u64, nr: u64) {
        if let Store::Arena(arena) = &mut self.store {
            arena.free(at, nr);
        }
    }
}

/// How the key of an element is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyOf {
    /// By this index in an array.
    Index(u32),
    /// At this address.
    At(u64),
}

fn index_of(key: &[u8]) -> u64 {
    key.get(..4).map_or(u64::MAX, |word| {
        u64::from(u32::from_le_bytes(word.try_into().expect("four bytes")))
    })
}

/// A block with these bytes.
pub fn block_of(bytes: &[u8]) -> Block {
    let block = Block::new(bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        // SAFETY: the block has room for them.
        unsafe { super::zone::put(block.address() + index as u64, *byte) };
    }
    block
}

impl Arena {
    fn new(pages: u64) -> Result<Self, String> {
        const PAGES_MAX: u64 = 1 << 20;
        if pages == 0 || pages > PAGES_MAX {
            return Err(format!("an arena of {pages} pages; 1 to {PAGES_MAX} are possible"));
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), (pages * PAGE) as usize, prot, flags, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(format!("no room for an arena: {}", std::io::Error::last_os_error()));
        }
        Ok(Self { base: base as u64, used: vec![false; pages as usize] })
    }

    fn alloc(&mut self, at: u64, nr: u64) -> u64 {
        let nr = nr as usize;
        let is_free = |from: usize| {
            self.used.get(from..from.saturating_add(nr)).is_some_and(|p| !p.contains(&true))
        };
        let from = match at {
            0 => (0..self.used.len()).find(|from| is_free(*from)),
            at => {
                let page = at.wrapping_sub(self.base) / PAGE;
                usize::try_from(page).ok().filter(|from| at % PAGE == 0 && is_free(*from))
            }
        };
        let Some(from) = from.filter(|_| nr > 0) else { return 0 };
        self.used[from..from + nr].fill(true);
        let start = self.base + from as u64 * PAGE;
        // SAFETY: pages of our mapping that are not in use.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, nr * PAGE as usize) };
        start
    }

    fn free(&mut self, at: u64, nr: u64) {
        let from = (at.wrapping_sub(self.base) / PAGE) as usize;
        let end = from.saturating_add(nr as usize).min(self.used.len());
        if from < end {
            self.used[from..end].fill(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(map_type: u64, max_entries: u64) -> BpfMap {
        let def = MapDef { map_type, key_size: 4, value_size: 4, max_entries, ..MapDef::default() };
        BpfMap::new("m", &def, 0, 2).unwrap()
    }

    #[test]
    fn hashes_answer_with_the_kernels_error_numbers() {
        let mut hash = map(1, 2);
        assert_eq!(hash.insert(&[1, 0, 0, 0], EXIST, 0), Err(ENOENT));
        let first = hash.insert(&[1, 0, 0, 0], 0, 0).unwrap();
        assert_eq!(hash.lookup(&[1, 0, 0, 0], 0), first);
        assert_eq!(hash.insert(&[1, 0, 0, 0], NOEXIST, 0), Err(EEXIST));
        hash.insert(&[2, 0, 0, 0], 0, 0).unwrap();
        assert_eq!(hash.insert(&[3, 0, 0, 0], 0, 0), Err(E2BIG));
        assert_eq!(hash.delete(&[9, 0, 0, 0]), Err(ENOENT));
        assert!(hash.delete(&[1, 0, 0, 0]).unwrap().contains(&first));
    }

    #[test]
    fn a_full_lru_hash_drops_the_oldest() {
        let mut lru = map(9, 2);
        for key in [1u8, 2, 1, 3] {
            lru.insert(&[key, 0, 0, 0], 0, 0).unwrap();
        }
        assert_eq!(lru.lookup(&[2, 0, 0, 0], 0), 0);
        assert_ne!(lru.lookup(&[1, 0, 0, 0], 0), 0);
    }

    #[test]
    fn queues_and_stacks_end_at_their_ends() {
        let (mut queue, mut stack) = (map(22, 2), map(23, 2));
        for map in [&mut queue, &mut stack] {
            assert_eq!(map.pop(false), Err(ENOENT));
            assert_eq!(map.push(vec![1], 0), 0);
            assert_eq!(map.push(vec![2], 0), 0);
            assert_eq!(map.push(vec![3], 0), -E2BIG);
        }
        assert_eq!(queue.pop(true), Ok(vec![1]));
        assert_eq!(queue.pop(false), Ok(vec![1]));
        assert_eq!(stack.pop(false), Ok(vec![2]));
    }

    #[test]
    fn arrays_for_each_cpu_have_copies() {
        let mut percpu = map(6, 3);
        let (a, b) = (percpu.lookup(&[1, 0, 0, 0], 0), percpu.lookup(&[1, 0, 0, 0], 1));
        assert_eq!(b - a, 3 * 8);
        assert_eq!(percpu.lookup(&[3, 0, 0, 0], 0), 0);
    }

    #[test]
    fn pages_of_an_arena_are_given_once() {
        let def = MapDef { map_type: 33, max_entries: 4, ..MapDef::default() };
        let mut arena = BpfMap::new("a", &def, 0, 1).unwrap();
        let first = arena.alloc_pages(0, 3);
        assert_ne!(first, 0);
        assert_eq!(arena.alloc_pages(0, 2), 0);
        arena.free_pages(first, 3);
        assert_eq!(arena.alloc_pages(0, 4), first);
    }
}
