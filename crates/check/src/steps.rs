// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of what the classes of a model do between picks: changes of weights, placements, lags of
//! those that leave, refills, balancing, the fair server.

use crate::rules::{Context, limited};
use crate::subject::Family;
use schedlab_model::{CgroupId, CpuId, KernelVersion, Nanos, Op, Workload};
use schedlab_sched::boundary::explain::{Contest, Explanation, Rule, Step, StepKind, Who};
use std::collections::BTreeMap;

/// Name of the broken rule, and what was found.
pub type Checked = Result<(), (&'static str, String)>;

/// Rounding of scaled lags, in virtual ns.
const ROUNDING: i128 = 2;

/// What the fair server of a CPU had at the last pick there.
#[derive(Clone, Copy, Debug)]
struct Served {
    runtime: i64,
    deadline: i64,
    charged_at: i64,
    early_stops: i64,
    session: i64,
}

/// Judges the steps of a run.
pub struct StepJudge<'c> {
    workload: &'c Workload,
    version: Option<KernelVersion>,
    has_changes: bool,
    /// Groups whose limit changes.
    changing: Vec<CgroupId>,
    /// Rules that a known limit keeps from being judged.
    limited: Vec<&'static str>,
    /// SCHED_IDLE entities that a waking task has told to leave, by CPU.
    preempted: BTreeMap<CpuId, Who>,
    served: BTreeMap<CpuId, Served>,
}

impl<'c> StepJudge<'c> {
    pub fn new(context: &Context<'c>) -> Self {
        let version = match context.family {
            Family::Kernel(version) => Some(version),
            _ => None,
        };
        let workload = context.workload();
        let has_changes = (0..workload.tasks.len())
            .any(|spec| context.has_op(spec, |op| matches!(op, Op::SetAttr(_))));
        let groups = (0..workload.cgroups.len() as u32).map(CgroupId);
        Self {
            workload,
            version,
            has_changes,
            changing: groups.filter(|group| context.changes_limit(*group)).collect(),
            limited: limited(context),
            preempted: BTreeMap::new(),
            served: BTreeMap::new(),
        }
    }

    /// Judges the steps up to a pick on `cpu`, and the pick by them.
    pub fn check(&mut self, now: Nanos, cpu: CpuId, explanation: &Explanation) -> Checked {
        let Some(version) = self.version else { return Ok(()) };
        for step in &explanation.steps {
            match self.check_step(version, now, step) {
                Err((rule, _)) if self.limited.contains(&rule) => {}
                checked => checked?,
            }
        }
        let preempted = self.preempted.remove(&cpu);
        let fair = explanation.contests.iter().filter(|contest| contest.class == "fair");
        for contest in fair {
            self.check_protection(contest, preempted)?;
        }
        Ok(())
    }

    fn check_step(&mut self, version: KernelVersion, now: Nanos, step: &Step) -> Checked {
        match step.kind {
            StepKind::Reweighted => check_reweight(version, step),
            StepKind::Left => check_left(step),
            StepKind::Placed => check_placed(step),
            StepKind::PlacedCfs => check_placed_cfs(step),
            StepKind::SliceEnded => check_lone(version, step),
            StepKind::IdlePreempted => {
                step.who.map(|who| self.preempted.insert(step.cpu, who));
                Ok(())
            }
            StepKind::Unthrottled => check_unthrottled(step),
            StepKind::Refilled => self.check_refill(step),
            StepKind::Queue => check_queue(step),
            StepKind::Load => check_load(step),
            StepKind::GroupWeight => check_group_weight(step),
            StepKind::Averages => check_averages(step),
            StepKind::Server => self.check_server(now, step),
            StepKind::SyncWakeup => check_sync(version, step),
            StepKind::Balances => check_balances(step),
            StepKind::Examined => check_examined(step),
        }
    }

    /// P22: who was told to leave is not kept by its protection.
    fn check_protection(&self, contest: &Contest, preempted: Option<Who>) -> Checked {
        let chosen = contest.chosen().map(|candidate| candidate.who);
        let is_kept = matches!(contest.rule, Rule::Keeps(_)) && chosen.is_some();
        let mends = self.version.is_some_and(|v| v > KernelVersion::release(6, 12, 0));
        if !is_kept || chosen != preempted || self.has_changes || !mends {
            return Ok(());
        }
        let text = "a SCHED_IDLE task goes on because it is protected, although a task of another \
                    policy has woken";
        Err(("idle-protection", text.into()))
    }

