// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file as a whole: `global`, `cgroups`, and the groups that tasks name.

use super::error::{Result, problem};
use super::json::{Members, boolean, duration, integer, key, key_span, object, span, string};
use super::{Reader, attr, memory};
use crate::WarningKind;
use crate::units::{DURATION_NS_MAX, format_duration};
use jsonc_parser::ast::Value;
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::workload::{CPU_MAX_PERIOD_NS, SessionSpec};
use schedlab_model::{CgroupId, CgroupSpec, CpuMax, Nanos};
use std::collections::BTreeMap;
use std::ops::Range;

/// Keys of `global`. Those without effect have a warning: its kind, and why.
const GLOBAL_KEYS: [(&str, Option<(WarningKind, &str)>); 14] = [
    ("duration", None),
    ("default_policy", None),
    ("calibration", Some((WarningKind::Calibration, "every lane measures CPU time itself"))),
    ("pi_enabled", None),
    ("mem_buffer_size", None),
    ("lock_pages", Some((WarningKind::Unused, "no lane models page faults"))),
    ("frag", Some((WarningKind::Unused, "rt-app itself does not look at it any more"))),
    ("io_device", Some((WarningKind::IoDevice, "the lane chooses the device or scratch file"))),
    ("logdir", Some((WarningKind::Logging, LOGGING))),
    ("log_basename", Some((WarningKind::Logging, LOGGING))),
    ("log_size", Some((WarningKind::Logging, LOGGING))),
    ("ftrace", Some((WarningKind::Logging, LOGGING))),
    ("gnuplot", Some((WarningKind::Logging, LOGGING))),
    ("cumulative_slack", Some((WarningKind::Logging, LOGGING))),
];
const LOGGING: &str = "schedlab records a trace and draws from that";

/// The kernel's default of cpu.weight.
const CPU_WEIGHT_DEFAULT: u32 = 100;
/// The kernel's limits of cpu.max: quota and period at least 1 ms, period at most 1 s
/// (kernel/sched/core.c, `tg_set_cfs_bandwidth`).
const CPU_MAX_NS_MIN: Nanos = 1_000_000;
const CPU_MAX_PERIOD_NS_MAX: Nanos = 1_000_000_000;

/// Longest path of a group below the run's own.
const GROUP_PATH_BYTES_MAX: usize = 1_000;

/// Prefixes of the control files in a cgroup directory. No group's name may begin so.
const CONTROL_FILES: [&str; 9] =
    ["cgroup.", "cpu.", "cpuacct.", "cpuset.", "io.", "memory.", "pids.", "hugetlb.", "misc."];

/// Reads `global` into the reader; returns the duration of the run.
pub(crate) fn read_global(reader: &mut Reader, value: &Value) -> Result<Option<Nanos>> {
    let object = object(value, "global")?;
    let names = GLOBAL_KEYS.map(|(name, _)| name);
    let mut members = Members::new(object, &names, "global")?;
    for (name, ignored) in GLOBAL_KEYS {
        if let Some((kind, why)) = ignored
            && let Some(member) = members.take_member(name)
        {
            reader.warn(kind, key_span(member).start, format!("`{name}` has no effect: {why}"));
        }
    }
    if let Some(value) = members.take("default_policy") {
        reader.default_policy = attr::policy(value, "default_policy")?;
    }
    if let Some(value) = members.take("pi_enabled") {
        reader.objects.pi_enabled = boolean(value, "pi_enabled")?;
    }
    if let Some(value) = members.take("mem_buffer_size") {
        reader.mem_buffer_bytes = memory::read_buffer_size(value)?;
    }
    members.take("duration").map_or(Ok(None), read_duration)
}

/// Reads a duration: a number of seconds as in rt-app, where -1 means "until all tasks are done",
/// or a string with a unit.
fn read_duration(value: &Value) -> Result<Option<Nanos>> {
    let ns = match value {
        Value::NumberLit(_) => {
            let seconds = integer(value, "duration", -1..=3_650 * 86_400)?;
            if seconds == -1 {
                return Ok(None);
            }
            seconds as u64 * 1_000_000_000
        }
        _ => duration(value, "duration")?,
    };
    if ns == 0 {
        let help = "give seconds, a string with a unit such as \"500ms\", or -1 to run until all \
                    tasks are done";
        return Err(problem(span(value), "`duration` is 0: nothing would run", help));
    }
    Ok(Some(ns))
}

