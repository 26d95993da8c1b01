// SPDX-License-Identifier: MIT OR Apache-2.0
//! A red-black tree over the entities' arena, with the least value of a second number, and the
//! least and the greatest of a third, in each subtree.
//!
//! The links are in one vector of small nodes that all queues share, because an entity is in at
//! most one tree. Keys are 64-bit numbers that wrap and are compared by their signed difference. A
//! node is inserted after those of equal key. The steps of insertion and removal are those of the
//! textbook, in the variant of Linux lib/rbtree.c: removal takes the successor, not the
//! predecessor. So a tree has the kernel's shape, on which the deadline ties of Linux 6.6 depend.
//!
//! The values of subtrees are kept as the kernel keeps them: a rotation, and the move of a
//! successor into the place of a removed node, copy only the second number (`RB_DECLARE_CALLBACKS`
//! names one member). The least and the greatest slice of such a node are then those of another
//! subtree, until an insertion or a removal below it recomputes them. So they depend on the shape.

/// The index that means "no entity".
pub const NIL: u32 = u32::MAX;

/// Whether `a` is before `b` in wrapping time.
#[inline]
pub const fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// The earlier of two wrapping times.
#[inline]
pub const fn min_time(a: u64, b: u64) -> u64 {
    if before(b, a) { b } else { a }
}

/// The later of two wrapping times.
#[inline]
pub const fn max_time(a: u64, b: u64) -> u64 {
    if before(a, b) { b } else { a }
}

/// Links and keys of one entity.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    parent: u32,
    /// Left child.
    pub left: u32,
    /// Right child.
    pub right: u32,
    red: bool,
    /// Key.
    pub key: u64,
    /// Second number of this node (wrapping time).
    pub time: u64,
    /// Earliest `time` of the subtree.
    pub min_time: u64,
    /// Third number of this node (plain).
    pub slice: u64,
    /// Least `slice` of the subtree.
    pub min_slice: u64,
    /// Greatest `slice` of the subtree.
    pub max_slice: u64,
}

impl Node {
    /// A node in no tree.
    pub const NEW: Self = Self {
        parent: NIL,
        left: NIL,
        right: NIL,
        red: false,
        key: 0,
        time: 0,
        min_time: 0,
        slice: 0,
        min_slice: 0,
        max_slice: 0,
    };

    /// A node in no tree, with these numbers.
    pub const fn of(key: u64, time: u64, slice: u64) -> Self {
        Self { key, time, slice, ..Self::NEW }
    }
}

/// A tree.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    /// Root.
    pub root: u32,
    /// Node with the least key; of equal keys the first inserted.
    pub leftmost: u32,
    /// Whether the least values of subtrees are kept up to date.
    pub augmented: bool,
    /// Whether their greatest slices are, too.
    pub has_longest: bool,
    /// Whether a node may have got the slices of another subtree since the tree was empty.
    pub is_inexact: bool,
}

impl Tree {
    /// An empty tree.
    pub const fn new(augmented: bool) -> Self {
        Self { root: NIL, leftmost: NIL, augmented, has_longest: false, is_inexact: false }
    }

    /// Inserts `id`, whose key, time and slice are set, after all nodes of equal key.
    pub fn insert(&mut self, nodes: &mut [Node], id: u32) {
        let node = nodes[id as usize];
        let (mut parent, mut link, mut leftmost, mut went_left) = (NIL, self.root, true, false);
        while link != NIL {
            let at = &nodes[link as usize];
            parent = link;
            went_left = before(node.key, at.key);
            link = if went_left { at.left } else { at.right };
            leftmost &= went_left;
        }
        let new = &mut nodes[id as usize];
        *new = Node { parent, left: NIL, right: NIL, red: true, ..node };
        new.min_time = node.time;
        new.min_slice = node.slice;
        new.max_slice = if self.has_longest { node.slice } else { 0 };
        if parent == NIL {
            self.is_inexact = false;
            self.root = id;
        } else if went_left {
            nodes[parent as usize].left = id;
        } else {
            nodes[parent as usize].right = id;
        }
        if leftmost {
            self.leftmost = id;
        }
        if self.augmented {
            self.propagate(nodes, parent, NIL);
        }
        self.rebalance_after_insert(nodes, id);
    }

