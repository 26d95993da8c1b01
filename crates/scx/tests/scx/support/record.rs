// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log of every callback, as lines of text, with the time in milliseconds before each.

use super::{letter, time};
use schedlab_model::{CgroupId, CpuId, CpuMask, TaskId};
use schedlab_scx::{
    Callback, Callbacks, CgroupInitArgs, ExitInfo, InitTaskArgs, Kernel, Ops, OpsFault, OpsInfo,
    OpsResult,
};
use std::sync::{Arc, Mutex};

/// Lines.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// All lines.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The lines of one time, without it.
    pub fn at(&self, ms: &str) -> Vec<String> {
        let prefix = format!("{ms} ");
        let of_time = |line: &String| line.strip_prefix(&prefix).map(str::to_owned);
        self.lines().iter().filter_map(of_time).collect()
    }

    /// The lines of some callbacks.
    pub fn of(&self, names: &[&str]) -> Vec<String> {
        let is_wanted = |line: &String| {
            let call = line.split(' ').nth(1).unwrap_or_default();
            names.contains(&call.split('(').next().unwrap_or_default())
        };
        self.lines().into_iter().filter(is_wanted).collect()
    }

    pub fn push(&self, k: &Kernel<'_>, what: String) {
        self.0.lock().unwrap().push(format!("{} {what}", time(k.now())));
    }
}

/// The callbacks that change nothing by being there.
pub const PASSIVE: Callbacks = Callbacks::of(&[
    Callback::Dequeue,
    Callback::Runnable,
    Callback::Running,
    Callback::Stopping,
    Callback::Quiescent,
    Callback::SetWeight,
    Callback::SetCpumask,
    Callback::InitTask,
    Callback::ExitTask,
    Callback::Enable,
    Callback::Disable,
    Callback::CgroupInit,
    Callback::CgroupExit,
    Callback::CgroupMove,
    Callback::Exit,
]);

/// `ops`, recorded.
pub struct Recorded<O> {
    pub ops: O,
    /// Callbacks that are recorded although `ops` has none.
    pub also: Callbacks,
    pub log: Log,
}

impl<O: Ops> Recorded<O> {
    /// `ops` with all passive callbacks.
    pub fn new(ops: O) -> Self {
        Self { ops, also: PASSIVE, log: Log::default() }
    }

    /// The same with `callback`.
    pub fn with(mut self, callback: Callback) -> Self {
        self.also = self.also.with(callback);
        self
    }
}

/// Flags of the 6.18 kernel by name, those that every call carries left out.
fn enq(flags: u64) -> String {
    let names = [
        (1, "WAKEUP"),
        (2, "RESTORE"),
        (4, "MOVE"),
        (0x10, "HEAD"),
        (0x40, "MIGRATED"),
        (0x80, "INITIAL"),
        (0x400, "SELECTED"),
        (1 << 40, "REENQ"),
        (1 << 41, "LAST"),
    ];
    by_name(flags, &names)
}

fn deq(flags: u64) -> String {
    by_name(flags, &[(1, "SLEEP"), (2, "SAVE"), (4, "MOVE"), (1 << 33, "CHANGE")])
}

fn by_name(flags: u64, names: &[(u64, &str)]) -> String {
    let set: Vec<&str> =
        names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    let unknown = flags & !names.iter().fold(8, |all, (bit, _)| all | bit);
    assert_eq!(unknown, 0, "flags 0x{flags:x}");
    if set.is_empty() { "0".into() } else { set.join("|") }
}

macro_rules! record {
    ($self:ident, $k:ident, $($format:tt)*) => {
        $self.log.push($k, format!($($format)*))
    };
}