    fn check_refill(&self, step: &Step) -> Checked {
        let Some(Who::Group(group)) = step.who else { return Ok(()) };
        if self.changing.contains(&group) {
            return Ok(());
        }
        let Some(max) = self.workload.cgroups[group.index()].cpu_max else { return Ok(()) };
        let (before, after) = pair(step, "before", "after");
        let due = (before + max.quota_ns as i64).min((max.quota_ns + max.burst_ns) as i64);
        if after == due {
            return Ok(());
        }
        let text = format!("the pool of a group had {before} ns and has {after} ns; due are {due}");
        Err(("refill", text))
    }

    fn check_server(&mut self, now: Nanos, step: &Step) -> Checked {
        let number = |name| step.number(name).unwrap_or(0);
        let runtime = number("runtime");
        if step.flag("active") && !step.flag("queued") && !step.flag("timer") {
            let text = "the fair server is active, but it is not queued and has no timer";
            return Err(("server-waits", text.into()));
        }
        let is = Served {
            runtime,
            deadline: number("deadline"),
            charged_at: number("charged_at"),
            session: number("session"),
            early_stops: number("early_stops"),
        };
        let before = self.served.insert(step.cpu, is);
        let stays = self.version.is_some_and(|version| version >= KernelVersion::series(6, 17));
        if stays && before.is_some_and(|was| was.early_stops < is.early_stops) {
            let text = "the fair server has stopped before it was picked";
            return Err(("server-stays", text.into()));
        }
        let is_same = |was: &Served| (was.deadline, was.session) == (is.deadline, is.session);
        let Some(was) = before.filter(is_same) else { return Ok(()) };
        let (used, passed) = (was.runtime - is.runtime, is.charged_at - was.charged_at);
        if used <= passed.max(0) {
            return Ok(());
        }
        let text = format!("the fair server used {used} ns of its runtime in {passed} ns");
        debug_assert!(now as i64 >= is.charged_at);
        Err(("server-budget", text))
    }
}

fn pair(step: &Step, one: &str, other: &str) -> (i64, i64) {
    (step.number(one).unwrap_or(0), step.number(other).unwrap_or(0))
}

fn check_reweight(version: KernelVersion, step: &Step) -> Checked {
    if step.flag("empty") && step.flag("queued") && version > KernelVersion::release(6, 12, 0) {
        let (old, new) = pair(step, "old", "new");
        let text = format!("the weight of a group without tasks went from {old} to {new}");
        return Err(("empty-group", text));
    }
    let ahead = step.number("ahead").unwrap_or(0);
    if ahead > 0 && version <= KernelVersion::series(6, 18) {
        let text = format!("after a change of weight all entities are at least {ahead} vns ahead");
        return Err(("least-vruntime", text));
    }
    let (lag, after) = pair(step, "lag", "lag_after");
    let (old, new) = pair(step, "old", "new");
    let limit = step.number("limit").unwrap_or(0);
    let kept = if step.flag("queued") { lag.clamp(-limit, limit) } else { lag };
    let due = i128::from(kept) * i128::from(old) / i128::from(new.max(1));
    if (i128::from(after) - due).abs() <= ROUNDING {
        return Ok(());
    }
    let text = format!(
        "the weight of an entity went from {old} to {new} and its lag from {kept} to {after} vns; \
         due are {due}"
    );
    Err(("reweight", text))
}

fn check_left(step: &Step) -> Checked {
    let (lag, kept) = pair(step, "lag", "vlag");
    let limit = step.number("limit").unwrap_or(0);
    let due = lag.clamp(-limit, limit);
    if kept == due {
        return Ok(());
    }
    Err(("lag", format!("an entity leaves its queue with a lag of {kept} vns; due are {due}")))
}

fn check_placed(step: &Step) -> Checked {
    let lag = step.number("lag").unwrap_or(0);
    if lag < 0 || step.flag("eligible") {
        return Ok(());
    }
    Err(("placed", format!("an entity with a lag of {lag} vns is placed where it is not eligible")))
}

fn check_placed_cfs(step: &Step) -> Checked {
    let (before, after) = pair(step, "before", "after");
    if after >= before {
        return Ok(());
    }
    let text = format!("a wake-up moved a virtual runtime back from {before} to {after} vns");
    Err(("placed", text))
}

fn check_lone(version: KernelVersion, step: &Step) -> Checked {
    let is_lone = step.number("nr_queued") == Some(1);
    if !is_lone || version < KernelVersion::release(6, 12, 0) {
        return Ok(());
    }
    Err(("lone", "the slice of an entity that is alone in its queue caused another pick".into()))
}

fn check_unthrottled(step: &Step) -> Checked {
    let remaining = step.number("remaining").unwrap_or(0);
    if remaining > 0 {
        return Ok(());
    }
    Err(("unthrottle", format!("a queue is released with {remaining} ns to use")))
}