    /// Removes `id`.
    pub fn remove(&mut self, nodes: &mut [Node], id: u32) {
        if self.leftmost == id {
            self.leftmost = self.next(nodes, id);
        }
        let Node { parent, left, right, red, .. } = nodes[id as usize];
        let (fix_child, fix_parent, lost_black);
        let mut changed = parent;
        if left == NIL || right == NIL {
            let child = if left == NIL { right } else { left };
            self.replace_child(nodes, parent, id, child);
            (fix_child, fix_parent, lost_black) = (child, parent, !red);
        } else {
            let successor = self.first_of(nodes, right);
            let s = nodes[successor as usize];
            let child = s.right;
            if s.parent == id {
                fix_parent = successor;
            } else {
                fix_parent = s.parent;
                self.replace_child(nodes, s.parent, successor, child);
                nodes[successor as usize].right = right;
                nodes[right as usize].parent = successor;
            }
            nodes[successor as usize].left = left;
            nodes[left as usize].parent = successor;
            self.replace_child(nodes, parent, id, successor);
            nodes[successor as usize].red = red;
            (fix_child, lost_black) = (child, !s.red);
            nodes[successor as usize].min_time = nodes[id as usize].min_time;
            self.is_inexact = true;
            if self.augmented && fix_parent != successor {
                self.propagate(nodes, fix_parent, successor);
            }
            changed = successor;
        }
        if self.augmented {
            self.propagate(nodes, changed, NIL);
        }
        if lost_black {
            self.rebalance_after_remove(nodes, fix_child, fix_parent);
        }
    }

    /// Sets the third number of `id`, which is in the tree, to `slice`.
    pub fn set_slice(&self, nodes: &mut [Node], id: u32, slice: u64) {
        nodes[id as usize].slice = slice;
        if self.augmented {
            self.propagate(nodes, id, NIL);
        }
    }

    /// The node after `id` in the order of keys.
    pub fn next(&self, nodes: &[Node], id: u32) -> u32 {
        let right = nodes[id as usize].right;
        if right != NIL {
            return self.first_of(nodes, right);
        }
        let mut child = id;
        let mut parent = nodes[id as usize].parent;
        while parent != NIL && nodes[parent as usize].right == child {
            child = parent;
            parent = nodes[parent as usize].parent;
        }
        parent
    }

    fn first_of(&self, nodes: &[Node], mut id: u32) -> u32 {
        while nodes[id as usize].left != NIL {
            id = nodes[id as usize].left;
        }
        id
    }

    /// Makes `new` the child of `parent` in place of `old`.
    fn replace_child(&mut self, nodes: &mut [Node], parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else if nodes[parent as usize].left == old {
            nodes[parent as usize].left = new;
        } else {
            nodes[parent as usize].right = new;
        }
        if new != NIL {
            nodes[new as usize].parent = parent;
        }
    }

    /// Recomputes the values of the subtree of `id`; returns whether they changed.
    fn update(&self, nodes: &mut [Node], id: u32) -> bool {
        let node = nodes[id as usize];
        let (mut time, mut slice, mut longest) = (node.time, node.slice, node.slice);
        for child in [node.left, node.right] {
            if child != NIL {
                time = min_time(time, nodes[child as usize].min_time);
                slice = slice.min(nodes[child as usize].min_slice);
                longest = longest.max(nodes[child as usize].max_slice);
            }
        }
        if !self.has_longest {
            longest = 0;
        }
        let node = &mut nodes[id as usize];
        let old = (node.min_time, node.min_slice, node.max_slice);
        (node.min_time, node.min_slice, node.max_slice) = (time, slice, longest);
        old != (time, slice, longest)
    }

