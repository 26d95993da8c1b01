// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers calls of bpf(2) in place of a kernel, and keeps what they say.
//!
//! A map is a file in memory, so that the program can map it; programs, types and links are empty
//! files. No program is verified or run: a run succeeds and returns 0. The kernel's own numbers of
//! commands and offsets in `union bpf_attr` are those of include/uapi/linux/bpf.h.

use crate::arena;
use crate::btf::Btf;
use crate::calls::{Answer, Call, data_from, memory_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Commands (`enum bpf_cmd`).
pub(crate) mod command {
    pub const MAP_CREATE: u64 = 0;
    pub const MAP_LOOKUP_ELEM: u64 = 1;
    pub const MAP_UPDATE_ELEM: u64 = 2;
    pub const MAP_DELETE_ELEM: u64 = 3;
    pub const MAP_GET_NEXT_KEY: u64 = 4;
    pub const PROG_LOAD: u64 = 5;
    pub const OBJ_PIN: u64 = 6;
    pub const OBJ_GET: u64 = 7;
    pub const PROG_TEST_RUN: u64 = 10;
    pub const PROG_GET_NEXT_ID: u64 = 11;
    pub const MAP_GET_FD_BY_ID: u64 = 14;
    pub const OBJ_GET_INFO_BY_FD: u64 = 15;
    pub const RAW_TRACEPOINT_OPEN: u64 = 17;
    pub const BTF_LOAD: u64 = 18;
    pub const BTF_GET_FD_BY_ID: u64 = 19;
    pub const MAP_LOOKUP_AND_DELETE_ELEM: u64 = 21;
    pub const MAP_FREEZE: u64 = 22;
    pub const BTF_GET_NEXT_ID: u64 = 23;
    pub const MAP_LOOKUP_BATCH: u64 = 24;
    pub const MAP_LOOKUP_AND_DELETE_BATCH: u64 = 25;
    pub const MAP_UPDATE_BATCH: u64 = 26;
    pub const MAP_DELETE_BATCH: u64 = 27;
    pub const LINK_CREATE: u64 = 28;
    pub const LINK_UPDATE: u64 = 29;
    pub const LINK_GET_FD_BY_ID: u64 = 30;
    pub const LINK_GET_NEXT_ID: u64 = 31;
    pub const ENABLE_STATS: u64 = 32;
    pub const LINK_DETACH: u64 = 34;
    pub const PROG_BIND_MAP: u64 = 35;
    pub const PROG_ASSOC_STRUCT_OPS: u64 = 38;
}

/// Types of maps (`enum bpf_map_type`).
mod map_type {
    pub const HASH: u32 = 1;
    pub const ARRAY: u32 = 2;
    pub const PERCPU_HASH: u32 = 5;
    pub const PERCPU_ARRAY: u32 = 6;
    pub const LRU_HASH: u32 = 9;
    pub const LRU_PERCPU_HASH: u32 = 10;
    pub const STRUCT_OPS: u32 = 26;
    pub const RINGBUF: u32 = 27;
    pub const USER_RINGBUF: u32 = 31;
    pub const ARENA: u32 = 33;
}

/// BPF_F_RDONLY_PROG: programs only read the map.
const READ_ONLY: u32 = 1 << 7;
/// BPF_F_LINK: the struct_ops map is attached by a link, not by its update.
const BY_LINK: u32 = 1 << 13;
/// BPF_F_TEST_RUN_ON_CPU: the caller names the CPU.
pub(crate) const RUN_ON_CPU: u32 = 1;
/// The program by which the library of the scx schedulers finds out whether the kernel disables
/// migration in programs. It matters before 6.18 only.
const LIBRARY_PROBE: &str = "scx_lib_init_probe";
/// BPF_STRUCT_OPS, an attach type.
const STRUCT_OPS_LINK: u32 = 44;
/// Bytes of `union bpf_attr` that are looked at.
const ATTR: usize = 256;
/// Longest key and value: that of scx_layered's variables has 166 MB.
const VALUE_MAX: u64 = 1 << 30;
/// Largest map; most of its pages are never touched.
const MAP_MAX: u64 = 1 << 40;
/// Largest type information of an object.
const TYPES_MAX: u64 = 1 << 26;
/// Longest argument of a program.
pub(crate) const CONTEXT_MAX: u32 = 1 << 16;
/// Most elements of a batch.
pub(crate) const BATCH_MAX: u32 = 1 << 16;
/// Most elements of an array that are recorded.
const ELEMENTS_MAX: usize = 1 << 16;
/// Most runs of programs that are recorded.
const RUNS_MAX: usize = 1 << 16;
/// Most objects of a program. Each takes a file here.
const OBJECTS_MAX: usize = 1 << 14;
const PAGE: u64 = 4096;

/// A map of the traced program.
#[derive(Debug)]
pub(crate) struct Map {
    file: File,
    id: u32,
    kind: u32,
    key_size: usize,
    value_size: usize,
    max_entries: u32,
    flags: u32,
    name: String,
    types: Option<Arc<Btf>>,
    value_type: u32,
    kernel_type: u32,
    /// Elements of maps that are not arrays.
    elements: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A program of the traced program.
#[derive(Debug)]
struct Program {
    kind: u32,
    id: u32,
    name: String,
}

#[derive(Debug)]
enum Object {
    Map(Map),
    Program(Program),
    Types(Arc<Btf>),
    Other,
}

/// An element that the traced program has put into a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Element {
    pub(crate) map: String,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The CPU whose copy it is, in a map with a copy for each CPU.
    pub(crate) cpu: Option<u32>,
}

/// A section of variables: its types, its number there, its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) types: Arc<Btf>,
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A run of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProgramRun {
    pub(crate) program: String,
    pub(crate) context: Vec<u8>,
    /// The CPU that it is to run on, if the user program has chosen one.
    pub(crate) cpu: Option<u32>,
    /// The thread that runs it.
    pub(crate) thread: u32,
    pub(crate) attached: bool,
}

/// What the traced program had set up when it attached its scheduler.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) sections: Vec<Section>,
    pub(crate) elements: Vec<Element>,
    /// The struct of the scheduler, as the kernel lays it out, and its type there.
    pub(crate) ops: Vec<u8>,
    pub(crate) ops_type: u32,
    /// The thread that has attached it.
    pub(crate) thread: u32,
    /// The CPU that this thread had chosen for itself.
    pub(crate) cpu: Option<u32>,
}

