// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event `change`: a task writes control files of a group.

use super::Reader;
use super::error::{Result, problem};
use super::event::Code;
use super::global;
use super::json::{Members, integer, key, key_span, object, span, string};
use jsonc_parser::ast::{ObjectProp, Value};
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::program::SchedTunable;
use schedlab_model::suggest::list;
use schedlab_model::{Change, Op};

/// Keys of a change besides `taskgroup`, in the order in which the files are written.
const KEYS: [&str; 3] = ["weight", "cpu_max", "cpus"];

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
    let names = SchedTunable::ALL.map(SchedTunable::name);
    let body = object(value, name)?;
    Members::new(body, &names, name)?;
    for member in &body.properties {
        let known = SchedTunable::ALL.into_iter().find(|tunable| tunable.name() == key(member));
        let Some(tunable) = known else { continue };
        let (least, most) = tunable.range();
        let value = match tunable.is_time() {
            true => global::within(&member.value, tunable.name(), least..=most)?,
            false => {
                let range = least as i64..=most as i64;
                integer(&member.value, tunable.name(), range)? as u64
            }
        };
        code.push(Op::Tune { tunable, value }, span(&member.value));
    }
    if body.properties.is_empty() {
        let help = format!("name at least one of {}", list(names));
        return Err(problem(key_span(member), format!("`{name}` sets nothing"), help));
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