    /// Recomputes from `id` up to, without it, `stop`, or to the first node that does not change.
    fn propagate(&self, nodes: &mut [Node], mut id: u32, stop: u32) {
        while id != stop && self.update(nodes, id) {
            id = nodes[id as usize].parent;
        }
    }

    /// Rotates the edge between `id` and its right child (`left`: left child), which takes its
    /// place.
    fn rotate(&mut self, nodes: &mut [Node], id: u32, left_child: bool) {
        let node = nodes[id as usize];
        let child = if left_child { node.left } else { node.right };
        let inner =
            if left_child { nodes[child as usize].right } else { nodes[child as usize].left };
        if left_child {
            nodes[id as usize].left = inner;
            nodes[child as usize].right = id;
        } else {
            nodes[id as usize].right = inner;
            nodes[child as usize].left = id;
        }
        if inner != NIL {
            nodes[inner as usize].parent = id;
        }
        self.replace_child(nodes, node.parent, id, child);
        nodes[id as usize].parent = child;
        if self.augmented {
            nodes[child as usize].min_time = node.min_time;
            self.is_inexact = true;
            self.update(nodes, id);
        }
    }

    fn is_red(nodes: &[Node], id: u32) -> bool {
        id != NIL && nodes[id as usize].red
    }

    fn rebalance_after_insert(&mut self, nodes: &mut [Node], mut id: u32) {
        loop {
            let parent = nodes[id as usize].parent;
            if parent == NIL {
                nodes[id as usize].red = false;
                return;
            }
            if !nodes[parent as usize].red {
                return;
            }
            let grand = nodes[parent as usize].parent;
            let on_left = nodes[grand as usize].left == parent;
            let uncle =
                if on_left { nodes[grand as usize].right } else { nodes[grand as usize].left };
            if Self::is_red(nodes, uncle) {
                nodes[uncle as usize].red = false;
                nodes[parent as usize].red = false;
                nodes[grand as usize].red = true;
                id = grand;
                continue;
            }
            let inner =
                if on_left { nodes[parent as usize].right } else { nodes[parent as usize].left };
            let top = if inner == id {
                self.rotate(nodes, parent, !on_left);
                id
            } else {
                parent
            };
            self.rotate(nodes, grand, on_left);
            nodes[top as usize].red = false;
            nodes[grand as usize].red = true;
            return;
        }
    }

    /// Rebalances after a removal: `id` (possibly none), a child of `parent`, has one black node
    /// fewer on its paths.
    fn rebalance_after_remove(&mut self, nodes: &mut [Node], mut id: u32, mut parent: u32) {
        while parent != NIL && !Self::is_red(nodes, id) {
            let on_left = nodes[parent as usize].left == id;
            let side = |n: &Node| if on_left { n.right } else { n.left };
            let mut sibling = side(&nodes[parent as usize]);
            if nodes[sibling as usize].red {
                self.rotate(nodes, parent, !on_left);
                nodes[sibling as usize].red = false;
                nodes[parent as usize].red = true;
                sibling = side(&nodes[parent as usize]);
            }
            let outer = side(&nodes[sibling as usize]);
            if !Self::is_red(nodes, outer) {
                let s = &nodes[sibling as usize];
                let inner = if on_left { s.left } else { s.right };
                if !Self::is_red(nodes, inner) {
                    nodes[sibling as usize].red = true;
                    id = parent;
                    parent = nodes[id as usize].parent;
                    continue;
                }
                self.rotate(nodes, sibling, on_left);
                nodes[inner as usize].red = false;
                nodes[sibling as usize].red = true;
                sibling = inner;
            }
            let outer = side(&nodes[sibling as usize]);
            self.rotate(nodes, parent, !on_left);
            nodes[sibling as usize].red = nodes[parent as usize].red;
            nodes[parent as usize].red = false;
            nodes[outer as usize].red = false;
            return;
        }
        if id != NIL {
            nodes[id as usize].red = false;
        }
    }

