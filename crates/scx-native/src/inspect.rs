// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps what a scheduler's author asked to see of a run: lines of bpf_printk(), and the contents
//! of maps and variables at the end.

use super::decode::Decoder;
use super::dwarf::{Type, Variable};
use super::maps::{BpfMap, Shown, ShownKey};
use super::program::Program;
use super::run::Run;
use schedlab_model::{CgroupId, TaskId};
use schedlab_scx::inspect::{
    Inspected, MapElement, MapState, Printk, PrintkLine, State, Value, VariableState, Wanted,
    WantedMaps,
};
use schedlab_scx::{Callback, Kernel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is to be kept of the next run, and what was kept of the last one. It shows the lines and
/// the maps of one run: runs in parallel would mix. Coverage is that of all runs.
#[derive(Debug, Default)]
pub struct Inspector {
    wanted: Wanted,
    found: Mutex<Inspected>,
}

impl Inspector {
    /// Keeps this.
    pub fn new(wanted: Wanted) -> Self {
        let this = Self { wanted, found: Mutex::default() };
        this.found().printk = this.wanted.lines.map(|_| Printk::default());
        this
    }

    fn found(&self) -> MutexGuard<'_, Inspected> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was kept so far.
    pub fn take(&self) -> Inspected {
        std::mem::take(&mut *self.found())
    }

    /// The running callback prints a line.
    pub(super) fn print(&self, k: &Kernel<'_>, text: &str) {
        let Some(max) = self.wanted.lines else { return };
        let mut found = self.found();
        let printk = found.printk.get_or_insert_default();
        if printk.lines.len() >= max {
            printk.nr_left_out += 1;
            return;
        }
        let cpu = k.this_cpu().0;
        let (task, pid) = match k.current() {
            Some(task) => (k.comm(task).to_owned(), k.pid(task)),
            None => (format!("swapper/{cpu}"), 0),
        };
        let callback = match k.callback() {
            None => "a syscall program",
            Some(Callback::Timer) => "a bpf_timer",
            Some(callback) => callback.ops_name(),
        };
        printk.lines.push(PrintkLine {
            time_ns: k.now(),
            cpu,
            task,
            pid,
            callback: callback.into(),
            text: text.trim_end_matches('\n').to_owned(),
        });
    }

    /// The scheduler of `run` ends: keeps its maps and variables, once, and adds what it reached.
    pub(super) fn ends(&self, k: &Kernel<'_>, run: &Run) {
        if self.wanted.coverage {
            let reached = run.program.coverage.read(&run.image);
            self.found().coverage.get_or_insert_default().add(reached);
        }
        let Some(wanted) = &self.wanted.maps else { return };
        let mut found = self.found();
        if found.state.is_none() {
            found.state = Some(Look { run, k, wanted }.state());
        }
    }
}

/// Names of the maps and variables of a program that can be shown.
pub fn names(program: &Program) -> Vec<String> {
    let maps = program.maps.iter().map(|(_, map)| map.name.clone());
    let variables = program.variables.iter().filter(|(object, of)| is_shown(program, *object, of));
    maps.chain(variables.map(|(_, variable)| variable.name.clone())).collect()
}

/// Whether a variable is of interest: an option, or one that the scheduler can write. Constants are
/// in the source.
fn is_shown(program: &Program, object: usize, variable: &Variable) -> bool {
    let section = &program.objects[object].sections[variable.section].name;
    let starts = [".bss", ".data", ".addr_space"];
    variable.is_option || starts.iter().any(|start| section.starts_with(start))
}

/// A look at a run.
struct Look<'l> {
    run: &'l Run,
    k: &'l Kernel<'l>,
    wanted: &'l WantedMaps,
}

