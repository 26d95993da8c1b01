// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and unloads the scheduler; adds tasks to it and removes them.
//!
//! Source: Linux kernel/sched/ext.c, 6.18: `scx_enable()`, `scx_disable_workfn()`, `scx_bypass()`,
//! `scx_init_task()`, `scx_enable_task()`, `scx_disable_task()`, `scx_exit_task()`. What the kernel
//! does on a helper thread happens here within one instant. Left out: sub-schedulers, hotplug,
//! `p->scx.disallow` of tasks that existed before the scheduler.

use super::consts::{
    DEQ_MOVE, DEQ_SAVE, ENQ_MOVE, ENQ_RESTORE, EPROTO, ExitKind, MAX_ERRNO, OPS_ENQ_LAST,
    OPS_KEEP_BUILTIN_IDLE, OPS_NAME_LEN, SLICE_DFL, WATCHDOG_MAX_TIMEOUT_MS,
};
use super::enqueue::Leaves;
use super::ext::Ext;
use super::ops::{Callback, Callbacks, CgroupInitArgs, InitTaskArgs, OpsInfo};
use super::options::OnError;
use super::rules::CoreRules;
use super::state::Status;
use super::task::{Life, NIL, weight};
use schedlab_model::workload::{CPU_MAX_PERIOD_NS, CpuMaxWrite};
use schedlab_model::{CgroupId, CpuId, CpuMax, Policy, TaskId};
use schedlab_sched::boundary::core::TaskState;

/// Checks that the kernel accepts a scheduler with this data. The error tells why not.
pub fn check(info: &OpsInfo, core: &CoreRules) -> Result<(), String> {
    if info.name.is_empty() || info.name.len() >= OPS_NAME_LEN {
        return Err(format!("its name {:?} must have 1 to {} bytes", info.name, OPS_NAME_LEN - 1));
    }
    let unknown = info.flags & !core.ops_flags;
    if unknown != 0 {
        return Err(format!("flags 0x{unknown:x} are none that this kernel knows"));
    }
    if info.timeout_ms > WATCHDOG_MAX_TIMEOUT_MS {
        return Err(format!(
            "timeout_ms is {}, at most {WATCHDOG_MAX_TIMEOUT_MS} is allowed",
            info.timeout_ms
        ));
    }
    if info.dispatch_max_batch > i32::MAX as u32 {
        return Err(format!("dispatch_max_batch {} is too large", info.dispatch_max_batch));
    }
    if info.flags & OPS_ENQ_LAST != 0 && !info.callbacks.has(Callback::Enqueue) {
        return Err("SCX_OPS_ENQ_LAST requires ops.enqueue()".into());
    }
    Ok(())
}

/// Returns a negative error number unchanged; any other value except 0 is a protocol error.
fn errno(answer: i32) -> i32 {
    match answer {
        0 => 0,
        error if (-MAX_ERRNO..0).contains(&error) => error,
        _ => -EPROTO,
    }
}

