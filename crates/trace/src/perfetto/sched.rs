// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches and wake-ups of one CPU, collected into a FtraceEventBundle with `compact_sched`.
//!
//! Source: Perfetto protos/perfetto/trace/ftrace/ftrace_event_bundle.proto. Times are deltas (the
//! first is absolute), each bundle has a table of names, and `prev` is implied by the previous
//! switch.

use super::proto;
use crate::names::Name;
use crate::varint;
use schedlab_model::{Nanos, SwitchOut, TaskId};

/// Number of events after which a bundle is written.
pub const BUNDLE_EVENTS: u32 = 4096;

/// TRACE_FLAG_HARDIRQ of the kernel's trace records: the wake-up came from an interrupt.
const FLAG_HARDIRQ: u64 = 8;

/// The bundle of one CPU; each vector is a packed field.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    nr_events: u32,
    lost_events: bool,
    intern_table: Vec<u8>,
    /// Place + 1 of each task's name in the table, idle's first; 0: not in the table.
    interned: Vec<u32>,
    /// Indices of `interned` that are not 0.
    used: Vec<u32>,
    last_switch_ns: Nanos,
    switch_timestamp: Vec<u8>,
    switch_prev_state: Vec<u8>,
    switch_next_pid: Vec<u8>,
    switch_next_prio: Vec<u8>,
    switch_next_comm_index: Vec<u8>,
    last_waking_ns: Nanos,
    waking_timestamp: Vec<u8>,
    waking_pid: Vec<u8>,
    waking_target_cpu: Vec<u8>,
    waking_prio: Vec<u8>,
    waking_comm_index: Vec<u8>,
    waking_common_flags: Vec<u8>,
}

/// The kernel's number for why a task left its CPU (TASK_REPORT of include/linux/sched.h; 0x100 is
/// the tracepoint's own "preempted").
const fn prev_state(out: SwitchOut) -> u64 {
    match out {
        SwitchOut::Idle | SwitchOut::Yielded => 0,
        SwitchOut::Preempted => 0x100,
        SwitchOut::Sleeping => 1,
        SwitchOut::BlockedIo => 2,
        SwitchOut::Dead => 16,
    }
}

fn signed(value: i32) -> u64 {
    i64::from(value) as u64
}

impl Bundle {
    /// The place of a task's name in the table.
    fn intern(&mut self, task: Option<TaskId>, comm: &str) -> u64 {
        let at = task.map_or(0, |task| task.index() + 1);
        if at >= self.interned.len() {
            self.interned.resize(at + 1, 0);
        }
        if self.interned[at] == 0 {
            proto::bytes(&mut self.intern_table, 5, comm.as_bytes());
            self.used.push(at as u32);
            self.interned[at] = self.used.len() as u32;
        }
        u64::from(self.interned[at] - 1)
    }

    /// Adds a switch to `next` (`None`: idle). Returns whether the bundle is full.
    pub fn switch(
        &mut self,
        time_ns: Nanos,
        out: SwitchOut,
        next: Option<(TaskId, &Name)>,
    ) -> bool {
        let (task, comm, pid, prio) = match next {
            Some((task, name)) => (Some(task), name.comm.as_str(), name.pid, name.prio),
            None => (None, "swapper", 0, 120),
        };
        debug_assert!(self.nr_events < BUNDLE_EVENTS, "a full bundle was not written");
        let index = self.intern(task, comm);
        varint::push(&mut self.switch_timestamp, time_ns.wrapping_sub(self.last_switch_ns));
        varint::push(&mut self.switch_prev_state, prev_state(out));
        varint::push(&mut self.switch_next_pid, u64::from(pid));
        varint::push(&mut self.switch_next_prio, signed(prio));
        varint::push(&mut self.switch_next_comm_index, index);
        self.last_switch_ns = time_ns;
        self.nr_events += 1;
        self.nr_events >= BUNDLE_EVENTS
    }

    /// Adds a wake-up by the running task of this CPU (or by an interrupt). Returns whether the
    /// bundle is full.
    pub fn waking(
        &mut self,
        time_ns: Nanos,
        (task, name): (TaskId, &Name),
        target_cpu: u32,
        by_interrupt: bool,
    ) -> bool {
        debug_assert!(self.nr_events < BUNDLE_EVENTS, "a full bundle was not written");
        let index = self.intern(Some(task), &name.comm);
        varint::push(&mut self.waking_timestamp, time_ns.wrapping_sub(self.last_waking_ns));
        varint::push(&mut self.waking_pid, u64::from(name.pid));
        varint::push(&mut self.waking_target_cpu, u64::from(target_cpu));
        varint::push(&mut self.waking_prio, signed(name.prio));
        varint::push(&mut self.waking_comm_index, index);
        varint::push(&mut self.waking_common_flags, if by_interrupt { FLAG_HARDIRQ } else { 0 });
        self.last_waking_ns = time_ns;
        self.nr_events += 1;
        self.nr_events >= BUNDLE_EVENTS
    }

    /// Notes that events were lost before the next one.
    pub fn lost(&mut self) {
        self.lost_events = true;
    }

    /// Writes the bundle as field `ftrace_events` of a packet and empties it.
    pub fn write(&mut self, packet: &mut Vec<u8>, cpu: u32) {
        let mut compact = std::mem::take(&mut self.intern_table);
        for (field, values) in [
            (1, &mut self.switch_timestamp),
            (2, &mut self.switch_prev_state),
            (3, &mut self.switch_next_pid),
            (4, &mut self.switch_next_prio),
            (6, &mut self.switch_next_comm_index),
            (7, &mut self.waking_timestamp),
            (8, &mut self.waking_pid),
            (9, &mut self.waking_target_cpu),
            (10, &mut self.waking_prio),
            (11, &mut self.waking_comm_index),
            (12, &mut self.waking_common_flags),
        ] {
            proto::bytes_if_any(&mut compact, field, values);
            values.clear();
        }
        proto::message(packet, 1, |bundle| {
            proto::number(bundle, 1, u64::from(cpu));
            if self.lost_events {
                proto::number(bundle, 3, 1);
            }
            proto::bytes_if_any(bundle, 4, &compact);
        });
        for at in self.used.drain(..) {
            self.interned[at as usize] = 0;
        }
        debug_assert!(self.interned.iter().all(|place| *place == 0), "a name keeps its place");
        (self.last_switch_ns, self.last_waking_ns) = (0, 0);
        (self.nr_events, self.lost_events) = (0, false);
    }

    /// Whether the bundle is empty.
    pub fn is_empty(&self) -> bool {
        self.nr_events == 0 && !self.lost_events
    }
}
