// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of the class between picks, for an observer that checks them, and the places where a bug
//! on purpose ([`FairBug`]) changes what the class does.
//!
//! The functions here are off the common path: the class calls them only while it is audited or has
//! a bug (`is_odd`). Averages are computed from the list of a queue, without its sums.

use super::FairClass;
use super::average::Sums;
use super::average::div_floor;
use super::entity::Entity;
use super::rbtree::{NIL, before};
use super::rules::{Algorithm, FairBug};
use super::weights::LoadWeight;
use crate::boundary::core::Core;
use crate::boundary::explain::{Explanation, Fact, Step, StepKind, StepLog, Who};
use schedlab_model::weights::MIN_SHARES;
use schedlab_model::{CgroupId, CpuId, Nanos};

impl FairClass {
    /// Records steps from now on.
    pub(super) fn begin_audit(&mut self) {
        self.audit = Some(Box::new(StepLog::default()));
        (self.is_odd, self.is_plain) = (true, false);
        if let Some(balancer) = &mut self.balancer {
            balancer.begin_audit();
        }
    }

    fn note(&self, kind: StepKind, q: u32, who: Option<Who>, facts: Vec<Fact>) {
        if let Some(audit) = &self.audit {
            audit.add(Step { kind, cpu: CpuId(self.rq(q).cpu), who, facts });
        }
    }

    /// The entities of queue `q`.
    fn members(&self, q: u32) -> Vec<u32> {
        let rq = self.rq(q);
        let running = (Self::running(&self.ents, rq).is_some()).then_some(rq.curr);
        let mut listed: Vec<u32> = running.into_iter().collect();
        let mut e = rq.waiting.first();
        while e != NIL {
            listed.push(e);
            e = rq.waiting.next(&self.nodes, e);
        }
        listed
    }

    /// The average virtual runtime over the list of queue `q`, rounded down.
    fn listed_average(&self, q: u32) -> u64 {
        let base = self.rq(q).min_vruntime;
        let (mut weighted, mut load) = (0, 0);
        for e in self.members(q) {
            let se = self.ent(e);
            let key = se.vruntime.wrapping_sub(base) as i64;
            weighted += i128::from(key) * i128::from(se.load.averaged);
            load += se.load.averaged;
        }
        let offset = if load == 0 { 0 } else { div_floor(weighted, load) };
        base.wrapping_add(offset as u64)
    }

    /// [`FairClass::reweight_entity`], recorded. `to_idle`: of a task that becomes SCHED_IDLE.
    #[cold]
    pub(super) fn reweight_odd(
        &mut self,
        core: &mut Core,
        e: u32,
        load: LoadWeight,
        to_idle: bool,
    ) {
        let q = self.ent(e).cfs;
        let queued = self.ent(e).on_rq;
        let is_eevdf = self.rules.is_eevdf();
        if queued && is_eevdf {
            self.update_curr(core, q);
        }
        let (average, limit) = (self.listed_average(q), self.lag_limit_odd(core, q, e));
        let lag_of = |class: &Self| {
            let se = class.ent(e);
            if queued { average.wrapping_sub(se.vruntime) as i64 } else { se.vlag }
        };
        let (old, lag) = (self.ent(e).load.weight, lag_of(self));
        let my_q = self.ent(e).my_q;
        let empty = my_q != NIL && self.rq(my_q).load == 0;
        if to_idle && !queued && self.rules.has(FairBug::IdleNotRescaled) {
            self.ent_mut(e).load = load;
        } else {
            self.reweight_entity(core, e, load);
        }
        if !is_eevdf {
            return;
        }
        let mut facts = vec![
            Fact::flag("queued", queued),
            Fact::number("old", old),
            Fact::number("new", load.weight),
            Fact::vns("lag", lag),
            Fact::vns("lag_after", lag_of(self)),
            Fact::vns("limit", limit),
            Fact::flag("empty", empty),
        ];
        if queued {
            let floor = self.rq(q).min_vruntime;
            let ahead = |e: &u32| self.ent(*e).vruntime.wrapping_sub(floor) as i64;
            let least = self.members(q).iter().map(ahead).min().unwrap_or(0);
            facts.push(Fact::vns("ahead", least));
        }
        self.note(StepKind::Reweighted, q, Some(self.who(e)), facts);
    }

    fn lag_limit_odd(&self, core: &Core, q: u32, e: u32) -> i64 {
        if self.rules.is_eevdf() { self.lag_limit(core, q, e) } else { 0 }
    }

