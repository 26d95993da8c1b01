// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparisons of pairs of runs as tables for people, on the terminal, in Markdown and in the
//! report. There are tables of all comparisons with a column for each claim, of every value, of the
//! wrong models and of the knobs.

use super::compare::PairKind;
use super::{Answer, CheckResult, ClaimResult, PairResult, Reason, Scale};
use schedlab_run::LaneKind;

/// The outcome of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// The deviation is within the tolerance.
    Holds,
    /// The deviation is outside the tolerance, but within the first place's own variation.
    HoldsByVariation,
    /// The deviation is outside both.
    Fails,
    /// The comparison is inconclusive.
    Inconclusive,
    /// The comparison is inconclusive, because it accepts a wrong model or no knob moves it.
    SeesNothing,
}

impl Word {
    /// All outcomes, best first.
    pub const ALL: [Self; 5] =
        [Self::Holds, Self::HoldsByVariation, Self::Fails, Self::Inconclusive, Self::SeesNothing];

    /// Its text in tables.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "HOLDS",
            Self::HoldsByVariation => "HOLDS by the kernel's own variation",
            Self::Fails => "FAILS",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::SeesNothing => "INCONCLUSIVE: does not tell a right model from a wrong one",
        }
    }

    /// Its mark after a value in a table.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Holds => "",
            Self::HoldsByVariation => " v",
            Self::Fails => " !",
            Self::Inconclusive => " ?",
            Self::SeesNothing => " ~",
        }
    }

    /// The outcome of a check.
    pub fn of(check: &CheckResult) -> Self {
        match (check.answer, &check.reason) {
            (Answer::Fails, _) => Self::Fails,
            (Answer::Holds, _) => match &check.pair {
                Some(pair) if pair.by_variation => Self::HoldsByVariation,
                _ => Self::Holds,
            },
            (
                Answer::Inconclusive,
                Some(
                    Reason::NoWrongModel
                    | Reason::Accepts { .. }
                    | Reason::NoKnob
                    | Reason::DoesNotMove { .. },
                ),
            ) => Self::SeesNothing,
            (Answer::Inconclusive, _) => Self::Inconclusive,
        }
    }
}

/// A cell of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum PairCell {
    /// A text.
    Text(String),
    /// A number with its unit.
    Number(String),
    /// A deviation with its outcome.
    Deviation {
        /// The greatest deviation of a unit.
        text: String,
        /// The first place's own variation: the greatest of any unit.
        own: Option<String>,
        /// The outcome.
        word: Word,
        /// The outcome with its reason.
        verdict: String,
    },
    /// The outcome of a control or a knob.
    Verdict(&'static str, Word),
}

/// A table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PairTable {
    /// Column headings.
    pub heads: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<PairCell>>,
}

impl PairTable {
    fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }
}

/// Every value of a workload in a pair of places.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PairDetail {
    /// Workload, kernel, model, lane.
    pub place: [String; 4],
    /// Release of the kernel.
    pub release: String,
    /// Number of pairs of runs.
    pub nr_pairs: usize,
    /// Whether a comparison fails.
    pub fails: bool,
    /// The values, task by task.
    pub table: PairTable,
    /// Subjects with notes: why a comparison is inconclusive, and how many slices are equal, run by
    /// run.
    pub notes: Vec<(String, String)>,
}

const PLACE: [&str; 4] = ["workload", "kernel", "model", "where"];
use PairCell::{Deviation, Number, Text};

