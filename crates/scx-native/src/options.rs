// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a scheduler: its `const volatile` variables. A kernel's loader sets them before it
//! loads the scheduler; a run sets them with `--set name=value`.
//!
//! Some are not for users. The user program of a scheduler sets them from what it finds: the number
//! of CPUs, the kernel's enumerations, the length of a dump. schedlab sets those by name, as
//! described in [`filled_in`].

use super::dwarf::{Type, Variable};
use super::error::NativeError;
use super::image::Image;
use super::program::{Program, RUN_TIME};
use super::run::DUMP_LEN;
use schedlab_scx_source::{Constant, is_set_by_schedlab};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Properties of the machine that a scheduler's options may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineWords {
    /// CPUs.
    pub nr_cpus: u32,
    /// Ticks a second.
    pub hz: u32,
}

/// Chosen values, checked against the scheduler's options.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chosen {
    values: BTreeMap<String, Vec<i128>>,
}

/// An option, for lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionInfo {
    /// Name.
    pub name: String,
    /// Its type in words.
    pub kind: String,
    /// The value in the source.
    pub default: String,
}

/// The value that the user program of a scheduler would set; `None`: the value in the source stays.
/// `is_zero`: that value is 0.
fn filled_in(
    name: &str,
    is_zero: bool,
    machine: MachineWords,
    enums: &BTreeMap<String, u64>,
) -> Option<i128> {
    match Constant::of(name)? {
        Constant::Enumerator(name) => enums.get(name).map(|value| i128::from(*value)),
        Constant::DumpLen => Some(DUMP_LEN as i128),
        Constant::NrCpus => Some(i128::from(machine.nr_cpus)),
        Constant::TickNs => Some(1_000_000_000 / i128::from(machine.hz.max(1))),
        Constant::SliceNs => is_zero.then_some(i128::from(schedlab_scx::consts::SLICE_DFL)),
    }
}

/// The options of `program` that users may set.
pub fn list(program: &Program) -> Vec<OptionInfo> {
    let mut options: Vec<OptionInfo> = program
        .variables
        .iter()
        .filter(|(_, variable)| variable.is_option && !is_set_by_schedlab(&variable.name))
        .map(|(object, variable)| OptionInfo {
            name: variable.name.clone(),
            kind: kind(&variable.of),
            default: default(program, *object, variable),
        })
        .collect();
    options.sort_by(|a, b| a.name.cmp(&b.name));
    options.dedup_by(|a, b| a.name == b.name);
    options
}

fn kind(of: &Type) -> String {
    match of {
        Type::Bool => "true or false".into(),
        Type::Int { size, signed } => {
            format!("{} of {} bits", if *signed { "integer" } else { "number" }, size * 8)
        }
        Type::Enum { values, .. } => {
            let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
            format!("one of {}", names.join(", "))
        }
        Type::Array { of, nr } => format!("{nr} times: {}", kind(of)),
        Type::Struct { .. } | Type::Pointer | Type::Bits { .. } | Type::Other { .. } => {
            format!("{} bytes, not settable", of.size())
        }
    }
}

fn default(program: &Program, object: usize, variable: &Variable) -> String {
    let value = default_number(program, object, variable);
    match &variable.of {
        Type::Bool => (value == 1).to_string(),
        Type::Int { size: 1..=8, .. } => value.to_string(),
        Type::Enum { values, .. } => {
            let named = values.iter().find(|(_, known)| i128::from(*known) == value);
            named.map_or_else(|| value.to_string(), |(name, _)| name.clone())
        }
        _ => String::new(),
    }
}

