// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a task's state that the scheduler itself reads and writes (`struct
//! sched_ext_entity`).
//!
//! Source: Linux include/linux/sched/ext.h, 6.12 to 7.1. A scheduler stores to `p->scx.slice` and
//! `p->scx.dsq_vtime` of any task at any time, so these words are reached through methods only, and
//! a store needs no exclusive reference.

use super::consts::SLICE_DFL;
use std::cell::Cell;

/// What core and scheduler share of a task.
#[derive(Clone, Debug)]
pub struct Entity {
    slice: Cell<u64>,
    dsq_vtime: Cell<u64>,
    weight: Cell<u32>,
    disallow: Cell<bool>,
}

impl Default for Entity {
    fn default() -> Self {
        Self {
            slice: Cell::new(SLICE_DFL),
            dsq_vtime: Cell::new(0),
            weight: Cell::new(100),
            disallow: Cell::new(false),
        }
    }
}

impl Entity {
    /// What is left of the slice, ns; all ones: it is never used up.
    #[inline]
    pub fn slice(&self) -> u64 {
        self.slice.get()
    }

    /// Sets the slice.
    #[inline]
    pub fn set_slice(&self, ns: u64) {
        self.slice.set(ns);
    }

    /// The key in queues ordered by virtual time.
    #[inline]
    pub fn dsq_vtime(&self) -> u64 {
        self.dsq_vtime.get()
    }

    /// Sets the key.
    #[inline]
    pub fn set_dsq_vtime(&self, vtime: u64) {
        self.dsq_vtime.set(vtime);
    }

    /// The weight, 1 to 10000.
    #[inline]
    pub fn weight(&self) -> u32 {
        self.weight.get()
    }

    /// Sets the weight; only the core does.
    pub fn set_weight(&self, weight: u32) {
        self.weight.set(weight);
    }

    /// Whether `ops.init_task` keeps the task out of the class.
    pub fn disallow(&self) -> bool {
        self.disallow.get()
    }

    /// Keeps the task out of the class.
    pub fn set_disallow(&self, disallow: bool) {
        self.disallow.set(disallow);
    }
}
