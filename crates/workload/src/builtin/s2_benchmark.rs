// SPDX-License-Identifier: MIT OR Apache-2.0
//! Study S2: many copies of one command under OTHER, FIFO and RR.
//!
//! Source: `prime`, `rw` and `schedule` of Shannon and Eller, "An Analysis of Linux Schedulers"
//! (2015), and of the course's handout (Andy Sayler, 2012). `schedule` sets the policy, with the
//! greatest priority, on itself, forks n copies one after another and waits for all. Left out: exec
//! and the seek of `rw` back to the start of its input.

use super::args::{Args, BuiltinError};
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::{Amount, LoopCount, Nanos, Op, Program, SchedAttr, TaskSpec, Workload};

/// Primes that `prime` writes at once: 512 bytes of 32-bit numbers.
const PRIMES_PER_WRITE: usize = 128;
/// Size of a prime in the file.
const PRIME_BYTES: u64 = 4;

/// `schedule -n N COMMAND`.
fn schedule(args: &Args, command: &str, program: Program) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let parent = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(args.number("n")))
        .op(Op::Fork { task: 1 })
        .end_loop()
        .op(Op::JoinAll)
        .build();
    let parent = TaskSpec { attr, ..TaskSpec::new("schedule", parent) };
    let copy = TaskSpec { attr, instances: 0, ..TaskSpec::new(command, program) };
    Ok(Workload::new(command, vec![parent, copy]))
}

/// `prime 10000`: CPU work only.
pub(super) fn prime(args: &Args) -> Result<Workload, BuiltinError> {
    schedule(args, "prime", ProgramBuilder::new().run(args.number("work")).build())
}

/// `rw`: reads a block from a file that is in the page cache and writes it with O_SYNC.
pub(super) fn rw(args: &Args) -> Result<Workload, BuiltinError> {
    let (transfer, block) = (args.number("transfer"), args.number("block"));
    if block > transfer || !transfer.is_multiple_of(block) {
        return Err(
            args.conflict(format!("transfer ({transfer}) must be a multiple of block ({block})"))
        );
    }
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(transfer / block))
        .op(io(IoDirection::Read, block, false))
        .op(io(IoDirection::Write, block, true))
        .end_loop()
        .build();
    schedule(args, "rw", program)
}

/// `prime N FILE`: the work of `prime`, with a synchronous write of 512 bytes after every 128
/// primes. The work between two writes grows as in the original program: see [`trial_divisions`].
pub(super) fn mixed(args: &Args) -> Result<Workload, BuiltinError> {
    let divisions = trial_divisions(args.number("primes") as usize);
    let total: u64 = divisions.iter().sum();
    let work_ns = args.number("work");
    let mut builder = ProgramBuilder::new();
    let (mut done, mut spent_ns): (u64, Nanos) = (0, 0);
    for batch in divisions.chunks(PRIMES_PER_WRITE) {
        done += batch.iter().sum::<u64>();
        // Rounded on the sum, so that all parts together are exactly `work`.
        let until_ns = (u128::from(work_ns) * u128::from(done) / u128::from(total)) as Nanos;
        builder.run(until_ns - spent_ns);
        builder.op(io(IoDirection::Write, batch.len() as u64 * PRIME_BYTES, true));
        spent_ns = until_ns;
    }
    schedule(args, "mixed", builder.build())
}

fn io(direction: IoDirection, bytes: u64, sync: bool) -> Op {
    Op::Io { direction, bytes: Amount::Constant(bytes), sync }
}

/// For each of the first `count` primes: the modulo operations that `prime` does from the previous
/// prime to this one. The program divides each number by all primes found so far, and does not stop
/// at the square root. So a prime costs as many operations as there are smaller primes. Another
/// number costs the rank of its least prime factor.
fn trial_divisions(count: usize) -> Vec<u64> {
    // The n-th prime is below n (ln n + ln ln n) for n >= 6 (Rosser, 1939); 20 n covers n to 10^7.
    let limit = (count * 20).max(20);
    let mut least_factor_rank: Vec<u32> = vec![0; limit];
    let mut divisions = Vec::with_capacity(count);
    let mut since_last = 0;
    for number in 2..limit {
        if divisions.len() == count {
            break;
        }
        let rank = least_factor_rank[number];
        if rank != 0 {
            since_last += u64::from(rank);
            continue;
        }
        let primes_below = divisions.len() as u64;
        divisions.push(since_last + primes_below);
        since_last = 0;
        // The square of 65,536 is too large for 32 bits, and past every limit there.
        for multiple in (number.saturating_mul(number)..limit).step_by(number) {
            if least_factor_rank[multiple] == 0 {
                least_factor_rank[multiple] = primes_below as u32 + 1;
            }
        }
    }
    divisions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::builtin;

    #[test]
    fn prime_10000_does_the_operations_that_were_counted() {
        // The study's program, instrumented, does 50,328,485 modulo operations.
        let divisions = trial_divisions(10_000);
        assert_eq!(divisions.len(), 10_000);
        assert_eq!(divisions.iter().sum::<u64>(), 50_328_485);
        // 2: none; 3: 3 mod 2; 5: 4 mod 2, 5 mod 2, 5 mod 3.
        assert_eq!(divisions[..3], [0, 1, 3]);
    }

    #[test]
    fn mixed_writes_what_the_study_says_and_does_all_the_work() {
        let workload = builtin("mixed", &[("work", "100ms")]).unwrap();
        let ops = &workload.tasks[1].program.ops;
        let bytes: Vec<u64> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Io { bytes: Amount::Constant(bytes), sync: true, .. } => Some(*bytes),
                _ => None,
            })
            .collect();
        assert_eq!(bytes.len(), 79);
        assert!(bytes[..78].iter().all(|&b| b == 512) && bytes[78] == 64);
        let runs: Vec<u64> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Run(Amount::Constant(ns)) => Some(*ns),
                _ => None,
            })
            .collect();
        assert_eq!(runs.iter().sum::<u64>(), 100_000_000);
        // Later primes cost more.
        assert!(runs[70] > 10 * runs[3], "{runs:?}");
    }

    #[test]
    fn rw_is_a_hundred_reads_and_a_hundred_synchronous_writes_of_a_kibibyte() {
        let workload = builtin("rw", &[]).unwrap();
        let ops = &workload.tasks[1].program.ops;
        assert_eq!(ops[0], Op::LoopBegin { count: LoopCount::Times(100), end: 3 });
        assert_eq!(ops[1], io(IoDirection::Read, 1024, false));
        assert_eq!(ops[2], io(IoDirection::Write, 1024, true));
    }
}
