// SPDX-License-Identifier: MIT OR Apache-2.0
//! State breakdown: the time of each task in each state.
//!
//! Formula: from release to exit (or the end of the run) each moment belongs to one state. Running:
//! on a CPU. Runnable: on a run queue. Blocked: asleep after it announced the object. Sleeping:
//! asleep otherwise (timers, and whatever no event names). Device: uninterruptible sleep. Unknown:
//! events are missing. The times add up to the life, exactly. Unit: ns, and shares of the life.
//!
//! Source: the states of sched_switch's prev_state (include/trace/events/sched.h); `perf sched
//! timehist --state` has the first three. What a task blocks on comes from the block events of the
//! program that runs it.
//!
//! Left out: if a task blocks on more than [`OBJECTS_MAX`] objects, only the first ones are named.

use super::follow::Change;
use crate::life::State;
use schedlab_model::trace::{ObjectInfo, WaitKind};
use schedlab_model::{Nanos, ObjectId, TaskId};
use serde::{Deserialize, Serialize};

/// Maximum number of objects named for each task; the waits for others are summed.
pub const OBJECTS_MAX: usize = 32;

/// Name for the sum of the waits for objects after [`OBJECTS_MAX`].
pub const OTHER_OBJECTS: &str = "(other objects)";

/// Time of a task in one state.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateTime {
    /// `running`, `runnable`, `blocked`, `sleeping`, `device` or `unknown`.
    pub state: String,
    /// For `blocked`: the name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// For `blocked`: the kind of the object, such as `mutex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Time in the state (ns); over all states of a task it adds up to `life_ns`.
    pub ns: u64,
    /// Share of its life, 0 to 1.
    pub share: f64,
    /// Number of stays in the state.
    pub count: u64,
    /// The longest single stay (ns).
    pub ns_max: u64,
}

impl StateTime {
    /// What the task was blocked on, for people: kind and name, or one of them if they are the
    /// same.
    pub fn blocked_on(&self) -> Option<String> {
        let object = self.object.as_deref()?;
        Some(match self.kind.as_deref() {
            Some(kind) if kind != object => format!("{kind} {object}"),
            _ => object.to_string(),
        })
    }
}

/// Sum, number and maximum of the stays in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Stays {
    ns: Nanos,
    count: u64,
    ns_max: Nanos,
}

impl Stays {
    fn add(&mut self, ns: Nanos) {
        self.ns += ns;
        self.count += 1;
        self.ns_max = self.ns_max.max(ns);
    }
}

#[derive(Clone, Debug, Default)]
struct Task {
    running: Stays,
    runnable: Stays,
    sleeping: Stays,
    device: Stays,
    unknown: Stays,
    blocked: Vec<(ObjectId, Stays)>,
    blocked_other: Stays,
}

impl Task {
    fn blocked_on(&mut self, object: ObjectId) -> &mut Stays {
        match self.blocked.iter().position(|(known, _)| *known == object) {
            Some(at) => &mut self.blocked[at].1,
            None if self.blocked.len() >= OBJECTS_MAX => &mut self.blocked_other,
            None => {
                self.blocked.push((object, Stays::default()));
                let last = self.blocked.len() - 1;
                &mut self.blocked[last].1
            }
        }
    }
}

/// The breakdown of every task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breakdown {
    tasks: Vec<Task>,
    objects: Vec<ObjectInfo>,
}

impl Breakdown {
    pub fn task(&mut self) {
        self.tasks.push(Task::default());
    }

    pub fn object(&mut self, info: &ObjectInfo) {
        self.objects.push(info.clone());
    }

    #[inline]
    pub fn change(&mut self, change: &Change) {
        let Some(task) = self.tasks.get_mut(change.task.index()) else { return };
        let stays = match change.past.state {
            State::Unreleased | State::Dead => return,
            _ if !change.past.is_known => &mut task.unknown,
            State::Unknown => &mut task.unknown,
            State::Running(_) => &mut task.running,
            State::Queued => &mut task.runnable,
            State::BlockedIo => &mut task.device,
            State::Sleeping => match change.blocked_on {
                Some(object) => task.blocked_on(object),
                None => &mut task.sleeping,
            },
        };
        stays.add(change.past.ns);
    }

    /// The life of a task and its states, whose times add up to it.
    pub fn states(&self, id: TaskId) -> (Nanos, Vec<StateTime>) {
        let Some(task) = self.tasks.get(id.index()) else { return (0, Vec::new()) };
        let plain = [("running", task.running), ("runnable", task.runnable)];
        let rest = [("sleeping", task.sleeping), ("device", task.device)];
        let row = |state: &str, stays: Stays| (state.to_string(), None, stays);
        let mut rows: Vec<(String, Option<ObjectInfo>, Stays)> =
            plain.map(|(state, stays)| row(state, stays)).into();
        let mut blocked = task.blocked.clone();
        blocked.sort_by_key(|(object, stays)| (std::cmp::Reverse(stays.ns), *object));
        for (object, stays) in blocked {
            rows.push(("blocked".into(), Some(self.object_info(object)), stays));
        }
        let other = ObjectInfo { name: OTHER_OBJECTS.into(), kind: WaitKind::Set };
        rows.push(("blocked".into(), Some(other), task.blocked_other));
        rows.extend(rest.map(|(state, stays)| row(state, stays)));
        rows.push(row("unknown", task.unknown));
        for (state, _, Stays { ns, count, ns_max }) in &rows {
            let most = u128::from(*count) * u128::from(*ns_max);
            let fits = ns_max <= ns && u128::from(*ns) <= most;
            assert!(fits, "task {id}: {count} stays {state} of at most {ns_max} ns make {ns} ns");
        }
        let life_ns = rows.iter().map(|(_, _, stays)| stays.ns).sum();
        let states = rows.into_iter().filter(|(_, _, stays)| stays.count > 0);
        let state = |(state, object, stays): (String, Option<ObjectInfo>, Stays)| StateTime {
            state,
            kind: object.as_ref().map(|object| object.kind.name().into()),
            object: object.map(|object| object.name),
            ns: stays.ns,
            share: if life_ns == 0 { 0.0 } else { stays.ns as f64 / life_ns as f64 },
            count: stays.count,
            ns_max: stays.ns_max,
        };
        (life_ns, states.map(state).collect())
    }

