// SPDX-License-Identifier: MIT OR Apache-2.0
//! The setup of a scheduler: what its user program would write into its variables and maps and
//! which of its programs it would run, between loading and attaching it.
//!
//! A setup is a file of data. Values that depend on the machine are words, such as `"llcs"` (their
//! number) and `"llc of cpu"` (a number for each CPU). It comes from the command line, from a file
//! next to the scheduler, or from this program ([`KNOWN`]) by the scheduler's name. Described in
//! docs/reference/sched-ext-setup.md.

use super::error::NativeError;
use super::setup_words::{Machine, Value};
use schedlab_model::machine::Topology;
use schedlab_scx::OpsFault;
use schedlab_scx_source::setup_next_to;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Setups of published schedulers: the scheduler's name (`sched_ext_ops.name`), the text.
const KNOWN: &[(&str, &str)] = &[
    ("beerland", include_str!("../setups/beerland.toml")),
    ("bpfland", include_str!("../setups/bpfland.toml")),
    ("cake", include_str!("../setups/cake.toml")),
    ("chaos", include_str!("../setups/chaos.toml")),
    ("cosmos", include_str!("../setups/cosmos.toml")),
    ("flash", include_str!("../setups/flash.toml")),
    ("flatcg", include_str!("../setups/flatcg.toml")),
    ("forge", include_str!("../setups/forge.toml")),
    ("lavd", include_str!("../setups/lavd.toml")),
    ("layered", include_str!("../setups/layered.toml")),
    ("mitosis", include_str!("../setups/mitosis.toml")),
    ("p2dq", include_str!("../setups/p2dq.toml")),
    ("pair", include_str!("../setups/pair.toml")),
    ("qmap", include_str!("../setups/qmap.toml")),
    ("rlfifo", include_str!("../setups/user-space.toml")),
    ("rustland", include_str!("../setups/user-space.toml")),
    ("rusty", include_str!("../setups/rusty.toml")),
    ("tickless", include_str!("../setups/tickless.toml")),
    ("userland", include_str!("../setups/user-space.toml")),
];

/// A setup as it is written.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// Why the scheduler cannot be simulated.
    pub refuse: Option<String>,
    /// Flags of the scheduler (`SCX_OPS_...`) that are added to those of the source.
    pub flags: Vec<String>,
    /// Values of variables, by name or path: `a.b`, `a[3]`. `a[*].b` takes a value for each
    /// element, `a[all].b` one for all.
    pub variables: BTreeMap<String, Value>,
    /// Maps of maps of which each empty place gets a map of its own.
    pub inner_maps: Vec<String>,
    /// Elements of maps.
    pub elements: Vec<Element>,
    /// Programs that are run, in this order.
    pub runs: Vec<ProgramRun>,
    /// The CPU that executes `ops.init`: a number or a word.
    pub init_cpu: Option<Value>,
    /// Whether the arena library of the scx schedulers is set up first.
    pub arena: bool,
    /// Where the values come from if a user program was recorded (`schedlab scx setup`).
    pub recorded: Option<Recorded>,
    /// Whether it is one of [`KNOWN`]: other versions of a scheduler may lack what it names.
    #[serde(skip)]
    pub is_known: bool,
    /// Where it comes from: a file, or `built-in: NAME`.
    #[serde(skip)]
    pub origin: String,
}

/// The origin of recorded values: they are right for one machine.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The user program and its arguments.
    pub command: String,
    /// The release of the kernel whose types the user program saw.
    pub kernel: String,
    /// Core number of each CPU.
    pub core: Vec<u32>,
    /// Last-level-cache number of each CPU.
    pub llc: Vec<u32>,
    /// NUMA node of each CPU.
    pub node: Vec<u32>,
}

impl Recorded {
    /// A fault of recorded values, with its most likely cause.
    pub fn explain(&self, fault: &OpsFault) -> OpsFault {
        OpsFault(format!(
            "{}. It was recorded from {}: use a program that was built from this version of \
             the scheduler, and the headers of that build (--scx-include)",
            fault.0, self.command
        ))
    }

    /// Refuses another machine than the recorded one.
    pub fn check(&self, found: &Topology) -> Result<(), String> {
        let [core, llc, node] = [&self.core, &self.llc, &self.node].map(Vec::clone);
        let recorded = Topology { core, llc, node };
        if recorded == *found {
            return Ok(());
        }
        let same = match (parts(&recorded), parts(found)) {
            (one, other) if one == other => " with other numbers",
            _ => "",
        };
        Err(format!(
            "the setup was recorded for a machine of {}; this machine has {}{same}. Record it for \
             this machine: schedlab scx setup --machine MACHINE --cpus {} -- {}",
            parts(&recorded),
            parts(found),
            found.nr_cpus(),
            self.command
        ))
    }
}

/// The numbers of a machine's parts in words.
fn parts(topology: &Topology) -> String {
    let count = |level: &[u32], one: &str, several: &str| {
        let nr = level.iter().collect::<BTreeSet<_>>().len();
        format!("{nr} {}", if nr == 1 { one } else { several })
    };
    format!(
        "{} CPUs, {}, {} and {}",
        topology.nr_cpus(),
        count(&topology.core, "core", "cores"),
        count(&topology.llc, "last-level cache", "last-level caches"),
        count(&topology.node, "node", "nodes")
    )
}