/// Loading.
impl Ext<'_> {
    /// Loads the scheduler. Existing tasks become its own when the engine has changed their class.
    pub fn load(&mut self) {
        if let Err(what) = self.try_load() {
            self.k.state.status = Status::Disabled;
            let name = self.k.state.info.name.clone();
            self.ops.before_unload(&mut self.k);
            self.k.core.fail(format!("sched_ext scheduler {name:?} cannot be loaded: {what}"));
        }
    }

    fn try_load(&mut self) -> Result<(), String> {
        check(&self.k.state.info, &self.k.state.options.core)?;
        let callbacks = self.k.state.info.callbacks;
        let keeps_idle = self.k.state.has_flag(OPS_KEEP_BUILTIN_IDLE);
        self.k.state.idle.is_on = keeps_idle || !callbacks.has(Callback::UpdateIdle);
        self.k.state.idle.reset();
        self.k.state.status = Status::Enabling;
        self.k.state.loaded_at = self.k.core.now;
        self.k.core.check_period_ns = self.k.check_period_ns();
        if callbacks.has(Callback::Init) {
            let answer = self.call(Callback::Init, |ops, k| ops.init(k));
            self.loaded_part("init", answer)?;
        }
        self.k.state.live = callbacks;
        for cgroup in self.k.cgroups_top_down() {
            self.init_cgroup(cgroup)?;
        }
        let tasks: Vec<TaskId> = self.living_tasks();
        for p in &tasks {
            self.init_task(*p, false)?;
        }
        if tasks.is_empty() {
            self.k.state.status = Status::Enabled;
            self.tell_idle_cpus();
        } else {
            self.k.state.bypass = true;
            self.k.state.events.bypass_activate += 1;
            self.k.core.request_reclass();
        }
        Ok(())
    }

    /// Checks that a callback of the loading succeeded.
    fn loaded_part(&mut self, callback: &str, answer: Option<i32>) -> Result<(), String> {
        if let Some((callback, what)) = &self.k.state.fault {
            return Err(format!("ops.{} failed: {what}", callback.name()));
        }
        if let Some(info) = &self.k.state.exit {
            let place = info.place.as_ref().map_or(String::new(), |place| format!("; {place}"));
            return Err(format!("{}: {}{place}", info.reason, info.msg));
        }
        match errno(answer.unwrap_or(0)) {
            0 => Ok(()),
            error => Err(format!("ops.{callback}() failed ({error})")),
        }
    }

    fn init_cgroup(&mut self, cgroup: CgroupId) -> Result<(), String> {
        if self.k.state.has(Callback::CgroupInit) {
            let args = self.k.cgroup_init_args(cgroup);
            let answer =
                self.call(Callback::CgroupInit, |ops, k| ops.cgroup_init(k, cgroup, &args));
            self.loaded_part("cgroup_init", answer)?;
        }
        self.k.state.cgroups_ready[cgroup.index()] = true;
        Ok(())
    }

    fn living_tasks(&self) -> Vec<TaskId> {
        let ids = (0..self.k.nr_tasks()).map(TaskId);
        ids.filter(|id| self.k.core.task(*id).state != TaskState::Dead).collect()
    }

    /// All tasks have their class: ends the bypass.
    pub fn finish_load(&mut self) {
        self.k.state.bypass = false;
        self.k.state.status = Status::Enabled;
        self.requeue_all();
        self.tell_idle_cpus();
    }

    /// Tells a scheduler that keeps its own list of idle CPUs which are idle now. A kernel does not
    /// at this moment, but every CPU soon runs a thread of the system and is idle again, which it
    /// does tell; the model has no such threads.
    fn tell_idle_cpus(&mut self) {
        if self.k.state.idle.is_on || !self.k.state.has(Callback::UpdateIdle) {
            return;
        }
        for cpu in (0..self.k.core.nr_cpus()).map(CpuId) {
            if self.k.core.rq(cpu).curr.is_none() {
                self.on(cpu, true);
                self.tell(Callback::UpdateIdle, |ops, k| ops.update_idle(k, cpu, true));
            }
        }
    }

    /// Enqueues every waiting task again, because bypassing begins or ends. Every CPU reschedules.
    fn requeue_all(&mut self) {
        for cpu in (0..self.k.core.nr_cpus()).map(CpuId) {
            self.on(cpu, true);
            let mut waiting = Vec::new();
            let mut at = self.k.state.cpu(cpu).runnable_tail;
            while at != NIL {
                waiting.push(TaskId(at));
                at = self.k.state.tasks[at as usize].runnable_links.prev;
            }
            for p in waiting {
                self.dequeue(cpu, p, DEQ_SAVE | DEQ_MOVE, Leaves::Off);
                self.enqueue(cpu, p, ENQ_RESTORE | ENQ_MOVE, false);
            }
            self.k.core.resched_curr(cpu);
        }
    }
}

