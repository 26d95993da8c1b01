// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attributes (`policy`, `priority`, `dl-*`, `util_*`, `cpus`, `taskgroup`) of a task, of a phase
//! or in a `sched` event.
//!
//! Source: rt-app's src/rt-app_parse_config.c, `parse_sched_data`, with its older names of the
//! SCHED_DEADLINE parameters (`runtime`, `period`, `deadline` of a task). `dl-reclaim` is a key of
//! one of its branches.

use super::Reader;
use super::error::{Result, problem};
use super::json::{
    boolean, duration, integer, key, key_span, kind_name, span, string, twice, wrong_kind,
};
use crate::WarningKind;
use crate::policy::{
    DL_RUNTIME_NS_MIN, POLICIES, RT_PRIORITY_DEFAULT, SLICE_NS_RANGE, has_nice, has_slice,
};
use jsonc_parser::ast::{ObjectProp, Value};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::suggest::{did_you_mean, list};
use schedlab_model::{CgroupId, CpuId, CpuMask, DeadlineParams, Nanos, Policy, SchedAttr};
use std::ops::Range;

/// A value with its place in the file.
type At<T> = Option<(T, Range<usize>)>;

/// Attributes of a task that sets none.
pub(crate) fn default_attr(policy: Policy) -> SchedAttr {
    let rt_priority = if policy.is_rt() { RT_PRIORITY_DEFAULT } else { 0 };
    SchedAttr { policy, rt_priority, ..SchedAttr::default() }
}

/// The attributes that an object of the file sets.
pub(crate) struct AttrKeys {
    /// Place of the object's key, for errors about missing members.
    place: Range<usize>,
    policy: At<Policy>,
    priority: At<i64>,
    runtime: At<Nanos>,
    period: At<Nanos>,
    deadline: At<Nanos>,
    reclaim: At<bool>,
    /// The older names of the deadline parameters.
    old: Old,
    /// An inner `None` removes the clamp.
    util_min: At<Option<u16>>,
    util_max: At<Option<u16>>,
    /// An inner `None` means `"all"`.
    cpus: At<Option<CpuMask>>,
    taskgroup: At<CgroupId>,
}

/// SCHED_DEADLINE parameters under their older names.
#[derive(Default)]
struct Old {
    runtime: At<Nanos>,
    period: At<Nanos>,
    deadline: At<Nanos>,
}

/// Greatest utilisation: that of a CPU busy at full speed (SCHED_CAPACITY_SCALE).
const UTIL_MAX: i64 = 1024;

impl AttrKeys {
    /// No attributes yet, for the object whose key is at `place`.
    pub fn new(place: Range<usize>) -> Self {
        Self {
            place,
            policy: None,
            priority: None,
            runtime: None,
            period: None,
            deadline: None,
            reclaim: None,
            old: Old::default(),
            util_min: None,
            util_max: None,
            cpus: None,
            taskgroup: None,
        }
    }

    /// Reads a member of a task if it is an older name of a parameter: `runtime`, `period` or
    /// `deadline`.
    pub fn read_old(&mut self, member: &ObjectProp) -> Result<()> {
        let (name, value) = (key(member), &member.value);
        let slot = match name {
            // A number may be the event as well as the parameter; an object is the event only.
            "runtime" if matches!(value, Value::Object(_)) => return Ok(()),
            "runtime" => &mut self.old.runtime,
            "period" => &mut self.old.period,
            _ => &mut self.old.deadline,
        };
        // The event may be repeated; rt-app takes the first as the parameter.
        if slot.is_none() {
            *slot = Some((duration(value, name)?, span(value)));
        }
        Ok(())
    }

    /// Whether a `runtime` of the task is its deadline budget.
    pub fn takes_old_runtime(&self, attr: &SchedAttr) -> bool {
        attr.policy == Policy::Deadline && self.runtime.is_none() && self.old.runtime.is_some()
    }

    /// Whether `cpus` is set.
    pub fn names_cpus(&self) -> bool {
        self.cpus.is_some()
    }

