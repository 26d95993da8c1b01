// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a study: panels in the frame that every figure of the report has.

use super::panels::study_chart;
use super::tables::table_id;
use super::verdicts::claim_link;
use crate::claims::FiguresOf;
use crate::error::ReportError;
use crate::figure::{Figure, Table};
use crate::html::slug;
use crate::number::significant;
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::redrawn::{Drawn, DrawnKind, DrawnTable};
use serde::Serialize;
use serde_json::json;

/// Width of a figure's panels side by side, and of one panel on a phone.
const WIDE: f64 = 1040.0;
const NARROW: f64 = 340.0;

#[derive(Serialize)]
struct Data {
    table: Table,
}

fn id_of(drawn: &Drawn) -> String {
    format!("figure-{}", slug(&drawn.id))
}

/// Renders the figures of a study that have a panel; `number` continues the numbering.
pub fn study_figures<'d>(
    figures: impl Iterator<Item = &'d Drawn>,
    claims: &[ClaimResult],
    number: &mut usize,
) -> Result<String, ReportError> {
    let mut out = String::new();
    for drawn in figures {
        *number += 1;
        out += &figure(drawn, claims).render(*number, &Data { table: table(drawn) })?;
    }
    Ok(out)
}

/// The figures as files, with their names.
pub fn figure_files(figures: &[Drawn]) -> Vec<(String, String)> {
    let with_panels = figures.iter().filter(|drawn| !drawn.panels.is_empty());
    let file = |drawn: &Drawn| {
        let chart = study_chart(drawn);
        (format!("study-{}", slug(&drawn.id)), chart.file(WIDE / chart.columns as f64))
    };
    with_panels.map(file).collect()
}

/// Ids of the figures and tables behind each claim.
pub fn of_claims<'d>(
    figures: impl Iterator<Item = &'d Drawn>,
    tables: impl Iterator<Item = &'d DrawnTable>,
) -> FiguresOf {
    let mut all = FiguresOf::new();
    let figures = figures.map(|drawn| (id_of(drawn), &drawn.id, &drawn.claims));
    let tables = tables.map(|table| (table_id(table), &table.id, &table.claims));
    for (id, name, claims) in figures.chain(tables) {
        for claim in claims {
            all.entry(claim.clone()).or_default().push((id.clone(), name.clone()));
        }
    }
    all
}

fn figure(drawn: &Drawn, claims: &[ClaimResult]) -> Figure {
    let id = id_of(drawn);
    let chart = study_chart(drawn);
    let mut caption = drawn.text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(source) =
        drawn.source.as_ref().filter(|_| drawn.panels.iter().any(|p| p.is_original))
    {
        caption += &format!(" Tinted: {source}.");
    }
    if drawn
        .panels
        .iter()
        .any(|p| p.series.iter().any(|s| s.points.iter().any(|p| p.ci95.is_some())))
    {
        caption += " Thin upright lines: 95 % confidence intervals.";
    }
    if drawn.panels.iter().any(|panel| panel.kind == DrawnKind::Boxes) {
        caption +=
            " Boxes: quartiles with the median; thin lines reach the least and the greatest.";
    }
    if !drawn.missing.is_empty() {
        caption += &format!(" Nothing was run here under {}.", drawn.missing.join("; "));
    }
    let links: Vec<String> = drawn.claims.iter().map(|id| claim_link(id, claims)).collect();
    let claims = match links.is_empty() {
        true => String::new(),
        false => format!("<p class=\"fig-claims\">Bears on {}</p>\n", links.join(" ")),
    };
    Figure {
        id,
        kind: "study",
        title: format!("{}. {}.", drawn.id, drawn.title.trim_end_matches('.')),
        caption: caption.trim().into(),
        alternative: alternative(drawn),
        notices: Vec::new(),
        legend: claims + &chart.legend(),
        picture: chart.page(WIDE / chart.columns as f64, Some(NARROW)),
        half: false,
    }
}