    fn object_info(&self, object: ObjectId) -> ObjectInfo {
        let unknown = || ObjectInfo { name: format!("object {object}"), kind: WaitKind::Set };
        self.objects.get(object.index()).cloned().unwrap_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::StateTime;
    use crate::analysis::testing::analyse;
    use crate::testing::Script;
    use schedlab_model::trace::WaitKind;
    use schedlab_model::{EventKind, ObjectId, SwitchOut, TaskId};

    /// Runs 10..30, blocks on a mutex 30..50, waits 50..55, runs to 60, sleeps to 70. Then it waits
    /// to 72, runs to 80, is in device sleep to 95, and runs from 95 to the end.
    #[test]
    fn every_moment_has_one_state() {
        let mut s = Script::new(1);
        s.objects.push(("m", WaitKind::Mutex));
        let block = EventKind::Block { task: TaskId(0), object: ObjectId(0) };
        s.fork(0, 0).switch(10, None, Some(0), SwitchOut::Idle);
        s.on(30, 0, block).switch(30, Some(0), None, SwitchOut::Sleeping).wakeup(50, 0);
        s.switch(55, None, Some(0), SwitchOut::Idle);
        s.switch(60, Some(0), None, SwitchOut::Sleeping).wakeup(70, 0);
        s.switch(72, None, Some(0), SwitchOut::Idle);
        s.switch(80, Some(0), None, SwitchOut::BlockedIo).wakeup(95, 0);
        s.switch(95, None, Some(0), SwitchOut::Idle).end(100);
        let task = &analyse(1, &s).tasks[0];
        let states: Vec<_> = task
            .states
            .iter()
            .map(|s| (s.state.as_str(), s.object.as_deref(), s.ns, s.count, s.ns_max))
            .collect();
        let want = [
            ("running", None, 20 + 5 + 8 + 5, 4, 20),
            ("runnable", None, 10 + 5 + 2, 4, 10),
            ("blocked", Some("m"), 20, 1, 20),
            ("sleeping", None, 10, 1, 10),
            ("device", None, 15, 1, 15),
        ];
        assert_eq!(states, want);
        assert_eq!(task.life_ns, 100);
        assert_eq!(task.states[2].kind.as_deref(), Some("mutex"));
        assert_eq!(task.states[0].share, 0.38);
    }

    /// A block that was announced but ended in a preemption does not count. The sleep after it is
    /// an ordinary one.
    #[test]
    fn a_block_that_did_not_happen_names_no_sleep() {
        let mut s = Script::new(1);
        s.objects.push(("m", WaitKind::Mutex));
        s.fork(0, 0).switch(0, None, Some(0), SwitchOut::Idle);
        s.on(5, 0, EventKind::Block { task: TaskId(0), object: ObjectId(0) });
        s.switch(5, Some(0), None, SwitchOut::Preempted);
        s.switch(6, None, Some(0), SwitchOut::Idle);
        s.switch(9, Some(0), None, SwitchOut::Sleeping).end(12);
        let task = &analyse(1, &s).tasks[0];
        let states: Vec<_> = task.states.iter().map(|s| (s.state.as_str(), s.ns)).collect();
        assert_eq!(states, [("running", 8), ("runnable", 1), ("sleeping", 3)]);
    }

    /// With more objects than names, the sum stays complete.
    #[test]
    fn objects_are_said_with_their_kind() {
        let blocked = |kind: &str, object: &str| StateTime {
            kind: Some(kind.into()),
            object: Some(object.into()),
            ..StateTime::default()
        };
        assert_eq!(blocked("mutex", "m").blocked_on().as_deref(), Some("mutex m"));
        assert_eq!(blocked("children", "children").blocked_on().as_deref(), Some("children"));
        assert_eq!(StateTime::default().blocked_on(), None);
    }

    #[test]
    fn waits_on_many_objects_are_summed() {
        let mut s = Script::new(1);
        let nr = super::OBJECTS_MAX as u32 + 8;
        s.objects.extend((0..nr).map(|_| ("o", WaitKind::Semaphore)));
        s.fork(0, 0);
        for object in 0..nr {
            let at = 10 * u64::from(object);
            s.switch(at, None, Some(0), SwitchOut::Idle);
            s.on(at + 4, 0, EventKind::Block { task: TaskId(0), object: ObjectId(object) });
            s.switch(at + 4, Some(0), None, SwitchOut::Sleeping).wakeup(at + 10, 0);
        }
        s.end(10 * u64::from(nr));
        let task = &analyse(1, &s).tasks[0];
        let other = task.states.iter().find(|s| s.object.as_deref() == Some(super::OTHER_OBJECTS));
        assert_eq!(other.map(|other| (other.ns, other.count)), Some((8 * 6, 8)));
        assert_eq!(task.states.iter().map(|s| s.ns).sum::<u64>(), task.life_ns);
        assert_eq!(task.life_ns, 10 * u64::from(nr));
    }
}
