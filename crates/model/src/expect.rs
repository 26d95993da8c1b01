// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expected results of a workload, so that a workload file can be a test.

/// How a measure is compared with a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    Greater,
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Self; 5] =
        [Self::Less, Self::AtMost, Self::Equal, Self::AtLeast, Self::Greater];

    /// The operator, as in `<=`.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::AtLeast => ">=",
            Self::Greater => ">",
        }
    }

    /// Whether `found` is less than, equal to ... `value`, as this comparison requires.
    pub const fn holds(self, found: i128, value: i128) -> bool {
        match self {
            Self::Less => found < value,
            Self::AtMost => found <= value,
            Self::Equal => found == value,
            Self::AtLeast => found >= value,
            Self::Greater => found > value,
        }
    }
}

/// Which tasks an expectation is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Subject {
    /// The whole run.
    Total,
    /// Every task of a description, by the description's name (`name`); or one instance, by its own
    /// name (`name-3`).
    Task(String),
}

/// An assertion about a measure in the results. [`crate::Workload::check`] checks that a named task
/// exists. Only the crate metrics knows whether the measure exists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Expectation {
    /// Whose measure it is.
    pub subject: Subject,
    /// Name of the measure as in docs/reference/measures.md, such as `run_delay_ns_p99`.
    pub measure: String,
    /// The comparison. The measure is its left side.
    pub comparison: Comparison,
    /// The right side, in millionths of the measure's unit. An integer, because a float would not
    /// be exact.
    pub value_millionths: i128,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_what_their_signs_say() {
        let holds = |found| Comparison::ALL.map(|comparison| comparison.holds(found, 5));
        assert_eq!(holds(4), [true, true, false, false, false]);
        assert_eq!(holds(5), [false, true, true, true, false]);
        assert_eq!(holds(6), [false, false, false, true, true]);
    }
}
