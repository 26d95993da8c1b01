// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the answer of each check and the verdict of each claim from numbers.
//!
//! The whole interval answers a check. Within the bounds the check holds; outside it fails. If a
//! bound is inside the interval, the check is inconclusive: more repetitions are needed. If other
//! programs used the CPUs during the runs, the number never fails a check: outside the bounds it is
//! inconclusive. A claim holds if all its checks hold, and partly holds if some do. It fails if no
//! check holds and some fail, and is inconclusive if all checks are. A fact counts as a check.
//! Checks of wrong models and knobs do not count. They only make comparisons inconclusive that are
//! not sensitive (`compare`).

use super::bounds::Lies;
use super::compare::{PairKind, PairResult, judge_pairs};
use super::evaluate::{Found, Scope};
use super::{Bounds, Check, Claim, Fact, Reason, Row};
use crate::{ExperimentResult, Failure, Plan, PlannedRun};
use schedlab_run::{LaneKind, RunResult};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// The verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check holds.
    Holds,
    /// Some checks hold; the others fail, or are inconclusive.
    PartlyHolds,
    /// Some checks fail, and none holds.
    Fails,
    /// Every check is inconclusive.
    Inconclusive,
}

impl Verdict {
    /// All verdicts, best first.
    pub const ALL: [Self; 4] = [Self::Holds, Self::PartlyHolds, Self::Fails, Self::Inconclusive];

    /// Its text in output.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "HOLDS",
            Self::PartlyHolds => "PARTLY HOLDS",
            Self::Fails => "FAILS",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// The answer of a check at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The number is within the bounds.
    Holds,
    /// The number is outside the bounds.
    Fails,
    /// The number is unknown, or too uncertain.
    Inconclusive,
}

impl Answer {
    /// Its text in output.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// A check at one place.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CheckResult {
    /// Description of the number.
    pub what: String,
    /// `sim`, `host` or `vm`.
    pub lane: LaneKind,
    /// Scheduler; `None` if the value names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The expression.
    pub value: String,
    /// The study's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// The bounds.
    pub holds: String,
    /// Reason for these bounds.
    pub why: String,
    /// Our number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<f64>,
    /// Its 95 % confidence interval. Without one, the number is exact or has too few runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Whether the runs repeat to the last bit.
    pub is_exact: bool,
    /// Whether the number is a time in nanoseconds.
    #[serde(default)]
    pub is_time: bool,
    /// Number of runs behind it.
    pub nr_runs: usize,
    /// The answer.
    pub answer: Answer,
    /// Why it is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub reason: Option<Reason>,
    /// The rest of the result, if the check compares pairs of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairResult>,
}

impl CheckResult {
    /// Whether it decides the claim's verdict.
    pub fn decides(&self) -> bool {
        self.pair.as_ref().is_none_or(|pair| pair.kind == PairKind::Agrees)
    }
}

/// A claim with its checks.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ClaimResult {
    /// The study.
    pub study: String,
    /// Short name.
    pub id: String,
    /// The study's statement.
    pub text: String,
    /// The study's numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub numbers: String,
    /// Other known facts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why checks are inconclusive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Facts, read instead of measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// The checks, each at each place.
    pub checks: Vec<CheckResult>,
}

/// The basis of a judgement, in addition to the claims.
#[derive(Clone, Copy)]
pub struct Evidence<'e> {
    /// Name of the study.
    pub study: &'e str,
    /// Results of its experiments, and of others.
    pub results: &'e [ExperimentResult],
    /// The value of `all`.
    pub nr_cpus: u32,
    /// The requested lanes; the judgement ignores others. Empty: all.
    pub lanes: &'e [LaneKind],
    /// The plan, with what this machine cannot do.
    pub plan: &'e Plan,
    /// Runs of the plan without a result.
    pub failures: &'e [Failure],
}

impl Evidence<'_> {
    /// Why a lane has no runs of the experiments that `about` selects, if known.
    pub(super) fn why_missing(
        &self,
        lane: LaneKind,
        about: &dyn Fn(&str) -> bool,
    ) -> Option<Reason> {
        let experiments = &self.plan.experiments;
        let is_about =
            |run: &PlannedRun| run.lane == lane && about(&experiments[run.experiment].name);
        let failed = self.failures.iter().find(|failure| is_about(&self.plan.runs[failure.run]));
        if let Some(failure) = failed {
            return Some(Reason::RunFailed(failure.error.text().into()));
        }
        if !experiments.iter().any(|experiment| about(&experiment.name)) {
            return Some(Reason::NotInQuick);
        }
        let mut notes = self.plan.notes.iter();
        let note = notes.find(|note| note.excuses(lane, about));
        note.cloned().map(Reason::NotHere)
    }
}

/// Judges the claims of a study.
pub fn judge(claims: &[Claim], evidence: Evidence<'_>) -> Vec<ClaimResult> {
    claims.iter().map(|claim| judge_one(claim, evidence)).collect()
}

