// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves the words of a setup for one machine, for the simulator and for a kernel.

use super::error::NativeError;
use super::setup::{Element, ProgramRun, Setup, layout};
use super::setup_words::{Machine, Part, Value};
use schedlab_model::CpuId;
use schedlab_model::machine::Topology;
use schedlab_scx_source::{ArenaSetup, ReadySetup, SetupElement, SetupRun, SetupValue};
use std::collections::BTreeMap;
use std::path::Path;

/// The setup that a kernel's loader applies to the scheduler called `name`: that of `file`, or next
/// to `source`, or the built-in one; `None`: there is none.
///
/// # Errors
/// The file cannot be read, its values do not fit the machine, or nothing can replace the
/// scheduler's user program.
pub fn ready_setup(
    name: &str,
    source: &Path,
    file: Option<&Path>,
    topology: &Topology,
    hz: u32,
) -> Result<Option<ReadySetup>, NativeError> {
    let setup = Setup::of(name, source, file)?;
    if let Some(why) = &setup.refuse {
        return Err(NativeError::Refused(format!("scheduler {name}: {why}")));
    }
    if setup == Setup::default() {
        return Ok(None);
    }
    let refused = |why: String| NativeError::Refused(format!("the setup {}: {why}", setup.origin));
    setup.ready(topology, hz).map(Some).map_err(refused)
}

impl Setup {
    /// The setup for one machine with `hz` ticks a second.
    ///
    /// # Errors
    /// It is for another machine, or a word has no meaning.
    pub(super) fn ready(&self, topology: &Topology, hz: u32) -> Result<ReadySetup, String> {
        if let Some(recorded) = &self.recorded {
            recorded.check(topology)?;
        }
        let machine = Machine::new(topology, hz);
        let mut variables = Vec::new();
        for (path, value) in in_order(&self.variables) {
            let known = value.known(&machine).map_err(|why| format!("variable {path}: {why}"))?;
            variables.push((path.clone(), known));
        }
        let (mut elements, mut runs) = (Vec::new(), Vec::new());
        for element in &self.elements {
            let all = ready_elements(element, &machine);
            elements.extend(all.map_err(|why| format!("map {}: {why}", element.map))?);
        }
        for run in &self.runs {
            let all = ready_runs(run, &machine);
            runs.extend(all.map_err(|why| format!("program {}: {why}", run.program))?);
        }
        let init_cpu = cpu_of(self.init_cpu.as_ref(), &machine);
        Ok(ReadySetup {
            init_cpu: init_cpu.map_err(|why| format!("init_{why}"))?,
            origin: self.origin.clone(),
            is_lenient: self.is_known,
            flags: self.flags.clone(),
            variables,
            inner_maps: self.inner_maps.clone(),
            elements,
            arena: self.arena.then(|| arena(&machine)),
            runs,
        })
    }
}

/// Values by path: those for all elements first, so that others can differ from them.
fn in_order(values: &BTreeMap<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let is_for_all = |path: &str| path.contains("[all]");
    let first = values.iter().filter(move |(path, _)| is_for_all(path));
    first.chain(values.iter().filter(move |(path, _)| !is_for_all(path)))
}

fn ready_elements(element: &Element, machine: &Machine<'_>) -> Result<Vec<SetupElement>, String> {
    let one = |machine: Machine<'_>| {
        let members: Result<Vec<(String, SetupValue)>, String> = in_order(&element.members)
            .map(|(path, value)| Ok((path.clone(), value.known(&machine)?)))
            .collect();
        Ok(SetupElement {
            map: element.map.clone(),
            key: layout(&element.key, &machine)?,
            value: layout(&element.value, &machine)?,
            members: members?,
            cpu: cpu_of(element.cpu.as_ref(), &machine)?.unwrap_or(machine.cpu()),
        })
    };
    each(machine, element.each.as_deref())?.into_iter().map(one).collect()
}

fn ready_runs(run: &ProgramRun, machine: &Machine<'_>) -> Result<Vec<SetupRun>, String> {
    let one = |machine: Machine<'_>| {
        Ok(SetupRun {
            program: run.program.clone(),
            needs: run.needs.clone(),
            context: layout(&run.context, &machine)?,
            cpu: cpu_of(run.cpu.as_ref(), &machine)?,
            attached: run.attached,
        })
    };
    each(machine, run.each.as_deref())?.into_iter().map(one).collect()
}

fn arena(machine: &Machine<'_>) -> ArenaSetup {
    let all: Vec<CpuId> = machine.ids(Part::Cpu).into_iter().map(CpuId).collect();
    let mut spans = vec![(0, machine.mask(&all))];
    for part in [Part::Node, Part::Llc, Part::Core, Part::Cpu] {
        let ids = machine.ids(part).into_iter();
        spans.extend(ids.map(|id| (id, machine.mask(&machine.cpus(part, id)))));
    }
    let most = [
        machine.ids(Part::Node).len() as u32,
        machine.most(Part::Llc, Part::Node),
        machine.most(Part::Core, Part::Llc),
        machine.most(Part::Cpu, Part::Core),
    ];
    ArenaSetup { most, spans }
}

/// The CPU that an entry names.
fn cpu_of(value: Option<&Value>, machine: &Machine<'_>) -> Result<Option<u32>, String> {
    let Some(value) = value else { return Ok(None) };
    let number = value.number(machine)?;
    let ids = machine.ids(Part::Cpu);
    let cpu = u32::try_from(number).ok().filter(|cpu| ids.contains(cpu));
    cpu.map(Some).ok_or_else(|| {
        format!("cpu = {number}: the machine has CPUs 0 to {}", ids.len().saturating_sub(1))
    })
}

/// The machine once, or as seen from each part that `each` names.
fn each<'a>(machine: &Machine<'a>, each: Option<&str>) -> Result<Vec<Machine<'a>>, String> {
    Ok(match each {
        Some(part) => machine.each(Part::of(part)?),
        None => vec![*machine],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(name: &str, topology: &Topology) -> ReadySetup {
        let found = ready_setup(name, Path::new("./x.bpf.c"), None, topology, 250);
        found.unwrap().expect("it is built in")
    }

    #[test]
    fn words_become_numbers_of_the_machine() {
        let topology = Topology::flat(2);
        let setup = ready("tickless", &topology);
        assert!(setup.is_lenient && setup.origin == "built-in: tickless");
        let last = setup.runs.last().unwrap();
        assert_eq!(
            (last.cpu, &last.context[..], last.attached),
            (Some(1), &[1, 0, 0, 0][..], true)
        );
        assert_eq!(setup.init_cpu, Some(1));
        let arena = ready("lavd", &topology).arena.unwrap();
        // The machine, its node, cache, and of each of two cores and CPUs one.
        let masks: Vec<u64> = arena.spans.iter().map(|(_, mask)| mask[0]).collect();
        assert_eq!((arena.most, &masks[..]), ([1, 1, 2, 1], &[3, 3, 3, 1, 2, 1, 2][..]));
        let none = ready_setup("none", Path::new("./x.bpf.c"), None, &topology, 250);
        assert_eq!(none.unwrap(), None);
        let user = ready_setup("userland", Path::new("./x.bpf.c"), None, &topology, 250);
        assert!(user.unwrap_err().to_string().contains("decides in user space"));
    }
}