impl<O: Ops> Ops for Recorded<O> {
    fn info(&self) -> OpsInfo {
        let info = self.ops.info();
        OpsInfo { callbacks: Callbacks(info.callbacks.0 | self.also.0), ..info }
    }
    fn select_cpu(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        prev: CpuId,
        wake_flags: u64,
    ) -> Result<i32, OpsFault> {
        record!(self, k, "select_cpu({},{prev},{wake_flags:x})", letter(p));
        self.ops.select_cpu(k, p, prev, wake_flags)
    }
    fn enqueue(&mut self, k: &mut Kernel<'_>, p: TaskId, flags: u64) -> OpsResult {
        record!(self, k, "enqueue({},{})", letter(p), enq(flags));
        self.ops.enqueue(k, p, flags)
    }
    fn dequeue(&mut self, k: &mut Kernel<'_>, p: TaskId, flags: u64) -> OpsResult {
        record!(self, k, "dequeue({},{})", letter(p), deq(flags));
        self.ops.dequeue(k, p, flags)
    }
    fn dispatch(&mut self, k: &mut Kernel<'_>, cpu: CpuId, prev: Option<TaskId>) -> OpsResult {
        record!(self, k, "dispatch({cpu},{})", prev.map_or("-".into(), letter));
        self.ops.dispatch(k, cpu, prev)
    }
    fn tick(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        record!(self, k, "tick({})", letter(p));
        self.ops.tick(k, p)
    }
    fn runnable(&mut self, k: &mut Kernel<'_>, p: TaskId, flags: u64) -> OpsResult {
        record!(self, k, "runnable({},{})", letter(p), enq(flags));
        self.ops.runnable(k, p, flags)
    }
    fn running(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        record!(self, k, "running({})", letter(p));
        self.ops.running(k, p)
    }
    fn stopping(&mut self, k: &mut Kernel<'_>, p: TaskId, runnable: bool) -> OpsResult {
        record!(self, k, "stopping({},{})", letter(p), u8::from(runnable));
        self.ops.stopping(k, p, runnable)
    }
    fn quiescent(&mut self, k: &mut Kernel<'_>, p: TaskId, flags: u64) -> OpsResult {
        record!(self, k, "quiescent({},{})", letter(p), deq(flags));
        self.ops.quiescent(k, p, flags)
    }
    fn yield_(
        &mut self,
        k: &mut Kernel<'_>,
        from: TaskId,
        to: Option<TaskId>,
    ) -> Result<bool, OpsFault> {
        record!(self, k, "yield({})", letter(from));
        self.ops.yield_(k, from, to)
    }
    fn set_weight(&mut self, k: &mut Kernel<'_>, p: TaskId, weight: u32) -> OpsResult {
        record!(self, k, "set_weight({},{weight})", letter(p));
        self.ops.set_weight(k, p, weight)
    }
    fn set_cpumask(&mut self, k: &mut Kernel<'_>, p: TaskId, mask: &CpuMask) -> OpsResult {
        record!(self, k, "set_cpumask({},{mask})", letter(p));
        self.ops.set_cpumask(k, p, mask)
    }
    fn update_idle(&mut self, k: &mut Kernel<'_>, cpu: CpuId, idle: bool) -> OpsResult {
        record!(self, k, "update_idle({cpu},{})", u8::from(idle));
        self.ops.update_idle(k, cpu, idle)
    }
    fn cpu_acquire(&mut self, k: &mut Kernel<'_>, cpu: CpuId) -> OpsResult {
        record!(self, k, "cpu_acquire({cpu})");
        self.ops.cpu_acquire(k, cpu)
    }
    fn cpu_release(
        &mut self,
        k: &mut Kernel<'_>,
        cpu: CpuId,
        reason: u32,
        task: TaskId,
    ) -> OpsResult {
        record!(self, k, "cpu_release({cpu},{reason},{})", letter(task));
        self.ops.cpu_release(k, cpu, reason, task)
    }
    fn init_task(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        args: &InitTaskArgs,
    ) -> Result<i32, OpsFault> {
        record!(self, k, "init_task({},fork={})", letter(p), u8::from(args.fork));
        self.ops.init_task(k, p, args)
    }
    fn exit_task(&mut self, k: &mut Kernel<'_>, p: TaskId, cancelled: bool) -> OpsResult {
        record!(self, k, "exit_task({},cancelled={})", letter(p), u8::from(cancelled));
        self.ops.exit_task(k, p, cancelled)
    }
    fn enable(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        record!(self, k, "enable({})", letter(p));
        self.ops.enable(k, p)
    }
    fn disable(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        record!(self, k, "disable({})", letter(p));
        self.ops.disable(k, p)
    }
    fn dump(&mut self, k: &mut Kernel<'_>) -> OpsResult {
        self.ops.dump(k)
    }
    fn dump_cpu(&mut self, k: &mut Kernel<'_>, cpu: CpuId, idle: bool) -> OpsResult {
        self.ops.dump_cpu(k, cpu, idle)
    }
    fn dump_task(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        self.ops.dump_task(k, p)
    }
    fn cgroup_init(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        args: &CgroupInitArgs,
    ) -> Result<i32, OpsFault> {
        record!(self, k, "cgroup_init({cgroup},{})", args.weight);
        self.ops.cgroup_init(k, cgroup, args)
    }
    fn cgroup_exit(&mut self, k: &mut Kernel<'_>, cgroup: CgroupId) -> OpsResult {
        record!(self, k, "cgroup_exit({cgroup})");
        self.ops.cgroup_exit(k, cgroup)
    }
    fn cgroup_prep_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> Result<i32, OpsFault> {
        record!(self, k, "cgroup_prep_move({},{from},{to})", letter(p));
        self.ops.cgroup_prep_move(k, p, from, to)
    }
    fn cgroup_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> OpsResult {
        record!(self, k, "cgroup_move({},{from},{to})", letter(p));
        self.ops.cgroup_move(k, p, from, to)
    }
    fn cgroup_set_weight(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        weight: u32,
    ) -> OpsResult {
        record!(self, k, "cgroup_set_weight({cgroup},{weight})");
        self.ops.cgroup_set_weight(k, cgroup, weight)
    }
    fn cgroup_set_bandwidth(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        period_us: u64,
        quota_us: u64,
        burst_us: u64,
    ) -> OpsResult {
        record!(self, k, "cgroup_set_bandwidth({cgroup},{period_us},{quota_us},{burst_us})");
        self.ops.cgroup_set_bandwidth(k, cgroup, period_us, quota_us, burst_us)
    }
    fn init(&mut self, k: &mut Kernel<'_>) -> Result<i32, OpsFault> {
        self.ops.init(k)
    }
    fn exit(&mut self, k: &mut Kernel<'_>, info: &ExitInfo) -> OpsResult {
        let (kind, code) = (info.kind as u32, info.exit_code);
        record!(self, k, "exit({kind},{code},{},{}{})", info.reason, info.msg, info.dump);
        self.ops.exit(k, info)
    }
    fn timer(&mut self, k: &mut Kernel<'_>, token: u64) -> OpsResult {
        record!(self, k, "timer({token})");
        self.ops.timer(k, token)
    }
}
