// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects that tasks share: those of the `objects` section, and those that events name without it.
//!
//! rt-app has a name space for each kind of object, and creates the objects that events name. A
//! workload has one name space. So a name that events use for two kinds becomes two objects; the
//! second has its kind in its name. Source: rt-app's src/rt-app_parse_config.c,
//! `get_resource_index`.

use super::error::{Result, problem};
use super::json::{self, Members, integer, key, key_span, object, span, string};
use super::keys::{self, Event};
use super::{Reader, global};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use schedlab_model::objects::{CHANNEL_BYTES_MAX, PIPE_BYTES, SEM_VALUE_MAX};
use schedlab_model::suggest::{did_you_mean, list};
use schedlab_model::{ChannelKind, MutexProtocol, ObjectId, ObjectKind, ObjectSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The kind of object that an event needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Need {
    Mutex,
    Condvar,
    Barrier,
    Semaphore,
    Event,
    Channel,
    /// An object that a task can wait for without changing it.
    Pollable,
}

impl Need {
    /// Name of the kind in messages, and in the names of objects that got another name.
    const fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Condvar => "condvar",
            Self::Barrier => "barrier",
            Self::Semaphore => "semaphore",
            Self::Event => "event",
            Self::Channel => "pipe or socketpair",
            Self::Pollable => "pipe, socketpair or semaphore",
        }
    }

    fn is_met_by(self, kind: &ObjectKind) -> bool {
        match self {
            Self::Mutex => matches!(kind, ObjectKind::Mutex { .. }),
            Self::Condvar => matches!(kind, ObjectKind::Condvar),
            Self::Barrier => matches!(kind, ObjectKind::Barrier { .. }),
            Self::Semaphore => matches!(kind, ObjectKind::Semaphore { .. }),
            Self::Event => matches!(kind, ObjectKind::Event),
            Self::Channel => matches!(kind, ObjectKind::Channel { .. }),
            Self::Pollable => kind.is_pollable(),
        }
    }
}

/// Default capacity (bytes) of a socket pair: the kernel's default send buffer
/// (net.core.wmem_default, 212,992 bytes on x86-64).
pub(crate) const SOCKETPAIR_BYTES: u64 = 212_992;

/// The objects that the events of all tasks name, found before any event is read.
#[derive(Default)]
pub(crate) struct Uses {
    /// Users of each barrier: the number of instances of the tasks, added for each event.
    barriers: BTreeMap<String, u64>,
    /// Names of mutexes and condition variables.
    locks: BTreeSet<String>,
    /// Names of semaphores.
    semaphores: BTreeSet<String>,
}

impl Uses {
    /// Looks through all tasks. It ignores errors of form, which the reader finds later.
    pub fn of(tasks: &Object) -> Self {
        let mut uses = Self::default();
        for task in &tasks.properties {
            let Value::Object(body) = &task.value else { continue };
            let instances = body.properties.iter().find(|member| key(member) == "instance");
            let instances = match instances.map(|member| &member.value) {
                Some(Value::NumberLit(literal)) => literal.value.parse().unwrap_or(0),
                Some(_) => 0,
                None => 1,
            };
            uses.body(body, instances);
        }
        uses
    }

    fn body(&mut self, body: &Object, instances: u64) {
        for member in &body.properties {
            if key(member) == "phases" {
                if let Value::Object(phases) = &member.value {
                    for phase in &phases.properties {
                        if let Value::Object(body) = &phase.value {
                            self.body(body, instances);
                        }
                    }
                }
                continue;
            }
            match (keys::event(key(member)), &member.value) {
                (Some(Event::Repeat), Value::Object(body)) => self.body(body, instances),
                (Some(event), value) => self.event(event, value, instances),
                (None, _) => {}
            }
        }
    }