/// What a user program names in a call about a map or a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    /// Its name in the source.
    pub(crate) name: String,
    pub(crate) key_size: usize,
    /// Bytes that a user program passes for a value.
    pub(crate) value_len: usize,
    /// Whether it is a section of variables.
    pub(crate) is_section: bool,
}

/// A section of variables that both halves may change.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) file: File,
    pub(crate) len: usize,
    /// Names, offsets and sizes.
    pub(crate) variables: Vec<(String, usize, usize)>,
}

/// The answering side of bpf(2).
#[derive(Debug)]
pub(crate) struct Bpf {
    kernel: Arc<Btf>,
    nr_cpus: u32,
    objects: BTreeMap<u64, Object>,
    nr_made: u32,
    /// Masks that the arena library was given.
    nr_masks: u64,
    /// Whether the arena library was set up.
    pub(crate) has_arena: bool,
    /// Runs of programs, in order.
    pub(crate) runs: Vec<ProgramRun>,
    /// What a setup cannot hold.
    pub(crate) notes: BTreeSet<String>,
    /// The state at the attach.
    pub(crate) attached: Option<State>,
}

/// The argument of a call.
pub(crate) struct Attr([u8; ATTR]);

impl Attr {
    /// The argument of a call of bpf(2); `None`: it is at no address of the caller.
    pub(crate) fn of(call: &Call) -> Option<Self> {
        let len = (call.args[2] as usize).min(ATTR);
        let mut attr = Self([0; ATTR]);
        attr.0[..len].copy_from_slice(&call.read(call.args[1], len)?);
        Some(attr)
    }