/// Describes a figure: where each series begins and ends.
fn alternative(drawn: &Drawn) -> String {
    let mut text = format!("{}.", drawn.title);
    for panel in &drawn.panels {
        if panel.kind == DrawnKind::Who {
            continue;
        }
        text += &format!(" {}:", panel.title);
        for one in &panel.series {
            let (Some(first), Some(last)) = (one.points.first(), one.points.last()) else {
                continue;
            };
            text += &format!(
                " {} from {} at {} to {} at {};",
                one.label,
                significant(first.y),
                significant(first.x),
                significant(last.y),
                significant(last.x)
            );
        }
    }
    text
}

fn table(drawn: &Drawn) -> Table {
    let has_boxes = drawn.panels.iter().any(|panel| panel.kind == DrawnKind::Boxes);
    let mut columns: Vec<String> =
        ["panel", "kind", "series", "x", "y", "ci95_low", "ci95_high"].map(String::from).into();
    if has_boxes {
        columns.extend(["min", "q1", "q3", "max"].map(String::from));
    }
    let mut rows = Vec::new();
    for panel in &drawn.panels {
        let kind = match panel.kind {
            DrawnKind::Who => "process",
            DrawnKind::Progress => "progress",
            _ => &drawn.y_label,
        };
        for one in &panel.series {
            for point in &one.points {
                let group = drawn.groups.get(point.x as usize);
                let mut row = vec![
                    json!(panel.title),
                    json!(kind),
                    json!(one.label),
                    group.map_or(json!(point.x), |name| json!(name)),
                    json!(point.y),
                    json!(point.ci95.map(|ends| ends[0])),
                    json!(point.ci95.map(|ends| ends[1])),
                ];
                if has_boxes {
                    row.extend((0..4).map(|at| json!(point.spread.map(|spread| spread[at]))));
                }
                rows.push(row);
            }
        }
    }
    Table { columns, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tests::claim;
    use schedlab_lab::claims::Verdict;
    use schedlab_lab::redrawn::{DrawnPanel, DrawnPoint, DrawnSeries};

    fn drawn() -> Drawn {
        let points = vec![DrawnPoint::plain(1.0, 162.0)];
        let series = vec![DrawnSeries { label: "wall".into(), points }];
        Drawn {
            id: "S1-F1".into(),
            title: "Average <turnaround>".into(),
            text: "What\nit shows.".into(),
            claims: vec!["S1-1".into()],
            source: Some("a reader".into()),
            columns: 0,
            x_label: "n".into(),
            y_label: "s".into(),
            log: false,
            y_range: [None, None],
            groups: Vec::new(),
            panels: vec![DrawnPanel {
                kind: DrawnKind::Points,
                title: "the study".into(),
                is_original: true,
                series,
            }],
            missing: vec!["OTHER, this machine".into()],
        }
    }

    #[test]
    fn a_figure_names_its_source_its_claims_and_what_is_missing() {
        let mut number = 3;
        let claims = [claim("S1", "S1-1", Verdict::Holds)];
        let html = study_figures([drawn()].iter(), &claims, &mut number).unwrap();
        assert_eq!(number, 4);
        assert!(html.contains("Figure 4.") && html.contains("id=\"figure-s1-f1\""), "{html}");
        assert!(html.contains("href=\"#claim-S1-1\"") && html.contains("Tinted: a reader."));
        assert!(html.contains("Nothing was run here under OTHER, this machine."));
        assert!(html.contains("&lt;turnaround&gt;") && !html.contains("<turnaround>"));
        let found = of_claims([drawn()].iter(), std::iter::empty());
        assert_eq!(found["S1-1"], [("figure-s1-f1".into(), "S1-F1".into())]);
    }

    #[test]
    fn a_figure_without_a_panel_is_no_file() {
        let empty = Drawn { panels: Vec::new(), ..drawn() };
        assert!(figure_files(std::slice::from_ref(&empty)).is_empty());
        assert_eq!(figure_files(&[drawn()])[0].0, "study-s1-f1");
    }
}
