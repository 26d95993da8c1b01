// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timer frequency of models that are compared with guests. A kernel's HZ is fixed at its build. So
//! the models of the same experiment use the kernel's HZ, unless their machine sets one.

use super::{Note, Plan};
use crate::LabError;
use schedlab_run::{LaneKind, MachineSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Settings of the simulating lane about ticks.
#[derive(Clone, Copy, Debug)]
pub struct ModelTicks<'m> {
    /// Requested ticks per second, for any machine.
    pub hz: Option<u32>,
    /// The machine of runs that name none; `None`: a flat machine.
    pub machine: Option<&'m MachineSpec>,
}

impl Plan {
    /// Sets the models of each experiment to the HZ of its guests' kernels, or notes where they
    /// differ. For a guest's scheduler, `kernel` returns the kernel and its ticks per second.
    pub fn agree_hz<E: From<LabError>>(
        &mut self,
        models: ModelTicks<'_>,
        kernel: impl Fn(&str) -> Result<(String, u32), E>,
    ) -> Result<(), E> {
        for experiment in 0..self.experiments.len() {
            let runs = self.runs.iter();
            let guests =
                runs.filter(|run| run.experiment == experiment && run.lane == LaneKind::Vm);
            let schedulers: BTreeSet<&str> =
                guests.map(|run| run.request.scheduler.as_str()).collect();
            let kernels: BTreeMap<String, u32> =
                schedulers.into_iter().map(&kernel).collect::<Result<_, E>>()?;
            if let (Some(asked), false) = (models.hz, kernels.is_empty()) {
                refuse(asked, &kernels)?;
            }
            let note = follow(self, experiment, models, &kernels);
            self.notes.extend(note);
        }
        self.notes.dedup();
        Ok(())
    }
}

/// Refuses a tick rate that a kernel does not have.
fn refuse(asked: u32, kernels: &BTreeMap<String, u32>) -> Result<(), LabError> {
    let Some((name, hz)) = kernels.iter().find(|(_, hz)| **hz != asked) else { return Ok(()) };
    Err(LabError::refused(
        format!(
            "--hz {asked} beside guests: kernel {name} has HZ {hz}, which is fixed when a kernel \
             is built"
        ),
        format!("leave --hz out (models then have HZ {hz} too), or leave the guests out"),
    ))
}

/// Sets models without a machine to the kernels' HZ. Returns a note about other models with another
/// HZ.
fn follow(
    plan: &mut Plan,
    experiment: usize,
    models: ModelTicks<'_>,
    kernels: &BTreeMap<String, u32>,
) -> Option<Note> {
    let (name, hz) = kernels.iter().next()?;
    let is_one = kernels.values().all(|other| other == hz);
    let mut others = Vec::new();
    let runs = plan
        .runs
        .iter_mut()
        .filter(|run| run.experiment == experiment && run.lane == LaneKind::Sim);
    for run in runs {
        let machine = run.request.machine.as_deref().or(models.machine);
        let own = match machine {
            _ if models.hz.is_some() => continue,
            Some(machine) => machine.machine.hz,
            None => {
                let mut flat = MachineSpec::flat(run.request.cpus.weight());
                if is_one && flat.machine.hz != *hz {
                    flat.machine.hz = *hz;
                    run.request.machine = Some(Arc::new(flat));
                    continue;
                }
                flat.machine.hz
            }
        };
        if kernels.values().any(|other| *other != own) && !others.contains(&own) {
            others.push(own);
        }
    }
    if others.is_empty() {
        return None;
    }
    Some(Note::OtherHz {
        experiment: plan.experiments[experiment].name.clone(),
        models: others,
        kernel: name.clone(),
        hz: *hz,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, PlannedRun};
    use schedlab_model::{CpuMask, Workload};
    use schedlab_run::RunRequest;

    /// An experiment with a model and a guest of each kernel; the kernel's name is its HZ.
    fn plan(kernels: &[&str]) -> Plan {
        let run = |lane, scheduler: &str| {
            let workload = Workload::new("w", Vec::new());
            let request = RunRequest::new(workload, scheduler, CpuMask::first(1));
            PlannedRun { experiment: 0, lane, request }
        };
        let guests = kernels.iter().map(|kernel| run(LaneKind::Vm, kernel));
        Plan {
            experiments: vec![Experiment::of_runs("x")],
            runs: std::iter::once(run(LaneKind::Sim, "rr")).chain(guests).collect(),
            notes: Vec::new(),
        }
    }

    fn agree(plan: &mut Plan, models: ModelTicks<'_>) -> Result<(), LabError> {
        plan.agree_hz(models, |name| Ok((name.to_owned(), name.parse().unwrap())))
    }

    #[test]
    fn models_without_a_machine_take_the_hz_of_the_only_kernel() {
        let none = ModelTicks { hz: None, machine: None };
        let mut one = plan(&["100"]);
        agree(&mut one, none).unwrap();
        assert_eq!(one.runs[0].request.machine.as_ref().unwrap().machine.hz, 100);
        assert_eq!(one.notes, []);
        let mut two = plan(&["100", "1000"]);
        agree(&mut two, none).unwrap();
        assert_eq!(two.runs[0].request.machine, None);
        assert!(matches!(&two.notes[..], [Note::OtherHz { hz: 100, .. }]), "{:?}", two.notes);
        let mut nowhere = plan(&[]);
        agree(&mut nowhere, none).unwrap();
        assert_eq!(nowhere.runs[0].request.machine, None);
    }

    #[test]
    fn what_was_asked_for_must_be_the_kernels() {
        let asked = ModelTicks { hz: Some(250), machine: None };
        agree(&mut plan(&["250"]), asked).unwrap();
        let error = agree(&mut plan(&["100"]), asked).unwrap_err().text();
        assert!(error.starts_with("--hz 250 beside guests: kernel 100 has HZ 100"), "{error}");
        let spec = MachineSpec::flat(1);
        let mut own = plan(&["100"]);
        agree(&mut own, ModelTicks { hz: None, machine: Some(&spec) }).unwrap();
        assert!(matches!(&own.notes[..], [Note::OtherHz { .. }]), "{:?}", own.notes);
    }
}