    /// The word at an offset.
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    /// The double word at an offset.
    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// A name of at most 16 bytes.
    fn name(&self, at: usize) -> String {
        let bytes = &self.0[at..at + 16];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(16);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// An answer, or an error number.
pub(crate) type Reply = Result<Answer, i32>;

impl Map {
    /// Bytes from one element of an array to the next.
    fn step(&self) -> u64 {
        self.value_size.next_multiple_of(8) as u64
    }

    fn is_array(&self) -> bool {
        self.kind == map_type::ARRAY
    }

    fn is_per_cpu(&self) -> bool {
        use map_type::{LRU_PERCPU_HASH, PERCPU_ARRAY, PERCPU_HASH};
        matches!(self.kind, PERCPU_HASH | PERCPU_ARRAY | LRU_PERCPU_HASH)
    }

    /// Bytes that a user program passes for a value.
    fn value_len(&self, nr_cpus: u32) -> usize {
        match self.is_per_cpu() {
            true => self.step() as usize * nr_cpus as usize,
            false => self.value_size,
        }
    }

    /// Where the element of an array begins; an error number if there is none.
    fn place(&self, key: &[u8]) -> Result<u64, i32> {
        let index =
            key.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or(libc::EINVAL)?;
        (index < self.max_entries).then(|| u64::from(index) * self.step()).ok_or(libc::E2BIG)
    }

    fn get(&self, key: &[u8], nr_cpus: u32) -> Result<Vec<u8>, i32> {
        if self.is_array() {
            let mut value = vec![0; self.value_size];
            self.file.read_exact_at(&mut value, self.place(key)?).map_err(|_| libc::EFAULT)?;
            return Ok(value);
        }
        match self.elements.get(key) {
            Some(value) => Ok(value.clone()),
            None if self.kind == map_type::PERCPU_ARRAY => Ok(vec![0; self.value_len(nr_cpus)]),
            None => Err(libc::ENOENT),
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), i32> {
        if self.is_array() {
            return self.file.write_all_at(&value, self.place(&key)?).map_err(|_| libc::EFAULT);
        }
        let is_new = !self.elements.contains_key(&key);
        if is_new && self.elements.len() >= self.max_entries.max(1) as usize {
            return Err(libc::E2BIG);
        }
        self.elements.insert(key, value);
        Ok(())
    }

    /// The key after `key`; the first one without.
    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, i32> {
        use std::ops::Bound::{Excluded, Unbounded};
        if self.is_array() || self.kind == map_type::PERCPU_ARRAY {
            let last = key.and_then(|key| key.first_chunk()).map(|key| u32::from_le_bytes(*key));
            let next = last.map_or(0, |last| last.saturating_add(1));
            return (next < self.max_entries)
                .then(|| next.to_le_bytes().to_vec())
                .ok_or(libc::ENOENT);
        }
        let after = key.map_or(Unbounded, Excluded);
        let next = self.elements.range::<[u8], _>((after, Unbounded)).next();
        next.map(|(key, _)| key.clone()).ok_or(libc::ENOENT)
    }

    /// The name in the source: the kernel is given its first 15 letters.
    fn full_name(&self) -> String {
        let names = self.types.as_ref().map(|types| types.names_in(".maps")).unwrap_or_default();
        let mut fits = names.into_iter().filter(|name| {
            *name == self.name || self.name.len() == 15 && name.starts_with(&self.name)
        });
        fits.next().unwrap_or(&self.name).to_owned()
    }
}

impl Bpf {
    /// Nothing is set up yet. `kernel`: the kernel's types.
    pub(crate) fn new(kernel: Arc<Btf>, nr_cpus: u32) -> Self {
        Self {
            kernel,
            nr_cpus,
            objects: BTreeMap::new(),
            nr_made: 0,
            nr_masks: 0,
            has_arena: false,
            runs: Vec::new(),
            notes: BTreeSet::new(),
            attached: None,
        }
    }

    /// The kernel's types.
    pub(crate) fn kernel(&self) -> &Btf {
        &self.kernel
    }

    /// Answers a call. `cpu`: the CPU that its thread has chosen for itself.
    pub(crate) fn answer(&mut self, call: &Call, cpu: Option<u32>) -> Answer {
        let Some(attr) = Attr::of(call) else { return Answer::Error(libc::EFAULT) };
        self.reply(call, &attr, cpu).unwrap_or_else(Answer::Error)
    }

    /// Whether a descriptor of the caller is one that was given to it here.
    pub(crate) fn has_made(&self, call: &Call, descriptor: u32) -> bool {
        call.file(descriptor).is_some_and(|number| self.objects.contains_key(&number))
    }

    /// The map behind a descriptor of the caller.
    pub(crate) fn target(&mut self, call: &Call, descriptor: u32) -> Result<Target, i32> {
        let nr_cpus = self.nr_cpus;
        let map = self.map(call, descriptor)?;
        let types = map.types.as_ref();
        Ok(Target {
            name: map.full_name(),
            key_size: map.key_size,
            value_len: map.value_len(nr_cpus),
            is_section: types.is_some_and(|types| types.is_section(map.value_type)),
        })
    }

    /// The ring buffers, in the order in which they were made.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(crate) fn rings(&self) -> Vec<crate::live::Ring> {
        let maps = self.objects.iter().filter_map(|(number, object)| match object {
            Object::Map(map) => Some((*number, map)),
            _ => None,
        });
        let is_ring = |map: &Map| matches!(map.kind, map_type::RINGBUF | map_type::USER_RINGBUF);
        let mut found: Vec<_> = maps
            .filter(|(_, map)| is_ring(map))
            .filter_map(|(number, map)| {
                let is_users = map.kind == map_type::USER_RINGBUF;
                let (file, size) = (map.file.try_clone().ok()?, u64::from(map.max_entries));
                let ring = crate::live::Ring { map: map.full_name(), file, number, size, is_users };
                Some((map.id, ring))
            })
            .collect();
        found.sort_by_key(|(id, _)| *id);
        found.into_iter().map(|(_, ring)| ring).collect()
    }

    /// Arenas that the process of `thread` has mapped.
    pub(crate) fn arenas(&self, thread: u32) -> Vec<(String, File, std::ops::Range<u64>)> {
        let arenas = self.objects.iter().filter_map(|(number, object)| match object {
            Object::Map(map) if map.kind == map_type::ARENA => Some((number, map)),
            _ => None,
        });
        arenas
            .filter_map(|(number, map)| {
                let (start, end) = arena::mapping(thread, *number)?;
                Some((map.full_name(), map.file.try_clone().ok()?, start..end))
            })
            .collect()
    }

    /// The name of the program behind a descriptor of the caller.
    pub(crate) fn program(&mut self, call: &Call, descriptor: u32) -> Result<String, i32> {
        match self.object(call, descriptor)? {
            Object::Program(program) => Ok(program.name.clone()),
            _ => Err(libc::EINVAL),
        }
    }

    /// The sections that both halves may change, in the order in which they were made.
    pub(crate) fn shared(&self) -> Vec<Shared> {
        let maps = self.objects.values().filter_map(|object| match object {
            Object::Map(map) if map.flags & READ_ONLY == 0 => Some(map),
            _ => None,
        });
        let mut found: Vec<(u32, Shared)> = maps
            .filter_map(|map| {
                let types = map.types.as_ref().filter(|types| types.is_section(map.value_type))?;
                let all = types.variables(map.value_type).into_iter();
                let variables = all.map(|of| (of.name, of.offset, of.shape.size())).collect();
                let file = map.file.try_clone().ok()?;
                Some((map.id, Shared { file, len: map.value_size, variables }))
            })
            .collect();
        found.sort_by_key(|(id, _)| *id);
        found.into_iter().map(|(_, shared)| shared).collect()
    }

    fn reply(&mut self, call: &Call, attr: &Attr, cpu: Option<u32>) -> Reply {
        match call.args[0] {
            command::MAP_CREATE => self.create_map(call, attr),
            command::MAP_LOOKUP_ELEM => {
                let nr_cpus = self.nr_cpus;
                let map = self.map(call, attr.u32(0))?;
                let key = call.read(attr.u64(8), map.key_size).ok_or(libc::EFAULT)?;
                copy_out(call, attr.u64(16), &map.get(&key, nr_cpus)?)
            }
            command::MAP_UPDATE_ELEM => self.update(call, attr, cpu),
            command::MAP_UPDATE_BATCH => self.update_batch(call, attr),
            command::MAP_DELETE_ELEM => {
                let map = self.map(call, attr.u32(0))?;
                let key = call.read(attr.u64(8), map.key_size).ok_or(libc::EFAULT)?;
                map.elements.remove(&key).map(|_| Answer::Value(0)).ok_or(libc::ENOENT)
            }
            command::MAP_GET_NEXT_KEY => {
                let map = self.map(call, attr.u32(0))?;
                let key = match attr.u64(8) {
                    0 => None,
                    at => Some(call.read(at, map.key_size).ok_or(libc::EFAULT)?),
                };
                copy_out(call, attr.u64(16), &map.next_key(key.as_deref())?)
            }
            command::PROG_LOAD => self.load_program(call, attr),
            command::PROG_TEST_RUN => self.run(call, attr, cpu),
            command::OBJ_GET_INFO_BY_FD => self.describe(call, attr),
            command::BTF_LOAD => self.load_types(call, attr),
            command::LINK_CREATE => self.link(call, attr, cpu),
            command::RAW_TRACEPOINT_OPEN => {
                self.note_hook(call, attr.u32(8));
                self.add(0, |_, _| Object::Other)
            }
            command::ENABLE_STATS => self.add(0, |_, _| Object::Other),
            command::MAP_FREEZE
            | command::OBJ_PIN
            | command::PROG_BIND_MAP
            | command::PROG_ASSOC_STRUCT_OPS
            | command::LINK_UPDATE
            | command::LINK_DETACH => Ok(Answer::Value(0)),
            // There is nothing pinned, and nothing of other programs.
            command::OBJ_GET
            | command::PROG_GET_NEXT_ID..=command::MAP_GET_FD_BY_ID
            | command::BTF_GET_FD_BY_ID
            | command::BTF_GET_NEXT_ID
            | command::LINK_GET_FD_BY_ID
            | command::LINK_GET_NEXT_ID => Err(libc::ENOENT),
            _ => Err(libc::EINVAL),
        }
    }

    /// Makes an object with a file of `len` bytes, and gives it to the caller.
    fn add(&mut self, len: u64, make: impl FnOnce(File, u32) -> Object) -> Reply {
        let error = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::ENOMEM);
        if self.objects.len() >= OBJECTS_MAX {
            return Err(libc::EMFILE);
        }
        let (file, number) = memory_file(len).map_err(error)?;
        // One stays here: a map's content is read from it.
        let given = file.try_clone().map_err(error)?;
        self.nr_made += 1;
        self.objects.insert(number, make(file, self.nr_made));
        Ok(Answer::File(given.into()))
    }

    fn object(&mut self, call: &Call, descriptor: u32) -> Result<&mut Object, i32> {
        let number = call.file(descriptor).ok_or(libc::EBADF)?;
        self.objects.get_mut(&number).ok_or(libc::EINVAL)
    }

    fn map(&mut self, call: &Call, descriptor: u32) -> Result<&mut Map, i32> {
        match self.object(call, descriptor)? {
            Object::Map(map) => Ok(map),
            _ => Err(libc::EINVAL),
        }
    }

    fn types(&mut self, call: &Call, descriptor: u32) -> Option<Arc<Btf>> {
        match self.object(call, descriptor) {
            Ok(Object::Types(types)) => Some(Arc::clone(types)),
            _ => None,
        }
    }

    fn create_map(&mut self, call: &Call, attr: &Attr) -> Reply {
        let (kind, max_entries) = (attr.u32(0), attr.u32(12));
        let (key_size, value_size) = (attr.u32(4), attr.u32(8));
        if u64::from(key_size.max(value_size)) > VALUE_MAX {
            return Err(libc::E2BIG);
        }
        let entries = u64::from(max_entries);
        let len = match kind {
            map_type::ARRAY => {
                let len = u64::from(value_size).next_multiple_of(8).saturating_mul(entries);
                len.next_multiple_of(PAGE)
            }
            map_type::ARENA => entries * PAGE,
            // The pages of positions, and the data twice (Documentation/bpf/ringbuf.rst).
            map_type::RINGBUF | map_type::USER_RINGBUF => 2 * PAGE + 2 * entries,
            _ => 0,
        };
        if len > MAP_MAX {
            return Err(libc::E2BIG);
        }
        let types = match attr.u32(48) {
            0 => None,
            descriptor => self.types(call, descriptor),
        };
        self.add(len, |file, id| {
            Object::Map(Map {
                file,
                id,
                kind,
                key_size: key_size as usize,
                value_size: value_size as usize,
                max_entries,
                flags: attr.u32(16),
                name: attr.name(28),
                types,
                value_type: attr.u32(56),
                kernel_type: attr.u32(60),
                elements: BTreeMap::new(),
            })
        })
    }

    fn update(&mut self, call: &Call, attr: &Attr, cpu: Option<u32>) -> Reply {
        let nr_cpus = self.nr_cpus;
        let map = self.map(call, attr.u32(0))?;
        let key = call.read(attr.u64(8), map.key_size).ok_or(libc::EFAULT)?;
        let value = call.read(attr.u64(16), map.value_len(nr_cpus)).ok_or(libc::EFAULT)?;
        map.put(key, value)?;
        if map.kind == map_type::STRUCT_OPS && map.flags & BY_LINK == 0 {
            self.attach(call, attr.u32(0), cpu)?;
        }
        Ok(Answer::Value(0))
    }

    fn update_batch(&mut self, call: &Call, attr: &Attr) -> Reply {
        let nr_cpus = self.nr_cpus;
        let count = attr.u32(32);
        if count > BATCH_MAX {
            return Err(libc::E2BIG);
        }
        let map = self.map(call, attr.u32(36))?;
        let (key_size, value_size) = (map.key_size as u64, map.value_len(nr_cpus) as u64);
        for nth in 0..u64::from(count) {
            let at = |base: usize, size: u64| attr.u64(base).wrapping_add(nth * size);
            let key = call.read(at(16, key_size), key_size as usize).ok_or(libc::EFAULT)?;
            let value = call.read(at(24, value_size), value_size as usize).ok_or(libc::EFAULT)?;
            map.put(key, value)?;
        }
        Ok(Answer::Value(0))
    }

    fn load_types(&mut self, call: &Call, attr: &Attr) -> Reply {
        let len = u64::from(attr.u32(16));
        if len > TYPES_MAX {
            return Err(libc::E2BIG);
        }
        let bytes = call.read(attr.u64(0), len as usize).ok_or(libc::EFAULT)?;
        let types = Arc::new(Btf::read(&bytes).ok_or(libc::EINVAL)?);
        self.add(0, |_, _| Object::Types(types))
    }

    fn load_program(&mut self, call: &Call, attr: &Attr) -> Reply {
        let types = self.types(call, attr.u32(72));
        // The first function of a program is the program itself.
        let first = call.read(attr.u64(80), 8).filter(|_| attr.u32(88) > 0);
        let full = first.zip(types).and_then(|(first, types)| {
            let number = u32::from_le_bytes(*first.get(4..)?.first_chunk()?);
            types.function(number).map(str::to_owned)
        });
        let name = full.unwrap_or_else(|| attr.name(48));
        let kind = attr.u32(0);
        self.add(0, |_, id| Object::Program(Program { kind, id, name }))
    }

    fn run(&mut self, call: &Call, attr: &Attr, cpu: Option<u32>) -> Reply {
        let (is_attached, len) = (self.attached.is_some(), attr.u32(40));
        let program = match self.object(call, attr.u32(0))? {
            Object::Program(program) => program.name.clone(),
            _ => return Err(libc::EINVAL),
        };
        if len > CONTEXT_MAX {
            return Err(libc::E2BIG);
        }
        let mut context = match attr.u64(48) {
            0 => Vec::new(),
            at => call.read(at, len as usize).ok_or(libc::EFAULT)?,
        };
        if arena::is_of_library(&program) {
            self.has_arena = true;
            if arena::allocates(&program) {
                let address = self.mask(call)?.to_le_bytes();
                context.get_mut(..8).ok_or(libc::EINVAL)?.copy_from_slice(&address);
            }
        } else {
            let on_cpu = attr.u32(64) & RUN_ON_CPU != 0;
            let cpu = if on_cpu { Some(attr.u32(68)) } else { cpu };
            let run = ProgramRun {
                program,
                context: context.clone(),
                cpu,
                thread: call.thread,
                attached: is_attached,
            };
            if self.runs.len() < RUNS_MAX {
                self.runs.push(run);
            }
        }
        // The argument as the program leaves it, what it returns, how long it took.
        let answers: [(u64, &[u8]); 3] =
            [(attr.u64(48), &context), (call.args[1] + 4, &[0; 4]), (call.args[1] + 36, &[0; 4])];
        let is_written =
            answers.iter().all(|(at, bytes)| bytes.is_empty() || call.write(*at, bytes));
        if is_written { Ok(Answer::Value(0)) } else { Err(libc::EFAULT) }
    }

    /// The address of a new mask in the caller's arena.
    fn mask(&mut self, call: &Call) -> Result<u64, i32> {
        let is_arena =
            |object: &Object| matches!(object, Object::Map(map) if map.kind == map_type::ARENA);
        let mut arenas = self.objects.iter().filter(|(_, object)| is_arena(object));
        let found = arenas.find_map(|(number, _)| arena::mapping(call.thread, *number));
        let address = found.and_then(|found| arena::mask(found, self.nr_masks));
        self.nr_masks += 1;
        address.ok_or(libc::ENOMEM)
    }

    fn describe(&mut self, call: &Call, attr: &Attr) -> Reply {
        let (len, at) = (attr.u32(4) as usize, attr.u64(8));
        let mut info = [0; ATTR];
        let mut put = |at: usize, bytes: &[u8]| info[at..at + bytes.len()].copy_from_slice(bytes);
        match self.object(call, attr.u32(0))? {
            Object::Map(map) => {
                let words = [
                    map.kind,
                    map.id,
                    map.key_size as u32,
                    map.value_size as u32,
                    map.max_entries,
                    map.flags,
                ];
                words.iter().enumerate().for_each(|(nth, word)| put(4 * nth, &word.to_le_bytes()));
                put(24, map.name.as_bytes());
            }
            Object::Program(program) => {
                put(0, &program.kind.to_le_bytes());
                put(4, &program.id.to_le_bytes());
                let name = program.name.as_bytes();
                put(64, &name[..name.len().min(15)]);
            }
            Object::Types(_) | Object::Other => {}
        }
        copy_out(call, at, &info[..len.min(ATTR)])
    }

    fn link(&mut self, call: &Call, attr: &Attr, cpu: Option<u32>) -> Reply {
        if attr.u32(8) == STRUCT_OPS_LINK {
            self.attach(call, attr.u32(0), cpu)?;
        } else if attr.u32(4) == u32::MAX {
            // A question whether the kernel has links of this kind, as libbpf puts it.
            return Err(libc::EBADF);
        } else {
            self.note_hook(call, attr.u32(0));
        }
        self.add(0, |_, _| Object::Other)
    }

    fn note_hook(&mut self, call: &Call, descriptor: u32) {
        if let Ok(Object::Program(program)) = self.object(call, descriptor)
            && program.name != LIBRARY_PROBE
        {
            let note = format!(
                "program {} hooks into the kernel outside of the scheduler; a simulation has no \
                 such hook",
                program.name
            );
            self.notes.insert(note);
        }
    }

    /// The struct_ops map behind a descriptor is attached: keeps the state if it is a scheduler.
    fn attach(&mut self, call: &Call, descriptor: u32, cpu: Option<u32>) -> Result<(), i32> {
        let kernel = Arc::clone(&self.kernel);
        let map = self.map(call, descriptor)?;
        let Some(ops) = map.elements.get(&vec![0; map.key_size]).cloned() else {
            return Err(libc::EINVAL);
        };
        let ops_type = map.kernel_type;
        let is_scheduler = kernel
            .name(ops_type)
            .is_some_and(|name| name.starts_with("bpf_struct_ops_sched_ext_ops"));
        if is_scheduler && self.attached.is_none() {
            let (sections, elements) = self.contents();
            let thread = call.thread;
            self.attached = Some(State { sections, elements, ops, ops_type, thread, cpu });
        }
        Ok(())
    }

    /// Sections and elements of all maps, in the order in which the maps were made.
    fn contents(&mut self) -> (Vec<Section>, Vec<Element>) {
        let mut maps: Vec<&Map> = Vec::new();
        for object in self.objects.values() {
            if let Object::Map(map) = object {
                maps.push(map);
            }
        }
        maps.sort_by_key(|map| map.id);
        let (mut sections, mut elements) = (Vec::new(), Vec::new());
        for map in maps {
            let section = map.types.as_ref().filter(|types| types.is_section(map.value_type));
            if let Some(types) = section {
                let mut bytes = vec![0; map.value_size];
                if map.file.read_exact_at(&mut bytes, 0).is_ok() {
                    let types = Arc::clone(types);
                    sections.push(Section { types, number: map.value_type, bytes });
                }
                continue;
            }
            match map.kind {
                // Texts of the compiler.
                map_type::ARRAY if map.flags & READ_ONLY != 0 => {}
                map_type::ARRAY => elements.extend(filled(map)),
                map_type::HASH | map_type::LRU_HASH => elements.extend(kept(map, map.value_size)),
                _ if map.is_per_cpu() => elements.extend(kept(map, map.step() as usize)),
                map_type::STRUCT_OPS => {}
                _ if map.elements.is_empty() => {}
                kind => {
                    self.notes.insert(format!(
                        "map {}: its elements are not recorded (map type {kind})",
                        map.full_name()
                    ));
                }
            }
        }
        (sections, elements)
    }
}

/// The elements of a map that is not an array, in the order of their keys. `step`: bytes from one
/// CPU's copy to the next.
fn kept(map: &Map, step: usize) -> Vec<Element> {
    let mut found = Vec::new();
    for (key, values) in &map.elements {
        for (cpu, value) in values.chunks(step.max(1)).enumerate() {
            let value = value[..map.value_size.min(value.len())].to_vec();
            // A copy of a new element is 0.
            if map.is_per_cpu() && value.iter().all(|byte| *byte == 0) {
                continue;
            }
            let cpu = map.is_per_cpu().then_some(cpu as u32);
            found.push(Element { map: map.full_name(), key: key.clone(), value, cpu });
        }
    }
    found
}

/// The elements of an array that are not 0. Pages that were never written to are left out.
fn filled(map: &Map) -> Vec<Element> {
    let mut found = Vec::new();
    let mut value = vec![0; map.value_size];
    let mut index = 0;
    while let Some(at) = data_from(&map.file, index * map.step().max(1)) {
        index = index.max(at / map.step().max(1));
        let is_read = map.file.read_exact_at(&mut value, index * map.step()).is_ok();
        if index >= u64::from(map.max_entries) || !is_read || found.len() == ELEMENTS_MAX {
            break;
        }
        if value.iter().any(|byte| *byte != 0) {
            let key = (index as u32).to_le_bytes().to_vec();
            found.push(Element { map: map.full_name(), key, value: value.clone(), cpu: None });
        }
        index += 1;
    }
    found
}

/// Writes an answer to an address of the caller.
pub(crate) fn copy_out(call: &Call, at: u64, bytes: &[u8]) -> Reply {
    if call.write(at, bytes) { Ok(Answer::Value(0)) } else { Err(libc::EFAULT) }
}
