// SPDX-License-Identifier: MIT OR Apache-2.0
//! `diff --random`: searches random workloads for one on which the schedulers decide differently,
//! and makes it small.

use super::search::{self, Search};
use super::{DiffArgs, DiffResult, Party, compare, machines_of};
use crate::commands::check::SHRINK_RUNS_MAX;
use crate::error::{CliError, CliResult};
use crate::output::{say, without_panic_texts};
use schedlab_check::{Case, Family, Setting, Shape, Subject, play_both, shrink};
use schedlab_model::{Costs, Topology};
use schedlab_run::file::write_whole;
use schedlab_run::machine::{MachineFile, TopologyTable};
use schedlab_workload::write_rtapp_short;
use std::path::{Path, PathBuf};

/// CPUs of random workloads: differences on few CPUs are the easiest to understand.
const CPUS_MAX: u32 = 2;

/// The first difference in the smallest workload found; `None`: they decide alike.
pub fn search(
    args: &DiffArgs,
    parties: &[Party; 2],
    nr_seeds: u64,
) -> CliResult<Option<DiffResult>> {
    let subjects = parties.each_ref().map(|party| party.subject.clone());
    let play = |case: &Case| play_both(case, &subjects);
    let search = Search {
        name: format!("{} and {}", args.a, args.b),
        play: Box::new(play),
        shape: Shape { cpus_max: args.cpus.unwrap_or(CPUS_MAX), ..shape(&subjects) },
        first: args.tasks.seed,
        nr_seeds: Some(nr_seeds),
        budget: None,
        threads: args.machine.threads.map_or_else(search::threads, usize::from),
        batch: search::BATCH,
    };
    let searched = search.run();
    let Some((seed, case, breach)) = searched.found else { return Ok(None) };
    say(format!("workload {seed} differs; making it smaller"));
    let mut test = |case: &Case| play(case).breach();
    let small = without_panic_texts(|| shrink(&case, &breach, SHRINK_RUNS_MAX, &mut test)).case;
    let setting = Setting { workload: &small.workload, seed: small.seed, until_ns: None };
    let mut result = compare(&setting, parties, &machines_of(&small, parties))?;
    result.found_at_seed = Some(seed);
    result.file = Some(write_whole_case(args, parties, &small)?);
    result.workload_text = Some(write_rtapp_short(&small.workload));
    Ok(Some(result))
}

/// What both schedulers can play.
fn shape(subjects: &[Subject; 2]) -> Shape {
    let [a, b] = subjects;
    let is_simple =
        |subject: &Subject| matches!(subject.family(), Family::Textbook | Family::Early);
    let tunes = a.shape().tunes.and(b.shape().tunes);
    let shape = if is_simple(b) { b.shape() } else { a.shape() };
    Shape { tunes, ..shape }
}

/// Writes the workload, and the machine if it is not flat. Returns the command that compares it.
fn write_whole_case(args: &DiffArgs, parties: &[Party; 2], case: &Case) -> CliResult<String> {
    let path = write_workload(&args.output, case)?;
    let nr_cpus = case.machine.nr_cpus();
    let costs = if case.machine.costs == Costs::ZERO { "zero" } else { "default" };
    let mut command = format!(
        "schedlab diff {} {} {} --cpus {nr_cpus} --hz {} --costs {costs} --seed {}",
        shell_word(&args.a),
        shell_word(&args.b),
        shell_word(&path.display().to_string()),
        case.machine.hz,
        case.seed
    );
    if case.machine.topology != Topology::flat(nr_cpus) {
        let Topology { core, llc, node } = case.machine.topology.clone();
        let file = MachineFile {
            name: "found".into(),
            topology: TopologyTable { core, llc, node, ..TopologyTable::default() },
            hz: Some(case.machine.hz),
            ..MachineFile::default()
        };
        let text = serde_json::to_string_pretty(&file)
            .map_err(|error| CliError::usage(format!("the machine: {error}")))?;
        let path = args.output.join("machine.json");
        write_whole(&path, text.as_bytes())?;
        command += &format!(" --machine {}", shell_word(&path.display().to_string()));
    }
    for (party, option) in parties.iter().zip(["--set-a", "--set-b"]) {
        for (name, value) in &party.tunables {
            command += &format!(" {option} {}", shell_word(&format!("{name}={value}")));
        }
    }
    Ok(command)
}

/// Writes the workload of a case into `folder`.
pub(super) fn write_workload(folder: &Path, case: &Case) -> CliResult<PathBuf> {
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("create", folder, &error))?;
    let path = folder.join("workload.json");
    write_whole(&path, write_rtapp_short(&case.workload).as_bytes())?;
    Ok(path)
}

/// A word of a shell's command.
pub(super) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_one_word() {
        assert_eq!(shell_word("linux-6.12"), "linux-6.12");
        assert_eq!(shell_word("a b/$(x).bpf.c"), "'a b/$(x).bpf.c'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
