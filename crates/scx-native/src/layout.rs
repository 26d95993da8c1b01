// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offsets of fields in the kernel's structs, as the compiler laid them out.
//!
//! The run time contains tables of offsets (`schedlab_*_layout` in rt.c), which get their names
//! here, in the same order. So the header that schedulers include is the only description of each
//! struct.

use super::error::NativeError;
use super::image::Image;
use super::program::{Program, RUN_TIME};

macro_rules! layout {
    ($(#[$doc:meta])* $name:ident, $symbol:literal: $($field:ident),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[allow(missing_docs, reason = "the kernel's names")]
        pub struct $name { $(pub $field: usize,)* }

        impl $name {
            /// Reads the tables of the run time in `image`.
            pub fn read(program: &Program, image: &Image) -> Result<Self, NativeError> {
                let words = words(program, image, $symbol)?;
                let mut next = words.into_iter();
                let this = Self { $($field: next.next().ok_or_else(short)?,)* };
                if next.next().is_some() { Err(short()) } else { Ok(this) }
            }
        }
    };
}

fn short() -> NativeError {
    NativeError::Internal("a table of offsets has another length than expected".into())
}

fn words(program: &Program, image: &Image, symbol: &str) -> Result<Vec<usize>, NativeError> {
    let (section, offset) = program.run_time_symbol(symbol)?;
    let symbols = &program.objects[RUN_TIME].symbols;
    let size = symbols.iter().find(|s| s.name == symbol).map_or(0, |s| s.size as usize);
    let bytes = image.bytes(image.address(RUN_TIME, section, offset), size);
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
    Ok(bytes.chunks_exact(4).map(word).collect())
}

layout! {
    /// `struct task_struct`.
    TaskLayout, "schedlab_task_layout":
    size, cpu, state, flags, on_cpu, on_rq, prio, static_prio, normal_prio, rt_priority, policy,
    wake_cpu, recent_used_cpu, nr_cpus_allowed, cpus_ptr, cpus_mask, sum_exec_runtime, scx,
    sched_task_group, pid, tgid, real_parent, parent, group_leader, mm, utime, nvcsw, nivcsw,
    start_time, comm, cgroups, schedlab_task, last_wakee, load_weight, exit_state, real_cred, cred,
    start_boottime, storage,
}

layout! {
    /// `struct sched_ext_entity`.
    EntityLayout, "schedlab_entity_layout":
    slice, dsq_vtime, weight, flags, disallow, tid,
}

layout! {
    /// `struct cgroup`.
    GroupLayout, "schedlab_cgroup_layout":
    size, self_cgroup, self_parent, level, kn, subsys, ancestors, dom_cgrp, css_cgroup,
    cpuset_size, cpuset_cpus,
}

layout! {
    /// `struct rq`.
    RqLayout, "schedlab_rq_layout":
    size, nr_running, curr, idle, clock, clock_task, cpu, online, cpu_capacity, clock_pelt,
}

/// Offset of a member of the scheduler's `struct sched_ext_ops`; for callbacks also the function.
pub fn ops_members(
    program: &Program,
    image: &Image,
) -> Result<Vec<(String, usize, bool)>, NativeError> {
    const ENTRY: usize = 24;
    let (section, offset) = program.run_time_symbol("schedlab_ops_layout")?;
    let base = image.address(RUN_TIME, section, offset);
    let mut members = Vec::new();
    for index in 0.. {
        let entry = image.bytes(base + (index * ENTRY) as u64, ENTRY);
        let word = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight"));
        if word(0) == 0 {
            break;
        }
        members.push((image.text_at(word(0)), word(8) as usize, word(16) as u32 != 0));
    }
    Ok(members)
}
