// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values in a setup: numbers, and words for what depends on the machine.

use schedlab_model::CpuId;
use schedlab_model::machine::Topology;
use schedlab_scx_source::SetupValue as Known;
use serde::Deserialize;
use std::collections::BTreeSet;

/// A value as it is written.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(i64),
    /// A word.
    Word(String),
    /// Several values.
    List(Vec<Value>),
}

/// A part of a machine of which there are several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A logical CPU.
    Cpu,
    /// A core.
    Core,
    /// A last-level cache.
    Llc,
    /// A NUMA node.
    Node,
}

impl Part {
    /// The part called `name`.
    pub fn of(name: &str) -> Result<Self, String> {
        match name {
            "cpu" => Ok(Self::Cpu),
            "core" => Ok(Self::Core),
            "llc" => Ok(Self::Llc),
            "node" => Ok(Self::Node),
            _ => Err(format!("no part {name:?}: cpu, core, llc, node are possible")),
        }
    }
}

/// The machine of a run, and the part that a repeated entry of the setup is about.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    topology: &'a Topology,
    hz: u32,
    own: Option<(Part, u32)>,
}

impl<'a> Machine<'a> {
    /// A machine with `hz` ticks a second.
    pub fn new(topology: &'a Topology, hz: u32) -> Self {
        Self { topology, hz, own: None }
    }

    /// The machine as seen from each `part`, in the order of their numbers.
    pub fn each(&self, part: Part) -> Vec<Self> {
        let ids = self.ids(part).into_iter();
        ids.map(|id| Self { own: Some((part, id)), ..*self }).collect()
    }

    /// The CPU that a repeated entry is about; the first one if it is about none.
    pub fn cpu(&self) -> u32 {
        match self.own {
            Some((Part::Cpu, id)) => id,
            _ => 0,
        }
    }

    fn level(&self, part: Part) -> Vec<u32> {
        match part {
            Part::Cpu => (0..self.topology.nr_cpus()).collect(),
            Part::Core => self.topology.core.clone(),
            Part::Llc => self.topology.llc.clone(),
            Part::Node => self.topology.node.clone(),
        }
    }

    /// Numbers of all parts.
    pub fn ids(&self, part: Part) -> BTreeSet<u32> {
        self.level(part).into_iter().collect()
    }

    /// CPUs of a part.
    pub fn cpus(&self, part: Part, id: u32) -> Vec<CpuId> {
        let level = self.level(part).into_iter().enumerate();
        level.filter(|(_, own)| *own == id).map(|(cpu, _)| CpuId(cpu as u32)).collect()
    }

    /// Most `inner` parts of an `outer` one.
    pub fn most(&self, inner: Part, outer: Part) -> u32 {
        let (inner, outer) = (self.level(inner), self.level(outer));
        let of = |id: u32| {
            let own = inner.iter().zip(&outer).filter(|(_, outer)| **outer == id);
            own.map(|(inner, _)| inner).collect::<BTreeSet<_>>().len() as u32
        };
        outer.iter().map(|id| of(*id)).max().unwrap_or(0)
    }

    /// A mask of CPUs as words.
    pub fn mask(&self, cpus: &[CpuId]) -> Vec<u64> {
        let mut words = vec![0u64; self.topology.nr_cpus().div_ceil(64) as usize];
        for cpu in cpus {
            words[cpu.index() / 64] |= 1 << (cpu.0 % 64);
        }
        words
    }

    /// `what` about the part `id`.
    fn about(&self, what: &str, part: Part, id: u32) -> Result<Known, String> {
        let cpus = self.cpus(part, id);
        let first = cpus.first().map_or(0, |cpu| cpu.index());
        let number = |number: u32| Ok(Known::Number(i128::from(number)));
        match what {
            "id" => number(id),
            "true" => number(1),
            "mask" => {
                let words = self.mask(&cpus).into_iter();
                Ok(Known::List(words.map(|word| Known::Number(i128::from(word))).collect()))
            }
            "cpus" => number(cpus.len() as u32),
            "first" => number(first as u32),
            "sibling" | "other" => {
                let core = self.cpus(Part::Core, self.topology.core[first]);
                let other = core.into_iter().find(|cpu| cpu.index() != first);
                let none = if what == "other" { -1 } else { first as i128 };
                Ok(Known::Number(other.map_or(none, |cpu| i128::from(cpu.0))))
            }
            "others" | "nr_others" | "with_others" => {
                let own = (what == "with_others").then_some(id).into_iter();
                let others = self.ids(part).into_iter().filter(|other| *other != id);
                let others: Vec<Known> =
                    own.chain(others).map(|other| Known::Number(i128::from(other))).collect();
                match what {
                    "nr_others" => number(others.len() as u32),
                    _ => Ok(Known::List(others)),
                }
            }
            "opposite" | "pair" | "half" if part == Part::Cpu => {
                let nr = self.topology.nr_cpus();
                let half = nr / 2;
                match what {
                    _ if !nr.is_multiple_of(2) => {
                        Err(format!("pairs of CPUs need an even number, this machine has {nr}"))
                    }
                    "opposite" => number((id + half) % nr),
                    "pair" => number(id % half),
                    _ => number(id / half),
                }
            }
            "core" | "llc" | "node" => {
                number(self.level(Part::of(what)?).get(first).copied().unwrap_or(0))
            }
            _ => Err(format!(
                "no word {what:?}: id, first, cpus, mask, sibling, other, others, with_others, \
                 nr_others, true, core, llc, node, and of CPUs opposite, pair, half are possible"
            )),
        }
    }

