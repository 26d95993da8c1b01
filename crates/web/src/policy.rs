// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in JavaScript as a scheduler. The page keeps the first exception of a policy; the
//! functions here return a negative number for it, and fetch its text.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_sched::Scheduler;
use schedlab_sched::boundary::core::Core;
use schedlab_sched::textbook::callbacks::{self, Arrival, Callbacks};
use std::sync::Arc;

/// The name by which requests choose the policy.
pub const NAME: &str = "policy";

/// Longest turn that a policy may ask for: 2^53 - 1 ns, 104 days, exact in JavaScript.
const QUANTUM_MAX_NS: f64 = 9_007_199_254_740_991.0;

/// The scheduler that asks the page's policy.
pub fn scheduler() -> Arc<Scheduler> {
    Arc::new(callbacks::scheduler(NAME, || Box::new(OfPage)))
}

struct OfPage;

/// What JavaScript is told of a task before a callback.
fn show(core: &Core, task: TaskId) {
    let left = core.burst_remaining(task).map_or(-1.0, |left| left as f64);
    page::show(task.0, core.sum_exec_runtime(task) as f64, left, core.now as f64);
}

/// A negative answer is the exception that the page kept.
fn checked(answer: f64) -> Result<f64, String> {
    if answer >= 0.0 { Ok(answer) } else { Err(page::exception()) }
}

impl Callbacks for OfPage {
    fn task_new(&mut self, core: &Core, task: TaskId) -> Result<(), String> {
        let known = core.task(task);
        let attr = &known.attr;
        page::task_new(
            task.0,
            known.comm.as_str(),
            f64::from(attr.nice),
            f64::from(attr.rt_priority),
            core.now as f64,
        );
        Ok(())
    }

    fn enqueue(
        &mut self,
        core: &Core,
        task: TaskId,
        why: Arrival,
        ran: Nanos,
    ) -> Result<(), String> {
        show(core, task);
        checked(page::enqueue(task.0, why.name(), ran as f64)).map(|_| ())
    }

    fn pick(&mut self, core: &Core, cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
        for task in waiting {
            show(core, *task);
        }
        let ids: Vec<u32> = waiting.iter().map(|task| task.0).collect();
        checked(page::pick(cpu.0, &ids)).map(|id| TaskId(id as u32))
    }

    fn quantum(&mut self, core: &Core, task: TaskId) -> Result<Option<Nanos>, String> {
        show(core, task);
        let ns = checked(page::quantum(task.0))?;
        Ok((ns > 0.0 && ns <= QUANTUM_MAX_NS).then_some(ns as Nanos))
    }

    fn has_tick(&self) -> bool {
        page::has_tick()
    }

    fn tick(&mut self, core: &Core, cpu: CpuId, task: TaskId, ran: Nanos) -> Result<bool, String> {
        show(core, task);
        checked(page::tick(cpu.0, task.0, ran as f64)).map(|ends| ends > 0.0)
    }
}

/// The page's side of a policy.
#[cfg(target_arch = "wasm32")]
mod page {
    mod imported {
        #[link(wasm_import_module = "policy")]
        unsafe extern "C" {
            pub fn show(task: u32, ran_ns: f64, left_ns: f64, now_ns: f64);
            pub fn task_new(
                task: u32,
                name: *const u8,
                len: usize,
                nice: f64,
                priority: f64,
                now_ns: f64,
            );
            pub fn enqueue(task: u32, why: *const u8, len: usize, ran_ns: f64) -> f64;
            pub fn pick(cpu: u32, waiting: *const u32, len: usize) -> f64;
            pub fn quantum(task: u32) -> f64;
            pub fn has_tick() -> u32;
            pub fn tick(cpu: u32, task: u32, ran_ns: f64) -> f64;
            pub fn exception(into: *mut u8, max: usize) -> usize;
        }
    }

    /// Longest text of an exception that is passed on.
    const EXCEPTION_BYTES_MAX: usize = 2_000;

    pub fn show(task: u32, ran_ns: f64, left_ns: f64, now_ns: f64) {
        // SAFETY: numbers only.
        unsafe { imported::show(task, ran_ns, left_ns, now_ns) }
    }

    pub fn task_new(task: u32, name: &str, nice: f64, priority: f64, now_ns: f64) {
        // SAFETY: the page copies `len` bytes before it returns.
        unsafe { imported::task_new(task, name.as_ptr(), name.len(), nice, priority, now_ns) }
    }

    pub fn enqueue(task: u32, why: &str, ran_ns: f64) -> f64 {
        // SAFETY: the page copies `len` bytes before it returns.
        unsafe { imported::enqueue(task, why.as_ptr(), why.len(), ran_ns) }
    }

    pub fn pick(cpu: u32, waiting: &[u32]) -> f64 {
        // SAFETY: the page copies `len` numbers before it returns.
        unsafe { imported::pick(cpu, waiting.as_ptr(), waiting.len()) }
    }

    pub fn quantum(task: u32) -> f64 {
        // SAFETY: numbers only.
        unsafe { imported::quantum(task) }
    }

    pub fn has_tick() -> bool {
        // SAFETY: no argument.
        unsafe { imported::has_tick() != 0 }
    }

    pub fn tick(cpu: u32, task: u32, ran_ns: f64) -> f64 {
        // SAFETY: numbers only.
        unsafe { imported::tick(cpu, task, ran_ns) }
    }

    pub fn exception() -> String {
        let mut text = vec![0; EXCEPTION_BYTES_MAX];
        // SAFETY: the page writes at most `max` bytes and returns how many.
        let len = unsafe { imported::exception(text.as_mut_ptr(), text.len()) };
        text.truncate(len);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Outside of a page there is no policy: every question fails.
#[cfg(not(target_arch = "wasm32"))]
mod page {
    pub fn show(_task: u32, _ran_ns: f64, _left_ns: f64, _now_ns: f64) {}
    pub fn task_new(_task: u32, _name: &str, _nice: f64, _priority: f64, _now_ns: f64) {}
    pub fn enqueue(_task: u32, _why: &str, _ran_ns: f64) -> f64 {
        -1.0
    }
    pub fn pick(_cpu: u32, _waiting: &[u32]) -> f64 {
        -1.0
    }
    pub fn quantum(_task: u32) -> f64 {
        -1.0
    }
    pub fn has_tick() -> bool {
        false
    }
    pub fn tick(_cpu: u32, _task: u32, _ran_ns: f64) -> f64 {
        -1.0
    }
    pub fn exception() -> String {
        "a policy in JavaScript runs only in a page".into()
    }
}
