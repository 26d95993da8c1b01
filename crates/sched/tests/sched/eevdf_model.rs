// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares EEVDF of 6.12 with an independent model of its rules: a plain list that it scans for
//! everything. Random nice values and slices, random ticks, sleeps, wake-ups and yields on one CPU.
//! After each step both run the same task and agree on every virtual runtime and deadline.

use crate::fair_kernel;

use fair_kernel::{Kernel, Setup};
use proptest::prelude::*;
use schedlab_model::{CpuId, SchedAttr, TaskId};
use schedlab_sched::SchedClass;
use schedlab_sched::fair::rules::Rules;
use schedlab_sched::fair::weights::{LoadWeight, calc_delta_fair, scale_load_down};

const BASE_SLICE: i64 = 2_800_000;
const TICK: i64 = 1_000_000;

#[derive(Clone, Debug)]
struct Entity {
    load: LoadWeight,
    v: i64,
    d: i64,
    slice: i64,
    lag: i64,
    queued: bool,
    delayed: bool,
    /// Order of insertion among the waiting entities.
    turn: u64,
}

impl Entity {
    fn weight(&self) -> i128 {
        i128::from(scale_load_down(self.load.weight))
    }

    fn virtual_time(&self, real: i64) -> i64 {
        calc_delta_fair(real as u64, self.load) as i64
    }
}

#[derive(Debug)]
struct Model {
    now: i64,
    started: i64,
    entities: Vec<Entity>,
    curr: Option<usize>,
    protected_until: i64,
    min_v: i64,
    turn: u64,
    resched: bool,
}

impl Model {
    fn queued(&self) -> impl Iterator<Item = &Entity> {
        self.entities.iter().filter(|e| e.queued)
    }

    fn total_weight(&self) -> i128 {
        self.queued().map(Entity::weight).sum()
    }

    fn average(&self) -> i64 {
        let sum: i128 = self.queued().map(|e| i128::from(e.v) * e.weight()).sum();
        match self.total_weight() {
            0 => self.min_v,
            total => sum.div_euclid(total) as i64,
        }
    }

    fn eligible(&self, at: usize) -> bool {
        let sum: i128 = self.queued().map(|e| i128::from(e.v) * e.weight()).sum();
        sum >= i128::from(self.entities[at].v) * self.total_weight()
    }

    fn is_protected(&self, at: usize) -> bool {
        self.protected_until == self.entities[at].d
    }

    fn raise_min(&mut self) {
        if let Some(least) = self.queued().map(|e| e.v).min() {
            self.min_v = self.min_v.max(least);
        }
    }

    fn advance(&mut self) {
        let Some(curr) = self.curr else { return };
        let ran = self.now - self.started;
        if ran == 0 {
            return;
        }
        self.started = self.now;
        let e = &mut self.entities[curr];
        e.v += e.virtual_time(ran);
        let renewed = e.v >= e.d;
        if renewed {
            e.d = e.v + e.virtual_time(e.slice);
        }
        self.raise_min();
        let crowd = self.queued().count() > 1;
        if crowd && (renewed || !self.is_protected(curr) && !self.eligible(curr)) {
            self.resched = true;
        }
    }

    fn current_lag(&self, at: usize) -> i64 {
        let e = &self.entities[at];
        let limit = e.virtual_time((2 * e.slice).max(TICK));
        (self.average() - e.v).clamp(-limit, limit)
    }

    fn place(&mut self, at: usize) {
        let (average, total) = (self.average(), self.total_weight());
        let e = &mut self.entities[at];
        let mut lag = 0;
        if total > 0 {
            lag = (i128::from(e.lag) * (total + e.weight()) / total) as i64;
        }
        e.v = average - lag;
        e.d = e.v + e.virtual_time(e.slice);
        e.queued = true;
        self.turn += 1;
        self.entities[at].turn = self.turn;
    }

