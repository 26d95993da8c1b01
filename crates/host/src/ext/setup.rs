// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a setup to a scheduler that a kernel loads, in place of its user program: flags and
//! variables before it is loaded; inner maps, elements of maps, the arena library and programs
//! before it is attached; further programs after it.
//!
//! The simulator applies the same setup in the same order (`schedlab_scx_native`, prepare.rs).

use super::describe::{Opened, section};
use super::inner::InnerMaps;
use super::prepare::enumerators;
use crate::error::HostError;
use crate::sys;
use libbpf_rs::btf::types::{
    Array, Composite, DataSec, Enum, Enum64, Int, IntEncoding, MemberAttr, Ptr, Struct, Typedef,
    Var,
};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, HasSize, ReferencesType};
use libbpf_rs::{AsRawLibbpf, Map, MapCore, MapFlags, MapType, Object, ProgramInput, libbpf_sys};
use schedlab_model::{CpuId, CpuMask};
use schedlab_scx_source::{
    ArenaSetup, ReadySetup, SetupElement, SetupStep, SetupValue, arena, setup_path,
};
use std::cell::RefCell;
use std::ffi::OsStr;

/// Deepest member without a name that is looked into.
const DEPTH_MAX: u32 = 4;
/// Size of a page of an arena.
const PAGE_BYTES: u64 = 4096;
/// Why a value cannot be set.
const MISFIT: &str = "the path and the value do not fit its type";

/// Bytes for places of a variable or of an element: offset and content.
type Places = Vec<(usize, Vec<u8>)>;

/// A setup, and the types of the object to which it is applied.
pub(super) struct Applied<'a> {
    pub setup: &'a ReadySetup,
    pub types: Btf<'a>,
    /// The scheduler's name.
    pub name: String,
    /// The setup's inner maps that the scheduler has.
    inner_maps: RefCell<Vec<InnerMaps>>,
}

impl<'a> Applied<'a> {
    /// The setup for the scheduler called `name` with the object `bytes`.
    pub fn new(setup: &'a ReadySetup, name: &str, bytes: &'a [u8]) -> Result<Self, HostError> {
        let types = Btf::from_raw("scheduler", bytes).ok().flatten();
        let types = types.ok_or_else(|| HostError::Input("the scheduler has no BTF".into()))?;
        Ok(Self { setup, types, name: name.to_owned(), inner_maps: RefCell::default() })
    }

    fn fails(&self, what: impl std::fmt::Display) -> HostError {
        HostError::Input(format!("the setup {} fails: {what}", self.setup.origin))
    }

    /// Sets flags and variables, before the object is loaded.
    pub fn before_load(&self, opened: &mut Opened) -> Result<(), HostError> {
        self.set_flags(opened)?;
        for (path, value) in &self.setup.variables {
            match self.set_variable(opened, path, value) {
                // Another version of the scheduler lacks the variable, or has other members.
                Err(_) if self.setup.is_lenient => {}
                done => done.map_err(|why| self.fails(format!("variable {path}: {why}")))?,
            }
        }
        for name in &self.setup.inner_maps {
            match InnerMaps::of(opened, name) {
                Ok(maps) => self.inner_maps.borrow_mut().push(maps),
                Err(_) if self.setup.is_lenient => {}
                Err(why) => return Err(self.fails(format!("map {name}: {why}"))),
            }
        }
        Ok(())
    }