    /// Checks order, colours, links and the least times of subtrees; returns the ids in order.
    #[cfg(test)]
    fn check(&self, nodes: &[Node]) -> Vec<u32> {
        fn walk(nodes: &[Node], id: u32, parent: u32, out: &mut Vec<u32>) -> (u32, u64) {
            if id == NIL {
                return (1, u64::MAX / 2);
            }
            let node = &nodes[id as usize];
            assert_eq!(node.parent, parent);
            assert!(
                !(node.red && (Tree::is_red(nodes, node.left) || Tree::is_red(nodes, node.right)))
            );
            let (left, left_time) = walk(nodes, node.left, id, out);
            out.push(id);
            let (right, right_time) = walk(nodes, node.right, id, out);
            assert_eq!(left, right, "black heights differ at {id}");
            let time = node.time.min(left_time).min(right_time);
            assert_eq!(node.min_time, time);
            (left + u32::from(!node.red), time)
        }
        let mut out = Vec::new();
        walk(nodes, self.root, NIL, &mut out);
        assert!(!Self::is_red(nodes, self.root));
        assert_eq!(self.leftmost, out.first().copied().unwrap_or(NIL));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A tree behaves as a list sorted by (key, order of insertion) under any mix of steps.
        #[test]
        fn behaves_as_a_sorted_list(
            steps in prop::collection::vec((0u32..64, 0u64..24, 0u64..1000, 0u64..50), 1..400),
        ) {
            let mut nodes = vec![Node::NEW; 64];
            let mut tree = Tree::new(true);
            let mut model: Vec<u32> = Vec::new();
            for (id, key, time, slice) in steps {
                if let Some(at) = model.iter().position(|m| *m == id) {
                    if slice % 3 == 0 {
                        tree.set_slice(&mut nodes, id, slice);
                    } else {
                        model.remove(at);
                        tree.remove(&mut nodes, id);
                    }
                } else {
                    nodes[id as usize] = Node::of(key, time, slice);
                    let at = model.partition_point(|m| nodes[*m as usize].key <= key);
                    model.insert(at, id);
                    tree.insert(&mut nodes, id);
                }
                prop_assert_eq!(&tree.check(&nodes), &model);
                for pair in model.windows(2) {
                    prop_assert_eq!(tree.next(&nodes, pair[0]), pair[1]);
                }
            }
        }
    }

    /// Three slices of 100, 0.7 and 3 in order of insertion, with deadlines alike: the third node
    /// becomes the root by rotations and does not learn of the least slice. In guests of 6.18 a
    /// fourth task is then protected for 3 ms.
    #[test]
    fn a_rotation_leaves_slices_behind() {
        let mut nodes = vec![Node::of(1_000, 0, 1_000), Node::of(7, 0, 7), Node::of(30, 0, 30)];
        let mut tree = Tree::new(true);
        for id in 0..3 {
            tree.insert(&mut nodes, id);
        }
        assert_eq!((tree.root, nodes[2].min_slice, nodes[2].max_slice), (2, 30, 0));
        // An insertion that changes nothing in its parent does not reach the root; one that does,
        // here by an earlier time, recomputes it.
        nodes.push(Node::of(9, 0, 9));
        tree.insert(&mut nodes, 3);
        assert_eq!((tree.root, nodes[2].min_slice), (2, 30));
        nodes.push(Node::of(8, u64::MAX, 9));
        tree.insert(&mut nodes, 4);
        assert_eq!((tree.root, nodes[2].min_slice), (2, 7));
    }

    #[test]
    fn keys_wrap() {
        let mut nodes = vec![Node::NEW; 2];
        let mut tree = Tree::new(false);
        nodes[0].key = 5;
        nodes[1].key = 0u64.wrapping_sub(5);
        tree.insert(&mut nodes, 0);
        tree.insert(&mut nodes, 1);
        assert_eq!(tree.leftmost, 1);
        assert_eq!(tree.next(&nodes, 1), 0);
    }
}