    /// Whether no attribute is set.
    pub fn is_empty(&self) -> bool {
        self.policy.is_none()
            && self.priority.is_none()
            && self.runtime.is_none()
            && self.period.is_none()
            && self.deadline.is_none()
            && self.reclaim.is_none()
            && self.util_min.is_none()
            && self.util_max.is_none()
            && self.cpus.is_none()
            && self.taskgroup.is_none()
    }

    /// Reads a member whose key is in [`super::keys::ATTR_KEYS`].
    pub fn read(&mut self, reader: &mut Reader, member: &ObjectProp) -> Result<()> {
        let (name, value) = (key(member), &member.value);
        let again = match name {
            "policy" => self.policy.replace((policy(value, name)?, span(value))).is_some(),
            "priority" => {
                let priority = integer(value, name, -20..=99)?;
                self.priority.replace((priority, span(value))).is_some()
            }
            "dl-runtime" => self.runtime.replace((duration(value, name)?, span(value))).is_some(),
            "dl-period" => self.period.replace((duration(value, name)?, span(value))).is_some(),
            "dl-deadline" => self.deadline.replace((duration(value, name)?, span(value))).is_some(),
            "util_min" => self.util_min.replace((util(value, name)?, span(value))).is_some(),
            "util_max" => self.util_max.replace((util(value, name)?, span(value))).is_some(),
            "cpus" => {
                let mask = cpus(reader, value)?;
                self.cpus.replace((mask, span(value))).is_some()
            }
            "dl-reclaim" => self.reclaim.replace((boolean(value, name)?, span(value))).is_some(),
            "nodes_membind" => return nodes(reader, member),
            _ => {
                let group = reader.groups.intern(string(value, name)?, span(value))?;
                self.taskgroup.replace((group, span(value))).is_some()
            }
        };
        if again { Err(twice(member)) } else { Ok(()) }
    }

    /// Returns `base` changed by the attributes that are set here. A new policy resets to its own
    /// defaults, as in rt-app: nice 0, real-time priority 10, no custom slice.
    pub fn apply(&self, reader: &mut Reader, base: &SchedAttr) -> Result<SchedAttr> {
        let mut attr = *base;
        if let Some((policy, _)) = self.policy {
            let SchedAttr { affinity, cgroup, util_min, util_max, .. } = attr;
            attr = SchedAttr { affinity, cgroup, util_min, util_max, ..default_attr(policy) };
        }
        if let Some((priority, place)) = &self.priority {
            set_priority(&mut attr, *priority, place)?;
        }
        self.apply_dl(reader, &mut attr)?;
        self.apply_util(&mut attr)?;
        if let Some((mask, _)) = self.cpus {
            attr.affinity = mask;
        }
        if let Some((group, place)) = &self.taskgroup {
            if *group != schedlab_model::ids::ROOT_CGROUP && !has_nice(attr.policy) {
                return Err(problem(
                    place.clone(),
                    format!("`taskgroup` with policy SCHED_{}", attr.policy.name()),
                    "a group of the cpu controller takes SCHED_OTHER, BATCH, IDLE and EXT only: \
                     remove `taskgroup` or change `policy`",
                ));
            }
            attr.cgroup = *group;
        }
        Ok(attr)
    }

    fn apply_util(&self, attr: &mut SchedAttr) -> Result<()> {
        for (named, slot) in
            [(&self.util_min, &mut attr.util_min), (&self.util_max, &mut attr.util_max)]
        {
            if let Some((util, _)) = named {
                *slot = *util;
            }
        }
        let (least, most) = (attr.util_min.unwrap_or(0), attr.util_max.unwrap_or(UTIL_MAX as u16));
        if least <= most {
            return Ok(());
        }
        let named = [&self.util_max, &self.util_min].into_iter().find_map(Option::as_ref);
        Err(problem(
            named.map_or_else(|| self.place.clone(), |(_, place)| place.clone()),
            format!("`util_min` is {least} and `util_max` {most}"),
            "give util_min <= util_max, each 0 to 1024, or -1 for none",
        ))
    }

