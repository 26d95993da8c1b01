// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user program of a scheduler, unchanged, next to the simulation: what it reaches is the
//! simulated scheduler. The crate scx-record runs it; here are the maps, variables and programs.

use super::error::NativeError;
use super::maps::BpfMap;
use super::maps::errno::ENOENT;
use super::ops::NativeOps;
use super::run::Run;
use super::setup::Setup;
use super::touch;
use schedlab_model::machine::Machine;
use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_scx::kernel::UPTIME_NS;
use schedlab_scx::{Kernel, OpsFault, UserWait};
use schedlab_scx_record::{Backend, Live, RecordError, Request, SharedArena, Wait};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Units of /proc/stat: 100 a second.
const TIMES_UNIT_NS: u64 = 10_000_000;

/// A user program to run next to simulations of its scheduler.
#[derive(Clone, Debug)]
pub struct UserProgram {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Type information (BTF) of a kernel with sched_ext.
    pub types: Arc<[u8]>,
    /// The release of this kernel.
    pub kernel: String,
    /// How long the program may take to attach its scheduler, on this machine.
    pub limit: Duration,
    /// CPU time of a step in the simulation (ns).
    pub step_ns: Nanos,
}

/// A running user program.
#[derive(Debug)]
pub struct User {
    live: Live,
    /// Addresses and sizes of the scheduler's variables.
    variables: BTreeMap<String, (u64, usize)>,
}

fn refused(error: RecordError) -> NativeError {
    match error {
        RecordError::Unavailable(what) => NativeError::Internal(what),
        RecordError::Input(what) | RecordError::Program(what) => NativeError::Refused(what),
    }
}

impl UserProgram {
    /// Starts the program on `machine`. It then waits in its attach. Returns what it has set up.
    pub(super) fn start(&self, machine: &Machine) -> Result<(Live, Setup), NativeError> {
        let request = Request {
            command: &self.command,
            topology: &machine.topology,
            caches: &machine.caches,
            types: &self.types,
            kernel: &self.kernel,
            limit: self.limit,
        };
        let times = times(&vec![0; machine.nr_cpus() as usize], UPTIME_NS);
        let (live, recording) = Live::start(&request, UPTIME_NS, &times).map_err(refused)?;
        Ok((live, Setup::parse(&recording.text, "of the user program")?))
    }
}

impl User {
    /// A program that has set up `run`, and has the same arenas from now on.
    pub fn new(live: Live, run: &mut Run) -> Result<Self, NativeError> {
        for SharedArena { map, file, range } in live.arenas() {
            if let Some(map) = run.maps.iter_mut().find(|own| own.name == map) {
                run.zone.share(&file, &range).map_err(NativeError::Refused)?;
                map.move_arena(range.start, range.end - range.start);
            }
        }
        run.has_user_program = true;
        let mut variables = BTreeMap::new();
        for (object, variable) in &run.program.variables {
            let at = run.image.address(*object, variable.section, variable.offset);
            let grown = run.sizes.get(&(*object, variable.section)).copied();
            let size = grown.unwrap_or(variable.of.size() as usize);
            if at != 0 {
                variables.entry(variable.name.clone()).or_insert((at, size));
            }
        }
        Ok(Self { live, variables })
    }
}

impl NativeOps {
    /// Lets the user program do a step.
    pub(super) fn step_user(
        &mut self,
        k: &mut Kernel<'_>,
        _p: TaskId,
    ) -> Result<UserWait, OpsFault> {
        let Some(mut user) = self.user.take() else { return Ok(UserWait::Until(None)) };
        let now = k.clock_ns();
        let mut halves = Halves { ops: self, k, variables: &user.variables, fault: None };
        let wait = user.live.step(now, &mut halves);
        let fault = halves.fault.take();
        self.user = Some(user);
        if let Some(fault) = fault {
            return Err(fault);
        }
        match wait {
            Ok(Wait::Yield) => Ok(UserWait::Yield),
            Ok(Wait::Until(at)) => Ok(UserWait::Until(at.map(|at| at.saturating_sub(UPTIME_NS)))),
            Err(error) => Err(OpsFault(format!("the user program fails: {error}"))),
        }
    }
}

/// The scheduler and the kernel, for the user program.
struct Halves<'a, 'k> {
    ops: &'a mut NativeOps,
    k: &'a mut Kernel<'k>,
    variables: &'a BTreeMap<String, (u64, usize)>,
    /// The fault of a program that the user program ran.
    fault: Option<OpsFault>,
}

/// An error number of this crate as one of the C library.
fn errno(error: i64) -> i32 {
    error as i32
}

impl Halves<'_, '_> {
    fn map(&mut self, name: &str, key: Option<&[u8]>) -> Result<&mut BpfMap, i32> {
        let mut maps = self.ops.run.maps.iter_mut();
        let map = maps.find(|map| map.name == name).ok_or(errno(ENOENT))?;
        let fits = key.is_none_or(|key| key.len() as u64 == map.def.key_size);
        if fits { Ok(map) } else { Err(libc::EINVAL) }
    }

    /// CPUs whose copies a map has.
    fn copies(&mut self, name: &str) -> Result<u32, i32> {
        let nr_cpus = self.ops.run.nr_cpus;
        Ok(if self.map(name, None)?.is_percpu() { nr_cpus } else { 1 })
    }
}