fn judge_one(claim: &Claim, evidence: Evidence<'_>) -> ClaimResult {
    let mut checks = Vec::new();
    let mut left_out: BTreeSet<&str> = BTreeSet::new();
    for check in &claim.checks {
        let runs: Vec<&RunResult> = evidence
            .results
            .iter()
            .filter(|result| result.experiment.study == evidence.study)
            .filter(|result| check.is_about(&result.experiment.name))
            .flat_map(|result| &result.runs)
            .collect();
        // Reading the study has already parsed its rows, so no error is left.
        for row in check.rows().unwrap_or_default() {
            let lane = row.place.lane;
            if !evidence.lanes.is_empty() && !evidence.lanes.contains(&lane) {
                left_out.insert(lane.name());
                continue;
            }
            checks.push(look(check, row, &runs, evidence));
        }
    }
    for check in judge_pairs(claim, evidence) {
        match evidence.lanes.is_empty() || evidence.lanes.contains(&check.lane) {
            true => checks.push(check),
            false => drop(left_out.insert(check.lane.name())),
        }
    }
    let verdict = verdict(&claim.facts, &checks);
    let mut reasons = vec![claim.not_measured.clone().unwrap_or_else(|| reason(&checks))];
    reasons.extend(left_out.iter().map(|lane| format!("lane {lane} was not asked for")));
    if claim.pairs.is_some() && checks.is_empty() {
        reasons.push("no pair of runs was to be compared here".into());
    }
    reasons.retain(|reason| !reason.is_empty());
    ClaimResult {
        study: evidence.study.into(),
        id: claim.id.clone(),
        text: claim.text.trim().into(),
        numbers: claim.numbers.trim().into(),
        remark: claim.remark.trim().into(),
        verdict,
        facts: claim.facts.clone(),
        reason: reasons.join("; ").trim().into(),
        checks,
    }
}

/// Judges a check at one place.
fn look(check: &Check, row: Row, runs: &[&RunResult], evidence: Evidence<'_>) -> CheckResult {
    let here: Vec<&RunResult> = runs.iter().copied().filter(|run| row.place.has(run)).collect();
    let scope = Scope { runs: here, nr_cpus: evidence.nr_cpus };
    let number = scope.evaluate(&row.expr);
    let (answer, reason) = match &number {
        Ok(found) => answer(found, row.bounds),
        Err(error) => {
            let missing = scope
                .runs
                .is_empty()
                .then(|| evidence.why_missing(row.place.lane, &|name| check.is_about(name)));
            let reason = missing.flatten().unwrap_or_else(|| Reason::NoValue(error.clone()));
            (Answer::Inconclusive, Some(reason))
        }
    };
    let found = number.as_ref().ok();
    CheckResult {
        what: row.what,
        lane: row.place.lane,
        scheduler: row.place.scheduler,
        value: row.value,
        published: row.published,
        holds: row.holds,
        why: check.why.trim().into(),
        found: found.map(|found| found.value),
        ci95: found.and_then(|found| found.ci95),
        is_exact: found.is_some_and(|found| found.is_exact),
        is_time: row.expr.is_time(),
        nr_runs: found.map_or(0, |found| found.nr_runs),
        answer,
        reason,
        pair: None,
    }
}

/// The answer of a number to its bounds, with the reason if it is inconclusive.
fn answer(found: &Found, bounds: Bounds) -> (Answer, Option<Reason>) {
    let reason = match (found.lies(bounds), &found.disturbed) {
        (None, _) => Reason::OneRepetition,
        (Some(Lies::Within), _) => return (Answer::Holds, None),
        (Some(Lies::Outside), None) => return (Answer::Fails, None),
        (Some(Lies::Across), None) => Reason::BoundAcross,
        (Some(_), Some(by)) => Reason::Disturbed { by: by.clone(), nr_runs: found.nr_runs },
    };
    (Answer::Inconclusive, Some(reason))
}

fn verdict(facts: &[Fact], checks: &[CheckResult]) -> Verdict {
    let deciding = checks.iter().filter(|check| check.decides()).map(|check| check.answer);
    let answers: Vec<Answer> = facts.iter().map(Fact::answer).chain(deciding).collect();
    let count = |wanted| answers.iter().filter(|answer| **answer == wanted).count();
    let (holds, does_not) = (count(Answer::Holds), count(Answer::Fails));
    match (holds, does_not) {
        (0, 0) => Verdict::Inconclusive,
        (0, _) => Verdict::Fails,
        (holds, _) if holds == answers.len() => Verdict::Holds,
        _ => Verdict::PartlyHolds,
    }
}

