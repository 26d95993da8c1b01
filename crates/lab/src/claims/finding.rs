// SPDX-License-Identifier: MIT OR Apache-2.0
//! The finding of a claim in one sentence, and the verdicts of all claims in one line.

use super::{Answer, CheckResult, ClaimResult, Fact, PairResult, Verdict};

impl ClaimResult {
    /// Number of checks with this answer.
    fn count(&self, answer: Answer) -> usize {
        self.deciding().filter(|check| check.answer == answer).count()
    }

    /// Number of facts with this answer.
    fn count_facts(&self, answer: Answer) -> usize {
        self.facts.iter().filter(|fact| fact.answer() == answer).count()
    }

    /// The checks that decide the verdict.
    fn deciding(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| check.decides())
    }

    /// Whether some checks hold and others fail. Any other claim that partly holds is incomplete:
    /// its other checks are inconclusive.
    pub fn is_mixed(&self) -> bool {
        let nr_failed = self.count(Answer::Fails) + self.count_facts(Answer::Fails);
        self.verdict == Verdict::PartlyHolds && nr_failed > 0
    }

    /// The finding in one sentence: how many checks hold, and the number that decides. `show`
    /// formats the number of a check, with its unit, unless the check compares pairs.
    pub fn finding(&self, show: impl Fn(&CheckResult, f64) -> String) -> String {
        let read = |fact: &Fact| format!("{} ({})", fact.found.trim(), fact.source.trim());
        let facts: Vec<String> = self.facts.iter().map(read).collect();
        let measured = match self.checks.is_empty() && !facts.is_empty() {
            true => None,
            false => Some(self.measured(show)),
        };
        facts.into_iter().chain(measured).collect::<Vec<_>>().join(" ")
    }

    /// The finding from the checks.
    fn measured(&self, show: impl Fn(&CheckResult, f64) -> String) -> String {
        let number = |check: &CheckResult| {
            let place = check.scheduler.as_deref().unwrap_or(check.lane.name());
            let text = |value| match &check.pair {
                None => show(check, value),
                Some(pair) => pair.scale.text(value),
            };
            let found = check.found.map_or_else(|| "unknown".into(), text);
            match &check.pair {
                None => format!("{} is {found} under {place}", check.what),
                Some(pair) => {
                    let PairResult { experiment, against, .. } = pair;
                    let (what, lane) = (&check.what, check.lane);
                    format!("{what} of {experiment}: {found} between {lane} {place} and {against}")
                }
            }
        };
        let first = |answer| self.deciding().find(|check| check.answer == answer);
        let wanted =
            |check: &CheckResult| format!("{}, and should be {}", number(check), check.holds);
        let (all, holds) = (self.deciding().count(), self.count(Answer::Holds));
        match (first(Answer::Holds), first(Answer::Fails)) {
            (Some(check), None) if holds == all => {
                let study = check.published.map(|value| show(check, value));
                let study = study.map_or_else(String::new, |value| format!(" (study: {value})"));
                match all {
                    1 => format!("{}{study}.", number(check)),
                    _ => format!("All {all} checks hold: {}{study}.", number(check)),
                }
            }
            (Some(_), Some(fails)) => {
                format!("{holds} of {all} checks hold, but {}.", wanted(fails))
            }
            (Some(_), None) => {
                format!(
                    "{holds} of {all} checks hold, the others are inconclusive: {}.",
                    self.reason
                )
            }
            (None, Some(fails)) => format!("No check holds: {}.", wanted(fails)),
            (None, None) => format!("Inconclusive: {}.", self.reason),
        }
    }
}

