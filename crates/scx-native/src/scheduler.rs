// SPDX-License-Identifier: MIT OR Apache-2.0
//! A natively compiled scheduler as one of schedlab's: its options are tunables like all others.

use super::dwarf::Type;
use super::error::NativeError;
use super::ops::NativeOps;
use super::options::{self, Chosen, MachineWords};
use super::program::Program;
use super::{CompileOptions, Inspector, NativeScheduler, UserProgram};
use schedlab_model::KernelVersion;
use schedlab_model::machine::Machine;
use schedlab_sched::{
    Make, Options, Scheduler, SourceDigest, Tunable, TunableKind, UserHalf, Words,
};
use schedlab_scx::consts::SLICE_DFL;
use schedlab_scx::{CORES, ExtOptions, Ops, scheduler, stack_checked};
use schedlab_scx_source::is_set_by_schedlab;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Units at the end of a name, ns.
const UNITS: &[(&str, u64)] = &[("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000)];

/// The unit at the end of a name, in ns.
fn unit_of(name: &str) -> Option<u64> {
    UNITS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, ns)| *ns)
}

/// An option as a tunable; `None`: it has several values, or none.
fn tunable(name: &str, of: &Type, default: i128) -> Option<Tunable> {
    let max = match of {
        Type::Int { size: size @ 1..=8, signed } => {
            u64::MAX >> (64 - size * 8) >> u32::from(*signed)
        }
        Type::Bool => 1,
        Type::Enum { size: 1..=8, .. } => u64::from(u32::MAX),
        _ => return None,
    };
    let default = default as u64;
    let counted = (TunableKind::Count { min: 0, max }, default);
    let (kind, default) = match of {
        Type::Bool => (TunableKind::words(&["false", "true"]), default),
        Type::Enum { values, .. } if in_order(values) => {
            let words = values.iter().map(|(word, _)| word.clone()).collect();
            (TunableKind::Choice(Words::Read(words)), default)
        }
        Type::Int { .. } => match unit_of(name).map(|unit| (default.checked_mul(unit), unit)) {
            Some((Some(default), unit)) if default <= i64::MAX as u64 => {
                (TunableKind::Time { min: 0, max: max.saturating_mul(unit) }, default)
            }
            _ => counted,
        },
        _ => counted,
    };
    Some(Tunable {
        name: name.to_owned().into(),
        kind,
        default,
        text: "option of the scheduler".into(),
    })
}

fn in_order(values: &[(String, i64)]) -> bool {
    let mut numbers = values.iter().map(|(_, value)| *value);
    !values.is_empty() && (0..values.len() as i64).all(|wanted| numbers.next() == Some(wanted))
}

/// The compiled forms of a scheduler, one for each of [`CORES`].
#[derive(Debug)]
struct Forms {
    source: PathBuf,
    compile: CompileOptions,
    arrays: Vec<(String, String)>,
    inspector: Option<Arc<Inspector>>,
    user: Option<Arc<UserProgram>>,
    forms: [OnceLock<Result<Arc<Program>, String>>; CORES.len()],
}

impl Forms {
    /// The form for a kernel.
    fn slot(&self, kernel: KernelVersion) -> &OnceLock<Result<Arc<Program>, String>> {
        let index = CORES.iter().position(|core| core.version == kernel);
        &self.forms[index.expect("a scheduler is compiled for a modelled core")]
    }

    fn of(&self, kernel: KernelVersion) -> Result<Arc<Program>, String> {
        let made = self.slot(kernel).get_or_init(|| {
            let options = CompileOptions { kernel, ..self.compile.clone() };
            let program = Program::compile(&self.source, &options);
            program.map(Arc::new).map_err(|error| error.to_string())
        });
        made.clone()
    }