    fn event(&mut self, event: Event, value: &Value, instances: u64) {
        let text = |value: &Value| match value {
            Value::StringLit(literal) => Some(literal.value.to_string()),
            _ => None,
        };
        match event {
            Event::Lock | Event::Unlock | Event::Signal | Event::Broad => {
                self.locks.extend(text(value));
            }
            Event::Wait | Event::Sync => {
                let Value::Object(body) = value else { return };
                let named = |member: &&ObjectProp| ["ref", "mutex"].contains(&key(member));
                let members = body.properties.iter().filter(named);
                self.locks.extend(members.filter_map(|member| text(&member.value)));
            }
            Event::Barrier => {
                if let Some(name) = text(value) {
                    let users = self.barriers.entry(name).or_default();
                    *users = users.saturating_add(instances);
                }
            }
            Event::SemWait | Event::SemPost => self.semaphores.extend(text(value)),
            _ => {}
        }
    }
}

/// The objects of a workload.
#[derive(Default)]
pub(crate) struct Objects {
    pub specs: Vec<ObjectSpec>,
    /// Number of objects in the `objects` section.
    declared: usize,
    by_name: BTreeMap<String, ObjectId>,
    implicit: BTreeMap<(Need, String), ObjectId>,
    /// What all events name.
    pub uses: Uses,
    /// Whether mutexes inherit priorities by default (rt-app's `pi_enabled`).
    pub pi_enabled: bool,
    /// What `wait_any` events wait for.
    pub wait_sets: Vec<Vec<ObjectId>>,
    wait_set_numbers: BTreeMap<Vec<ObjectId>, u32>,
}

impl Objects {
    /// Returns the number of a set of objects to wait for.
    pub fn wait_set(&mut self, set: Vec<ObjectId>) -> u32 {
        let next = self.wait_sets.len() as u32;
        let number = *self.wait_set_numbers.entry(set.clone()).or_insert(next);
        if number == next {
            self.wait_sets.push(set);
        }
        number
    }

    /// Whether a `suspend` on `name` shares its condition variable and mutex with other events. In
    /// rt-app it does if these have the same name.
    pub fn is_shared_event(&self, name: &str) -> bool {
        let is_declared_event = self
            .by_name
            .get(name)
            .is_some_and(|id| matches!(self.specs[id.index()].kind, ObjectKind::Event));
        self.uses.locks.contains(name) && !is_declared_event
    }

    /// Returns the object called `name` of the kind `need`. Creates it if that is allowed.
    pub fn resolve(&mut self, name: &str, need: Need, place: Range<usize>) -> Result<ObjectId> {
        if let Some(id) = self.by_name.get(name).filter(|id| id.index() < self.declared) {
            let kind = &self.specs[id.index()].kind;
            if need.is_met_by(kind) {
                return Ok(*id);
            }
            let help = format!(
                "this event takes a {}: name another object, or change the kind in `objects`",
                need.name()
            );
            return Err(problem(place, format!("{name:?} is a {}", kind.name()), help));
        }
        let need = match need {
            Need::Pollable if self.uses.semaphores.contains(name) => Need::Semaphore,
            need => need,
        };
        if let Some(id) = self.implicit.get(&(need, name.into())) {
            return Ok(*id);
        }
        let kind = self.implicit_kind(name, need, &place)?;
        global::check_name(name, place, need.name())?;
        let id = ObjectId(self.specs.len() as u32);
        let unique = self.unique_name(name, need);
        self.by_name.insert(unique.clone(), id);
        self.specs.push(ObjectSpec::new(unique, kind));
        self.implicit.insert((need, name.into()), id);
        Ok(id)
    }

    fn implicit_kind(&self, name: &str, need: Need, place: &Range<usize>) -> Result<ObjectKind> {
        Ok(match need {
            Need::Mutex => self.mutex(),
            Need::Condvar => ObjectKind::Condvar,
            Need::Semaphore => ObjectKind::Semaphore { initial: 0 },
            Need::Event => ObjectKind::Event,
            Need::Barrier => ObjectKind::Barrier { parties: self.users(name, place)? },
            Need::Channel | Need::Pollable => {
                let declared = || {
                    let met = |spec: &&ObjectSpec| need.is_met_by(&spec.kind);
                    self.specs.iter().filter(met).map(|spec| spec.name.as_str()).take(20)
                };
                let known = match list(declared()) {
                    none if none.is_empty() => String::new(),
                    names => format!("; there are {names}"),
                };
                return Err(problem(
                    place.clone(),
                    format!("{name:?} is no {}", need.name()),
                    did_you_mean(name, declared())
                        + "describe it: \"objects\": { \""
                        + &name.chars().take(40).collect::<String>()
                        + "\": { \"kind\": \"pipe\" } }"
                        + &known,
                ));
            }
        })
    }

