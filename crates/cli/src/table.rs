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

/// A table that fits its terminal: where it is too wide, its last columns are left out and named
/// below it. In a pipe all columns stay.
pub struct Fitted {
    heads: Vec<String>,
    rows: Vec<Vec<Cell>>,
    /// Columns that always stay, from the first.
    nr_kept: usize,
}

impl Fitted {
    /// A table with these heads, the most important first, whose first `nr_kept` columns stay.
    pub fn new<H: Into<String>>(heads: impl IntoIterator<Item = H>, nr_kept: usize) -> Self {
        Self { heads: heads.into_iter().map(Into::into).collect(), rows: Vec::new(), nr_kept }
    }

    /// The same with all columns, which somebody has chosen.
    #[must_use]
    pub fn with_all_kept(mut self) -> Self {
        self.nr_kept = usize::MAX;
        self
    }

    /// Adds a row.
    pub fn add(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
        debug_assert_eq!(self.rows.last().map(Vec::len), Some(self.heads.len()));
    }

    /// The table as text.
    pub fn render(&self) -> String {
        self.render_within(Table::new().width().map(usize::from))
    }

    fn render_within(&self, width: Option<usize>) -> String {
        let mut nr_shown = self.heads.len();
        loop {
            let text = self.first_columns(nr_shown);
            let is_wide = |width| text.lines().any(|line| line.chars().count() > width);
            if nr_shown <= self.nr_kept || !width.is_some_and(is_wide) {
                let hidden = &self.heads[nr_shown..];
                return match hidden.is_empty() {
                    true => text,
                    false => format!(
                        "{text}\n left out, for want of width: {} (--columns chooses)",
                        hidden.join(", ")
                    ),
                };
            }
            nr_shown -= 1;
        }
    }

    fn first_columns(&self, count: usize) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.heads.iter().take(count).map(Cell::new));
        for row in &self.rows {
            table.add_row(row.iter().take(count).cloned());
        }
        render(&table)
    }
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

/// A time since the start of the run, to the microsecond: `--from` and `--to` take it.
pub fn moment(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns / 1_000 % 1_000_000)
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
    fn a_narrow_terminal_gets_fewer_columns_and_no_broken_words() {
        let mut table = Fitted::new(["scheduler", "turnaround", "switches", "Jain"], 2);
        table.add(["linux-6.12", "88.70 ms", "26.00", "1.000"].map(number));
        let whole = table.render_within(None);
        assert!(whole.contains("Jain") && whole.lines().count() == 2, "{whole}");
        assert_eq!(table.render_within(Some(80)), whole);
        let narrow = table.render_within(Some(36));
        assert!(narrow.contains("switches") && !narrow.contains("1.000"), "{narrow}");
        assert!(narrow.ends_with("left out, for want of width: Jain (--columns chooses)"));
        assert!(table.render_within(Some(5)).contains("88.70 ms"), "the first two stay");
        assert_eq!(table.with_all_kept().render_within(Some(5)), whole);
    }

    #[test]
    fn durations_keep_four_digits() {
        let shown = [0, 999, 1_000, 12_345, 123_456_789, 1_500_000_000, 4_000_000_000_000]
            .map(duration)
            .join(", ");
        assert_eq!(shown, "0 ns, 999 ns, 1.000 us, 12.35 us, 123.5 ms, 1.500 s, 4000 s");
        assert_eq!([0, 1_203_456_789].map(moment), ["0.000000 s", "1.203456 s"]);
        assert_eq!(maybe_duration(None), "-");
        assert_eq!(percent(0.2504), "25.0 %");
    }
}
