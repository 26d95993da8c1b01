// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes what was recorded as a setup (docs/reference/sched-ext-setup.md): variables by name,
//! elements of maps, runs of programs, flags.

use crate::bpf::{Bpf, Section, State};
use crate::btf::{Btf, Shape, Variable};
use schedlab_model::machine::Topology;
use schedlab_scx_source::is_set_by_schedlab;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Longest line of the file.
const WIDTH: usize = 96;
/// Sections whose variables are 0 unless a value is written.
const ZEROED: &str = ".bss";
/// The section of what the kernel's configuration says.
const CONFIGURATION: &str = ".kconfig";

/// A value of a variable.
enum Value {
    Number(i64),
    List(Vec<i64>),
}

/// Values of variables by path, and what could not be written.
#[derive(Default)]
struct Values {
    all: BTreeMap<String, Value>,
    /// Bytes of the variables so far.
    names: BTreeMap<String, Vec<u8>>,
    notes: BTreeSet<String>,
}

/// A number of up to 8 bytes as a setup writes it: beyond 63 bits as the negative number with the
/// same bits.
fn number(bytes: &[u8], is_signed: bool) -> i64 {
    let is_negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

impl Values {
    /// Adds the variables of a section.
    fn section(&mut self, section: &Section) {
        let name = section.types.name(section.number).unwrap_or_default();
        if name == CONFIGURATION {
            return;
        }
        let is_zeroed = name.starts_with(ZEROED);
        for variable in section.types.variables(section.number) {
            let Variable { name, offset, shape } = variable;
            let end = offset.saturating_add(shape.size());
            let Some(bytes) = section.bytes.get(offset..end) else { continue };
            let is_number = matches!(shape, Shape::Number { .. });
            // The source's own value of a number may be another than 0; a table of constants
            // that are all 0 has no value in any published source.
            let has_no_value = is_zero(bytes) && (is_zeroed || !is_number);
            // A user program cannot reach variables within functions, such as texts to print.
            if is_set_by_schedlab(&name) || name.contains('.') || has_no_value {
                continue;
            }
            match self.names.get(&name) {
                None => {
                    self.names.insert(name.clone(), bytes.to_vec());
                    self.add(&name, &shape, bytes, is_zeroed);
                }
                // Each of several objects has its own.
                Some(first) if first == bytes => {}
                Some(_) => {
                    self.notes.insert(format!(
                        "variable {name}: several have this name and other values, so only the \
                         first is recorded"
                    ));
                }
            }
        }
    }

    fn add(&mut self, path: &str, shape: &Shape, bytes: &[u8], is_zeroed: bool) {
        match shape {
            Shape::Number { is_signed, .. } => {
                self.all.insert(path.to_owned(), Value::Number(number(bytes, *is_signed)));
            }
            Shape::Array { of, .. } => self.array(path, of, bytes, is_zeroed),
            Shape::Struct { members, .. } => {
                for (name, offset, of) in members {
                    let end = offset.saturating_add(of.size());
                    if let Some(own) = bytes.get(*offset..end).filter(|own| !is_zero(own)) {
                        self.add(&format!("{path}.{name}"), of, own, is_zeroed);
                    }
                }
            }
            Shape::Opaque { .. } => {
                self.notes.insert(format!(
                    "variable {path} is a pointer, union or bit field, so its value is not recorded"
                ));
            }
        }
    }

    fn array(&mut self, path: &str, of: &Shape, bytes: &[u8], is_zeroed: bool) {
        let parts = bytes.chunks_exact(of.size().max(1));
        let Shape::Number { is_signed, .. } = of else {
            for (nth, own) in parts.enumerate().filter(|(_, own)| !is_zero(own)) {
                self.add(&format!("{path}[{nth}]"), of, own, is_zeroed);
            }
            return;
        };
        let mut list: Vec<i64> = parts.map(|own| number(own, *is_signed)).collect();
        let last = list.last().copied().unwrap_or(0);
        let kept = list.iter().rposition(|value| *value != last).map_or(0, |nth| nth + 1);
        list.truncate(kept);
        if last != 0 || !is_zeroed {
            self.all.insert(format!("{path}[all]"), Value::Number(last));
        }
        if !list.is_empty() {
            self.all.insert(path.to_owned(), Value::List(list));
        }
    }
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => all.extend(['\\', letter]),
            _ if letter.is_control() => {
                let _ = write!(all, "\\u{:04x}", u32::from(letter));
            }
            _ => all.push(letter),
        }
    }
    all + "\""
}