/// All comparisons: a row for each workload in each pair of places, a column for each claim. The
/// second list has the details of each row. `show` formats values that are not shares.
pub fn compared(
    claims: &[ClaimResult],
    show: &dyn Fn(&CheckResult, f64) -> String,
) -> (PairTable, Vec<PairDetail>) {
    const HEADS: [&str; 9] = [
        "claim",
        "of",
        "kernel",
        "model",
        "off by",
        "95 % interval",
        "allowed",
        "own variation",
        "",
    ];
    let mut table = PairTable::new(&PLACE);
    let mut details: Vec<PairDetail> = Vec::new();
    for claim in claims {
        let made = || of_kind(std::slice::from_ref(claim), PairKind::Agrees);
        let made = made().filter(|(check, _)| check.nr_runs > 0);
        let count = table.heads.len();
        for (check, pair) in made {
            table.heads.truncate(count);
            table.heads.push(check.what.clone());
            let place = place(check, pair);
            let at = details.iter().position(|detail| detail.place == place);
            let at = at.unwrap_or_else(|| {
                table.rows.push(place.iter().cloned().map(Text).collect());
                details.push(PairDetail {
                    release: pair.release.clone(),
                    place,
                    table: PairTable::new(&HEADS),
                    ..PairDetail::default()
                });
                details.len() - 1
            });
            let cells = &mut table.rows[at];
            cells.resize(count, Text(String::new()));
            cells.push(deviation(check, pair));
            details[at].add(check, pair, show);
        }
    }
    for cells in &mut table.rows {
        cells.resize(table.heads.len(), Text(String::new()));
    }
    (table, details)
}

fn deviation(check: &CheckResult, pair: &PairResult) -> PairCell {
    let own = pair.units.iter().filter_map(|unit| unit.variation).reduce(f64::max);
    let word = Word::of(check);
    Deviation {
        text: pair.worst_text().unwrap_or_else(|| "-".into()),
        own: own.map(|own| pair.scale.text(own)),
        word,
        verdict: match &check.reason {
            Some(reason) => format!("{}: {reason}", word.text()),
            None => word.text().into(),
        },
    }
}

impl PairDetail {
    fn add(
        &mut self,
        check: &CheckResult,
        pair: &PairResult,
        show: &dyn Fn(&CheckResult, f64) -> String,
    ) {
        self.nr_pairs = self.nr_pairs.max(check.nr_runs / 2);
        self.fails |= check.answer == Answer::Fails;
        let text = |value: f64| pair.scale.text(value);
        let value = |value: f64| match pair.scale {
            Scale::Points => format!("{:.2} %", value * 100.0),
            _ => show(check, value),
        };
        for (index, unit) in pair.units.iter().enumerate() {
            let first = |cell: PairCell| if index == 0 { cell } else { Text(String::new()) };
            let [low, high] = unit.ci95.map(text);
            self.table.rows.push(vec![
                first(Text(check.what.clone())),
                Text(unit.unit.clone()),
                Number(value(unit.on)),
                Number(value(unit.against)),
                Number(text(unit.deviation)),
                Number(format!("{low} .. {high}")),
                first(Number(text(pair.within))),
                Number(unit.variation.map_or_else(|| "-".into(), text)),
                first(PairCell::Verdict(Word::of(check).text(), Word::of(check))),
            ]);
        }
        if let (Some(_), Deviation { verdict, .. }) = (&check.reason, deviation(check, pair)) {
            self.notes.push((check.what.clone(), verdict));
        }
        if !pair.slices.is_empty() {
            let runs = pair.slices.iter().map(|equal| {
                format!("{} of {}", equal.nr_equal, equal.nr_kernel.max(equal.nr_model))
            });
            let runs = runs.collect::<Vec<_>>().join(", ");
            self.notes.push((format!("{}, run by run", check.what), runs));
        }
    }
}