    fn set_flags(&self, opened: &mut Opened) -> Result<(), HostError> {
        let known = enumerators();
        let flags = self.setup.flags.iter();
        // A flag that the kernel lacks is one that its user program leaves out too.
        let flags = flags.filter_map(|name| known.get(name)).fold(0, |all, flag| all | *flag);
        if flags == 0 {
            return Ok(());
        }
        let place = self.types.type_by_name::<Struct<'_>>("sched_ext_ops").and_then(|ops| {
            let flags = ops.iter().find(|member| member.name == Some(OsStr::new("flags")))?;
            offset_of(flags.attr)
        });
        let wanted = opened.ops_map.clone();
        let mut map = opened.object.maps_mut().find(|map| map.name() == OsStr::new(&wanted));
        let bytes = map.as_mut().and_then(|map| map.initial_value_mut());
        let word = place.zip(bytes).and_then(|(at, bytes)| bytes.get_mut(at..at + 8));
        let word = word.ok_or_else(|| self.fails("the scheduler's struct has no flags"))?;
        let before = u64::from_ne_bytes((&*word).try_into().unwrap_or_default());
        word.copy_from_slice(&(before | flags as u64).to_ne_bytes());
        Ok(())
    }

    fn set_variable(
        &self,
        opened: &mut Opened,
        path: &str,
        value: &SetupValue,
    ) -> Result<(), String> {
        let (name, steps) = setup_path(path)?;
        let (place, at, var) = self.variable(name).ok_or("the scheduler has none")?;
        let is_own = |map: &str| match place.as_str() {
            ".rodata" | ".data" | ".bss" => map.ends_with(&place),
            _ => map == place,
        };
        let mut maps = opened.object.maps_mut();
        let mut map = maps.find(|map| is_own(&map.name().to_string_lossy()));
        let bytes = map.as_mut().and_then(|map| map.initial_value_mut());
        let bytes = bytes.ok_or_else(|| format!("its section {place} cannot be written"))?;
        let (types, mut all) = (Types(&self.types), Places::new());
        match opened.arrays.iter().find(|(section, _)| *section == place) {
            // An array of unknown length has a section of its own, which has its size by now.
            Some((_, size)) => {
                let array = Array::try_from(var.skip_mods_and_typedefs());
                let of = array.map_err(|_| "it is no array")?;
                let nr = bytes.len() / (*size).max(1) as usize;
                types.assign_array(of.contained_type(), nr, at, &steps, value, &mut all)?;
            }
            None => types.assign(var, at, &steps, value, &mut all)?,
        }
        put(bytes, &all)
    }

    /// Section, offset and type of the variable called `name`.
    fn variable(&self, name: &str) -> Option<(String, usize, BtfType<'_>)> {
        let wanted = Some(OsStr::new(name));
        self.types.type_by_kind::<DataSec<'_>>().find_map(|section| {
            let place = section.name()?.to_string_lossy().into_owned();
            // Sections whose variables are not the scheduler's data.
            if place.starts_with(".maps") || place.starts_with(".struct_ops") {
                return None;
            }
            let found = section.iter().find_map(|entry| {
                let var = self.types.type_by_id::<Var<'_>>(entry.ty)?;
                (var.name() == wanted).then(|| (entry.offset as usize, var.referenced_type()))
            });
            found.map(|(at, var)| (place, at, var))
        })
    }

    /// Makes inner maps, sets elements of maps, sets up the arena library, runs programs: before
    /// the attach.
    pub fn before_attach(&self, object: &Object) -> Result<(), HostError> {
        for maps in self.inner_maps.borrow().iter() {
            maps.fill(object).map_err(|why| self.fails(format!("inner maps: {why}")))?;
        }
        for element in &self.setup.elements {
            match self.set_element(object, element) {
                Err(_) if self.setup.is_lenient => {}
                done => done.map_err(|why| self.fails(format!("map {}: {why}", element.map)))?,
            }
        }
        if let Some(machine) = &self.setup.arena
            && (has_program(object, arena::INIT) || !self.setup.is_lenient)
        {
            self.set_up_arena(object, machine).map_err(|why| self.fails(why))?;
        }
        self.run_programs(object, false)
    }

    /// Moves this thread to the CPU that executes `ops.init`, until the result is dropped.
    pub fn on_init_cpu(&self) -> Result<Option<OnCpu>, HostError> {
        self.on_cpu(None).map_err(|why| self.fails(why))
    }

    /// Moves this thread to `cpu`, or else to the CPU that executes `ops.init`.
    fn on_cpu(&self, cpu: Option<u32>) -> Result<Option<OnCpu>, String> {
        cpu.or(self.setup.init_cpu).map(OnCpu::move_to).transpose()
    }

    /// Runs the programs for before the attach, or for after it.
    pub fn run_programs(&self, object: &Object, attached: bool) -> Result<(), HostError> {
        for run in self.setup.runs.iter().filter(|run| run.attached == attached) {
            // Another version of the scheduler has other programs.
            let is_other = self.setup.is_lenient && !has_program(object, &run.program);
            let lacks = |needs: &String| self.variable(needs).is_none();
            if is_other || run.needs.as_ref().is_some_and(lacks) {
                continue;
            }
            let mut context = run.context.clone();
            let done = match self.on_cpu(run.cpu) {
                Ok(_moved) => run_program(object, &run.program, &mut context),
                Err(why) => Err(why),
            };
            done.map_err(|why| self.fails(why))?;
        }
        Ok(())
    }

    fn set_element(&self, object: &Object, element: &SetupElement) -> Result<(), String> {
        let SetupElement { key, value, members, .. } = element;
        let map = object.maps().find(|map| map.name() == OsStr::new(&element.map));
        let map = map.ok_or("the scheduler has none")?;
        let (key_size, value_size) = (map.key_size() as usize, map.value_size() as usize);
        let is_whole = members.is_empty() || !value.is_empty();
        if key.len() != key_size || (is_whole && value.len() != value_size) {
            return Err(format!(
                "a key of {} bytes and a value of {}, it has {key_size} and {value_size}",
                key.len(),
                value.len()
            ));
        }
        let mut all: Places = vec![(0, value.clone())];
        for (path, value) in members {
            let of = self.value_type(&element.map).ok_or("its values have no type")?;
            let (_, steps) = setup_path(path)?;
            Types(&self.types).assign(of, 0, &steps, value, &mut all)?;
        }
        update(&map, key, element.cpu, &all)
    }

    /// The type of a map's values.
    fn value_type(&self, map: &str) -> Option<BtfType<'_>> {
        let maps = section(&self.types, ".maps")?;
        let mut vars = maps.iter().filter_map(|entry| self.types.type_by_id::<Var<'_>>(entry.ty));
        let var = vars.find(|var| var.name() == Some(OsStr::new(map)))?;
        let map = Struct::try_from(var.referenced_type().skip_mods_and_typedefs()).ok()?;
        let value = map.iter().find(|member| member.name == Some(OsStr::new("value")))?;
        Some(self.types.type_by_id::<Ptr<'_>>(value.ty)?.referenced_type())
    }

    fn set_up_arena(&self, object: &Object, machine: &ArenaSetup) -> Result<(), String> {
        let own = arena::own_task_context(&self.name);
        let alias = |name: &str| {
            let of = self.types.type_by_name::<Typedef<'_>>(name)?.skip_mods_and_typedefs();
            Struct::try_from(of).ok()
        };
        let size = |name: &str| {
            let of = self.types.type_by_name::<Struct<'_>>(name).or_else(|| alias(name))?;
            Some(of.size() as u64)
        };
        let size = size(arena::TASK_CONTEXT).or_else(|| size(&own));
        let size =
            size.ok_or_else(|| format!("there is no type {} or {own}", arena::TASK_CONTEXT))?;
        run_words(object, arena::INIT, &mut [arena::STATIC_PAGES, size, 0])?;
        if has_program(object, arena::TOPOLOGY_INIT) {
            let most = machine.most.iter().chain(&[0]);
            let mut bytes: Vec<u8> = most.flat_map(|nr| nr.to_ne_bytes()).collect();
            run_program(object, arena::TOPOLOGY_INIT, &mut bytes)?;
        }
        if !has_program(object, arena::NODE_INIT) {
            return Ok(());
        }
        for (id, words) in &machine.spans {
            let mut mask = [0];
            run_words(object, arena::ALLOC_MASK, &mut mask)?;
            write_arena(object, mask[0], words)?;
            run_words(object, arena::NODE_INIT, &mut [mask[0], 0, u64::from(*id)])?;
        }
        Ok(())
    }
}

