// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers in Rust, each after an example of the kernel's tools/sched_ext.

use schedlab_model::{CpuId, TaskId};
use schedlab_scx::consts::{
    DSQ_GLOBAL, DSQ_LOCAL, DSQ_LOCAL_ON, ENQ_PREEMPT, KICK_IDLE, KICK_PREEMPT, OPS_ENQ_LAST,
    SLICE_DFL, SLICE_INF,
};
use schedlab_scx::{Callback, Callbacks, Kernel, Ops, OpsFault, OpsInfo, OpsResult};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How long [`Simple`] notes what it enqueues.
const WATCHED_NS: u64 = 1_000_000_000;

/// The queue that all CPUs share.
pub const SHARED: u64 = 0;

/// Whether `a` comes before `b`, wrapping.
fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// scx_simple: one shared queue, by order of coming or by weighted virtual time.
#[derive(Default)]
pub struct Simple {
    pub is_fifo: bool,
    pub flags: u64,
    /// Tasks enqueued, and their virtual times.
    pub enqueued: Arc<Mutex<Vec<(TaskId, u64)>>>,
    pub vtime_now: u64,
}

impl Simple {
    pub fn fifo() -> Self {
        Self { is_fifo: true, ..Self::default() }
    }

    pub fn vtime() -> Self {
        Self::default()
    }
}

