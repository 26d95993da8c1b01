// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a study in the report: its own figures and tables filled with the runs, and a figure
//! for each experiment that has published values.

use schedlab_lab::redrawn::{self, Drawn};
use schedlab_lab::{ExperimentResult, Study};
use schedlab_report::StudyPage;

/// The page of `study`.
pub fn of(study: &Study, results: &[ExperimentResult], nr_cpus: u32) -> StudyPage {
    let own = study.figures.iter();
    let own = own.map(|spec| redrawn::figure(&study.name, spec, results, nr_cpus));
    let published = results.iter().filter_map(|result| published(study, result));
    let tables = study.tables.iter();
    StudyPage {
        name: study.name.clone(),
        title: study.title.trim().into(),
        text: study.text.trim().into(),
        figures: own.chain(published).collect(),
        tables: tables.map(|spec| redrawn::table(&study.name, spec, results, nr_cpus)).collect(),
    }
}

/// The figure of an experiment's published values, with the claims that rest on the experiment.
fn published(study: &Study, result: &ExperimentResult) -> Option<Drawn> {
    let name = &result.experiment.name;
    let is_about = |claim: &&schedlab_lab::claims::Claim| {
        claim.checks.iter().any(|check| check.is_about(name))
    };
    let claims = study.claims.iter().filter(is_about).map(|claim| claim.id.clone()).collect();
    redrawn::published(result).map(|drawn| Drawn { claims, ..drawn })
}
