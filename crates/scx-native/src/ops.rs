// SPDX-License-Identifier: MIT OR Apache-2.0
//! A natively compiled scheduler as [`Ops`]: callbacks become calls of its functions.

use super::cids::{self, Cids};
use super::error::NativeError;
use super::guard::{self, Fault};
use super::host;
use super::layout::ops_members;
use super::options::{self, Chosen, MachineWords};
use super::program::Program;
use super::run::Run;
use super::setup::Setup;
use super::storage;
use super::user::User;
use super::zone::{Block, put};
use schedlab_model::machine::Topology;
use schedlab_model::{CgroupId, CpuId, CpuMask, TaskId};
use schedlab_scx::consts;
use schedlab_scx::{
    Callback, Callbacks, CgroupInitArgs, Events, ExitInfo, InitTaskArgs, Kernel, Locator, Ops,
    OpsFault, OpsInfo, OpsResult, UserWait,
};
use schedlab_scx_record::Live;
use std::sync::Arc;

/// Layouts of arguments that are structs (vmlinux.h); they are small and fixed.
mod args {
    pub const SIZE: usize = 128;
    pub const INIT_TASK_CGROUP: u64 = 8;
    pub const CPU_RELEASE_TASK: u64 = 8;
    pub const DUMP_EXIT_CODE: u64 = 8;
    pub const DUMP_REASON: u64 = 16;
    pub const DUMP_AT_NS: u64 = 24;
    pub const DUMP_AT_JIFFIES: u64 = 32;
    pub const EXIT_CPU: u64 = 4;
    pub const EXIT_CODE: u64 = 8;
    pub const EXIT_REASON: u64 = 24;
    pub const EXIT_MSG: u64 = 48;
    pub const EXIT_DUMP: u64 = 56;
}

/// A scheduler in memory, ready to be called.
#[derive(Debug)]
pub struct NativeOps {
    pub(super) run: Run,
    pub(super) info: OpsInfo,
    /// Address of each callback's function, by number; 0: none.
    functions: Vec<u64>,
    args: Block,
    /// What the user program would set up, until it is applied.
    setup: Option<Setup>,
    chosen: Chosen,
    /// The user program, if it runs.
    pub(super) user: Option<User>,
    /// Cids of a shard; 0: the kernel's default.
    shard_size: u32,
}

impl NativeOps {
    /// Loads `program` for a machine. `user`: its user program, which has made this setup.
    pub fn new(
        program: Arc<Program>,
        chosen: &Chosen,
        machine: MachineWords,
        user: Option<(Live, Setup)>,
    ) -> Result<Self, NativeError> {
        let mut run = Run::new(Arc::clone(&program), chosen, machine)?;
        let (object, section, offset) = program.ops;
        let base = run.image.address(object, section, offset);
        let mut info = OpsInfo::default();
        let mut functions = vec![0; Callback::ALL.len()];
        let (mut shard_size, mut below) = (0, 0);
        for (name, at, is_callback) in ops_members(&program, &run.image)? {
            let at = base + at as u64;
            let word = |size: usize| {
                let mut wide = [0u8; 8];
                wide[..size].copy_from_slice(&run.image.bytes(at, size));
                u64::from_le_bytes(wide)
            };
            match name.as_str() {
                "name" => info.name = run.image.text_at(at),
                "flags" => info.flags = word(8),
                "timeout_ms" => info.timeout_ms = word(4) as u32,
                "dispatch_max_batch" => info.dispatch_max_batch = word(4) as u32,
                "exit_dump_len" => info.exit_dump_len = word(4) as u32,
                "cid_shard_size" => shard_size = word(4) as u32,
                "sub_cgroup_id" => below = word(8),
                _ if is_callback => {
                    let callback = Callback::ALL.iter().find(|callback| callback.name() == name);
                    let (Some(callback), function @ 1..) = (callback, word(8)) else { continue };
                    if !run.image.text.contains(&function) {
                        return Err(NativeError::Refused(format!(
                            "{}: .{name} is no function",
                            program.source.display()
                        )));
                    }
                    functions[*callback as usize] = function;
                    info.callbacks = info.callbacks.with(*callback);
                }
                _ => {}
            }
        }
        cids::check_members(&program, &info, below)?;
        // These keep the structs of tasks up to date, whether the scheduler has them or not.
        let own = [Callback::SetCpumask, Callback::ExitTask, Callback::Timer, Callback::Init];
        info.callbacks = Callbacks(info.callbacks.0 | Callbacks::of(&own).0);
        if cids::are_told_at_enable(&program) {
            info.callbacks = info.callbacks.with(Callback::Enable);
        }
        let (user, setup) = match user {
            Some((live, setup)) => (Some(User::new(live, &mut run)?), setup),
            None => {
                let file = program.setup.as_deref();
                (None, Setup::of(&info.name, &program.source, file)?)
            }
        };
        if let Some(why) = &setup.refuse {
            return Err(NativeError::Refused(format!("scheduler {}: {why}", info.name)));
        }
        info.flags |= options::flags(&program, &run.image, &setup.flags)?;
        let (setup, chosen) = (Some(setup), chosen.clone());
        let args = run.zone.block(args::SIZE);
        run.flags = info.flags;
        Ok(Self { run, info, functions, args, setup, chosen, user, shard_size })
    }

