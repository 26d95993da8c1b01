// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uses an exact amount of CPU time.
//!
//! A [`CpuClock`] measures the CPU time used. While the task keeps its CPU, it uses
//! CLOCK_MONOTONIC, which a program reads without entering the kernel. It reads the time after
//! every [`STRETCH_NS`] of work. If more time passed than work and an interrupt take, another task
//! had the CPU. Only then, and at the start, does it read the thread's own CPU clock
//! (CLOCK_THREAD_CPUTIME_ID). So a slow or stolen CPU, a change of frequency or a preemption
//! changes nothing.
//!
//! Readings of that clock must be rare, because they change what is measured. At a reading the
//! kernel updates the task's accounting (`update_curr` of kernel/sched/fair.c), and EEVDF then ends
//! a slice at once instead of at the next tick. After a preemption a slice has just begun, and a
//! reading ends nothing.
//!
//! Left out: a preemption shorter than [`GAP_NS`] counts as the task's work until the next reading,
//! at most 100 ms later. If an operation used too much, the next one is shorter by that amount.
//!
//! In a guest whose clock counts instructions, work is a number of iterations, and no clock is
//! read.

use crate::sys;
use std::hint::black_box;

/// Work between two readings of the time.
const STRETCH_NS: u64 = 5_000;
/// If this much time passed between two readings, the task may have lost its CPU. The work of a
/// stretch on a slower CPU, and an interrupt, take less.
const GAP_NS: u64 = 50_000;
/// A task has kept its CPU between two operations if at most this much time passed. Switching to
/// another task and back takes longer.
const PAUSE_NS: u64 = 2_000;
/// How long a reading of the thread's clock is valid. A task that is alone on a CPU ends no slice
/// with it.
const TRUSTED_NS: u64 = 100_000_000;
/// Fixed-point shift of the speed.
const SHIFT: u32 = 20;
/// Least time of an iteration: its multiplication and addition take four cycles, and no processor
/// has 8 GHz. Where clocks of CPUs differ, as in a live guest, a measurement can come out near 0.
/// Without this floor 5 us of work then last for seconds.
const FASTEST_FIXED: u64 = 1 << (SHIFT - 1);

/// A chain of multiplications that no processor can shorten: four instructions per iteration,
/// however the compiler treats loops.
#[cfg(target_arch = "x86_64")]
fn spin(iterations: u64) {
    if iterations == 0 {
        return;
    }
    // SAFETY: arithmetic on registers only; the count is not 0.
    unsafe {
        std::arch::asm!(
            "2:",
            "imul {x}, {factor}",
            "add {x}, {term}",
            "dec {count}",
            "jnz 2b",
            x = inout(reg) 0x9e37_79b9_7f4a_7c15_u64 => _,
            factor = in(reg) 0x5851_f42d_4c95_7f2d_u64,
            term = in(reg) 0x1405_7b7e_f767_814f_u64,
            count = inout(reg) iterations => _,
            options(nomem, nostack),
        );
    }
}

/// A chain of multiplications that no compiler and no processor can shorten.
#[cfg(not(target_arch = "x86_64"))]
#[inline(never)]
fn spin(iterations: u64) {
    let mut x: u64 = black_box(0x9e37_79b9_7f4a_7c15);
    for _ in 0..iterations {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    }
    black_box(x);
}

/// Speed of the loop on the CPU where it was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed {
    /// Time of one iteration, ns << [`SHIFT`]; > 0.
    iteration_ns_fixed: u64,
    /// Time of one reading of the thread's CPU clock (ns).
    pub clock_cost_ns: u64,
    /// Whether the time of an iteration is exact, so that no clock need be read.
    is_exact: bool,
}

impl Speed {
    /// Measures the speed in about 2 ms of CPU time: the best of several rounds, so that an
    /// interrupt in one of them does not count.
    pub fn measure() -> Self {
        const ITERATIONS: u64 = 100_000;
        const LOOKS: u64 = 200;
        let mut best_spin = u64::MAX;
        let mut best_looks = u64::MAX;
        for _ in 0..5 {
            let start = sys::thread_cpu_ns();
            spin(ITERATIONS);
            let middle = sys::thread_cpu_ns();
            for _ in 0..LOOKS {
                black_box(sys::thread_cpu_ns());
            }
            best_looks = best_looks.min(sys::thread_cpu_ns().saturating_sub(middle));
            best_spin = best_spin.min(middle.saturating_sub(start));
        }
        Self {
            iteration_ns_fixed: ((best_spin << SHIFT) / ITERATIONS).max(FASTEST_FIXED),
            clock_cost_ns: best_looks / LOOKS,
            is_exact: false,
        }
    }

