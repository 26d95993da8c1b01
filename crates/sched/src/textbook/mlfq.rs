// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multilevel feedback queue: a task that uses up its quantum falls to the next queue.
//!
//! Sources: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling
//! (queues of quantum 8, 16 and FCFS); Arpaci-Dusseau, "Operating Systems: Three Easy Pieces",
//! chapter 8 (boost; accounting by allotment).
//!
//! Rules: a better queue preempts; a preempted task returns to the head of its queue with the rest
//! of its quantum. A task that uses a whole quantum moves to the tail of the next queue (in the
//! last queue to its own tail). A task that blocks or yields before that stays in its queue. With
//! `accounting turn` it gets a whole quantum next time. With `accounting allotment` it continues
//! with the rest, and moves down when its slices in the queue add up to the quantum. `allotment`
//! lets it use several quanta before it moves down, each followed by a return to the tail. A burst
//! that ends exactly with the quantum ends the task's turn like any other block. At each multiple
//! of the boost interval every task, running and sleeping ones included, moves to queue 0. Waiting
//! tasks move in their order, from the best queue to the worst. A running task from a lower queue
//! starts a quantum of queue 0 on its CPU.
//!
//! A boost costs O(CPUs), not O(tasks). An entry records the number of boosts before it (its
//! epoch), and entries of earlier epochs sort before all later ones. That is the order above.
//!
//! Three of these rules are choices that the textbooks leave open. With `conventions ostep` they
//! are those of mlfq.py, the simulator that goes with "Three Easy Pieces" (ostep-homework,
//! cpu-sched-mlfq): a task whose quantum ends is queued before tasks that arrive at that time; a
//! quantum that ends with the burst is used up; and a boost moves the tasks of queue 0 first, then
//! those of the worst queue up to the second-best, running ones at their place among them, each
//! with a whole quantum. Such a boost costs O(tasks).
//!
//! With `wake-to head` (option -I of mlfq.py) a task that wakes goes to the head of its queue and
//! preempts a task of the same queue. The preempted task keeps the place that it had when its turn
//! began: before the tasks that waited then, behind those that have woken since. Of several CPUs
//! the one whose turn began first is preempted. A task that arrives for the first time goes to the
//! tail.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::{Ordered, Pool};
use crate::textbook::rr::{QUANTUM_MAX, QUANTUM_MIN};
use crate::textbook::rules::{Discipline, Ring, Sequence, TurnEnd};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::{Costs, Nanos, Preempt, TaskId};

/// Maximum number of queues.
const QUEUES_MAX: usize = 8;
const QUANTUM_NAMES: [&str; QUEUES_MAX] = [
    "quantum-0",
    "quantum-1",
    "quantum-2",
    "quantum-3",
    "quantum-4",
    "quantum-5",
    "quantum-6",
    "quantum-7",
];

const fn quantum(queue: usize) -> Tunable {
    Tunable::new(
        QUANTUM_NAMES[queue],
        TunableKind::Time { min: 0, max: QUANTUM_MAX },
        0,
        "quantum of this queue; 0: twice that of the queue above",
    )
}

const TUNABLES: &[Tunable] = &[
    Tunable::new(
        "queues",
        TunableKind::Count { min: 1, max: QUEUES_MAX as u64 },
        3,
        "number of queues",
    ),
    Tunable::new(
        QUANTUM_NAMES[0],
        TunableKind::Time { min: QUANTUM_MIN, max: QUANTUM_MAX },
        8 * NSEC_PER_MSEC,
        "quantum of queue 0",
    ),
    quantum(1),
    quantum(2),
    quantum(3),
    quantum(4),
    quantum(5),
    quantum(6),
    quantum(7),
    Tunable::new(
        "last-queue",
        TunableKind::words(&["rr", "fcfs"]),
        0,
        "the last queue is round robin, or first come, first served",
    ),
    Tunable::new(
        "boost",
        TunableKind::Time { min: 0, max: 3_600 * NSEC_PER_SEC },
        NSEC_PER_SEC,
        "interval at which every task moves to queue 0; 0: never",
    ),
    Tunable::new(
        "entry",
        TunableKind::Count { min: 0, max: QUEUES_MAX as u64 - 1 },
        0,
        "queue of new tasks; at most the last queue",
    ),
    Tunable::new(
        "accounting",
        TunableKind::words(&["turn", "allotment"]),
        0,
        "a quantum counts for one turn, or for all stays in the queue together",
    ),
    Tunable::new(
        "allotment",
        TunableKind::Count { min: 1, max: 1_000 },
        1,
        "number of quanta that a task may use in a queue before it moves to the next",
    ),
    Tunable::new(
        "conventions",
        TunableKind::words(&["schedlab", "ostep"]),
        0,
        "what textbooks leave open (simultaneous events, the order of a boost): as described for \
           this scheduler, or as in OSTEP's simulator mlfq.py",
    ),
    Tunable::new(
        "wake-to",
        TunableKind::words(&["tail", "head"]),
        0,
        "end of its queue at which a task that wakes is put; at the head it also preempts a task \
           of the same queue",
    ),
];

