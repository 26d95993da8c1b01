// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dispatch queues: in order of insertion, or by virtual time.
//!
//! Source: Linux kernel/sched/ext.c, `dispatch_enqueue()`, `task_unlink_from_dsq()`,
//! `nldsq_next_task()`, 6.18. A queue is a linked list of its tasks. A long queue by virtual time
//! also has a tree that finds the position; a short one is searched from its end. Inserting takes
//! O(log n) steps, everything else a fixed number. A task is in at most one queue, so the links are
//! stored with the tasks.

use super::consts::{DSQ_BYPASS, DSQ_FLAG_BUILTIN, DSQ_GLOBAL, DSQ_LOCAL};
use super::task::{ExtTask, Links, NIL};
use schedlab_model::CpuId;
use schedlab_model::trace::DispatchQueue;
use schedlab_sched::fair::rbtree::{Node, Tree, before};
use std::collections::BTreeMap;

/// Where a task goes in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// First.
    Head,
    /// Last.
    Tail,
    /// By its virtual time, after tasks with the same time.
    ByVtime,
}

/// Ids below this are found without a search.
const SMALL_IDS: u64 = 4096;

/// From this number of tasks by virtual time on, a queue has a tree.
const TREE_MIN: u32 = 32;

/// A queue.
#[derive(Clone, Debug)]
pub struct Dsq {
    /// Its id.
    pub id: u64,
    /// The first task, or [`NIL`].
    pub head: u32,
    /// The last task.
    pub tail: u32,
    /// Number of tasks.
    pub nr: u32,
    /// Number of insertions so far; wraps.
    pub seq: u32,
    /// Number of its tasks that are ordered by virtual time.
    nr_priq: u32,
    /// Whether these are in `tree` too.
    has_tree: bool,
    tree: Tree,
}

impl Dsq {
    fn new(id: u64) -> Self {
        let tree = Tree::new(false);
        Self { id, head: NIL, tail: NIL, nr: 0, seq: 0, nr_priq: 0, has_tree: false, tree }
    }

    /// Whether it holds tasks by virtual time.
    #[inline]
    pub fn holds_priq(&self) -> bool {
        self.nr_priq > 0
    }

    /// Whether it holds tasks, none of them by virtual time.
    #[inline]
    pub fn holds_fifo(&self) -> bool {
        self.nr > 0 && self.nr_priq == 0
    }

    /// In a queue without a tree: the task after which `key` is inserted; [`NIL`]: it is the first.
    fn place_of(&self, nodes: &[Node], tasks: &[ExtTask], key: u64) -> u32 {
        let mut at = self.tail;
        while at != NIL {
            let task = &tasks[at as usize];
            if task.on_priq && !before(key, nodes[at as usize].key) {
                break;
            }
            at = task.links.prev;
        }
        at
    }
}

/// An iteration over a queue. Its position is after the last task that it returned. When that task
/// leaves the queue, the position is after the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// The queue.
    pub dsq: u32,
    /// Number of insertions when the iteration began. Later ones are skipped.
    pub seq: u32,
    /// Whether it goes backwards.
    pub rev: bool,
    /// The task after which it continues, in its direction; [`NIL`]: the start.
    behind: u32,
    /// Slice of the next task that is moved.
    pub slice: Option<u64>,
    /// Virtual time of the next task that is moved.
    pub vtime: Option<u64>,
    is_live: bool,
}

/// All queues. First are the local queues by CPU, then the bypass queues by CPU, then the global
/// queues by node.
#[derive(Debug)]
pub struct Dsqs {
    all: Vec<Dsq>,
    nodes: Vec<Node>,
    by_id: BTreeMap<u64, u32>,
    /// Indices of the queues with ids below [`SMALL_IDS`]. Most schedulers number their queues by
    /// CPU or group.
    by_small_id: Vec<u32>,
    free: Vec<u32>,
    cursors: Vec<Cursor>,
    nr_cpus: u32,
    nr_builtin: u32,
}

