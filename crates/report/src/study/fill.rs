// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the page of a study: fills its figures and tables from runs, and adds a figure for each
//! experiment with published values.

use super::StudyPage;
use schedlab_lab::redrawn::{self, Drawn};
use schedlab_lab::{ExperimentResult, Study};
use std::collections::BTreeSet;

impl StudyPage {
    /// The page of `study`, from the results of its experiments on a machine of `nr_cpus` CPUs.
    pub fn of(study: &Study, results: &[ExperimentResult], nr_cpus: u32) -> Self {
        let own = study.figures.iter();
        let own = own.map(|spec| {
            let drawn = redrawn::figure(&study.name, spec, results, nr_cpus);
            with_changes(drawn, study, &spec.experiment.values(), results)
        });
        // If one of the study's own figures has the original's values, the experiments need no
        // figure of them.
        let is_drawn = |result: &&ExperimentResult| {
            let mut with = study.figures.iter().filter(|figure| figure.published.is_some());
            with.any(|figure| figure.experiment.values().contains(&result.experiment.name))
        };
        let published = results.iter().filter(|result| !is_drawn(result));
        let published = published.filter_map(|result| published_figure(study, result));
        let tables = study.tables.iter();
        Self {
            name: study.name.clone(),
            title: study.title.trim().into(),
            author: study.author.trim().into(),
            text: study.text.trim().into(),
            figures: own.chain(published).collect(),
            tables: tables
                .map(|spec| redrawn::table(&study.name, spec, results, nr_cpus))
                .collect(),
        }
    }
}

/// The figure of an experiment's published values, with the claims based on the experiment.
fn published_figure(study: &Study, result: &ExperimentResult) -> Option<Drawn> {
    let name = &result.experiment.name;
    let is_about = |claim: &&schedlab_lab::claims::Claim| {
        claim.checks.iter().any(|check| check.is_about(name))
    };
    let claims = study.claims.iter().filter(is_about).map(|claim| claim.id.clone()).collect();
    let drawn = redrawn::published(result).map(|drawn| Drawn { claims, ..drawn })?;
    Some(with_changes(drawn, study, std::slice::from_ref(name), std::slice::from_ref(result)))
}

/// Notes where runs have other parameters than the study's file, as in a quick reproduction. A
/// figure with a fifth of the work has a fifth of the height.
fn with_changes(
    drawn: Drawn,
    study: &Study,
    named: &[String],
    results: &[ExperimentResult],
) -> Drawn {
    let mut changes = BTreeSet::new();
    for spec in study.experiments.iter().filter(|spec| named.contains(&spec.name)) {
        let runs = results.iter().filter(|result| result.experiment.name == spec.name);
        for run in runs.flat_map(|result| &result.runs) {
            for (name, wanted) in &spec.parameters {
                let wanted = wanted.to_string();
                if let Some(own) = run.parameters.get(name).filter(|own| **own != wanted) {
                    changes.insert(format!("{name} = {own} instead of {wanted}"));
                }
            }
        }
    }
    if changes.is_empty() {
        return drawn;
    }
    let changes: Vec<String> = changes.into_iter().collect();
    let text = format!(
        "{} Quick: {}; compare the lines' shapes and distances, not their heights.",
        drawn.text,
        changes.join(", ")
    );
    Drawn { text: text.trim().into(), ..drawn }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::RunResult;

    const STUDY: &str = "name = \"S9\"\n[[experiment]]\nname = \"io\"\nworkload = \"io_bound\"\n\
                         parameters = { bytes = 5_000_000 }\n[experiment.quick]\n\
                         parameters = { bytes = 1_000_000 }\n[[experiment.runs]]\nlane = \"sim\"\n\
                         schedulers = [\"rr\"]\n[[figure]]\nid = \"S9-F1\"\ntitle = \"t\"\n\
                         form = \"bars\"\nexperiment = \"io\"\non = [\"sim\"]\n\
                         series = [{ label = \"s\", value = \"makespan_ns / 1s\" }]\n\
                         groups = [{ label = \"g\", where = {} }]\n";

    fn text(bytes: &str) -> String {
        let study = Study::parse(STUDY).unwrap();
        let mut run =
            RunResult { lane: schedlab_run::LaneKind::Sim.into(), ..RunResult::default() };
        run.parameters.insert("bytes".into(), bytes.into());
        let experiment = schedlab_lab::Experiment::default();
        let mut result = ExperimentResult { experiment, runs: vec![run] };
        result.experiment.name = "io".into();
        result.experiment.study = "S9".into();
        StudyPage::of(&study, &[result], 1).figures[0].text.clone()
    }

    #[test]
    fn a_figure_says_what_a_quick_reproduction_changed() {
        let quick = text("1000000");
        assert!(quick.contains("Quick: bytes = 1000000 instead of 5000000;"), "{quick}");
        assert_eq!(text("5000000"), "");
    }
}