/// Distance of places at the tail of queues with `conventions ostep`, so that others fit between.
const SPREAD: i64 = 1 << 20;

/// Number of ranks of a queue with `wake-to head`, which must exceed twice the turns of a run.
const RANKS_OF_QUEUE: u64 = 1_000_000_000_000;

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "mlfq".into(),
        summary: "multilevel feedback queue: using up a quantum leads to the next queue".into(),
        source:
            "Silberschatz, Galvin, Gagne: Operating System Concepts; Arpaci-Dusseau: Three Easy \
             Pieces, chapter 8"
                .into(),
        leaves_out: "policies, priorities and nice values are ignored".into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: true,
            fair: true,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: TUNABLES.to_vec(),
        digest: None,
        make: Make::new(|options, machine, _| {
            vec![Box::new(Global::new(Mlfq::new(options), machine.nr_cpus()))]
        }),
    }
}

/// Position of a waiting task: epoch, queue, place in the queue.
type Key = (u64, u8, i64);

/// Epoch of entries at the head of queue 0: before all others.
const EPOCH_HEAD: u64 = 0;

/// The scheduler's state of a task.
#[derive(Clone, Copy, Default, Debug)]
struct Standing {
    /// Its queue, as of `epoch`.
    queue: u8,
    /// Number of boosts when `queue` was set, plus 1.
    epoch: u64,
    /// Used part of its quantum.
    used: Nanos,
    /// Quanta that it has used up in its queue.
    quanta: u32,
    /// Its key while it waits.
    key: Key,
    /// While it runs: since when.
    running_since: Option<Nanos>,
    /// The place to which a boost moves it when its turn ends (`conventions ostep`).
    boosted_to: Option<i64>,
    /// A place at the head, taken when its last turn began (`wake-to head`); 0: it has not run.
    turn_place: i64,
    /// Whether it waits at the head because it woke, and has not been boosted since.
    woke_to_head: bool,
}

/// The rules.
#[derive(Debug)]
struct Mlfq {
    /// Quantum of each queue; `None`: first come, first served.
    quanta: Vec<Option<Nanos>>,
    boost: Nanos,
    entry: u8,
    by_allotment: bool,
    allotment: u32,
    /// Whether what textbooks leave open is as in OSTEP's mlfq.py.
    ostep: bool,
    wakes_to_head: bool,
    sequence: Sequence,
    /// The time of the last arrivals, the place of the first of them, and the number of tasks that
    /// were queued before it at that time.
    arrivals: (Nanos, i64, i64),
    standings: Vec<Standing>,
}

impl Mlfq {
    fn new(options: &Options) -> Self {
        let queues = options.get("queues") as usize;
        let mut above = 0;
        let mut quanta: Vec<Option<Nanos>> = Vec::with_capacity(queues);
        for name in &QUANTUM_NAMES[..queues] {
            let set = options.get(name);
            above = if set > 0 { set } else { (above * 2).min(QUANTUM_MAX) };
            quanta.push(Some(above));
        }
        if options.get("last-queue") == 1 {
            quanta[queues - 1] = None;
        }
        Self {
            quanta,
            boost: options.get("boost"),
            entry: options.get("entry").min(queues as u64 - 1) as u8,
            by_allotment: options.get("accounting") == 1,
            allotment: options.get("allotment") as u32,
            ostep: options.get("conventions") == 1,
            wakes_to_head: options.get("wake-to") == 1,
            sequence: Sequence::default(),
            arrivals: (Nanos::MAX, 0, 0),
            standings: Vec::new(),
        }
    }

    /// Number of boosts so far, plus 1.
    fn epoch(&self, core: &Core) -> u64 {
        core.now.checked_div(self.boost).unwrap_or(0) + 1
    }

    fn queue(&self, core: &Core, task: TaskId) -> u8 {
        let standing = &self.standings[task.index()];
        if standing.epoch == self.epoch(core) { standing.queue } else { 0 }
    }

    /// Applies a boost since the task's queue was set; returns whether there was one.
    fn settle(&mut self, core: &Core, task: TaskId) -> bool {
        let epoch = self.epoch(core);
        let standing = &mut self.standings[task.index()];
        let boosted = standing.epoch != epoch;
        if boosted {
            standing.epoch = epoch;
            standing.queue = 0;
            standing.used = 0;
            standing.quanta = 0;
        }
        boosted
    }