impl Dsqs {
    /// The built-in queues of a machine.
    pub fn new(nr_cpus: u32, nr_nodes: u32) -> Self {
        let local = (0..nr_cpus).map(|_| Dsq::new(DSQ_LOCAL));
        let bypass = (0..nr_cpus).map(|_| Dsq::new(DSQ_BYPASS));
        let global = (0..nr_nodes).map(|_| Dsq::new(DSQ_GLOBAL));
        Self {
            all: local.chain(bypass).chain(global).collect(),
            nodes: Vec::new(),
            by_id: BTreeMap::new(),
            by_small_id: Vec::new(),
            free: Vec::new(),
            cursors: Vec::new(),
            nr_cpus,
            nr_builtin: 2 * nr_cpus + nr_nodes,
        }
    }

    /// The local queue of `cpu`.
    #[inline]
    pub fn local(&self, cpu: CpuId) -> u32 {
        cpu.0
    }

    /// The number of tasks of each queue, without those of bypassed tasks.
    pub fn lengths(&self) -> impl Iterator<Item = (DispatchQueue, u32)> + '_ {
        let cpus = 0..self.nr_cpus;
        let local = cpus.map(|cpu| (DispatchQueue::Local(CpuId(cpu)), &self.all[cpu as usize]));
        let globals = (0..).zip(&self.all[2 * self.nr_cpus as usize..self.nr_builtin as usize]);
        let globals = globals.map(|(node, queue)| (DispatchQueue::Global(node), queue));
        let own =
            self.by_id.iter().map(|(id, at)| (DispatchQueue::Own(*id), &self.all[*at as usize]));
        local.chain(globals).chain(own).map(|(queue, of)| (queue, of.nr))
    }

    /// The queue of bypassed tasks of `cpu`.
    pub fn bypass(&self, cpu: CpuId) -> u32 {
        self.nr_cpus + cpu.0
    }

    /// The global queue of `node`.
    #[inline]
    pub fn global(&self, node: u32) -> u32 {
        2 * self.nr_cpus + node
    }

    /// The CPU whose local queue `dsq` is.
    #[inline]
    pub fn local_cpu(&self, dsq: u32) -> Option<CpuId> {
        (dsq < self.nr_cpus).then_some(CpuId(dsq))
    }

    /// Whether `dsq` is one of the core's own.
    #[inline]
    pub fn is_builtin(&self, dsq: u32) -> bool {
        dsq < self.nr_builtin
    }

    /// The queue that the scheduler created as `id`.
    #[inline]
    pub fn find(&self, id: u64) -> Option<u32> {
        if id < SMALL_IDS {
            return self.by_small_id.get(id as usize).copied().filter(|dsq| *dsq != NIL);
        }
        self.by_id.get(&id).copied()
    }

    /// Notes the index of the queue with a small id; [`NIL`]: there is none.
    fn note_small_id(&mut self, id: u64, dsq: u32) {
        if id < SMALL_IDS {
            let len = self.by_small_id.len().max(id as usize + 1);
            self.by_small_id.resize(len, NIL);
            self.by_small_id[id as usize] = dsq;
        }
    }

    /// A queue.
    #[inline]
    pub fn get(&self, dsq: u32) -> &Dsq {
        &self.all[dsq as usize]
    }

    /// Creates queue `id`. Returns false if it exists.
    pub fn create(&mut self, id: u64) -> bool {
        assert_eq!(id & DSQ_FLAG_BUILTIN, 0, "the id of a built-in queue");
        if self.by_id.contains_key(&id) {
            return false;
        }
        let index = match self.free.pop() {
            Some(index) => {
                // Insertions go on being counted: a walk that ended long ago cannot be mistaken.
                let seq = self.all[index as usize].seq;
                self.all[index as usize] = Dsq { seq, ..Dsq::new(id) };
                index
            }
            None => {
                self.all.push(Dsq::new(id));
                self.all.len() as u32 - 1
            }
        };
        self.by_id.insert(id, index);
        self.note_small_id(id, index);
        true
    }

    /// Removes queue `id`, which is empty.
    pub fn destroy(&mut self, id: u64) {
        if let Some(index) = self.by_id.remove(&id) {
            assert_eq!(self.all[index as usize].nr, 0, "the queue to be destroyed holds tasks");
            self.note_small_id(id, NIL);
            self.free.push(index);
        }
    }

    /// The queues from which tasks may go to any CPU: the global ones, then the scheduler's in
    /// order of their ids.
    pub fn shared(&self) -> impl Iterator<Item = u32> + '_ {
        (2 * self.nr_cpus..self.nr_builtin).chain(self.by_id.values().copied())
    }

    /// The tasks of a queue from its head on.
    pub fn members<'t>(&self, tasks: &'t [ExtTask], dsq: u32) -> impl Iterator<Item = u32> + 't {
        let head = self.all[dsq as usize].head;
        let some = |id: u32| (id != NIL).then_some(id);
        std::iter::successors(some(head), move |id| some(tasks[*id as usize].links.next))
    }

    /// Ids of the scheduler's queues, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_id.keys().copied()
    }

    /// Makes room for one more task.
    pub fn add_task(&mut self) {
        self.nodes.push(Node::NEW);
    }

    /// Puts `id`, which is in no queue, into `dsq`.
    pub fn insert(&mut self, tasks: &mut [ExtTask], dsq: u32, id: u32, place: Place) {
        let queue = &mut self.all[dsq as usize];
        let (prev, next) = match place {
            Place::Head => (NIL, queue.head),
            Place::Tail => (queue.tail, NIL),
            Place::ByVtime => {
                let key = tasks[id as usize].entity.dsq_vtime();
                self.nodes[id as usize] = Node::of(key, 0, 0);
                queue.nr_priq += 1;
                if queue.has_tree {
                    queue.tree.insert(&mut self.nodes, id);
                    match queue.tree.next(&self.nodes, id) {
                        NIL => (queue.tail, NIL),
                        next => (tasks[next as usize].links.prev, next),
                    }
                } else {
                    match queue.place_of(&self.nodes, tasks, key) {
                        NIL => (NIL, queue.head),
                        prev => (prev, tasks[prev as usize].links.next),
                    }
                }
            }
        };
        match prev {
            NIL => queue.head = id,
            prev => tasks[prev as usize].links.next = id,
        }
        match next {
            NIL => queue.tail = id,
            next => tasks[next as usize].links.prev = id,
        }
        queue.nr += 1;
        queue.seq = queue.seq.wrapping_add(1);
        let task = &mut tasks[id as usize];
        task.links = Links { next, prev };
        task.on_priq = place == Place::ByVtime;
        task.dsq = dsq;
        task.dsq_seq = queue.seq;
        if queue.nr_priq >= TREE_MIN && !queue.has_tree {
            self.grow_tree(tasks, dsq);
        }
    }

    /// The queue has become long: its tasks by virtual time go into a tree, too.
    fn grow_tree(&mut self, tasks: &[ExtTask], dsq: u32) {
        let queue = &mut self.all[dsq as usize];
        queue.has_tree = true;
        let mut at = queue.head;
        while at != NIL {
            if tasks[at as usize].on_priq {
                queue.tree.insert(&mut self.nodes, at);
            }
            at = tasks[at as usize].links.next;
        }
    }

    /// Removes `id` from its queue.
    pub fn remove(&mut self, tasks: &mut [ExtTask], id: u32) {
        let task = &mut tasks[id as usize];
        let (dsq, Links { next, prev }) = (task.dsq, task.links);
        task.links = Links::NONE;
        task.dsq = NIL;
        let queue = &mut self.all[dsq as usize];
        if std::mem::take(&mut task.on_priq) {
            queue.nr_priq -= 1;
            if queue.has_tree {
                queue.tree.remove(&mut self.nodes, id);
                queue.has_tree = queue.nr_priq > 0;
            }
        }
        match prev {
            NIL => queue.head = next,
            prev => tasks[prev as usize].links.next = next,
        }
        match next {
            NIL => queue.tail = prev,
            next => tasks[next as usize].links.prev = prev,
        }
        queue.nr -= 1;
        for cursor in &mut self.cursors {
            if cursor.behind == id {
                cursor.behind = if cursor.rev { next } else { prev };
            }
        }
    }

    /// Begins an iteration over `dsq`; returns its handle.
    pub fn walk(&mut self, dsq: u32, rev: bool) -> u32 {
        let seq = self.all[dsq as usize].seq;
        let (slice, vtime) = (None, None);
        let cursor = Cursor { dsq, seq, rev, behind: NIL, slice, vtime, is_live: true };
        match self.cursors.iter().position(|cursor| !cursor.is_live) {
            Some(index) => {
                self.cursors[index] = cursor;
                index as u32
            }
            None => {
                self.cursors.push(cursor);
                self.cursors.len() as u32 - 1
            }
        }
    }

    /// The iteration with this handle, if it has not ended.
    pub fn cursor(&mut self, handle: u32) -> Option<&mut Cursor> {
        self.cursors.get_mut(handle as usize).filter(|cursor| cursor.is_live)
    }

    /// The next task of an iteration.
    pub fn next(&mut self, tasks: &[ExtTask], handle: u32) -> Option<u32> {
        let cursor = self.cursors.get_mut(handle as usize).filter(|cursor| cursor.is_live)?;
        let queue = &self.all[cursor.dsq as usize];
        let onward = |links: Links| if cursor.rev { links.prev } else { links.next };
        let mut at = match cursor.behind {
            NIL if cursor.rev => queue.tail,
            NIL => queue.head,
            behind => onward(tasks[behind as usize].links),
        };
        while at != NIL && is_later(tasks[at as usize].dsq_seq, cursor.seq) {
            at = onward(tasks[at as usize].links);
        }
        if at == NIL {
            return None;
        }
        cursor.behind = at;
        Some(at)
    }

    /// Ends an iteration.
    pub fn end_walk(&mut self, handle: u32) {
        if let Some(cursor) = self.cursors.get_mut(handle as usize) {
            (cursor.is_live, cursor.behind) = (false, NIL);
        }
        while self.cursors.last().is_some_and(|cursor| !cursor.is_live) {
            self.cursors.pop();
        }
    }

    /// Ends all iterations, after a callback.
    #[inline]
    pub fn end_walks(&mut self) {
        self.cursors.clear();
    }
}