    /// Refuses a machine that its setup is not for.
    pub fn check_machine(&self, topology: &Topology) -> Result<(), NativeError> {
        let recorded = self.setup.as_ref().and_then(|setup| setup.recorded.as_ref());
        recorded.map_or(Ok(()), |recorded| recorded.check(topology)).map_err(NativeError::Refused)
    }

    /// Whether it has a setup: of the user, next to its source, or built in.
    pub fn has_setup(&self) -> bool {
        self.setup.as_ref().is_some_and(|setup| *setup != Setup::default())
    }

    /// Address of the memory for argument structs, zeroed.
    fn fresh_args(&self) -> u64 {
        let at = self.args.address();
        // SAFETY: the block is ours and has that size.
        unsafe { put(at, [0u8; args::SIZE]) };
        at
    }

    /// Address of a task's struct.
    #[inline]
    fn task(&mut self, k: &mut Kernel<'_>, p: TaskId) -> Result<u64, OpsFault> {
        self.run.tasks.show(k, &mut self.run.groups, p).map_err(OpsFault)
    }

    fn group(&mut self, k: &Kernel<'_>, group: CgroupId) -> u64 {
        self.run.groups.show(k, group)
    }

    /// Calls a callback. Returns 0 if there is none.
    #[inline(always)]
    fn call(
        &mut self,
        k: &mut Kernel<'_>,
        callback: Callback,
        args: [u64; 4],
    ) -> Result<u64, OpsFault> {
        match self.functions[callback as usize] {
            0 => Ok(0),
            function => self.call_function(k, function, args),
        }
    }

    /// The only place from which the scheduler's code is entered.
    #[inline(never)]
    pub(super) fn call_function(
        &mut self,
        k: &mut Kernel<'_>,
        function: u64,
        args: [u64; 4],
    ) -> Result<u64, OpsFault> {
        self.run.begin(k);
        let place = &raw const self.run.lines.place;
        // SAFETY: `function` is in the code of our image, and the arguments are integers or point
        // to memory of the run, as the stack is.
        let answer =
            host::during(k, &mut self.run, move || unsafe { guard::call(function, args, place) });
        self.run.end(k);
        answer.map_err(|fault| OpsFault(self.describe(&fault)))
    }

    /// Calls a callback whose first argument is a task.
    #[inline(always)]
    fn call_on(
        &mut self,
        k: &mut Kernel<'_>,
        callback: Callback,
        p: TaskId,
        more: [u64; 3],
    ) -> Result<u64, OpsFault> {
        let p = self.task(k, p)?;
        self.call(k, callback, [p, more[0], more[1], more[2]])
    }

    /// Describes a fault, with its place in the source.
    #[cold]
    fn describe(&self, fault: &Fault) -> String {
        let text = match fault {
            Fault::Broken { what, at } => {
                format!(
                    "{what}, {}",
                    self.run.lines.name(at.unwrap_or_else(|| self.run.lines.last_call()))
                )
            }
            Fault::Time { at } => format!(
                "it ran for more than {} s of CPU time without returning, {} (an endless loop?)",
                guard::LIMIT_S,
                self.run.lines.name(*at)
            ),
            Fault::Signal { signal, at, touched } => {
                let what = match *signal {
                    libc::SIGFPE => "divided by zero".into(),
                    libc::SIGILL => "executed an instruction that is none".into(),
                    _ => self.describe_address(*touched),
                };
                format!("it {what}, {}", self.run.lines.name(*at))
            }
            Fault::Bounds { at, touched, size, is_write } => {
                let what = self.describe_bounds(*touched, *size, *is_write);
                format!("{what}, {}", self.run.lines.name(*at))
            }
            Fault::Overflow { at } => format!(
                "stack overflow, {}: a kernel gives a program 512 bytes of stack",
                self.run.lines.name(*at)
            ),
            Fault::Wild { at, to: 0..4096 } => {
                format!("it called a function through a null pointer, {}", self.run.lines.name(*at))
            }
            Fault::Wild { at, to } => {
                format!(
                    "it called {to:#x}, which is no function of its own, {}",
                    self.run.lines.name(*at)
                )
            }
            Fault::SystemCall { at, number } => format!(
                "it made system call {number}, which a scheduler must not, {}",
                self.run.lines.name(*at)
            ),
        };
        self.words(text)
    }