/// `start[a, b, ...]`, in lines of at most [`WIDTH`].
fn list(start: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let short = format!("{start}[{}]", items.join(", "));
    if short.len() <= WIDTH {
        return short + "\n";
    }
    let mut all = format!("{start}[\n");
    let mut line = String::from("   ");
    for item in items {
        if line.len() + item.len() + 2 > WIDTH {
            all += &line;
            all.push('\n');
            line = String::from("   ");
        }
        let _ = write!(line, " {item},");
    }
    all + &line + "\n]\n"
}

fn numbers<N: ToString>(values: &[N]) -> impl Iterator<Item = String> {
    values.iter().map(N::to_string)
}

/// A key of a table.
fn key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// Bytes as typed words: numbers of 32 bits if their count allows it, else bytes.
fn words(bytes: &[u8]) -> impl Iterator<Item = String> {
    let (step, word) = if bytes.len().is_multiple_of(4) { (4, "i32") } else { (1, "u8") };
    bytes.chunks(step).map(move |own| format!("[\"{word}\", {}]", number(own, step == 4)))
}

/// Names of the scheduler's flags; the second list has bits without a name.
fn flags(kernel: &Btf, state: &State) -> (Vec<String>, u64) {
    let place = kernel.member_type(state.ops_type, "data").and_then(|data| {
        let (start, _) = kernel.member(state.ops_type, "data")?;
        let (offset, _) = kernel.member(data, "flags")?;
        state.ops.get(start.checked_add(offset)?..)?.first_chunk()
    });
    let mut bits = place.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mut names = Vec::new();
    for (name, bit) in kernel.enumerators("scx_ops_flags") {
        if bit.is_power_of_two() && bits & bit != 0 {
            names.push(name);
            bits &= !bit;
        }
    }
    (names, bits)
}

/// The recorded setup as text, and notes on what it lacks.
pub(crate) fn write(
    kernel: &Btf,
    bpf: &Bpf,
    state: &State,
    head: &Head<'_>,
) -> (String, Vec<String>) {
    let mut values = Values::default();
    values.notes.clone_from(&bpf.notes);
    state.sections.iter().for_each(|section| values.section(section));
    for run in bpf.runs.iter().filter(|run| run.thread != state.thread) {
        values.notes.insert(format!(
            "another thread than the one that attaches the scheduler runs program {}",
            run.program
        ));
    }
    let (names, unnamed) = flags(kernel, state);
    if unnamed != 0 {
        values.notes.insert(format!("flags {unnamed:#x} of the scheduler have no name"));
    }
    let mut text = String::from("# Recorded by `schedlab scx setup`.\n");
    for note in &values.notes {
        let _ = writeln!(text, "# Not recorded: {note}.");
    }
    text += &list("flags = ", names.iter().map(|name| quoted(name)));
    if bpf.has_arena {
        text += "arena = true\n";
    }
    if let Some(cpu) = state.cpu {
        let _ = writeln!(text, "init_cpu = {cpu}");
    }
    let Topology { core, llc, node } = head.topology;
    let _ = writeln!(text, "\n[recorded]\ncommand = {}", quoted(head.command));
    let _ = writeln!(text, "kernel = {}", quoted(head.kernel));
    for (name, level) in [("core = ", core), ("llc = ", llc), ("node = ", node)] {
        text += &list(name, numbers(level));
    }
    text += "\n[variables]\n";
    for (path, value) in &values.all {
        match value {
            Value::Number(value) => {
                let _ = writeln!(text, "{} = {value}", key(path));
            }
            Value::List(values) => text += &list(&format!("{} = ", key(path)), numbers(values)),
        }
    }
    for element in &state.elements {
        let _ = writeln!(text, "\n[[elements]]\nmap = {}", quoted(&element.map));
        text += &list("key = ", words(&element.key));
        text += &list("value = ", words(&element.value));
        if let Some(cpu) = element.cpu {
            let _ = writeln!(text, "cpu = {cpu}");
        }
    }
    for run in bpf.runs.iter().filter(|run| run.thread == state.thread) {
        let _ = writeln!(text, "\n[[runs]]\nprogram = {}", quoted(&run.program));
        if !run.context.is_empty() {
            text += &list("context = ", words(&run.context));
        }
        if let Some(cpu) = run.cpu {
            let _ = writeln!(text, "cpu = {cpu}");
        }
        if run.attached {
            text += "attached = true\n";
        }
    }
    (text, values.notes.into_iter().collect())
}