impl Ops for Simple {
    fn info(&self) -> OpsInfo {
        use Callback::{Dispatch, Enable, Enqueue, Init, Running, SelectCpu, Stopping};
        OpsInfo {
            name: "simple".into(),
            flags: self.flags,
            callbacks: Callbacks::of(&[
                SelectCpu, Enqueue, Dispatch, Running, Stopping, Enable, Init,
            ]),
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
        let (cpu, is_idle) = k.select_cpu_dfl(p, prev.0 as i32, wake_flags);
        if is_idle {
            k.dsq_insert(p, DSQ_LOCAL, SLICE_DFL, 0);
        }
        Ok(cpu)
    }
    fn enqueue(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        if self.is_fifo {
            k.dsq_insert(p, SHARED, SLICE_DFL, enq_flags);
            return Ok(());
        }
        let limit = self.vtime_now.wrapping_sub(SLICE_DFL);
        let vtime = k.entity(p).dsq_vtime();
        let vtime = if before(vtime, limit) { limit } else { vtime };
        k.dsq_insert_vtime(p, SHARED, SLICE_DFL, vtime, enq_flags);
        if k.now() < WATCHED_NS {
            self.enqueued.lock().unwrap().push((p, vtime));
        }
        Ok(())
    }
    fn dispatch(&mut self, k: &mut Kernel<'_>, _cpu: CpuId, _prev: Option<TaskId>) -> OpsResult {
        k.dsq_move_to_local(SHARED);
        Ok(())
    }
    fn running(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        let vtime = k.entity(p).dsq_vtime();
        if before(self.vtime_now, vtime) {
            self.vtime_now = vtime;
        }
        Ok(())
    }
    fn stopping(&mut self, k: &mut Kernel<'_>, p: TaskId, _runnable: bool) -> OpsResult {
        let entity = k.entity(p);
        let used = SLICE_DFL - entity.slice();
        let charged = used * 100 / u64::from(entity.weight());
        entity.set_dsq_vtime(entity.dsq_vtime().wrapping_add(charged));
        Ok(())
    }
    fn enable(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        k.entity(p).set_dsq_vtime(self.vtime_now);
        Ok(())
    }
    fn init(&mut self, k: &mut Kernel<'_>) -> Result<i32, OpsFault> {
        Ok(k.create_dsq(SHARED, -1))
    }
}

/// scx_central: CPU 0 decides for all, and a timer there ends slices.
#[derive(Default)]
pub struct Central {
    queue: VecDeque<TaskId>,
    nr_cpus: u32,
    wants: Vec<bool>,
    started_at: Vec<u64>,
}

const FALLBACK: u64 = 0;
const TIMER_INTERVAL: u64 = 1_000_000;

impl Central {
    /// Gives `cpu` a task that it may run.
    fn dispatch_to(&mut self, k: &mut Kernel<'_>, cpu: CpuId) -> bool {
        for _ in 0..self.queue.len() {
            let Some(p) = self.queue.pop_front() else { break };
            if !k.cpus_allowed(p).contains(cpu) {
                k.dsq_insert(p, FALLBACK, SLICE_INF, 0);
                continue;
            }
            k.dsq_insert(p, DSQ_LOCAL_ON | u64::from(cpu.0), SLICE_INF, 0);
            if cpu.0 != 0 {
                k.kick_cpu(cpu.0 as i32, KICK_IDLE);
            }
            return true;
        }
        false
    }
}

impl Ops for Central {
    fn info(&self) -> OpsInfo {
        use Callback::{Dispatch, Enqueue, Init, Running, SelectCpu, Stopping};
        OpsInfo {
            name: "central".into(),
            flags: OPS_ENQ_LAST,
            callbacks: Callbacks::of(&[SelectCpu, Enqueue, Dispatch, Running, Stopping, Init]),
            ..OpsInfo::default()
        }
    }
    fn select_cpu(
        &mut self,
        _k: &mut Kernel<'_>,
        _p: TaskId,
        _prev: CpuId,
        _wake_flags: u64,
    ) -> Result<i32, OpsFault> {
        Ok(0)
    }
    fn enqueue(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        if k.nr_cpus_allowed(p) == 1 {
            k.dsq_insert(p, DSQ_LOCAL, SLICE_INF, enq_flags | ENQ_PREEMPT);
            return Ok(());
        }
        self.queue.push_back(p);
        if k.task_cpu(p).0 != 0 {
            k.kick_cpu(0, KICK_PREEMPT);
        }
        Ok(())
    }
    fn dispatch(&mut self, k: &mut Kernel<'_>, cpu: CpuId, _prev: Option<TaskId>) -> OpsResult {
        if cpu.0 != 0 {
            if !k.dsq_move_to_local(FALLBACK) {
                self.wants[cpu.index()] = true;
                k.kick_cpu(0, KICK_PREEMPT);
            }
            return Ok(());
        }
        for other in (1..self.nr_cpus).map(CpuId) {
            if k.dispatch_nr_slots() == 0 {
                break;
            }
            if self.wants[other.index()] && self.dispatch_to(k, other) {
                self.wants[other.index()] = false;
            }
        }
        if !k.dsq_move_to_local(FALLBACK) {
            self.dispatch_to(k, CpuId(0));
        }
        Ok(())
    }
    fn running(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        self.started_at[k.task_cpu(p).index()] = k.now().max(1);
        Ok(())
    }
    fn stopping(&mut self, k: &mut Kernel<'_>, p: TaskId, _runnable: bool) -> OpsResult {
        self.started_at[k.task_cpu(p).index()] = 0;
        Ok(())
    }
    fn init(&mut self, k: &mut Kernel<'_>) -> Result<i32, OpsFault> {
        self.nr_cpus = k.nr_cpu_ids();
        self.wants = vec![false; self.nr_cpus as usize];
        self.started_at = vec![0; self.nr_cpus as usize];
        k.start_timer(1, k.now() + TIMER_INTERVAL);
        Ok(k.create_dsq(FALLBACK, -1))
    }
    fn timer(&mut self, k: &mut Kernel<'_>, token: u64) -> OpsResult {
        let now = k.now();
        for cpu in (0..self.nr_cpus).map(CpuId) {
            let started_at = self.started_at[cpu.index()];
            let is_over = started_at != 0 && now - started_at >= SLICE_DFL;
            if is_over && (!self.queue.is_empty() || k.dsq_nr_queued(FALLBACK) > 0) {
                k.kick_cpu(cpu.0 as i32, KICK_PREEMPT);
            }
        }
        k.start_timer(token, now + TIMER_INTERVAL);
        Ok(())
    }
}

/// Puts everything into the global queue.
pub struct Global;

impl Ops for Global {
    fn info(&self) -> OpsInfo {
        OpsInfo {
            name: "global".into(),
            callbacks: Callbacks::of(&[Callback::Enqueue]),
            ..OpsInfo::default()
        }
    }
    fn enqueue(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        k.dsq_insert(p, DSQ_GLOBAL, SLICE_DFL, enq_flags);
        Ok(())
    }
}
