// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two schedulers on the same workload, compared seed by seed: which measures are lower, equal or
//! higher, and by how much.
//!
//! Runs are paired by their seed, which draws the same amounts for both. Each measure has its own
//! interval at 95 %: of twenty, one is expected to miss.

use crate::ratio::{MARGIN, Order, Ratio};
use schedlab_metrics::stats;
use schedlab_run::{RunResult, values};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The measures that are compared by default, the most telling first: words for people, and name.
const WORDS: [(&str, &str); 9] = [
    ("p99 wake-up latency", "wakeup_latency_ns_p99"),
    ("mean turnaround", "turnaround_ns_mean"),
    ("mean run delay", "run_delay_ns_mean"),
    ("mean response", "response_ns_mean"),
    ("makespan", "makespan_ns"),
    ("throughput", "throughput_per_s"),
    ("number of switches", "nr_switches"),
    ("Jain index", "jain_index"),
    ("median wake-up latency", "wakeup_latency_ns_median"),
];

/// Names of the measures that are compared by default, the most telling first.
pub fn measures_default() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(_, name)| *name)
}

/// The words for a measure, or its name.
pub fn words_of(measure: &str) -> &str {
    let known = WORDS.iter().find(|(_, name)| *name == measure);
    known.map_or(measure, |(words, _)| words)
}

/// One measure under both schedulers.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Compared {
    /// Name of the measure.
    pub measure: String,
    /// Number of seeds for which both runs have the measure.
    pub nr_seeds: u64,
    /// Mean of the base over these seeds.
    pub base_mean: f64,
    /// Mean of the new scheduler over these seeds.
    pub new_mean: f64,
    /// New divided by base; `None` if a mean is 0.
    pub ratio: Option<Ratio>,
    /// How the new scheduler compares with the base.
    pub order: Order,
}

/// A comparison of two schedulers.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Versus {
    /// Name of the scheduler that the other is compared with.
    pub base: String,
    /// Name of the other.
    pub new: String,
    /// Number of seeds that both have.
    pub nr_seeds: u64,
    /// Whether both give the same values in every run.
    pub is_identical: bool,
    /// Whether the values of each are the same under all seeds: more seeds add nothing.
    pub is_constant: bool,
    /// The measures that both have.
    pub measures: Vec<Compared>,
}

/// A scheduler's runs by seed; `None` if a seed has several.
fn by_seed<'r>(runs: &[&'r RunResult]) -> Option<BTreeMap<u64, &'r RunResult>> {
    let by_seed: BTreeMap<u64, &RunResult> = runs.iter().map(|run| (run.seed, *run)).collect();
    (by_seed.len() == runs.len()).then_some(by_seed)
}

impl Compared {
    /// Compares pairs of values, the base first; `None` without a pair.
    fn of(measure: &str, pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let (base, new): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let ratio = Ratio::paired(pairs);
        Some(Self {
            measure: measure.into(),
            nr_seeds: pairs.len() as u64,
            base_mean: stats::mean(&base),
            new_mean: stats::mean(&new),
            order: ratio.map_or_else(|| order_without_ratio(pairs), |ratio| ratio.order()),
            ratio,
        })
    }
}

/// The order of values whose ratio does not exist, by the interval of their differences.
fn order_without_ratio(pairs: &[(f64, f64)]) -> Order {
    let differences: Vec<f64> = pairs.iter().map(|(base, new)| new - base).collect();
    let mean = stats::mean(&differences);
    match stats::ci95_half_width(&differences) {
        _ if differences.iter().all(|difference| *difference == 0.0) => Order::Equal,
        Some(half) if mean + half < 0.0 => Order::Lower,
        Some(half) if mean - half > 0.0 => Order::Higher,
        _ => Order::Unclear,
    }
}