    /// Stores the lag of `e`, which leaves queue `q`.
    #[cold]
    pub(super) fn update_lag_odd(&mut self, core: &Core, q: u32, e: u32) {
        let lag = self.listed_average(q).wrapping_sub(self.ent(e).vruntime) as i64;
        let limit = self.lag_limit(core, q, e);
        if self.rules.has(FairBug::LagAfterDequeue) && self.rq(q).curr == e {
            self.ent_mut(e).on_rq = false;
        }
        self.update_entity_lag(core, q, e);
        // The lag of a delayed sleeper has rules of its own.
        if self.ent(e).delayed {
            return;
        }
        let facts = vec![
            Fact::vns("lag", lag),
            Fact::vns("limit", limit),
            Fact::vns("vlag", self.ent(e).vlag),
        ];
        self.note(StepKind::Left, q, Some(self.who(e)), facts);
    }

    /// After `e` has been placed under EEVDF, before it counts.
    #[cold]
    pub(super) fn place_odd(&mut self, q: u32, e: u32) {
        let rq = self.rq(q);
        let sums = Sums::of(rq, Self::running(&self.ents, rq));
        if self.rules.has(FairBug::RoundsTowardsZero) {
            let more = sums.average_towards_zero().wrapping_sub(sums.average());
            let se = self.ent_mut(e);
            se.vruntime = se.vruntime.wrapping_add(more);
            se.deadline = se.deadline.wrapping_add(more);
        }
        let keeps = self.rq(q).nr_queued > 0 && self.rules.features.place_lag;
        let se = self.ent(e);
        let lag = if keeps { se.vlag } else { 0 };
        let eligible = sums.is_eligible(se.vruntime);
        let facts = vec![Fact::vns("lag", lag), Fact::flag("eligible", eligible)];
        self.note(StepKind::Placed, q, Some(self.who(e)), facts);
    }

    /// Places `e` at a wake-up under CFS.
    #[cold]
    pub(super) fn place_cfs_odd(&mut self, now: Nanos, q: u32, e: u32) {
        let floor = self.rq(q).min_vruntime;
        let relative = |class: &Self| class.ent(e).vruntime.wrapping_sub(floor) as i64;
        let was = relative(self);
        let se = self.ent(e);
        let has_moved = se.exec_start == 0 && se.sum_exec_runtime > 0;
        if has_moved && self.rules.has(FairBug::MigrationForgives) {
            // Far behind all others: the place of a long sleeper.
            self.ent_mut(e).vruntime = floor.wrapping_sub(1 << 60);
        }
        self.place_entity_cfs(now, q, e, false);
        let facts = vec![Fact::vns("before", was), Fact::vns("after", relative(self))];
        self.note(StepKind::PlacedCfs, q, Some(self.who(e)), facts);
    }

    /// With a bug: the running entity of queue `q`, which is alone there, gives way if its CPU has
    /// other tasks.
    #[cold]
    pub(super) fn end_lone_slice(&mut self, core: &mut Core, q: u32, renewed: bool) {
        let rq = self.rq(q);
        let (cpu, curr, nr_queued) = (CpuId(rq.cpu), rq.curr, rq.nr_queued);
        let ends = Self::ends_slice(self.rules.protection, rq, self.ent(curr), renewed);
        if ends && core.rq(cpu).nr_running > 1 {
            self.note(StepKind::SliceEnded, q, None, vec![Fact::number("nr_queued", nr_queued)]);
            core.resched_curr_lazy(cpu);
            self.clear_buddies(curr);
        }
    }

    #[cold]
    pub(super) fn note_idle_preempted(&self, cpu: CpuId, e: u32) {
        self.note(StepKind::IdlePreempted, cpu.0, Some(self.who(e)), Vec::new());
    }

    #[cold]
    pub(super) fn note_unthrottled(&self, q: u32, remaining: i64) {
        let facts = vec![Fact::ns("remaining", remaining)];
        let group = Who::Group(CgroupId(self.rq(q).group));
        self.note(StepKind::Unthrottled, q, Some(group), facts);
    }

    #[cold]
    pub(super) fn note_refilled(&self, group: u32, before: Nanos, after: Nanos) {
        let facts = vec![Fact::ns("before", before), Fact::ns("after", after)];
        self.note(StepKind::Refilled, 0, Some(Who::Group(CgroupId(group))), facts);
    }

