// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF maps in memory, separate for each run.
//!
//! Semantics: kernel/bpf/{arraymap,hashtab,queue_stack_maps,bpf_local_storage,ringbuf}.c of Linux
//! 6.18; error numbers are the kernel's. The kernel leaves two points open. Here an iteration over
//! a hash is in the order of the keys' bytes, and a full LRU hash drops the element that was
//! updated longest ago. Ring buffers keep records only if the user program runs. A map whose size
//! the scheduler's user program would set (no `max_entries`) gets one entry for each CPU. Empty
//! places in an array of maps get a map made from the template.

use super::dwarf::MapDef;
use super::zone::{Block, GUARD, Zone};
use std::collections::{BTreeMap, VecDeque};

/// Error numbers of Linux.
pub mod errno {
    #![allow(missing_docs, reason = "the names say it")]
    pub const ENOENT: i64 = 2;
    pub const E2BIG: i64 = 7;
    pub const EAGAIN: i64 = 11;
    pub const ENOMEM: i64 = 12;
    pub const EFAULT: i64 = 14;
    pub const EBUSY: i64 = 16;
    pub const EEXIST: i64 = 17;
    pub const ENODEV: i64 = 19;
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

/// Fewest bytes after each value that belong to none, in maps of at most [`SPREAD_MAX`] bytes.
const BETWEEN: u64 = 16;
const SPREAD_MAX: u64 = 1 << 26;

/// Most bytes after each value that belong to none: an index that is too great by less finds no
/// other value. An odd number of cache lines, so that values do not share one set of a cache.
const BETWEEN_MAX: u64 = 17 * 64;
/// Bytes of a map up to which values are as far apart as that.
const FAR_MAX: u64 = 1 << 20;

/// Bytes between the starts of two values, of `nr` in all.
fn stride_of(value_size: u64, nr: u64) -> u64 {
    let size = round8(value_size);
    if size.saturating_mul(nr) > SPREAD_MAX {
        return size;
    }
    size + round8((FAR_MAX / nr.max(1)).clamp(BETWEEN, BETWEEN_MAX))
}

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
    /// Records between the scheduler and its user program, and the sum of their bytes.
    Ring {
        records: VecDeque<Vec<u8>>,
        bytes: u64,
    },
    /// Hardware counters. User programs open them, and none does here: every place is empty.
    Perf,
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

/// Bytes before a record of a ring buffer.
const RECORD_HEADER: u64 = 8;

/// Bytes that a record takes in a ring buffer.
fn record_size(len: usize) -> u64 {
    (len as u64 + RECORD_HEADER).next_multiple_of(8)
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
    /// Distance of two values (bytes).
    stride: u64,
    zone: Zone,
    store: Store,
}

fn round8(size: u64) -> u64 {
    size.div_ceil(8) * 8
}

/// BPF_MAP_TYPE_* by number, without the beginning.
const TYPES: &[(u64, &str)] = &[
    (1, "HASH"),
    (2, "ARRAY"),
    (3, "PROG_ARRAY"),
    (4, "PERF_EVENT_ARRAY"),
    (5, "PERCPU_HASH"),
    (6, "PERCPU_ARRAY"),
    (7, "STACK_TRACE"),
    (8, "CGROUP_ARRAY"),
    (9, "LRU_HASH"),
    (10, "LRU_PERCPU_HASH"),
    (11, "LPM_TRIE"),
    (12, "ARRAY_OF_MAPS"),
    (22, "QUEUE"),
    (23, "STACK"),
    (27, "RINGBUF"),
    (28, "INODE_STORAGE"),
    (29, "TASK_STORAGE"),
    (30, "BLOOM_FILTER"),
    (31, "USER_RINGBUF"),
    (32, "CGRP_STORAGE"),
    (33, "ARENA"),
];

/// Name of a type, for messages.
fn type_name(map_type: u64) -> String {
    match TYPES.iter().find(|(number, _)| *number == map_type) {
        Some((_, name)) => format!("BPF_MAP_TYPE_{name}"),
        None => format!("type {map_type}"),
    }
}

/// An element of a map, for people who look at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Its key.
    pub key: ShownKey,
    /// The bytes of its values: one, or one for each CPU.
    pub values: Vec<Vec<u8>>,
}

/// The key of an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShownKey {
    /// Index in an array.
    Index(u64),
    /// Bytes of a hash's key.
    Bytes(Vec<u8>),
    /// Number of the task or group whose storage it is.
    Owner(usize),
    /// None: it is in a queue.
    Nothing,
}

