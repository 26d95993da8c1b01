// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file with the costs of a modelled machine.
//!
//! It has one `name = nanoseconds` per line. `#` begins a comment. Costs that are not named keep
//! their defaults. `schedlab calibrate --output` writes such a file.

use crate::place::allowed_words;
use schedlab_model::{Costs, Nanos};

/// Largest single cost: a second. A larger value is probably in the wrong unit.
const COST_NS_MAX: Nanos = 1_000_000_000;

/// Reads a costs file. The error contains the line's number.
pub fn parse(text: &str) -> Result<Costs, (usize, String)> {
    let mut costs = Costs::DEFAULT;
    let mut seen: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |text: String| (index + 1, text);
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (name, value) =
            line.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(
                || wrong(format!("{line:?} is not of the form `name = nanoseconds`")),
            )?;
        let field = costs.field_mut(name).ok_or_else(|| {
            wrong(format!("no cost is called {name:?}: {}", allowed_words(name, &Costs::NAMES)))
        })?;
        *field = value.parse().ok().filter(|ns| *ns <= COST_NS_MAX).ok_or_else(|| {
            wrong(format!("{name} is {value:?}, allowed are whole numbers, 0 to {COST_NS_MAX}"))
        })?;
        if seen.contains(&name) {
            return Err(wrong(format!("{name} is given twice: give it once")));
        }
        seen.push(name);
    }
    Ok(costs)
}

/// Formats a costs file with a remark for each cost.
pub fn format(costs: &Costs, head: &str, remark: impl Fn(&str) -> String) -> String {
    let mut text: String = head.lines().map(|line| format!("# {line}\n")).collect();
    for name in Costs::NAMES {
        let value = costs.field(name).unwrap_or_default();
        text += &format!("{name} = {value}  # {}\n", remark(name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costs_file_reads_back() {
        let mut costs = Costs::ZERO;
        costs.fork_ns = 77;
        assert_eq!(
            parse(&format(&costs, "two\nlines", |name| format!("{name} = 5"))).unwrap(),
            costs
        );
        let partial = parse("tick_ns=5 # mine\n\n").unwrap();
        assert_eq!((partial.tick_ns, partial.fork_ns), (5, Costs::DEFAULT.fork_ns));
    }

    #[test]
    fn mistakes_are_shown_with_their_line() {
        let error = |text| parse(text).unwrap_err();
        assert_eq!(error("tick_ns = 1\ntik_ns = 1").0, 2);
        assert!(error("tik_ns = 1").1.contains("did you mean `tick_ns`?"));
        assert!(error("tick_ns = 1us").1.contains("allowed are whole numbers"));
        assert!(error("tick_ns = 1\ntick_ns = 2").1.contains("twice"));
        assert!(error("tick_ns").1.contains("name = nanoseconds"));
        assert!(error("tick_ns = 1000000001").1.contains("0 to 1000000000"));
    }
}
