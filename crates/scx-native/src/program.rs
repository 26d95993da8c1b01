// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compiled scheduler with all names resolved. Runs are made from it.
//!
//! Every undefined name is bound to an existing function or variable, or refused with an error.
//! Names with a flavour (`scx_bpf_dsq_insert___v1`) are looked up as in libbpf, without the part
//! after the last `___`. A weak name that the modelled kernel does not have is NULL, as in the
//! kernel.

use super::cache::hex;
use super::compile::{CompileOptions, Compiled, compile};
use super::dwarf::{Debug, Map, Variable, debug_address};
use super::error::NativeError;
use super::host::{self, HostFn};
use super::object::{ObjectFile, Place, Relocation, Section, Use};
use schedlab_model::KernelVersion;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Index of the run time among the objects.
pub const RUN_TIME: usize = 0;

/// The target of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A place in a section: object, section, offset.
    Section(usize, usize, u64),
    /// A function of the simulator, by its index in [`host::FUNCTIONS`].
    Host(usize),
    /// Missing: NULL, which the scheduler may test. A call of it ends the run. Index of its name.
    Absent(usize),
    /// A word of the kernel's configuration that is not set: zeroes.
    Zeroes,
    /// A constant.
    Absolute(u64),
}

/// A compiled scheduler.
#[derive(Debug)]
pub struct Program {
    /// The source, for messages.
    pub source: PathBuf,
    /// The modelled kernel.
    pub kernel: KernelVersion,
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
        Self::link(source, options.kernel, compiled)
    }

    fn link(source: &Path, kernel: KernelVersion, compiled: Compiled) -> Result<Self, NativeError> {
        let objects = compiled.objects;
        let (targets, absent) = resolve(source, kernel, &objects)?;
        let mut debug = Vec::new();
        let (mut variables, mut maps) = (Vec::new(), Vec::new());
        for (index, object) in objects.iter().enumerate() {
            let of = Debug::new(object)?;
            if index != RUN_TIME {
                let (more, more_maps) = of.variables()?;
                variables.extend(more.into_iter().map(|variable| (index, variable)));
                maps.extend(more_maps.into_iter().map(|map| (index, map)));
            }
            debug.push(of);
        }
        let ops = find_ops(source, &objects)?;
        let source = source.to_owned();
        Ok(Self { source, kernel, objects, targets, absent, debug, variables, maps, ops })
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

/// A name without its flavour: up to the last `___` between other characters.
pub fn essential_name(name: &str) -> &str {
    let bytes = name.as_bytes();
    for at in (1..bytes.len().saturating_sub(3)).rev() {
        let is_separator = &bytes[at..at + 3] == b"___";
        if is_separator && bytes[at - 1] != b'_' && bytes[at + 3] != b'_' {
            return &name[..at];
        }
    }
    name
}

/// The definitions of a name, the best one first.
fn definitions(
    source: &Path,
    objects: &[ObjectFile],
) -> Result<BTreeMap<String, Target>, NativeError> {
    /// Rank of a definition. Those of a scheduler replace those of the run time.
    #[derive(Clone, Copy, PartialEq, PartialOrd)]
    enum Rank {
        RunTime,
        Weak,
        Strong,
    }
    let mut found: BTreeMap<String, (Rank, Target)> = BTreeMap::new();
    for (index, object) in objects.iter().enumerate() {
        for symbol in &object.symbols {
            let Place::Section(section, offset) = symbol.place else { continue };
            if symbol.is_local || symbol.name.is_empty() {
                continue;
            }
            let rank = match (index, symbol.is_weak) {
                (RUN_TIME, _) => Rank::RunTime,
                (_, true) => Rank::Weak,
                (_, false) => Rank::Strong,
            };
            let target = Target::Section(index, section, offset);
            match found.get(&symbol.name) {
                Some((Rank::Strong, _)) if rank == Rank::Strong => {
                    return Err(NativeError::Refused(format!(
                        "{}: {} is defined in two of its files",
                        source.display(),
                        symbol.name
                    )));
                }
                Some((before, _)) if *before >= rank => {}
                _ => {
                    found.insert(symbol.name.clone(), (rank, target));
                }
            }
        }
    }
    Ok(found.into_iter().map(|(name, (_, target))| (name, target)).collect())
}

/// Resolves every symbol. Returns the names of missing functions.
fn resolve(
    source: &Path,
    kernel: KernelVersion,
    objects: &[ObjectFile],
) -> Result<(Vec<Vec<Target>>, Vec<String>), NativeError> {
    let defined = definitions(source, objects)?;
    let mut absent: Vec<String> = Vec::new();
    let mut missing: BTreeSet<String> = BTreeSet::new();
    let mut targets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let used: BTreeSet<usize> = object
            .sections
            .iter()
            .filter(|section| matches!(section.usage, Use::Text | Use::Data))
            .flat_map(|section| section.relocations.iter().map(|relocation| relocation.symbol))
            .collect();
        let mut of_object = Vec::new();
        for (number, symbol) in object.symbols.iter().enumerate() {
            let target = match symbol.place {
                Place::Absolute(value) => Target::Absolute(value),
                Place::Section(section, offset) => {
                    let own = Target::Section(index, section, offset);
                    let is_own = symbol.is_local || symbol.name.is_empty();
                    if is_own { own } else { defined.get(&symbol.name).copied().unwrap_or(own) }
                }
                Place::Undefined => match find(&symbol.name, kernel, &defined) {
                    Some(target) => target,
                    None if symbol.is_weak && symbol.name.starts_with("CONFIG_") => Target::Zeroes,
                    None => {
                        if !symbol.is_weak && used.contains(&number) {
                            missing.insert(symbol.name.clone());
                        }
                        absent.push(symbol.name.clone());
                        Target::Absent(absent.len() - 1)
                    }
                },
            };
            of_object.push(target);
        }
        targets.push(of_object);
    }
    if missing.is_empty() {
        return Ok((targets, absent));
    }
    Err(NativeError::Refused(refusal(source, kernel, objects, &missing)))
}