    /// The pick of 6.6-rc: goes to the left only where that has the earliest deadline of the whole
    /// subtree, and never comes back to a left subtree that it has passed.
    #[cold]
    pub(super) fn pick_missing_left(
        &self,
        root: u32,
        curr: u32,
        eligible: impl Fn(u64) -> bool,
    ) -> u32 {
        let node = |id: u32| &self.nodes[id as usize];
        let (mut best, mut at) = (curr, root);
        while at != NIL {
            let here = node(at);
            if !eligible(here.key) {
                at = here.left;
                continue;
            }
            if best == NIL || before(here.time, self.ent(best).deadline) {
                best = at;
                if here.time == here.min_time {
                    break;
                }
            }
            let goes_left = here.left != NIL && node(here.left).min_time == here.min_time;
            at = if goes_left { here.left } else { here.right };
        }
        best
    }

    /// The steps so far, and the present counts of the queues of `cpu`.
    pub(super) fn explain_steps(&self, cpu: CpuId, into: &mut Explanation) {
        let Some(audit) = &self.audit else { return };
        audit.drain(&mut into.steps);
        if let Some(balancer) = &self.balancer {
            balancer.drain_steps(&mut into.steps);
        }
        self.explain_loads(cpu, &mut into.steps);
        let mut add = |facts| {
            into.steps.push(Step { kind: StepKind::Queue, cpu, who: None, facts });
        };
        let groups = self.ents.iter().take(self.first_task as usize);
        let busy = groups.filter(|se| {
            self.rq(se.cfs).cpu == cpu.0 && se.delayed && self.rq(se.my_q).nr_queued > 0
        });
        add(vec![Fact::number("delayed_busy", busy.count())]);
        if self.bandwidth.is_none() {
            let tasks = self.ents.iter().skip(self.first_task as usize);
            let found = tasks.filter(|se| self.rq(se.cfs).cpu == cpu.0 && se.on_rq && !se.delayed);
            let stated = self.rq(cpu.0).h_nr_runnable as i32;
            add(vec![Fact::number("h_nr_runnable", stated), Fact::number("found", found.count())]);
        }
        if !self.rules.custom_slice || self.rules.algorithm == Algorithm::Cfs {
            return;
        }
        for q in (cpu.0..self.cfs.len() as u32).step_by(self.nr_cpus as usize) {
            let slices = self.members(q).into_iter().map(|e| self.ent(e).slice);
            let Some(found) = slices.min() else { continue };
            // A rotation of the kernel's tree may leave the least slice of another subtree.
            if self.rq(q).waiting.has_exact_slices() {
                add(vec![Fact::ns("min_slice", self.min_slice(q)), Fact::ns("found", found)]);
            }
        }
    }

    /// Loads of the queues of `cpu`, weights of its groups, and load averages of its tasks.
    fn explain_loads(&self, cpu: CpuId, steps: &mut Vec<Step>) {
        let mut add = |kind, who, facts| steps.push(Step { kind, cpu, who, facts });
        for q in (cpu.0..self.cfs.len() as u32).step_by(self.nr_cpus as usize) {
            let sum: u64 = self.members(q).into_iter().map(|e| self.ent(e).load.weight).sum();
            let load = self.rq(q).load;
            let facts = vec![Fact::number("load", load), Fact::number("sum", sum)];
            add(StepKind::Load, Some(Who::Group(CgroupId(self.rq(q).group))), facts);
        }
        // Throttled groups keep the weight that they had.
        let groups = self.ents.iter().take(self.first_task as usize);
        let is_here = |se: &&Entity| self.rq(se.cfs).cpu == cpu.0 && self.rq(se.my_q).load > 0;
        for se in groups.filter(is_here).filter(|_| self.bandwidth.is_none()) {
            let group = self.rq(se.my_q).group;
            let facts = vec![
                Fact::number("weight", se.load.weight),
                Fact::number("least", MIN_SHARES),
                Fact::number("most", self.groups[group as usize].shares),
            ];
            add(StepKind::GroupWeight, Some(Who::Group(CgroupId(group))), facts);
        }
        let tasks = self.ents.iter().skip(self.first_task as usize);
        let here = tasks.filter(|se| self.rq(se.cfs).cpu == cpu.0 && se.avg.is_attached());
        let (mut util_most, mut short_most) = (0, 0);
        for avg in here.map(|se| se.avg.get()) {
            util_most = util_most.max(avg.util_avg);
            short_most = short_most.max(avg.util_avg.saturating_sub(avg.runnable_avg));
        }
        let facts = vec![Fact::number("util", util_most), Fact::number("short", short_most)];
        add(StepKind::Averages, None, facts);
    }
}
