// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a setup to a loaded scheduler, before its `ops.init`: variables, elements of maps, the
//! arena library, programs, in this order, as user programs do.
//!
//! The protocol of the arena library is that of `ArenaLib::setup` in the scx repository
//! (rust/scx_arena): memory for contexts of tasks, then the tree of the machine from the top to
//! each CPU.

use super::dwarf::Type;
use super::ops::NativeOps;
use super::program::{Program, RUN_TIME};
use super::setup::{Element, Setup, layout};
use super::setup_words::{Known, Machine, Part, Value};
use super::touch;
use schedlab_model::CpuId;
use schedlab_model::machine::Topology;
use schedlab_scx::{Kernel, OpsFault};
use std::collections::BTreeMap;

/// The type of a task's context in schedulers that use the arena library; in some after the
/// scheduler's name and `_`.
const TASK_CONTEXT: &str = "task_ctx";
/// The program that prepares the library.
const ARENA_INIT: &str = "arena_init";
/// Pages that the library takes from the map at a time.
const STATIC_PAGES: u64 = 8;

/// A step of a path to a part of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step<'t> {
    Member(&'t str),
    Index(u64),
    /// A value for each element.
    Every,
    /// Every element has this value.
    All,
}

/// Splits `name.member[3][*]` into the name and the steps.
fn steps(path: &str) -> Result<(&str, Vec<Step<'_>>), String> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut rest) = path.split_at(end);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let wrong = || format!("{path:?} is no path such as a.b[3] or a[*].b");
        if let Some(member) = rest.strip_prefix('.') {
            let end = member.find(['.', '[']).unwrap_or(member.len());
            steps.push(Step::Member(&member[..end]));
            rest = &member[end..];
        } else {
            let (index, after) =
                rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(wrong)?;
            steps.push(match index {
                "*" => Step::Every,
                "all" => Step::All,
                _ => Step::Index(index.parse().map_err(|_| wrong())?),
            });
            rest = after;
        }
    }
    Ok((name, steps))
}