    fn apply_dl(&self, reader: &mut Reader, attr: &mut SchedAttr) -> Result<()> {
        if attr.policy == Policy::Deadline {
            return self.apply_deadline(reader, attr);
        }
        let ignored = [
            ("dl-period", &self.period),
            ("dl-deadline", &self.deadline),
            ("period", &self.old.period),
            ("deadline", &self.old.deadline),
        ];
        for (name, (_, place)) in ignored.iter().filter_map(|(n, v)| v.as_ref().map(|v| (n, v))) {
            policy_ignores(reader, attr.policy, name, place);
        }
        if let Some((true, place)) = &self.reclaim {
            policy_ignores(reader, attr.policy, "dl-reclaim", place);
        }
        let Some((runtime_ns, place)) = &self.runtime else { return Ok(()) };
        if !has_slice(attr.policy) {
            policy_ignores(reader, attr.policy, "dl-runtime", place);
        } else if *runtime_ns == 0 {
            attr.slice_ns = None;
        } else {
            let slice_ns = (*runtime_ns).clamp(*SLICE_NS_RANGE.start(), *SLICE_NS_RANGE.end());
            if slice_ns != *runtime_ns {
                let text = format!(
                    "slice of {runtime_ns} ns: the kernel keeps to 100us ... 100ms and makes it \
                     {slice_ns} ns"
                );
                reader.warn(WarningKind::SliceClamped, place.start, text);
            }
            attr.slice_ns = Some(slice_ns);
        }
        Ok(())
    }

    /// Sets budget, deadline and period with rt-app's defaults: period = runtime, deadline =
    /// period. An older name counts only if the newer one is missing.
    fn apply_deadline(&self, reader: &mut Reader, attr: &mut SchedAttr) -> Result<()> {
        let named = |value: &At<Nanos>, old: Nanos| value.as_ref().map_or(old, |(ns, _)| *ns);
        let or = |ns: Nanos, default: Nanos| if ns == 0 { default } else { ns };
        let runtime_new = named(&self.runtime, attr.deadline.runtime_ns);
        let period_new = or(named(&self.period, attr.deadline.period_ns), runtime_new);
        let deadline_new = or(named(&self.deadline, attr.deadline.deadline_ns), period_new);
        let runtime_ns = or(runtime_new, named(&self.old.runtime, 0));
        let period_ns = or(or(period_new, named(&self.old.period, 0)), runtime_ns);
        let deadline_ns = or(or(deadline_new, named(&self.old.deadline, 0)), period_ns);
        for (name, new, old) in [
            ("period", period_new, &self.old.period),
            ("deadline", deadline_new, &self.old.deadline),
        ] {
            if let (true, Some((_, place))) = (new != 0, old) {
                let text =
                    format!("`{name}` has no effect beside the `dl-` keys: write `dl-{name}`");
                reader.warn(WarningKind::PolicyIgnores, place.start, text);
            }
        }
        let places = [&self.runtime, &self.deadline, &self.period];
        let place = places
            .into_iter()
            .find_map(|value| value.as_ref().map(|(_, place)| place.clone()))
            .or_else(|| self.policy.as_ref().map(|(_, place)| place.clone()))
            .unwrap_or_else(|| self.place.clone());
        if runtime_ns < DL_RUNTIME_NS_MIN {
            return Err(problem(
                place,
                format!("SCHED_DEADLINE with a budget of {runtime_ns} ns"),
                "give `dl-runtime`, the CPU time in each period: at least 1024 ns",
            ));
        }
        if runtime_ns > deadline_ns || deadline_ns > period_ns {
            return Err(problem(
                place,
                format!(
                    "SCHED_DEADLINE with runtime {runtime_ns} ns, deadline {deadline_ns} ns, \
                     period {period_ns} ns"
                ),
                "the kernel wants dl-runtime <= dl-deadline <= dl-period",
            ));
        }
        let reclaim = self.reclaim.as_ref().map_or(attr.deadline.reclaim, |(reclaim, _)| *reclaim);
        attr.deadline = DeadlineParams { runtime_ns, deadline_ns, period_ns, reclaim };
        Ok(())
    }
}

fn policy_ignores(reader: &mut Reader, policy: Policy, name: &str, place: &Range<usize>) {
    let text = format!("`{name}` has no effect with policy SCHED_{}", policy.name());
    reader.warn(WarningKind::PolicyIgnores, place.start, text);
}

