// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of /sys that a user program reads, as a machine's kernel would show them
//! (Documentation/ABI/testing/sysfs-devices-system-cpu and sysfs-devices-node).

use schedlab_model::machine::{Caches, Topology};
use schedlab_model::{CpuId, CpuMask};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Size of a first-level cache, which the modelled machine does not know.
const FIRST_LEVEL: u64 = 32 << 10;
/// Distance of a node to itself and to others (ACPI's SLIT).
const DISTANCES: (&str, &str) = ("10", "20");

/// The line of the list of mounts that names the directory of the kernel's tracers: it has none, as
/// there is nothing to trace in a simulation.
pub(crate) const MOUNT: &str = "tracefs /sys/kernel/tracing tracefs rw 0 0\n";

/// A mask as sysfs writes it: words of 32 bits, the highest first.
fn hex(mask: &CpuMask, nr_cpus: u32) -> String {
    let word = |nth: u32| mask.words()[nth as usize / 2] >> (32 * (nth % 2)) & 0xffff_ffff;
    let words = (0..nr_cpus.div_ceil(32)).rev().map(|nth| format!("{:08x}", word(nth)));
    words.collect::<Vec<_>>().join(",")
}

/// Numbers as sysfs writes lists, such as `0-3,8`.
fn list(numbers: &BTreeSet<u32>) -> String {
    numbers.iter().map(|id| CpuId(*id)).collect::<CpuMask>().to_string()
}

/// Writes files below a directory; each text ends with a newline.
struct Dir<'a>(&'a Path);

impl Dir<'_> {
    fn write(&self, name: &str, text: impl AsRef<str>) -> io::Result<()> {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, format!("{}\n", text.as_ref()))
    }
}

/// Writes the tree of a machine below `root`, which stands for /sys. `types`: the kernel's type
/// information.
pub(crate) fn write(
    root: &Path,
    topology: &Topology,
    caches: &Caches,
    types: &[u8],
) -> io::Result<()> {
    let all = CpuMask::first(topology.nr_cpus());
    let cpus = root.join("devices/system/cpu");
    let dir = Dir(&cpus);
    for name in ["online", "possible", "present"] {
        dir.write(name, all.to_string())?;
    }
    dir.write("offline", "")?;
    dir.write("isolated", "")?;
    dir.write("nohz_full", "")?;
    dir.write("kernel_max", (topology.nr_cpus() - 1).to_string())?;
    let has_smt = all.iter().any(|cpu| topology.smt_span(cpu).weight() > 1);
    dir.write("smt/active", if has_smt { "1" } else { "0" })?;
    dir.write("smt/control", if has_smt { "on" } else { "notsupported" })?;
    for cpu in all.iter() {
        write_cpu(&cpus.join(format!("cpu{}", cpu.0)), topology, caches, cpu)?;
    }
    write_nodes(&root.join("devices/system/node"), topology)?;
    let dir = Dir(root);
    dir.write("kernel/sched_ext/state", "disabled")?;
    for name in ["enable_seq", "hotplug_seq", "nr_rejected", "switch_all"] {
        dir.write(&format!("kernel/sched_ext/{name}"), "0")?;
    }
    dir.write("kernel/tracing/available_tracers", "nop")?;
    dir.write("kernel/tracing/available_events", "")?;
    fs::create_dir_all(root.join("kernel/btf"))?;
    fs::write(root.join("kernel/btf/vmlinux"), types)
}

