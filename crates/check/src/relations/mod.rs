// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metamorphic rules: two cases that differ in something that must not matter, and whose runs must
//! agree.
//!
//! A relation makes the first case of any case ([`bases`]), and the second of the first
//! ([`changes`]). So a found pair is stored, and made smaller, as one case. Making the first case
//! of a first case changes nothing.

mod bases;
mod changes;
mod tape;

use crate::case::Case;
use crate::play::{Verdict, play};
use crate::rules::{Breach, Context, Rule, cfs_latency, limited, longest_slice, rule};
use crate::subject::{Family, Subject};
use schedlab_model::{KernelVersion, Nanos, SchedAttr};
use tape::Tape;

/// How far textbook schedulers, which act at the ends of quanta, may be apart.
const TEXTBOOK_NS: Nanos = 500_000_000;

/// What must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compares {
    /// Every decision on this many CPUs.
    Decisions(u32),
    /// The CPU time of every task.
    Shares,
    /// The CPU time of the first task: the second run gives no less.
    Grows,
}

/// A metamorphic rule.
struct Relation {
    /// Name of its row in [`crate::RULES`].
    rule: &'static str,
    /// The second case, in words.
    what: &'static str,
    base: fn(&Case) -> Option<Case>,
    change: fn(&Case) -> Option<Case>,
    holds: fn(&Context<'_>) -> bool,
    compares: Compares,
    /// Whether the second case has the tasks in the reverse order.
    is_reversed: bool,
}

const RELATION: Relation = Relation {
    rule: "",
    what: "",
    base: bases::hogs,
    change: |_| None,
    holds: is_fair,
    compares: Compares::Shares,
    is_reversed: false,
};

static RELATIONS: [Relation; 10] = [
    Relation {
        rule: "same-names",
        what: "with other names of tasks",
        base: |case| Some(case.clone()),
        change: changes::other_names,
        holds: |_| true,
        compares: Compares::Decisions(u32::MAX),
        ..RELATION
    },
    Relation {
        rule: "any-order",
        what: "in the reverse order of tasks",
        change: changes::reversed,
        is_reversed: true,
        ..RELATION
    },
    Relation {
        rule: "same-weight",
        what: "with changes between two policies of the same weight",
        change: changes::same_weight,
        holds: is_kernel,
        ..RELATION
    },
    Relation {
        rule: "scaled-weights",
        what: "with all weights scaled",
        change: changes::scaled_weights,
        holds: is_kernel,
        ..RELATION
    },
    Relation {
        rule: "one-more-group",
        what: "within one more group",
        change: changes::one_more_group,
        holds: is_kernel,
        ..RELATION
    },
    Relation {
        rule: "other-cpu",
        what: "with a busy task on a CPU that nothing shares",
        base: bases::pinned,
        change: changes::busy_cpu,
        holds: |context| context.family != Family::Native,
        compares: Compares::Decisions(1),
        ..RELATION
    },
    Relation {
        rule: "same-values",
        what: "with writes of the same cpu.weight",
        base: bases::writes_elsewhere,
        change: changes::own_group,
        holds: is_kernel,
        compares: Compares::Decisions(u32::MAX),
        ..RELATION
    },
    Relation {
        rule: "same-limit",
        what: "with writes of the same cpu.max",
        base: bases::limits_elsewhere,
        change: changes::own_group,
        holds: is_kernel,
        compares: Compares::Decisions(u32::MAX),
        ..RELATION
    },
    Relation {
        rule: "same-run",
        what: "when it is repeated",
        base: |case| Some(case.clone()),
        change: |case| Some(case.clone()),
        holds: |_| true,
        compares: Compares::Decisions(u32::MAX),
        ..RELATION
    },
    Relation {
        rule: "more-weight",
        what: "with a smaller nice value",
        change: changes::less_nice,
        holds: is_kernel,
        compares: Compares::Grows,
        ..RELATION
    },
];

fn is_kernel(context: &Context<'_>) -> bool {
    matches!(context.family, Family::Kernel(_))
}

/// Whether shares are fixed: by weights under kernels, for tasks without attributes elsewhere.
fn is_fair(context: &Context<'_>) -> bool {
    let is_plain = |attr: &SchedAttr| *attr == SchedAttr::default();
    let claims = context.subject.scheduler.claims.fair;
    let is_textbook = context.family == Family::Textbook && claims;
    is_kernel(context) || (is_textbook && context.attrs().all(is_plain))
}

/// A pair of cases whose runs must agree.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The rule.
    pub rule: &'static Rule,
    /// The first case, and the second, which differs in what must not matter.
    pub cases: [Case; 2],
}

/// The pair of `case` by which `rule` is judged; `None` if the rule is of single runs, or does not
/// hold for the case.
pub fn pair(case: &Case, subject: &Subject, rule: &'static Rule) -> Option<Pair> {
    let relation = RELATIONS.iter().find(|relation| relation.rule == rule.name)?;
    Some(Pair { rule, cases: relation.cases(case, subject)? })
}

