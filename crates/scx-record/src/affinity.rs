// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs that threads of a user program choose for themselves, on the modelled machine.

use crate::calls::{Answer, Call};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::{CpuId, CpuMask};
use std::collections::BTreeMap;

/// Affinities of threads.
#[derive(Debug)]
pub(crate) struct Affinities {
    nr_cpus: u32,
    chosen: BTreeMap<u32, CpuMask>,
}

impl Affinities {
    /// No thread has chosen CPUs.
    pub(crate) fn new(nr_cpus: u32) -> Self {
        Self { nr_cpus, chosen: BTreeMap::new() }
    }

    /// The first CPU that a thread has chosen.
    pub(crate) fn cpu(&self, thread: u32) -> Option<u32> {
        self.chosen.get(&thread).and_then(CpuMask::first_cpu).map(|cpu| cpu.0)
    }

    fn all(&self) -> CpuMask {
        CpuMask::first(self.nr_cpus)
    }

    /// sched_getaffinity(2): the CPUs of the machine that the thread has chosen, else all.
    pub(crate) fn get(&self, call: &Call) -> Answer {
        let words = self.nr_cpus.div_ceil(64) as usize;
        if (call.args[1] as usize) < 8 * words {
            return Answer::Error(libc::EINVAL);
        }
        let mask = self.chosen.get(&thread(call)).copied().unwrap_or(self.all());
        let bytes: Vec<u8> =
            mask.words()[..words].iter().flat_map(|word| word.to_le_bytes()).collect();
        match call.write(call.args[2], &bytes) {
            true => Answer::Value(bytes.len() as i64),
            false => Answer::Error(libc::EFAULT),
        }
    }

    /// sched_setaffinity(2), on the machine's CPUs.
    pub(crate) fn set(&mut self, call: &Call) -> Answer {
        let len = (call.args[1] as usize).min(NR_CPUS_MAX / 8);
        let Some(bytes) = call.read(call.args[2], len) else { return Answer::Error(libc::EFAULT) };
        let all = self.all();
        let is_set = |cpu: &CpuId| {
            bytes.get(cpu.index() / 8).is_some_and(|byte| byte >> (cpu.index() % 8) & 1 == 1)
        };
        let chosen: CpuMask = all.iter().filter(is_set).collect();
        if chosen.is_empty() {
            return Answer::Error(libc::EINVAL);
        }
        match chosen == all {
            true => self.chosen.remove(&thread(call)),
            false => self.chosen.insert(thread(call), chosen),
        };
        Answer::Value(0)
    }
}

/// The thread that a call about affinity names.
fn thread(call: &Call) -> u32 {
    if call.args[0] == 0 { call.thread } else { call.args[0] as u32 }
}
