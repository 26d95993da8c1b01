// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables and values for people.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use std::io::IsTerminal;

/// A table with these headings. On a terminal it fits the width; in a pipe, lines stay whole.
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

/// A table that fits its terminal. If it is too wide, it drops its last columns and names them
/// below. In a pipe it keeps all columns.
pub struct Fitted {
    heads: Vec<String>,
    rows: Vec<Vec<Cell>>,
    /// Number of first columns that always stay.
    nr_kept: usize,
}

impl Fitted {
    /// A table with these headings, the most important first. The first `nr_kept` columns always
    /// stay.
    pub fn new<H: Into<String>>(heads: impl IntoIterator<Item = H>, nr_kept: usize) -> Self {
        Self { heads: heads.into_iter().map(Into::into).collect(), rows: Vec::new(), nr_kept }
    }

    /// Keeps all columns, because the user chose them.
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

    /// The table as Markdown of GitHub, with all columns.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let alignment = |cell: &Cell| {
            let is_number = *cell == number(cell.content());
            (if is_number { "---:" } else { "---" }).to_owned()
        };
        let mut lines = vec![line(self.heads.iter().map(|head| markdown_text(head)).collect())];
        let columns = match self.rows.first() {
            Some(row) => row.iter().map(alignment).collect(),
            None => vec!["---".to_owned(); self.heads.len()],
        };
        lines.push(line(columns));
        for row in &self.rows {
            lines.push(line(row.iter().map(|cell| markdown_text(&cell.content())).collect()));
        }
        lines.join("\n")
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

/// Escapes everything in `text` that Markdown would obey, and puts it on one line. Names come from
/// untrusted files.
pub fn markdown_text(text: &str) -> String {
    let mut output = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => output.push(' '),
            '&' => output.push_str("&amp;"),
            '<' => output.push_str("&lt;"),
            '@' => output.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '$' | '>' => {
                output.extend(['\\', letter]);
            }
            _ => output.push(letter),
        }
    }
    output
}

/// Preformatted text in Markdown: an indented block, which no line of the text can end.
pub fn markdown_block(text: &str) -> String {
    let lines: Vec<String> = text.trim_matches('\n').lines().map(|l| format!("    {l}")).collect();
    lines.join("\n")
}

/// A table as text without trailing blanks.
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

/// A time since the start of the run, to the microsecond, in the form that `--from` and `--to`
/// read.
pub fn moment(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns / 1_000 % 1_000_000)
}

/// A duration, or a dash without one.
pub fn maybe_duration(ns: Option<u64>) -> String {
    or_dash(ns, duration)
}

/// A value formatted by `show`, or a dash if the run lacks it.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

/// Formats a number with four significant digits.
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

/// A count with its noun: "1 CPU", "2 CPUs".
pub fn counted(count: impl Into<u64>, one: &str, many: &str) -> String {
    let count = count.into();
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A fraction of one as a percentage.
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
    fn a_table_of_markdown_obeys_no_name() {
        let mut table = Fitted::new(["scheduler", "p99"], 1);
        table.add([Cell::new("a|b`<i>\n[x](y) @me"), number("88.70 ms")]);
        let want = "| scheduler | p99 |\n| --- | ---: |\n\
                    | a\\|b\\`&lt;i\\> \\[x\\](y) &#64;me | 88.70 ms |";
        assert_eq!(table.markdown(), want);
        assert_eq!(markdown_block("\na\n```\n"), "    a\n    ```");
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
