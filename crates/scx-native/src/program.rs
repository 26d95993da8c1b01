// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compiled scheduler with all names resolved. Runs are made from it.
//!
//! [`link`](super::link) binds every undefined name to an existing function or variable, or
//! refuses it.

use super::cache::hex;
use super::cids;
use super::compile::{CompileOptions, Compiled, OWN_FILES, compile};
use super::coverage;
use super::dwarf::{Debug, Map, Type, Variable, debug_address};
use super::error::NativeError;
use super::link::{Linked, link};
use super::object::{ObjectFile, Place, Relocation, Section, Use};
use schedlab_model::KernelVersion;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Index of the run time among the objects.
pub const RUN_TIME: usize = 0;

/// The target of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A place in a section: object, section, offset.
    Section(usize, usize, u64),
    /// A function of the simulator, by its index in `FUNCTIONS` of the host.
    Host(usize),
    /// Missing: NULL, which the scheduler may test. A call of it ends the run. Index of its name.
    Absent(usize),
    /// A word of the kernel's configuration that is not set: zeroes.
    Zeroes,
    /// A constant.
    Absolute(u64),
    /// What checks calls through pointers.
    Branch,
}

/// A compiled scheduler.
#[derive(Debug)]
pub struct Program {
    /// The source, for messages.
    pub source: PathBuf,
    /// The modelled kernel.
    pub kernel: KernelVersion,
    /// The file with its setup, if the user names one.
    pub setup: Option<PathBuf>,
    /// Whether it was compiled with checks of loads and stores.
    pub is_checked: bool,
    /// Run time and scheduler.
    pub objects: Vec<ObjectFile>,
    /// The target of each symbol of each object.
    pub targets: Vec<Vec<Target>>,
    /// Names of missing functions.
    pub absent: Vec<String>,
    /// Debug information of each object.
    pub debug: Vec<Debug>,
    /// Global and static variables of the scheduler: object and variable.
    pub variables: Vec<(usize, Variable)>,
    /// Its maps: object and map.
    pub maps: Vec<(usize, Map)>,
    /// Place of its `struct sched_ext_ops`: object, section, offset.
    pub ops: (usize, usize, u64),
    /// Whether that is a `struct sched_ext_ops_cid`: it counts CPUs by topology.
    pub is_cid_form: bool,
    /// Lines of its source and their counters, if it was compiled to count.
    pub coverage: coverage::Map,
}

impl Program {
    /// SHA-256 of what is loaded, in hexadecimal digits: code, data and their references, the
    /// kernel, and the values of `arrays`. It does not depend on the source's name or on debug
    /// information.
    pub fn sum(&self, arrays: &[(String, String)]) -> String {
        let mut hasher = Sha256::new();
        hasher.update(format!("{} {arrays:?}", self.kernel.series_number()));
        for object in &self.objects {
            let loaded = |section: &&Section| matches!(section.usage, Use::Text | Use::Data);
            for section in object.sections.iter().filter(loaded) {
                hasher.update(format!("{} {} ", section.name, section.bytes.len()));
                hasher.update(&section.bytes);
                for at in &section.relocations {
                    let symbol = &object.symbols[at.symbol];
                    let (name, place) = (&symbol.name, symbol.place);
                    let Relocation { offset, r_type, addend, .. } = at;
                    hasher.update(format!("{offset} {r_type} {addend} {name} {place:?} "));
                }
            }
        }
        hex(&hasher.finalize())
    }

    /// Compiles `source` for a modelled kernel and resolves its names.
    pub fn compile(source: &Path, options: &CompileOptions) -> Result<Self, NativeError> {
        let compiled = compile(source, options)?;
        let mut this = Self::of(source, options.kernel, compiled)?;
        this.is_checked = options.is_checked;
        this.setup.clone_from(&options.setup);
        Ok(this)
    }

