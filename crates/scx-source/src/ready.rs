// SPDX-License-Identifier: MIT OR Apache-2.0
//! A setup for one machine: what a scheduler's user program would set, as numbers.
//!
//! The simulator and the loader of a kernel apply the same one, so a scheduler starts from the same
//! state in every lane.

/// A setup whose words are resolved for one machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct ReadySetup {
    /// Where it comes from: a file, or the name of a built-in one.
    pub origin: String,
    /// Whether parts that the scheduler lacks are left out. A built-in setup serves several
    /// versions of a scheduler.
    pub is_lenient: bool,
    /// Flags of the scheduler (`SCX_OPS_...`) that are added to those of the source.
    pub flags: Vec<String>,
    /// Values of variables by path ([`setup_path`]), in the order in which they are set.
    pub variables: Vec<(String, SetupValue)>,
    /// Maps of maps of which each empty place gets a map of its own.
    pub inner_maps: Vec<String>,
    /// Elements of maps.
    pub elements: Vec<SetupElement>,
    /// The arena library; `None`: it is not set up.
    pub arena: Option<ArenaSetup>,
    /// Programs that are run, in this order.
    pub runs: Vec<SetupRun>,
    /// The CPU that executes `ops.init`, and the programs that name none; `None`: any.
    pub init_cpu: Option<u32>,
}

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum SetupValue {
    /// A number.
    Number(i128),
    /// Several values.
    List(Vec<SetupValue>),
}

/// An element of a map.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct SetupElement {
    /// The map.
    pub map: String,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; empty: only `members` are set.
    pub value: Vec<u8>,
    /// Parts of the value by path, in the order in which they are set.
    pub members: Vec<(String, SetupValue)>,
    /// The CPU whose copy is set, in a map with a copy for each.
    pub cpu: u32,
}

/// The machine as the arena library of the scx schedulers wants it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct ArenaSetup {
    /// Nodes, most caches of a node, most cores of a cache, most CPUs of a core.
    pub most: [u32; 4],
    /// Number and CPUs (words of a mask) of the machine and of each part, from the top down.
    pub spans: Vec<(u32, Vec<u64>)>,
}

/// A run of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct SetupRun {
    /// The function (`SEC("syscall")`).
    pub program: String,
    /// A variable: the program is not run for a version of the scheduler that lacks it.
    pub needs: Option<String>,
    /// Its argument.
    pub context: Vec<u8>,
    /// The CPU that executes it; `None`: that of `ops.init`.
    pub cpu: Option<u32>,
    /// Whether it is run after the scheduler was attached, not before.
    pub attached: bool,
}

/// Names and numbers of the arena library (rust/scx_arena of the scx repository), whose user half
/// is `ArenaLib::setup`.
pub mod arena {
    /// The type of a task's context in schedulers that use the library.
    pub const TASK_CONTEXT: &str = "task_ctx";
    /// The name of that type in the scheduler called `scheduler`, if it is not [`TASK_CONTEXT`].
    pub fn own_task_context(scheduler: &str) -> String {
        format!("{scheduler}_{TASK_CONTEXT}")
    }

    /// The program that prepares the library: pages, size of a context, result.
    pub const INIT: &str = "arena_init";
    /// Pages that the library takes from the map at a time.
    pub const STATIC_PAGES: u64 = 8;
    /// The program that is told how many parts the machine has, where there is one.
    pub const TOPOLOGY_INIT: &str = "arena_topology_init";
    /// The program that allocates a mask of CPUs: the address of its words.
    pub const ALLOC_MASK: &str = "arena_alloc_mask";
    /// The program that adds a part of the machine: mask, size of its data, number.
    pub const NODE_INIT: &str = "arena_topology_node_init";
}

/// A step of a path to a part of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupStep<'t> {
    /// A member of a struct.
    Member(&'t str),
    /// An element of an array.
    Index(u64),
    /// A value for each element.
    Every,
    /// Every element has this value.
    All,
}

/// Splits `name.member[3][*]` into the name and the steps.
///
/// # Errors
/// The text is no path.
pub fn setup_path(path: &str) -> Result<(&str, Vec<SetupStep<'_>>), String> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut rest) = path.split_at(end);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let wrong = || format!("{path:?} is no path such as a.b[3] or a[*].b");
        if let Some(member) = rest.strip_prefix('.') {
            let end = member.find(['.', '[']).unwrap_or(member.len());
            steps.push(SetupStep::Member(&member[..end]));
            rest = &member[end..];
        } else {
            let (index, after) =
                rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(wrong)?;
            steps.push(match index {
                "*" => SetupStep::Every,
                "all" => SetupStep::All,
                _ => SetupStep::Index(index.parse().map_err(|_| wrong())?),
            });
            rest = after;
        }
    }
    Ok((name, steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_parts_of_variables() {
        use SetupStep::{All, Every, Index, Member};
        let path = setup_path("a.b[3][*].c[all]").unwrap();
        assert_eq!(path, ("a", vec![Member("b"), Index(3), Every, Member("c"), All]));
        assert!(setup_path("a[x]").unwrap_err().contains("is no path such as"));
    }
}