fn set_priority(attr: &mut SchedAttr, priority: i64, place: &Range<usize>) -> Result<()> {
    let (low, high, what) = match attr.policy {
        Policy::Fifo | Policy::Rr => (1, 99, "the real-time priority, 99 the most important"),
        Policy::Deadline => (0, 0, "nothing: deadlines decide"),
        _ => (-20, 19, "the nice value, -20 the most important"),
    };
    if !(low..=high).contains(&priority) {
        return Err(problem(
            place.clone(),
            format!("`priority` {priority} with policy SCHED_{}", attr.policy.name()),
            format!("allowed are {low} to {high} ({what})"),
        ));
    }
    // Both ranges are within the types.
    match attr.policy {
        Policy::Fifo | Policy::Rr => attr.rt_priority = priority as u8,
        Policy::Deadline => {}
        _ => attr.nice = priority as i8,
    }
    Ok(())
}

/// The policy that a string names, in rt-app's spelling `SCHED_...`.
pub(crate) fn policy(value: &Value, name: &str) -> Result<Policy> {
    let text = string(value, name)?;
    let names = POLICIES.map(|policy| format!("SCHED_{}", policy.name()));
    match names.iter().position(|known| known == text) {
        Some(index) => Ok(POLICIES[index]),
        None => Err(problem(
            span(value),
            format!("policy {text:?} is not known"),
            did_you_mean(text, names.iter().map(String::as_str))
                + "allowed are "
                + &list(names.iter().map(String::as_str)),
        )),
    }
}

/// A utilisation clamp, 0 to 1024; -1 means none.
fn util(value: &Value, name: &str) -> Result<Option<u16>> {
    Ok(match integer(value, name, -1..=UTIL_MAX)? {
        -1 => None,
        util => Some(util as u16),
    })
}

/// Checks the form of `nodes_membind`. It has no effect, because memory has no nodes in a run.
fn nodes(reader: &mut Reader, member: &ObjectProp) -> Result<()> {
    let (name, value) = (key(member), &member.value);
    let Value::Array(array) = value else {
        return wrong_kind(value, name, "an array of node numbers such as [0, 1]");
    };
    for node in &array.elements {
        integer(node, name, 0..=NR_NODES_MAX - 1)?;
    }
    let text = format!("`{name}` has no effect: no lane binds memory to a node");
    reader.warn(WarningKind::Memory, key_span(member).start, text);
    Ok(())
}

/// Most NUMA nodes of a kernel (MAX_NUMNODES with CONFIG_NODES_SHIFT=10).
const NR_NODES_MAX: i64 = 1024;

/// CPUs as an array of numbers, or `"all"`.
pub(super) fn cpus(reader: &mut Reader, value: &Value) -> Result<Option<CpuMask>> {
    let last = reader.nr_cpus.saturating_sub(1);
    let Value::Array(array) = value else {
        if matches!(value, Value::StringLit(literal) if literal.value == "all") {
            return Ok(None);
        }
        return Err(problem(
            span(value),
            format!("`cpus` is {}", kind_name(value)),
            "`cpus` takes an array of CPU numbers such as [0, 2], or \"all\"",
        ));
    };
    let mut mask = CpuMask::empty();
    let mut absent = None;
    for element in &array.elements {
        let cpu = integer(element, "cpus", 0..=NR_CPUS_MAX as i64 - 1)? as u32;
        mask.set(CpuId(cpu));
        if cpu > last {
            absent = Some((cpu, span(element).start));
        }
    }
    if mask.is_empty() {
        let help = "name at least one CPU, or leave `cpus` out for all";
        return Err(problem(span(value), "`cpus` is empty", help));
    }
    if mask.and(&CpuMask::first(reader.nr_cpus)).is_empty() {
        return Err(problem(
            span(value),
            format!("no CPU of `cpus` ({mask}) exists"),
            format!("the machine has CPUs 0 to {last}: name at least one of them"),
        ));
    }
    if let Some((cpu, place)) = absent {
        let text = format!("CPU {cpu} does not exist: the task uses the others that `cpus` names");
        reader.warn(WarningKind::CpusAbsent, place, text);
    }
    Ok(Some(mask))
}