/// Plays `case` by every rule of single runs; if it passes, judges one metamorphic rule, which the
/// seed chooses.
pub fn check(case: &Case, subject: &Subject) -> Verdict {
    match play(case, subject) {
        Verdict::Passed => {}
        verdict => return verdict,
    }
    let chosen = (case.seed % RELATIONS.len() as u64) as usize;
    RELATIONS[chosen].judge(case, subject)
}

/// Judges `case` by what shows whether `rule` is broken: its pair, or a single run.
pub fn check_rule(case: &Case, subject: &Subject, rule: &Rule) -> Verdict {
    match RELATIONS.iter().find(|relation| relation.rule == rule.name) {
        Some(relation) => relation.judge(case, subject),
        None => play(case, subject),
    }
}

impl Relation {
    /// The two cases, if the rule holds for `case`.
    fn cases(&self, case: &Case, subject: &Subject) -> Option<[Case; 2]> {
        let base = (self.base)(case)?;
        if !(self.holds)(&Context::new(&base, subject)) {
            return None;
        }
        let changed = (self.change)(&base)?;
        let is_sound = base.check().is_ok() && changed.check().is_ok();
        is_sound.then_some([base, changed])
    }

    fn judge(&self, case: &Case, subject: &Subject) -> Verdict {
        let Some([base, changed]) = self.cases(case, subject) else { return Verdict::Passed };
        let context = Context::new(&base, subject);
        let rule = rule(self.rule).expect("the table has the rule");
        if limited(&context).contains(&rule.name) {
            return Verdict::Passed;
        }
        // A run that fails is judged by other rules.
        let tapes = (Tape::record(&base, subject), Tape::record(&changed, subject));
        let (Some(one), Some(two)) = tapes else { return Verdict::Passed };
        let found = match self.compares {
            Compares::Decisions(nr_cpus) => tape::first_difference(&one, &two, nr_cpus, self.what),
            Compares::Shares => self.share_difference(&context, &one, &two),
            Compares::Grows => self.loss(&context, &one, &two),
        };
        found.map_or(Verdict::Passed, |found| {
            let tape::Found { time_ns, cpu, task, text } = found;
            Verdict::Broken(Breach { rule, kind: "", time_ns, cpu, task, text })
        })
    }

    /// The task whose CPU times differ the most, if that is more than the bound.
    fn share_difference(
        &self,
        context: &Context<'_>,
        one: &Tape,
        two: &Tape,
    ) -> Option<tape::Found> {
        let most = bound(context);
        let last = context.workload().tasks.len() as u32 - 1;
        let pairs = one.times().filter_map(|((spec, ordinal), name, ran)| {
            let same = if self.is_reversed { last - spec } else { spec };
            Some((name, ran, two.time_of((same, ordinal))?))
        });
        let (name, ran, other) = pairs.max_by_key(|(_, ran, other)| ran.abs_diff(*other))?;
        (ran.abs_diff(other) > most).then(|| tape::Found {
            time_ns: one.end_ns,
            cpu: None,
            task: Some(name.to_owned()),
            text: format!(
                "task {name:?} gets {ran} ns of CPU time, and {other} ns {}; the two may differ \
                 by {most} ns",
                self.what
            ),
        })
    }
}

impl Relation {
    /// The instance of the first task that loses the most, if that is more than the bound.
    fn loss(&self, context: &Context<'_>, one: &Tape, two: &Tape) -> Option<tape::Found> {
        let most = bound(context);
        let of_first = one.times().filter(|((spec, _), ..)| *spec == 0);
        let pairs = of_first.filter_map(|(key, name, ran)| Some((name, ran, two.time_of(key)?)));
        let (name, ran, other) = pairs.max_by_key(|(_, ran, other)| ran.saturating_sub(*other))?;
        (ran.saturating_sub(other) > most).then(|| tape::Found {
            time_ns: one.end_ns,
            cpu: None,
            task: Some(name.to_owned()),
            text: format!(
                "task {name:?} gets {ran} ns of CPU time, and only {other} ns {}; it may lose \
                 {most} ns",
                self.what
            ),
        })
    }
}

/// How far the CPU times of a task may be apart: the bound of EEVDF for each of the two runs, at
/// every level of groups.
fn bound(context: &Context<'_>) -> Nanos {
    let Family::Kernel(version) = context.family else { return TEXTBOOK_NS };
    let is_cfs = version < KernelVersion::release(6, 6, 0);
    let latency_ns = if is_cfs { cfs_latency(context) } else { 0 };
    let slice_ns = longest_slice(context) + context.tick_ns + context.lazy_ns();
    let groups = &context.workload().cgroups;
    let depth = |mut group: usize| {
        let mut depth = 1;
        while group != 0 {
            group = groups[group].parent.index();
            depth += 1;
        }
        depth
    };
    let levels = (0..groups.len()).map(depth).max().unwrap_or(1);
    levels * (4 * slice_ns + latency_ns)
}
