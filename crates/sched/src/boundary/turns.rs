// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that are equally good for a task are taken in turn.
//!
//! Each CPU remembers which one it chose last, for whatever task, and looks from the next one on
//! (`cpumask_any_and_distribute` in lib/cpumask.c, since 5.7; the classes for SCHED_DEADLINE and
//! real-time tasks use it since 5.11). After the boot all have chosen CPU 0.
//!
//! A launcher that sets a run up makes choices, too, so how they end depends on the tasks. That of
//! guests lets all CPUs choose the last one before time 0 (crates/host, `launcher/settle.rs`).

use schedlab_model::{CpuId, CpuMask};

/// Which CPU each CPU has chosen last (`distribute_cpu_mask_prev`).
#[derive(Clone, Debug)]
pub struct Turns {
    last: Vec<CpuId>,
}

impl Turns {
    /// The state at time 0.
    pub fn new(nr_cpus: u32, is_set_up: bool) -> Self {
        let last = if is_set_up { nr_cpus.saturating_sub(1) } else { 0 };
        Self { last: vec![CpuId(last); nr_cpus as usize] }
    }

    /// The CPU of `candidates` that `this_cpu` chooses; `None` if there is none.
    pub fn choose(&mut self, this_cpu: CpuId, candidates: &CpuMask) -> Option<CpuId> {
        let last = &mut self.last[this_cpu.index()];
        let after = candidates.iter().find(|cpu| cpu.0 > last.0);
        let chosen = after.or_else(|| candidates.first_cpu())?;
        *last = chosen;
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_chooses_in_turn() {
        let mut turns = Turns::new(4, false);
        let some: CpuMask = [0, 1, 3].map(CpuId).into_iter().collect();
        let of = |turns: &mut Turns, cpu: u32| turns.choose(CpuId(cpu), &some).unwrap().0;
        assert_eq!([(); 4].map(|()| of(&mut turns, 2)), [1, 3, 0, 1], "the first one is not CPU 0");
        assert_eq!([(); 2].map(|()| of(&mut turns, 0)), [1, 3], "each CPU has its own turn");
        assert_eq!(turns.choose(CpuId(2), &CpuMask::empty()), None);
        assert_eq!(of(&mut turns, 2), 3, "nothing was chosen");
        assert_eq!(of(&mut Turns::new(4, true), 2), 0, "a launcher was there");
    }
}
