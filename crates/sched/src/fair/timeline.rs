// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiting entities of one queue, in order.
//!
//! The kernel keeps them in a red-black tree. If the shape of that tree influences the pick, the
//! model uses a tree too: EEVDF of 6.6 breaks ties of deadlines by the shape, CFS does not. EEVDF
//! from 6.12 on needs only the order: the first eligible entity in order of deadlines. Once tasks
//! have asked for slices it needs the shape, because the least slice of a queue then depends on it
//! (see [`super::rbtree`]). Without the shape, a few entities are in a sorted array inside the
//! queue, and only a longer queue uses the tree. Most queues are short, and an array of eight costs
//! a third of a tree of eight. The array is a ring, because usually the first entity leaves and
//! returns as the last.

use super::rbtree::{NIL, Node, Tree, before, max_time, min_time};

/// Maximum number of entities in the array.
const SMALL_MAX: usize = 8;
/// Number of entities at which a tree becomes an array again. Less than [`SMALL_MAX`], so that a
/// queue whose length varies does not change its form each time.
const SMALL_AGAIN: u32 = 4;

/// One entity.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// See [`Node::key`].
    pub key: u64,
    /// See [`Node::time`].
    pub time: u64,
    /// See [`Node::slice`].
    pub slice: u64,
    /// Its number.
    pub id: u32,
}

impl Slot {
    /// Stores its numbers in its node.
    #[inline]
    fn store(&self, nodes: &mut [Node]) {
        let node = &mut nodes[self.id as usize];
        (node.key, node.time, node.slice) = (self.key, self.time, self.slice);
    }
}

const EMPTY: Slot = Slot { key: 0, time: 0, slice: 0, id: NIL };

/// Waiting entities. An entity's [`Node`] has its numbers only while it is in the tree.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Ring of entities: the first one is at `head`.
    slots: [Slot; SMALL_MAX],
    head: u32,
    /// Number of entities.
    len: u32,
    /// Whether they are in the tree.
    is_tree: bool,
    /// Whether they may be in the array.
    may_be_small: bool,
    tree: Tree,
}

impl Timeline {
    /// An empty timeline. `augmented`: least times and slices are needed. `has_longest`: so is the
    /// greatest slice. `shape_counts`: it is always a tree.
    pub const fn new(augmented: bool, has_longest: bool, shape_counts: bool) -> Self {
        Self {
            slots: [EMPTY; SMALL_MAX],
            head: 0,
            len: 0,
            is_tree: shape_counts,
            may_be_small: !shape_counts,
            tree: Tree { has_longest, ..Tree::new(augmented) },
        }
    }

    /// From now on the shape of the tree matters.
    pub fn keep_shape(&mut self, nodes: &mut [Node]) {
        if !self.is_tree {
            self.grow(nodes);
        }
        self.may_be_small = false;
    }

    /// Index in the ring of entity number `position`.
    #[inline]
    const fn at(&self, position: u32) -> usize {
        (self.head + position) as usize % SMALL_MAX
    }

