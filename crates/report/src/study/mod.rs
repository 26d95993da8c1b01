// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of a reproduction: an index with all verdicts, and a page for each study. A study's
//! page has its subject, its method, its claims, its figures and tables with the original's values,
//! and its experiments run by run.
//!
//! `fill` makes a [`StudyPage`] from a study and its results; `index` and `page` write HTML.
//! `figures` and `tables` draw what the study's file asks for, `facts` lists the machines and
//! repetitions, `verdicts` counts and links claims.

mod facts;
mod figures;
mod fill;
mod index;
mod page;
mod panels;
mod tables;
mod verdicts;

pub use figures::figure_files;

use crate::error::ReportError;
use crate::group::{Group, group_all};
use crate::html::slug;
use crate::{Limits, ReportInput};
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::redrawn::{Drawn, DrawnTable};

/// A study with its figures and tables filled.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StudyPage {
    /// Short name: `S0`.
    pub name: String,
    /// Title.
    pub title: String,
    /// Author and publication; may be empty.
    pub author: String,
    /// Description.
    pub text: String,
    /// The study's figures, redrawn.
    pub figures: Vec<Drawn>,
    /// Its tables.
    pub tables: Vec<DrawnTable>,
}

impl StudyPage {
    /// Figures with data from at least one run.
    fn drawn(&self) -> impl Iterator<Item = &Drawn> {
        self.figures.iter().filter(|drawn| !drawn.panels.is_empty())
    }

    /// Tables with at least one row.
    fn filled(&self) -> impl Iterator<Item = &DrawnTable> {
        self.tables.iter().filter(|table| !table.rows.is_empty())
    }

    /// The title, or the name of a study without one.
    fn title(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }
}

/// One file of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageFile {
    /// Name, without a directory.
    pub name: String,
    /// Content.
    pub html: String,
}

/// A study with its experiments and claims.
struct Part<'a> {
    page: StudyPage,
    /// Name of its file.
    file: String,
    groups: Vec<Group<'a>>,
    claims: Vec<&'a ClaimResult>,
}

/// File names for links between the pages.
struct Site<'a> {
    input: &'a ReportInput<'a>,
    /// Name of the index.
    index: &'a str,
    parts: Vec<Part<'a>>,
}

/// Limits on timelines and progress curves that keep a study's page below 1.5 MB.
const LIMITS: Limits = Limits { slices_max: 100_000, progress_marks_max: 60_000 };

/// Renders the pages of a reproduction, the index last. `index` is its file name, such as
/// `report.html`; the studies' pages are named after it: `report-s0.html`.
pub fn render_reproduction(
    input: &ReportInput<'_>,
    index: &str,
) -> Result<Vec<PageFile>, ReportError> {
    let groups = group_all(input.results);
    if groups.is_empty() {
        return Err(ReportError::NoRuns { experiments: input.results.len() });
    }
    let site = Site { input, index, parts: parts(input, groups, index) };
    let mut files = Vec::new();
    for at in 0..site.parts.len() {
        files.push(PageFile { name: site.parts[at].file.clone(), html: site.study(at)? });
    }
    files.push(PageFile { name: index.into(), html: site.index() });
    Ok(files)
}

