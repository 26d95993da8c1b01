// SPDX-License-Identifier: MIT OR Apache-2.0
//! Migrations of a task from one CPU to another.
//!
//! A migration at a wake-up counts. A task may migrate twice between two slices, so this is not the
//! number of slices on another CPU than the last.

use crate::facts::{OfRun, OfTask};
use crate::measure::{Measure, Unit};

/// Of one task.
pub(crate) const OF_TASK: OfTask<Option<u64>> = Measure {
    unit: Unit::Count,
    formula: "moves to another CPU",
    notes: "the first placement does not count; null without a trace",
    source: "Linux kernel/sched/core.c, `set_task_cpu`: `se.nr_migrations` of /proc/PID/sched",
    value: |of| Some(of.account.migrations.0),
};

/// Of all tasks.
pub(crate) const OF_RUN: OfRun<Option<u64>> = Measure {
    unit: Unit::Count,
    formula: "sum over tasks",
    notes: "null without a trace",
    source: OF_TASK.source,
    value: |of| of.tasks.iter().map(|task| task.nr_migrations).sum(),
};

/// Migrations of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Migrations(
    /// Number of migrations.
    pub u64,
);

impl Migrations {
    /// Counts one migration.
    #[inline]
    pub fn count(&mut self) {
        self.0 += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Script, measure};
    use schedlab_model::SwitchOut;

    /// Two moves between two runs are two migrations; a move does not end the wait.
    #[test]
    fn counts_moves_not_runs() {
        let mut s = Script::new(1);
        s.fork(0, 0).migrate(2, 0, 0, 1).migrate(4, 0, 1, 0);
        s.switch(10, None, Some(0), SwitchOut::Idle).end(20);
        let m = measure(2, &s);
        assert_eq!((m.tasks[0].nr_migrations, m.totals.nr_migrations), (Some(2), Some(2)));
        assert_eq!(m.tasks[0].run_delay_ns, 10);
    }
}