    /// The entities of the array, in order.
    #[inline]
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        (0..self.len).map(|position| &self.slots[self.at(position)])
    }

    /// Whether no entity waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The tree, if its shape matters.
    #[inline]
    pub fn tree(&self) -> &Tree {
        debug_assert!(!self.may_be_small);
        &self.tree
    }

    /// The first entity in order of keys; [`NIL`] if there is none.
    #[inline]
    pub fn first(&self) -> u32 {
        if self.is_tree {
            self.tree.leftmost
        } else {
            if self.len == 0 { NIL } else { self.slots[self.at(0)].id }
        }
    }

    /// The entity after `id`.
    pub fn next(&self, nodes: &[Node], id: u32) -> u32 {
        if self.is_tree {
            return self.tree.next(nodes, id);
        }
        let mut rest = self.slots().skip_while(|slot| slot.id != id);
        rest.nth(1).map_or(NIL, |slot| slot.id)
    }

    /// The earliest time of all entities, but at least `floor`; `None` if no entity waits.
    #[inline(always)]
    pub fn min_time_from(&self, nodes: &[Node], floor: u64) -> Option<u64> {
        if self.is_tree {
            // No entity has the number NIL.
            return nodes.get(self.tree.root as usize).map(|root| max_time(root.min_time, floor));
        }
        let mut least = None;
        for slot in self.slots() {
            // Usually one of the first entities has it, and the others need not be examined.
            if !before(floor, slot.time) {
                return Some(floor);
            }
            least = Some(least.map_or(slot.time, |time| min_time(time, slot.time)));
        }
        least
    }

    /// Whether the least slice is that of all entities, and not perhaps of another subtree.
    pub fn has_exact_slices(&self) -> bool {
        !(self.is_tree && self.tree.is_inexact)
    }

    /// The least slice of all entities; the maximum number if no entity waits.
    #[inline]
    pub fn min_slice(&self, nodes: &[Node]) -> u64 {
        if self.is_tree {
            let root = self.tree.root;
            return if root == NIL { u64::MAX } else { nodes[root as usize].min_slice };
        }
        self.slots().fold(u64::MAX, |least, slot| least.min(slot.slice))
    }

    /// The greatest slice of all entities; 0 if no entity waits.
    pub fn max_slice(&self, nodes: &[Node]) -> u64 {
        if self.is_tree {
            let root = self.tree.root;
            return if root == NIL { 0 } else { nodes[root as usize].max_slice };
        }
        self.slots().fold(0, |greatest, slot| greatest.max(slot.slice))
    }

    /// The first entity in order of keys whose time satisfies `fits`; [`NIL`] if there is none. If
    /// a time fits, all earlier ones fit too.
    #[inline(always)]
    pub fn first_that(&self, nodes: &[Node], fits: impl Fn(u64) -> bool) -> u32 {
        if self.is_tree {
            return self.first_in_tree(nodes, fits);
        }
        self.slots().find(|slot| fits(slot.time)).map_or(NIL, |slot| slot.id)
    }

    #[inline(never)]
    fn first_in_tree(&self, nodes: &[Node], fits: impl Fn(u64) -> bool) -> u32 {
        let leftmost = self.tree.leftmost;
        if leftmost != NIL && fits(nodes[leftmost as usize].time) {
            return leftmost;
        }
        let mut at = self.tree.root;
        while at != NIL {
            let node = &nodes[at as usize];
            if node.left != NIL && fits(nodes[node.left as usize].min_time) {
                at = node.left;
            } else if fits(node.time) {
                return at;
            } else {
                at = node.right;
            }
        }
        NIL
    }

    /// Inserts an entity after all of equal key.
    #[inline]
    pub fn insert(&mut self, nodes: &mut [Node], new: Slot) {
        if self.is_tree || self.len as usize >= SMALL_MAX {
            self.insert_into_tree(nodes, (new.key, new.time, new.slice), new.id);
            return;
        }
        let mut position = self.len;
        while position > 0 {
            let last = self.slots[self.at(position - 1)];
            if !before(new.key, last.key) {
                break;
            }
            self.slots[self.at(position)] = last;
            position -= 1;
        }
        self.slots[self.at(position)] = new;
        self.len += 1;
    }

    #[inline(never)]
    fn insert_into_tree(&mut self, nodes: &mut [Node], numbers: (u64, u64, u64), id: u32) {
        if !self.is_tree {
            self.grow(nodes);
        }
        let (key, time, slice) = numbers;
        Slot { key, time, slice, id }.store(nodes);
        self.tree.insert(nodes, id);
        self.len += 1;
    }

    /// Removes `id`, which must be in the timeline.
    #[inline]
    pub fn remove(&mut self, nodes: &mut [Node], id: u32) {
        if self.is_tree {
            self.remove_from_tree(nodes, id);
            return;
        }
        let mut position = 0;
        while position < self.len && self.slots[self.at(position)].id != id {
            position += 1;
        }
        assert!(position < self.len, "entity {id} does not wait here");
        // Entities before it move one place towards it, and the ring begins one place later.
        while position > 0 {
            self.slots[self.at(position)] = self.slots[self.at(position - 1)];
            position -= 1;
        }
        self.head = self.at(1) as u32;
        self.len -= 1;
    }

    #[inline(never)]
    fn remove_from_tree(&mut self, nodes: &mut [Node], id: u32) {
        self.tree.remove(nodes, id);
        self.len -= 1;
        if self.len == SMALL_AGAIN && self.may_be_small {
            self.shrink(nodes);
        }
    }

    /// Sets the slice of `id`, which must be in the timeline.
    pub fn set_slice(&mut self, nodes: &mut [Node], id: u32, slice: u64) {
        if self.is_tree {
            self.tree.set_slice(nodes, id, slice);
            return;
        }
        for position in 0..self.len {
            let slot = &mut self.slots[self.at(position)];
            if slot.id == id {
                slot.slice = slice;
                return;
            }
        }
    }

    /// Moves the entities from the array into the tree.
    #[cold]
    fn grow(&mut self, nodes: &mut [Node]) {
        for position in 0..self.len {
            let slot = self.slots[self.at(position)];
            slot.store(nodes);
            self.tree.insert(nodes, slot.id);
        }
        self.is_tree = true;
    }

    /// Moves the entities from the tree into the array.
    #[cold]
    fn shrink(&mut self, nodes: &[Node]) {
        let mut id = self.tree.leftmost;
        self.head = 0;
        for slot in &mut self.slots[..self.len as usize] {
            let Node { key, time, slice, .. } = nodes[id as usize];
            *slot = Slot { key, time, slice, id };
            id = self.tree.next(nodes, id);
        }
        (self.tree.root, self.tree.leftmost) = (NIL, NIL);
        self.is_tree = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In both forms a queue gives the answers of the tree.
        #[test]
        fn the_form_does_not_show(
            steps in prop::collection::vec((0u32..24, 0u64..30, 0u64..1000, 0u64..50), 1..600),
        ) {
            let mut nodes = [vec![Node::NEW; 24], vec![Node::NEW; 24]];
            let mut lines = [false, true].map(|shape| Timeline::new(true, true, shape));
            let mut queued = [false; 24];
            for (id, key, time, slice) in steps {
                for (line, nodes) in lines.iter_mut().zip(&mut nodes) {
                    if queued[id as usize] && slice % 4 == 0 {
                        line.set_slice(nodes, id, slice);
                    } else if queued[id as usize] {
                        line.remove(nodes, id);
                    } else {
                        line.insert(nodes, Slot { key, time, slice, id });
                    }
                }
                queued[id as usize] ^= !(queued[id as usize] && slice % 4 == 0);
                let ask = |which: usize| {
                    let (line, nodes) = (&lines[which], &nodes[which]);
                    let fits = |limit: u64| line.first_that(nodes, |time| time <= limit);
                    let mut order = vec![line.first()];
                    while *order.last().unwrap() != NIL {
                        order.push(line.next(nodes, *order.last().unwrap()));
                    }
                    let least = (
                        [0, 100, 300, 600].map(|floor| line.min_time_from(nodes, floor)),
                        line.is_empty(),
                    );
                    (order, least, [0, 100, 300, 600, 1000].map(fits))
                };
                prop_assert_eq!(ask(0), ask(1));
            }
        }
    }
}
