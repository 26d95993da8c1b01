// SPDX-License-Identifier: MIT OR Apache-2.0
//! The assignment file: what is asked of a scheduler, and how many points each test gives.

use schedlab_core::{Request, validate};
use schedlab_run::values::measure_names;
use serde::Deserialize;

/// Most tests of an assignment.
const TESTS_MAX: usize = 100;

/// Most seeds of a test, and most random cases.
const SEEDS_MAX: u64 = 10_000;

/// An assignment.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Title.
    pub title: String,
    /// What students are asked to do; for people only.
    #[serde(default)]
    pub text: String,
    /// The tests, each with its points.
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
}

/// A test.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// Name, unique in the assignment.
    pub name: String,
    /// Points of a scheduler that passes; one that does not has none.
    pub points: u32,
    /// The workload: a built-in with its parameters, or the text of a workload file. Absent with
    /// `cases`.
    pub workload: Option<String>,
    /// CPUs; in random cases the most of them.
    #[serde(default = "one")]
    pub cpus: u32,
    /// When runs end, with a unit; absent: as the workload says.
    pub until: Option<String>,
    /// Seeds, each of which is a run. Default: 1 alone.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// The slices must be those of this scheduler.
    pub same_slices_as: Option<String>,
    /// A measure must be within bounds.
    pub measure: Option<String>,
    /// The scheduler whose measure the bounds multiply; absent: the bounds are values.
    pub relative_to: Option<String>,
    /// Largest value, or largest multiple.
    pub at_most: Option<f64>,
    /// Smallest value, or smallest multiple.
    pub at_least: Option<f64>,
    /// So many random cases must break no rule that every run must keep.
    pub cases: Option<u64>,
}

fn one() -> u32 {
    1
}

/// What a test judges.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind<'t> {
    /// The slices of every run are those of this scheduler.
    SameSlices(&'t str),
    /// A measure is within bounds.
    Measure(&'t str),
    /// So many random cases break no rule.
    Cases(u64),
}

impl Test {
    /// What it judges.
    ///
    /// # Errors
    /// If it names no such thing, or several.
    pub fn kind(&self) -> Result<Kind<'_>, String> {
        let (slices, measure) = (self.same_slices_as.as_deref(), self.measure.as_deref());
        match (slices, measure, self.cases) {
            (Some(name), None, None) => Ok(Kind::SameSlices(name)),
            (None, Some(name), None) => Ok(Kind::Measure(name)),
            (None, None, Some(count)) => Ok(Kind::Cases(count)),
            _ => Err("give one of same_slices_as, measure and cases".into()),
        }
    }

    /// Its seeds.
    pub fn seeds(&self) -> &[u64] {
        if self.seeds.is_empty() { &[1] } else { &self.seeds }
    }

    /// The run of `scheduler` with `seed`: no costs, as in textbooks.
    pub fn request(&self, scheduler: &str, seed: u64) -> Request {
        let mut request = Request::new(self.workload.clone().unwrap_or_default(), scheduler);
        request.cpus = Some(self.cpus);
        request.costs = Some("zero".into());
        request.until.clone_from(&self.until);
        request.seed = seed;
        request.keep.slices = self.same_slices_as.is_some();
        request
    }

    fn check(&self) -> Result<(), String> {
        let kind = self.kind()?;
        if matches!(kind, Kind::Cases(_)) != self.workload.is_none() {
            return Err("a test has a workload, or random cases".into());
        }
        if self.seeds.len() as u64 > SEEDS_MAX {
            return Err(format!("it has {} seeds: allowed are {SEEDS_MAX}", self.seeds.len()));
        }
        let has_bounds = self.at_most.is_some() || self.at_least.is_some();
        if matches!(kind, Kind::Measure(_)) != has_bounds {
            return Err("at_most and at_least belong to a measure, which needs one of them".into());
        }
        let mut others: Vec<&str> = self.relative_to.iter().map(String::as_str).collect();
        match kind {
            Kind::SameSlices(name) => others.push(name),
            Kind::Measure(name) if !measure_names().iter().any(|known| known == name) => {
                return Err(format!(
                    "there is no measure {name}: `schedlab list measures` shows them"
                ));
            }
            Kind::Measure(_) => others.push("fcfs"),
            Kind::Cases(0) => return Err("cases is 0: allowed is 1 and more".into()),
            Kind::Cases(count) if count > SEEDS_MAX => {
                return Err(format!("cases is {count}: allowed are {SEEDS_MAX}"));
            }
            Kind::Cases(_) => return Ok(()),
        }
        // A run under any scheduler shows whether the workload and its settings can be read.
        for name in others {
            validate(&self.request(name, 1)).map_err(|error| error.one_line())?;
        }
        Ok(())
    }
}

impl Assignment {
    /// Reads an assignment.
    ///
    /// # Errors
    /// If the text is no assignment, or names a scheduler, a workload or a measure that does not
    /// exist. The error names the test.
    pub fn read(text: &str) -> Result<Self, String> {
        let read: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if read.tests.is_empty() || read.tests.len() > TESTS_MAX {
            let count = read.tests.len();
            return Err(format!("the assignment has {count} tests: allowed are 1 to {TESTS_MAX}"));
        }
        for (index, test) in read.tests.iter().enumerate() {
            if read.tests[..index].iter().any(|other| other.name == test.name) {
                return Err(format!("two tests are called {:?}", test.name));
            }
            test.check().map_err(|error| format!("test {:?}: {error}", test.name))?;
        }
        Ok(read)
    }

    /// Points of a scheduler that passes all tests.
    pub fn points(&self) -> u32 {
        self.tests.iter().map(|test| test.points).sum()
    }
}