/// The outcome of a control or a knob.
fn verdict(check: &CheckResult, [holds, fails]: [&'static str; 2]) -> PairCell {
    let text = match check.answer {
        Answer::Holds => holds,
        Answer::Fails => fails,
        Answer::Inconclusive => "not run",
    };
    PairCell::Verdict(text, Word::of(check))
}

/// `6.12 (vm, 1 CPU)`.
fn kernel(check: &CheckResult, pair: &PairResult) -> PairCell {
    let [_, kernel, _, place] = place(check, pair);
    Text(format!("{kernel} ({place})"))
}

/// The table of wrong models: whether the comparisons reject them.
pub fn controls(claims: &[ClaimResult]) -> PairTable {
    let heads = ["wrong model", "what is wrong", "claim", "workload", "kernel", "off by", ""];
    let mut table = PairTable::new(&heads);
    table.rows.extend(of_kind(claims, PairKind::Rejects).map(|(check, pair)| {
        vec![
            Text(pair.against.clone()),
            Text(check.why.clone()),
            Text(check.what.clone()),
            Text(pair.workload.clone()),
            kernel(check, pair),
            Number(pair.worst_text().unwrap_or_default()),
            verdict(check, ["rejected", "ACCEPTED"]),
        ]
    }));
    table
}

/// The table of knobs: whether they move the number.
pub fn knobs(claims: &[ClaimResult]) -> PairTable {
    let mut table =
        PairTable::new(&["knob", "claim", "workload", "kernel", "off by, at each value", ""]);
    table.rows.extend(of_kind(claims, PairKind::Moves).map(|(check, pair)| {
        vec![
            Text(pair.knob.clone()),
            Text(check.what.clone()),
            Text(pair.workload.clone()),
            kernel(check, pair),
            Text(pair.points_text()),
            verdict(check, ["moves", "DOES NOT MOVE"]),
        ]
    }));
    table
}

/// The table of tolerances with their reasons.
pub fn tolerances(claims: &[ClaimResult]) -> PairTable {
    let mut table = PairTable::new(&["claim", "what it says", "allowed", "why"]);
    let first = |claim: &ClaimResult| {
        let (check, pair) = of_kind(std::slice::from_ref(claim), PairKind::Agrees).next()?;
        let why = check.why.split_whitespace().collect::<Vec<_>>().join(" ");
        let allowed = Number(pair.scale.text(pair.within));
        Some(vec![Text(check.what.clone()), Text(claim.text.clone()), allowed, Text(why)])
    };
    table.rows.extend(claims.iter().filter_map(first));
    table
}

/// Checks over pairs with this question, claim by claim.
pub fn of_kind(
    claims: &[ClaimResult],
    kind: PairKind,
) -> impl Iterator<Item = (&CheckResult, &PairResult)> {
    let checks = claims.iter().flat_map(|claim| &claim.checks);
    let pairs = checks.filter_map(|check| Some((check, check.pair.as_ref()?)));
    pairs.filter(move |(_, pair)| pair.kind == kind)
}

/// Workload, kernel, model, lane.
fn place(check: &CheckResult, pair: &PairResult) -> [String; 4] {
    let cpus = if pair.nr_cpus == 1 { "CPU" } else { "CPUs" };
    let kernel = match check.lane {
        LaneKind::Host => pair.release.clone(),
        _ => check.scheduler.clone().unwrap_or_default(),
    };
    let model = pair.against.strip_prefix("sim ").unwrap_or(&pair.against);
    let workload = if pair.workload.is_empty() { &pair.experiment } else { &pair.workload };
    let place = format!("{}, {} {cpus}", check.lane, pair.nr_cpus);
    [workload.clone(), kernel, model.into(), place]
}

/// The comparison for people: `hogs under 6.12 (vm, 1 CPU)`.
pub fn label(check: &CheckResult, pair: &PairResult) -> String {
    let [workload, kernel, _, place] = place(check, pair);
    match check.nr_runs {
        0 => format!("{} under {}", pair.experiment, kernel),
        _ => format!("{workload} under {kernel} ({place})"),
    }
}

/// Counts comparisons by outcome, and the controls and knobs that behaved as required.
pub fn pairs_summary(claims: &[ClaimResult]) -> String {
    let made = || of_kind(claims, PairKind::Agrees).filter(|(check, _)| check.nr_runs > 0);
    let count = |word: Word| made().filter(|(check, _)| Word::of(check) == word).count();
    let [holds, varied, fails, inconclusive, nothing] = Word::ALL.map(count);
    let only = |count: usize, text: &str| match count {
        0 => String::new(),
        count => format!(" ({count} {text})"),
    };
    let of = |kind: PairKind| {
        let checks: Vec<_> = of_kind(claims, kind).collect();
        let good = checks.iter().filter(|(check, _)| check.answer == Answer::Holds).count();
        format!("{good} of {}", checks.len())
    };
    let nr_made = made().count();
    format!(
        "{nr_made} {}: {} HOLDS{}, {fails} FAILS, {} INCONCLUSIVE{}; {} wrong models are \
         rejected, {} knobs move their measure",
        if nr_made == 1 { "comparison" } else { "comparisons" },
        holds + varied,
        only(varied, "only by the kernel's own variation"),
        inconclusive + nothing,
        only(nothing, "do not tell a right model from a wrong one"),
        of(PairKind::Rejects),
        of(PairKind::Moves),
    )
}
