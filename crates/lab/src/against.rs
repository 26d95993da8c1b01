// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model against the kernel that it models, with the uncertainty of the kernel's own figures.
//!
//! The kernel's runs repeat one workload, with other seeds and starts. From the least to the
//! greatest value of a measure is the kernel's *own range*. A model's value is *inside* or
//! *outside* of it; with one run of the kernel that is unknown. A value outside counts as *equal*
//! if it is within [`MARGIN`] of the kernel's median: some measures of a guest hardly vary.
//!
//! If runs are independent, another run of the same kernel is inside the range of n runs with a
//! probability of (n - 1) / (n + 1): a perfect model is outside as often as that run.

use crate::claims::is_disturbed;
use crate::ratio::MARGIN;
use crate::versus::words_of;
use schedlab_metrics::stats::Summary;
use schedlab_run::{RunResult, values};

/// A measure that models and kernels have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measure<'m> {
    /// Name in results.
    pub name: &'m str,
    /// If both values are below this floor, their ratio means nothing and is left out. For example,
    /// the run delay of a lone task may be 2 us here and 20 us there. 0: no floor.
    pub floor: f64,
}

/// Times below 0.1 ms come from the machinery, not from the policy.
const FLOOR_NS: f64 = 100_000.0;

/// Fewer switches than this come from the start and the end of a run.
const FLOOR_SWITCHES: f64 = 10.0;

const fn measure(name: &'static str, floor: f64) -> Measure<'static> {
    Measure { name, floor }
}

/// Mean turnaround.
pub const TURNAROUND: Measure<'static> = measure("turnaround_ns_mean", 0.0);
/// Throughput.
pub const THROUGHPUT: Measure<'static> = measure("throughput_per_s", 0.0);
/// Number of switches.
pub const SWITCHES: Measure<'static> = measure("nr_switches", FLOOR_SWITCHES);

/// The measures in which models are compared with kernels by default.
pub const MEASURES: [Measure<'static>; 8] = [
    measure("wakeup_latency_ns_p99", FLOOR_NS),
    measure("wakeup_latency_ns_median", FLOOR_NS),
    TURNAROUND,
    measure("run_delay_ns_mean", FLOOR_NS),
    measure("response_ns_mean", FLOOR_NS),
    measure("makespan_ns", 0.0),
    THROUGHPUT,
    SWITCHES,
];

impl<'m> Measure<'m> {
    /// The measure with this name, with its floor if it has one.
    pub fn named(name: &'m str) -> Self {
        let known = MEASURES.into_iter().find(|one| one.name == name);
        known.unwrap_or(Self { name, floor: 0.0 })
    }

    /// The words for people.
    pub fn words(&self) -> &'m str {
        words_of(self.name)
    }

    /// Its value in a run. Without a floor, 0 is left out because it has no ratio.
    pub fn read(&self, run: &RunResult) -> Option<f64> {
        values::run_value(run, self.name).filter(|value| *value > 0.0 || self.floor > 0.0)
    }

    fn summary(&self, runs: &[&RunResult]) -> Option<Summary> {
        let values: Vec<f64> = runs.iter().filter_map(|run| self.read(run)).collect();
        let summary = Summary::of(&values);
        (summary.count > 0).then_some(summary)
    }
}

/// Where a model's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Within the kernel's own range.
    Inside,
    /// Outside of it, but equal to the kernel's median within [`MARGIN`].
    Equal,
    /// Outside of both.
    Outside,
    /// One run of the kernel has no range.
    Unknown,
}

impl Place {
    /// The word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Equal => "equal",
            Self::Outside => "OUTSIDE",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a model there agrees with its kernel.
    pub const fn agrees(self) -> bool {
        matches!(self, Self::Inside | Self::Equal)
    }
}

/// One measure of a model and its kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Against<'m> {
    /// The measure.
    pub measure: Measure<'m>,
    /// The model's value: the median of its runs.
    pub model: f64,
    /// The kernel's values.
    pub kernel: Summary,
}

impl<'m> Against<'m> {
    /// Compares runs of a model with those of its kernel. `None` if a side lacks the measure, the
    /// kernel's median is 0, or both are below the measure's floor.
    pub fn of(measure: Measure<'m>, model: &[&RunResult], kernel: &[&RunResult]) -> Option<Self> {
        let model = measure.summary(model)?.median;
        let kernel = measure.summary(kernel)?;
        let counts = model.max(kernel.median) >= measure.floor;
        (kernel.median > 0.0 && counts).then_some(Self { measure, model, kernel })
    }

    /// The model's value divided by the median of the kernel's.
    pub fn ratio(&self) -> f64 {
        self.model / self.kernel.median
    }

    /// The ends of the kernel's own range, divided by its median; `None` with one run.
    pub fn range(&self) -> Option<[f64; 2]> {
        let ends = [self.kernel.min, self.kernel.max].map(|end| end / self.kernel.median);
        (self.kernel.count > 1).then_some(ends)
    }

    /// Where the model's value is.
    pub fn place(&self) -> Place {
        match self.kernel.count {
            0 | 1 => Place::Unknown,
            _ if (self.kernel.min..=self.kernel.max).contains(&self.model) => Place::Inside,
            _ if (1.0 / (1.0 + MARGIN)..=1.0 + MARGIN).contains(&self.ratio()) => Place::Equal,
            _ => Place::Outside,
        }
    }
}