/// The groups of a workload. The root group always exists.
pub(crate) struct Groups {
    pub specs: Vec<CgroupSpec>,
    by_path: BTreeMap<String, CgroupId>,
}

impl Groups {
    pub fn new() -> Self {
        let by_path = BTreeMap::from([("/".to_string(), ROOT_CGROUP)]);
        Self { specs: vec![CgroupSpec::root()], by_path }
    }

    /// Returns the group at `path`. Creates it and its parents if they are new. `""` and `"/"` are
    /// the root.
    pub fn intern(&mut self, path: &str, place: Range<usize>) -> Result<CgroupId> {
        if path.is_empty() {
            return Ok(ROOT_CGROUP);
        }
        if let Some(group) = self.by_path.get(path) {
            return Ok(*group);
        }
        if let Some(why) = path_fault(path) {
            return Err(problem(
                place,
                format!("group path {:?}: {why}", path.chars().take(80).collect::<String>()),
                "a path is like \"/a/b\": each part of letters, digits, `_`, `-`, `.` and `@`, not \
                 beginning with a dot or with the name of a controller and a dot (`cpu.`)",
            ));
        }
        let mut parent = ROOT_CGROUP;
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        for end in ends {
            let part = &path[..end];
            parent = match self.by_path.get(part) {
                Some(group) => *group,
                None => {
                    let group = CgroupId(self.specs.len() as u32);
                    self.specs.push(CgroupSpec::new(part, parent, CPU_WEIGHT_DEFAULT));
                    self.by_path.insert(part.into(), group);
                    group
                }
            };
        }
        Ok(parent)
    }
}

fn path_fault(path: &str) -> Option<&'static str> {
    if path.len() > GROUP_PATH_BYTES_MAX {
        return Some("longer than 1000 bytes");
    }
    let Some(parts) = path.strip_prefix('/') else { return Some("does not begin with `/`") };
    for part in parts.split('/') {
        if part.is_empty() {
            return Some("has an empty part");
        }
        if part.len() > 255 {
            return Some("has a part longer than 255 bytes");
        }
        if part.starts_with('.') {
            return Some("has a part that begins with a dot");
        }
        if CONTROL_FILES.iter().any(|file| part.starts_with(file)) {
            return Some("has a part called like a control file");
        }
        if !part.chars().all(|c| c.is_ascii_alphanumeric() || "_-.@".contains(c)) {
            return Some("has a character that is not allowed");
        }
    }
    None
}

/// Reads `cgroups`: weights of groups by path.
pub(crate) fn read_cgroups(reader: &mut Reader, value: &Value) -> Result<()> {
    let mut described = std::collections::BTreeSet::new();
    for member in &object(value, "cgroups")?.properties {
        let group = reader.groups.intern(key(member), key_span(member))?;
        if group == ROOT_CGROUP {
            let help = "the root group has no weight: describe groups below it, such as \"/a\"";
            return Err(problem(key_span(member), "`cgroups` describes the root group", help));
        }
        if !described.insert(group) {
            return Err(super::json::twice(member));
        }
        let name = format!("cgroups.{}", key(member));
        let keys = ["weight", "cpu_max", "cpus"];
        let mut members = Members::new(object(&member.value, &name)?, &keys, &name)?;
        let cpus = match members.take("cpus") {
            Some(value) => super::attr::cpus(reader, value)?,
            None => None,
        };
        let spec = &mut reader.groups.specs[group.index()];
        spec.cpus = cpus;
        if let Some(weight) = members.take("weight") {
            spec.weight = self::weight(weight)?;
        }
        if let Some(value) = members.take("cpu_max") {
            spec.cpu_max = Some(cpu_max(value)?);
        }
    }
    Ok(())
}

/// A cpu.weight.
pub(crate) fn weight(value: &Value) -> Result<u32> {
    integer(value, "weight", 1..=10_000).map(|weight| weight as u32)
}

