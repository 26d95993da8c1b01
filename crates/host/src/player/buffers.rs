// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that a task accesses: for Mem and MemRun, its messages and its working set.
//!
//! It is allocated and written before the release (of a forked task: before its program begins), so
//! that no operation waits for a page. A chase follows a chain in a separate buffer.

use schedlab_model::program::{MemAccess, MemPattern};
use schedlab_model::{Amount, Op, TaskSpec};
use std::hint::black_box;

/// Most memory of one task, bytes.
pub const TASK_BYTES_MAX: u64 = 1 << 30;
/// Most bytes of a message that one system call moves.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;
/// Largest buffer of an amount without an upper bound, as a multiple of its mean. Larger amounts
/// reuse the buffer.
const MEANS_MAX: u64 = 8;
/// Bytes of a cache line.
const LINE: usize = 64;
const WORD: usize = size_of::<u64>();

/// Memory that a description needs, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferNeeds {
    data: u64,
    chains: u64,
    message: u64,
    working_set: u64,
}

/// Greatest value that determines the size of a buffer.
pub fn largest(amount: &Amount) -> u64 {
    match *amount {
        Amount::Constant(value) => value,
        Amount::Uniform { high, .. } => high,
        Amount::Exponential { mean } => mean.saturating_mul(MEANS_MAX),
    }
}

impl BufferNeeds {
    /// The needs of one task.
    pub fn of(task: &TaskSpec) -> Self {
        let mut needs = Self { working_set: task.working_set_bytes, ..Self::default() };
        let mut chains = Vec::new();
        for op in &task.program.ops {
            match op {
                Op::Mem { bytes } => needs.data = needs.data.max(largest(bytes)),
                Op::MemRun { access: MemAccess::Chase, .. } => {
                    let key = ChainKey::of(op);
                    if !chains.contains(&key) {
                        needs.chains = needs.chains.saturating_add(key.map_or(0, |key| key.size));
                        chains.push(key);
                    }
                }
                Op::MemRun { size_bytes, .. } => needs.data = needs.data.max(*size_bytes),
                Op::Send { bytes, .. } | Op::Receive { bytes, .. } => {
                    let len = largest(bytes).clamp(1, MESSAGE_BYTES_MAX);
                    needs.message = needs.message.max(len);
                }
                _ => {}
            }
        }
        needs
    }

    /// The sum of all.
    pub fn total(&self) -> u64 {
        let parts = [self.data, self.chains, self.message, self.working_set];
        parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part))
    }
}

/// Identifies a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ChainKey {
    size: u64,
    stride: u64,
    is_random: bool,
}

impl ChainKey {
    fn of(op: &Op) -> Option<Self> {
        match op {
            Op::MemRun { access: MemAccess::Chase, pattern, size_bytes, stride_bytes, .. } => {
                Some(Self::new(*pattern, *size_bytes, *stride_bytes))
            }
            _ => None,
        }
    }

    fn new(pattern: MemPattern, size: u64, stride: u64) -> Self {
        let stride = stride.max(WORD as u64) / WORD as u64 * WORD as u64;
        Self { size: size.max(stride), stride, is_random: pattern == MemPattern::Random }
    }
}

/// A ring of words, each with the index of the next.
struct Chain {
    key: ChainKey,
    words: Vec<u64>,
    at: u64,
}

impl Chain {
    fn new(key: ChainKey) -> Self {
        let stride = key.stride / WORD as u64;
        let count = (key.size / key.stride).max(1);
        let mut order: Vec<u64> = (0..count).collect();
        if key.is_random {
            // Sattolo's shuffle: one cycle through all.
            let mut random = Random(0x5eed);
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last as u64) as usize);
            }
        } else {
            order.rotate_left(1);
        }
        let mut words = vec![0; (count * stride) as usize];
        for (from, to) in order.iter().enumerate() {
            words[from * stride as usize] = to * stride;
        }
        Self { key, words, at: 0 }
    }

    fn follow(&mut self, count: u64) {
        let mut at = self.at;
        for _ in 0..count {
            at = self.words[at as usize];
        }
        self.at = black_box(at);
    }
}

/// xorshift64*: fast compared with a memory access.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(drawn) * u128::from(bound)) >> 64) as u64
    }
}

/// The buffers of one task.
pub struct Buffers {
    data: Vec<u8>,
    chains: Vec<Chain>,
    /// Buffer for messages.
    pub message: Vec<u8>,
    working_set: Vec<u64>,
    random: Random,
}

impl Buffers {
    /// Allocates what `task` needs and writes to all of it.
    pub fn new(task: &TaskSpec) -> Self {
        let needs = BufferNeeds::of(task);
        let mut chains: Vec<Chain> = Vec::new();
        for key in task.program.ops.iter().filter_map(ChainKey::of) {
            if chains.iter().all(|chain| chain.key != key) {
                chains.push(Chain::new(key));
            }
        }
        Self {
            data: vec![1; needs.data as usize],
            chains,
            message: vec![1; needs.message as usize],
            working_set: vec![1; needs.working_set.div_ceil(WORD as u64) as usize],
            random: Random(0x9e37_79b9),
        }
    }

