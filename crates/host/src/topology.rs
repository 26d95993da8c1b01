// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine as a machine file, so that a simulation can be run on its model.
//!
//! Source: /sys/devices/system/cpu and /sys/devices/system/node (Linux
//! Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-node). CPUs
//! that this process may use are numbered from 0 in their order. A core's own cache is the largest
//! that no other core shares. Left out: frequency, memory beyond caches, distances between nodes.

use crate::machine::{info, parse_cpu_list, read, usable_cpus};
use schedlab_model::{CpuId, CpuMask};
use schedlab_run::MachineFile;
use schedlab_run::machine::{CachesTable, TopologyTable};
use std::path::Path;

/// Assumed speed of a thread with a busy sibling, in thousandths.
const SMT_SPEED_ASSUMED: u32 = 620;

/// One cache of a CPU.
struct CacheInfo {
    level: u32,
    bytes: u64,
    cpus: CpuMask,
}

/// This machine, with the CPUs that the process may use.
pub fn this_machine() -> Result<MachineFile, String> {
    let cpus = usable_cpus();
    let mut file = read_from(Path::new("/sys/devices/system"), &cpus)?;
    let known = info(&cpus);
    file.summary = format!("this machine: {}, kernel {}", known.cpu_model, known.kernel);
    file.hz = known.hz;
    if known.hz.is_none() {
        file.assumptions.push("the kernel's tick is not readable: HZ=250".into());
    }
    let built = |name: &str| known.setting(name) == Some("y");
    file.preempt = known.setting("debug.sched.preempt").and_then(chosen).or_else(|| {
        let models = [
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
            ("CONFIG_PREEMPT_NONE", "none"),
            ("CONFIG_PREEMPT", "full"),
        ];
        models.into_iter().find(|(name, _)| built(name)).map(|(_, model)| model.to_owned())
    });
    Ok(file)
}

/// The word in parentheses of `none voluntary (full) lazy`.
fn chosen(text: &str) -> Option<String> {
    let word = text.split_once('(')?.1.split_once(')')?.0;
    Some(word.to_owned())
}

/// The machine described below `root`, reduced to `cpus`.
pub fn read_from(root: &Path, cpus: &CpuMask) -> Result<MachineFile, String> {
    let mut file = MachineFile {
        name: "host".into(),
        sources: vec![format!("{} of this machine, CPUs {cpus}", root.display())],
        ..MachineFile::default()
    };
    let mut topology = TopologyTable::default();
    let mut known = Known::default();
    for cpu in cpus.iter() {
        let dir = root.join("cpu").join(format!("cpu{cpu}"));
        let core = siblings(&dir, cpu);
        let caches = caches(&dir);
        let node = node_of(root, cpu);
        let package = read(dir.join("topology/physical_package_id")).unwrap_or_default();
        let outer = caches.iter().max_by_key(|cache| cache.level);
        // If no cache is listed, the CPUs of a package share one.
        let llc = match outer {
            Some(cache) => format!("{} of node {node}", cache.cpus),
            None => format!("package {package} of node {node}"),
        };
        topology.core.push(number(&mut known.cores, format!("{core} in {llc}")));
        topology.llc.push(number(&mut known.llcs, llc));
        topology.node.push(number(&mut known.nodes, node));
        if known.sizes.is_none() {
            let own = caches.iter().filter(|c| c.cpus.and_not(&core).is_empty());
            let own = own.max_by_key(|cache| cache.bytes);
            known.sizes = Some((
                own.filter(|own| outer.is_none_or(|o| o.level != own.level)).map_or(0, |c| c.bytes),
                outer.map(|cache| cache.bytes),
            ));
        }
    }
    if topology.core.is_empty() {
        return Err(format!("no CPU of {cpus} can be read below {}", root.display()));
    }
    let (core_bytes, llc_bytes) = known.sizes.unwrap_or((0, None));
    let mut table = CachesTable { core_bytes: Some(core_bytes), ..CachesTable::default() };
    match llc_bytes {
        Some(bytes) => table.llc_bytes = Some(bytes),
        None => {
            table.llc_bytes = Some(0);
            file.assumptions.push("no cache is told of: none is modelled".into());
        }
    }
    file.caches = table;
    if known.cores.len() < topology.core.len() {
        file.smt_speed = vec![SMT_SPEED_ASSUMED];
        file.assumptions.push(format!(
            "a thread beside a busy sibling does {SMT_SPEED_ASSUMED} thousandths of its work"
        ));
    }
    file.assumptions.push("caches refill at the default speeds".into());
    file.topology = topology;
    Ok(file)
}

/// Parts found so far, in the order in which they were found.
#[derive(Default)]
struct Known {
    cores: Vec<String>,
    llcs: Vec<String>,
    nodes: Vec<String>,
    /// Size (bytes) of the first CPU's own cache, and of its last-level cache.
    sizes: Option<(u64, Option<u64>)>,
}

/// The number of `part` among those found.
fn number(seen: &mut Vec<String>, part: String) -> u32 {
    let index = seen.iter().position(|known| *known == part).unwrap_or_else(|| {
        seen.push(part);
        seen.len() - 1
    });
    index as u32
}