    /// A message, with the last lines that the scheduler printed.
    pub(super) fn words(&self, mut text: String) -> String {
        if !self.run.log.is_empty() {
            text.push_str("; its last words:");
            for line in &self.run.log {
                text.push_str("\n  ");
                text.push_str(line.trim_end());
            }
        }
        text
    }
}

/// Number of a task or group in storage: idle tasks are first.
pub fn storage_number(nr_cpus: u32, task: TaskId) -> usize {
    nr_cpus as usize + task.index()
}

/// Counters in the order of `struct scx_event_stats`.
pub fn event_words(e: &Events) -> [u64; 13] {
    [
        e.select_cpu_fallback,
        0,
        e.dispatch_keep_last,
        e.enq_skip_exiting,
        0,
        e.refill_slice_dfl,
        e.bypass_duration,
        e.bypass_dispatch,
        e.bypass_activate,
        0,
        0,
        e.insert_not_owned,
        0,
    ]
}

impl Ops for NativeOps {
    fn info(&self) -> OpsInfo {
        self.info.clone()
    }

    fn locator(&self) -> Option<Locator> {
        Some(host::place_of_last_call)
    }

    fn select_cpu(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        prev: CpuId,
        wake_flags: u64,
    ) -> Result<i32, OpsFault> {
        let more = [self.run.cids.arg(prev), wake_flags, 0];
        let answer = self.call_on(k, Callback::SelectCpu, p, more)? as i32;
        Ok(self.run.cids.ret(k, answer))
    }

    fn enqueue(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        self.call_on(k, Callback::Enqueue, p, [enq_flags, 0, 0]).map(drop)
    }

    fn dequeue(&mut self, k: &mut Kernel<'_>, p: TaskId, deq_flags: u64) -> OpsResult {
        self.call_on(k, Callback::Dequeue, p, [deq_flags, 0, 0]).map(drop)
    }

    fn dispatch(&mut self, k: &mut Kernel<'_>, cpu: CpuId, prev: Option<TaskId>) -> OpsResult {
        let prev = prev.map_or(Ok(0), |prev| self.task(k, prev))?;
        let cpu = self.run.cids.arg(cpu);
        self.call(k, Callback::Dispatch, [cpu, prev, 0, 0]).map(drop)
    }

    fn tick(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        self.call_on(k, Callback::Tick, p, [0; 3]).map(drop)
    }

    fn runnable(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        self.call_on(k, Callback::Runnable, p, [enq_flags, 0, 0]).map(drop)
    }

    fn running(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        self.call_on(k, Callback::Running, p, [0; 3]).map(drop)
    }

    fn stopping(&mut self, k: &mut Kernel<'_>, p: TaskId, runnable: bool) -> OpsResult {
        self.call_on(k, Callback::Stopping, p, [u64::from(runnable), 0, 0]).map(drop)
    }

    fn quiescent(&mut self, k: &mut Kernel<'_>, p: TaskId, deq_flags: u64) -> OpsResult {
        self.call_on(k, Callback::Quiescent, p, [deq_flags, 0, 0]).map(drop)
    }

    fn yield_(
        &mut self,
        k: &mut Kernel<'_>,
        from: TaskId,
        to: Option<TaskId>,
    ) -> Result<bool, OpsFault> {
        let to = to.map_or(Ok(0), |to| self.task(k, to))?;
        Ok(self.call_on(k, Callback::Yield, from, [to, 0, 0])? as u8 != 0)
    }

    fn set_weight(&mut self, k: &mut Kernel<'_>, p: TaskId, weight: u32) -> OpsResult {
        self.call_on(k, Callback::SetWeight, p, [u64::from(weight), 0, 0]).map(drop)
    }

    fn set_cpumask(&mut self, k: &mut Kernel<'_>, p: TaskId, cpumask: &CpuMask) -> OpsResult {
        let at = self.task(k, p)?;
        self.run.tasks.cpus_changed(p, cpumask);
        let mask = match self.run.cids.is_form {
            true => self.run.cids.cmask(&self.run.zone, cpumask),
            false => self.run.tasks.cpumask_of(at),
        };
        self.call(k, Callback::SetCpumask, [at, mask, 0, 0]).map(drop)
    }

