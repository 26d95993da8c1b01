// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of scheduling policies, and what the kernel allows with each.

use schedlab_model::{Nanos, Policy};

/// Every policy that a workload may name.
pub const POLICIES: [Policy; 7] = [
    Policy::Normal,
    Policy::Batch,
    Policy::Idle,
    Policy::Fifo,
    Policy::Rr,
    Policy::Deadline,
    Policy::Ext,
];

/// Real-time priority of a task that names FIFO or RR but no priority: rt-app's default.
pub const RT_PRIORITY_DEFAULT: u8 = 10;

/// Least and greatest custom slice (ns). The kernel limits other values to this range (Linux 6.12
/// kernel/sched/syscalls.c, `__setparam_fair`).
pub const SLICE_NS_RANGE: std::ops::RangeInclusive<Nanos> = 100_000..=100_000_000;

/// Least budget of SCHED_DEADLINE, 2^10 ns (Linux kernel/sched/deadline.c, `__checkparam_dl`).
pub const DL_RUNTIME_NS_MIN: Nanos = 1 << 10;

/// Finds the policy called `name`: `OTHER`, `SCHED_OTHER` or the kernel's `NORMAL`, in any case.
pub fn parse_policy(name: &str) -> Option<Policy> {
    let upper = name.to_ascii_uppercase();
    let bare = upper.strip_prefix("SCHED_").unwrap_or(&upper);
    match bare {
        "NORMAL" => Some(Policy::Normal),
        _ => POLICIES.into_iter().find(|policy| policy.name() == bare),
    }
}

/// Whether tasks of the policy have a nice value: the fair policies, and EXT, whose BPF scheduler
/// receives the weight.
pub const fn has_nice(policy: Policy) -> bool {
    policy.is_fair() || matches!(policy, Policy::Ext)
}

/// Whether the kernel accepts a custom slice with the policy (`fair_policy`, kernel/sched/sched.h:
/// NORMAL and BATCH).
pub const fn has_slice(policy: Policy) -> bool {
    matches!(policy, Policy::Normal | Policy::Batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_names() {
        for policy in POLICIES {
            assert_eq!(parse_policy(policy.name()), Some(policy));
            assert_eq!(parse_policy(&format!("sched_{}", policy.name())), Some(policy));
        }
        assert_eq!(parse_policy("SCHED_NORMAL"), Some(Policy::Normal));
        assert_eq!(parse_policy("SCHED_FAST"), None);
    }
}