fn check_queue(step: &Step) -> Checked {
    if let Some(count) = step.number("delayed_busy").filter(|count| *count > 0) {
        let text = format!("{count} groups with tasks count as about to leave their queue");
        return Err(("delayed", text));
    }
    let found = step.number("found").unwrap_or(0);
    if let Some(stated) = step.number("h_nr_runnable").filter(|stated| *stated != found) {
        let text = format!("h_nr_runnable of the CPU is {stated}, {found} tasks are runnable");
        return Err(("counts", text));
    }
    if let Some(stated) = step.number("min_slice").filter(|stated| *stated != found) {
        let text = format!("the least slice of a queue counts as {stated} ns and is {found} ns");
        return Err(("least-slice", text));
    }
    Ok(())
}

fn check_load(step: &Step) -> Checked {
    let (load, sum) = pair(step, "load", "sum");
    if load == sum {
        return Ok(());
    }
    let text =
        format!("the load of a queue is {load}, the weights of its entities add up to {sum}");
    Err(("queue-load", text))
}

fn check_group_weight(step: &Step) -> Checked {
    let weight = step.number("weight").unwrap_or(0);
    let (least, most) = pair(step, "least", "most");
    if (least..=most).contains(&weight) {
        return Ok(());
    }
    let text = format!("the weight of a group is {weight}; allowed are {least} to {most}");
    Err(("group-weight", text))
}

/// Utilisation of a task that always runs.
const UTIL_MAX: i64 = 1_024;

fn check_averages(step: &Step) -> Checked {
    let (util, short) = pair(step, "util", "short");
    if util > UTIL_MAX {
        let text = format!("the utilisation of a task is {util}; allowed are {UTIL_MAX}");
        return Err(("load-average", text));
    }
    if short > 0 {
        let text = format!("a task has {short} more of time running than of time runnable");
        return Err(("load-average", text));
    }
    Ok(())
}

fn check_sync(version: KernelVersion, step: &Step) -> Checked {
    let (running, delayed) = pair(step, "nr_running", "nr_delayed");
    let is_alone = step.flag("sync") && running - delayed == 1;
    if !is_alone || step.flag("chosen") || version < KernelVersion::release(6, 12, 0) {
        return Ok(());
    }
    let text = format!(
        "a sync wake-up leaves the CPU of its waker, which is alone there: {running} tasks count, \
         {delayed} of them asleep"
    );
    Err(("sync-wakeup", text))
}

fn check_balances(step: &Step) -> Checked {
    let passing = step.number("passing").unwrap_or(0);
    if passing <= 1 {
        return Ok(());
    }
    Err(("one-balancer", format!("{passing} CPUs of a group balance it at the same time")))
}

fn check_examined(step: &Step) -> Checked {
    let (examined, limit) = pair(step, "examined", "limit");
    if examined <= limit {
        return Ok(());
    }
    let text = format!("an attempt to balance looked at {examined} tasks; allowed are {limit}");
    Err(("bounded-work", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::boundary::explain::Fact;

    fn broken(check: fn(&Step) -> Checked, facts: &[(&'static str, i64)]) -> Option<&'static str> {
        let facts = facts.iter().map(|(name, value)| Fact::number(name, *value)).collect();
        let step = Step { kind: StepKind::Load, cpu: CpuId(0), who: None, facts };
        check(&step).err().map(|(rule, _)| rule)
    }

    #[test]
    fn a_load_is_the_sum_of_the_weights() {
        assert_eq!(broken(check_load, &[("load", 2_048), ("sum", 2_048)]), None);
        assert_eq!(broken(check_load, &[("load", 2_048), ("sum", 1_024)]), Some("queue-load"));
    }

    #[test]
    fn the_weight_of_a_group_is_within_its_shares() {
        let of = |weight| [("weight", weight), ("least", 2), ("most", 1_024)];
        for weight in [2, 500, 1_024] {
            assert_eq!(broken(check_group_weight, &of(weight)), None, "{weight}");
        }
        for weight in [0, 1, 1_025] {
            assert_eq!(broken(check_group_weight, &of(weight)), Some("group-weight"), "{weight}");
        }
    }

    #[test]
    fn a_task_runs_for_no_more_than_it_is_runnable() {
        assert_eq!(broken(check_averages, &[("util", 1_024), ("short", 0)]), None);
        for facts in [[("util", 1_025), ("short", 0)], [("util", 5), ("short", 1)]] {
            assert_eq!(broken(check_averages, &facts), Some("load-average"), "{facts:?}");
        }
    }
}
