// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of numbers: constant, round and short amounts.

use crate::case::Case;
use crate::rules::Breach;
use crate::tree::{self, Node};
use schedlab_model::time::{NSEC_PER_MSEC as MS, NSEC_PER_USEC as US};
use schedlab_model::{Amount, LoopCount, Op};

/// Amounts to try before others.
const ROUND: [u64; 4] = [MS, 100 * US, 10 * MS, 10 * US];

/// Shorter times make no case simpler.
const LEAST: u64 = US;

/// How hard a number is to read: its digits without the zeros at its end, then its size.
fn burden(value: u64) -> (u32, u64) {
    let mut rest = value;
    while rest != 0 && rest.is_multiple_of(10) {
        rest /= 10;
    }
    (rest.checked_ilog10().unwrap_or(0), value)
}

fn is_simpler(new: u32, old: u32) -> bool {
    burden(u64::from(new)) < burden(u64::from(old))
}

/// Simpler numbers than `value`, the simplest first.
fn simpler(value: u64) -> Vec<u64> {
    let power = 10u64.pow(value.checked_ilog10().unwrap_or(0));
    let rounded = [power, value / power * power, (value / power + 1) * power];
    let finer = [value / (power / 10).max(1) * (power / 10).max(1), value / 2];
    let all = ROUND.into_iter().chain(rounded).chain(finer);
    all.filter(|new| *new >= LEAST && burden(*new) < burden(value)).collect()
}

/// Each change of one amount of one program by one of the values that `f` gives.
fn each_amount(case: &Case, f: &dyn Fn(Amount) -> Vec<Amount>) -> Vec<Case> {
    let mut changes = Vec::new();
    for (number, task) in case.workload.tasks.iter().enumerate() {
        for index in 0..task.program.ops.len() {
            let mut op = task.program.ops[index].clone();
            for new in time_of(&mut op).map_or(Vec::new(), |amount| f(*amount)) {
                let mut changed = case.clone();
                let op = &mut changed.workload.tasks[number].program.ops[index];
                if let Some(amount) = time_of(op) {
                    *amount = new;
                }
                changes.push(changed);
            }
        }
        for new in f(task.release_ns) {
            let mut changed = case.clone();
            changed.workload.tasks[number].release_ns = new;
            changes.push(changed);
        }
        for new in task.interarrival_ns.map_or(Vec::new(), f) {
            let mut changed = case.clone();
            changed.workload.tasks[number].interarrival_ns = Some(new);
            changes.push(changed);
        }
    }
    changes
}

/// The time that an operation draws. Sizes of messages stay: both ends must agree on them.
fn time_of(op: &mut Op) -> Option<&mut Amount> {
    match op {
        Op::Run(amount) | Op::RunWall(amount) | Op::Sleep(amount) => Some(amount),
        Op::Timer { period, .. } => Some(period),
        _ => None,
    }
}

/// Constants instead of distributions.
pub(super) fn constant_amounts(case: &Case, _: &Breach) -> Vec<Case> {
    each_amount(case, &|amount| match amount {
        Amount::Constant(_) => Vec::new(),
        Amount::Exponential { mean } => vec![Amount::Constant(mean)],
        Amount::Uniform { low, high } => {
            vec![Amount::Constant(low.midpoint(high)), Amount::Constant(high)]
        }
    })
}

/// Round and short amounts.
pub(super) fn rounder_amounts(case: &Case, _: &Breach) -> Vec<Case> {
    each_amount(case, &|amount| match amount {
        Amount::Constant(value) => simpler(value).into_iter().map(Amount::Constant).collect(),
        _ => Vec::new(),
    })
}

/// Endless loops instead of counted ones, round weights and quotas.
pub(super) fn rounder_numbers(case: &Case, _: &Breach) -> Vec<Case> {
    let mut changes = endless_loops(case);
    for (index, group) in case.workload.cgroups.iter().enumerate().skip(1) {
        for weight in
            [100, 1_000, 10, 10_000].into_iter().filter(|new| is_simpler(*new, group.weight))
        {
            let mut changed = case.clone();
            changed.workload.cgroups[index].weight = weight;
            changes.push(changed);
        }
        if let Some(limit) = group.cpu_max.filter(|limit| limit.burst_ns > 0) {
            let mut changed = case.clone();
            let plain = schedlab_model::CpuMax { burst_ns: 0, ..limit };
            changed.workload.cgroups[index].cpu_max = Some(plain);
            changes.push(changed);
        }
    }
    changes
}

fn endless_loops(case: &Case) -> Vec<Case> {
    let mut changes = Vec::new();
    for (number, task) in case.workload.tasks.iter().enumerate() {
        let nodes = tree::nodes(&task.program);
        let [Node::Loop(LoopCount::Times(_), body)] = &nodes[..] else { continue };
        let mut changed = case.clone();
        let endless = [Node::Loop(LoopCount::Forever, body.clone())];
        changed.workload.tasks[number].program = tree::program(&endless);
        changes.push(changed);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simpler_numbers_are_simpler_and_end() {
        assert!(simpler(MS).iter().all(|new| *new < MS));
        let mut value = 1_234_567;
        let mut steps = 0;
        while let Some(next) = simpler(value).last() {
            assert!(burden(*next) < burden(value), "{next} is no simpler than {value}");
            value = *next;
            steps += 1;
        }
        assert!(steps < 40, "{steps}");
        assert_eq!(simpler(4_700_000).first(), Some(&MS));
    }
}