/// Bytes for places of a variable of type `of` at `at`.
fn assign(
    of: &Type,
    at: u64,
    steps: &[Step<'_>],
    value: &Known,
    all: &mut Vec<(u64, Vec<u8>)>,
) -> Result<(), String> {
    match (steps.split_first(), of, value) {
        (Some((Step::Member(name), rest)), Type::Struct { members, .. }, _) => {
            let member = members.iter().find(|(own, ..)| own == name);
            let (_, offset, of) = member.ok_or_else(|| format!("there is no member {name}"))?;
            assign(of, at + offset, rest, value, all)
        }
        (Some((Step::Index(index), rest)), Type::Array { of, nr }, _) if index < nr => {
            assign(of, at + index * of.size(), rest, value, all)
        }
        (Some((Step::All, rest)), Type::Array { of, nr }, _) => {
            (0..*nr).try_for_each(|index| assign(of, at + index * of.size(), rest, value, all))
        }
        (None | Some((Step::Every, _)), Type::Array { of, nr }, Known::List(values)) => {
            if values.len() as u64 > *nr {
                return Err(format!("{} values for an array of {nr}", values.len()));
            }
            let rest = steps.get(1..).unwrap_or_default();
            let mut places = (0..).map(|index| at + index * of.size());
            values
                .iter()
                .try_for_each(|value| assign(of, places.next().unwrap_or(at), rest, value, all))
        }
        (
            None,
            Type::Int { size: size @ 1..=8, .. } | Type::Enum { size: size @ 1..=8, .. },
            Known::Number(number),
        ) => {
            all.push((at, number.to_le_bytes()[..*size as usize].to_vec()));
            Ok(())
        }
        (None, Type::Bool, Known::Number(number)) => {
            all.push((at, vec![u8::from(*number != 0)]));
            Ok(())
        }
        _ => Err("the path and the value do not fit its type".into()),
    }
}

/// Object, section and offset of a function of the scheduler.
fn function(program: &Program, name: &str) -> Option<(usize, usize, u64)> {
    use super::object::Place;
    program.objects.iter().enumerate().skip(RUN_TIME + 1).find_map(|(object, of)| {
        of.symbols.iter().find_map(|symbol| match symbol.place {
            Place::Section(section, offset) if symbol.is_function && symbol.name == name => {
                Some((object, section, offset))
            }
            _ => None,
        })
    })
}

impl NativeOps {
    /// Applies the setup. `is_chosen`: whether the user has set a variable.
    pub(super) fn prepare(
        &mut self,
        k: &mut Kernel<'_>,
        setup: &Setup,
        is_chosen: &dyn Fn(&str) -> bool,
    ) -> Result<(), OpsFault> {
        let topology: Topology = k.topology().clone();
        let machine = Machine::new(&topology, k.hz());
        let fault = |what: String| OpsFault(format!("the setup fails: {what}"));
        if let Some(recorded) = &setup.recorded {
            recorded.check(&topology).map_err(OpsFault)?;
        }
        for (path, value) in in_order(&setup.variables) {
            let (name, steps) = steps(path).map_err(fault)?;
            let is_there = self.run.program.variables.iter().any(|(_, of)| of.name == name);
            if is_chosen(name) || (setup.is_known && !is_there) {
                continue;
            }
            let known = value.known(&machine);
            match known.and_then(|value| self.set_variable(name, &steps, &value)) {
                // Another version of the scheduler has other members.
                Err(_) if setup.is_known => {}
                done => done.map_err(|why| fault(format!("variable {path}: {why}")))?,
            }
        }
        for element in &setup.elements {
            let of = |why: String| fault(format!("map {}: {why}", element.map));
            for machine in each(&machine, element.each.as_deref()).map_err(of)? {
                let key = layout(&element.key, &machine).map_err(of)?;
                let value = layout(&element.value, &machine).map_err(of)?;
                match self.set_element(element, &machine, &key, &value) {
                    Err(_) if setup.is_known => {}
                    done => done.map_err(of)?,
                }
            }
        }
        let has_arena = function(&self.run.program, ARENA_INIT).is_some();
        if setup.arena && (has_arena || !setup.is_known) {
            self.set_up_arena(k, &machine)?;
        }
        self.run_programs(k, setup, false)
    }

    /// Runs the setup's programs for before the scheduler is attached, or for after.
    pub(super) fn run_programs(
        &mut self,
        k: &mut Kernel<'_>,
        setup: &Setup,
        attached: bool,
    ) -> Result<(), OpsFault> {
        let topology: Topology = k.topology().clone();
        let machine = Machine::new(&topology, k.hz());
        let fault = |what: String| OpsFault(format!("the setup fails: {what}"));
        for run in setup.runs.iter().filter(|run| run.attached == attached) {
            let of = |why: String| fault(format!("program {}: {why}", run.program));
            let mut variables = self.run.program.variables.iter();
            let lacks = |needs: &String| !variables.any(|(_, of)| of.name == *needs);
            // Another version of the scheduler has other programs.
            let is_other = setup.is_known && function(&self.run.program, &run.program).is_none();
            if is_other || run.needs.as_ref().is_some_and(lacks) {
                continue;
            }
            for machine in each(&machine, run.each.as_deref()).map_err(of)? {
                let mut context = layout(&run.context, &machine).map_err(of)?;
                let cpu = cpu_of(run.cpu.as_ref(), &machine).map_err(of)?.unwrap_or(k.this_cpu());
                k.on_cpu(cpu, |k| self.run_program(k, &run.program, &mut context))?;
            }
        }
        Ok(())
    }

    fn set_variable(
        &mut self,
        name: &str,
        steps: &[Step<'_>],
        value: &Known,
    ) -> Result<(), String> {
        let program = std::sync::Arc::clone(&self.run.program);
        let mut own = program.variables.iter().filter(|(_, variable)| variable.name == name);
        let (object, variable) = own.next().ok_or("the scheduler has none")?;
        let at = self.run.image.address(*object, variable.section, variable.offset);
        let mut all = Vec::new();
        assign(&variable.of, at, steps, value, &mut all)?;
        for (at, bytes) in all {
            self.run.image.put(at, &bytes);
        }
        Ok(())
    }

    fn set_element(
        &mut self,
        element: &Element,
        machine: &Machine<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), String> {
        let map = self.run.maps.iter_mut().find(|map| map.name == element.map);
        let map = map.ok_or("the scheduler has none")?;
        let (key_size, value_size) = (map.def.key_size as usize, map.def.value_size as usize);
        let is_whole = element.members.is_empty() || !value.is_empty();
        if key.len() != key_size || (is_whole && value.len() != value_size) {
            return Err(format!(
                "a key of {} bytes and a value of {}, it has {key_size} and {value_size}",
                key.len(),
                value.len()
            ));
        }
        let cpu = cpu_of(element.cpu.as_ref(), machine)?.map_or(machine.cpu(), |cpu| cpu.0);
        let place = map.insert(key, 0, cpu).map_err(|errno| format!("error {errno}"))?;
        let mut all = vec![(place, value.to_vec())];
        for (path, value) in in_order(&element.members) {
            let of = map.def.value.as_deref().ok_or("its values have no type")?;
            let (_, steps) = steps(path)?;
            assign(of, place, &steps, &value.known(machine)?, &mut all)?;
        }
        for (at, bytes) in all {
            touch::copy_to(at, &bytes);
        }
        Ok(())
    }

    /// Runs a program with an argument, which it may change. Returns its result.
    pub(super) fn call_program(
        &mut self,
        k: &mut Kernel<'_>,
        name: &str,
        context: &mut [u8],
    ) -> Result<i32, OpsFault> {
        let Some((object, section, offset)) = function(&self.run.program, name) else {
            return Err(OpsFault(format!("the setup fails: there is no program {name}")));
        };
        let address = self.run.image.address(object, section, offset);
        let block = self.run.zone.block(context.len().max(8));
        touch::copy_to(block.address(), context);
        let answer = self.call_function(k, address, [block.address(), 0, 0, 0])? as i32;
        touch::copy_from(block.address(), context);
        Ok(answer)
    }

    /// Runs a program of the setup, which must return 0.
    fn run_program(
        &mut self,
        k: &mut Kernel<'_>,
        name: &str,
        context: &mut [u8],
    ) -> Result<(), OpsFault> {
        match self.call_program(k, name, context)? {
            0 => Ok(()),
            answer => Err(OpsFault(format!(
                "the setup fails: {}",
                self.words(format!("program {name} returned {answer}"))
            ))),
        }
    }

    /// Runs a program whose argument is words of 64 bits.
    fn run_words(
        &mut self,
        k: &mut Kernel<'_>,
        name: &str,
        words: &mut [u64],
    ) -> Result<(), OpsFault> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.run_program(k, name, &mut bytes)?;
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        Ok(())
    }

    fn set_up_arena(&mut self, k: &mut Kernel<'_>, machine: &Machine<'_>) -> Result<(), OpsFault> {
        const NODE_INIT: &str = "arena_topology_node_init";
        let program = std::sync::Arc::clone(&self.run.program);
        let own = format!("{}_{TASK_CONTEXT}", self.info.name);
        let size = |name: &str| program.debug.iter().find_map(|of| of.size_of(name));
        let Some(context) = size(TASK_CONTEXT).or_else(|| size(&own)) else {
            return Err(OpsFault(format!(
                "the setup fails: there is no type {TASK_CONTEXT} or {own}"
            )));
        };
        self.run_words(k, ARENA_INIT, &mut [STATIC_PAGES, context, 0])?;
        if function(&program, "arena_topology_init").is_some() {
            let most = [
                machine.ids(Part::Node).len() as u32,
                machine.most(Part::Llc, Part::Node),
                machine.most(Part::Core, Part::Llc),
                machine.most(Part::Cpu, Part::Core),
                0,
            ];
            let mut bytes: Vec<u8> = most.iter().flat_map(|nr| nr.to_le_bytes()).collect();
            self.run_program(k, "arena_topology_init", &mut bytes)?;
        }
        if function(&program, NODE_INIT).is_none() {
            return Ok(());
        }
        let all: Vec<_> = machine.ids(Part::Cpu).into_iter().map(schedlab_model::CpuId).collect();
        let mut spans = vec![(0, all)];
        for part in [Part::Node, Part::Llc, Part::Core, Part::Cpu] {
            spans.extend(machine.ids(part).into_iter().map(|id| (id, machine.cpus(part, id))));
        }
        for (id, cpus) in spans {
            let mut mask = [0];
            self.run_words(k, "arena_alloc_mask", &mut mask)?;
            touch::put_words(mask[0], &machine.mask(&cpus));
            self.run_words(k, NODE_INIT, &mut [mask[0], 0, u64::from(id)])?;
        }
        Ok(())
    }
}

/// Values by path: those for all elements first, so that others can differ from them.
fn in_order(values: &BTreeMap<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let is_for_all = |path: &str| path.contains("[all]");
    let first = values.iter().filter(move |(path, _)| is_for_all(path));
    first.chain(values.iter().filter(move |(path, _)| !is_for_all(path)))
}

/// The CPU that an entry names.
fn cpu_of(value: Option<&Value>, machine: &Machine<'_>) -> Result<Option<CpuId>, String> {
    let Some(value) = value else { return Ok(None) };
    let number = value.number(machine)?;
    let ids = machine.ids(Part::Cpu);
    let cpu = u32::try_from(number).ok().filter(|cpu| ids.contains(cpu));
    cpu.map(|cpu| Some(CpuId(cpu))).ok_or_else(|| {
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

    #[test]
    fn paths_lead_to_parts_of_variables() {
        let path = steps("a.b[3][*].c[all]").unwrap();
        let expected =
            vec![Step::Member("b"), Step::Index(3), Step::Every, Step::Member("c"), Step::All];
        assert_eq!(path, ("a", expected));
        assert!(steps("a[x]").unwrap_err().contains("is no path such as"));
        let int = Type::Int { size: 2, signed: false };
        let pair = Type::Struct {
            size: 4,
            members: vec![("x".into(), 0, int.clone()), ("y".into(), 2, int)],
        };
        let pairs = Type::Array { of: Box::new(pair), nr: 3 };
        let list = Known::List(vec![Known::Number(7), Known::Number(8)]);
        let mut all = Vec::new();
        assign(&pairs, 100, &[Step::Every, Step::Member("y")], &list, &mut all).unwrap();
        assert_eq!(all, [(102, vec![7, 0]), (106, vec![8, 0])]);
        let error = assign(&pairs, 0, &[Step::Member("z")], &list, &mut all).unwrap_err();
        assert!(error.contains("do not fit"), "{error}");
        let four = Known::List(vec![Known::Number(1); 4]);
        let error = assign(&pairs, 0, &[Step::Every], &four, &mut all).unwrap_err();
        assert!(error.contains("4 values for an array of 3"), "{error}");
    }
}