impl Look<'_> {
    fn state(&self) -> State {
        let program = &self.run.program;
        let shown = program.variables.iter().filter(|(object, of)| is_shown(program, *object, of));
        let wanted = shown.filter(|(_, variable)| self.is_wanted(&variable.name));
        State {
            time_ns: self.k.now(),
            variables: wanted.map(|(object, of)| self.variable(*object, of)).collect(),
            maps: self.maps().map(|map| self.map(map)).collect(),
        }
    }

    /// The maps that were asked for. The inner maps of an array belong to it.
    fn maps(&self) -> impl Iterator<Item = &BpfMap> {
        let outer = |map: &BpfMap| map.name.split('[').next().unwrap_or_default().to_owned();
        self.run.maps.iter().filter(move |map| self.is_wanted(&outer(map)))
    }

    fn is_wanted(&self, name: &str) -> bool {
        let names = &self.wanted.names;
        names.is_empty() || names.iter().any(|wanted| wanted == name)
    }

    fn decode(&self, of: Option<&Type>, bytes: &[u8]) -> Value {
        Decoder::new(&|at| self.name_of(at)).value(of, bytes)
    }

    fn variable(&self, object: usize, variable: &Variable) -> VariableState {
        let (run, mut of) = (self.run, variable.of.clone());
        // An array of unknown length has got one for this machine.
        if let (Some(size), Type::Array { of: element, nr: nr @ 1 }) =
            (run.sizes.get(&(object, variable.section)), &mut of)
        {
            *nr = *size as u64 / element.size().max(1);
        }
        let at = run.image.address(object, variable.section, variable.offset);
        let bytes = run.image.bytes(at, of.size() as usize);
        VariableState {
            name: variable.name.clone(),
            is_option: variable.is_option,
            value: self.decode(Some(&of), &bytes),
        }
    }

    fn map(&self, map: &BpfMap) -> MapState {
        let mut state = MapState {
            name: map.name.clone(),
            kind: map.kind().into(),
            nr_elements: 0,
            nr_zero: 0,
            nr_left_out: 0,
            elements: Vec::new(),
        };
        for shown in map.shown() {
            state.nr_elements += 1;
            let is_zero = shown.values.iter().flatten().all(|byte| *byte == 0);
            state.nr_zero += u64::from(is_zero);
            if is_zero && matches!(shown.key, ShownKey::Index(_)) {
                continue;
            }
            if state.elements.len() < self.wanted.elements {
                state.elements.push(self.element(map, &shown));
            } else {
                state.nr_left_out += 1;
            }
        }
        state
    }

    fn element(&self, map: &BpfMap, shown: &Shown) -> MapElement {
        let key = match &shown.key {
            ShownKey::Index(index) => Some(Value::Unsigned(*index)),
            ShownKey::Bytes(bytes) => Some(self.decode(map.def.key.as_deref(), bytes)),
            ShownKey::Owner(number) => Some(Value::Word(self.owner(map, *number))),
            ShownKey::Nothing => None,
        };
        let of = map.def.value.as_deref();
        let of = if map.kind() == "ARRAY_OF_MAPS" { Some(&Type::Pointer) } else { of };
        let mut values = shown.values.iter().map(|bytes| self.decode(of, bytes));
        let value = match map.is_percpu() {
            true => Value::List(values.collect()),
            false => values.next().unwrap_or(Value::List(Vec::new())),
        };
        MapElement { key, value }
    }

    /// The task or group that a storage belongs to.
    fn owner(&self, map: &BpfMap, number: usize) -> String {
        let index = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        if !map.is_task_storage() {
            return self.k.cgroup(CgroupId(index(number))).path.clone();
        }
        match number.checked_sub(self.run.nr_cpus as usize) {
            None => format!("swapper/{number}"),
            Some(task) => self.task(TaskId(index(task))),
        }
    }

    fn task(&self, task: TaskId) -> String {
        format!("{}[{}]", self.k.name(task), self.k.pid(task))
    }

    /// What is at an address.
    fn name_of(&self, at: u64) -> Option<String> {
        let run = self.run;
        if let Some(cpu) = run.tasks.idle_cpu(at) {
            return Some(format!("task swapper/{cpu}"));
        }
        if let Some(task) = run.tasks.task(at) {
            return Some(format!("task {}", self.task(task)));
        }
        if let Some(group) = run.groups.group(at) {
            return Some(format!("cgroup {}", self.k.cgroup(group).path));
        }
        if let Some(map) = run.maps.iter().find(|map| map.address == at) {
            return Some(format!("map {}", map.name));
        }
        let (object, section, offset) = run.image.place(&run.program, at)?;
        let function = run.program.function_at(object, section, offset)?;
        Some(format!("function {function}"))
    }
}