    fn of(source: &Path, kernel: KernelVersion, compiled: Compiled) -> Result<Self, NativeError> {
        let objects = compiled.objects;
        let Linked { targets, absent, replaced } = link(source, kernel, &objects)?;
        let mut debug = Vec::new();
        let (mut variables, mut maps) = (Vec::new(), Vec::new());
        for (index, object) in objects.iter().enumerate() {
            let of = Debug::new(object)?;
            if index != RUN_TIME {
                let (more, more_maps) = of.variables()?;
                let is_kept = |section, offset| !replaced.contains(&(index, section, offset));
                let more = more.into_iter().filter(|of| is_kept(of.section, of.offset));
                variables.extend(more.map(|variable| (index, variable)));
                let more = more_maps.into_iter().filter(|of| is_kept(of.section, of.offset));
                maps.extend(more.map(|map| (index, map)));
            }
            debug.push(of);
        }
        let (ops, ops_size) = find_ops(source, &objects)?;
        let is_cid_form = debug[ops.0].size_of("sched_ext_ops_cid") == Some(ops_size);
        if is_cid_form {
            let has_arena = maps.iter().any(|(_, map)| map.def.map_type == cids::ARENA);
            cids::check(source, kernel, &objects[RUN_TIME + 1..], has_arena)?;
        }
        let coverage = coverage::Map::new(&objects, OWN_FILES);
        let (source, setup, is_checked) = (source.to_owned(), None, false);
        Ok(Self {
            source,
            kernel,
            setup,
            is_checked,
            objects,
            targets,
            absent,
            debug,
            variables,
            maps,
            ops,
            is_cid_form,
            coverage,
        })
    }

    /// Constants that are arrays of numbers without a value: only a user program can fill them.
    /// Arrays of characters are texts.
    pub fn empty_tables(&self) -> Vec<String> {
        fn is_table(of: &Type) -> bool {
            let Type::Array { of, .. } = of else { return false };
            match &**of {
                Type::Int { size: 1, signed: true } => false,
                Type::Int { .. } | Type::Bool | Type::Enum { .. } => true,
                of => is_table(of),
            }
        }
        let is_empty = |(object, variable): &&(usize, Variable)| {
            let bytes = &self.objects[*object].sections[variable.section].bytes;
            let size = variable.of.size() as usize;
            let bytes = bytes.get(variable.offset as usize..).and_then(|rest| rest.get(..size));
            bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
        };
        let constants = self.variables.iter().filter(|(_, variable)| variable.is_option);
        let tables = constants.filter(|(_, variable)| is_table(&variable.of)).filter(is_empty);
        tables.map(|(_, variable)| variable.name.clone()).collect()
    }

    /// The symbol of the run time called `name`: section and offset.
    pub fn run_time_symbol(&self, name: &str) -> Result<(usize, u64), NativeError> {
        let symbols = &self.objects[RUN_TIME].symbols;
        let found = symbols.iter().find_map(|symbol| match symbol.place {
            Place::Section(section, offset) if symbol.name == name => Some((section, offset)),
            _ => None,
        });
        found.ok_or_else(|| NativeError::Internal(format!("the run time has no {name}")))
    }

    /// File and line of an offset of a section.
    pub fn line_at(&self, object: usize, section: usize, offset: u64) -> Option<(String, u64)> {
        self.debug[object].line(debug_address(section) + offset)
    }

    /// Name of the function that contains an offset of a section, and the offset within it.
    pub fn function_at(&self, object: usize, section: usize, offset: u64) -> Option<&str> {
        let symbols = self.objects[object].symbols_in(section);
        let mut functions = symbols.filter(|(symbol, _)| symbol.is_function);
        functions.find(|(_, range)| range.contains(&offset)).map(|(symbol, _)| &*symbol.name)
    }
}

/// The one `struct sched_ext_ops`: object, section, offset; and its size.
fn find_ops(
    source: &Path,
    objects: &[ObjectFile],
) -> Result<((usize, usize, u64), u64), NativeError> {
    let mut found = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        for name in [".struct_ops.link", ".struct_ops"] {
            let Some(section) = object.section(name) else { continue };
            for (symbol, range) in object.symbols_in(section) {
                let size = range.end - range.start;
                found.push((symbol.name.clone(), ((index, section, range.start), size)));
            }
        }
    }
    match &found[..] {
        [(_, place)] => Ok(*place),
        [] => Err(NativeError::Refused(format!(
            "{} is no scheduler: it has no struct sched_ext_ops in section .struct_ops.link \
             (SCX_OPS_DEFINE makes one)",
            source.display()
        ))),
        many => {
            let names: Vec<&str> = many.iter().map(|(name, _)| name.as_str()).collect();
            Err(NativeError::Refused(format!(
                "{} has {} schedulers where one is expected: {}",
                source.display(),
                many.len(),
                names.join(", ")
            )))
        }
    }
}
