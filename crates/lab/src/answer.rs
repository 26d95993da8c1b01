// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first answer of a comparison: which contender is best, in which measure, and by how much.

use crate::ratio::Ratio;
use crate::versus::words_of;
use schedlab_metrics::stats::Summary;
use schedlab_run::{RunResult, values};

/// One of the compared things, with its repetitions.
#[derive(Clone, Debug)]
pub struct Contender<'r> {
    /// Name for people.
    pub label: String,
    /// Its runs; never empty.
    pub runs: Vec<&'r RunResult>,
}

/// The lowest and the highest mean of a time over the contenders.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The measure, for people.
    pub measure: &'static str,
    /// The contender with the lowest mean, and the mean (ns).
    pub best: (String, f64),
    /// Other contenders with the same mean.
    pub tied: Vec<String>,
    /// The contender with the highest mean, and the mean (ns).
    pub worst: (String, f64),
    /// Highest divided by lowest; `None` if the lowest is 0.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the ratio, if repetitions of a contender differ.
    pub ci95: Option<[f64; 2]>,
}

/// The measures in the order of preference. Lower is better in all of them.
const MEASURES: [&str; 4] =
    ["wakeup_latency_ns_p99", "turnaround_ns_mean", "run_delay_ns_mean", "response_ns_mean"];