    /// The task to run, without ending delayed dequeues.
    fn best(&self) -> Option<usize> {
        let mut queued = (0..self.entities.len()).filter(|at| self.entities[*at].queued);
        if self.queued().count() == 1 {
            return queued.next();
        }
        let curr = self.curr.filter(|at| self.entities[*at].queued && self.eligible(*at));
        if let Some(curr) = curr
            && self.is_protected(curr)
        {
            return Some(curr);
        }
        let waiting = queued.filter(|at| Some(*at) != self.curr && self.eligible(*at));
        let best = waiting.min_by_key(|at| (self.entities[*at].d, self.entities[*at].turn));
        match (curr, best) {
            (Some(c), Some(b)) if self.entities[c].d < self.entities[b].d => Some(c),
            (c, b) => b.or(c),
        }
    }

    fn preempts(&mut self, woken: usize) {
        let Some(curr) = self.curr else {
            self.resched = true;
            return;
        };
        if self.resched {
            return;
        }
        self.advance();
        let (w, c) = (&self.entities[woken], &self.entities[curr]);
        let urgent = w.slice < c.slice
            && self.eligible(woken)
            && (w.d < c.d || !self.eligible(curr))
            && self.is_protected(curr);
        if urgent {
            self.protected_until = self.entities[curr].d + 1;
        }
        if self.best() == Some(woken) {
            self.resched = true;
        }
    }

    fn wake(&mut self, at: usize) {
        if self.entities[at].delayed {
            let lag = self.current_lag(at);
            if lag > 0 {
                self.entities[at].queued = false;
                self.entities[at].lag = 0;
                self.place(at);
            }
            self.entities[at].delayed = false;
        } else {
            self.advance();
            self.place(at);
        }
        self.preempts(at);
    }

    fn sleep_curr(&mut self) {
        let Some(curr) = self.curr else { return };
        self.advance();
        if self.eligible(curr) {
            self.entities[curr].lag = self.current_lag(curr);
            self.entities[curr].queued = false;
            self.raise_min();
        } else {
            self.entities[curr].delayed = true;
        }
        self.resched = true;
    }

    fn yield_curr(&mut self) {
        let Some(curr) = self.curr else { return };
        if self.queued().count() > 1 {
            self.advance();
            if self.eligible(curr) {
                let e = &mut self.entities[curr];
                e.v = e.d;
                e.d += e.virtual_time(e.slice);
                self.raise_min();
            }
        }
        self.resched = true;
    }