fn find(name: &str, kernel: KernelVersion, defined: &BTreeMap<String, Target>) -> Option<Target> {
    for name in [name, essential_name(name)] {
        if let Some(target) = defined.get(name) {
            return Some(*target);
        }
        if let Some(index) = host::find(name)
            && host::FUNCTIONS[index].exists_in(kernel)
        {
            return Some(Target::Host(index));
        }
    }
    None
}

fn refusal(
    source: &Path,
    kernel: KernelVersion,
    objects: &[ObjectFile],
    missing: &BTreeSet<String>,
) -> String {
    let mut text = format!("{} calls what the simulator does not have:", source.display());
    for name in missing {
        text.push_str("\n  ");
        text.push_str(name);
        let known = host::find(essential_name(name)).map(|index| &host::FUNCTIONS[index]);
        if let Some(HostFn { since, .. }) = known {
            text.push_str(&format!(" (of Linux {since} and later)"));
        }
    }
    text.push_str(&format!("\nThe modelled kernel is Linux {kernel}; it has:\n "));
    let mut column = 1;
    for name in host::names(kernel, &objects[RUN_TIME]) {
        if column + name.len() + 1 > 98 {
            text.push_str("\n ");
            column = 1;
        }
        text.push(' ');
        text.push_str(name);
        column += name.len() + 1;
    }
    text
}

/// The one `struct sched_ext_ops`.
fn find_ops(source: &Path, objects: &[ObjectFile]) -> Result<(usize, usize, u64), NativeError> {
    let mut found = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        for name in [".struct_ops.link", ".struct_ops"] {
            let Some(section) = object.section(name) else { continue };
            for (symbol, range) in object.symbols_in(section) {
                found.push((symbol.name.clone(), (index, section, range.start)));
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

#[cfg(test)]
mod tests {
    use super::essential_name;

    #[test]
    fn flavours_are_what_follows_the_last_three_underscores() {
        assert_eq!(essential_name("scx_bpf_dsq_insert___v1"), "scx_bpf_dsq_insert");
        assert_eq!(essential_name("scx_bpf_dsq_insert___v2___compat"), "scx_bpf_dsq_insert___v2");
        assert_eq!(essential_name("scx_bpf_now"), "scx_bpf_now");
        assert_eq!(essential_name("___x"), "___x");
    }
}