impl Backend for Halves<'_, '_> {
    fn lookup(&mut self, name: &str, key: &[u8]) -> Result<Vec<u8>, i32> {
        let copies = self.copies(name)?;
        let map = self.map(name, Some(key))?;
        if map.def.key_size == 0 {
            return map.pop(true).map_err(errno);
        }
        let size = map.def.value_size as usize;
        let step = if copies > 1 || map.is_percpu() { size.next_multiple_of(8) } else { size };
        let mut all = vec![0; step * copies as usize];
        for (cpu, own) in (0..copies).zip(all.chunks_mut(step.max(1))) {
            match map.lookup(key, cpu) {
                0 => return Err(errno(ENOENT)),
                at => touch::copy_from(at, &mut own[..size]),
            }
        }
        Ok(all)
    }

    fn update(&mut self, name: &str, key: &[u8], value: &[u8], flags: u64) -> Result<(), i32> {
        let copies = self.copies(name)?;
        let map = self.map(name, Some(key))?;
        if map.def.key_size == 0 {
            return match map.push(value.to_vec(), flags) {
                0 => Ok(()),
                error => Err(errno(-error)),
            };
        }
        let size = map.def.value_size as usize;
        let step = if map.is_percpu() { size.next_multiple_of(8) } else { size };
        for (cpu, own) in (0..copies).zip(value.chunks(step.max(1))) {
            // The first copy says whether the flags allow it.
            let flags = if cpu == 0 { flags } else { 0 };
            let at = map.insert(key, flags, cpu).map_err(errno)?;
            touch::copy_to(at, own.get(..size).ok_or(libc::EFAULT)?);
        }
        Ok(())
    }

    fn delete(&mut self, name: &str, key: &[u8]) -> Result<(), i32> {
        let removed = self.map(name, Some(key))?.delete(key).map_err(errno)?;
        self.ops.run.end_timers(self.k, &removed);
        Ok(())
    }

    fn pop(&mut self, name: &str) -> Result<Vec<u8>, i32> {
        self.map(name, None)?.pop(false).map_err(errno)
    }

    fn next_key(&mut self, name: &str, key: Option<&[u8]>) -> Result<Vec<u8>, i32> {
        self.map(name, key)?.next_key(key).ok_or(errno(ENOENT))
    }

    fn run(&mut self, program: &str, context: &mut [u8], cpu: Option<u32>) -> Result<i32, i32> {
        let cpu = match cpu {
            None => self.k.this_cpu(),
            Some(cpu) if cpu < self.ops.run.nr_cpus => CpuId(cpu),
            Some(_) => return Err(libc::ENXIO),
        };
        if self.fault.is_some() {
            return Err(libc::EFAULT);
        }
        let ops = &mut *self.ops;
        let answer = self.k.on_cpu(cpu, |k| ops.call_program(k, program, context));
        answer.map_err(|fault| {
            self.fault = Some(fault);
            libc::EFAULT
        })
    }

    fn variable(&mut self, name: &str) -> Option<Vec<u8>> {
        let (at, size) = self.variables.get(name)?;
        Some(self.ops.run.image.bytes(*at, *size))
    }

    fn set_variable(&mut self, name: &str, offset: usize, bytes: &[u8]) {
        if let Some((at, size)) = self.variables.get(name)
            && offset.checked_add(bytes.len()).is_some_and(|end| end <= *size)
        {
            self.ops.run.image.put(at + offset as u64, bytes);
        }
    }

    fn take_record(&mut self, map: &str, most: u64) -> Option<Vec<u8>> {
        self.map(map, None).ok()?.take_record(most)
    }

    fn give_record(&mut self, map: &str, record: &[u8]) -> bool {
        self.map(map, None).is_ok_and(|map| map.add_record(record.to_vec()))
    }

    fn times(&mut self) -> String {
        let cpus = (0..self.ops.run.nr_cpus).map(CpuId);
        let busy: Vec<u64> = cpus.map(|cpu| self.k.cpu_busy_ns(cpu)).collect();
        times(&busy, self.k.clock_ns())
    }
}

/// The text of /proc/stat (proc(5)) at a time since boot: CPUs were busy for these times in user
/// mode, and idle otherwise.
fn times(busy: &[u64], now: u64) -> String {
    let mut text = String::new();
    let mut line = |name: String, busy: u64, all: u64| {
        let (user, idle) = (busy / TIMES_UNIT_NS, all.saturating_sub(busy) / TIMES_UNIT_NS);
        let _ = writeln!(text, "{name} {user} 0 0 {idle} 0 0 0 0 0 0");
    };
    line("cpu ".into(), busy.iter().sum(), now * busy.len() as u64);
    for (cpu, busy) in busy.iter().enumerate() {
        line(format!("cpu{cpu}"), *busy, now);
    }
    text.push_str(
        "intr 0\nctxt 0\nbtime 1767225600\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_cpus_are_those_of_the_simulation() {
        let text = times(&[30_000_000, 0], 1_000_000_000);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "cpu  3 0 0 197 0 0 0 0 0 0");
        assert_eq!(lines[1], "cpu0 3 0 0 97 0 0 0 0 0 0");
        assert_eq!(lines[2], "cpu1 0 0 0 100 0 0 0 0 0 0");
    }
}