    /// The value of a word.
    fn word(&self, word: &str) -> Result<Known, String> {
        let count = |part: Part| Ok(Known::Number(self.ids(part).len() as i128));
        let threads = self.most(Part::Cpu, Part::Core);
        match word {
            "cpus" => return count(Part::Cpu),
            "cores" => return count(Part::Core),
            "llcs" => return count(Part::Llc),
            "nodes" => return count(Part::Node),
            "smt" => return Ok(Known::Number(i128::from(threads > 1))),
            "threads" => return Ok(Known::Number(i128::from(threads))),
            "last_cpu" => return Ok(Known::Number(i128::from(self.topology.nr_cpus()) - 1)),
            "hz" => return Ok(Known::Number(i128::from(self.hz))),
            "tick_ns" => return Ok(Known::Number(1_000_000_000 / i128::from(self.hz.max(1)))),
            "all8" => {
                let all: Vec<CpuId> = self.level(Part::Cpu).into_iter().map(CpuId).collect();
                let words = self.mask(&all).into_iter().flat_map(u64::to_le_bytes);
                return Ok(Known::List(words.map(|byte| Known::Number(byte.into())).collect()));
            }
            "one_llc" => {
                let nr = self.ids(Part::Llc).len();
                return Ok(Known::Number(i128::from(nr == 1)));
            }
            "one_word" => return Ok(Known::Number(i128::from(self.topology.nr_cpus() <= 64))),
            _ => {}
        }
        if let Some((part, id)) = self.own {
            let what = word.strip_prefix("own ").unwrap_or(word);
            return self.about(what, part, id);
        }
        let Some((what, part)) = word.split_once(" of ") else {
            return Err(format!(
                "no word {word:?}: cpus, cores, llcs, nodes, last_cpu, smt, threads, hz, tick_ns, \
                 one_llc, one_word, all8, and `X of cpu` are possible"
            ));
        };
        let part = Part::of(part)?;
        let ids = self.ids(part).into_iter();
        ids.map(|id| self.about(what, part, id)).collect::<Result<_, _>>().map(Known::List)
    }
}

impl Value {
    /// The value on a machine.
    pub fn known(&self, machine: &Machine<'_>) -> Result<Known, String> {
        Ok(match self {
            Self::Bool(value) => Known::Number(i128::from(*value)),
            Self::Number(value) => Known::Number(i128::from(*value)),
            Self::Word(word) => machine.word(word)?,
            Self::List(values) => {
                let known: Result<Vec<Known>, String> =
                    values.iter().map(|value| value.known(machine)).collect();
                Known::List(known?)
            }
        })
    }

    /// The number on a machine.
    pub fn number(&self, machine: &Machine<'_>) -> Result<i128, String> {
        match self.known(machine)? {
            Known::Number(number) => Ok(number),
            Known::List(_) => Err(format!("{self:?} is a list where a number is wanted")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::machine::Shape;

    /// Two nodes of two caches of two cores of two threads.
    fn shape() -> Shape {
        Shape {
            nodes: 2,
            llcs_per_node: 2,
            cores_per_llc: 2,
            threads_per_core: 2,
            siblings_apart: true,
        }
    }

    fn topology() -> Topology {
        Topology::regular(shape())
    }

    fn known(word: &str, machine: &Machine<'_>) -> Known {
        Value::Word(word.into()).known(machine).unwrap()
    }

    fn list(numbers: &[i128]) -> Known {
        Known::List(numbers.iter().copied().map(Known::Number).collect())
    }

    fn pairs(of: impl Fn(i128) -> i128) -> Vec<i128> {
        (0..16).map(of).collect()
    }

    #[test]
    fn words_describe_the_machine() {
        let topology = topology();
        let machine = Machine::new(&topology, 250);
        let counts = ["cpus", "cores", "llcs", "nodes", "smt", "threads", "hz", "last_cpu"];
        let counts: Vec<Known> = counts.iter().map(|word| known(word, &machine)).collect();
        assert_eq!(Known::List(counts), list(&[16, 8, 4, 2, 1, 2, 250, 15]));
        assert_eq!(known("one_llc", &machine), Known::Number(0));
        let one = Topology::regular(Shape { nodes: 1, llcs_per_node: 1, ..shape() });
        assert_eq!(known("one_llc", &Machine::new(&one, 250)), Known::Number(1));
        assert_eq!(known("node of llc", &machine), list(&[0, 0, 1, 1]));
        assert_eq!(known("cpus of node", &machine), list(&[8, 8]));
        assert_eq!(
            known("mask of llc", &machine),
            Known::List(vec![list(&[0x0303]), list(&[0x0c0c]), list(&[0x3030]), list(&[0xc0c0]),])
        );
        let Known::List(siblings) = known("sibling of cpu", &machine) else { panic!() };
        assert_eq!((&siblings[0], &siblings[9]), (&Known::Number(8), &Known::Number(1)));
        assert_eq!(known("opposite of cpu", &machine), list(&pairs(|cpu| (cpu + 8) % 16)));
        assert_eq!(known("pair of cpu", &machine), list(&pairs(|cpu| cpu % 8)));
        assert_eq!(known("half of cpu", &machine), list(&pairs(|cpu| cpu / 8)));
        let odd = Topology::flat(3);
        let error = Value::Word("pair of cpu".into()).known(&Machine::new(&odd, 250)).unwrap_err();
        assert!(error.contains("need an even number, this machine has 3"), "{error}");
        let error = Value::Word("size of cpu".into()).known(&machine).unwrap_err();
        assert!(error.contains("no word \"size\": id, first"), "{error}");
    }

    #[test]
    fn repeated_entries_see_their_own_part() {
        let topology = topology();
        let machine = Machine::new(&topology, 250);
        let third = machine.each(Part::Llc)[2];
        assert_eq!(known("id", &third), Known::Number(2));
        assert_eq!(known("node", &third), Known::Number(1));
        assert_eq!(known("llcs", &third), Known::Number(4));
    }
}