    fn schedule(&mut self) {
        if !std::mem::take(&mut self.resched) {
            return;
        }
        let next = loop {
            if self.curr.is_some_and(|curr| self.entities[curr].queued) {
                self.advance();
            }
            match self.best() {
                Some(at) if self.entities[at].delayed => {
                    let lag = self.current_lag(at);
                    let e = &mut self.entities[at];
                    (e.lag, e.queued, e.delayed) = (lag.min(0), false, false);
                    self.raise_min();
                }
                next => break next,
            }
        };
        self.resched = false;
        if next == self.curr {
            return;
        }
        if let Some(prev) = self.curr {
            self.turn += 1;
            self.entities[prev].turn = self.turn;
        }
        self.curr = next;
        self.started = self.now;
        if let Some(next) = next {
            self.protected_until = self.entities[next].d;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Tick,
    Sleep,
    Wake(usize),
    Yield,
}

fn step() -> impl Strategy<Value = (i64, Step)> {
    let what = prop_oneof![
        4 => Just(Step::Tick),
        2 => Just(Step::Sleep),
        4 => (0usize..6).prop_map(Step::Wake),
        1 => Just(Step::Yield),
    ];
    (prop_oneof![Just(0i64), 1i64..5_000, 1i64..3_000_000], what)
}

fn compare(kernel: &Kernel, model: &Model, what: &str) -> Result<(), TestCaseError> {
    let curr = kernel.core.rqs[0].curr.map(TaskId::index);
    prop_assert_eq!(curr, model.curr, "{}", what);
    let origin = -(1i64 << 20);
    for (index, e) in model.entities.iter().enumerate() {
        let task = TaskId(index as u32);
        prop_assert_eq!(kernel.core.task(task).on_rq, e.queued, "task {} {}", index, what);
        if e.queued {
            let found = (kernel.class.vruntime(task), kernel.class.deadline(task));
            let found = (found.0 as i64 - origin, found.1 as i64 - origin);
            prop_assert_eq!(found, (e.v, e.d), "task {} {}", index, what);
        }
    }
    // The lags of all queued entities sum to 0, except for the rounding of the average.
    let average = kernel.class.root_avg_vruntime(CpuId(0)) as i64 - origin;
    let lags: i128 = model.queued().map(|e| i128::from(average - e.v) * e.weight()).sum();
    prop_assert!(lags <= 0 && -lags < model.total_weight().max(1), "sum of lags {}", lags);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn runs_what_a_scan_of_the_rules_runs(
        tasks in prop::collection::vec((-20i8..=19, prop::option::of(100_000u64..20_000_000)), 6),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut kernel = Setup::new(Rules::LINUX_6_12, 8, 1000).build();
        let mut model = Model {
            now: 0,
            started: 0,
            entities: Vec::new(),
            curr: None,
            protected_until: i64::MIN,
            min_v: 0,
            turn: 0,
            resched: false,
        };
        for (nice, slice_ns) in tasks {
            let attr = SchedAttr { nice, slice_ns, ..SchedAttr::default() };
            kernel.create(attr);
            model.entities.push(Entity {
                load: LoadWeight::of_task(&attr),
                v: 0,
                d: 0,
                slice: slice_ns.map_or(BASE_SLICE, |slice| slice as i64),
                lag: 0,
                queued: false,
                delayed: false,
                turn: 0,
            });
        }
        for (index, (dt, step)) in steps.into_iter().enumerate() {
            model.now += dt;
            kernel.core.now = model.now as u64;
            let curr = kernel.core.rqs[0].curr;
            match (step.clone(), curr) {
                (Step::Tick, Some(curr)) => {
                    model.advance();
                    kernel.class.task_tick(&mut kernel.core, CpuId(0), curr);
                }
                (Step::Sleep, Some(curr)) => {
                    model.sleep_curr();
                    kernel.sleep(curr);
                }
                (Step::Yield, Some(_)) => {
                    model.yield_curr();
                    kernel.class.yield_task(&mut kernel.core, CpuId(0));
                    kernel.core.resched_curr(CpuId(0));
                }
                (Step::Wake(at), _) => {
                    let e = &model.entities[at];
                    if !e.queued || e.delayed {
                        model.wake(at);
                        kernel.wake(TaskId(at as u32));
                    }
                }
                (_, None) => {}
            }
            model.schedule();
            kernel.settle();
            compare(&kernel, &model, &format!("after step {index}, {step:?}"))?;
        }
    }

    /// However long a task ran or slept, its stored lag is within two slices or a tick.
    #[test]
    fn lag_is_bounded(nice in -20i8..=19, hog in -20i8..=19, run in 1u64..100_000_000) {
        let mut kernel = Setup::new(Rules::LINUX_6_12, 8, 1000).build();
        kernel.hog(SchedAttr { nice, ..SchedAttr::default() });
        kernel.hog(SchedAttr { nice: hog, ..SchedAttr::default() });
        kernel.run_until(run);
        let sleeper = kernel.core.rqs[0].curr.unwrap();
        kernel.sleep(sleeper);
        kernel.settle();
        kernel.run_until(run + 20_000_000_000);
        prop_assert!(!kernel.core.task(sleeper).on_rq, "its dequeue is still delayed");
        let load = LoadWeight::of_task(&kernel.core.task(sleeper).attr);
        let limit = calc_delta_fair(2 * BASE_SLICE as u64, load) as i64;
        prop_assert!(kernel.class.vlag(sleeper).abs() <= limit);
    }
}