impl BpfMap {
    /// An empty map on a machine with `nr_cpus` CPUs.
    pub fn new(
        name: &str,
        def: &MapDef,
        address: u64,
        nr_cpus: u32,
        zone: &Zone,
    ) -> Result<Self, String> {
        let mut def = def.clone();
        let nr_cpus = u64::from(nr_cpus);
        let is_sized = !matches!(def.map_type, 27 | 29 | 31 | 32);
        if is_sized && def.max_entries == 0 {
            def.max_entries = nr_cpus;
        }
        let bytes = round8(def.value_size).saturating_mul(def.max_entries);
        let stride = stride_of(def.value_size, def.max_entries.saturating_mul(nr_cpus));
        let array = |copies: u64| {
            let all = bytes.saturating_mul(copies);
            if all > BYTES_MAX {
                return Err(format!("map {name} takes {all} bytes, the limit is {BYTES_MAX}"));
            }
            let block = values(zone, def.value_size, stride, def.max_entries * copies)?;
            Ok(Store::Array { block, copies })
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
            27 | 31 => Store::Ring { records: VecDeque::new(), bytes: 0 },
            29 | 32 => Store::Storage { blocks: Vec::new(), spare: Vec::new() },
            4 => Store::Perf,
            33 => Store::Arena(Arena::new(def.max_entries, zone)?),
            other => {
                return Err(format!(
                    "map {name} is of {}, which the simulator does not have; it has ARRAY, \
                     PERCPU_ARRAY, HASH, LRU_HASH and their PERCPU forms, QUEUE, STACK, \
                     ARRAY_OF_MAPS, TASK_STORAGE, CGRP_STORAGE, RINGBUF, USER_RINGBUF, \
                     PERF_EVENT_ARRAY, ARENA",
                    type_name(other)
                ));
            }
        };
        if matches!(def.map_type, 2 | 6 | 12) {
            def.key_size = 4;
        }
        Ok(Self { name: name.into(), def, address, nr_cpus, stride, zone: zone.clone(), store })
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
                let copy = if *copies == 1 { 0 } else { u64::from(cpu) };
                block.address() + (copy * self.def.max_entries + index) * self.stride
            }
            Store::Hash { elements, is_percpu, .. } => elements.get(key).map_or(0, |element| {
                let copy = if *is_percpu { u64::from(cpu) } else { 0 };
                element.block.address() + copy * self.stride
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
        let stride = u32::try_from(self.stride).ok()?;
        match &self.store {
            Store::Array { block, .. } => Some((block.address(), stride)),
            _ => None,
        }
    }

    /// Indices without an inner map.
    pub fn empty_places(&self) -> Vec<usize> {
        let Store::Maps { inner } = &self.store else { return Vec::new() };
        let empty = inner.iter().enumerate().filter(|(_, inner)| inner.is_none());
        empty.map(|(index, _)| index).collect()
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
        let (max_entries, nr_cpus, stride) = (self.def.max_entries, self.nr_cpus, self.stride);
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
                    let element = match spare.pop() {
                        Some(mut element) => {
                            element.block.clear();
                            element.key.write(key);
                            element
                        }
                        None => {
                            let block = values(&self.zone, self.def.value_size, stride, copies);
                            let block = block.map_err(|_| ENOMEM)?;
                            Element { block, key: self.zone.block_of(key), updated: 0 }
                        }
                    };
                    elements.insert(key.to_vec(), element);
                }
                let element = elements.get_mut(key).expect("it is there now");
                element.updated = *updates;
                let copy = if *is_percpu { u64::from(cpu) } else { 0 };
                Ok(element.block.address() + copy * stride)
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
        let size = self.stride;
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

    /// Its kind: BPF_MAP_TYPE_* without the beginning.
    pub fn kind(&self) -> &'static str {
        TYPES.iter().find(|(number, _)| *number == self.def.map_type).map_or("?", |(_, name)| name)
    }

    /// Whether each CPU has a value of its own.
    pub fn is_percpu(&self) -> bool {
        matches!(self.def.map_type, 5 | 6 | 10)
    }

