// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which runs stand side by side: each model directly before the policy it models,
//! so that the eye compares neighbours.

use crate::group::{Cell, Group};
use crate::pairs::twins_of;

/// Cells of `group` in drawing order: by CPUs and n, then pairs, then what has no partner.
pub fn panel_order<'g, 'a>(group: &'g Group<'a>) -> Vec<&'g Cell<'a>> {
    let configs = config_order(group);
    let mut cells: Vec<&Cell<'a>> = group.cells.iter().collect();
    let rank = |config: usize| configs.iter().position(|c| *c == config).unwrap_or(usize::MAX);
    cells.sort_by_key(|cell| (cell.cpus, cell.n, rank(cell.config)));
    cells
}

/// Indices of configurations: model and its first policy alternating, then the others.
pub fn config_order(group: &Group<'_>) -> Vec<usize> {
    let twins = twins_of(group);
    let mut order = Vec::with_capacity(group.configs.len());
    for model in 0..group.configs.len() {
        if let Some(policy) = twins.iter().position(|twin| *twin == Some(model)) {
            order.extend([model, policy]);
        }
    }
    order.extend((0..group.configs.len()).filter(|c| !order.contains(c)).collect::<Vec<_>>());
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};

    #[test]
    fn model_and_policy_are_neighbours() {
        let names = [("sim", "linux-6.1"), ("sim", "rr"), ("sim", "fcfs")];
        let mut runs: Vec<_> = names.iter().map(|(l, s)| run(l, s, 1, 1)).collect();
        for policy in ["FIFO", "BATCH", "RR"] {
            runs.push(run("host", policy, 1, 1));
        }
        let results = [experiment("x", runs)];
        let groups = group_all(&results);
        let order: Vec<String> = config_order(&groups[0])
            .into_iter()
            .map(|c| groups[0].configs[c].scheduler.clone())
            .collect();
        assert_eq!(order, ["rr", "RR", "fcfs", "FIFO", "linux-6.1", "BATCH"]);
    }
}