/// `{ "quota": duration, "period": duration, "burst": duration }`: the kernel's cpu.max and
/// cpu.max.burst.
pub(crate) fn cpu_max(value: &Value) -> Result<CpuMax> {
    let mut members =
        Members::new(object(value, "cpu_max")?, &["quota", "period", "burst"], "cpu_max")?;
    let Some(quota) = members.take("quota") else {
        let help = "give \"quota\": the CPU time of the group in each period, such as \"50ms\"";
        return Err(problem(span(value), "`cpu_max` has no `quota`", help));
    };
    let quota_ns = within(quota, "quota", CPU_MAX_NS_MIN..=DURATION_NS_MAX)?;
    let period_ns = match members.take("period") {
        Some(period) => within(period, "period", CPU_MAX_NS_MIN..=CPU_MAX_PERIOD_NS_MAX)?,
        None => CPU_MAX_PERIOD_NS,
    };
    let burst_ns = match members.take("burst") {
        Some(burst) => within(burst, "burst", 0..=quota_ns)?,
        None => 0,
    };
    Ok(CpuMax { quota_ns, period_ns, burst_ns })
}

pub(crate) fn within(
    value: &Value,
    name: &str,
    range: std::ops::RangeInclusive<Nanos>,
) -> Result<Nanos> {
    let ns = duration(value, name)?;
    if range.contains(&ns) {
        return Ok(ns);
    }
    Err(problem(
        span(value),
        format!("`{name}` is {}", format_duration(ns)),
        format!(
            "the kernel takes {} to {}",
            format_duration(*range.start()),
            format_duration(*range.end())
        ),
    ))
}

/// Reads `sessions`: those that differ from the default session of a name.
pub(crate) fn read_sessions(value: &Value) -> Result<Vec<SessionSpec>> {
    let mut sessions: Vec<SessionSpec> = Vec::new();
    for member in &object(value, "sessions")?.properties {
        check_name(key(member), key_span(member), "session")?;
        if sessions.iter().any(|session| session.name == key(member)) {
            return Err(super::json::twice(member));
        }
        let name = format!("sessions.{}", key(member));
        let mut members = Members::new(object(&member.value, &name)?, &["nice"], &name)?;
        let nice = match members.take("nice") {
            Some(nice) => integer(nice, "nice", -20..=19)? as i8,
            None => 0,
        };
        sessions.push(SessionSpec { name: key(member).into(), nice });
    }
    Ok(sessions)
}

/// The session that a task names, by index.
pub(crate) fn session(reader: &mut Reader, value: &Value) -> Result<u32> {
    let name = string(value, "session")?;
    check_name(name, span(value), "session")?;
    let known = reader.sessions.iter().position(|session| session.name == name);
    let index = known.unwrap_or_else(|| {
        reader.sessions.push(SessionSpec { name: name.into(), nice: 0 });
        reader.sessions.len() - 1
    });
    Ok(index as u32)
}

/// Reads the workload's `name`.
pub(crate) fn read_name(value: &Value) -> Result<String> {
    let name = string(value, "name")?;
    check_name(name, span(value), "workload")?;
    Ok(name.into())
}

/// Longest name of a workload or a task.
pub(crate) const NAME_CHARS_MAX: usize = 64;

/// Checks a name. Names go into tables, file names and `comm`, so they must be printable and short.
pub(crate) fn check_name(name: &str, place: Range<usize>, what: &str) -> Result<()> {
    let bad = name.chars().find(|c| !(c.is_alphanumeric() || " _-.:+@#()".contains(*c)));
    let fault = match bad {
        _ if name.trim().is_empty() => "is empty".into(),
        _ if name.chars().count() > NAME_CHARS_MAX => {
            format!("has more than {NAME_CHARS_MAX} characters")
        }
        Some(c) => format!("has the character {c:?}"),
        None => return Ok(()),
    };
    Err(problem(
        place,
        format!("the {what}'s name {fault}"),
        format!(
            "a name has 1 to {NAME_CHARS_MAX} letters, digits, spaces and the characters \
             _ - . : + @ # ( )"
        ),
    ))
}
