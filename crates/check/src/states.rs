// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the state: what the classes of a model state of their picks, checked from scratch.
//!
//! The average virtual runtime, the eligible entities and the earliest deadline are computed from
//! the list of the candidates, without the trees and sums that the model keeps.

use crate::rules::{Breach, Context, rule};
use crate::steps::{Checked, StepJudge};
use crate::subject::Family;
use schedlab_engine::{Decision, Observer};
use schedlab_model::{CpuId, KernelVersion, Nanos};
use schedlab_sched::Core;
use schedlab_sched::boundary::explain::{Contest, Explanation, Fact, Rule, Value, Who, number_in};
use std::collections::BTreeMap;

/// All candidates are needed.
const CANDIDATES_MAX: usize = 1 << 20;

/// Range of slices (`__setparam_fair`).
const SLICE_NS: std::ops::RangeInclusive<i64> = 100_000..=100_000_000;

/// Judges the picks of a run.
pub struct StateJudge<'c> {
    steps: StepJudge<'c>,
    has_eevdf: bool,
    has_slices: bool,
    has_min_vruntime: bool,
    counts_tasks: bool,
    /// The real-time limit holds nobody back before this time; `None`: nobody is real-time.
    rt_free_ns: Option<Nanos>,
    min_vruntime: BTreeMap<(CpuId, u32), i64>,
    /// Rules that the caller skips.
    skipped: Vec<&'static str>,
    breach: Option<Breach>,
}

/// An entity of a queue, as stated.
struct Stated {
    vruntime: i64,
    deadline: i64,
    weight: i64,
    lag: i64,
}

impl<'c> StateJudge<'c> {
    pub(crate) fn new(context: &Context<'c>) -> Self {
        let version = match context.family {
            Family::Kernel(version) => Some(version),
            _ => None,
        };
        let from = |minor| version.is_some_and(|v| v >= KernelVersion::release(6, minor, 0));
        let workload = context.workload();
        let has_deadline =
            workload.tasks.iter().any(|task| task.attr.policy == schedlab_model::Policy::Deadline);
        let mut groups = (0..workload.cgroups.len() as u32).map(schedlab_model::CgroupId);
        let has_rt = context.attrs().any(|attr| attr.policy.is_rt());
        let is_limited = groups.any(|group| workload.is_ever_limited(group));
        Self {
            steps: StepJudge::new(context),
            has_eevdf: from(6) || context.family == Family::Native,
            has_slices: from(12),
            has_min_vruntime: version.is_some_and(|v| v <= KernelVersion::series(6, 18)),
            // Throttled tasks do not count.
            counts_tasks: !has_deadline && !is_limited,
            rt_free_ns: has_rt.then(|| context.rt_free_ns()),
            min_vruntime: BTreeMap::new(),
            skipped: context.subject.skipped.clone(),
            breach: None,
        }
    }

    /// The first breach.
    pub fn finish(self) -> Option<Breach> {
        self.breach
    }