    /// Handles a quantum of `task` that is used up: after the last of its allotment it falls.
    fn use_quantum(&mut self, task: TaskId) {
        let last = self.quanta.len() as u8 - 1;
        let allotment = self.allotment;
        let standing = &mut self.standings[task.index()];
        standing.used = 0;
        standing.quanta += 1;
        if standing.quanta >= allotment {
            standing.quanta = 0;
            standing.queue = (standing.queue + 1).min(last);
        }
    }

    /// Counts `ran` ns of a turn that ended for the reason `why`.
    fn account(&mut self, core: &Core, task: TaskId, why: TurnEnd, ran: Nanos) {
        if self.settle(core, task) {
            return;
        }
        let whole = self.quanta[usize::from(self.standings[task.index()].queue)];
        let standing = &mut self.standings[task.index()];
        standing.used = standing.used.saturating_add(ran);
        let is_used_up = whole.is_some_and(|whole| standing.used >= whole);
        match why {
            TurnEnd::Preempted => {}
            TurnEnd::Expired => self.use_quantum(task),
            TurnEnd::Yielded | TurnEnd::Blocked => {
                if !self.by_allotment {
                    (standing.used, standing.quanta) = (0, 0);
                }
                if is_used_up && (self.by_allotment || self.ostep) {
                    self.use_quantum(task);
                }
            }
        }
    }

    /// A place at the tail.
    fn tail(&mut self) -> i64 {
        self.sequence.next_tail() * if self.ostep { SPREAD } else { 1 }
    }

    /// The place of a task that arrives at `now`.
    fn arrive(&mut self, now: Nanos) -> i64 {
        let place = self.tail();
        if self.arrivals.0 != now {
            self.arrivals = (now, place, 0);
        }
        place
    }

    /// The place of a task whose quantum ends at `now`.
    fn expire(&mut self, now: Nanos) -> i64 {
        let (at, first, nr_before) = &mut self.arrivals;
        if self.ostep && *at == now {
            *nr_before += 1;
            return *first - SPREAD + *nr_before;
        }
        self.tail()
    }

    /// A boost with `conventions ostep`: moves every task to queue 0. Returns the running tasks of
    /// lower queues, whose turns end.
    fn boost_all(&mut self, core: &Core, pool: &mut Ordered<Key>) -> Vec<TaskId> {
        let (epoch, last) = (self.epoch(core), self.quanta.len() as u8 - 1);
        let tasks = (0..self.standings.len() as u32).map(TaskId);
        let mut order: Vec<(u8, i64, TaskId)> = Vec::new();
        for task in tasks {
            let standing = &self.standings[task.index()];
            let whole = self.quanta[usize::from(standing.queue)];
            let (queue, place) = match standing.running_since {
                Some(since) => {
                    let used = standing.used + (core.now - since);
                    let is_used_up = whole.is_some_and(|whole| used >= whole);
                    match is_used_up {
                        true if standing.quanta + 1 >= self.allotment => {
                            ((standing.queue + 1).min(last), i64::MAX)
                        }
                        true => (standing.queue, i64::MAX),
                        false if standing.queue == 0 => continue,
                        false => (standing.queue, i64::MIN),
                    }
                }
                None if pool.contains(task) => (standing.queue, standing.key.2),
                None => continue,
            };
            // A task that arrives at this very time is in queue 0 already, and comes last; or
            // first, if it went to the head.
            if standing.epoch == epoch && standing.woke_to_head {
                continue;
            }
            let group = match queue {
                _ if standing.epoch == epoch => u8::MAX,
                0 => 0,
                _ => last - queue + 1,
            };
            order.push((group, place, task));
        }
        order.sort_unstable();
        let mut ended = Vec::new();
        for (_, _, task) in order {
            self.settle(core, task);
            let place = self.tail();
            let standing = &mut self.standings[task.index()];
            if standing.running_since.is_some() {
                standing.boosted_to = Some(place);
                ended.push(task);
            } else {
                standing.woke_to_head = false;
                standing.key = (standing.epoch, standing.queue, place);
                let key = standing.key;
                pool.rekey(task, key);
            }
        }
        ended
    }

    fn set_key(&mut self, task: TaskId, place: i64) {
        let standing = &mut self.standings[task.index()];
        let at_head = place < 0 && standing.queue == 0;
        let epoch = if at_head { EPOCH_HEAD } else { standing.epoch };
        standing.key = (epoch, standing.queue, place);
    }
}

impl Discipline for Mlfq {
    type Pool = Ordered<Key>;

