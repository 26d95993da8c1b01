// SPDX-License-Identifier: MIT OR Apache-2.0
//! The identity of a run, as a hash. It identifies stored results.
//!
//! The hash covers the version of the results' format, the program's version (for simulated runs
//! also the sources of its models), and the lane with its settings. It covers the whole workload,
//! not its name, because a file may have changed, and for guests the files of a scheduler. It also
//! covers scheduler, tunables, machine, CPUs, parameters, seed, end, and what the result keeps.

use crate::store::Settings;
use crate::{Plan, PlannedRun};
use schedlab_run::sha::{hex, sha256};
use schedlab_run::{LaneKind, RunResult, SCHEMA_VERSION};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// A SHA-256 sum of values by their derived `Hash`: the bytes of each field, a sequence with its
/// length first, an enum with the number of its variant first. So no two values have the same form,
/// and a new field of a type enters the sum. Integers are little-endian and sizes have 64 bits on
/// any machine; a test fixes the form.
#[derive(Default)]
struct Sum(Sha256);

macro_rules! little_endian {
    ($($write:ident $type:ty,)*) => {$(
        fn $write(&mut self, value: $type) {
            self.write(&value.to_le_bytes());
        }
    )*};
}

impl Hasher for Sum {
    little_endian!(write_u16 u16, write_u32 u32, write_u64 u64, write_i32 i32, write_i64 i64,);

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_i64(value as i64);
    }

    /// The first eight bytes of the sum.
    fn finish(&self) -> u64 {
        let bytes = self.0.clone().finalize();
        bytes.iter().take(8).fold(0, |value, byte| (value << 8) | u64::from(*byte))
    }
}

impl Sum {
    fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// The program that makes runs, as far as results depend on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// Sum of the sources that decide a simulated run's result, 16 hexadecimal digits.
    pub models: String,
}

impl Program {
    /// The running program.
    pub fn this() -> Self {
        let [version, models] = [env!("CARGO_PKG_VERSION"), env!("SCHEDLAB_MODELS")];
        Self { version: version.into(), models: models.into() }
    }
}

/// The key of a run by `program`. `settings` are all settings of the lane that decide its runs. A
/// measured run does not depend on the models.
fn run_key(run: &PlannedRun, settings: &impl Hash, program: &Program) -> String {
    let models = (run.lane == LaneKind::Sim).then_some(&program.models);
    let mut sum = Sum::default();
    (SCHEMA_VERSION, &program.version, models, run.lane, settings, &run.request).hash(&mut sum);
    sum.hex()
}