    fn mutex(&self) -> ObjectKind {
        let protocol =
            if self.pi_enabled { MutexProtocol::Inherit } else { MutexProtocol::default() };
        ObjectKind::Mutex { protocol }
    }

    /// Number of tasks that use a barrier, counted as rt-app does.
    fn users(&self, name: &str, place: &Range<usize>) -> Result<u32> {
        let users = self.uses.barriers.get(name).copied().unwrap_or(0);
        u32::try_from(users).ok().filter(|users| *users > 0).ok_or_else(|| {
            problem(
                place.clone(),
                format!("barrier {name:?} has {users} users"),
                format!(
                    "they are counted over the instances that the launcher starts; for forked \
                     tasks give the number: \"objects\": {{ {name:?}: {{ \"kind\": \"barrier\", \
                     \"parties\": 2 }} }}"
                ),
            )
        })
    }

    /// Returns `name`, or `name` followed by the kind if another object has that name.
    fn unique_name(&self, name: &str, need: Need) -> String {
        let mut unique = name.to_string();
        let mut number = 1;
        while self.by_name.contains_key(&unique) {
            let stem: String = name.chars().take(global::NAME_CHARS_MAX - 24).collect();
            unique = match number {
                1 => format!("{stem} ({})", need.name()),
                _ => format!("{stem} ({} {number})", need.name()),
            };
            number += 1;
        }
        unique
    }
}

/// Names of kinds in the `objects` section.
const KINDS: [&str; 7] =
    ["mutex", "condvar", "barrier", "semaphore", "event", "pipe", "socketpair"];

/// Reads the `objects` section.
pub(crate) fn read_objects(reader: &mut Reader, value: &Value) -> Result<()> {
    for member in &object(value, "objects")?.properties {
        let name = key(member);
        global::check_name(name, key_span(member), "object")?;
        let kind = read_kind(reader, member)?;
        let id = ObjectId(reader.objects.specs.len() as u32);
        if reader.objects.by_name.insert(name.into(), id).is_some() {
            return Err(problem(
                key_span(member),
                format!("two objects are called {name:?}"),
                "give each object a name of its own",
            ));
        }
        reader.objects.specs.push(ObjectSpec::new(name, kind));
    }
    reader.objects.declared = reader.objects.specs.len();
    Ok(())
}

fn read_kind(reader: &Reader, member: &ObjectProp) -> Result<ObjectKind> {
    let name = key(member);
    let body = object(&member.value, name)?;
    let kinds = || format!("allowed are {}", list(KINDS));
    let Some(kind) = body.properties.iter().find(|member| key(member) == "kind") else {
        let message = format!("object {name:?} has no `kind`");
        return Err(problem(key_span(member), message, kinds()));
    };
    let word = string(&kind.value, "kind")?;
    let keys: &[&str] = match word {
        "mutex" => &["kind", "protocol", "priority"],
        "barrier" => &["kind", "parties"],
        "semaphore" => &["kind", "initial"],
        "pipe" | "socketpair" => &["kind", "capacity"],
        "condvar" | "event" => &["kind"],
        _ => {
            return Err(problem(
                span(&kind.value),
                format!("kind {word:?} is not known"),
                did_you_mean(word, KINDS) + &kinds(),
            ));
        }
    };
    let mut members = Members::new(body, keys, name)?;
    members.take("kind");
    Ok(match word {
        "mutex" => read_mutex(reader, &mut members)?,
        "condvar" => ObjectKind::Condvar,
        "event" => ObjectKind::Event,
        "barrier" => ObjectKind::Barrier {
            parties: match members.take("parties") {
                Some(value) => integer(value, "parties", 1..=i64::from(u32::MAX))? as u32,
                None => reader.objects.users(name, &key_span(member))?,
            },
        },
        "semaphore" => ObjectKind::Semaphore {
            initial: match members.take("initial") {
                Some(value) => integer(value, "initial", 0..=i64::from(SEM_VALUE_MAX))? as u32,
                None => 0,
            },
        },
        _ => read_channel(word, &mut members)?,
    })
}