    /// The exact speed if every instruction takes `instruction_ns`. An iteration is a whole number
    /// of instructions; the measured value has a little overhead in addition.
    pub fn rounded_to(self, instruction_ns: u64) -> Self {
        let unit = (instruction_ns << SHIFT).max(1);
        let count = ((self.iteration_ns_fixed + unit / 2) / unit).max(1);
        Self { iteration_ns_fixed: count * unit, is_exact: true, ..self }
    }

    fn iterations(&self, ns: u64) -> u64 {
        ((u128::from(ns) << SHIFT) / u128::from(self.iteration_ns_fixed)) as u64
    }
}

/// The thread's CPU clock, read without a system call while the thread keeps its CPU.
#[derive(Clone, Debug, Default)]
struct CpuClock {
    /// CPU time at `at_ns`.
    cpu_ns: u64,
    /// When it was read, CLOCK_MONOTONIC.
    at_ns: u64,
    /// When the thread's own clock was last read, CLOCK_MONOTONIC.
    looked_ns: u64,
    /// Number of readings of the thread's own clock.
    nr_looks: u64,
}

impl CpuClock {
    /// Returns the CPU time. The thread has lost its CPU if `gap_ns` or more passed since the last
    /// reading.
    fn read(&mut self, gap_ns: u64) -> u64 {
        let now_ns = sys::monotonic_ns();
        let passed_ns = now_ns.saturating_sub(self.at_ns);
        if passed_ns >= gap_ns || now_ns.saturating_sub(self.looked_ns) >= TRUSTED_NS {
            self.nr_looks += 1;
            self.cpu_ns = sys::thread_cpu_ns();
            self.at_ns = sys::monotonic_ns();
            self.looked_ns = self.at_ns;
        } else {
            self.cpu_ns += passed_ns;
            self.at_ns = now_ns;
        }
        self.cpu_ns
    }
}

/// Uses CPU time; exact on average over any number of operations.
#[derive(Clone, Debug)]
pub struct Burner {
    speed: Speed,
    clock: CpuClock,
    /// CPU time used in excess so far (ns).
    carry_ns: u64,
    /// CPU time requested since the start (ns).
    pub requested_ns: u64,
    /// CPU time used for it (ns).
    pub burned_ns: u64,
}

impl Burner {
    /// A burner that starts from `speed`.
    pub fn new(speed: Speed) -> Self {
        let clock = CpuClock::default();
        Self { speed, clock, carry_ns: 0, requested_ns: 0, burned_ns: 0 }
    }

    /// The present estimate of the speed.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// Counts `ns` of CPU time as used that were requested but used in another way.
    pub fn credit(&mut self, ns: u64) {
        self.requested_ns += ns;
        self.burned_ns += ns;
    }

    /// Uses `ns` of CPU time.
    pub fn burn(&mut self, ns: u64) {
        self.requested_ns += ns;
        if self.speed.is_exact {
            spin(self.speed.iterations(ns));
            self.burned_ns += ns;
            return;
        }
        if self.carry_ns >= ns {
            self.carry_ns -= ns;
            return;
        }
        let owed = ns - self.carry_ns;
        let nr_looks = self.clock.nr_looks;
        let start = self.clock.read(PAUSE_NS);
        // The first reading itself takes time before the time that it returns.
        let before = if self.clock.nr_looks > nr_looks { self.speed.clock_cost_ns } else { 0 };
        let goal = start + owed.saturating_sub(before);
        let mut now = start;
        while now < goal {
            let iterations = self.speed.iterations(STRETCH_NS.min(goal - now)).max(1);
            spin(iterations);
            let after = self.clock.read(GAP_NS);
            self.correct(iterations, after.saturating_sub(now));
            now = after;
        }
        let used = now.saturating_sub(start) + before;
        self.burned_ns += used;
        self.carry_ns = used.saturating_sub(owed);
    }

    /// Adjusts the speed by an eighth of what one stretch suggests, because it may contain an
    /// interrupt.
    fn correct(&mut self, iterations: u64, took_ns: u64) {
        if took_ns >= STRETCH_NS / 2 {
            let measured = (u128::from(took_ns) << SHIFT) / u128::from(iterations);
            let mean = (u128::from(self.speed.iteration_ns_fixed) * 7 + measured) / 8;
            self.speed.iteration_ns_fixed =
                u64::try_from(mean).unwrap_or(u64::MAX).max(FASTEST_FIXED);
        }
    }