/// Runs of a model and of its kernel, in several measures.
#[derive(Clone, Debug)]
pub struct ModelAndKernel<'m> {
    /// The measures that both have.
    pub measures: Vec<Against<'m>>,
    /// Number of the kernel's runs.
    pub nr_runs: usize,
    /// Number of these that other programs or the hypervisor disturbed.
    pub nr_disturbed: usize,
}

impl<'m> ModelAndKernel<'m> {
    /// Compares runs of a model with those of its kernel.
    pub fn of(
        measures: impl IntoIterator<Item = Measure<'m>>,
        model: &[&RunResult],
        kernel: &[&RunResult],
    ) -> Self {
        let of = |measure| Against::of(measure, model, kernel);
        Self {
            measures: measures.into_iter().filter_map(of).collect(),
            nr_runs: kernel.len(),
            nr_disturbed: kernel.iter().filter(|run| is_disturbed(run)).count(),
        }
    }

    /// How exact the comparison is, in sentences. Without a range they say how to get one.
    pub fn sentences(&self) -> Vec<String> {
        let (nr_runs, of) = (self.nr_runs, self.measures.len());
        let mut sentences = if nr_runs < 2 {
            vec![
                "One run of the kernel does not show how much it varies by itself, so the \
                 uncertainty is unknown: add --repetitions 5."
                    .into(),
            ]
        } else {
            let agree = self.measures.iter().filter(|one| one.place().agrees()).count();
            let own = 100.0 * (nr_runs - 1) as f64 / (nr_runs + 1) as f64;
            vec![
                format!(
                    "The model is inside the range of the kernel's {nr_runs} runs, or within 1 % \
                     of their median, in {agree} of {of} measures."
                ),
                format!("Another run of the kernel itself is inside in about {own:.0} % of them."),
            ]
        };
        if self.nr_disturbed > 0 {
            let runs = if nr_runs == 1 { "run" } else { "runs" };
            sentences.push(format!(
                "Other programs disturbed {} of {nr_runs} {runs} of the kernel: a difference may \
                 be theirs.",
                self.nr_disturbed
            ));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::Warning;

    fn runs(responses: &[u64]) -> Vec<RunResult> {
        let run = |response: &u64| {
            let mut run = RunResult::default();
            run.measures.totals.response_ns_mean = Some(*response);
            run.measures.totals.nr_switches = 3;
            run
        };
        responses.iter().map(run).collect()
    }

    fn compared(model: &[u64], kernel: &[u64]) -> ModelAndKernel<'static> {
        of_runs(&runs(model), &runs(kernel))
    }

    fn of_runs(model: &[RunResult], kernel: &[RunResult]) -> ModelAndKernel<'static> {
        let [model, kernel] = [model, kernel].map(|runs| runs.iter().collect::<Vec<_>>());
        ModelAndKernel::of(MEASURES, &model, &kernel)
    }

    #[test]
    fn a_model_is_inside_or_outside_of_the_kernels_own_range() {
        let one = |model: &[u64], kernel: &[u64]| compared(model, kernel).measures[0];
        let kernel = [400_000, 500_000, 600_000];
        let found = one(&[550_000], &kernel);
        assert_eq!((found.place(), found.ratio()), (Place::Inside, 1.1));
        assert_eq!(found.range(), Some([0.8, 1.2]));
        assert_eq!(one(&[600_000], &kernel).place(), Place::Inside, "ends belong to it");
        assert_eq!(one(&[600_001], &kernel).place(), Place::Outside);
        assert_eq!(one(&[399_999], &kernel).place(), Place::Outside);
        assert_eq!(one(&[505_000], &[500_000; 3]).place(), Place::Equal, "1 %");
        assert_eq!(one(&[506_000], &[500_000; 3]).place(), Place::Outside);
        let medians = one(&[1, 500_000, 9_000_000], &kernel);
        assert_eq!((medians.place(), medians.model), (Place::Inside, 500_000.0));
    }

    #[test]
    fn one_run_of_the_kernel_leaves_the_uncertainty_unknown() {
        let found = compared(&[500_000], &[500_000]);
        assert_eq!(found.measures[0].place(), Place::Unknown);
        assert_eq!(found.measures[0].range(), None);
        let text = found.sentences().join(" ");
        assert!(text.contains("unknown: add --repetitions 5"), "{text}");
    }

    #[test]
    fn the_text_says_how_often_the_kernel_itself_is_inside() {
        let text =
            compared(&[500_000], &[400_000, 450_000, 600_000, 500_000]).sentences().join(" ");
        assert!(text.contains("range of the kernel's 4 runs, or within"), "{text}");
        assert!(text.contains("inside in about 60 %"), "{text}");
        assert!(!text.contains("disturbed"), "{text}");
    }

    #[test]
    fn disturbed_runs_are_counted() {
        let model = runs(&[500_000]);
        let mut kernel = runs(&[500_000, 900_000]);
        kernel[1].warnings.push(Warning::other_load(12, 34));
        let text = of_runs(&model, &kernel).sentences().join(" ");
        assert!(text.contains("disturbed 1 of 2 runs"), "{text}");
    }

    #[test]
    fn next_to_nothing_is_left_out() {
        assert!(compared(&[2_000], &[99_000, 98_000]).measures.is_empty());
        assert_eq!(compared(&[2_000], &[100_000, 100_000]).measures[0].ratio(), 0.02);
        let mut none = runs(&[0]);
        none[0].measures.totals.response_ns_mean = None;
        let measure = Measure::named("response_ns_mean");
        assert_eq!(Against::of(measure, &[&none[0]], &[&none[0]]), None);
    }
}
