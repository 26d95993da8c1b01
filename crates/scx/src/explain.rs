// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains why a CPU runs a task, in terms of sched_ext. It shows the queue from which the task
//! came and its position there; the callbacks that put it there and took it away; its slice; the
//! kick of the CPU; and the tasks that waited elsewhere.
//!
//! The core only takes the head of the CPU's local queue. It does not know what the scheduler
//! compared before it moved a task there. The explanation shows the order of the scheduler's
//! queues, and the tasks that it keeps outside of them.

use super::consts::{DSQ_BYPASS, DSQ_GLOBAL, DSQ_LOCAL, SLICE_INF};
use super::notes::{Kept, Notes, Stand, TaskNote};
use super::ops::Callback;
use super::state::{ExtState, Status};
use super::task::{NIL, OpsState};
use schedlab_model::{CpuId, TaskId};
use schedlab_sched::Core;
use schedlab_sched::boundary::explain::{Candidate, Contest, Explanation, Fact, Rule, Value, Who};

/// The rule of the core.
const HEAD: Rule =
    Rule::Least { keys: &["position"], text: "the head of the local queue of this CPU" };

/// Where a candidate is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It ran, and continues.
    Runs,
    /// It ran, is still runnable, and enters a queue after the pick.
    Leaves,
    Local(u64),
    Queue(u64),
    Custody,
}

impl ExtState {
    /// Records notes from now on.
    pub fn keep_notes(&mut self) {
        self.notes = Some(Box::new(Notes::new(self.cpus.len() as u32)));
    }

    /// The position of `p` in its queue.
    pub fn stand_of(&self, p: TaskId) -> Stand {
        let task = self.task(p);
        let position = self.dsqs.members(&self.tasks, task.dsq).position(|id| id == p.0);
        Stand {
            dsq_id: self.dsqs.get(task.dsq).id,
            position: position.unwrap_or_default() as u64,
            vtime: task.on_priq.then(|| task.entity.dsq_vtime()),
        }
    }

    /// The numbers of `p` that core and scheduler share.
    pub fn task_facts(&self, p: TaskId) -> Vec<Fact> {
        let entity = &self.task(p).entity;
        vec![
            slice_fact(entity.slice()),
            Fact::number("dsq_vtime", entity.dsq_vtime() as i64),
            Fact::number("weight", entity.weight()),
        ]
    }

