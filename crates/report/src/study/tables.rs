// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of a study: our numbers next to published ones; every run opens with a click.

use crate::fold::folded;
use crate::html::{escape, slug};
use crate::number::{count, significant};
use schedlab_lab::claims::Found;
use schedlab_lab::redrawn::{DrawnRow, DrawnTable};
use std::fmt::Write as _;

/// An empty cell: nothing was measured, or the other data has no such row.
const NONE: &str = "<td class=\"num none\">\u{2013}</td>";

/// Id of a table in the page.
pub fn table_id(table: &DrawnTable) -> String {
    format!("table-{}", slug(&table.id))
}

/// A table as HTML.
pub fn table(table: &DrawnTable) -> String {
    let mut out = format!(
        "<div class=\"study-table\" id=\"{}\">\n<h4>{}. {}</h4>\n",
        table_id(table),
        escape(&table.id),
        escape(&table.title)
    );
    for paragraph in table.text.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escape(paragraph.trim()));
    }
    if table.columns.is_empty() {
        others(&mut out, table);
        out += "</div>\n";
        return out;
    }
    out += "<div class=\"scroll\"><table>\n<thead>";
    head(&mut out, table);
    out += "</thead>\n<tbody>\n";
    let mut last = "";
    for row in &table.rows {
        // Print a label once for all its places.
        let label = if row.label == last { "" } else { row.label.as_str() };
        last = &row.label;
        body_row(&mut out, table, row, label);
    }
    out += "</tbody></table></div>\n";
    if table.has_raw {
        raw(&mut out, table);
    }
    out += "</div>\n";
    out
}

/// Writes published data alone, in a small table for each source.
fn others(out: &mut String, table: &DrawnTable) {
    *out += "<div class=\"others\">\n";
    for (number, (source, columns)) in table.references.iter().enumerate() {
        let _ = write!(
            out,
            "<div><h5>{}</h5><div class=\"scroll\"><table>\n<thead><tr><th></th><th></th>",
            escape(source)
        );
        for column in columns {
            let _ = write!(out, "<th class=\"num\">{}</th>", escape(column));
        }
        *out += "</tr></thead>\n<tbody>\n";
        let mut last = "";
        for row in &table.rows {
            let Some(Some(values)) = row.references.get(number) else { continue };
            let label = if row.label == last { "" } else { row.label.as_str() };
            last = &row.label;
            let _ = write!(out, "<tr><th>{}</th><td>{}</td>", escape(label), escape(&row.place));
            for value in values {
                let _ = write!(out, "<td class=\"num\">{}</td>", plain(*value));
            }
            *out += "</tr>\n";
        }
        *out += "</tbody></table></div></div>\n";
    }
    *out += "</div>\n";
}

/// A published value as printed: counts as whole numbers.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        return count(value as u64);
    }
    significant(value)
}

fn head(out: &mut String, table: &DrawnTable) {
    if !table.references.is_empty() {
        *out += "<tr class=\"sources\"><th></th><th></th>";
        let _ = write!(out, "<th colspan=\"{}\">here</th>", table.columns.len());
        for (source, columns) in &table.references {
            let _ = write!(
                out,
                "<th class=\"other\" colspan=\"{}\">{}</th>",
                columns.len(),
                escape(source)
            );
        }
        *out += "</tr>";
    }
    *out += "<tr><th></th><th>under</th>";
    for column in &table.columns {
        let _ = write!(out, "<th class=\"num\">{}</th>", escape(column));
    }
    for (_, columns) in &table.references {
        for (index, column) in columns.iter().enumerate() {
            let other = if index == 0 { " other" } else { "" };
            let _ = write!(out, "<th class=\"num{other}\">{}</th>", escape(column));
        }
    }
    *out += "</tr>";
}

fn body_row(out: &mut String, table: &DrawnTable, row: &DrawnRow, label: &str) {
    let begins = if label.is_empty() { "" } else { " class=\"begins\"" };
    let _ = write!(out, "<tr{begins}><th>{}</th><td>{}</td>", escape(label), escape(&row.place));
    for cell in &row.cells {
        *out += &cell.as_ref().map_or_else(|| NONE.into(), number);
    }
    for (values, (_, columns)) in row.references.iter().zip(&table.references) {
        for index in 0..columns.len() {
            let other = if index == 0 { " other" } else { "" };
            match values.as_ref().and_then(|values| values.get(index)) {
                Some(value) => {
                    let _ = write!(out, "<td class=\"num{other}\">{}</td>", plain(*value));
                }
                None => {
                    let _ = write!(out, "<td class=\"num none{other}\">\u{2013}</td>");
                }
            }
        }
    }
    *out += "</tr>\n";
}

/// A number, with half the width of its interval if it has one.
fn number(found: &Found) -> String {
    let half = found.ci95.map(|[low, high]| (high - low) / 2.0).filter(|half| *half > 0.0);
    let spread = half.map_or_else(String::new, |half| {
        format!(" <span class=\"lane\">\u{b1}\u{a0}{}</span>", significant(half))
    });
    let is_sure = half.is_none() && (found.is_exact || found.ci95.is_some());
    let value = if is_sure { plain(found.value) } else { significant(found.value) };
    format!("<td class=\"num\">{value}{spread}</td>")
}

/// Writes every run, as in the study's appendix.
fn raw(out: &mut String, table: &DrawnTable) {
    let mut html = String::from(
        "<p>Wall, user and system time (s), CPU use, involuntary and voluntary switches; a line \
         for each repetition.</p>\n<div class=\"raw-cells\">\n",
    );
    for row in table.rows.iter().filter(|row| !row.raw.is_empty()) {
        let _ = writeln!(
            html,
            "<div><h5>{}, {}</h5><pre>{}</pre></div>",
            escape(&row.label),
            escape(&row.place),
            escape(&row.raw.join("\n").replace('\t', ""))
        );
    }
    html += "</div>";
    *out += &folded(" class=\"raw\"", "Raw data: every run", html);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> DrawnTable {
        let found = Found { value: 15.26, ci95: Some([15.0, 15.52]), ..Found::default() };
        let row = |place: &str, cell, references| DrawnRow {
            label: "CPU <light>".into(),
            place: place.into(),
            cells: vec![cell, None],
            references,
            raw: vec!["15.26\t 60.15".into()],
        };
        DrawnTable {
            id: "S2-T1".into(),
            title: "27 cells".into(),
            text: String::new(),
            claims: Vec::new(),
            columns: vec!["wall (s)".into(), "user (s)".into()],
            references: vec![("D. M.".into(), vec!["wall (s)".into(), "CPU (%)".into()])],
            rows: vec![
                row("OTHER", Some(found), vec![Some(vec![14.5, 394.0])]),
                row("FIFO", None, vec![None]),
            ],
            has_raw: true,
        }
    }

    #[test]
    fn our_numbers_stand_beside_those_of_others() {
        let html = table(&drawn());
        assert!(html.contains("15.3 <span class=\"lane\">\u{b1}\u{a0}0.260</span>"), "{html}");
        assert!(html.contains("colspan=\"2\">D. M.</th>") && html.contains(">394</td>"));
        assert_eq!(html.matches("CPU &lt;light&gt;</th>").count(), 1, "a label once");
        assert!(html.contains("<pre>15.26 60.15</pre>"), "{html}");
        let others = table(&DrawnTable { columns: Vec::new(), ..drawn() });
        assert!(others.contains("<h5>D. M.</h5>") && others.contains(">394</td>"), "{others}");
    }
}