/// Answers with the first measure that all contenders have and in which they differ.
pub fn answer(contenders: &[Contender<'_>]) -> Option<Answer> {
    MEASURES.iter().find_map(|measure| {
        let mut means = Vec::new();
        for one in contenders {
            let values: Vec<f64> =
                one.runs.iter().filter_map(|run| values::run_value(run, measure)).collect();
            means.push((&one.label, (!values.is_empty()).then(|| Summary::of(&values))?));
        }
        let by_mean =
            |a: &&(&String, Summary), b: &&(&String, Summary)| a.1.mean.total_cmp(&b.1.mean);
        let (best, worst) = (means.iter().min_by(by_mean)?, means.iter().max_by(by_mean)?);
        let ratio = Ratio::independent(&best.1, &worst.1);
        (best.1.mean < worst.1.mean).then(|| Answer {
            measure: words_of(measure),
            best: (best.0.clone(), best.1.mean),
            tied: means
                .iter()
                .filter(|(label, of)| of.mean == best.1.mean && *label != best.0)
                .map(|(label, _)| (*label).clone())
                .collect(),
            worst: (worst.0.clone(), worst.1.mean),
            ratio: ratio.map(|found| found.ratio),
            // An interval without width says that nothing varies: the sentence leaves it out.
            ci95: ratio.and_then(|found| found.ci95).filter(|[low, high]| low < high),
        })
    })
}

impl Answer {
    /// The answer as a sentence. `duration` formats a time (ns), `digits` a ratio.
    pub fn text(&self, duration: impl Fn(f64) -> String, digits: impl Fn(f64) -> String) -> String {
        let (best, worst) = (&self.best.0, &self.worst.0);
        let measure = self.measure;
        if let Some([low, high]) = self.ci95.filter(|[low, _]| *low <= 1.0) {
            return format!(
                "The {measure} of {best} and {worst}, the lowest and the highest, does not differ \
                 clearly: a factor of {} to {}.",
                digits(low),
                digits(high)
            );
        }
        let value = duration(self.best.1);
        let (winners, have) = self.winners();
        let Some(ratio) = self.ratio else {
            let highest = duration(self.worst.1);
            return format!(
                "{winners} {have} the lowest {measure}: {value}; {worst} has {highest}."
            );
        };
        let interval = self.ci95.map_or_else(String::new, |[low, high]| {
            format!(" [{}, {}]", digits(low), digits(high))
        });
        format!(
            "{winners} {have} the lowest {measure}: {value}, {}{interval} times lower than \
             {worst}.",
            digits(ratio)
        )
    }

    /// All with the lowest mean, and the verb for so many.
    fn winners(&self) -> (String, &'static str) {
        let best = &self.best.0;
        match &self.tied[..] {
            [] => (best.clone(), "has"),
            [one] => (format!("{best} and {one}"), "have"),
            [one, two] => (format!("{best}, {one} and {two}"), "have"),
            [one, more @ ..] => (format!("{best}, {one} and {} others", more.len()), "have"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(latencies: &[Option<u64>], turnaround: u64) -> Vec<RunResult> {
        let run = |latency: &Option<u64>| {
            let mut run = RunResult::default();
            run.measures.totals.wakeup_latency.ns_p99 = *latency;
            run.measures.totals.turnaround_ns_mean = Some(turnaround);
            run
        };
        latencies.iter().map(run).collect()
    }

    fn said(contenders: &[(&str, &[RunResult])]) -> Option<String> {
        let contender = |(label, runs): &(&str, &[RunResult])| (label.to_string(), runs.to_vec());
        let all: Vec<(String, Vec<RunResult>)> = contenders.iter().map(contender).collect();
        let contenders: Vec<Contender<'_>> = all
            .iter()
            .map(|(label, runs)| Contender { label: label.clone(), runs: runs.iter().collect() })
            .collect();
        Some(answer(&contenders)?.text(|ns| format!("{ns} ns"), |value| format!("{value:.2}")))
    }

    #[test]
    fn the_best_is_named_with_its_value_and_the_factor() {
        let (fast, slow) = (runs(&[Some(100)], 1), runs(&[Some(250)], 1));
        let text = said(&[("a", &slow), ("b", &fast)]).unwrap();
        assert_eq!(text, "b has the lowest p99 wake-up latency: 100 ns, 2.50 times lower than a.");
    }

    #[test]
    fn a_measure_that_one_lacks_or_in_which_all_are_equal_is_passed_over() {
        let (none, some) = (runs(&[None], 300), runs(&[Some(5)], 100));
        let text = said(&[("a", &none), ("b", &some)]).unwrap();
        assert!(text.starts_with("b has the lowest mean turnaround: 100 ns, 3.00 times"), "{text}");
        assert_eq!(said(&[("a", &some), ("b", &some)]), None);
    }

    #[test]
    fn repetitions_give_an_interval_and_may_leave_it_open() {
        let fast = runs(&[Some(100), Some(101), Some(99)], 1);
        let slow = runs(&[Some(250), Some(251), Some(249)], 1);
        let text = said(&[("a", &slow), ("b", &fast)]).unwrap();
        assert!(text.contains("2.50 [2.4") && text.contains("] times lower than a"), "{text}");
        let noisy = runs(&[Some(50), Some(900), Some(40)], 1);
        let text = said(&[("a", &noisy), ("b", &fast)]).unwrap();
        assert!(text.contains("does not differ clearly"), "{text}");
        let text = said(&[("a", &noisy), ("b", &fast[..1])]).unwrap();
        assert!(text.contains("does not differ clearly"), "one run alone: {text}");
    }

    #[test]
    fn all_that_share_the_lowest_value_are_named() {
        let (zero, some) = (runs(&[Some(0)], 1), runs(&[Some(9)], 1));
        let text = said(&[("a", &zero), ("b", &some), ("c", &zero)]).unwrap();
        assert_eq!(text, "a and c have the lowest p99 wake-up latency: 0 ns; b has 9 ns.");
        let few = runs(&[Some(3)], 1);
        let text = said(&[("a", &few), ("b", &few), ("c", &few), ("d", &few), ("e", &some)]);
        let text = text.unwrap();
        assert!(
            text.starts_with("a, b and 2 others have the lowest p99 wake-up latency: 3 ns, 3.00")
        );
    }

    #[test]
    fn nothing_is_not_divided_by() {
        let (zero, some) = (runs(&[Some(0)], 1), runs(&[Some(9)], 1));
        let text = said(&[("a", &zero), ("b", &some)]).unwrap();
        assert_eq!(text, "a has the lowest p99 wake-up latency: 0 ns; b has 9 ns.");
    }
}
