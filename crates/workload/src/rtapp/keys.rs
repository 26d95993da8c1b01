// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of the format: the known ones, and those that are refused, with the reason.
//!
//! Source: rt-app's doc/tutorial.txt and src/rt-app_parse_config.c (2026). rt-app recognises events
//! by the beginning of their key, because keys in JSON should differ: `run0`, `run1` and `runA` are
//! all `run`. Here a key may also be repeated.

use schedlab_model::suggest::{did_you_mean, list};

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
    Lock,
    Unlock,
    Wait,
    Signal,
    Broad,
    Sync,
    Barrier,
    SemWait,
    SemPost,
    Suspend,
    Resume,
    Mem,
    Memrun,
    Send,
    Receive,
    WaitAny,
    Change,
    Tune,
}

/// The events: rt-app's own first, then schedlab's.
pub(crate) const EVENTS: [(&str, Event); 31] = [
    ("run", Event::Run),
    ("runtime", Event::Runtime),
    ("sleep", Event::Sleep),
    ("timer", Event::Timer),
    ("lock", Event::Lock),
    ("unlock", Event::Unlock),
    ("wait", Event::Wait),
    ("signal", Event::Signal),
    ("broad", Event::Broad),
    ("sync", Event::Sync),
    ("barrier", Event::Barrier),
    ("sem_wait", Event::SemWait),
    ("sem_post", Event::SemPost),
    ("suspend", Event::Suspend),
    ("resume", Event::Resume),
    ("mem", Event::Mem),
    ("memrun", Event::Memrun),
    ("iorun", Event::Iorun),
    ("yield", Event::Yield),
    ("fork", Event::Fork),
    ("send", Event::Send),
    ("receive", Event::Receive),
    ("wait_any", Event::WaitAny),
    ("join", Event::Join),
    ("exit", Event::Exit),
    ("progress", Event::Progress),
    ("phase", Event::Phase),
    ("repeat", Event::Repeat),
    ("sched", Event::Sched),
    ("change", Event::Change),
    ("tune", Event::Tune),
];

/// Properties of a task that are not attributes.
pub(crate) const TASK_KEYS: [&str; 11] = [
    "instance",
    "delay",
    "loop",
    "phases",
    "interarrival",
    "release",
    "process",
    "working_set",
    "session",
    "period",
    "deadline",
];

/// Attributes: of a task, of a phase, or in a `sched` event.
pub(crate) const ATTR_KEYS: [&str; 11] = [
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "dl-reclaim",
    "util_min",
    "util_max",
    "cpus",
    "nodes_membind",
    "taskgroup",
];

/// Keys of older or other grammars that are refused, and what to do.
const REFUSED: [(&str, &str); 10] = [
    ("external_workload", "schedlab runs no code of other programs: write what it does as events"),
    ("exec", OLD_GRAMMAR),
    ("exec jitter", OLD_GRAMMAR),
    ("hard_rsv", OLD_GRAMMAR),
    ("lock_order", OLD_GRAMMAR),
    ("resources", OLD_GRAMMAR),
    ("use_runtime", "this old key is not supported: write `runtime` instead of `run`"),
    ("membind_nodes", "the key is called `nodes_membind`"),
    ("cgroup", "the key is called `taskgroup`"),
    ("nice", "the key is called `priority`: that of SCHED_OTHER is the nice value, -20 to 19"),
];
const OLD_GRAMMAR: &str = "this is the grammar of rt-app before events (2014): write `run`, \
                           `timer`, `lock` and the other events in their order";

/// What a key of a task, a phase or a `repeat` means.
pub(crate) enum Meaning<'k> {
    /// A property that is read elsewhere.
    Property,
    /// An event. `odd_suffix` is the end of the key, if it looks like a spelling mistake.
    Event { event: Event, odd_suffix: Option<&'k str> },
    /// Refused: what was found, what to do.
    Refused { message: String, help: String },
}

/// Finds the longest name with which the key begins.
fn longest<T: Copy>(key: &str, names: &[(&'static str, T)]) -> Option<(&'static str, T)> {
    names
        .iter()
        .filter(|(name, _)| key.starts_with(name))
        .max_by_key(|(name, _)| name.len())
        .copied()
}

/// Meaning of `key` in an object with these `properties`. `place` is the object's name for
/// messages.
pub(crate) fn meaning<'k>(key: &'k str, properties: &[&str], place: &str) -> Meaning<'k> {
    if properties.contains(&key) {
        return Meaning::Property;
    }
    if let Some(refused) = refused_property(key, properties, place) {
        return refused;
    }
    match longest(key, &EVENTS) {
        Some((name, event)) => {
            let suffix = &key[name.len()..];
            Meaning::Event { event, odd_suffix: is_odd(name, suffix).then_some(suffix) }
        }
        None => unknown(key, properties, place),
    }
}

/// Whether the end of a key looks like a spelling mistake: letters as in `runtme`, or one letter
/// too many as in `runn` and `locks`. In rt-app's files one letter numbers events: `runa`, `runb`.
fn is_odd(name: &str, suffix: &str) -> bool {
    let mut letters = suffix.chars();
    match (letters.next(), letters.next()) {
        (Some(only), None) => name.ends_with(only) || only == 's',
        (Some(first), Some(_)) => first.is_lowercase(),
        (None, _) => false,
    }
}

/// The event of `key`: the one with the longest name with which the key begins.
pub(crate) fn event(key: &str) -> Option<Event> {
    longest(key, &EVENTS).map(|(_, event)| event)
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
    // rt-app's events are known by their beginning, and so is this one of its branches.
    let refused = |name: &str| key == name || (name.len() > 16 && key.starts_with(name));
    let (_, help) = REFUSED.iter().find(|(name, _)| refused(name))?;
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
        for slip in ["runn", "sleepp", "locks", "timerr"] {
            assert!(event(slip).unwrap().1, "{slip}");
        }
        assert_eq!(event("mem1"), Some((Event::Mem, false)));
        assert_eq!(event("memrun"), Some((Event::Memrun, false)));
        assert_eq!(event("syncX"), Some((Event::Sync, false)));
        assert_eq!(event("sem_post3"), Some((Event::SemPost, false)));
        assert_eq!(event("wait_any0"), Some((Event::WaitAny, false)));
        assert_eq!(event("wait7"), Some((Event::Wait, false)));
        assert_eq!(event("external_workload1"), None);
        assert_eq!(event("exec"), None);
    }
}
