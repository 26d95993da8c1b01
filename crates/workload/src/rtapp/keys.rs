// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of the format: which are known, which belong to rt-app but are not supported yet.
//!
//! Source: rt-app's doc/tutorial.txt and src/rt-app_parse_config.c (2026). rt-app recognises events
//! by the beginning of their key, so that `run0`, `run1` and `runA` are all `run`: JSON wants keys
//! to differ. Here a key may simply be repeated, too.

use crate::suggest::{did_you_mean, list};

/// An event of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Run,
    Runtime,
    Sleep,
    Timer,
    Iorun,
    Yield,
    Fork,
    Join,
    Exit,
    Progress,
    Phase,
    Repeat,
    Sched,
}

/// Events that are supported: rt-app's own first, then schedlab's.
pub(crate) const EVENTS: [(&str, Event); 13] = [
    ("run", Event::Run),
    ("runtime", Event::Runtime),
    ("sleep", Event::Sleep),
    ("timer", Event::Timer),
    ("iorun", Event::Iorun),
    ("yield", Event::Yield),
    ("fork", Event::Fork),
    ("join", Event::Join),
    ("exit", Event::Exit),
    ("progress", Event::Progress),
    ("phase", Event::Phase),
    ("repeat", Event::Repeat),
    ("sched", Event::Sched),
];

/// Events of rt-app that are not supported yet, and what they do there.
pub(crate) const EVENTS_REFUSED: [(&str, &str); 13] = [
    ("lock", "takes a mutex"),
    ("unlock", "gives a mutex back"),
    ("wait", "waits for a condition variable"),
    ("signal", "wakes one waiter of a condition variable"),
    ("broad", "wakes all waiters of a condition variable"),
    ("sync", "signals a condition variable and waits for it"),
    ("barrier", "waits until all users of a barrier are there"),
    ("suspend", "waits until another task resumes this one"),
    ("resume", "wakes a suspended task"),
    ("mem", "writes memory"),
    ("memrun", "walks through memory"),
    ("sem_wait", "takes a semaphore"),
    ("sem_post", "gives a semaphore back"),
];

/// Properties of a task that are not attributes.
pub(crate) const TASK_KEYS: [&str; 6] =
    ["instance", "delay", "loop", "phases", "interarrival", "release"];

/// Attributes: at a task, a phase, or in a `sched` event.
pub(crate) const ATTR_KEYS: [&str; 7] =
    ["policy", "priority", "dl-runtime", "dl-period", "dl-deadline", "cpus", "taskgroup"];

/// Properties of rt-app that are refused, and what to do.
const PROPERTIES_REFUSED: [(&str, &str); 11] = [
    ("dl-reclaim", "reclaiming of unused deadline budget is not supported yet: remove the key"),
    ("util_min", "utilisation clamping is not supported yet: remove the key"),
    ("util_max", "utilisation clamping is not supported yet: remove the key"),
    ("nodes_membind", "NUMA memory binding is not supported yet: remove the key"),
    ("membind_nodes", "NUMA memory binding is not supported yet: remove the key"),
    ("period", "this old name is not supported: write `dl-period`, or a `timer` with a period"),
    ("deadline", "this old name is not supported: write `dl-deadline`"),
    ("exec", "rt-app 1.0's grammar is not supported: write `run` and a `timer`"),
    ("lock_order", "rt-app 1.0's grammar is not supported, and locks are not yet"),
    ("resources", "rt-app 1.0's grammar is not supported, and locks are not yet"),
    ("use_runtime", "rt-app 1.0's grammar is not supported: write `runtime` instead of `run`"),
];

/// What a key of a task, a phase or a `repeat` means.
pub(crate) enum Meaning<'k> {
    /// A property that is read elsewhere.
    Property,
    /// An event; `odd_suffix` is what follows its name where that looks like a slip.
    Event { event: Event, odd_suffix: Option<&'k str> },
    /// Refused: what was found, what to do.
    Refused { message: String, help: String },
}

/// The longest name that the key begins with.
fn longest<T: Copy>(key: &str, names: &[(&'static str, T)]) -> Option<(&'static str, T)> {
    names
        .iter()
        .filter(|(name, _)| key.starts_with(name))
        .max_by_key(|(name, _)| name.len())
        .copied()
}

/// What `key` means in an object with these `properties`. `place` names the object for people.
pub(crate) fn meaning<'k>(key: &'k str, properties: &[&str], place: &str) -> Meaning<'k> {
    if properties.contains(&key) {
        return Meaning::Property;
    }
    if let Some(refused) = refused_property(key, properties, place) {
        return refused;
    }
    let event = longest(key, &EVENTS);
    let refused = longest(key, &EVENTS_REFUSED);
    match (event, refused) {
        (event, Some((name, does))) if event.is_none_or(|(known, _)| known.len() < name.len()) => {
            Meaning::Refused {
                message: format!("event `{name}` is not supported yet"),
                help: format!(
                    "in rt-app it {does}; no lane plays it, and leaving it out would change the \
                     workload. Remove it, or express it with {}",
                    list(EVENTS.iter().map(|(name, _)| *name))
                ),
            }
        }
        (Some((name, event)), _) => {
            let suffix = &key[name.len()..];
            let odd = suffix.len() > 1 && suffix.starts_with(|c: char| c.is_lowercase());
            Meaning::Event { event, odd_suffix: odd.then_some(suffix) }
        }
        (None, _) => unknown(key, properties, place),
    }
}

fn refused_property<'k>(key: &str, properties: &[&str], place: &str) -> Option<Meaning<'k>> {
    if TASK_KEYS.contains(&key) || ATTR_KEYS.contains(&key) {
        let belongs = if key == "loop" { "a task, a phase or a `repeat`" } else { "a task" };
        return Some(Meaning::Refused {
            message: format!("`{key}` does not belong to {place}"),
            help: format!(
                "it is a property of {belongs}; properties allowed here: {}",
                if properties.is_empty() {
                    "none".into()
                } else {
                    list(properties.iter().copied())
                }
            ),
        });
    }
    let (_, help) = PROPERTIES_REFUSED.iter().find(|(name, _)| *name == key)?;
    Some(Meaning::Refused { message: format!("`{key}` is not supported"), help: (*help).into() })
}

fn unknown<'k>(key: &str, properties: &[&str], place: &str) -> Meaning<'k> {
    let events = || EVENTS.iter().map(|(name, _)| *name);
    let hint = did_you_mean(key, properties.iter().copied().chain(events()));
    Meaning::Refused {
        message: format!("{place} knows no key {key:?}"),
        help: format!(
            "{hint}allowed are the properties {} and the events {}",
            list(properties.iter().copied()),
            list(events())
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(key: &str) -> Option<(Event, bool)> {
        match meaning(key, &ATTR_KEYS, "a phase") {
            Meaning::Event { event, odd_suffix } => Some((event, odd_suffix.is_some())),
            _ => None,
        }
    }

    #[test]
    fn events_are_known_by_the_longest_prefix() {
        assert_eq!(event("run0"), Some((Event::Run, false)));
        assert_eq!(event("runtime"), Some((Event::Runtime, false)));
        assert_eq!(event("runtimeB"), Some((Event::Runtime, false)));
        assert_eq!(event("runa"), Some((Event::Run, false)));
        assert_eq!(event("runtme"), Some((Event::Run, true)));
        assert_eq!(event("memrun"), None);
        assert_eq!(event("syncX"), None);
        assert_eq!(event("sem_post3"), None);
    }
}