    fn update_idle(&mut self, k: &mut Kernel<'_>, cpu: CpuId, idle: bool) -> OpsResult {
        let args = [self.run.cids.arg(cpu), u64::from(idle), 0, 0];
        self.call(k, Callback::UpdateIdle, args).map(drop)
    }

    fn cpu_acquire(&mut self, k: &mut Kernel<'_>, cpu: CpuId) -> OpsResult {
        let args = [u64::from(cpu.0), self.fresh_args(), 0, 0];
        self.call(k, Callback::CpuAcquire, args).map(drop)
    }

    fn cpu_release(
        &mut self,
        k: &mut Kernel<'_>,
        cpu: CpuId,
        reason: u32,
        task: TaskId,
    ) -> OpsResult {
        let (task, at) = (self.task(k, task)?, self.fresh_args());
        // SAFETY: fields of a struct in our block.
        unsafe {
            put(at, reason);
            put(at + args::CPU_RELEASE_TASK, task);
        }
        self.call(k, Callback::CpuRelease, [u64::from(cpu.0), at, 0, 0]).map(drop)
    }

    fn init_task(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        init: &InitTaskArgs,
    ) -> Result<i32, OpsFault> {
        let (group, at) = (self.group(k, init.cgroup), self.fresh_args());
        // SAFETY: as above.
        unsafe {
            put(at, u8::from(init.fork));
            put(at + args::INIT_TASK_CGROUP, group);
        }
        Ok(self.call_on(k, Callback::InitTask, p, [at, 0, 0])? as i32)
    }

    fn exit_task(&mut self, k: &mut Kernel<'_>, p: TaskId, cancelled: bool) -> OpsResult {
        let at = self.fresh_args();
        // SAFETY: as above.
        unsafe { put(at, u8::from(cancelled)) };
        let answer = self.call_on(k, Callback::ExitTask, p, [at, 0, 0]);
        let number = storage_number(self.run.nr_cpus, p);
        for map in self.run.maps.iter_mut().filter(|map| map.is_task_storage()) {
            map.drop_storage(number);
        }
        self.run.tasks.exited(k, p);
        answer.map(drop)
    }

    /// From 7.3 on a scheduler with cids gets the CPUs of a task here, and again right after.
    fn enable(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        if !cids::are_told_at_enable(&self.run.program) {
            return self.call_on(k, Callback::Enable, p, [0; 3]).map(drop);
        }
        let allowed = *k.cpus_allowed(p);
        let (at, mask) = (self.fresh_args(), self.run.cids.cmask(&self.run.zone, &allowed));
        // SAFETY: a field of a struct in our block.
        unsafe { put(at, mask) };
        self.call_on(k, Callback::Enable, p, [at, 0, 0])?;
        self.set_cpumask(k, p, &allowed)
    }

    fn disable(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        self.call_on(k, Callback::Disable, p, [0; 3]).map(drop)
    }

    fn dump(&mut self, k: &mut Kernel<'_>) -> OpsResult {
        let at = self.dump_context(k);
        self.call(k, Callback::Dump, [at, 0, 0, 0]).map(drop)
    }

    fn dump_cpu(&mut self, k: &mut Kernel<'_>, cpu: CpuId, idle: bool) -> OpsResult {
        let at = self.dump_context(k);
        let args = [at, self.run.cids.arg(cpu), u64::from(idle), 0];
        self.call(k, Callback::DumpCpu, args).map(drop)
    }

    fn dump_task(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        let (p, at) = (self.task(k, p)?, self.dump_context(k));
        self.call(k, Callback::DumpTask, [at, p, 0, 0]).map(drop)
    }

    fn cgroup_init(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        init: &CgroupInitArgs,
    ) -> Result<i32, OpsFault> {
        let (group, at) = (self.group(k, cgroup), self.fresh_args());
        // SAFETY: as above.
        unsafe {
            put(at, init.weight);
            put(at + 8, [init.bw_period_us, init.bw_quota_us, init.bw_burst_us]);
        }
        Ok(self.call(k, Callback::CgroupInit, [group, at, 0, 0])? as i32)
    }

    fn cgroup_exit(&mut self, k: &mut Kernel<'_>, cgroup: CgroupId) -> OpsResult {
        let group = self.group(k, cgroup);
        self.call(k, Callback::CgroupExit, [group, 0, 0, 0]).map(drop)
    }

    fn cgroup_prep_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> Result<i32, OpsFault> {
        let (from, to) = (self.group(k, from), self.group(k, to));
        Ok(self.call_on(k, Callback::CgroupPrepMove, p, [from, to, 0])? as i32)
    }