/// This thread on one CPU; a drop brings it back to all CPUs that it was on.
pub(super) struct OnCpu(CpuMask);

impl OnCpu {
    fn move_to(cpu: u32) -> Result<Self, String> {
        let before = sys::sched_getaffinity(0).map_err(|error| error.to_string())?;
        let wanted = CpuMask::from_iter([CpuId(cpu)]);
        sys::sched_setaffinity(0, &wanted)
            .map_err(|error| format!("its programs cannot run on CPU {cpu}: {error}"))?;
        Ok(Self(before))
    }
}

impl Drop for OnCpu {
    fn drop(&mut self) {
        let _ = sys::sched_setaffinity(0, &self.0);
    }
}

fn has_program(object: &Object, name: &str) -> bool {
    object.progs().any(|program| program.name() == OsStr::new(name))
}

/// Runs a program with an argument, which it may change. It must return 0.
fn run_program(object: &Object, name: &str, context: &mut [u8]) -> Result<(), String> {
    let program = object.progs_mut().find(|program| program.name() == OsStr::new(name));
    let program = program.ok_or_else(|| format!("there is no program {name}"))?;
    let context = (!context.is_empty()).then_some(context);
    let input = ProgramInput { context_in: context, ..ProgramInput::default() };
    let output = program.test_run(input).map_err(|error| format!("program {name}: {error}"))?;
    match output.return_value as i32 {
        0 => Ok(()),
        answer => Err(format!("program {name} returned {answer}")),
    }
}

