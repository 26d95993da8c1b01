// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which lines of a scheduler's source its runs reach, and how often.
//!
//! clang counts regions of the source before it optimizes, so that lines are exact. Counters belong
//! to the image of a run; they are read when the scheduler ends, and added up over runs.

mod mapping;

use self::mapping::{Count, Function};
use super::image::Image;
use super::object::ObjectFile;
use super::program::RUN_TIME;
use schedlab_scx::inspect::{Coverage, FileCoverage, FunctionCoverage, LineCoverage};
use std::collections::BTreeMap;

/// Options of the compiler that count. Names are not packed, and a loop adds to its counters in
/// each round, so that they are right wherever a run ends.
pub const FLAGS: &[&str] = &[
    "-fprofile-instr-generate",
    "-fcoverage-mapping",
    "-mllvm",
    "-enable-name-compression=false",
    "-mllvm",
    "-do-counter-promotion=false",
];

/// The functions of a program and where their counters are.
#[derive(Debug, Default)]
pub struct Map(Vec<(usize, Function)>);

impl Map {
    /// Reads the objects of a program: functions of the user's files. `own`: the beginning of paths
    /// that are not the user's. An object that is damaged has none.
    pub fn new(objects: &[ObjectFile], own: &str) -> Self {
        let of_users = objects.iter().enumerate().filter(|(index, _)| *index != RUN_TIME);
        let functions = of_users.flat_map(|(index, object)| {
            let functions = mapping::functions(object).unwrap_or_default();
            functions.into_iter().map(move |function| (index, function))
        });
        Self(functions.filter(|(_, function)| !function.file.starts_with(own)).collect())
    }

    /// What the run in `image` has reached.
    pub fn read(&self, image: &Image) -> Coverage {
        let mut files: BTreeMap<&str, Lines> = BTreeMap::new();
        for (object, function) in &self.0 {
            let counts = counts(function, |counter| {
                let (section, offset) = function.counters?;
                image.counter(*object, section, offset.checked_add(8 * counter as u64)?)
            });
            files.entry(&function.file).or_default().add(function, &counts);
        }
        let files = files.into_iter().map(|(path, lines)| lines.coverage(path));
        Coverage { files: files.collect() }
    }
}

/// How often each region of a function ran. `counter` reads a counter; what it does not know is 0.
fn counts(function: &Function, counter: impl Fn(usize) -> Option<u64>) -> Vec<u64> {
    let pairs = &function.pairs;
    let mut values = Values { known: vec![Value::Unknown; pairs.len()], pairs, counter };
    let regions = function.regions.iter();
    regions.map(|region| values.of(region.count).max(0) as u64).collect()
}

/// The value of a pair of counts.
#[derive(Clone, Copy)]
enum Value {
    Unknown,
    /// It is asked for already: its parts come first.
    Waiting,
    Known(i64),
}

/// Computes counts from counters.
struct Values<'f, C> {
    pairs: &'f [[Count; 2]],
    known: Vec<Value>,
    counter: C,
}

impl<C: Fn(usize) -> Option<u64>> Values<'_, C> {
    /// A count, if it needs no pair that is not known yet; otherwise that pair. A pair that waits
    /// for itself, which clang does not make, is 0.
    fn simple(&self, count: Count) -> Result<i64, Count> {
        match count {
            Count::Zero => Ok(0),
            Count::Counter(index) => Ok((self.counter)(index).unwrap_or(0) as i64),
            Count::Sum(index) | Count::Difference(index) => match self.known.get(index) {
                None | Some(Value::Waiting) => Ok(0),
                Some(Value::Known(value)) => Ok(*value),
                Some(Value::Unknown) => Err(count),
            },
        }
    }

    /// A count. The depth of pairs within pairs is not limited, so this does not recur.
    fn of(&mut self, count: Count) -> i64 {
        let mut waiting = Vec::new();
        let mut next = count;
        loop {
            if let Err(Count::Sum(index) | Count::Difference(index)) = self.simple(next) {
                self.known[index] = Value::Waiting;
                waiting.push((next, index));
            }
            let Some(&(pair, index)) = waiting.last() else {
                return self.simple(count).unwrap_or(0);
            };
            let [left, right] = self.pairs[index];
            match (self.simple(left), self.simple(right)) {
                (Ok(left), Ok(right)) => {
                    let is_sum = matches!(pair, Count::Sum(_));
                    let value =
                        if is_sum { left.wrapping_add(right) } else { left.wrapping_sub(right) };
                    self.known[index] = Value::Known(value);
                    waiting.pop();
                    next = Count::Zero;
                }
                (Err(part), _) | (_, Err(part)) => next = part,
            }
        }
    }
}

/// Counts of the lines of a file.
#[derive(Default)]
struct Lines {
    lines: BTreeMap<u32, u64>,
    functions: BTreeMap<(u32, String), FunctionCoverage>,
}