    /// Explains the last pick on `cpu`.
    pub fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        if self.status == Status::Disabled {
            into.contests.push(Contest::nobody("ext", Rule::Empty));
            return;
        }
        let local = self.dsqs.local(cpu);
        let kept = self.cpu(cpu).bal_keep.then(|| core.rq(cpu).curr).flatten();
        let kept = kept.filter(|curr| core.task(*curr).class == self.class);
        let head = self.dsqs.get(local).head;
        let chosen = kept.or((head != NIL).then_some(TaskId(head)));
        let waiting = self.waiting(core, cpu, kept, chosen);
        let mut contest = Contest::nobody("ext", self.rule(cpu, kept, &waiting));
        contest.facts = self.cpu_facts(core, cpu);
        for (index, (p, place)) in waiting.into_iter().enumerate() {
            let is_shown = index < into.limit.max(1) || Some(p) == chosen || into.focus == Some(p);
            if !is_shown {
                contest.nr_omitted += 1;
                continue;
            }
            contest.candidates.push(Candidate {
                who: Who::Task(p),
                running: matches!(place, Place::Runs | Place::Leaves),
                considered: matches!(place, Place::Local(_) | Place::Runs),
                chosen: Some(p) == chosen,
                facts: self.candidate_facts(core, p, place),
            });
        }
        into.contests.push(contest);
    }

    fn rule(&self, cpu: CpuId, kept: Option<TaskId>, waiting: &[(TaskId, Place)]) -> Rule {
        let why = self.notes.as_ref().and_then(|notes| notes.cpu(cpu).kept);
        match (kept, why) {
            (Some(_), Some(Kept::NewSlice)) => return Rule::Keeps("ops.dispatch gave it a slice"),
            (Some(_), Some(Kept::NothingElse)) => {
                return Rule::Keeps("no other task came to the local queue");
            }
            (Some(_), _) => return Rule::Keeps("some of its slice is left"),
            (None, _) => {}
        }
        let nr_local = waiting.iter().filter(|(_, at)| matches!(at, Place::Local(_))).count();
        let nr_waiting = waiting.iter().filter(|(_, at)| *at != Place::Leaves).count();
        match (nr_local, nr_waiting) {
            (0, 0) => Rule::Empty,
            (0, _) => Rule::HeldBack("the scheduler dispatched none of them to this CPU"),
            (1, 1) => Rule::Alone,
            _ => HEAD,
        }
    }

    /// The candidates of the CPU, and the tasks that wait elsewhere. In this order: the running
    /// task if it continues; the local queue; the queue from which the picked task came; the other
    /// queues; the tasks that the scheduler keeps.
    fn waiting(
        &self,
        core: &Core,
        cpu: CpuId,
        kept: Option<TaskId>,
        chosen: Option<TaskId>,
    ) -> Vec<(TaskId, Place)> {
        let curr = core.rq(cpu).curr.filter(|p| core.task(*p).class == self.class);
        let curr = curr.filter(|p| self.task(*p).queued && Some(*p) != chosen);
        let leaves = curr.map(|p| (p, Place::Leaves));
        let mut all: Vec<_> = kept.map(|p| (p, Place::Runs)).or(leaves).into_iter().collect();
        let local = self.dsqs.members(&self.tasks, self.dsqs.local(cpu));
        all.extend(local.enumerate().map(|(nth, id)| (TaskId(id), Place::Local(nth as u64))));
        let from = chosen.and_then(|p| self.note(p).from);
        let mut shared: Vec<u32> = self.dsqs.shared().collect();
        shared.sort_by_key(|dsq| Some(self.dsqs.get(*dsq).id) != from);
        for dsq in shared {
            let members = self.dsqs.members(&self.tasks, dsq).enumerate();
            all.extend(members.map(|(nth, id)| (TaskId(id), Place::Queue(nth as u64))));
        }
        let is_kept_back = |p: &TaskId| {
            self.task(*p).ops_state == OpsState::Queued
                && core.rq(core.task(*p).cpu).curr != Some(*p)
        };
        let tasks = (0..self.tasks.len() as u32).map(TaskId);
        all.extend(tasks.filter(is_kept_back).map(|p| (p, Place::Custody)));
        all
    }

    fn note(&self, p: TaskId) -> TaskNote {
        self.notes.as_ref().map(|notes| notes.task(p)).unwrap_or_default()
    }

    fn candidate_facts(&self, core: &Core, p: TaskId, place: Place) -> Vec<Fact> {
        let (task, note) = (self.task(p), self.note(p));
        let mut facts = Vec::new();
        match place {
            Place::Runs | Place::Leaves => {}
            Place::Custody => facts.push(Fact::word("dsq", "scheduler's own")),
            Place::Local(nth) | Place::Queue(nth) => {
                facts.push(dsq_fact("dsq", self.dsqs.get(task.dsq).id));
                facts.push(Fact::number("position", nth));
            }
        }
        let vtime = if task.on_priq { Some(task.entity.dsq_vtime()) } else { note.from_vtime };
        let runs = matches!(place, Place::Runs | Place::Leaves);
        if let Some(vtime) = vtime.filter(|_| !runs) {
            facts.push(Fact::number("dsq_vtime", vtime as i64));
        }
        facts.push(slice_fact(task.entity.slice()));
        facts.push(Fact::number("weight", task.entity.weight()));
        if runs {
            return facts;
        }
        if place != Place::Custody {
            facts.push(Fact::word("put_by", by(note.put_by)));
        }
        if let Some(from) = note.from {
            facts.push(dsq_fact("from_dsq", from));
            facts.push(Fact::number("from_position", note.from_position));
            facts.push(Fact::word("moved_by", by(note.moved_by)));
        }
        facts.push(Fact::ns("waited", core.now - note.since));
        facts
    }

    /// Facts about the CPU at this pick: whether the scheduler was asked, and the last kick.
    fn cpu_facts(&self, core: &Core, cpu: CpuId) -> Vec<Fact> {
        let Some(notes) = &self.notes else { return Vec::new() };
        let note = notes.cpu(cpu);
        let mut facts = vec![Fact::flag("dispatch_called", note.dispatched_at == Some(core.now))];
        if let Some(kick) = note.kick.filter(|kick| kick.at == core.now) {
            facts.push(Fact::word("kicked_by", by(kick.by)));
            facts.push(Fact::word("kick", kick.how));
            facts.push(Fact::number("kicked_from_cpu", kick.from_cpu.0));
        }
        facts
    }
}

/// The name of a callback for people.
fn by(callback: Option<Callback>) -> &'static str {
    match callback {
        None => "core",
        Some(Callback::Timer) => "a BPF timer",
        Some(callback) => callback.ops_name(),
    }
}

fn slice_fact(slice: u64) -> Fact {
    if slice == SLICE_INF { Fact::word("slice", "endless") } else { Fact::ns("slice", slice) }
}

/// A queue: built-in ones have names.
fn dsq_fact(name: &'static str, id: u64) -> Fact {
    match id {
        DSQ_LOCAL => Fact::word(name, "local"),
        DSQ_GLOBAL => Fact::word(name, "global"),
        DSQ_BYPASS => Fact::word(name, "bypass"),
        id => Fact { name, value: Value::Number(id as i64), unit: "" },
    }
}