fn write_cpu(path: &Path, topology: &Topology, caches: &Caches, cpu: CpuId) -> io::Result<()> {
    let nr_cpus = topology.nr_cpus();
    let dir = Dir(path);
    let (core, llc) = (topology.smt_span(cpu), topology.llc_span(cpu));
    let (core_id, llc_id, node) =
        (topology.core[cpu.index()], topology.llc[cpu.index()], topology.node[cpu.index()]);
    dir.write("online", "1")?;
    // Each node is a socket.
    let package = topology.node_span(cpu);
    for (name, id) in [
        ("core_id", core_id),
        ("cluster_id", core_id),
        ("die_id", 0),
        ("physical_package_id", node),
    ] {
        dir.write(&format!("topology/{name}"), id.to_string())?;
    }
    for (name, span) in [
        ("thread_siblings", &core),
        ("core_cpus", &core),
        ("cluster_cpus", &core),
        ("core_siblings", &package),
        ("die_cpus", &package),
        ("package_cpus", &package),
    ] {
        dir.write(&format!("topology/{name}"), hex(span, nr_cpus))?;
        dir.write(&format!("topology/{name}_list"), span.to_string())?;
    }
    for (nth, kind, level, id, bytes, span) in [
        (0, "Data", "1", core_id, FIRST_LEVEL, &core),
        (1, "Instruction", "1", core_id, FIRST_LEVEL, &core),
        (2, "Unified", "2", core_id, caches.core_bytes, &core),
        (3, "Unified", "3", llc_id, caches.llc_bytes, &llc),
    ] {
        let write = |name: &str, text: String| dir.write(&format!("cache/index{nth}/{name}"), text);
        write("type", kind.into())?;
        write("level", level.into())?;
        write("id", id.to_string())?;
        write("size", format!("{}K", bytes >> 10))?;
        write("shared_cpu_list", span.to_string())?;
        write("shared_cpu_map", hex(span, nr_cpus))?;
    }
    Ok(())
}

fn write_nodes(path: &Path, topology: &Topology) -> io::Result<()> {
    let dir = Dir(path);
    let nodes: BTreeSet<u32> = topology.node.iter().copied().collect();
    for name in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
        dir.write(name, list(&nodes))?;
    }
    for node in &nodes {
        let own = path.join(format!("node{node}"));
        let first = topology.node.iter().position(|other| other == node).unwrap_or(0);
        let span = topology.node_span(CpuId(first as u32));
        let own_dir = Dir(&own);
        own_dir.write("cpulist", span.to_string())?;
        own_dir.write("cpumap", hex(&span, topology.nr_cpus()))?;
        let distance = |other: &u32| if other == node { DISTANCES.0 } else { DISTANCES.1 };
        own_dir.write("distance", nodes.iter().map(distance).collect::<Vec<_>>().join(" "))?;
        for cpu in span.iter() {
            let name = format!("cpu{}", cpu.0);
            symlink(format!("../../cpu/{name}"), own.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::machine::Shape;

    #[test]
    fn the_files_describe_the_machine() {
        let shape = Shape {
            nodes: 2,
            llcs_per_node: 1,
            cores_per_llc: 10,
            threads_per_core: 2,
            siblings_apart: true,
        };
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &Topology::regular(shape), &Caches::default(), b"types").unwrap();
        let read = |name: &str| {
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            text.strip_suffix('\n').unwrap().to_owned()
        };
        assert_eq!(read("devices/system/cpu/online"), "0-39");
        assert_eq!(read("devices/system/cpu/smt/active"), "1");
        assert_eq!(read("devices/system/cpu/cpu3/topology/thread_siblings_list"), "3,23");
        assert_eq!(read("devices/system/cpu/cpu33/topology/thread_siblings"), "00000002,00002000");
        assert_eq!(read("devices/system/cpu/cpu11/cache/index3/shared_cpu_list"), "10-19,30-39");
        assert_eq!(read("devices/system/cpu/cpu11/cache/index3/size"), "32768K");
        assert_eq!(read("devices/system/node/online"), "0-1");
        assert_eq!(read("devices/system/node/node1/distance"), "20 10");
        assert_eq!(read("devices/system/node/node1/cpu35/topology/core_id"), "15");
        assert_eq!(fs::read(folder.path().join("kernel/btf/vmlinux")).unwrap(), b"types");
        assert!(!folder.path().join("devices/system/node/node1/cpu3").exists());
    }
}