/// Unloading.
impl Ext<'_> {
    /// Ejects a scheduler that has ended or made an error.
    pub fn eject(&mut self) {
        self.ops.before_unload(&mut self.k);
        self.k.state.status = Status::Disabling;
        let kind = self.k.state.exit.as_ref().map_or(ExitKind::None, |info| info.kind);
        if kind.is_error() {
            self.dump_all();
        }
        let options = self.k.state.options;
        let stops = kind.is_error() && options.on_error == OnError::Stop;
        if stops || !options.needs_fair() {
            self.tell_exit();
            let what = self.exit_text();
            self.k.state.live = Callbacks::default();
            self.k.core.fail(what);
            return;
        }
        self.k.state.bypass = true;
        self.k.state.events.bypass_activate += 1;
        self.requeue_all();
        self.exit_cgroups();
        self.k.core.request_reclass();
    }

    /// A sentence about the end of the scheduler.
    pub fn exit_text(&self) -> String {
        let info = self.k.state.exit.clone().unwrap_or_default();
        let name = &self.k.state.info.name;
        let ms = self.k.core.now / 1_000_000;
        let place = info.place.map_or(String::new(), |place| format!("; {place}"));
        format!(
            "sched_ext scheduler {name:?} was disabled at {ms} ms: {} (kind {}, code {}): \
             {}{place}",
            info.reason, info.kind as u32, info.exit_code, info.msg
        )
    }

    /// All tasks belong to the fair class again.
    pub fn finish_unload(&mut self) {
        for p in self.living_tasks() {
            self.exit_task(p, false);
        }
        self.tell_exit();
        let text = self.exit_text();
        self.k.state.end_text = Some(text);
        self.k.state.live = Callbacks::default();
        self.k.state.bypass = false;
        self.k.state.status = Status::Disabled;
        self.k.state.timers.clear();
        self.k.state.next_check = None;
        let ids: Vec<u64> = self.k.state.dsqs.ids().collect();
        for id in ids {
            self.k.state.dsqs.destroy(id);
        }
    }

    /// Unloads the scheduler at the end of the run.
    pub fn end_run(&mut self) {
        if self.k.state.status != Status::Enabled || self.k.state.fault.is_some() {
            return;
        }
        self.ops.before_unload(&mut self.k);
        self.k.note_waiting();
        self.k.exit_with(ExitKind::Unreg, 0, String::new());
        self.k.state.status = Status::Disabling;
        self.exit_cgroups();
        for p in self.living_tasks() {
            self.exit_task(p, false);
        }
        self.tell_exit();
        self.k.state.live = Callbacks::default();
    }

    fn exit_cgroups(&mut self) {
        for cgroup in self.k.cgroups_top_down().into_iter().rev() {
            if std::mem::take(&mut self.k.state.cgroups_ready[cgroup.index()]) {
                self.tell(Callback::CgroupExit, |ops, k| ops.cgroup_exit(k, cgroup));
            }
        }
    }

    fn tell_exit(&mut self) {
        let dump = std::mem::take(&mut self.k.state.dump);
        if let Some(info) = &mut self.k.state.exit {
            info.dump = dump;
            let info = info.clone();
            self.tell(Callback::Exit, |ops, k| ops.exit(k, &info));
        }
    }

    /// Calls the scheduler's dump callbacks.
    fn dump_all(&mut self) {
        self.tell(Callback::Dump, |ops, k| ops.dump(k));
        for cpu in (0..self.k.core.nr_cpus()).map(CpuId) {
            if self.k.state.has(Callback::DumpCpu) {
                let idle = self.k.core.idle_cpu(cpu);
                self.tell(Callback::DumpCpu, |ops, k| ops.dump_cpu(k, cpu, idle));
            }
            let mut at = self.k.state.cpu(cpu).runnable_head;
            while at != NIL && self.k.state.has(Callback::DumpTask) {
                self.tell(Callback::DumpTask, |ops, k| ops.dump_task(k, TaskId(at)));
                at = self.k.state.tasks[at as usize].runnable_links.next;
            }
        }
    }
}