/// An element of a map.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Element {
    /// The map.
    pub map: String,
    /// `cpu`, `core`, `llc` or `node`: there is an element for each one.
    pub each: Option<String>,
    /// Words of the key.
    pub key: Vec<Word>,
    /// Words of the value; empty: only `members` are set.
    #[serde(default)]
    pub value: Vec<Word>,
    /// Parts of the value, by path: `.a.b`, `.a[3]`. In a map with a copy for each CPU, `each =
    /// "cpu"` sets each one's.
    #[serde(default)]
    pub members: BTreeMap<String, Value>,
    /// The CPU whose copy is set, in a map with a copy for each: a number or a word.
    pub cpu: Option<Value>,
}

/// A run of a program.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRun {
    /// The function (`SEC("syscall")`).
    pub program: String,
    /// `cpu`, `core`, `llc` or `node`: it is run for each one.
    pub each: Option<String>,
    /// A variable: the program is not run for a version of the scheduler that lacks it.
    pub needs: Option<String>,
    /// Words of its argument.
    #[serde(default)]
    pub context: Vec<Word>,
    /// The CPU that executes it: a number or a word. Without it, the one that executes `ops.init`.
    pub cpu: Option<Value>,
    /// Whether it is run after the scheduler was attached, not before.
    #[serde(default)]
    pub attached: bool,
}

/// A typed word: `["u32", 3]`.
pub type Word = (WordType, Value);

/// The type of a word in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum WordType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
}

impl WordType {
    fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 => 8,
        }
    }
}

/// Lays words out as C lays out a struct of them.
pub fn layout(words: &[Word], machine: &Machine<'_>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for (of, value) in words {
        let number = value.number(machine)?;
        bytes.resize(bytes.len().div_ceil(of.size()) * of.size(), 0);
        bytes.extend_from_slice(&number.to_le_bytes()[..of.size()]);
    }
    let widest = words.iter().map(|(of, _)| of.size()).max().unwrap_or(1);
    bytes.resize(bytes.len().div_ceil(widest) * widest, 0);
    Ok(bytes)
}

impl Setup {
    /// Reads a setup. `origin` is where it comes from.
    pub(super) fn parse(text: &str, origin: &str) -> Result<Self, NativeError> {
        toml::from_str(text)
            .map_err(|error| NativeError::Refused(format!("the setup {origin}: {error}")))
    }

    /// The setup of the scheduler called `name`: that in `file`, or next to `source`, or of
    /// [`KNOWN`]; empty if there is none.
    pub fn of(name: &str, source: &Path, file: Option<&Path>) -> Result<Self, NativeError> {
        let path = file.map(Path::to_owned).or_else(|| setup_next_to(source));
        if let Some(path) = path {
            let origin = path.display().to_string();
            let text = std::fs::read_to_string(&path)
                .map_err(|error| NativeError::Refused(format!("the setup {origin}: {error}")))?;
            let setup = Self::parse(&text, &origin)?;
            return Ok(Self { origin, ..setup });
        }
        match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => {
                let origin = format!("built-in: {name}");
                Ok(Self { is_known: true, origin, ..Self::parse(text, name)? })
            }
            None => Ok(Self::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_setup_can_be_read() {
        for (name, text) in KNOWN {
            assert_ne!(Setup::parse(text, name).unwrap(), Setup::default(), "{name}");
        }
        let error = Setup::parse("variable = 1", "x.toml").unwrap_err().to_string();
        assert!(error.starts_with("the setup x.toml: ") && error.contains("variable"), "{error}");
    }

    #[test]
    fn the_known_setups_are_those_of_schedulers_that_need_one() {
        let applied =
            |(name, text): &&(&str, &str)| Setup::parse(text, name).unwrap().refuse.is_none();
        let known = KNOWN.iter().filter(applied).map(|(name, _)| *name);
        // These two need one in Linux 7.2, and none before.
        let known: Vec<&str> = known.filter(|name| !["flatcg", "qmap"].contains(name)).collect();
        assert_eq!(known, schedlab_scx_source::SET_UP_BY_USER_PROGRAM);
    }

    #[test]
    fn a_recorded_setup_is_for_its_own_machine() {
        let text = "[recorded]\ncommand = './scx_x -s 5'\nkernel = '6.18'\ncore = [0, 1, 0, 1]\n\
                    llc = [0, 0, 0, 0]\nnode = [0, 0, 0, 0]\n";
        let recorded = Setup::parse(text, "x.toml").unwrap().recorded.unwrap();
        let mut topology = Topology::flat(4);
        let error = recorded.check(&topology).unwrap_err();
        assert!(error.contains("4 CPUs, 2 cores, 1 last-level cache and 1 node; this"), "{error}");
        assert!(error.ends_with("--cpus 4 -- ./scx_x -s 5"), "{error}");
        topology.core = vec![0, 0, 1, 1];
        assert!(recorded.check(&topology).unwrap_err().contains(" with other numbers. "));
        topology.core = vec![0, 1, 0, 1];
        assert_eq!(recorded.check(&topology), Ok(()));
    }

    #[test]
    fn words_are_laid_out_as_in_c() {
        let topology = Topology::flat(3);
        let machine = Machine::new(&topology, 250);
        let text =
            "runs = [{ program = 'p', context = [['u8', 1], ['i32', -1], ['u16', 'cpus']] }]";
        let setup = Setup::parse(text, "x").unwrap();
        let bytes = layout(&setup.runs[0].context, &machine).unwrap();
        assert_eq!(bytes, [1, 0, 0, 0, 255, 255, 255, 255, 3, 0, 0, 0]);
    }
}