    fn check(&mut self, core: &Core, decision: &Decision) -> Checked {
        let is_free = self.rt_free_ns.is_none_or(|free_ns| core.now <= free_ns);
        if self.counts_tasks && is_free {
            check_nr_running(core)?;
        }
        if let Some(explanation) = &decision.explanation {
            self.steps.check(core.now, decision.cpu, explanation)?;
        }
        let contests = decision.explanation.iter().flat_map(|stated| &stated.contests);
        for contest in contests {
            match contest.class {
                "fair" => self.check_contest(decision.cpu, contest)?,
                "rt" => check_throttled(decision.cpu, contest)?,
                "deadline" => check_earliest(contest)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn check_contest(&mut self, cpu: CpuId, contest: &Contest) -> Checked {
        if let Some(nr_queued) = number_in(&contest.facts, "nr_queued") {
            let found = contest.candidates.len() as i64 + contest.nr_omitted as i64;
            if nr_queued != found {
                let text = format!("nr_queued is {nr_queued}, the queue has {found} entities");
                return Err(("counts", text));
            }
        }
        let min_vruntime = number_in(&contest.facts, "min_vruntime");
        if let Some(now) = min_vruntime.filter(|_| self.has_min_vruntime) {
            let group = contest.group.map_or(0, |group| group.0);
            let before = self.min_vruntime.insert((cpu, group), now);
            if before.is_some_and(|before| now.wrapping_sub(before) < 0) {
                let text = format!(
                    "min_vruntime of group {group} fell from {} to {now}",
                    before.unwrap_or_default()
                );
                return Err(("min-vruntime", text));
            }
        }
        if self.has_slices {
            check_slices(contest)?;
        }
        if self.has_eevdf && contest.nr_omitted == 0 { check_eevdf(contest) } else { Ok(()) }
    }
}

/// A period ends for throttled real-time tasks.
fn check_throttled(cpu: CpuId, contest: &Contest) -> Checked {
    let is_stopped = |fact: &Fact| fact.name == "period_timer" && fact.value == Value::Flag(false);
    if !contest.facts.iter().any(is_stopped) {
        return Ok(());
    }
    let text = format!("real-time tasks of CPU {cpu} are throttled, and no timer ends the period");
    Err(("rt-timer", text))
}

/// The task with the earliest deadline is picked, against a list. A boosted one has the deadline of
/// another.
fn check_earliest(contest: &Contest) -> Checked {
    let is_boosted = |fact: &Fact| fact.name == "boosted";
    let mut facts = contest.candidates.iter().flat_map(|candidate| &candidate.facts);
    let Some(chosen) = contest.chosen().filter(|_| !facts.any(is_boosted)) else { return Ok(()) };
    let considered = contest.candidates.iter().filter(|candidate| candidate.considered);
    let earliest = considered.filter_map(|candidate| candidate.number("deadline")).min();
    let (Some(found), Some(due)) = (chosen.number("deadline"), earliest) else { return Ok(()) };
    if found <= due {
        return Ok(());
    }
    let text = format!("{} is picked, whose deadline is {found} ns", name(&chosen.who));
    Err(("deadline-first", format!("{text}; a task with budget has {due} ns")))
}

/// As many tasks count as are on queues.
fn check_nr_running(core: &Core) -> Checked {
    let counted: u32 = core.rqs.iter().map(|rq| rq.nr_running).sum();
    let found = core.tasks.iter().filter(|task| task.on_rq).count() as u32;
    if counted == found {
        return Ok(());
    }
    Err(("counts", format!("nr_running of all CPUs is {counted}, {found} tasks are on queues")))
}

fn check_slices(contest: &Contest) -> Checked {
    for candidate in &contest.candidates {
        let Some(slice) = candidate.number("slice") else { continue };
        if !SLICE_NS.contains(&slice) {
            return Err((
                "slice-range",
                format!("{} has a slice of {slice} ns", name(&candidate.who)),
            ));
        }
    }
    Ok(())
}

fn name(who: &Who) -> String {
    match who {
        Who::Task(task) => format!("task number {task}"),
        Who::Group(group) => format!("group number {group}"),
    }
}

/// The pick of one queue against a list.
fn check_eevdf(contest: &Contest) -> Checked {
    let stated: Option<Vec<Stated>> = contest
        .candidates
        .iter()
        .map(|candidate| {
            Some(Stated {
                vruntime: candidate.number("vruntime")?,
                deadline: candidate.number("deadline")?,
                weight: candidate.number("weight")?,
                lag: candidate.number("lag")?,
            })
        })
        .collect();
    let Some(stated) = stated.filter(|stated| !stated.is_empty()) else { return Ok(()) };
    let weight: i128 = stated.iter().map(|one| i128::from(one.weight)).sum();
    let product = |one: &Stated| i128::from(one.weight) * i128::from(one.vruntime);
    let weighted: i128 = stated.iter().map(product).sum();
    let average = weighted.div_euclid(weight.max(1));
    let told = number_in(&contest.facts, "avg_vruntime").map(i128::from);
    if told.is_some_and(|told| told != average) {
        let text = format!("avg_vruntime is {}, the entities' is {average}", told.unwrap_or(0));
        return Err(("average", text));
    }
    let is_eligible = |one: &Stated| weighted >= i128::from(one.vruntime) * weight;
    for (candidate, one) in contest.candidates.iter().zip(&stated) {
        let who = name(&candidate.who);
        if i128::from(one.lag) != average - i128::from(one.vruntime) {
            let text = format!("the lag of {who} is {}, but it is at {}", one.lag, one.vruntime);
            return Err(("average", format!("{text} and the average is {average}")));
        }
        if candidate.considered != is_eligible(one) {
            let text = format!("{who} counts as eligible: {}", candidate.considered);
            return Err(("eevdf-pick", format!("{text}; its lag is {}", one.lag)));
        }
    }
    check_choice(contest, &stated, &is_eligible)
}

fn check_choice(
    contest: &Contest,
    stated: &[Stated],
    is_eligible: &dyn Fn(&Stated) -> bool,
) -> Checked {
    let chosen = contest.candidates.iter().position(|candidate| candidate.chosen);
    let Some(chosen) = chosen else { return Ok(()) };
    let (who, picked) = (&contest.candidates[chosen], &stated[chosen]);
    if matches!(contest.rule, Rule::Alone) && stated.len() == 1 {
        return Ok(());
    }
    if !is_eligible(picked) {
        let text = format!("{} is picked, whose lag is {}", name(&who.who), picked.lag);
        return Err(("eevdf-pick", format!("{text}: it is not eligible")));
    }
    let is_protected =
        who.facts.iter().any(|fact| fact.name == "protected" && fact.value == Value::Flag(true));
    match contest.rule {
        Rule::Keeps(_) if who.running && is_protected => return Ok(()),
        Rule::Named(_) => return Ok(()),
        _ => {}
    }
    let eligible = stated.iter().filter(|one| is_eligible(one));
    let earliest = eligible.map(|one| one.deadline).min().unwrap_or(picked.deadline);
    if picked.deadline == earliest {
        return Ok(());
    }
    let text = format!(
        "{} is picked, whose deadline is {}; an eligible entity has {earliest}",
        name(&who.who),
        picked.deadline
    );
    Err(("eevdf-pick", text))
}

impl Observer for StateJudge<'_> {
    fn wants(&mut self, _now: Nanos, _cpu: CpuId) -> Option<Explanation> {
        self.breach.is_none().then(|| Explanation::new(CANDIDATES_MAX, None))
    }

    fn decided(&mut self, core: &Core, decision: Decision) {
        if self.breach.is_some() {
            return;
        }
        if let Err((name, text)) = self.check(core, &decision)
            && let Some(rule) = rule(name)
            && !self.skipped.contains(&name)
        {
            let task = decision.next.map(|task| core.task(task).name.as_str().to_owned());
            let (time_ns, cpu) = (decision.time_ns, Some(decision.cpu));
            self.breach = Some(Breach { rule, kind: "", time_ns, cpu, task, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::TaskId;
    use schedlab_sched::boundary::explain::Candidate;

    /// A pick of the first of two tasks with these deadlines.
    fn pick(deadlines: [u64; 2], facts: &[Fact]) -> Contest {
        let mut contest = Contest::nobody("deadline", Rule::Empty);
        for (number, deadline) in deadlines.into_iter().enumerate() {
            let mut all = vec![Fact::ns("deadline", deadline)];
            all.extend_from_slice(facts);
            contest.candidates.push(Candidate {
                who: Who::Task(TaskId(number as u32)),
                running: false,
                considered: true,
                chosen: number == 0,
                facts: all,
            });
        }
        contest
    }

    #[test]
    fn the_earliest_deadline_is_first() {
        for sound in [[5, 7], [7, 7]] {
            assert_eq!(check_earliest(&pick(sound, &[])), Ok(()), "{sound:?}");
        }
        let (rule, text) = check_earliest(&pick([7, 5], &[])).unwrap_err();
        assert_eq!(rule, "deadline-first");
        assert!(text.contains("7 ns") && text.contains("5 ns"), "{text}");
        // One out of budget does not count, and a boosted task has the deadline of another.
        let mut out_of_budget = pick([7, 5], &[]);
        out_of_budget.candidates[1].considered = false;
        assert_eq!(check_earliest(&out_of_budget), Ok(()));
        assert_eq!(check_earliest(&pick([7, 5], &[Fact::flag("boosted", true)])), Ok(()));
    }
}