/// Whether insertion `seq` is later than `than`. The numbers wrap.
#[inline]
pub const fn is_later(seq: u32, than: u32) -> bool {
    (seq.wrapping_sub(than) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::random::{Purpose, Stream};

    struct Bench {
        dsqs: Dsqs,
        tasks: Vec<ExtTask>,
        dsq: u32,
    }

    impl Bench {
        fn new(nr_tasks: u32) -> Self {
            let mut dsqs = Dsqs::new(1, 1);
            assert!(dsqs.create(7) && !dsqs.create(7));
            (0..nr_tasks).for_each(|_| dsqs.add_task());
            let tasks = (0..nr_tasks).map(ExtTask::new).collect();
            Self { dsq: dsqs.find(7).unwrap(), dsqs, tasks }
        }

        fn insert(&mut self, id: u32, place: Place) {
            self.dsqs.insert(&mut self.tasks, self.dsq, id, place);
        }

        fn by_vtime(&mut self, id: u32, vtime: u64) {
            self.tasks[id as usize].entity.set_dsq_vtime(vtime);
            self.insert(id, Place::ByVtime);
        }

        fn order(&mut self, rev: bool) -> Vec<u32> {
            let handle = self.dsqs.walk(self.dsq, rev);
            let walk = std::iter::from_fn(|| self.dsqs.next(&self.tasks, handle));
            let order = walk.collect();
            self.dsqs.end_walk(handle);
            order
        }
    }

    #[test]
    fn head_and_tail() {
        let mut bench = Bench::new(4);
        for (id, place) in [(0, Place::Tail), (1, Place::Head), (2, Place::Tail), (3, Place::Head)]
        {
            bench.insert(id, place);
        }
        assert_eq!(bench.order(false), [3, 1, 0, 2]);
        assert_eq!(bench.order(true), [2, 0, 1, 3]);
        bench.dsqs.remove(&mut bench.tasks, 1);
        bench.dsqs.remove(&mut bench.tasks, 2);
        assert_eq!(bench.order(false), [3, 0]);
        assert_eq!(bench.dsqs.get(bench.dsq).nr, 2);
    }

    #[test]
    fn virtual_time_wraps_and_equals_keep_their_order() {
        let mut bench = Bench::new(6);
        let keys = [5, u64::MAX - 3, 5, 0, u64::MAX - 3, 4];
        for (id, key) in keys.into_iter().enumerate() {
            bench.by_vtime(id as u32, key);
        }
        assert_eq!(bench.order(false), [1, 4, 3, 5, 0, 2]);
        assert_eq!(bench.order(true), [2, 0, 5, 3, 4, 1]);
        bench.dsqs.remove(&mut bench.tasks, 3);
        bench.dsqs.remove(&mut bench.tasks, 1);
        assert_eq!(bench.order(false), [4, 5, 0, 2]);
        bench.by_vtime(3, 6);
        assert_eq!(bench.order(false), [4, 5, 0, 2, 3]);
    }

    /// Short and long queues keep one order, whatever comes and goes.
    #[test]
    fn a_queue_keeps_its_order_as_it_grows_and_shrinks() {
        let mut bench = Bench::new(200);
        let mut stream = Stream::new(5, Purpose::Scheduler, 0);
        let mut expected: Vec<(u64, u32)> = Vec::new();
        let mut free: Vec<u32> = (0..200).collect();
        for step in 0..4_000 {
            let target = if step / 500 % 2 == 0 { 150 } else { 5 };
            if (expected.len() as u64) < stream.below(target * 2) && !free.is_empty() {
                let id = free.swap_remove(stream.below(free.len() as u64) as usize);
                let vtime = stream.below(60);
                bench.by_vtime(id, vtime);
                let at = expected.partition_point(|(key, _)| *key <= vtime);
                expected.insert(at, (vtime, id));
            } else if !expected.is_empty() {
                let at = stream.below(expected.len() as u64) as usize;
                let (_, id) = expected.remove(at);
                // A store while it waits moves it nowhere.
                bench.tasks[id as usize].entity.set_dsq_vtime(1);
                bench.dsqs.remove(&mut bench.tasks, id);
                free.push(id);
            }
            if step % 50 == 0 {
                let ids: Vec<u32> = expected.iter().map(|(_, id)| *id).collect();
                assert_eq!(bench.order(false), ids, "step {step}");
            }
        }
    }

    /// A walk passes over what came after it began, and outlives what it has handed out.
    #[test]
    fn a_walk_outlives_removals_and_skips_what_is_new() {
        let mut bench = Bench::new(5);
        (0..4).for_each(|id| bench.insert(id, Place::Tail));
        let walk = bench.dsqs.walk(bench.dsq, false);
        assert_eq!(bench.dsqs.next(&bench.tasks, walk), Some(0));
        bench.dsqs.remove(&mut bench.tasks, 0);
        assert_eq!(bench.dsqs.next(&bench.tasks, walk), Some(1));
        assert_eq!(bench.dsqs.next(&bench.tasks, walk), Some(2));
        bench.insert(4, Place::Tail);
        bench.dsqs.remove(&mut bench.tasks, 1);
        bench.dsqs.remove(&mut bench.tasks, 2);
        bench.insert(0, Place::Head);
        assert_eq!(bench.dsqs.next(&bench.tasks, walk), Some(3));
        assert_eq!(bench.dsqs.next(&bench.tasks, walk), None);
        bench.dsqs.end_walk(walk);
        assert_eq!(bench.dsqs.next(&bench.tasks, walk), None);
        assert_eq!(bench.order(false), [0, 3, 4]);
    }
}
