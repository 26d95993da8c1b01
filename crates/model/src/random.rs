// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seeded random numbers of a run: one stream for each pair of task and purpose, integers only.
//!
//! Generator: xoshiro256++ (Blackman and Vigna, 2019, public domain), seeded through SplitMix64
//! (Steele, Lea and Flood, 2014). These 30 lines are part of this crate, because the exact
//! repetition of a run must not depend on the releases of another crate.

/// What a stream is used for. A new purpose or task does not change the other streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Amounts drawn by a task's program.
    Program = 1,
    /// Release times of tasks.
    Arrival = 2,
    /// Random choices of a scheduler (lottery, random transitions).
    Scheduler = 3,
    /// Order of the runs of an experiment.
    Experiment = 4,
    /// Times of interrupts; one stream for each CPU and source.
    Interrupt = 5,
    /// How much longer switches take.
    Switch = 6,
}

/// A random stream.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of `entity` (a task or CPU number) for `purpose` in the run with `seed`.
    pub fn new(seed: u64, purpose: Purpose, entity: u64) -> Self {
        let mut mix = seed;
        let mut key = splitmix64(&mut mix) ^ (purpose as u64).rotate_left(48);
        let mut key2 = splitmix64(&mut key) ^ entity;
        let state = std::array::from_fn(|_| splitmix64(&mut key2));
        Self { state }
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform value of `0 .. bound` (bound > 0) without bias (Lemire's method).
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "below(0) has no value to return");
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Returns a uniform value of `low ..= high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "between({low}, {high}) is empty");
        match (high - low).checked_add(1) {
            Some(width) => low + self.below(width),
            None => self.next_u64(),
        }
    }

    /// Returns an exponentially distributed value with this mean, by inversion: mean * -ln(u), in
    /// 32-bit fixed point.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // u in (0, 1] as a 64-bit fraction; the draw 0 stands for 2^-64.
        let u = self.next_u64().max(1);
        let neg_ln_q32 = neg_ln_q32(u);
        ((u128::from(mean) * u128::from(neg_ln_q32)) >> 32) as u64
    }
}

/// -ln(u / 2^64) in Q32 fixed point, for u >= 1; error below 2^-30.
fn neg_ln_q32(u: u64) -> u64 {
    // log2(u) = integer part + fraction; the fraction by repeated squaring, one bit a step.
    let integer = 63 - u.leading_zeros() as u64;
    let mut mantissa = (u128::from(u) << 64) >> integer; // in [2^64, 2^65)
    let mut fraction: u64 = 0;
    for bit in (0..32).rev() {
        mantissa = mantissa_square(mantissa);
        if mantissa >> 65 != 0 {
            fraction |= 1 << bit;
            mantissa >>= 1;
        }
    }
    let log2_q32 = (integer << 32) + fraction;
    let neg_log2_q32 = (64u64 << 32) - log2_q32;
    // ln 2 in Q32.
    const LN2_Q32: u128 = 2_977_044_472;
    ((u128::from(neg_log2_q32) * LN2_Q32) >> 32) as u64
}

/// Square of a Q64 number in [1, 2), result in [1, 4) in Q64.
fn mantissa_square(m: u128) -> u128 {
    // Drop 2 bits so that the product fits in 128 bits.
    let half = m >> 2;
    (half * half) >> 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_purpose_and_entity_and_repeat() {
        let draw = |seed, purpose, entity| Stream::new(seed, purpose, entity).next_u64();
        let base = draw(1, Purpose::Program, 0);
        assert_eq!(base, draw(1, Purpose::Program, 0));
        assert_ne!(base, draw(0, Purpose::Program, 0));
        assert_ne!(base, draw(1, Purpose::Arrival, 0));
        assert_ne!(base, draw(1, Purpose::Program, 1));
    }

    #[test]
    fn logarithm_matches_known_values() {
        // -ln(1/2) = ln 2
        let half = neg_ln_q32(1 << 63);
        assert!(half.abs_diff(2_977_044_472) <= 2, "{half}");
        // -ln(2^-64) = 64 ln 2
        assert!(neg_ln_q32(1).abs_diff(64 * 2_977_044_472) <= 64);
        // -ln(0.75) = 0.28768207...
        let three_quarters = neg_ln_q32(3 << 62);
        assert!(three_quarters.abs_diff(1_235_585_088) <= 16, "{three_quarters}");
    }

    #[test]
    fn exponential_has_its_mean_and_tail() {
        let mut stream = Stream::new(7, Purpose::Program, 3);
        let draws: Vec<u64> = (0..200_000).map(|_| stream.exponential(1_000_000)).collect();
        let mean = draws.iter().sum::<u64>() / draws.len() as u64;
        assert!(mean.abs_diff(1_000_000) < 10_000, "{mean}");
        // P(X > mean) = 1/e = 0.3679
        let above = draws.iter().filter(|&&x| x > 1_000_000).count();
        assert!(above.abs_diff(73_576) < 800, "{above}");
    }
}