/// Counts claims by verdict: `5 claims: 1 HOLDS, 2 PARTLY HOLDS (1 mixed, 1 incomplete), 1 FAILS, 1
/// INCONCLUSIVE`.
pub fn summary(claims: &[ClaimResult]) -> String {
    let of = |verdict| claims.iter().filter(move |claim| claim.verdict == verdict);
    let part = |verdict: Verdict| {
        let count = of(verdict).count();
        let mixed = of(verdict).filter(|claim| claim.is_mixed()).count();
        match verdict {
            Verdict::PartlyHolds if count > 0 => {
                format!("{count} {} ({mixed} mixed, {} incomplete)", verdict.text(), count - mixed)
            }
            _ => format!("{count} {}", verdict.text()),
        }
    };
    let parts: Vec<String> = Verdict::ALL.into_iter().map(part).collect();
    format!("{} claims: {}", claims.len(), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::LaneKind;

    fn check(answer: Answer) -> CheckResult {
        CheckResult {
            what: "turnaround".into(),
            lane: LaneKind::Sim,
            scheduler: Some("rr".into()),
            value: "x".into(),
            published: Some(2.0),
            holds: "1 .. 3".into(),
            why: String::new(),
            found: Some(4.0),
            ci95: None,
            is_exact: true,
            is_time: false,
            nr_runs: 1,
            answer,
            reason: None,
            pair: None,
        }
    }

    fn claim(verdict: Verdict, answers: &[Answer]) -> ClaimResult {
        ClaimResult {
            study: "T".into(),
            id: "T-1".into(),
            text: String::new(),
            numbers: String::new(),
            remark: String::new(),
            verdict,
            reason: "one repetition".into(),
            facts: Vec::new(),
            checks: answers.iter().copied().map(check).collect(),
        }
    }

    #[test]
    fn a_finding_names_the_number_that_decides() {
        use Answer::{Fails, Holds, Inconclusive};
        let said = |verdict, answers: &[Answer]| {
            claim(verdict, answers).finding(|_, value| value.to_string())
        };
        assert_eq!(said(Verdict::Holds, &[Holds]), "turnaround is 4 under rr (study: 2).");
        assert!(said(Verdict::Holds, &[Holds, Holds]).starts_with("All 2 checks hold: turnaround"));
        assert_eq!(
            said(Verdict::PartlyHolds, &[Holds, Fails]),
            "1 of 2 checks hold, but turnaround is 4 under rr, and should be 1 .. 3."
        );
        assert_eq!(
            said(Verdict::PartlyHolds, &[Holds, Inconclusive]),
            "1 of 2 checks hold, the others are inconclusive: one repetition."
        );
        assert!(said(Verdict::Fails, &[Fails]).starts_with("No check holds: turnaround is 4"));
        assert_eq!(said(Verdict::Inconclusive, &[]), "Inconclusive: one repetition.");
    }

    #[test]
    fn a_fact_is_named_with_its_source() {
        let fact = |holds| Fact { found: "It is so.".into(), source: "file.c".into(), holds };
        let mut read = claim(Verdict::PartlyHolds, &[]);
        read.facts = vec![fact(true), fact(false)];
        assert_eq!(
            read.finding(|_, value| value.to_string()),
            "It is so. (file.c) It is so. (file.c)"
        );
        assert!(read.is_mixed());
        let mut both = claim(Verdict::Holds, &[Answer::Holds]);
        both.facts = vec![fact(true)];
        assert!(
            both.finding(|_, value| value.to_string())
                .ends_with("turnaround is 4 under rr (study: 2).")
        );
        assert!(!both.is_mixed());
    }

    #[test]
    fn partly_is_mixed_or_incomplete() {
        use Answer::{Fails, Holds, Inconclusive};
        let claims = [
            claim(Verdict::Holds, &[Holds]),
            claim(Verdict::PartlyHolds, &[Holds, Fails]),
            claim(Verdict::PartlyHolds, &[Holds, Inconclusive]),
        ];
        let expected = "3 claims: 1 HOLDS, 2 PARTLY HOLDS (1 mixed, 1 incomplete), 0 FAILS, \
                        0 INCONCLUSIVE";
        assert_eq!(summary(&claims), expected);
    }
}