/// Every study with its experiments and claims. A study without a page of its own gets a bare one.
fn parts<'a>(input: &'a ReportInput<'a>, groups: Vec<Group<'a>>, index: &str) -> Vec<Part<'a>> {
    let stem = index.strip_suffix(".html").unwrap_or(index);
    let mut parts: Vec<Part<'a>> = Vec::new();
    let add = |parts: &mut Vec<Part<'a>>, page: StudyPage| {
        let base = format!("{stem}-{}", slug(&page.name));
        let taken = |name: &str| parts.iter().any(|part| part.file == name);
        let numbered = (2..).map(|number| format!("{base}-{number}.html"));
        let mut names = std::iter::once(format!("{base}.html")).chain(numbered);
        let file = names.find(|name| !taken(name)).unwrap_or_default();
        parts.push(Part { page, file, groups: Vec::new(), claims: Vec::new() });
        parts.len() - 1
    };
    for page in input.studies {
        add(&mut parts, page.clone());
    }
    let of = |parts: &mut Vec<Part<'a>>, name: &str| {
        let found = parts.iter().position(|part| part.page.name == name);
        let bare = || StudyPage { name: name.into(), ..StudyPage::default() };
        found.unwrap_or_else(|| add(parts, bare()))
    };
    for claim in input.claims {
        let at = of(&mut parts, &claim.study);
        parts[at].claims.push(claim);
    }
    for group in groups {
        let at = of(&mut parts, &group.result.experiment.study);
        parts[at].groups.push(group);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tests::claim;
    use crate::fold::tests::unfolded;
    use crate::group::tests::{experiment, run};
    use schedlab_lab::ExperimentResult;
    use schedlab_lab::claims::Verdict;
    use schedlab_run::LaneKind::Sim;
    use std::collections::BTreeSet;

    fn results() -> Vec<ExperimentResult> {
        let one = |study: &str, name: &str| {
            let mut result = experiment(name, vec![run(Sim, "rr", 1, 1), run(Sim, "<i>", 1, 1)]);
            result.experiment.study = study.into();
            result
        };
        vec![one("S 0", "first"), one("S-0", "second <b>")]
    }

    fn pages(claims: &[ClaimResult], results: &[ExperimentResult]) -> Vec<PageFile> {
        let study = StudyPage {
            name: "S 0".into(),
            title: "A <title>".into(),
            author: "N. <Obody>".into(),
            ..StudyPage::default()
        };
        let input = ReportInput {
            title: "t",
            date: None,
            command: Some("schedlab reproduce"),
            results,
            claims,
            studies: &[study],
            model_notes: &[],
            limits: Limits::default(),
        };
        render_reproduction(&input, "report.html").unwrap()
    }

    fn all(html: &str, mark: &str) -> Vec<String> {
        let found = html.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
        found.map(String::from).collect()
    }

    #[test]
    fn each_study_has_a_page_and_the_index_comes_last() {
        let results = results();
        let claims = [claim("S 0", "A-1", Verdict::Holds), claim("S-0", "B-1", Verdict::Fails)];
        let pages = pages(&claims, &results);
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(names, ["report-s-0.html", "report-s-0-2.html", "report.html"]);
        let index = unfolded(&pages[2].html);
        assert!(index.contains("A &lt;title&gt;") && index.contains("N. &lt;Obody&gt;"), "{index}");
        assert!(index.contains("2\u{a0}claims of 2\u{a0}studies: 1 holds, 1 fails."), "{index}");
        assert!(pages[0].html.contains("A-1") && !pages[0].html.contains("B-1"));
        assert!(unfolded(&pages[1].html).contains("second &lt;b&gt;"));
    }

    #[test]
    fn every_link_leads_somewhere_and_ids_are_unique() {
        let results = results();
        let claims = [claim("S 0", "A-1", Verdict::Holds), claim("S-0", "B-1", Verdict::Fails)];
        let pages = pages(&claims, &results);
        let ids: Vec<Vec<String>> =
            pages.iter().map(|page| all(&unfolded(&page.html), " id=\"")).collect();
        for (page, own) in pages.iter().zip(&ids) {
            assert_eq!(own.iter().collect::<BTreeSet<_>>().len(), own.len(), "{}", page.name);
            for link in all(&unfolded(&page.html), "<a href=\"") {
                let (file, id) = link.split_once('#').unwrap_or((&link, ""));
                let at = match file {
                    "" => pages.iter().position(|other| other.name == page.name),
                    _ => pages.iter().position(|other| other.name == file),
                };
                let at = at.unwrap_or_else(|| panic!("{link} in {}", page.name));
                assert!(id.is_empty() || ids[at].iter().any(|known| known == id), "{link}");
            }
        }
    }

    #[test]
    fn figures_and_tables_without_data_are_not_announced() {
        let results = results();
        let pages = pages(&[], &results);
        for announced in ["id=\"figures\"", "id=\"tables\"", "#figures", "#tables", "#claims"] {
            assert!(!pages[0].html.contains(announced), "{announced}");
        }
    }
}