/// Hardware threads of a CPU's core; the older name of the file is the fallback.
fn siblings(dir: &Path, cpu: CpuId) -> CpuMask {
    let list = ["core_cpus_list", "thread_siblings_list"]
        .into_iter()
        .find_map(|name| read(dir.join("topology").join(name)));
    let mask = list.map_or(CpuMask::only(cpu), |text| parse_cpu_list(&text));
    if mask.contains(cpu) { mask } else { CpuMask::only(cpu) }
}

/// Data and unified caches of a CPU.
fn caches(dir: &Path) -> Vec<CacheInfo> {
    let mut found = Vec::new();
    // No processor has more; a missing entry ends the list.
    for index in 0..16 {
        let dir = dir.join("cache").join(format!("index{index}"));
        let Some(kind) = read(dir.join("type")) else { break };
        let level = read(dir.join("level")).and_then(|text| text.parse().ok());
        let bytes = read(dir.join("size")).and_then(|text| size(&text));
        let cpus = read(dir.join("shared_cpu_list")).map(|text| parse_cpu_list(&text));
        if let (true, Some(level), Some(bytes), Some(cpus)) =
            (kind != "Instruction", level, bytes, cpus)
        {
            found.push(CacheInfo { level, bytes, cpus });
        }
    }
    found
}

/// `512K`, `32768K`, `1M`, `100`.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Node of a CPU; `0` if there are no nodes.
fn node_of(root: &Path, cpu: CpuId) -> String {
    let online = read(root.join("node/online")).map(|text| parse_cpu_list(&text));
    for node in online.unwrap_or(CpuMask::empty()).iter() {
        let list = read(root.join(format!("node/node{node}/cpulist"))).unwrap_or_default();
        if parse_cpu_list(&list).contains(cpu) {
            return node.to_string();
        }
    }
    "0".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(path: impl AsRef<Path>, text: &str) {
        fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Two nodes of two cores with two threads; siblings are 4 apart; one L3 a node.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for cpu in 0..8_u32 {
            let base = dir.path().join("cpu").join(format!("cpu{cpu}"));
            let core = cpu % 4;
            let pair = format!("{core},{}\n", core + 4);
            let first = core / 2 * 2;
            let node = format!("{first}-{},{}-{}\n", first + 1, first + 4, first + 5);
            write(base.join("topology/core_cpus_list"), &pair);
            write(base.join("topology/physical_package_id"), "0\n");
            for (index, level, kind, size, cpus) in [
                (0, "1", "Data", "32K", &pair),
                (1, "1", "Instruction", "64K", &pair),
                (2, "2", "Unified", "1024K", &pair),
                (3, "3", "Unified", "16M", &node),
            ] {
                let cache = base.join("cache").join(format!("index{index}"));
                write(cache.join("level"), level);
                write(cache.join("type"), kind);
                write(cache.join("size"), size);
                write(cache.join("shared_cpu_list"), cpus);
            }
        }
        write(dir.path().join("node/online"), "0-1\n");
        write(dir.path().join("node/node0/cpulist"), "0-1,4-5\n");
        write(dir.path().join("node/node1/cpulist"), "2-3,6-7\n");
        dir
    }

    #[test]
    fn a_tree_becomes_a_machine() {
        let dir = tree();
        let file = read_from(dir.path(), &CpuMask::first(8)).unwrap();
        assert_eq!(file.topology.core, [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(file.topology.llc, [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(file.topology.node, [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(file.caches.core_bytes, Some(1 << 20));
        assert_eq!(file.caches.llc_bytes, Some(16 << 20));
        assert_eq!(file.smt_speed, [SMT_SPEED_ASSUMED]);
        let spec = file.spec().unwrap();
        assert_eq!((spec.machine.nr_cpus(), spec.machine.name.as_str()), (8, "host"));
    }

    #[test]
    fn only_usable_cpus_count() {
        let dir = tree();
        let cpus: CpuMask = [CpuId(2), CpuId(5), CpuId(7)].into_iter().collect();
        let file = read_from(dir.path(), &cpus).unwrap();
        assert_eq!(file.topology.core, [0, 1, 2]);
        assert_eq!(file.topology.node, [0, 1, 0]);
        assert!(file.smt_speed.is_empty());
    }

    #[test]
    fn an_empty_tree_is_a_flat_machine_without_caches() {
        let dir = tempfile::tempdir().unwrap();
        let spec = read_from(dir.path(), &CpuMask::first(2)).unwrap().spec().unwrap();
        assert_eq!(spec.machine.topology, schedlab_model::Topology::flat(2));
        assert_eq!((spec.machine.caches.core_bytes, spec.machine.caches.llc_bytes), (0, 0));
    }

    #[test]
    fn sizes_and_choices_are_read() {
        assert_eq!(
            [size("512K"), size("1M"), size("7"), size("x"), size("1X")],
            [Some(512 << 10), Some(1 << 20), Some(7), None, None]
        );
        assert_eq!(chosen("none voluntary (full) lazy").as_deref(), Some("full"));
        assert_eq!(chosen("full"), None);
    }

    #[test]
    fn this_machine_has_a_model() {
        let spec = this_machine().unwrap().spec().unwrap();
        assert_eq!(spec.machine.nr_cpus(), usable_cpus().weight());
    }
}