    /// Writes `bytes` bytes in order.
    pub fn write(&mut self, bytes: u64) {
        let mut left = bytes;
        while left > 0 && !self.data.is_empty() {
            let len = left.min(self.data.len() as u64);
            let part = &mut self.data[..len as usize];
            part.fill(black_box(left as u8));
            black_box(part);
            left -= len;
        }
    }

    /// Makes `count` accesses to the first `size` bytes.
    pub fn touch(
        &mut self,
        access: MemAccess,
        pattern: MemPattern,
        size: u64,
        stride: u64,
        count: u64,
    ) {
        if access == MemAccess::Chase {
            let key = ChainKey::new(pattern, size, stride);
            if let Some(chain) = self.chains.iter_mut().find(|chain| chain.key == key) {
                chain.follow(count);
            }
            return;
        }
        let size = size.min(self.data.len() as u64);
        if size == 0 {
            return;
        }
        let slots = (size / stride.max(1)).max(1);
        let data = &mut self.data[..size as usize];
        let random = &mut self.random;
        let mut next = places(pattern, slots, stride, size, random);
        if access == MemAccess::Write {
            for _ in 0..count {
                data[next()] = count as u8;
            }
            black_box(data);
        } else {
            let sum = (0..count).fold(0u64, |sum, _| sum.wrapping_add(u64::from(data[next()])));
            black_box(sum);
        }
    }

    /// Whether there is a working set.
    pub fn has_working_set(&self) -> bool {
        !self.working_set.is_empty()
    }

    /// Reads every line of the working set.
    pub fn touch_working_set(&self) {
        let lines = self.working_set.iter().step_by(LINE / WORD);
        black_box(lines.fold(0u64, |sum, word| sum.wrapping_add(*word)));
    }
}

/// The places of the accesses, in order.
fn places(
    pattern: MemPattern,
    slots: u64,
    stride: u64,
    size: u64,
    random: &mut Random,
) -> impl FnMut() -> usize {
    let mut at = 0u64;
    move || match pattern {
        MemPattern::Random => (random.below(slots) * stride % size) as usize,
        MemPattern::Sequential => {
            let now = at;
            at += stride;
            if at >= size {
                at %= size;
            }
            now as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::program::ProgramBuilder;

    fn task(ops: &[Op]) -> TaskSpec {
        let mut builder = ProgramBuilder::new();
        ops.iter().for_each(|op| {
            builder.op(op.clone());
        });
        TaskSpec::new("t", builder.build())
    }

    fn run(access: MemAccess, pattern: MemPattern, size_bytes: u64, stride_bytes: u64) -> Op {
        Op::MemRun { access, pattern, size_bytes, stride_bytes, count: Amount::Constant(1) }
    }

    #[test]
    fn a_chain_visits_every_place_once_a_round() {
        for pattern in [MemPattern::Sequential, MemPattern::Random] {
            let mut chain = Chain::new(ChainKey::new(pattern, 64 * 100 + 7, 64));
            let mut seen: Vec<u64> = (0..100)
                .map(|_| {
                    chain.follow(1);
                    chain.at
                })
                .collect();
            assert_eq!(chain.at, 0, "the ring closes after 100");
            seen.sort_unstable();
            assert_eq!(seen, (0..100).map(|place| place * 8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn needs_are_the_largest_buffer_and_each_chain_once() {
        let chase = run(MemAccess::Chase, MemPattern::Random, 4096, 64);
        let mut spec = task(&[
            Op::Mem { bytes: Amount::Exponential { mean: 100 } },
            run(MemAccess::Read, MemPattern::Sequential, 1 << 20, 8),
            chase.clone(),
            chase,
        ]);
        spec.working_set_bytes = 1000;
        assert_eq!(BufferNeeds::of(&spec).total(), (1 << 20) + 4096 + 1000);
    }

    #[test]
    fn every_access_stays_inside() {
        use {MemAccess::*, MemPattern::*};
        let ops = [(Read, Sequential), (Write, Random), (Chase, Random), (Chase, Sequential)];
        for (size, stride) in [(1, 1), (7, 64), (4096, 64), (100, 8), (65, 64)] {
            let all: Vec<Op> =
                ops.iter().map(|(access, pattern)| run(*access, *pattern, size, stride)).collect();
            let mut buffers = Buffers::new(&task(&all));
            for (access, pattern) in ops {
                buffers.touch(access, pattern, size, stride, 1000);
            }
        }
        let mut buffers = Buffers::new(&task(&[Op::Mem { bytes: Amount::Constant(10) }]));
        buffers.write(25);
        assert!(!buffers.has_working_set());
    }
}