/// What the file says of its origin.
pub(crate) struct Head<'a> {
    pub(crate) command: &'a str,
    pub(crate) kernel: &'a str,
    pub(crate) topology: &'a Topology,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(shape: &Shape, bytes: &[u8], is_zeroed: bool) -> Vec<String> {
        let mut values = Values::default();
        values.add("x", shape, bytes, is_zeroed);
        let text = |(path, value): (String, Value)| match value {
            Value::Number(value) => format!("{path}={value}"),
            Value::List(list) => format!("{path}={list:?}"),
        };
        values.all.into_iter().map(text).collect()
    }

    #[test]
    fn arrays_are_a_common_end_and_a_list_of_the_rest() {
        let of = Box::new(Shape::Number { size: 1, is_signed: false });
        let array = Shape::Array { of, nr: 4 };
        assert_eq!(values(&array, &[1, 2, 0, 0], true), ["x=[1, 2]"]);
        assert_eq!(values(&array, &[1, 2, 0, 0], false), ["x=[1, 2]", "x[all]=0"]);
        assert_eq!(values(&array, &[7; 4], true), ["x[all]=7"]);
        assert_eq!(values(&array, &[0, 0, 0, 255], true), ["x=[0, 0, 0]", "x[all]=255"]);
    }

    #[test]
    fn members_have_paths_and_large_numbers_their_bits() {
        let long = Shape::Number { size: 8, is_signed: false };
        let short = Shape::Number { size: 2, is_signed: true };
        let members = vec![
            ("a".into(), 0, short),
            ("none".into(), 2, Shape::Opaque { size: 2 }),
            ("b".into(), 8, long),
        ];
        let of = Box::new(Shape::Struct { members, size: 16 });
        let mut bytes = vec![0; 32];
        bytes[0..2].copy_from_slice(&(-2i16).to_le_bytes());
        bytes[24..].fill(0xff);
        assert_eq!(values(&Shape::Array { of, nr: 2 }, &bytes, true), ["x[0].a=-2", "x[1].b=-1"]);
    }

    #[test]
    fn long_lists_are_broken_and_texts_escaped() {
        let long = list("x = ", numbers(&[123_456_789; 40]));
        assert!(long.lines().all(|line| line.len() <= WIDTH), "{long}");
        assert_eq!(long.matches("123456789").count(), 40);
        assert_eq!(quoted("a\"b\\\n"), "\"a\\\"b\\\\\\u000a\"");
        assert_eq!((key("a_b"), key("a[3].b")), ("a_b".into(), "\"a[3].b\"".into()));
        assert_eq!(words(&[255; 4]).collect::<Vec<_>>(), ["[\"i32\", -1]"]);
        assert_eq!(words(&[255, 1]).collect::<Vec<_>>(), ["[\"u8\", 255]", "[\"u8\", 1]"]);
    }
}
