// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links the objects of a scheduler with each other, with the run time and with the simulator.
//!
//! Source: libbpf's linker (tools/lib/bpf/linker.c) for what several files of one scheduler may
//! define: a strong definition replaces weak ones, of several weak ones the first counts, and each
//! file may have the licence. Names with a flavour (`scx_bpf_dsq_insert___v1`) are looked up as in
//! libbpf, without the part after the last `___`. A weak name that the modelled kernel does not
//! have is NULL, as in the kernel.

use super::error::NativeError;
use super::host::{self, HostFn};
use super::object::{ObjectFile, Place, Relocation, Use};
use super::program::{RUN_TIME, Target};
use super::thunks;
use schedlab_model::KernelVersion;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// Sections of which every file has its own, and one counts.
const REPEATED: [&str; 2] = ["license", "version"];
/// Beginning of the names of the kernel's configuration.
const CONFIGURATION: &str = "CONFIG_";

/// Where every symbol leads.
#[derive(Debug)]
pub struct Linked {
    /// The target of each symbol of each object.
    pub targets: Vec<Vec<Target>>,
    /// Names of missing functions.
    pub absent: Vec<String>,
    /// Definitions that another one replaces: object, section, offset.
    pub replaced: BTreeSet<(usize, usize, u64)>,
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
            // Each file has a licence; the kernel reads one.
            if REPEATED.contains(&object.sections[section].name.as_str()) {
                found
                    .entry(symbol.name.clone())
                    .or_insert((Rank::Weak, Target::Section(index, section, offset)));
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

/// Binds every symbol of `objects`, the run time first.
///
/// # Errors
/// A name is defined twice, or a function that the scheduler can reach calls one that is missing.
pub fn link(
    source: &Path,
    kernel: KernelVersion,
    objects: &[ObjectFile],
) -> Result<Linked, NativeError> {
    let defined = definitions(source, objects)?;
    let mut linked = Linked { targets: Vec::new(), absent: Vec::new(), replaced: BTreeSet::new() };
    for (index, object) in objects.iter().enumerate() {
        let mut of_object = Vec::new();
        for symbol in &object.symbols {
            let target = match symbol.place {
                Place::Absolute(value) => Target::Absolute(value),
                Place::Section(section, offset) => {
                    let own = Target::Section(index, section, offset);
                    let is_own = symbol.is_local || symbol.name.is_empty();
                    let best = if is_own { None } else { defined.get(&symbol.name).copied() };
                    let best = best.unwrap_or(own);
                    if best != own {
                        linked.replaced.insert((index, section, offset));
                    }
                    best
                }
                Place::Undefined if symbol.name == thunks::BRANCH => Target::Branch,
                Place::Undefined => match find(&symbol.name, kernel, &defined) {
                    Some(target) => target,
                    None if symbol.is_weak && symbol.name.starts_with(CONFIGURATION) => {
                        Target::Zeroes
                    }
                    None => {
                        linked.absent.push(symbol.name.clone());
                        Target::Absent(linked.absent.len() - 1)
                    }
                },
            };
            of_object.push(target);
        }
        linked.targets.push(of_object);
    }
    let missing = Reach::of(objects, &linked.targets).missing(objects, &linked.targets);
    if missing.is_empty() {
        return Ok(linked);
    }
    Err(NativeError::Refused(refusal(source, kernel, objects, &missing)))
}

/// The code that a run can enter: callbacks, timers, programs that user programs run, and all that
/// these call. Programs that are attached to functions or tracepoints of the kernel are not: the
/// modelled kernel has none of those places, so what they call may be missing.
struct Reach {
    /// Object, section, start and end of each function, or of a whole section.
    reached: BTreeSet<(usize, usize, u64, u64)>,
}

/// Names of sections whose programs are entered from outside.
fn is_entered(section: &str) -> bool {
    ["struct_ops", "syscall"].iter().any(|kind| section.starts_with(kind))
}

impl Reach {
    fn of(objects: &[ObjectFile], targets: &[Vec<Target>]) -> Self {
        let mut this = Self { reached: BTreeSet::new() };
        let mut open = Vec::new();
        for (o, object) in objects.iter().enumerate() {
            for (s, section) in object.sections.iter().enumerate() {
                let is_root = match section.usage {
                    Use::Data => true,
                    Use::Text => o == RUN_TIME || is_entered(&section.name),
                    _ => false,
                };
                if is_root {
                    open.push((o, s, None));
                }
            }
        }
        while let Some((o, s, at)) = open.pop() {
            let object = &objects[o];
            let range = range_of(object, s, at);
            if !this.reached.insert((o, s, range.start, range.end)) {
                continue;
            }
            let within = |relocation: &&Relocation| range.contains(&relocation.offset);
            for relocation in object.sections[s].relocations.iter().filter(within) {
                let Target::Section(object, section, offset) = targets[o][relocation.symbol] else {
                    continue;
                };
                if objects[object].sections[section].usage == Use::Text {
                    let to = offset.wrapping_add_signed(addend_of(relocation));
                    open.push((object, section, Some(to)));
                }
            }
        }
        this
    }

    /// Names of functions and variables that reached code needs and nobody has.
    fn missing(&self, objects: &[ObjectFile], targets: &[Vec<Target>]) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        for &(o, s, start, end) in &self.reached {
            let object = &objects[o];
            for relocation in &object.sections[s].relocations {
                let symbol = &object.symbols[relocation.symbol];
                let is_absent = matches!(targets[o][relocation.symbol], Target::Absent(_));
                if is_absent && !symbol.is_weak && (start..end).contains(&relocation.offset) {
                    missing.insert(symbol.name.clone());
                }
            }
        }
        missing
    }
}

/// Distance from a symbol to what a relocation means: instructions count from their end.
fn addend_of(relocation: &Relocation) -> i64 {
    let is_absolute = relocation.r_type == object::elf::R_X86_64_64.0;
    if is_absolute { relocation.addend } else { relocation.addend + 4 }
}

/// The function that contains an offset of a section; the whole section if there is no offset, or
/// no function there.
fn range_of(object: &ObjectFile, section: usize, at: Option<u64>) -> Range<u64> {
    let holds = |range: &Range<u64>| at.is_some_and(|at| range.contains(&at));
    let functions = object.symbols_in(section).filter(|(symbol, _)| symbol.is_function);
    functions.map(|(_, range)| range).find(holds).unwrap_or(0..u64::MAX)
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
    let (words, missing): (Vec<&String>, Vec<&String>) =
        missing.iter().partition(|name| name.starts_with(CONFIGURATION));
    if !words.is_empty() {
        let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
        return format!(
            "{} reads words of the kernel's configuration that the model does not know: {}; \
             `extern ... __kconfig __weak` makes them 0",
            source.display(),
            words.join(", ")
        );
    }
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
