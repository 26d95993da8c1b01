// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts at a glance: counts of a study's outcomes, and a cell for each claim that links to it.

use crate::claims::{class, sign};
use crate::html::escape;
use crate::legend::verdict_item;
use schedlab_lab::claims::{ClaimResult, Verdict};
use std::fmt::Write as _;

/// The outcome of a claim. It splits "partly holds" into mixed and incomplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every check holds.
    Holds,
    /// Some checks hold, others fail.
    Mixed,
    /// Some checks hold, the others are inconclusive.
    Incomplete,
    /// No check holds.
    Fails,
    /// No check is conclusive.
    Inconclusive,
}

impl Outcome {
    /// All outcomes, best first.
    pub const ALL: [Self; 5] =
        [Self::Holds, Self::Mixed, Self::Incomplete, Self::Fails, Self::Inconclusive];

    /// The outcome of a claim.
    pub fn of(claim: &ClaimResult) -> Self {
        match claim.verdict {
            Verdict::Holds => Self::Holds,
            Verdict::PartlyHolds if claim.is_mixed() => Self::Mixed,
            Verdict::PartlyHolds => Self::Incomplete,
            Verdict::Fails => Self::Fails,
            Verdict::Inconclusive => Self::Inconclusive,
        }
    }

    /// The heading of its column.
    pub const fn head(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Mixed => "mixed",
            Self::Incomplete => "incomplete",
            Self::Fails => "fails",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// `1 fails`, `3 fail`.
    fn counted(self, count: usize) -> String {
        let verb = match (self, count) {
            (Self::Holds, 1) => "holds",
            (Self::Holds, _) => "hold",
            (Self::Fails, 1) => "fails",
            (Self::Fails, _) => "fail",
            (Self::Mixed | Self::Incomplete | Self::Inconclusive, 1) => "is",
            (Self::Mixed | Self::Incomplete | Self::Inconclusive, _) => "are",
        };
        match self {
            Self::Holds | Self::Fails => format!("{count} {verb}"),
            _ => format!("{count} {verb} {}", self.head()),
        }
    }
}

/// How many of `claims` have this outcome.
pub fn count(claims: &[&ClaimResult], outcome: Outcome) -> usize {
    claims.iter().filter(|claim| Outcome::of(claim) == outcome).count()
}

/// `3 hold, 1 is mixed, 2 fail`; outcomes that no claim has are left out.
pub fn counts(claims: &[&ClaimResult]) -> String {
    let of = |outcome: Outcome| (outcome, count(claims, outcome));
    let some = Outcome::ALL.into_iter().map(of).filter(|(_, count)| *count > 0);
    some.map(|(outcome, count)| outcome.counted(count)).collect::<Vec<_>>().join(", ")
}

/// The meaning of the signs in the cells.
pub fn legend() -> String {
    let mut out = String::from("<ul class=\"legend\" aria-label=\"Legend\">");
    for verdict in Verdict::ALL {
        out += &verdict_item(class(verdict), sign(verdict), verdict.text());
    }
    out + "</ul>\n"
}

/// A cell for each claim of a study. `file` is the page with the claims; empty for the same page.
pub fn cells(claims: &[&ClaimResult], file: &str) -> String {
    let mut out = String::from("<p class=\"cells\">");
    for claim in claims {
        let id = escape(&claim.id);
        let _ = write!(
            out,
            "<a class=\"cell {}\" href=\"{file}#claim-{id}\" title=\"{id}: {}. {}\">\
             {}\u{a0}{}</a> ",
            class(claim.verdict),
            claim.verdict.text().to_lowercase(),
            escape(&claim.text),
            escape(claim.id.rsplit('-').next().unwrap_or_default()),
            sign(claim.verdict),
        );
    }
    out + "</p>\n"
}

/// A link to a claim on the same page, with its verdict.
pub fn claim_link(id: &str, claims: &[ClaimResult]) -> String {
    let found = claims.iter().find(|claim| claim.id == id);
    let id = escape(id);
    let Some(found) = found else { return format!("<span class=\"cell\">{id}</span>") };
    format!(
        "<a class=\"cell {}\" href=\"#claim-{id}\">{id}\u{a0}{}</a>",
        class(found.verdict),
        sign(found.verdict)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tests::claim;

    #[test]
    fn outcomes_are_counted_and_those_of_none_left_out() {
        let claims = [
            claim("S", "S-1", Verdict::Holds),
            claim("S", "S-2", Verdict::Holds),
            claim("S", "S-3", Verdict::PartlyHolds),
            claim("S", "S-4", Verdict::Fails),
        ];
        let all: Vec<&ClaimResult> = claims.iter().collect();
        // A claim that holds in part, with a single check that holds, has no failing check: it is
        // incomplete.
        assert_eq!(counts(&all), "2 hold, 1 is incomplete, 1 fails");
        assert_eq!(count(&all, Outcome::Mixed), 0);
    }

    #[test]
    fn cells_lead_to_claims_and_stay_text() {
        let mut one = claim("S", "S-1<", Verdict::Fails);
        one.text = "\"><b>".into();
        let html = cells(&[&one], "report-s.html");
        assert!(html.contains("href=\"report-s.html#claim-S-1&lt;\""), "{html}");
        assert!(!html.contains("<b>"), "{html}");
        assert!(!claim_link("S-9", &[one]).contains("href"), "no claim is called so");
    }
}