/// The number of an option in the source; 0 if it is not a number.
pub fn default_number(program: &Program, object: usize, variable: &Variable) -> i128 {
    let section = &program.objects[object].sections[variable.section];
    let (at, size) = (variable.offset as usize, variable.of.size() as usize);
    let bytes = section.bytes.get(at..at.saturating_add(size)).unwrap_or_default();
    match &variable.of {
        Type::Bool => i128::from(bytes.first().copied().unwrap_or(0)),
        Type::Int { size: 1..=8, signed } => number(bytes, *signed),
        Type::Enum { size: 1..=8, .. } => number(bytes, true),
        _ => 0,
    }
}

fn number(bytes: &[u8], signed: bool) -> i128 {
    let mut wide = [0u8; 16];
    if signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0) {
        wide.fill(0xff);
    }
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

impl Chosen {
    /// Reads `name=value` pairs.
    pub fn parse(program: &Program, given: &[(String, String)]) -> Result<Self, NativeError> {
        let mut this = Self::default();
        for (name, text) in given {
            let found = program.variables.iter().find(|(_, variable)| {
                variable.is_option && !is_set_by_schedlab(name) && variable.name == *name
            });
            let Some((_, variable)) = found else {
                return Err(NativeError::Option(unknown(program, name)));
            };
            let values = values(&variable.of, text).map_err(|wanted| {
                NativeError::Option(format!(
                    "option {name}={text}: {wanted} is wanted (it is a {})",
                    kind(&variable.of)
                ))
            })?;
            this.values.insert(name.clone(), values);
        }
        Ok(this)
    }

    /// Whether an option was given a value.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Sets an option to a number that fits.
    pub fn set(&mut self, name: &str, value: i128) {
        self.values.insert(name.to_owned(), vec![value]);
    }

    /// Number of given elements of an array.
    pub fn nr_elements(&self, name: &str) -> usize {
        self.values.get(name).map_or(0, Vec::len)
    }

    /// Writes all options into an image.
    pub fn apply(
        &self,
        program: &Program,
        image: &mut Image,
        machine: MachineWords,
    ) -> Result<(), NativeError> {
        let enums = enums(program, image)?;
        for (object, variable) in &program.variables {
            let at = image.address(*object, variable.section, variable.offset);
            let size = element_size(&variable.of);
            if !variable.is_option || at == 0 || size == 0 {
                continue;
            }
            if let Some(values) = self.values.get(&variable.name) {
                for (index, value) in values.iter().enumerate() {
                    image.put(at + (index * size) as u64, &value.to_le_bytes()[..size]);
                }
                continue;
            }
            if matches!(variable.of, Type::Array { .. }) {
                continue;
            }
            let is_zero = image.bytes(at, size).iter().all(|byte| *byte == 0);
            if let Some(value) = filled_in(&variable.name, is_zero, machine, &enums) {
                image.put(at, &value.to_le_bytes()[..size]);
            }
        }
        Ok(())
    }
}

fn element_size(of: &Type) -> usize {
    match of {
        Type::Array { of, .. } => element_size(of),
        Type::Bool => 1,
        Type::Int { size: size @ 1..=8, .. } | Type::Enum { size: size @ 1..=8, .. } => {
            *size as usize
        }
        _ => 0,
    }
}

/// Reads one value, or several separated by `:` for an array.
fn values(of: &Type, text: &str) -> Result<Vec<i128>, String> {
    match of {
        Type::Bool => match text {
            "1" | "true" | "yes" | "on" => Ok(vec![1]),
            "0" | "false" | "no" | "off" => Ok(vec![0]),
            _ => Err("true or false".into()),
        },
        Type::Enum { values, .. } if values.iter().any(|(name, _)| name == text) => {
            let value = values.iter().find(|(name, _)| name == text);
            Ok(value.map(|(_, value)| i128::from(*value)).into_iter().collect())
        }
        Type::Int { size: size @ 1..=8, signed } => integer(text, *size, *signed).map(|v| vec![v]),
        Type::Enum { size: size @ 1..=8, .. } => integer(text, *size, true).map(|v| vec![v]),
        Type::Array { of, nr } if !matches!(**of, Type::Array { .. }) => {
            let mut all = Vec::new();
            for part in text.split(':') {
                all.extend(values(of, part)?);
            }
            // An array of one element is one of unknown length (RESIZABLE_ARRAY).
            if *nr > 1 && all.len() as u64 > *nr {
                return Err(format!("at most {nr} values, with `:` between them,"));
            }
            Ok(all)
        }
        _ => Err("an option that is one number".into()),
    }
}