impl Versus {
    /// Compares the runs `new` with the runs `base` in `measures`, those that decide first. `None`
    /// if they share no seed, or if a seed has several runs.
    pub fn of(
        (base_name, base): (&str, &[&RunResult]),
        (new_name, new): (&str, &[&RunResult]),
        measures: &[String],
    ) -> Option<Self> {
        let (base, new) = (by_seed(base)?, by_seed(new)?);
        let both: Vec<(&RunResult, &RunResult)> =
            base.iter().filter_map(|(seed, run)| Some((*run, *new.get(seed)?))).collect();
        let first = both.first()?;
        let pairs_of = |measure: &String| -> Vec<(f64, f64)> {
            let value = |run| values::run_value(run, measure).filter(|value| value.is_finite());
            both.iter().filter_map(|(base, new)| Some((value(base)?, value(new)?))).collect()
        };
        let measures =
            measures.iter().filter_map(|measure| Compared::of(measure, &pairs_of(measure)));
        Some(Self {
            base: base_name.into(),
            new: new_name.into(),
            nr_seeds: both.len() as u64,
            is_identical: both.iter().all(|(base, new)| base.measures == new.measures),
            is_constant: both.iter().all(|(base, new)| {
                base.measures == first.0.measures && new.measures == first.1.measures
            }),
            measures: measures.collect(),
        })
    }

    /// The measures of this order, in words.
    fn words(&self, order: Order, but: Option<&Compared>) -> Vec<&str> {
        let is_it = |one: &&Compared| one.order == order && Some(*one) != but;
        self.measures.iter().filter(is_it).map(|one| words_of(&one.measure)).collect()
    }

    /// The verdict in words: the first measure that clearly differs, with the ratio and its
    /// interval; then what else is higher, lower, equal or unclear. `value` formats a value of a
    /// measure, `digits` a ratio.
    pub fn verdict(
        &self,
        value: impl Fn(&str, f64) -> String,
        digits: impl Fn(f64) -> String,
    ) -> String {
        let (base, new, nr_seeds) = (&self.base, &self.new, self.nr_seeds);
        let mut seeds = if nr_seeds == 1 { "1 seed".into() } else { format!("{nr_seeds} seeds") };
        if self.is_identical {
            return format!("{new} and {base} give the same values under {seeds}.");
        }
        if self.is_constant && nr_seeds > 1 {
            seeds += " that all give the same";
        }
        let differs = |one: &&Compared| matches!(one.order, Order::Lower | Order::Higher);
        let lead = self.measures.iter().find(differs);
        let mut text = match lead {
            Some(lead) => format!("{}, over {seeds}", self.lead(lead, value, digits)),
            None => format!("No measure of {new} clearly differs from {base}'s over {seeds}"),
        };
        let led = lead.map(|lead| lead.order);
        let mut differing = [Order::Higher, Order::Lower];
        differing.sort_by_key(|order| Some(*order) != led);
        for order in differing.into_iter().chain([Order::Equal, Order::Unclear]) {
            let words = self.words(order, lead);
            let head = match order {
                Order::Equal => format!("equal within {} %", MARGIN * 100.0),
                _ if Some(order) == led => format!("also {}", order.name()),
                _ => order.name().to_owned(),
            };
            if !words.is_empty() {
                text += &format!("; {head}: {}", words.join(", "));
            }
        }
        text + "."
    }