    /// Computes until `deadline_ns` on CLOCK_MONOTONIC.
    pub fn busy_until(&self, deadline_ns: u64) {
        let pause = self.speed.iterations(200).max(1);
        while sys::monotonic_ns() < deadline_ns {
            spin(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Error of the total by the thread's clock, in ppm of the requested amount.
    fn error_ppm(amounts: &[u64]) -> u64 {
        let mut burner = Burner::new(Speed::measure());
        let start = sys::thread_cpu_ns();
        for &ns in amounts {
            burner.burn(ns);
        }
        let used = sys::thread_cpu_ns() - start;
        let asked: u64 = amounts.iter().sum();
        assert_eq!(burner.requested_ns, asked);
        used.abs_diff(asked) * 1_000_000 / asked
    }

    #[test]
    fn long_and_short_amounts_are_met_within_two_percent() {
        // Interrupts and a busy sibling disturb single attempts; a defect disturbs all of them.
        let is_met = |amounts: &[u64]| (0..50).any(|_| error_ppm(amounts) < 20_000);
        assert!(is_met(&[20_000_000]));
        assert!(is_met(&[1_000_000; 20]));
        assert!(is_met(&[10_000; 500]));
    }

    /// Number of readings of the thread's clock that `amounts` need.
    fn looks(amounts: &[u64]) -> u64 {
        let mut burner = Burner::new(Speed::measure());
        amounts.iter().for_each(|ns| burner.burn(*ns));
        burner.clock.nr_looks
    }

    #[test]
    fn a_task_that_keeps_its_cpu_looks_at_its_clock_once() {
        // Other load on the machine disturbs single attempts.
        assert!((0..50).any(|_| looks(&[2_000_000]) == 1));
        assert!((0..50).any(|_| looks(&[100_000; 20]) == 1));
        let looked_ns = sys::monotonic_ns() - TRUSTED_NS;
        let mut clock = CpuClock { looked_ns, at_ns: sys::monotonic_ns(), ..CpuClock::default() };
        clock.read(u64::MAX);
        assert_eq!(clock.nr_looks, 1, "an old look is not trusted");
    }

    #[test]
    fn a_task_that_lost_its_cpu_looks_at_its_clock() {
        let mut clock = CpuClock::default();
        clock.read(GAP_NS);
        let (before, looks) = (sys::thread_cpu_ns(), clock.nr_looks);
        sys::sleep_until_ns(sys::monotonic_ns() + 20_000_000);
        let now = clock.read(GAP_NS);
        assert_eq!(clock.nr_looks, looks + 1);
        assert!(now >= before && now <= sys::thread_cpu_ns(), "the sleep counts as CPU time");
    }

    #[test]
    fn a_speed_that_cannot_be_is_not_believed() {
        let speed = Speed { iteration_ns_fixed: FASTEST_FIXED, clock_cost_ns: 0, is_exact: false };
        assert_eq!(speed.iterations(STRETCH_NS), 2 * STRETCH_NS);
        let mut burner = Burner::new(speed);
        burner.correct(1 << 40, STRETCH_NS);
        assert_eq!(burner.speed, speed, "2^40 iterations in 5 us");
        assert!(Speed::measure().iteration_ns_fixed > FASTEST_FIXED);
    }

    #[test]
    fn a_counted_clock_makes_the_speed_a_whole_number_of_instructions() {
        let measured =
            Speed { iteration_ns_fixed: (32 << SHIFT) + 7, clock_cost_ns: 900, is_exact: false };
        let exact = measured.rounded_to(8);
        assert_eq!(exact.iteration_ns_fixed, 32 << SHIFT);
        assert_eq!(exact.iterations(1_000_000_000_000), 31_250_000_000);
        let mut burner = Burner::new(exact);
        burner.burn(32_000);
        assert_eq!((burner.requested_ns, burner.burned_ns), (32_000, 32_000));
    }

    #[test]
    fn a_wrong_calibration_corrects_itself() {
        for factor in [4, 1] {
            let error_ns = || {
                let right = Speed::measure();
                let iteration_ns_fixed = (right.iteration_ns_fixed * factor / 2).max(1);
                let mut burner = Burner::new(Speed { iteration_ns_fixed, ..right });
                let start = sys::thread_cpu_ns();
                burner.burn(30_000_000);
                (sys::thread_cpu_ns() - start).abs_diff(30_000_000)
            };
            assert!((0..50).any(|_| error_ns() < 600_000));
        }
    }
}