fn integer(text: &str, size: u64, signed: bool) -> Result<i128, String> {
    let digits = text.replace('_', "");
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    let bits = size * 8;
    let (min, max) = match signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    parsed
        .filter(|value| (min..=max).contains(value))
        .ok_or_else(|| format!("a whole number from {min} to {max}"))
}

fn unknown(program: &Program, name: &str) -> String {
    let options = list(program);
    let source = program.source.display();
    if options.is_empty() {
        return format!("{source} has no option {name:?}; it has none at all");
    }
    let mut text = format!("{source} has no option {name:?}; it has:");
    for option in options {
        let _ = write!(text, "\n  {}: {}", option.name, option.kind);
        if !option.default.is_empty() {
            let _ = write!(text, ", {} by default", option.default);
        }
    }
    text
}

/// The values of the kernel's enumerations in the modelled kernel.
fn enums(program: &Program, image: &Image) -> Result<BTreeMap<String, u64>, NativeError> {
    const ENTRY: u64 = 24;
    let (section, offset) = program.run_time_symbol("schedlab_enums")?;
    let base = image.address(RUN_TIME, section, offset);
    let mut enums = BTreeMap::new();
    let kernel = program.kernel.series_number();
    for index in 0.. {
        let entry = image.bytes(base + index * ENTRY, ENTRY as usize);
        let word = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight"));
        if word(0) == 0 {
            break;
        }
        if word(16) as u32 <= kernel {
            enums.insert(image.text_at(word(0)), word(8));
        }
    }
    Ok(enums)
}

/// The value of flags of a scheduler (`SCX_OPS_...`) in the modelled kernel; 0 for one that it
/// lacks.
pub fn flags(program: &Program, image: &Image, names: &[String]) -> Result<u64, NativeError> {
    let enums = enums(program, image)?;
    Ok(names.iter().map(|name| enums.get(name).copied().unwrap_or(0)).fold(0, |a, b| a | b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_to_their_type() {
        let byte = Type::Int { size: 1, signed: false };
        assert_eq!(values(&byte, "0xff"), Ok(vec![255]));
        assert!(values(&byte, "256").unwrap_err().contains("from 0 to 255"));
        assert!(values(&byte, "fast").is_err());
        assert_eq!(values(&Type::Int { size: 4, signed: true }, "-1"), Ok(vec![-1]));
        assert_eq!(values(&Type::Bool, "on"), Ok(vec![1]));
        let mode = Type::Enum { size: 4, values: vec![("FIFO".into(), 2)] };
        assert_eq!(values(&mode, "FIFO"), Ok(vec![2]));
        let two = Type::Array { of: Box::new(byte), nr: 2 };
        assert_eq!(values(&two, "1:2"), Ok(vec![1, 2]));
        assert!(values(&two, "1:2:3").is_err());
    }

    #[test]
    fn words_of_the_kernel_are_filled_in_by_name() {
        let enums = BTreeMap::from([("SCX_SLICE_DFL".to_owned(), 20_000_000u64)]);
        let machine = MachineWords { nr_cpus: 4, hz: 250 };
        assert_eq!(filled_in("__SCX_SLICE_DFL", true, machine, &enums), Some(20_000_000));
        assert_eq!(filled_in("nr_cpu_ids", false, machine, &enums), Some(4));
        assert_eq!(filled_in("slice_ns", false, machine, &enums), None);
        assert_eq!(filled_in("uei_dump_len", true, machine, &enums), Some(32_768));
    }
}
