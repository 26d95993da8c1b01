// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uses an exact amount of CPU time.
//!
//! The thread's own CPU clock (CLOCK_THREAD_CPUTIME_ID) decides when enough was used, so a slow or
//! stolen CPU, a change of frequency or a preemption changes nothing. Between two looks at the
//! clock a loop spins whose speed is known: calibrated at run time, with this very code, and
//! corrected after each look. What an operation used too much is taken off the next one.
//!
//! Looks are few, since a look changes what is measured: it makes the kernel update the task's
//! account (`update_curr` of kernel/sched/fair.c), and EEVDF then ends a slice there instead of at
//! the next tick. So each stretch is a fixed part of what remains: half of it first, which
//! measures the speed, then three quarters, until [`LAST_NS`] are left: 10 looks for 250 ms, two
//! for every further factor of 16. A CPU that becomes slower by up to a third within a stretch (a
//! busy hyper-thread, another frequency) still ends it in time; what a greater change uses too
//! much comes off the next operation.
//!
//! In a guest whose clock counts instructions, work is a number of turns of the loop and no clock
//! is read.

use crate::sys;
use std::hint::black_box;

/// So little is burned in one go.
const LAST_NS: u64 = 2_000;
/// A stretch of this length measures the speed anew; a shorter one is mostly the clock's cost.
const MEASURES_NS: u64 = 50_000;
/// Fixed-point shift of the speed.
const SHIFT: u32 = 20;

/// A chain of multiplications that no processor can shorten: four instructions a turn, whatever the
/// compiler thinks of loops.
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
    /// What one look at the thread's CPU clock costs, ns.
    pub clock_cost_ns: u64,
    /// The time of an iteration is exact: no look at the clock is needed.
    is_exact: bool,
}

impl Speed {
    /// Measures, in about 2 ms of CPU time: the best of several rounds, so that an interrupt in one
    /// of them does not count.
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
            best_looks = best_looks.min(sys::thread_cpu_ns() - middle);
            best_spin = best_spin.min(middle - start);
        }
        Self {
            iteration_ns_fixed: ((best_spin << SHIFT) / ITERATIONS).max(1),
            clock_cost_ns: best_looks / LOOKS,
            is_exact: false,
        }
    }

    /// The exact speed where every instruction takes `instruction_ns`: an iteration is a whole
    /// number of instructions, and what was measured is that and a little overhead.
    pub fn rounded_to(self, instruction_ns: u64) -> Self {
        let unit = (instruction_ns << SHIFT).max(1);
        let count = ((self.iteration_ns_fixed + unit / 2) / unit).max(1);
        Self { iteration_ns_fixed: count * unit, is_exact: true, ..self }
    }

    fn iterations(&self, ns: u64) -> u64 {
        ((u128::from(ns) << SHIFT) / u128::from(self.iteration_ns_fixed)) as u64
    }
}

/// Burns CPU time, exact on average over any number of operations.
#[derive(Clone, Debug)]
pub struct Burner {
    speed: Speed,
    /// CPU time used too much so far.
    carry_ns: u64,
    /// CPU time asked for since the start.
    pub requested_ns: u64,
    /// CPU time used for it, by the thread's clock.
    pub burned_ns: u64,
    /// Looks at the thread's clock so far.
    pub nr_looks: u64,
}

impl Burner {
    /// A burner that starts from `speed`.
    pub fn new(speed: Speed) -> Self {
        Self { speed, carry_ns: 0, requested_ns: 0, burned_ns: 0, nr_looks: 0 }
    }

    /// The speed as known by now.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// `ns` of CPU time that were asked for have been used in another way.
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
        // Half of the first look and half of the last lie outside of what the clock shows.
        let owed = ns - self.carry_ns;
        let start = self.look();
        let goal = start + owed.saturating_sub(self.speed.clock_cost_ns);
        let mut now = start;
        let mut kept_back = 2;
        while now + self.speed.clock_cost_ns / 2 < goal {
            let left = goal - now;
            let stretch = if left > LAST_NS { left - left / kept_back } else { left };
            let iterations = self.speed.iterations(stretch).max(1);
            spin(iterations);
            let after = self.look();
            self.correct(iterations, after - now);
            now = after;
            kept_back = 4;
        }
        let used = now - start + self.speed.clock_cost_ns;
        self.burned_ns += used;
        self.carry_ns = used.saturating_sub(owed);
    }

    fn look(&mut self) -> u64 {
        self.nr_looks += 1;
        sys::thread_cpu_ns()
    }

    /// Follows the CPU's speed: the next stretch is as fast as this one was.
    fn correct(&mut self, iterations: u64, took_ns: u64) {
        if took_ns >= MEASURES_NS {
            let measured = (u128::from(took_ns) << SHIFT) / u128::from(iterations);
            self.speed.iteration_ns_fixed = u64::try_from(measured).unwrap_or(u64::MAX).max(1);
        }
    }

    /// Is busy until `deadline_ns` on CLOCK_MONOTONIC.
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

    /// Total by the thread's clock against the amount asked for, in ppm.
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
        // Interrupts and a busy sibling spoil attempts; a defect spoils all of them.
        let is_met = |amounts: &[u64]| (0..50).any(|_| error_ppm(amounts) < 20_000);
        assert!(is_met(&[20_000_000]));
        assert!(is_met(&[1_000_000; 20]));
        assert!(is_met(&[10_000; 500]));
    }

    /// Looks at the clock that an operation of `ns` takes.
    fn looks(ns: u64) -> u64 {
        let mut burner = Burner::new(Speed::measure());
        burner.burn(ns);
        burner.nr_looks
    }

    #[test]
    fn looks_at_the_clock_grow_with_the_logarithm_of_the_work() {
        // The first, the one after half, then one for each quarter that remains. Attempts as above.
        let is_few = |ns: u64, most: u64| (0..20).any(|_| looks(ns) <= most);
        assert!(is_few(1_000_000, 9), "{}", looks(1_000_000));
        assert!(is_few(20_000_000, 11), "{}", looks(20_000_000));
        assert!(is_few(250_000_000, 13), "{}", looks(250_000_000));
        let long = (0..10).map(|_| looks(100_000_000)).min();
        assert!(long >= Some(4), "one look cannot follow a CPU whose speed changes: {long:?}");
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
