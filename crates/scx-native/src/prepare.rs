// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a setup to a loaded scheduler, before its `ops.init`: variables, inner maps, elements of
//! maps, the arena library, programs, in this order, as user programs do.
//!
//! The protocol of the arena library is that of `ArenaLib::setup` in the scx repository
//! (rust/scx_arena): memory for contexts of tasks, then the tree of the machine from the top to
//! each CPU.

use super::dwarf::Type;
use super::ops::NativeOps;
use super::program::{Program, RUN_TIME};
use super::touch;
use schedlab_model::CpuId;
use schedlab_scx::{Kernel, OpsFault};
use schedlab_scx_source::{
    ArenaSetup, ReadySetup, SetupElement, SetupStep as Step, SetupValue as Known, arena,
    setup_path as steps,
};

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
        setup: &ReadySetup,
        is_chosen: &dyn Fn(&str) -> bool,
    ) -> Result<(), OpsFault> {
        let fault = |what: String| OpsFault(format!("the setup fails: {what}"));
        for (path, value) in &setup.variables {
            let (name, steps) = steps(path).map_err(fault)?;
            if is_chosen(name) || (setup.is_lenient && !self.has_variable(name)) {
                continue;
            }
            match self.set_variable(name, &steps, value) {
                // Another version of the scheduler has other members.
                Err(_) if setup.is_lenient => {}
                done => done.map_err(|why| fault(format!("variable {path}: {why}")))?,
            }
        }
        for name in &setup.inner_maps {
            match self.run.fill_inner_maps(name) {
                Err(_) if setup.is_lenient => {}
                done => done.map_err(|why| fault(format!("map {name}: {why}")))?,
            }
        }
        for element in &setup.elements {
            match self.set_element(element) {
                Err(_) if setup.is_lenient => {}
                done => done.map_err(|why| fault(format!("map {}: {why}", element.map)))?,
            }
        }
        let has_arena = function(&self.run.program, arena::INIT).is_some();
        if let Some(arena) = &setup.arena
            && (has_arena || !setup.is_lenient)
        {
            self.set_up_arena(k, arena)?;
        }
        self.run_programs(k, setup, false)
    }

    fn has_variable(&self, name: &str) -> bool {
        self.run.program.variables.iter().any(|(_, of)| of.name == name)
    }

    /// Runs the setup's programs for before the scheduler is attached, or for after.
    pub(super) fn run_programs(
        &mut self,
        k: &mut Kernel<'_>,
        setup: &ReadySetup,
        attached: bool,
    ) -> Result<(), OpsFault> {
        for run in setup.runs.iter().filter(|run| run.attached == attached) {
            // Another version of the scheduler has other programs.
            let is_other = setup.is_lenient && function(&self.run.program, &run.program).is_none();
            let lacks = |needs: &String| !self.has_variable(needs);
            if is_other || run.needs.as_ref().is_some_and(lacks) {
                continue;
            }
            let mut context = run.context.clone();
            let cpu = run.cpu.or(setup.init_cpu).map_or(k.this_cpu(), CpuId);
            k.on_cpu(cpu, |k| self.run_program(k, &run.program, &mut context))?;
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

    fn set_element(&mut self, element: &SetupElement) -> Result<(), String> {
        let SetupElement { key, value, .. } = element;
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
        let place = map.insert(key, 0, element.cpu).map_err(|errno| format!("error {errno}"))?;
        let mut all = vec![(place, value.clone())];
        for (path, value) in &element.members {
            let of = map.def.value.as_deref().ok_or("its values have no type")?;
            let (_, steps) = steps(path)?;
            assign(of, place, &steps, value, &mut all)?;
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

    fn set_up_arena(&mut self, k: &mut Kernel<'_>, machine: &ArenaSetup) -> Result<(), OpsFault> {
        let program = std::sync::Arc::clone(&self.run.program);
        let own = arena::own_task_context(&self.info.name);
        let size = |name: &str| program.debug.iter().find_map(|of| of.size_of(name));
        let Some(context) = size(arena::TASK_CONTEXT).or_else(|| size(&own)) else {
            let what = format!("there is no type {} or {own}", arena::TASK_CONTEXT);
            return Err(OpsFault(format!("the setup fails: {what}")));
        };
        self.run_words(k, arena::INIT, &mut [arena::STATIC_PAGES, context, 0])?;
        if function(&program, arena::TOPOLOGY_INIT).is_some() {
            let most = machine.most.iter().chain(&[0]);
            let mut bytes: Vec<u8> = most.flat_map(|nr| nr.to_le_bytes()).collect();
            self.run_program(k, arena::TOPOLOGY_INIT, &mut bytes)?;
        }
        if function(&program, arena::NODE_INIT).is_none() {
            return Ok(());
        }
        for (id, words) in &machine.spans {
            let mut mask = [0];
            self.run_words(k, arena::ALLOC_MASK, &mut mask)?;
            touch::put_words(mask[0], words);
            self.run_words(k, arena::NODE_INIT, &mut [mask[0], 0, u64::from(*id)])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fill_the_places_of_their_paths() {
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
