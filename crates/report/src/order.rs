// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of runs in a figure: each model directly before the policy that it models, so that a
//! reader compares neighbours.

use crate::group::{Cell, Group};
use crate::pairs::twins_of;

/// Maximum number of runs in one figure. More panels are unreadable and do not open on a phone.
pub const PANELS_MAX: usize = 24;

/// Cuts `panels` to [`PANELS_MAX`] and adds a notice.
pub fn limit_panels<T>(panels: &mut Vec<T>, notices: &mut Vec<String>) {
    if panels.len() > PANELS_MAX {
        notices.push(format!(
            "The first {PANELS_MAX} of {} runs are drawn; the others are in the tables only.",
            panels.len()
        ));
        panels.truncate(PANELS_MAX);
    }
}

/// Cells of `group` in drawing order: by CPUs and n; pairs before cells without a partner.
pub fn panel_order<'g, 'a>(group: &'g Group<'a>) -> Vec<&'g Cell<'a>> {
    let configs = config_order(group);
    let mut cells: Vec<&Cell<'a>> = group.cells.iter().collect();
    let rank = |config: usize| configs.iter().position(|c| *c == config).unwrap_or(usize::MAX);
    cells.sort_by_key(|cell| (cell.cpus, cell.n, rank(cell.config)));
    cells
}

/// Indices of configurations: each model and its first policy in turn, then the others.
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
    use schedlab_run::LaneKind::{Host, Sim};

    #[test]
    fn panels_beyond_the_limit_are_dropped_with_a_notice() {
        let (mut panels, mut notices) = (vec![0; PANELS_MAX], Vec::new());
        limit_panels(&mut panels, &mut notices);
        assert!(notices.is_empty());
        panels.push(0);
        limit_panels(&mut panels, &mut notices);
        assert_eq!(panels.len(), PANELS_MAX);
        assert!(notices[0].contains("first 24 of 25 runs"));
    }

    #[test]
    fn model_and_policy_are_neighbours() {
        let names = ["linux-6.1", "rr", "fcfs"];
        let mut runs: Vec<_> = names.iter().map(|name| run(Sim, name, 1, 1)).collect();
        for policy in ["FIFO", "BATCH", "RR"] {
            runs.push(run(Host, policy, 1, 1));
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