/// The reasons for missing answers, each once.
fn reason(checks: &[CheckResult]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for reason in checks.iter().filter_map(|check| check.reason.as_ref()).map(Reason::to_string) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Note;
    use crate::{Experiment, Study};
    use schedlab_run::LaneKind::{Host, Sim};

    fn results(switches: &[(LaneKind, u32, u64)]) -> Vec<ExperimentResult> {
        let run = |(lane, repetition, count): &(LaneKind, u32, u64)| {
            let mut run = RunResult {
                lane: (*lane).into(),
                scheduler: "a".into(),
                repetition: *repetition,
                ..RunResult::default()
            };
            run.measures.totals.nr_switches = *count;
            run
        };
        let experiment =
            Experiment { name: "x".into(), study: "S".into(), ..Experiment::default() };
        vec![ExperimentResult { experiment, runs: switches.iter().map(run).collect() }]
    }

    fn judged_in(lanes: &[LaneKind], on: &str, switches: &[(LaneKind, u32, u64)]) -> ClaimResult {
        judged_by(lanes, on, &results(switches))
    }

    fn judged_of(on: &str, results: &[ExperimentResult]) -> ClaimResult {
        judged_by(&[], on, results)
    }

    fn judged_by(lanes: &[LaneKind], on: &str, results: &[ExperimentResult]) -> ClaimResult {
        let text = format!(
            "name='S'\n[[experiment]]\nname='x'\nworkload='hogs'\n[[experiment.runs]]\nlane='sim'\n\
             schedulers=['a']\n[[claim]]\nid='S-1'\ntext='t'\n[[claim.check]]\nwhat='w'\n\
             experiment='x'\non={on}\nvalue='nr_switches'\nholds='9 .. 11'\nwhy='because'\n"
        );
        let study = Study::parse(&text).unwrap();
        let too_few = |experiment: &str| Note::TooFewCpus {
            experiment: experiment.into(),
            needed: 3,
            available: 2,
        };
        let plan = Plan {
            experiments: results.iter().map(|result| result.experiment.clone()).collect(),
            runs: Vec::new(),
            notes: vec![too_few("x1"), Note::NoGuests("no QEMU".into()), too_few("x")],
        };
        let evidence =
            Evidence { study: "S", results, nr_cpus: 2, lanes, plan: &plan, failures: &[] };
        judge(&study.claims, evidence).into_iter().next().unwrap()
    }

    fn judged(on: &str, switches: &[(LaneKind, u32, u64)]) -> ClaimResult {
        judged_in(&[], on, switches)
    }

    /// A user who asks for one lane gets a verdict on that lane, and a note about the other.
    #[test]
    fn lanes_that_nobody_asked_for_do_not_count() {
        let claim = judged_in(&[Sim], "['sim a', 'host a']", &[(Sim, 0, 10)]);
        assert_eq!((claim.verdict, claim.checks.len()), (Verdict::Holds, 1));
        assert_eq!(claim.reason, "lane host was not asked for");
        let none = judged_in(&[Sim], "['host a']", &[(Sim, 0, 10)]);
        assert_eq!((none.verdict, none.checks.len()), (Verdict::Inconclusive, 0));
    }

    #[test]
    fn a_claim_is_judged_by_all_its_places() {
        let both = "['sim a', 'host a']";
        let host = |a, b| [(Sim, 0, 10), (Host, 0, a), (Host, 1, b)];
        assert_eq!(judged(both, &host(10, 10)).verdict, Verdict::Holds);
        assert_eq!(judged(both, &host(30, 30)).verdict, Verdict::PartlyHolds);
        assert_eq!(judged("['host a']", &host(30, 30)).verdict, Verdict::Fails);
        let wide = judged(both, &host(9, 11));
        assert_eq!(wide.verdict, Verdict::PartlyHolds, "not told is not agreement");
        assert!(wide.reason.contains("more repetitions"), "{}", wide.reason);
    }

    /// Numbers from a loaded machine never refute a claim; what holds there, holds.
    #[test]
    fn a_loaded_machine_does_not_refute() {
        let with_load = |switches: &[(LaneKind, u32, u64)]| {
            let mut all = results(switches);
            for run in &mut all[0].runs {
                run.warnings = vec![schedlab_run::Warning {
                    code: schedlab_run::Code::OtherLoad,
                    text: "Other processes used 40 %.".into(),
                }];
            }
            judged_of("['host a']", &all)
        };
        let outside = with_load(&[(Host, 0, 30), (Host, 1, 30)]);
        assert_eq!(outside.verdict, Verdict::Inconclusive);
        assert!(outside.reason.contains("2 of 2 runs were disturbed"), "{}", outside.reason);
        assert!(outside.reason.contains("used 40 %"), "{}", outside.reason);
        let within = with_load(&[(Host, 0, 10), (Host, 1, 10)]);
        assert_eq!(within.verdict, Verdict::Holds);
    }

    /// The reason belongs to the check's own experiment: x, not x1.
    #[test]
    fn what_was_not_measured_cannot_be_told() {
        let claim = judged("['host a', 'vm', 'sim b']", &[(Sim, 0, 10)]);
        assert_eq!(claim.verdict, Verdict::Inconclusive);
        assert_eq!(
            claim.reason,
            "x is not measured: it needs 3 CPUs, here are 2; runs in virtual machines are left \
             out: no QEMU; no run of it gave a result"
        );
        let one = judged("['host a']", &[(Host, 0, 10)]);
        assert_eq!(one.verdict, Verdict::Inconclusive);
        assert_eq!((one.checks[0].found, one.checks[0].nr_runs), (Some(10.0), 1));
        assert!(one.reason.contains("one repetition"), "{}", one.reason);
    }
}
