// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event `change`: a task writes control files of a group.

use super::Reader;
use super::error::{Result, problem};
use super::event::Code;
use super::global;
use super::json::{Members, integer, key, key_span, object, span, string};
use jsonc_parser::ast::{ObjectProp, Value};
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::program::{SchedFeature, SchedTunable};
use schedlab_model::suggest::{list, nearest};
use schedlab_model::{Change, Op};

/// Keys of a change besides `taskgroup`, in the order in which the files are written.
const KEYS: [&str; 3] = ["weight", "cpu_max", "cpus"];

/// The key of a `tune` event that switches features.
const FEATURES: &str = "features";

/// Reads a `change` event: one operation for each file.
pub(super) fn read(reader: &mut Reader, code: &mut Code, member: &ObjectProp) -> Result<()> {
    let (name, value) = (key(member), &member.value);
    let known: Vec<&str> = ["taskgroup"].into_iter().chain(KEYS).collect();
    let mut members = Members::new(object(value, name)?, &known, name)?;
    let Some(path) = members.take("taskgroup") else {
        let help = "give \"taskgroup\": the path of the group that changes, such as \"/a\"";
        return Err(problem(span(value), format!("`{name}` has no `taskgroup`"), help));
    };
    let group = reader.groups.intern(string(path, "taskgroup")?, span(path))?;
    if group == ROOT_CGROUP {
        let help = "the root group has none of these files: name a group below it, such as \"/a\"";
        return Err(problem(span(path), format!("`{name}` changes the root group"), help));
    }
    let before = code.ops.len();
    for file in KEYS {
        let Some(value) = members.take(file) else { continue };
        let change = match file {
            "weight" => Change::Weight { group, weight: global::weight(value)? },
            "cpu_max" => Change::CpuMax { group, cpu_max: cpu_max(value)? },
            _ => Change::Cpus { group, cpus: super::attr::cpus(reader, value)? },
        };
        code.push(Op::Change(Box::new(change)), span(value));
    }
    if code.ops.len() == before {
        let help = format!("name at least one of {}", list(KEYS));
        return Err(problem(key_span(member), format!("`{name}` changes nothing"), help));
    }
    Ok(())
}

/// Reads a `tune` event: one operation for each tunable, in the order of the file.
pub(super) fn tune(code: &mut Code, member: &ObjectProp) -> Result<()> {
    let (name, value) = (key(member), &member.value);
    let own = SchedTunable::ALL.map(SchedTunable::name);
    let names: Vec<&str> = own.into_iter().chain([FEATURES]).collect();
    let body = object(value, name)?;
    Members::new(body, &names, name)?;
    for member in &body.properties {
        if key(member) == FEATURES {
            features(code, &member.value)?;
            continue;
        }
        let known = SchedTunable::ALL.into_iter().find(|tunable| tunable.name() == key(member));
        let Some(tunable) = known else { continue };
        let value = tunable_value(tunable, &member.value)?;
        code.push(Op::Tune { tunable, value }, span(&member.value));
    }
    if body.properties.is_empty() {
        let help = format!("name at least one of {}", list(names));
        return Err(problem(key_span(member), format!("`{name}` sets nothing"), help));
    }
    Ok(())
}

fn tunable_value(tunable: SchedTunable, value: &Value) -> Result<u64> {
    let (least, most) = tunable.range();
    // As in the kernel's file.
    let is_no_limit = matches!(value, Value::NumberLit(number) if number.value == "-1");
    if tunable == SchedTunable::RtRuntime && is_no_limit {
        return Ok(SchedTunable::NO_LIMIT);
    }
    if !tunable.is_time() {
        return Ok(integer(value, tunable.name(), least as i64..=most as i64)? as u64);
    }
    let ns = global::within(value, tunable.name(), least..=most)?;
    if !ns.is_multiple_of(tunable.step()) {
        let help = "give whole microseconds, which the kernel's file has";
        return Err(problem(span(value), format!("`{}` is {ns} ns", tunable.name()), help));
    }
    Ok(ns)
}

/// Reads the words of the kernel's file of features: `NAME` or `NO_NAME`.
fn features(code: &mut Code, value: &Value) -> Result<()> {
    let Value::Array(array) = value else {
        let help = "give an array of names, such as [\"NO_RUN_TO_PARITY\"]";
        return Err(problem(span(value), "`features` is no array", help));
    };
    for element in &array.elements {
        let word = string(element, FEATURES)?;
        let Some((feature, is_on)) = SchedFeature::of_word(word) else {
            let known = SchedFeature::ALL.map(SchedFeature::name);
            let bare = word.strip_prefix("NO_").unwrap_or(word);
            let help = match nearest(bare, known) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("features that may change are {}", list(known)),
            };
            return Err(problem(span(element), format!("no feature is called {word:?}"), help));
        };
        let tunable = SchedTunable::Feature(feature);
        code.push(Op::Tune { tunable, value: u64::from(is_on) }, span(element));
    }
    Ok(())
}

/// `"max"` takes the limit away, as in the kernel's file.
fn cpu_max(value: &Value) -> Result<Option<schedlab_model::CpuMax>> {
    match value {
        Value::StringLit(text) if text.value == "max" => Ok(None),
        _ => global::cpu_max(value).map(Some),
    }
}
