// SPDX-License-Identifier: MIT OR Apache-2.0
//! The corpus: a directory of found cases, each in a file of its own, which are checked before any
//! random case. A file is written once and never replaced. Its name has a sum of its content, so
//! the same case is never stored twice.

use super::recipe::{self, CASE, CaseFile, Recipe, Stored, file_part};
use crate::error::{CliError, CliResult};
use crate::output::say;
use crate::table::counted;
use schedlab_run::LaneKind;
use schedlab_run::file::write_whole;
use schedlab_run::sha::sha256;
use std::path::{Path, PathBuf};

/// Most files of a scheduler and a rule. What is found later is not added.
const OF_RULE_MAX: usize = 16;
/// Most files that are read.
const FILES_MAX: usize = 1_000;
/// Digits of the sum in a file's name.
const SUM_DIGITS: usize = 12;

/// A corpus.
pub struct Corpus {
    folder: PathBuf,
}

impl Corpus {
    /// The corpus in `folder`, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Its files, in order of their names.
    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        // Reading a pipe would not end.
        let is_case = |path: &PathBuf| {
            path.to_string_lossy().ends_with(CASE)
                && std::fs::metadata(path).is_ok_and(|data| data.is_file())
        };
        let mut files: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(is_case).collect();
        files.sort();
        files
    }

    /// The cases of `scheduler` in `lane`. A file that cannot be read or run is skipped with a
    /// warning.
    pub fn cases(&self, lane: LaneKind, scheduler: &str) -> Vec<Stored> {
        let files = self.files();
        if files.len() > FILES_MAX {
            say(format!(
                "warning: {} has {} cases; the first {FILES_MAX} are checked",
                self.folder.display(),
                files.len()
            ));
        }
        let mut cases = Vec::new();
        for path in files.iter().take(FILES_MAX) {
            match recipe::read(path) {
                Ok(stored) => cases.push(stored),
                Err(error) => {
                    let text = error.text();
                    let why = text.lines().next().unwrap_or_default();
                    say(format!("warning: a stored case is skipped: {why}"));
                }
            }
        }
        let name = file_part(scheduler);
        cases.retain(|stored| {
            stored.recipe.lane == lane && file_part(&stored.recipe.scheduler) == name
        });
        cases
    }

    /// Adds a case with the workload of this text, unless it is there.
    pub fn keep(&self, recipe: Recipe, workload: String) -> CliResult<()> {
        let stem = recipe.stem();
        let mut text = serde_json::to_string_pretty(&CaseFile::new(recipe, workload))
            .map_err(|error| CliError::usage(format!("the case: {error}")))?;
        text.push('\n');
        let sum = sha256(text.as_bytes());
        let path = self.folder.join(format!("{stem}-{:.SUM_DIGITS$}{CASE}", sum));
        if path.exists() {
            return Ok(());
        }
        let nr_known = self.files().iter().filter(|path| is_of(path, &stem)).count();
        if nr_known >= OF_RULE_MAX {
            say(format!(
                "warning: the case is not added to {}, which has {} of this rule and scheduler: \
                 remove some",
                self.folder.display(),
                counted(nr_known as u64, "case", "cases")
            ));
            return Ok(());
        }
        std::fs::create_dir_all(&self.folder)
            .map_err(|error| CliError::file("create", &self.folder, &error))?;
        Ok(write_whole(&path, text.as_bytes())?)
    }
}

/// Whether a file's name is `stem` and a sum.
fn is_of(path: &Path, stem: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let sum = name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(CASE));
    sum.is_some_and(|sum| sum.len() == SUM_DIGITS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_check::{Case, Shape, generate};
    use schedlab_workload::write_rtapp_short;

    fn case(seed: u64) -> (Case, String) {
        let case = generate(&Shape { cpus_max: 1, ..Shape::default() }, seed);
        let text = write_rtapp_short(&case.workload);
        (case, text)
    }

    fn recipe(case: &Case, rule: &str) -> Recipe {
        Recipe::new((LaneKind::Sim, "dir/a.bpf.c"), &[], rule, case)
    }

    #[test]
    fn a_case_is_kept_once_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = Corpus::new(folder.path().join("corpus"));
        assert!(corpus.cases(LaneKind::Sim, "a.bpf.c").is_empty());
        let (kept, text) = case(3);
        for _ in 0..2 {
            corpus.keep(recipe(&kept, "wait"), text.clone()).unwrap();
        }
        assert_eq!(corpus.files().len(), 1);
        let read = corpus.cases(LaneKind::Sim, "./a.bpf.c");
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].case, kept);
        assert_eq!(read[0].recipe.rule, "wait");
        assert!(corpus.cases(LaneKind::Vm, "a.bpf.c").is_empty());
        assert!(corpus.cases(LaneKind::Sim, "b.bpf.c").is_empty());
    }

    #[test]
    fn it_does_not_grow_without_bound_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = Corpus::new(folder.path().to_owned());
        for seed in 0..OF_RULE_MAX as u64 + 4 {
            let (kept, text) = case(seed);
            corpus.keep(recipe(&kept, "wait"), text).unwrap();
        }
        let files = corpus.files();
        assert_eq!(files.len(), OF_RULE_MAX);
        let (kept, text) = case(1);
        // A rule whose name begins alike has room of its own.
        corpus.keep(recipe(&kept, "wait-longer"), text).unwrap();
        assert_eq!(corpus.files().len(), OF_RULE_MAX + 1);
        assert!(files.iter().all(|path| path.exists()));
    }

    #[test]
    fn damaged_and_hostile_files_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = Corpus::new(folder.path().to_owned());
        let (kept, text) = case(3);
        corpus.keep(recipe(&kept, "wait"), text).unwrap();
        let good = std::fs::read_to_string(&corpus.files()[0]).unwrap();
        let mut bad: Vec<Vec<u8>> = vec![
            Vec::new(),
            b"{".to_vec(),
            vec![0xff; 9],
            "[".repeat(10_000).into_bytes(),
            good.replace("\"schema_version\": 1", "\"schema_version\": 2").into_bytes(),
            good.replace("\"hz\": ", "\"hz\": 9").into_bytes(),
            good.replace("\"core\": [", "\"core\": [5,").into_bytes(),
            good.replace("duration", "duratiom").into_bytes(),
        ];
        for at in (1..good.len()).step_by(97) {
            bad.push(good.as_bytes()[..at].to_vec());
        }
        for (number, text) in bad.iter().enumerate() {
            std::fs::write(folder.path().join(format!("bad{number}{CASE}")), text).unwrap();
        }
        std::fs::create_dir(folder.path().join(format!("folder{CASE}"))).unwrap();
        let read = corpus.cases(LaneKind::Sim, "a.bpf.c");
        assert_eq!(read.len(), 1, "{:?}", read.iter().map(|one| &one.file).collect::<Vec<_>>());
    }
}
