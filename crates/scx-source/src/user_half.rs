// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shows that a scheduler's user program sets it up before it attaches it.
//!
//! An object does not tell. Two signs give no false alarm among the published schedulers:
//! tables of constants without a value, which only a user program can fill, and the names of
//! schedulers whose user program is known to set options. Single constants of 0 are no sign: most
//! are switches that are off.

use std::fmt;

/// Names (`sched_ext_ops.name`) of published schedulers whose user program sets them up.
pub const SET_UP_BY_USER_PROGRAM: &[&str] = &[
    "beerland", "bpfland", "cake", "chaos", "cosmos", "flash", "forge", "lavd", "layered",
    "mitosis", "p2dq", "pair", "rusty", "tickless",
];

/// Most tables that a message names.
const NAMES_MAX: usize = 4;

/// What is missing if a scheduler runs without its user program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MissingSetup {
    /// Tables of constants that have no value, by name.
    pub tables: Vec<String>,
    /// Whether it is one of [`SET_UP_BY_USER_PROGRAM`].
    pub is_known: bool,
}

impl MissingSetup {
    /// What the scheduler called `name` misses, whose tables without a value are `tables`; `None`:
    /// nothing is known to be missing.
    pub fn of(name: &str, tables: Vec<String>) -> Option<Self> {
        let is_known = SET_UP_BY_USER_PROGRAM.contains(&name);
        (is_known || !tables.is_empty()).then_some(Self { tables, is_known })
    }
}

/// `cpu_capacity, preferred_cpus and 2 more tables are empty`, or that options have the values of
/// the source.
impl fmt::Display for MissingSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nr = self.tables.len();
        let shown = self.tables[..nr.min(NAMES_MAX)].join(", ");
        match nr {
            0 => f.write_str("its options have the values of the source"),
            1 => write!(f, "its table {shown} is empty"),
            _ if nr > NAMES_MAX => {
                write!(f, "its tables {shown} and {} more are empty", nr - NAMES_MAX)
            }
            _ => write!(f, "its tables {shown} are empty"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_tables_and_known_names_are_signs() {
        let tables = |nr: usize| (0..nr).map(|nth| format!("t{nth}")).collect::<Vec<_>>();
        assert_eq!(MissingSetup::of("simple", Vec::new()), None);
        let text = |name, nr| MissingSetup::of(name, tables(nr)).unwrap().to_string();
        assert_eq!(text("flash", 0), "its options have the values of the source");
        assert_eq!(text("pair", 1), "its table t0 is empty");
        assert_eq!(text("bpfland", 2), "its tables t0, t1 are empty");
        assert_eq!(text("x", 7), "its tables t0, t1, t2, t3 and 3 more are empty");
    }
}