/// Tasks.
impl Ext<'_> {
    /// Announces `p` to the scheduler. `fork`: it is being created.
    pub fn init_task(&mut self, p: TaskId, fork: bool) -> Result<(), String> {
        if self.k.state.has(Callback::InitTask) {
            let args = InitTaskArgs { fork, cgroup: self.k.task_cgroup(p) };
            // It was created then.
            self.k.state.context.back_ns = if fork { self.k.core.task(p).age_ns } else { 0 };
            let answer = self.call(Callback::InitTask, |ops, k| ops.init_task(k, p, &args));
            self.k.state.context.back_ns = 0;
            let error = errno(answer.unwrap_or(0));
            if error != 0 {
                let named = self.k.named(p);
                return Err(format!("ops.init_task() failed ({error}) for {named}"));
            }
        }
        let task = self.k.state.task_mut(p);
        task.life = Life::Ready;
        task.reset_runnable_at = true;
        if task.entity.disallow() && self.k.policy(p) == Policy::Ext {
            let named = self.k.named(p);
            self.k.scx_error(format!("ops.init_task() set task->scx.disallow for {named}"));
        }
        Ok(())
    }

    /// `p` enters the class.
    pub fn enable_task(&mut self, p: TaskId) {
        let w = weight(&self.k.core.task(p).attr);
        let task = self.k.state.task_mut(p);
        task.entity.set_weight(w);
        task.life = Life::Enabled;
        self.tell(Callback::Enable, |ops, k| ops.enable(k, p));
        self.tell(Callback::SetWeight, |ops, k| ops.set_weight(k, p, w));
    }

    /// `p` comes from another class.
    pub fn switch_to(&mut self, p: TaskId) {
        if self.k.state.status == Status::Enabling {
            self.k.state.task(p).entity.set_slice(SLICE_DFL);
        }
        self.enable_task(p);
        self.tell_cpumask(p);
    }

    /// Tells the scheduler which CPUs `p` may use.
    pub fn tell_cpumask(&mut self, p: TaskId) {
        if self.k.state.has(Callback::SetCpumask) {
            let allowed = self.k.core.task(p).cpus_allowed.clone();
            self.k.state.task_mut(p).told_cpus = Some(allowed.clone());
            self.tell(Callback::SetCpumask, |ops, k| ops.set_cpumask(k, p, &allowed));
        }
    }

    /// `p` leaves the class.
    pub fn disable_task(&mut self, p: TaskId) {
        if self.k.state.task(p).life == Life::Enabled {
            self.tell(Callback::Disable, |ops, k| ops.disable(k, p));
            self.k.state.task_mut(p).life = Life::Ready;
        }
    }

    /// `p` no longer exists, or the scheduler ends.
    pub fn exit_task(&mut self, p: TaskId, cancelled: bool) {
        if self.k.state.task(p).life == Life::None {
            return;
        }
        self.disable_task(p);
        self.tell(Callback::ExitTask, |ops, k| ops.exit_task(k, p, cancelled));
        self.k.state.task_mut(p).life = Life::None;
    }

    /// `p` moves between groups.
    pub fn move_cgroup(&mut self, p: TaskId, from: CgroupId, to: CgroupId) {
        if self.k.state.has(Callback::CgroupPrepMove) {
            let prepare = |ops: &mut dyn super::ops::Ops, k: &mut super::kernel::Kernel<'_>| {
                ops.cgroup_prep_move(k, p, from, to)
            };
            let answer = self.call(Callback::CgroupPrepMove, prepare);
            let error = errno(answer.unwrap_or(0));
            if error != 0 {
                self.k.scx_error(format!("ops.cgroup_prep_move() failed ({error})"));
            }
        }
        self.tell(Callback::CgroupMove, |ops, k| ops.cgroup_move(k, p, from, to));
    }
}

impl Ext<'_> {
    /// cpu.max of `group` changes from `old` to `new` (`scx_group_set_bandwidth`). The scheduler
    /// is called after each write that changes a number.
    pub fn set_bandwidth(&mut self, group: CgroupId, old: Option<CpuMax>, new: Option<CpuMax>) {
        let mut known = bandwidth_us(&write_of(old));
        for write in CpuMax::writes(old, new) {
            let now @ [period, quota, burst] = bandwidth_us(&write);
            if std::mem::replace(&mut known, now) != now {
                self.tell(Callback::CgroupSetBandwidth, |ops, k| {
                    ops.cgroup_set_bandwidth(k, group, period, quota, burst)
                });
            }
        }
    }
}

/// The state of a group with the limit `max`.
fn write_of(max: Option<CpuMax>) -> CpuMaxWrite {
    CpuMaxWrite {
        quota_ns: max.map(|max| max.quota_ns),
        period_ns: max.map_or(CPU_MAX_PERIOD_NS, |max| max.period_ns),
        burst_ns: max.map_or(0, |max| max.burst_ns),
        is_burst: false,
    }
}

/// Period, quota and burst (us) as schedulers get them.
fn bandwidth_us(write: &CpuMaxWrite) -> [u64; 3] {
    let quota_us = write.quota_ns.map_or(u64::MAX, |ns| ns / 1_000);
    [write.period_ns / 1_000, quota_us, write.burst_ns / 1_000]
}

/// Groups.
impl super::kernel::Kernel<'_> {
    /// Groups, each before those below it, children in their order.
    fn cgroups_top_down(&self) -> Vec<CgroupId> {
        let mut order = vec![CgroupId(0)];
        let mut open = vec![CgroupId(0)];
        while let Some(parent) = open.pop() {
            if parent.0 != 0 {
                order.push(parent);
            }
            let all = (1..self.nr_cgroups()).map(CgroupId).rev();
            open.extend(all.filter(|group| self.cgroup(*group).parent == parent));
        }
        order
    }

    fn cgroup_init_args(&self, cgroup: CgroupId) -> CgroupInitArgs {
        let spec = self.cgroup(cgroup);
        let [bw_period_us, bw_quota_us, bw_burst_us] = bandwidth_us(&write_of(spec.cpu_max));
        CgroupInitArgs { weight: spec.weight, bw_period_us, bw_quota_us, bw_burst_us }
    }
}
