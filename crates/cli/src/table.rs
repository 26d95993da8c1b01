// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for people.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use std::io::IsTerminal;

/// A table with these heads; on a terminal it keeps to its width, in a pipe lines stay whole.
pub fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(heads.iter().map(Cell::new));
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    } else {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table
}

/// A cell for a number.
pub fn number(text: impl ToString) -> Cell {
    Cell::new(text.to_string()).set_alignment(CellAlignment::Right)
}

/// A table as text without blanks at the ends of its lines.
pub fn render(table: &Table) -> String {
    let lines: Vec<String> =
        table.to_string().lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n")
}

/// A duration for people: three or four digits and a unit.
pub fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", digits(value / 1e6)),
        _ => format!("{} s", digits(value / 1e9)),
    }
}

/// A duration that may not have happened.
pub fn maybe_duration(ns: Option<u64>) -> String {
    or_dash(ns, duration)
}

/// A value that a run may lack, as `show` gives it.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

/// Four significant digits.
pub fn digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1000.0 || magnitude == 0.0 {
        format!("{value:.0}")
    } else if magnitude >= 100.0 {
        format!("{value:.1}")
    } else if magnitude >= 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// A count with its word: "1 CPU", "2 CPUs".
pub fn counted(count: impl Into<u64>, one: &str, many: &str) -> String {
    let count = count.into();
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A part of one as a percentage.
pub fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_four_digits() {
        let shown = [0, 999, 1_000, 12_345, 123_456_789, 1_500_000_000, 4_000_000_000_000]
            .map(duration)
            .join(", ");
        assert_eq!(shown, "0 ns, 999 ns, 1.000 us, 12.35 us, 123.5 ms, 1.500 s, 4000 s");
        assert_eq!(maybe_duration(None), "-");
        assert_eq!(percent(0.2504), "25.0 %");
    }
}