    fn ops(
        &self,
        tunables: &[Tunable],
        given: &Options,
        machine: &Machine,
    ) -> Result<Box<dyn Ops>, String> {
        let program = self.of(ExtOptions::from_options(given).core.version)?;
        let text = |error: NativeError| error.to_string();
        let mut chosen = Chosen::parse(&program, &self.arrays).map_err(text)?;
        for tunable in tunables {
            let value = given.get(&tunable.name);
            if value != tunable.default {
                let unit = match tunable.kind {
                    TunableKind::Time { .. } => unit_of(&tunable.name).unwrap_or(1),
                    _ => 1,
                };
                chosen.set(&tunable.name, i128::from(value / unit));
            }
        }
        let words = MachineWords { nr_cpus: machine.nr_cpus(), hz: machine.hz };
        let user = self.user.as_ref().map(|user| user.start(machine)).transpose().map_err(text)?;
        let mut ops = NativeOps::new(program, &chosen, words, user).map_err(text)?;
        ops.check_machine(&machine.topology).map_err(text)?;
        ops.run.inspector.clone_from(&self.inspector);
        Ok(Box::new(ops))
    }
}

impl NativeScheduler {
    /// Names of its options with several values (arrays), which are not tunables.
    pub fn array_options(&self) -> Vec<String> {
        let arrays = self.program.variables.iter().filter(|(_, variable)| {
            variable.is_option && matches!(variable.of, Type::Array { .. })
        });
        arrays.map(|(_, variable)| variable.name.clone()).collect()
    }

    /// The scheduler called `name`. Each run gets its own copy. `arrays`: values of options with
    /// several values.
    pub fn scheduler(
        &self,
        name: &str,
        arrays: &[(String, String)],
    ) -> Result<Scheduler, NativeError> {
        Chosen::parse(&self.program, arrays)?;
        let own = own_tunables(&self.program);
        let like = scheduler();
        let mut tunables = like.tunables.clone();
        let is_new = |own: &&Tunable| like.tunables.iter().all(|core| core.name != own.name);
        tunables.extend(own.iter().filter(is_new).cloned());
        let forms = Forms {
            source: self.program.source.clone(),
            compile: self.compile.clone(),
            arrays: arrays.to_vec(),
            inspector: self.inspector.clone(),
            user: self.user.clone(),
            forms: Default::default(),
        };
        let _ = forms.slot(self.program.kernel).set(Ok(Arc::clone(&self.program)));
        let user_half = self.user.as_ref().map(|user| UserHalf {
            command: user.command.iter().map(|word| word.to_string_lossy().into()).collect(),
            step_ns: user.step_ns,
        });
        Ok(Scheduler {
            name: name.to_owned().into(),
            summary: "a scheduler for sched_ext, compiled for this machine".into(),
            source: self.program.source.display().to_string().into(),
            tunables,
            digest: Some(SourceDigest::SchedExt(self.program.sum(arrays))),
            make: Make::fallible(move |options, machine, cgroups| {
                let ops = forms.ops(&own, options, machine)?;
                stack_checked(ops, options, machine, cgroups)
            })
            .with_user_half(user_half),
            ..like
        })
    }
}

/// The options of a scheduler as tunables.
fn own_tunables(program: &Program) -> Vec<Tunable> {
    let mut tunables: Vec<Tunable> = Vec::new();
    for (object, variable) in &program.variables {
        let name = variable.name.as_str();
        let is_known = tunables.iter().any(|tunable| tunable.name == name);
        if !variable.is_option || is_set_by_schedlab(name) || is_known {
            continue;
        }
        let mut default = options::default_number(program, *object, variable);
        // The value that is filled in where the source has none.
        if name == "slice_ns" && default == 0 {
            default = i128::from(SLICE_DFL);
        }
        tunables.extend(tunable(name, &variable.of, default));
    }
    tunables.sort_by(|a, b| a.name.cmp(&b.name));
    tunables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_tunables() {
        let u64_type = Type::Int { size: 8, signed: false };
        let slice = tunable("slice_us", &u64_type, 20_000).unwrap();
        assert!(matches!(slice.kind, TunableKind::Time { min: 0, .. }));
        assert_eq!(slice.default, 20_000_000);
        let endless = tunable("slice_ns", &u64_type, i128::from(u64::MAX)).unwrap();
        assert_eq!(endless.kind, TunableKind::Count { min: 0, max: u64::MAX });
        let small = tunable("n", &Type::Int { size: 2, signed: true }, 0).unwrap();
        assert_eq!(small.kind, TunableKind::Count { min: 0, max: 32_767 });
        let array = Type::Array { of: Box::new(Type::Bool), nr: 2 };
        assert_eq!(tunable("x", &array, 0), None);
    }
}
