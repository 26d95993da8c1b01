// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs as trees of operations and loops, so that parts can be added and removed.

use schedlab_model::program::ProgramBuilder;
use schedlab_model::{LoopCount, Op, Program};

/// An operation, or a loop with its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// An operation that is not the begin or end of a loop.
    Op(Op),
    /// A loop.
    Loop(LoopCount, Vec<Node>),
}

/// The tree of a checked program.
pub fn nodes(program: &Program) -> Vec<Node> {
    let mut open: Vec<(LoopCount, Vec<Node>)> = Vec::new();
    let mut nodes = Vec::new();
    for op in &program.ops {
        match op {
            Op::LoopBegin { count, .. } => open.push((*count, std::mem::take(&mut nodes))),
            Op::LoopEnd { .. } => {
                if let Some((count, outer)) = open.pop() {
                    let body = std::mem::replace(&mut nodes, outer);
                    nodes.push(Node::Loop(count, body));
                }
            }
            op => nodes.push(Node::Op(op.clone())),
        }
    }
    nodes
}

/// The program of a tree.
pub fn program(nodes: &[Node]) -> Program {
    let mut builder = ProgramBuilder::new();
    append(&mut builder, nodes);
    builder.build()
}

fn append(builder: &mut ProgramBuilder, nodes: &[Node]) {
    for node in nodes {
        match node {
            Node::Op(op) => {
                builder.op(op.clone());
            }
            Node::Loop(count, body) => {
                builder.begin_loop(*count);
                append(builder, body);
                builder.end_loop();
            }
        }
    }
}

/// Calls `f` for every operation of the tree, in order.
pub fn each_op(nodes: &mut [Node], f: &mut dyn FnMut(&mut Op)) {
    for node in nodes {
        match node {
            Node::Op(op) => f(op),
            Node::Loop(_, body) => each_op(body, f),
        }
    }
}

/// Removes the operations that `is` names.
pub fn remove_ops(nodes: &mut Vec<Node>, is: &dyn Fn(&Op) -> bool) {
    nodes.retain(|node| !matches!(node, Node::Op(op) if is(op)));
    for node in nodes {
        if let Node::Loop(_, body) = node {
            remove_ops(body, is);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_gives_its_program_back() {
        let program_of = ProgramBuilder::new()
            .begin_loop(LoopCount::Forever)
            .run(1)
            .begin_loop(LoopCount::Times(3))
            .sleep(2)
            .end_loop()
            .end_loop()
            .run(4)
            .build();
        let tree = nodes(&program_of);
        assert_eq!(tree.len(), 2);
        assert_eq!(program(&tree), program_of);
    }
}