impl Lines {
    /// Adds a function's lines. A line has the highest count of the regions that begin on it and
    /// of the innermost region in which it begins, as `llvm-cov` shows it.
    fn add(&mut self, function: &Function, counts: &[u64]) {
        let mut regions: Vec<_> = function.regions.iter().zip(counts.iter().copied()).collect();
        // An outer region before those in it.
        regions.sort_by_key(|(region, _)| (region.start, std::cmp::Reverse(region.end)));
        let Some((whole, calls)) = regions.first() else { return };
        let first = whole.start.0;
        let last = regions.iter().map(|(region, _)| region.end.0).max().unwrap_or(first);
        let called = self.functions.entry((first, function.name.clone()));
        let called = called.or_insert_with(|| FunctionCoverage {
            name: function.name.clone(),
            line: first,
            last_line: last,
            calls: 0,
        });
        called.calls += calls;
        let mut own: BTreeMap<u32, u64> = BTreeMap::new();
        for (region, count) in &regions {
            for line in region.start.0.saturating_add(1)..=region.end.0 {
                own.insert(line, *count);
            }
        }
        for (region, count) in regions.iter().filter(|(region, _)| !region.is_gap) {
            let most = own.entry(region.start.0).or_default();
            *most = (*count).max(*most);
        }
        for (line, count) in own {
            *self.lines.entry(line).or_default() += count;
        }
    }

    fn coverage(self, path: &str) -> FileCoverage {
        let lines = self.lines.into_iter().map(|(line, count)| LineCoverage { line, count });
        FileCoverage {
            path: path.to_owned(),
            functions: self.functions.into_values().collect(),
            lines: lines.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mapping::Region;
    use super::*;

    fn region(start: (u32, u32), end: (u32, u32), count: Count) -> Region {
        Region { start, end, is_gap: false, count }
    }

    fn function(pairs: Vec<[Count; 2]>, regions: Vec<Region>) -> Function {
        let (name, file) = ("f".into(), "f.c".into());
        Function { name, file, counters: None, pairs, regions }
    }

    /// `if (x) { return 1; } return 2;` over six lines, called ten times, four of them with x.
    #[test]
    fn a_line_has_the_highest_count_of_what_begins_on_it_and_of_what_it_begins_in() {
        let pairs = vec![[Count::Counter(0), Count::Counter(1)]];
        let function = function(
            pairs,
            vec![
                region((1, 10), (6, 2), Count::Counter(0)),
                region((2, 9), (4, 3), Count::Counter(1)),
                Region { is_gap: true, ..region((4, 3), (5, 2), Count::Difference(0)) },
                region((5, 2), (5, 11), Count::Difference(0)),
            ],
        );
        let counts = counts(&function, |index| [10, 4].get(index).copied());
        assert_eq!(counts, [10, 4, 6, 6]);
        let mut lines = Lines::default();
        lines.add(&function, &counts);
        lines.add(&function, &counts);
        let file = lines.coverage("f.c");
        let found: Vec<_> = file.lines.iter().map(|of| (of.line, of.count)).collect();
        assert_eq!(found, [(1, 20), (2, 20), (3, 8), (4, 8), (5, 12), (6, 20)]);
        let [FunctionCoverage { line: 1, last_line: 6, calls: 20, .. }] = file.functions[..] else {
            panic!("{:?}", file.functions)
        };
    }

    #[test]
    fn functions_of_the_compiler_have_names_files_and_counters() {
        if crate::find_clang().is_err() {
            return schedlab_testing::skip("no clang in PATH");
        }
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("x.bpf.c");
        let text = "static int used(int x)\n{\n\treturn x ? 1 : 2;\n}\n\n\
                    static int unused(void)\n{\n\treturn 3;\n}\n\n\
                    SEC(\"struct_ops/f\") int f(int x)\n{\n\treturn used(x);\n}\n";
        std::fs::write(&source, format!("#include <scx/common.bpf.h>\n{text}")).unwrap();
        let options = crate::CompileOptions { is_counted: true, ..Default::default() };
        let compiled = crate::compile::compile(&source, &options).unwrap();
        let Map(functions) = Map::new(&compiled.objects, crate::compile::OWN_FILES);
        let found: Vec<_> = functions
            .iter()
            .map(|(_, of)| (of.name.as_str(), of.regions[0].start.0, of.counters.is_some()))
            .collect();
        assert_eq!(found.len(), 3, "{found:?}");
        for expected in [("used", 3, true), ("f", 13, true), ("unused", 8, false)] {
            assert!(found.contains(&expected), "{expected:?}: {found:?}");
        }
        assert!(functions.iter().all(|(_, of)| of.file == source.to_str().unwrap()));
    }

    #[test]
    fn pairs_in_a_circle_and_long_chains_end() {
        let circle = vec![[Count::Sum(1), Count::Counter(0)], [Count::Sum(0), Count::Sum(7)]];
        let region = region((1, 1), (1, 2), Count::Sum(0));
        assert_eq!(counts(&function(circle, vec![region.clone()]), |_| Some(3)), [3]);
        let chain = |index: usize| [Count::Sum(index + 1), Count::Counter(0)];
        let chain: Vec<_> = (0..100_000).map(chain).collect();
        assert_eq!(counts(&function(chain, vec![region]), |_| Some(1)), [100_000]);
    }
}