    fn name(&self) -> &'static str {
        "mlfq"
    }

    fn task_new(&mut self, _core: &Core, task: TaskId) {
        // If the launcher wakes it, it has slept since the start.
        let standing = Standing { queue: self.entry, epoch: 1, ..Standing::default() };
        self.standings.resize(task.index() + 1, standing);
    }

    fn join(&mut self, core: &Core, task: TaskId, _running: bool, flags: EnqueueFlags) {
        if flags.initial {
            // Boosts between creation and release do not apply: the task did not exist yet.
            self.standings[task.index()].epoch = self.epoch(core);
        }
        self.settle(core, task);
        let has_run = self.standings[task.index()].turn_place != 0;
        let to_head = self.wakes_to_head && flags.wakeup && has_run;
        let place = if to_head { self.sequence.next_head() } else { self.arrive(core.now) };
        self.standings[task.index()].woke_to_head = to_head;
        self.set_key(task, place);
    }

    fn requeue(&mut self, core: &Core, task: TaskId, why: TurnEnd, ran: Nanos) {
        self.standings[task.index()].running_since = None;
        if let Some(place) = self.standings[task.index()].boosted_to.take() {
            self.set_key(task, place);
            return;
        }
        self.account(core, task, why, ran);
        let place = match why {
            TurnEnd::Preempted if self.wakes_to_head => self.standings[task.index()].turn_place,
            TurnEnd::Preempted => self.sequence.next_head(),
            TurnEnd::Expired => self.expire(core.now),
            TurnEnd::Yielded | TurnEnd::Blocked => self.tail(),
        };
        self.set_key(task, place);
    }

    fn leave(&mut self, core: &Core, task: TaskId, flags: DequeueFlags, ran: Option<Nanos>) {
        let standing = &mut self.standings[task.index()];
        standing.running_since = None;
        if standing.boosted_to.take().is_some() {
            return;
        }
        if let Some(ran) = ran {
            let why = if flags.save { TurnEnd::Preempted } else { TurnEnd::Blocked };
            self.account(core, task, why, ran);
        }
    }

    fn key(&self, _core: &Core, task: TaskId) -> Key {
        self.standings[task.index()].key
    }

    fn preemptive(&self) -> bool {
        true
    }

    fn rank(&self, core: &Core, task: TaskId) -> u64 {
        let queue = u64::from(self.queue(core, task));
        if !self.wakes_to_head {
            return queue;
        }
        // In one queue, a task that woke outranks those whose turns began before. Places at the
        // head are negative and fall.
        let standing = &self.standings[task.index()];
        let place = match standing.running_since {
            Some(_) => standing.turn_place,
            None if standing.woke_to_head && standing.epoch == self.epoch(core) => standing.key.2,
            None => 0,
        };
        queue * RANKS_OF_QUEUE + RANKS_OF_QUEUE / 2 - place.unsigned_abs()
    }

    fn quantum(&self, core: &Core, task: TaskId) -> Option<Nanos> {
        self.quanta[usize::from(self.queue(core, task))]
    }

    fn keeps_quantum(&self, _why: TurnEnd) -> bool {
        // The rest follows from `used`.
        false
    }

    fn begin_turn(&mut self, core: &Core, task: TaskId, _left: Option<Nanos>) -> Option<Nanos> {
        self.settle(core, task);
        let turn_place = if self.wakes_to_head { self.sequence.next_head() } else { 0 };
        let standing = &mut self.standings[task.index()];
        standing.running_since = Some(core.now);
        standing.turn_place = turn_place;
        standing.woke_to_head = false;
        let used = standing.used;
        self.quantum(core, task).map(|whole| whole.saturating_sub(used))
    }

    fn alarm(&self, core: &Core) -> Option<Nanos> {
        if self.boost == 0 { None } else { self.epoch(core).checked_mul(self.boost) }
    }

    fn ring(&mut self, core: &Core, pool: &mut Self::Pool) -> Ring {
        if self.ostep { Ring::End(self.boost_all(core, pool)) } else { Ring::Refresh }
    }

    fn refresh(&mut self, core: &Core, task: TaskId) -> bool {
        let queue = self.standings[task.index()].queue;
        let used = self.standings[task.index()].used;
        let boosted = self.settle(core, task);
        if boosted && self.ostep {
            self.standings[task.index()].running_since = Some(core.now);
            return true;
        }
        if queue == 0 {
            // It is in the queue that a boost leads to, and continues with its quantum. Otherwise
            // the quantum would never end if the boost interval is shorter.
            self.standings[task.index()].used = used;
        }
        boosted && queue > 0
    }

    fn rule(&self) -> Rule {
        let text = "the head of the best queue; of one queue, who was there before the last boost";
        Rule::Least { keys: &["epoch", "queue_entered", "position"], text }
    }

    fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let standing = &self.standings[task.index()];
        let (epoch, queue_entered, place) = standing.key;
        let mut facts = vec![
            Fact::number("queue", self.queue(core, task)),
            Fact::number("epoch", epoch),
            Fact::number("queue_entered", queue_entered),
            Fact::number("position", place),
            Fact::ns("used", standing.used),
        ];
        if let Some(quantum) = self.quantum(core, task) {
            facts.push(Fact::ns("quantum", quantum));
        }
        facts
    }
}