/// Runs a program whose argument is words of 64 bits.
fn run_words(object: &Object, name: &str, words: &mut [u64]) -> Result<(), String> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    run_program(object, name, &mut bytes)?;
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    Ok(())
}

/// Sets parts of an element, in a map with a copy for each CPU those of one.
fn update(map: &Map<'_>, key: &[u8], cpu: u32, all: &Places) -> Result<(), String> {
    let size = map.value_size() as usize;
    let wrong = |error: libbpf_rs::Error| error.to_string();
    if !map.map_type().is_percpu() {
        let before = map.lookup(key, MapFlags::ANY).map_err(wrong)?;
        let mut value = before.unwrap_or_else(|| vec![0; size]);
        put(&mut value, all)?;
        return map.update(key, &value, MapFlags::ANY).map_err(wrong);
    }
    let nr = libbpf_rs::num_possible_cpus().map_err(wrong)?;
    let before = map.lookup_percpu(key, MapFlags::ANY).map_err(wrong)?;
    let mut copies = before.unwrap_or_else(|| vec![vec![0; size]; nr]);
    let copy = copies.get_mut(cpu as usize).ok_or_else(|| format!("there is no CPU {cpu}"))?;
    put(copy, all)?;
    map.update_percpu(key, &copies, MapFlags::ANY).map_err(wrong)
}

fn put(bytes: &mut [u8], all: &Places) -> Result<(), String> {
    for (at, content) in all {
        let place = bytes.get_mut(*at..at.saturating_add(content.len()));
        place.ok_or("the value is longer than its place")?.copy_from_slice(content);
    }
    Ok(())
}

