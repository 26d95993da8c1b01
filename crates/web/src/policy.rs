// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in JavaScript as a scheduler. The page keeps the first exception of a policy; the
//! functions here return a negative number for it, and fetch its text.

use schedlab_core::script;
use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_sched::Scheduler;
use schedlab_sched::textbook::user::{self, TaskView, UserPolicy, Why};
use std::sync::Arc;

/// The name by which requests choose the policy.
pub const NAME: &str = "policy";

/// The scheduler that asks the page's policy.
pub fn scheduler() -> Arc<Scheduler> {
    Arc::new(user::scheduler(NAME, || Ok(OfPage)))
}

struct OfPage;

/// A negative answer stands for the exception that the page kept.
fn checked(answer: f64) -> Result<f64, String> {
    if answer >= 0.0 { Ok(answer) } else { Err(page::exception()) }
}

/// Describes `task` to the page before a callback.
fn show(now: Nanos, task: &TaskView) {
    page::show(task.id, &task.name, script::numbers(task, now));
}

impl UserPolicy for OfPage {
    fn seed(&mut self, seed: u64) {
        page::seed(seed as u32);
    }

    fn enqueue(&mut self, now: Nanos, task: &TaskView, why: Why) -> Result<bool, String> {
        show(now, task);
        checked(page::enqueue(task.id, why.name())).map(|gives_way| gives_way > 0.0)
    }

    fn dequeue(&mut self, now: Nanos, task: &TaskView) -> Result<(), String> {
        show(now, task);
        checked(page::dequeue(task.id)).map(|_| ())
    }

    fn pick(&mut self, now: Nanos, cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
        let ids: Vec<u32> = waiting.iter().map(|task| task.0).collect();
        checked(page::pick(cpu.0, &ids, now as f64)).map(|id| TaskId(id as u32))
    }

    fn tick(&mut self, now: Nanos, task: &TaskView, ran: Nanos) -> Result<bool, String> {
        show(now, task);
        checked(page::tick(task.id, ran as f64)).map(|ends| ends > 0.0)
    }

    fn has_ticks(&self) -> bool {
        page::has_tick()
    }

    fn quantum(&mut self, now: Nanos, task: &TaskView) -> Result<Option<Nanos>, String> {
        show(now, task);
        let ns = checked(page::quantum(task.id))?;
        Ok(script::quantum(ns))
    }
}

/// The page's side of a policy.
#[cfg(target_arch = "wasm32")]
mod page {
    mod imported {
        #[link(wasm_import_module = "policy")]
        unsafe extern "C" {
            pub fn seed(seed: u32);
            pub fn show(task: u32, name: *const u8, len: usize, numbers: *const f64, count: usize);
            pub fn enqueue(task: u32, why: *const u8, len: usize) -> f64;
            pub fn dequeue(task: u32) -> f64;
            pub fn pick(cpu: u32, waiting: *const u32, len: usize, now_ns: f64) -> f64;
            pub fn quantum(task: u32) -> f64;
            pub fn has_tick() -> u32;
            pub fn tick(task: u32, ran_ns: f64) -> f64;
            pub fn exception(into: *mut u8, max: usize) -> usize;
        }
    }

    /// Longest text of an exception that is passed on.
    const EXCEPTION_BYTES_MAX: usize = 2_000;

    pub fn seed(seed: u32) {
        // SAFETY: a number only.
        unsafe { imported::seed(seed) }
    }

    pub fn show(task: u32, name: &str, numbers: [f64; 6]) {
        // SAFETY: the page copies the bytes and the numbers before it returns.
        unsafe {
            imported::show(task, name.as_ptr(), name.len(), numbers.as_ptr(), numbers.len());
        }
    }

    pub fn enqueue(task: u32, why: &str) -> f64 {
        // SAFETY: the page copies `len` bytes before it returns.
        unsafe { imported::enqueue(task, why.as_ptr(), why.len()) }
    }

    pub fn dequeue(task: u32) -> f64 {
        // SAFETY: a number only.
        unsafe { imported::dequeue(task) }
    }

    pub fn pick(cpu: u32, waiting: &[u32], now_ns: f64) -> f64 {
        // SAFETY: the page copies `len` numbers before it returns.
        unsafe { imported::pick(cpu, waiting.as_ptr(), waiting.len(), now_ns) }
    }

    pub fn quantum(task: u32) -> f64 {
        // SAFETY: a number only.
        unsafe { imported::quantum(task) }
    }

    pub fn has_tick() -> bool {
        // SAFETY: no argument.
        unsafe { imported::has_tick() != 0 }
    }

    pub fn tick(task: u32, ran_ns: f64) -> f64 {
        // SAFETY: numbers only.
        unsafe { imported::tick(task, ran_ns) }
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
    pub fn seed(_seed: u32) {}
    pub fn show(_task: u32, _name: &str, _numbers: [f64; 6]) {}
    pub fn enqueue(_task: u32, _why: &str) -> f64 {
        -1.0
    }
    pub fn dequeue(_task: u32) -> f64 {
        -1.0
    }
    pub fn pick(_cpu: u32, _waiting: &[u32], _now_ns: f64) -> f64 {
        -1.0
    }
    pub fn quantum(_task: u32) -> f64 {
        -1.0
    }
    pub fn has_tick() -> bool {
        false
    }
    pub fn tick(_task: u32, _ran_ns: f64) -> f64 {
        -1.0
    }
    pub fn exception() -> String {
        "a policy in JavaScript runs only in a page".into()
    }
}
