// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler of closures, for single rules.
#![allow(clippy::type_complexity, reason = "each closure has the arguments of its callback")]

use schedlab_model::{CpuId, TaskId};
use schedlab_scx::{Callback, Callbacks, InitTaskArgs, Kernel, Ops, OpsFault, OpsInfo, OpsResult};

type OfTask = Box<dyn FnMut(&mut Kernel<'_>, TaskId) + Send>;
type OfTaskFlags = Box<dyn FnMut(&mut Kernel<'_>, TaskId, u64) + Send>;

/// The closures; what is `None` does not exist.
#[derive(Default)]
pub struct Script {
    pub flags: u64,
    pub timeout_ms: u32,
    pub max_batch: u32,
    pub select_cpu: Option<Box<dyn FnMut(&mut Kernel<'_>, TaskId, CpuId, u64) -> i32 + Send>>,
    pub enqueue: Option<OfTaskFlags>,
    pub dispatch: Option<Box<dyn FnMut(&mut Kernel<'_>, CpuId, Option<TaskId>) + Send>>,
    pub running: Option<OfTask>,
    pub stopping: Option<OfTask>,
    pub tick: Option<OfTask>,
    pub yield_: Option<OfTask>,
    pub cpu_release: Option<Box<dyn FnMut(&mut Kernel<'_>, CpuId) + Send>>,
    pub init: Option<Box<dyn FnMut(&mut Kernel<'_>) -> i32 + Send>>,
    pub init_task: Option<Box<dyn FnMut(&mut Kernel<'_>, TaskId) -> i32 + Send>>,
    pub timer: Option<Box<dyn FnMut(&mut Kernel<'_>, u64) + Send>>,
    pub dump: Option<Box<dyn FnMut(&mut Kernel<'_>) + Send>>,
    /// Crashes in this callback.
    pub crashes_in: Option<Callback>,
}

impl Script {
    fn fault(&self, callback: Callback) -> OpsResult {
        if self.crashes_in == Some(callback) {
            return Err(OpsFault("invalid memory access at 0x10".into()));
        }
        Ok(())
    }
}

impl Ops for Script {
    fn info(&self) -> OpsInfo {
        let pairs = [
            (self.select_cpu.is_some(), Callback::SelectCpu),
            (self.enqueue.is_some(), Callback::Enqueue),
            (self.dispatch.is_some(), Callback::Dispatch),
            (self.running.is_some(), Callback::Running),
            (self.stopping.is_some(), Callback::Stopping),
            (self.tick.is_some(), Callback::Tick),
            (self.yield_.is_some(), Callback::Yield),
            (self.cpu_release.is_some(), Callback::CpuRelease),
            (self.init.is_some(), Callback::Init),
            (self.init_task.is_some(), Callback::InitTask),
            (self.dump.is_some(), Callback::Dump),
        ];
        let present = pairs.into_iter().filter(|(is_there, _)| *is_there);
        let callbacks = present.fold(Callbacks::default(), |all, (_, one)| all.with(one));
        OpsInfo {
            name: "script".into(),
            flags: self.flags,
            timeout_ms: self.timeout_ms,
            dispatch_max_batch: self.max_batch,
            callbacks,
            ..OpsInfo::default()
        }
    }
    fn select_cpu(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        prev: CpuId,
        wake_flags: u64,
    ) -> Result<i32, OpsFault> {
        self.fault(Callback::SelectCpu)?;
        Ok(self.select_cpu.as_mut().map_or(prev.0 as i32, |f| f(k, p, prev, wake_flags)))
    }
    fn enqueue(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        self.fault(Callback::Enqueue)?;
        if let Some(f) = &mut self.enqueue {
            f(k, p, enq_flags);
        }
        Ok(())
    }
    fn dispatch(&mut self, k: &mut Kernel<'_>, cpu: CpuId, prev: Option<TaskId>) -> OpsResult {
        self.fault(Callback::Dispatch)?;
        if let Some(f) = &mut self.dispatch {
            f(k, cpu, prev);
        }
        Ok(())
    }
    fn running(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        if let Some(f) = &mut self.running {
            f(k, p);
        }
        Ok(())
    }
    fn stopping(&mut self, k: &mut Kernel<'_>, p: TaskId, _runnable: bool) -> OpsResult {
        if let Some(f) = &mut self.stopping {
            f(k, p);
        }
        Ok(())
    }
    fn tick(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        if let Some(f) = &mut self.tick {
            f(k, p);
        }
        Ok(())
    }
    fn yield_(
        &mut self,
        k: &mut Kernel<'_>,
        from: TaskId,
        _to: Option<TaskId>,
    ) -> Result<bool, OpsFault> {
        if let Some(f) = &mut self.yield_ {
            f(k, from);
        }
        Ok(false)
    }
    fn cpu_release(
        &mut self,
        k: &mut Kernel<'_>,
        cpu: CpuId,
        _reason: u32,
        _task: TaskId,
    ) -> OpsResult {
        if let Some(f) = &mut self.cpu_release {
            f(k, cpu);
        }
        Ok(())
    }
    fn init(&mut self, k: &mut Kernel<'_>) -> Result<i32, OpsFault> {
        self.fault(Callback::Init)?;
        Ok(self.init.as_mut().map_or(0, |f| f(k)))
    }
    fn init_task(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        _args: &InitTaskArgs,
    ) -> Result<i32, OpsFault> {
        Ok(self.init_task.as_mut().map_or(0, |f| f(k, p)))
    }
    fn dump(&mut self, k: &mut Kernel<'_>) -> OpsResult {
        if let Some(f) = &mut self.dump {
            f(k);
        }
        Ok(())
    }
    fn timer(&mut self, k: &mut Kernel<'_>, token: u64) -> OpsResult {
        if let Some(f) = &mut self.timer {
            f(k, token);
        }
        Ok(())
    }
}