    fn cgroup_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> OpsResult {
        let (from, to) = (self.group(k, from), self.group(k, to));
        self.call_on(k, Callback::CgroupMove, p, [from, to, 0]).map(drop)
    }

    fn cgroup_cancel_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> OpsResult {
        let (from, to) = (self.group(k, from), self.group(k, to));
        self.call_on(k, Callback::CgroupCancelMove, p, [from, to, 0]).map(drop)
    }

    fn cgroup_set_weight(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        weight: u32,
    ) -> OpsResult {
        let group = self.group(k, cgroup);
        self.call(k, Callback::CgroupSetWeight, [group, u64::from(weight), 0, 0]).map(drop)
    }

    fn cgroup_set_bandwidth(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        period_us: u64,
        quota_us: u64,
        burst_us: u64,
    ) -> OpsResult {
        let group = self.group(k, cgroup);
        let args = [group, period_us, quota_us, burst_us];
        self.call(k, Callback::CgroupSetBandwidth, args).map(drop)
    }

    fn init(&mut self, k: &mut Kernel<'_>) -> Result<i32, OpsFault> {
        let Program { is_cid_form, kernel, .. } = *self.run.program;
        self.run.cids = Cids::new(k.topology(), is_cid_form, kernel, self.shard_size);
        let setup = self.setup.take().unwrap_or_default();
        let (topology, hz) = (k.topology().clone(), k.hz());
        let recorded = setup.recorded.as_ref();
        let ready = setup.ready(&topology, hz).map_err(|why| match recorded {
            Some(_) => OpsFault(why),
            None => OpsFault(format!("the setup fails: {why}")),
        })?;
        let chosen = self.chosen.clone();
        let done = self.prepare(k, &ready, &|name| chosen.has(name));
        done.map_err(|fault| recorded.map_or(fault.clone(), |of| of.explain(&fault)))?;
        let setup = ready;
        let answer = self.call(k, Callback::InitCids, [0; 4])? as i32;
        self.run.cids.finish();
        if answer != 0 {
            k.scx_error(format!("ops.init_cids() failed ({answer})"));
            return Ok(answer);
        }
        let cpu = setup.init_cpu.map_or(k.this_cpu(), CpuId);
        let answer = k.on_cpu(cpu, |k| self.call(k, Callback::Init, [0; 4]))? as i32;
        if answer == 0 {
            self.run_programs(k, &setup, true)?;
        }
        Ok(answer)
    }

    fn exit(&mut self, k: &mut Kernel<'_>, info: &ExitInfo) -> OpsResult {
        let at = self.fresh_args();
        let zeroed = |text: &str| [text.as_bytes(), &[0]].concat();
        let reason = self.run.keep(&zeroed(&info.reason));
        let msg = self.run.keep(&zeroed(&info.msg));
        let dump = self.run.keep(&zeroed(&info.dump));
        // SAFETY: as above.
        unsafe {
            put(at, info.kind as u32);
            put(at + args::EXIT_CPU, -1i32);
            put(at + args::EXIT_CODE, info.exit_code);
            put(at + args::EXIT_REASON, reason);
            put(at + args::EXIT_MSG, msg);
            put(at + args::EXIT_DUMP, dump);
        }
        self.call(k, Callback::Exit, [at, 0, 0, 0]).map(drop)
    }

    fn before_unload(&mut self, k: &mut Kernel<'_>) {
        if let Some(inspector) = &self.run.inspector {
            inspector.ends(k, &self.run);
        }
    }

    fn user_step(&mut self, k: &mut Kernel<'_>, p: TaskId) -> Result<UserWait, OpsFault> {
        self.step_user(k, p)
    }

    fn timer(&mut self, k: &mut Kernel<'_>, token: u64) -> OpsResult {
        let [function, map, key, at] = storage::callback_of(&self.run, token).map_err(OpsFault)?;
        self.call_function(k, function, [map, key, at, 0]).map(drop)
    }
}

impl NativeOps {
    fn dump_context(&mut self, k: &Kernel<'_>) -> u64 {
        let at = self.fresh_args();
        let reason = self.run.keep(b"runtime error\0");
        // SAFETY: as above.
        unsafe {
            put(at, consts::ExitKind::Error as u32);
            put(at + args::DUMP_EXIT_CODE, 0i64);
            put(at + args::DUMP_REASON, reason);
            put(at + args::DUMP_AT_NS, k.clock_ns());
            put(at + args::DUMP_AT_JIFFIES, k.jiffies());
        }
        at
    }
}
