// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ticks a second where models stand beside guests: a kernel's are fixed when it is built, so
//! another HZ cannot be asked of it, and models of the same experiment take the kernel's unless
//! their machine says otherwise.

use crate::error::{CliError, CliResult};
use schedlab_lab::Plan;
use schedlab_lab::plan::Note;
use schedlab_run::{LaneKind, MachineSpec};
use schedlab_sim::SimLane;
use schedlab_vm::VmLane;
use schedlab_vm::lane::Target;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes the models of each experiment agree with the kernels of its guests, or says where they
/// differ.
pub fn agree(plan: &mut Plan, guests: Option<&VmLane>, lane: &SimLane) -> CliResult<()> {
    let Some(guests) = guests else { return Ok(()) };
    for experiment in 0..plan.experiments.len() {
        let kernels = kernels(plan, experiment, guests)?;
        if let (Some(asked), false) = (lane.hz, kernels.is_empty()) {
            refuse(asked, &kernels)?;
        }
        let note = follow(plan, experiment, lane, &kernels);
        plan.notes.extend(note);
    }
    plan.notes.dedup();
    Ok(())
}

/// HZ of each kernel of an experiment's guests.
fn kernels(plan: &Plan, experiment: usize, guests: &VmLane) -> CliResult<BTreeMap<String, u32>> {
    let mut found = BTreeMap::new();
    let runs =
        plan.runs.iter().filter(|run| run.experiment == experiment && run.lane == LaneKind::Vm);
    for run in runs {
        let name = Target::parse(&run.request.scheduler).kernel;
        if !found.contains_key(name) {
            found.insert(name.to_owned(), guests.hz(name)?);
        }
    }
    Ok(found)
}

fn refuse(asked: u32, kernels: &BTreeMap<String, u32>) -> CliResult<()> {
    let Some((name, hz)) = kernels.iter().find(|(_, hz)| **hz != asked) else { return Ok(()) };
    Err(CliError::usage_help(
        format!(
            "--hz {asked} beside guests: kernel {name} has HZ {hz}, which is fixed when a kernel \
             is built"
        ),
        format!("leave --hz out (models then have HZ {hz} too), or leave the guests out"),
    ))
}

/// Gives models without a machine the kernels' HZ; a note about the others that have another.
fn follow(
    plan: &mut Plan,
    experiment: usize,
    lane: &SimLane,
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
        let machine = run.request.machine.as_ref().or(lane.machine.as_ref());
        let own = match machine {
            _ if lane.hz.is_some() => continue,
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
