// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a workload expects of its results, so that a file is a test.

/// How a measure is compared with the value.
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

    /// The sign.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::AtLeast => ">=",
            Self::Greater => ">",
        }
    }

    /// Whether `found` stands in this relation to `value`.
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

/// Of what a measure is expected.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Subject {
    /// Of the whole run.
    Total,
    /// Of every task of a description, by the description's name, or of one instance, by its own
    /// (`name-3`).
    Task(String),
}

/// An assertion on a measure of the results. Whether the measure exists is for those to say who
/// know the measures; [`crate::Workload::check`] checks that a named task exists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Expectation {
    /// Of what.
    pub subject: Subject,
    /// Name of the measure as in docs/reference/measures.md, such as `run_delay_ns_p99`.
    pub measure: String,
    /// Comparison, the measure on its left.
    pub comparison: Comparison,
    /// The value on its right, in millionths of the measure's unit: exact where a float is not.
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