    /// `new's p99 wake-up latency is 1.8 times base's [1.6, 2]`.
    fn lead(
        &self,
        lead: &Compared,
        value: impl Fn(&str, f64) -> String,
        digits: impl Fn(f64) -> String,
    ) -> String {
        let (base, new, measure) = (&self.base, &self.new, &lead.measure);
        let words = words_of(measure);
        match lead.ratio {
            Some(Ratio { ratio, ci95 }) => {
                let ends = ci95.filter(|_| !self.is_constant).map(|ends| ends.map(&digits));
                let interval =
                    ends.map_or_else(String::new, |[low, high]| format!(" [{low}, {high}]"));
                format!("{new}'s {words} is {} times {base}'s{interval}", digits(ratio))
            }
            None => {
                let [base_mean, new_mean] =
                    [lead.base_mean, lead.new_mean].map(|mean| value(measure, mean));
                format!("{new}'s {words} is {new_mean}, {base}'s is {base_mean}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs with seeds from 1 on: p99 latency, switches.
    fn runs(values: &[(u64, u64)]) -> Vec<RunResult> {
        let run = |(index, (latency, switches)): (usize, &(u64, u64))| {
            let mut run = RunResult { seed: index as u64 + 1, ..RunResult::default() };
            run.measures.totals.wakeup_latency.ns_p99 = Some(*latency);
            run.measures.totals.nr_switches = *switches;
            run
        };
        values.iter().enumerate().map(run).collect()
    }

    fn versus(base: &[RunResult], new: &[RunResult]) -> Option<Versus> {
        let measures: Vec<String> = measures_default().map(String::from).collect();
        let (base, new): (Vec<&RunResult>, Vec<&RunResult>) =
            (base.iter().collect(), new.iter().collect());
        Versus::of(("old.bpf.c", &base), ("new.bpf.c", &new), &measures)
    }

    fn verdict(base: &[(u64, u64)], new: &[(u64, u64)]) -> String {
        let found = versus(&runs(base), &runs(new)).unwrap();
        found.verdict(|_, value| format!("{value} ns"), |ratio| format!("{ratio:.2}"))
    }

    #[test]
    fn the_verdict_leads_with_the_first_measure_that_differs() {
        let text =
            verdict(&[(100, 700), (200, 800), (300, 900)], &[(180, 701), (361, 801), (539, 901)]);
        assert_eq!(
            text,
            "new.bpf.c's p99 wake-up latency is 1.80 times old.bpf.c's [1.79, 1.81], over 3 seeds; \
             equal within 1 %: number of switches."
        );
        let text = verdict(&[(100, 10), (210, 20)], &[(101, 5), (190, 10)]);
        assert!(text.starts_with("new.bpf.c's number of switches is 0.50 times"), "{text}");
        assert!(text.ends_with("; unclear: p99 wake-up latency."), "{text}");
    }

    #[test]
    fn measures_of_the_leading_order_are_also_so_and_others_are_not() {
        let text = verdict(&[(100, 10), (200, 20)], &[(200, 20), (400, 40)]);
        assert!(text.ends_with("; also higher: number of switches."), "{text}");
        assert!(!text.contains("give the same"), "{text}");
        let text = verdict(&[(100, 10), (100, 10)], &[(200, 10), (200, 10)]);
        assert!(
            text.contains("2.00 times old.bpf.c's, over 2 seeds that all give the same;"),
            "{text}"
        );
        let text = verdict(&[(100, 40), (200, 80)], &[(200, 20), (400, 40)]);
        assert!(text.ends_with("; lower: number of switches."), "{text}");
    }

    #[test]
    fn what_does_not_differ_is_called_so() {
        let same = [(100, 10), (200, 30)];
        assert_eq!(
            verdict(&same, &same),
            "new.bpf.c and old.bpf.c give the same values under 2 seeds."
        );
        let text = verdict(&[(100, 1000), (200, 2000)], &[(130, 1001), (180, 1999)]);
        assert!(text.starts_with("No measure of new.bpf.c clearly differs from old"), "{text}");
        assert!(text.contains("equal within 1 %: number of switches; unclear: p99"), "{text}");
    }

    #[test]
    fn a_base_of_nothing_is_not_divided_by() {
        let text = verdict(&[(0, 1), (0, 1), (0, 1)], &[(90, 1), (100, 1), (110, 1)]);
        assert!(
            text.starts_with(
                "new.bpf.c's p99 wake-up latency is 100 ns, old.bpf.c's is 0 ns, over"
            ),
            "{text}"
        );
        let text = verdict(&[(0, 1)], &[(0, 2)]);
        assert!(text.contains("equal within 1 %: p99 wake-up latency"), "{text}");
    }

    #[test]
    fn only_pairs_count() {
        let (base, mut new) = (runs(&[(100, 1), (200, 1), (300, 1)]), runs(&[(200, 1), (400, 1)]));
        let found = versus(&base, &new).unwrap();
        assert_eq!((found.nr_seeds, found.measures[0].base_mean), (2, 150.0));
        assert!(!found.is_constant);
        new[0].measures.totals.wakeup_latency.ns_p99 = None;
        assert_eq!(versus(&base, &new).unwrap().measures[0].nr_seeds, 1);
        new[1].seed = 1;
        assert_eq!(versus(&base, &new), None, "two runs of a seed");
        new.remove(0);
        new[0].seed = 77;
        assert_eq!(versus(&base, &new), None, "no seed in common");
        let found = versus(&runs(&[(5, 1), (5, 1)]), &runs(&[(7, 1), (7, 1)])).unwrap();
        assert!(found.is_constant && !found.is_identical);
    }
}