fn read_mutex(reader: &Reader, members: &mut Members) -> Result<ObjectKind> {
    let priority = members.take_member("priority");
    let Some(value) = members.take("protocol") else {
        return match priority {
            None => Ok(reader.objects.mutex()),
            Some(member) => Err(problem(
                key_span(member),
                "`priority` of a mutex without a ceiling",
                "give \"protocol\": \"ceiling\", or leave `priority` out",
            )),
        };
    };
    let protocols = ["none", "inherit", "ceiling"];
    let protocol = match (string(value, "protocol")?, priority) {
        ("none", None) => MutexProtocol::None,
        ("inherit", None) => MutexProtocol::Inherit,
        ("ceiling", Some(member)) => MutexProtocol::Ceiling {
            rt_priority: integer(&member.value, "priority", 1..=99)? as u8,
        },
        ("ceiling", None) => {
            let help = "give \"priority\": the real-time priority of its holder, 1 to 99, at least \
                        that of every task that locks it";
            return Err(problem(span(value), "a ceiling without `priority`", help));
        }
        ("none" | "inherit", Some(member)) => {
            let help = "`priority` belongs to protocol \"ceiling\": leave it out";
            return Err(problem(key_span(member), "`priority` of a mutex without a ceiling", help));
        }
        (other, _) => {
            return Err(problem(
                span(value),
                format!("protocol {other:?} is not known"),
                did_you_mean(other, protocols) + "allowed are " + &list(protocols),
            ));
        }
    };
    Ok(ObjectKind::Mutex { protocol })
}

fn read_channel(word: &str, members: &mut Members) -> Result<ObjectKind> {
    let (kind, default) = match word {
        "pipe" => (ChannelKind::Pipe, PIPE_BYTES),
        _ => (ChannelKind::SocketPair, SOCKETPAIR_BYTES),
    };
    let capacity_bytes = match members.take("capacity") {
        None => default,
        Some(value) => {
            let bytes = json::bytes(value, "capacity")?;
            if !(1..=CHANNEL_BYTES_MAX).contains(&bytes) {
                return Err(problem(
                    span(value),
                    format!("`capacity` is {bytes} bytes"),
                    format!("allowed are 1 to {CHANNEL_BYTES_MAX}"),
                ));
            }
            bytes
        }
    };
    Ok(ObjectKind::Channel { kind, capacity_bytes })
}

/// Types of rt-app's own, older `resources` section (src/rt-app_utils.c, `string_to_resource`).
const RESOURCE_TYPES: [&str; 8] =
    ["mutex", "wait", "signal", "broadcast", "sync", "sleep", "run", "timer"];

/// Checks the `resources` section. It has no effect: rt-app itself creates what events name.
pub(crate) fn check_resources(value: &Value) -> Result<()> {
    // rt-app takes a number of resources, too, and does nothing with it.
    let Value::Object(resources) = value else {
        return integer(value, "resources", 0..=i64::from(i32::MAX)).map(drop);
    };
    for member in &resources.properties {
        let name = key(member);
        let mut members = Members::new(object(&member.value, name)?, &["type", "target"], name)?;
        if let Some(value) = members.take("type") {
            let word = string(value, "type")?;
            if !RESOURCE_TYPES.contains(&word) {
                return Err(problem(
                    span(value),
                    format!("type {word:?} of a resource is not known"),
                    did_you_mean(word, RESOURCE_TYPES) + "allowed are " + &list(RESOURCE_TYPES),
                ));
            }
        }
        if let Some(member) = members.take_member("target") {
            return Err(problem(
                key_span(member),
                format!("resource {name:?} has a `target`"),
                "rt-app since 2014 does not look at it: name the condition variable itself in \
                 `signal`, `broad` and `sync`, and remove the resource",
            ));
        }
    }
    Ok(())
}
