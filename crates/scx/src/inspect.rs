// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scheduler's author may ask to see of it after a run: the lines of bpf_printk(), and the
//! contents of its maps and global variables.

use serde::Serialize;
use serde::ser::SerializeMap;

/// What to keep of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Number of bpf_printk() lines that are kept, the first ones; `None`: none is looked at.
    pub lines: Option<usize>,
    /// The maps; `None`: neither maps nor variables.
    pub maps: Option<WantedMaps>,
    /// Which lines of the source are reached.
    pub coverage: bool,
}

/// Which maps to keep, and how much of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedMaps {
    /// Names of maps and variables; none: all of them.
    pub names: Vec<String>,
    /// Most elements of each map.
    pub elements: usize,
}

/// What was kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inspected {
    /// Lines of bpf_printk(), if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printk: Option<Printk>,
    /// Maps and variables, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Lines of the source, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
}

/// Which lines of a scheduler's source were reached, and how often.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Its files by path: sources and the headers of their author.
    pub files: Vec<FileCoverage>,
}

/// The reached lines of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileCoverage {
    /// Path, as the compiler was given it.
    pub path: String,
    /// Functions, in the order of their lines.
    pub functions: Vec<FunctionCoverage>,
    /// Lines with code.
    pub lines: Vec<LineCoverage>,
}

/// A function of the source.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionCoverage {
    /// Name.
    pub name: String,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line.
    pub last_line: u32,
    /// Number of calls.
    pub calls: u64,
}

/// A line with code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineCoverage {
    /// Number, from 1.
    pub line: u32,
    /// How often it was executed.
    pub count: u64,
}

impl Coverage {
    /// Adds the counts of another run of the same scheduler.
    pub fn add(&mut self, other: Self) {
        if self.files.is_empty() {
            *self = other;
            return;
        }
        for (own, other) in self.files.iter_mut().zip(other.files) {
            own.lines.iter_mut().zip(other.lines).for_each(|(own, other)| own.count += other.count);
            for (own, other) in own.functions.iter_mut().zip(other.functions) {
                own.calls += other.calls;
            }
        }
    }
}

/// Lines of bpf_printk().
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Printk {
    /// The first lines, in order.
    pub lines: Vec<PrintkLine>,
    /// Number of later lines that were not kept.
    pub nr_left_out: u64,
}

/// A line of bpf_printk().
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrintkLine {
    /// Simulated time (ns since the start of the run).
    pub time_ns: u64,
    /// The CPU that executed the callback.
    pub cpu: u32,
    /// Name of the task that the CPU was running; `swapper/N` if it was idle.
    pub task: String,
    /// Its process id; 0 if the CPU was idle.
    pub pid: u32,
    /// The callback that printed it, such as `ops.enqueue`.
    pub callback: String,
    /// The text, without a newline at its end.
    pub text: String,
}

/// Maps and global variables as they were when the run ended, before the scheduler was unloaded.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct State {
    /// Simulated time (ns since the start of the run).
    pub time_ns: u64,
    /// The maps, in the order of their declarations.
    pub maps: Vec<MapState>,
    /// Global and static variables, in the order of their declarations.
    pub variables: Vec<VariableState>,
}

/// A map.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MapState {
    /// Name.
    pub name: String,
    /// Kind: BPF_MAP_TYPE_* without the beginning.
    pub kind: String,
    /// Number of elements that it has.
    pub nr_elements: u64,
    /// Number of those that are all zero. Arrays and per-CPU arrays do not show them.
    pub nr_zero: u64,
    /// Number of elements that are left out because there are too many.
    pub nr_left_out: u64,
    /// The elements: arrays by index, hashes by the bytes of the keys, queues from the oldest on.
    pub elements: Vec<MapElement>,
}

/// An element of a map.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MapElement {
    /// Its key; the task or the group, for their storage; absent in queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Value>,
    /// Its value; in per-CPU maps a list with a value for each CPU.
    pub value: Value,
}

/// A global or static variable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VariableState {
    /// Name.
    pub name: String,
    /// Whether it is an option (`const volatile`).
    pub is_option: bool,
    /// Its value.
    pub value: Value,
}

/// A value, decoded by its type. In JSON: a number, a boolean, a string, an array or an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// An integer with a sign.
    Signed(i64),
    /// An integer without.
    Unsigned(u64),
    /// A boolean.
    Flag(bool),
    /// An array of characters.
    Text(String),
    /// Anything that has a name, and bytes of unknown meaning in hexadecimal digits.
    Word(String),
    /// An array.
    List(Vec<Value>),
    /// A struct.
    Members(Vec<(String, Value)>),
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Text(text) | Self::Word(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Members(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Value {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A value, decoded by its type in the source.",
            "type": ["integer", "boolean", "string", "array", "object"],
        })
    }
}