    /// Copies of all elements: arrays by index, hashes by the bytes of the keys, queues from the
    /// oldest on. In an array of maps the value is the handle of the inner map.
    pub fn shown(&self) -> Box<dyn Iterator<Item = Shown> + '_> {
        let (size, stride) = (self.def.value_size, self.stride);
        let one = |key, value| Shown { key, values: vec![value] };
        match &self.store {
            Store::Array { block, copies } => {
                let nr = self.def.max_entries;
                Box::new((0..nr).map(move |index| {
                    let at = |copy: u64| block.read((copy * nr + index) * stride, size);
                    Shown { key: ShownKey::Index(index), values: (0..*copies).map(at).collect() }
                }))
            }
            Store::Hash { elements, is_percpu, .. } => {
                let copies = if *is_percpu { self.nr_cpus } else { 1 };
                Box::new(elements.iter().map(move |(key, element)| {
                    let at = |copy: u64| element.block.read(copy * stride, size);
                    let key = ShownKey::Bytes(key.clone());
                    Shown { key, values: (0..copies).map(at).collect() }
                }))
            }
            Store::Queue { elements, .. } => {
                Box::new(elements.iter().map(move |value| one(ShownKey::Nothing, value.clone())))
            }
            Store::Maps { inner } => {
                let set = inner.iter().enumerate().filter_map(|(at, inner)| Some((at, (*inner)?)));
                Box::new(set.map(move |(index, handle)| {
                    one(ShownKey::Index(index as u64), handle.to_le_bytes().into())
                }))
            }
            Store::Storage { blocks, .. } => {
                let live = blocks.iter().enumerate();
                let live = live.filter_map(|(number, block)| Some((number, block.as_ref()?)));
                Box::new(
                    live.map(move |(number, block)| {
                        one(ShownKey::Owner(number), block.read(0, size))
                    }),
                )
            }
            Store::Ring { .. } | Store::Perf | Store::Arena(_) => Box::new(std::iter::empty()),
        }
    }

    /// The key of the element at `address`: its index in an array, or the address of its key in a
    /// hash.
    pub fn key_of(&self, address: u64) -> Option<KeyOf> {
        match &self.store {
            Store::Array { block, .. } if block.contains(address) => {
                let stride = self.stride.max(1);
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

    /// The value that `at` is in, or that ends before it: its name, its address, its size.
    pub fn nearest(&self, at: u64) -> Option<(String, u64, u64)> {
        let size = self.def.value_size;
        let before = |block: &Block, name: &str| {
            let (start, end) = (block.address(), block.address() + block.size() as u64 + GUARD);
            (start..end).contains(&at).then(|| (name.to_owned(), start, size))
        };
        match &self.store {
            Store::Array { block, .. } if block.contains(at) => {
                let index = (at - block.address()) / self.stride.max(1);
                let name = format!("element {}", index % self.def.max_entries.max(1));
                Some((name, block.address() + index * self.stride, size))
            }
            Store::Array { block, copies } => {
                let last = self.stride * (self.def.max_entries * copies).saturating_sub(1);
                before(block, "the last element").map(|(name, at, _)| (name, at + last, size))
            }
            Store::Hash { elements, spare, .. } => {
                let live = elements.values().map(|element| (element, "an element"));
                let spare = spare.iter().map(|element| (element, "a deleted element"));
                let near = |(element, name): (&Element, &str)| before(&element.block, name);
                live.chain(spare).filter_map(near).max_by_key(|(_, start, _)| *start)
            }
            Store::Storage { blocks, spare } => {
                let live = blocks.iter().flatten().map(|block| (block, "the storage of a task"));
                let spare = spare.iter().map(|block| (block, "the freed storage of a task"));
                let near = |(block, name): (&Block, &str)| before(block, name);
                live.chain(spare).filter_map(near).max_by_key(|(_, start, _)| *start)
            }
            Store::Arena(arena) => {
                let (base, size) = (arena.base, arena.used.len() as u64 * PAGE);
                let is_near = (base..base + size + GUARD).contains(&at);
                is_near.then(|| ("the pages".to_owned(), base, size))
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
        let new = || self.zone.block(self.def.value_size as usize);
        let mut block = spare.pop().unwrap_or_else(new);
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

    /// The key after `key`, or the first one: in an array by index, in a hash by the keys' bytes.
    pub fn next_key(&self, key: Option<&[u8]>) -> Option<Vec<u8>> {
        use std::ops::Bound::{Excluded, Unbounded};
        match &self.store {
            Store::Array { .. } => {
                let next = key.map_or(0, |key| index_of(key).saturating_add(1));
                let next = if next < self.def.max_entries { next } else { return None };
                Some((next as u32).to_le_bytes().to_vec())
            }
            Store::Hash { elements, .. } => {
                let after = key.map_or(Unbounded, Excluded);
                elements.range::<[u8], _>((after, Unbounded)).next().map(|(key, _)| key.clone())
            }
            _ => None,
        }
    }

    /// Adds a record to a ring buffer. Returns whether it has room.
    pub fn add_record(&mut self, record: Vec<u8>) -> bool {
        let room = self.record_room();
        let Store::Ring { records, bytes } = &mut self.store else { return false };
        let fits = record.len() as u64 <= room;
        if fits {
            *bytes += record_size(record.len());
            records.push_back(record);
        }
        fits
    }

    /// Removes the oldest record of a ring buffer, if it has at most `most` bytes.
    pub fn take_record(&mut self, most: u64) -> Option<Vec<u8>> {
        let Store::Ring { records, bytes } = &mut self.store else { return None };
        let record = records.pop_front_if(|record| record.len() as u64 <= most)?;
        *bytes -= record_size(record.len());
        Some(record)
    }

    /// Bytes of records in a ring buffer, with their headers.
    pub fn record_bytes(&self) -> u64 {
        if let Store::Ring { bytes, .. } = &self.store { *bytes } else { 0 }
    }

    /// Bytes of the longest record that a ring buffer has room for.
    pub fn record_room(&self) -> u64 {
        self.def.max_entries.saturating_sub(self.record_bytes()).saturating_sub(RECORD_HEADER)
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

    /// The arena is at this address from now on, before anything is allocated.
    pub fn move_arena(&mut self, base: u64, len: u64) {
        if let Store::Arena(arena) = &mut self.store {
            arena.base = base;
            arena.used.truncate((len / PAGE) as usize);
        }
    }

    /// Takes pages out of an arena, so that none of them is allocated. Returns whether they were
    /// free.
    pub fn reserve_pages(&mut self, at: u64, nr: u64) -> bool {
        match &mut self.store {
            Store::Arena(arena) => arena.take(at, nr).is_some(),
            _ => false,
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

/// A block of `nr` values, `stride` bytes apart, of which `size` may be used.
fn values(zone: &Zone, size: u64, stride: u64, nr: u64) -> Result<Block, String> {
    let block = zone.try_block(stride.saturating_mul(nr))?;
    if zone.is_checked() && stride > round8(size) {
        for index in 0..nr {
            let at = block.address() + index * stride;
            zone.forbid(at, stride);
            zone.allow(at, size);
        }
    }
    Ok(block)
}

impl Arena {
    fn new(pages: u64, zone: &Zone) -> Result<Self, String> {
        const PAGES_MAX: u64 = 1 << 20;
        if pages == 0 || pages > PAGES_MAX {
            return Err(format!("an arena of {pages} pages; 1 to {PAGES_MAX} are possible"));
        }
        let base = zone.region(pages * PAGE)?;
        // A kernel lets a scheduler read and write pages that it has not allocated.
        zone.allow_region(base, pages * PAGE)?;
        Ok(Self { base, used: vec![false; pages as usize] })
    }

    /// Takes `nr` free pages at `at`, or anywhere if that is 0. Returns the first one's number.
    fn take(&mut self, at: u64, nr: u64) -> Option<usize> {
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
        let from = from.filter(|_| nr > 0)?;
        self.used[from..from + nr].fill(true);
        Some(from)
    }

    fn alloc(&mut self, at: u64, nr: u64) -> u64 {
        let Some(from) = self.take(at, nr) else { return 0 };
        let nr = nr as usize;
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
        BpfMap::new("m", &def, 0, 2, &Zone::new(true).unwrap()).unwrap()
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
    fn values_are_apart_as_far_as_there_is_room() {
        assert_eq!(stride_of(5, 2), 8 + BETWEEN_MAX);
        assert_eq!(stride_of(8, 1 << 12), 8 + 256);
        assert_eq!(stride_of(8, 1 << 20), 8 + BETWEEN);
        assert_eq!(stride_of(8, 1 << 24), 8, "too many to be apart");
        assert_eq!(stride_of(u64::MAX / 2, u64::MAX), round8(u64::MAX / 2));
    }

    #[test]
    fn arrays_for_each_cpu_have_copies() {
        let mut percpu = map(6, 3);
        let (a, b) = (percpu.lookup(&[1, 0, 0, 0], 0), percpu.lookup(&[1, 0, 0, 0], 1));
        assert_eq!(b - a, 3 * (8 + BETWEEN_MAX));
        assert_eq!(percpu.lookup(&[3, 0, 0, 0], 0), 0);
    }

    #[test]
    fn pages_of_an_arena_are_given_once() {
        let def = MapDef { map_type: 33, max_entries: 4, ..MapDef::default() };
        let mut arena = BpfMap::new("a", &def, 0, 1, &Zone::new(true).unwrap()).unwrap();
        let first = arena.alloc_pages(0, 3);
        assert_ne!(first, 0);
        assert_eq!(arena.alloc_pages(0, 2), 0);
        arena.free_pages(first, 3);
        assert_eq!(arena.alloc_pages(0, 4), first);
    }
}