fn offset_of(attr: MemberAttr) -> Option<usize> {
    match attr {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

/// The size of a type; 0 if it has none.
fn size_of_type(ty: BtfType<'_>) -> usize {
    let ty = ty.skip_mods_and_typedefs();
    if let Ok(array) = Array::try_from(ty) {
        return array.capacity().saturating_mul(size_of_type(array.contained_type()));
    }
    match ty.kind() {
        BtfKind::Ptr => size_of::<u64>(),
        BtfKind::Int => Int::try_from(ty).map_or(0, |of| of.size()),
        BtfKind::Enum => Enum::try_from(ty).map_or(0, |of| of.size()),
        BtfKind::Enum64 => Enum64::try_from(ty).map_or(0, |of| of.size()),
        _ => Composite::try_from(ty).map_or(0, |of| of.size()),
    }
}

/// Writes words to memory of the scheduler's arena, which libbpf maps where programs see it.
fn write_arena(object: &Object, address: u64, words: &[u64]) -> Result<(), String> {
    let is_arena = |map: &Map<'_>| map.map_type() == MapType::Arena;
    let arena = object.maps().find(is_arena).ok_or("the scheduler has no arena")?;
    // SAFETY: the map is loaded; a getter.
    let pages = unsafe { libbpf_sys::bpf_map__max_entries(arena.as_libbpf_object().as_ptr()) };
    let mut size = 0;
    // SAFETY: as above. The second argument is written to only.
    let start = unsafe {
        libbpf_sys::bpf_map__initial_value(arena.as_libbpf_object().as_ptr(), &raw mut size)
    };
    let range = start as u64..(start as u64).saturating_add(u64::from(pages) * PAGE_BYTES);
    let end = address.saturating_add(size_of_val(words) as u64);
    if start.is_null() || !range.contains(&address) || end > range.end || !address.is_multiple_of(8)
    {
        return Err(format!("{address:#x} is no address in the scheduler's arena"));
    }
    // SAFETY: the range is within the arena, which is mapped for as long as the object lives, and
    // a program has allocated these words.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), address as *mut u64, words.len()) };
    Ok(())
}

/// Types, and the steps that lead from one to its parts.
#[derive(Clone, Copy)]
struct Types<'b>(&'b Btf<'b>);

impl<'b> Types<'b> {
    /// Offset and type of a member, also of one within a member without a name.
    fn member(self, of: BtfType<'b>, name: &str, depth: u32) -> Option<(usize, BtfType<'b>)> {
        let composite = Composite::try_from(of.skip_mods_and_typedefs()).ok()?;
        let members: Vec<_> =
            composite.iter().map(|found| (found.name, found.ty, found.attr)).collect();
        members.into_iter().find_map(|(own, ty, attr)| {
            let (at, ty) = (offset_of(attr)?, self.0.type_by_id::<BtfType<'_>>(ty)?);
            match own {
                Some(own) => (own == OsStr::new(name)).then_some((at, ty)),
                None if depth > 0 => {
                    let (inner, ty) = self.member(ty, name, depth - 1)?;
                    Some((at + inner, ty))
                }
                None => None,
            }
        })
    }

    /// The bytes that `value` puts into a variable of type `ty` at `at`.
    fn assign(
        self,
        ty: BtfType<'b>,
        at: usize,
        steps: &[SetupStep<'_>],
        value: &SetupValue,
        all: &mut Places,
    ) -> Result<(), String> {
        let ty = ty.skip_mods_and_typedefs();
        if let Ok(array) = Array::try_from(ty) {
            let nr = array.capacity();
            return self.assign_array(array.contained_type(), nr, at, steps, value, all);
        }
        if let Some((SetupStep::Member(name), rest)) = steps.split_first() {
            let found = self.member(ty, name, DEPTH_MAX);
            let (offset, of) = found.ok_or_else(|| format!("there is no member {name}"))?;
            return self.assign(of, at + offset, rest, value, all);
        }
        let is_number = matches!(ty.kind(), BtfKind::Int | BtfKind::Enum | BtfKind::Enum64);
        let size = size_of_type(ty);
        let (SetupValue::Number(number), true, true, 1..=8) =
            (value, steps.is_empty(), is_number, size)
        else {
            return Err(MISFIT.into());
        };
        let is_bool = Int::try_from(ty).is_ok_and(|int| matches!(int.encoding, IntEncoding::Bool));
        let number = if is_bool { i128::from(*number != 0) } else { *number };
        all.push((at, number.to_le_bytes()[..size].to_vec()));
        Ok(())
    }

    /// The bytes that `value` puts into an array of `nr` elements of type `of` at `at`.
    fn assign_array(
        self,
        of: BtfType<'b>,
        nr: usize,
        at: usize,
        steps: &[SetupStep<'_>],
        value: &SetupValue,
        all: &mut Places,
    ) -> Result<(), String> {
        let size = size_of_type(of);
        let mut places = (0..nr).map(|index| at + index * size);
        match (steps.split_first(), value) {
            (Some((SetupStep::Index(index), rest)), _) if (*index as usize) < nr => {
                self.assign(of, at + *index as usize * size, rest, value, all)
            }
            (Some((SetupStep::All, rest)), _) => {
                places.try_for_each(|at| self.assign(of, at, rest, value, all))
            }
            (None | Some((SetupStep::Every, _)), SetupValue::List(values)) => {
                if values.len() > nr {
                    return Err(format!("{} values for an array of {nr}", values.len()));
                }
                let rest = steps.get(1..).unwrap_or_default();
                let mut parts = values.iter().zip(places);
                parts.try_for_each(|(value, at)| self.assign(of, at, rest, value, all))
            }
            _ => Err(MISFIT.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::describe::open_bytes;
    use crate::ext::{Build, Source, object};

    const SOURCE: &str = "#include \"scx.bpf.h\"\n\
        struct part { u16 id; struct { u8 x; bool is_on; }; u32 of[2]; };\n\
        const volatile u32 nr_parts;\nconst volatile u64 masks[2][2];\n\
        struct part parts[3];\nu64 limit = 7;\n\
        void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 enq_flags)\n{\n\
        struct part *part = &parts[p->pid & 1];\n\
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, limit + nr_parts + masks[p->pid & 1][0] + part->x +\n\
        part->is_on + part->of[1] + part->id, enq_flags);\n}\n\
        SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = \"x\");\n\
        char _license[] SEC(\"license\") = \"GPL\";\n";

    fn number(value: i128) -> SetupValue {
        SetupValue::Number(value)
    }

    fn list(values: &[i128]) -> SetupValue {
        SetupValue::List(values.iter().copied().map(number).collect())
    }

    #[test]
    fn variables_get_the_values_of_a_setup() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.bpf.c");
        std::fs::write(&path, SOURCE).unwrap();
        let source = Source::File(path);
        let bytes = match object(&source, &Build::default()) {
            Err(HostError::Unavailable(why)) => return schedlab_testing::skip(why),
            done => done.unwrap(),
        };
        let mut setup = ReadySetup {
            origin: "x.toml".into(),
            variables: vec![
                ("nr_parts".into(), number(3)),
                ("masks".into(), SetupValue::List(vec![list(&[1, 2]), list(&[3])])),
                ("parts[all].is_on".into(), number(7)),
                ("parts[*].id".into(), list(&[5, -1])),
                ("parts[2].of[1]".into(), number(9)),
                ("limit".into(), number(8)),
            ],
            ..ReadySetup::default()
        };
        let mut opened = open_bytes(&source, &bytes).unwrap();
        Applied::new(&setup, "own", &bytes).unwrap().before_load(&mut opened).unwrap();
        let of = |section: &str| {
            let mut maps = opened.object.maps();
            let map = maps.find(|map| map.name().to_string_lossy().ends_with(section)).unwrap();
            map.initial_value().unwrap().to_vec()
        };
        let part = |id: u16, of: u8| [id as u8, (id >> 8) as u8, 0, 1, 0, 0, 0, 0, of, 0, 0, 0];
        assert_eq!(of(".bss"), [part(5, 0), part(0xffff, 0), part(0, 9)].concat());
        assert_eq!(of(".data")[..8], 8_u64.to_le_bytes());
        let words: Vec<u8> = [1_u64, 2, 3, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        let rodata = of(".rodata");
        assert!(rodata.windows(32).any(|found| found == words) && rodata.contains(&3));

        let mut fails = |path: &str, value: SetupValue| {
            setup.variables = vec![(path.into(), value)];
            let applied = Applied::new(&setup, "own", &bytes).unwrap();
            applied.before_load(&mut open_bytes(&source, &bytes).unwrap()).unwrap_err().to_string()
        };
        let error = fails("nr_things", number(1));
        assert_eq!(error, "the setup x.toml fails: variable nr_things: the scheduler has none");
        assert!(fails("parts[*].y", list(&[1])).contains("there is no member y"));
        assert!(fails("parts[*].id", list(&[1; 4])).contains("4 values for an array of 3"));
        assert!(fails("parts[3].id", number(1)).contains("do not fit its type"));
        assert!(fails("limit", list(&[1])).contains("do not fit its type"));
        setup.is_lenient = true;
        let applied = Applied::new(&setup, "own", &bytes).unwrap();
        applied.before_load(&mut open_bytes(&source, &bytes).unwrap()).unwrap();
    }
}