/// The settings of a lane that decide its runs, in addition to their requests.
#[derive(Hash)]
enum LaneSettings<'l, M> {
    /// Settings of the lane that simulates.
    Sim(M),
    /// CPU model and kernel.
    Host(&'l str),
    /// QEMU and guest.
    Vm(&'l str),
    /// As above, with the hash of the files from which the scheduler is loaded.
    VmFile(&'l str, String),
}

/// Endings of the files from which a guest's scheduler is made: sources, objects, headers, setups.
const LOADED_ENDINGS: [&str; 4] = [".bpf.c", ".bpf.o", ".h", ".setup.toml"];

/// The sum of the file that `scheduler` of a guest (`7.2:./x.bpf.c`) names, and of those next to it
/// that may belong to it; `None`: it names no file.
fn loaded_sum(scheduler: &str) -> Option<String> {
    let (_, name) = scheduler.rsplit_once(':')?;
    let path = Path::new(name);
    // A pipe would be read for ever.
    let text = path.is_file().then(|| std::fs::read(path).ok())??;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
    let may_belong = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        LOADED_ENDINGS.iter().any(|ending| name.ends_with(ending)) && path.is_file()
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(may_belong);
    let paths: BTreeSet<PathBuf> = paths.collect();
    let mut sum = Sum::default();
    text.hash(&mut sum);
    for path in paths {
        (path.file_name(), std::fs::read(&path).ok()).hash(&mut sum);
    }
    Some(sum.hex())
}

/// The key of each run of `plan` by `program`. For a scheduler, `model` returns everything in the
/// simulating lane that decides its runs.
pub fn run_keys<M: Hash>(
    plan: &Plan,
    settings: &Settings,
    program: &Program,
    model: impl Fn(&str) -> M,
) -> Vec<String> {
    let key = |run: &PlannedRun| {
        let lane = match run.lane {
            LaneKind::Sim => LaneSettings::Sim(model(&run.request.scheduler)),
            LaneKind::Vm => match loaded_sum(&run.request.scheduler) {
                None => LaneSettings::Vm(&settings.vm),
                Some(sum) => LaneSettings::VmFile(&settings.vm, sum),
            },
            LaneKind::Host => LaneSettings::Host(&settings.host),
        };
        run_key(run, &lane, program)
    };
    plan.runs.iter().map(key).collect()
}

/// The key of a plan: a sum of its runs' keys, in order, and their experiments' names.
pub fn plan_key<'k>(keys: impl Iterator<Item = (&'k str, &'k str)>) -> String {
    let mut sum = Sum::default();
    keys.for_each(|named| named.hash(&mut sum));
    sum.hex()
}

/// The sum of a result, independent of the program's version.
pub fn result_sum(run: &RunResult) -> String {
    let run = RunResult { schedlab_version: String::new(), ..run.clone() };
    serde_json::to_vec(&run).map_or_else(|_| String::new(), |bytes| sha256(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{CpuMask, TaskSpec, Workload, program::ProgramBuilder};
    use schedlab_run::program::ProgramRun;
    use schedlab_run::{Keep, RunRequest};

    fn run() -> PlannedRun {
        let task = TaskSpec::new("t", ProgramBuilder::new().run(1_000).build());
        let request = RunRequest::new(Workload::new("w", vec![task]), "s", CpuMask::first(1));
        PlannedRun { experiment: 0, lane: LaneKind::Sim, request }
    }

    /// A program without the optional settings.
    fn sleeper() -> ProgramRun {
        let spec = toml::from_str("argv = ['sleep', '1']").unwrap();
        ProgramRun { spec, values: Default::default(), policy: Default::default() }
    }

    #[test]
    fn whatever_determines_a_run_is_in_its_key() {
        let program = |version: &str, models: &str| Program {
            version: version.into(),
            models: models.into(),
        };
        let of = |run: &PlannedRun, hz: Option<u32>, version, models| {
            run_key(run, &hz, &program(version, models))
        };
        let key = |run: &PlannedRun| of(run, Some(250), "1", "a");
        let base = key(&run());
        assert_eq!(base, key(&run()));
        assert_eq!(base.len(), 64);
        let mut keys = vec![
            base,
            of(&run(), Some(100), "1", "a"),
            of(&run(), None, "1", "a"),
            of(&run(), Some(250), "2", "a"),
            of(&run(), Some(250), "1", "b"),
        ];
        let measured = PlannedRun { lane: LaneKind::Host, ..run() };
        assert_eq!(of(&measured, None, "1", "a"), of(&measured, None, "1", "b"));
        let changes: [fn(&mut RunRequest); 11] = [
            |r| r.program = Some(std::sync::Arc::new(sleeper())),
            |r| r.machine = schedlab_sim::machine::preset("laptop").map(std::sync::Arc::new),
            |r| r.workload.tasks[0].program = ProgramBuilder::new().run(1_001).build(),
            |r| r.scheduler = "t".into(),
            |r| r.tunables = vec![("a".into(), "b".into())],
            |r| r.cpus = CpuMask::first(2),
            |r| drop(r.parameters.insert("n".into(), "1".into())),
            |r| r.seed = 2,
            |r| r.repetition = 1,
            |r| r.until_ns = Some(1),
            |r| r.keep = Keep::ALL,
        ];
        for change in changes {
            let mut run = run();
            change(&mut run.request);
            keys.push(key(&run));
        }
        let mut host = run();
        host.lane = LaneKind::Host;
        keys.push(key(&host));
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn a_guests_scheduler_is_known_by_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bpf.c");
        let scheduler = format!("7.2:{}", path.display());
        assert_eq!(loaded_sum(&scheduler), None);
        let mut sums = Vec::new();
        for (name, text) in
            [("x.bpf.c", "1"), ("x.bpf.c", "2"), ("x.setup.toml", "3"), ("intf.h", "4")]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
            sums.push(loaded_sum(&scheduler).unwrap());
        }
        std::fs::write(folder.path().join("notes.txt"), "5").unwrap();
        assert_eq!(loaded_sum(&scheduler).as_ref(), sums.last());
        sums.sort();
        sums.dedup();
        assert_eq!(sums.len(), 4);
        assert_eq!((loaded_sum("7.2"), loaded_sum("7.2:fifo")), (None, None));
    }

    /// The form of values is the same for any compiler. With another form, every stored run would
    /// have to run again.
    #[test]
    fn values_have_one_form() {
        #[derive(Hash)]
        enum Choice {
            _A,
            B { number: u32, list: Vec<u16>, name: Option<&'static str>, small: i8 },
        }
        let mut sum = Sum::default();
        Choice::B { number: 7, list: vec![1, 2], name: Some("ab"), small: -1 }.hash(&mut sum);
        let first = u64::from_be_bytes(sum.0.clone().finalize()[..8].try_into().unwrap());
        assert_eq!(sum.finish(), first);
        let (one, two) = (1_u64.to_le_bytes(), 2_u64.to_le_bytes());
        let list = [&two[..], &[1, 0, 2, 0]].concat();
        let name = [&one[..], b"ab\xff"].concat();
        let bytes = [&one[..], &7_u32.to_le_bytes(), &list, &name, &[0xff]].concat();
        assert_eq!(sum.hex(), sha256(&bytes));
    }

    #[test]
    fn the_programs_version_is_not_in_the_sum_of_a_result() {
        let old = RunResult { schedlab_version: "1".into(), ..Default::default() };
        let new = RunResult { schedlab_version: "2".into(), ..Default::default() };
        assert_eq!(result_sum(&old), result_sum(&new));
        assert_ne!(result_sum(&old), result_sum(&RunResult { seed: 9, ..old.clone() }));
    }
}
