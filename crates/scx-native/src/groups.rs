// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct cgroup` and the structs that it refers to, for every group that was shown to a
//! scheduler.

use super::layout::GroupLayout;
use super::zone::{Block, Zone, put};
use schedlab_model::{CgroupId, CpuMask};
use schedlab_scx::Kernel;
use std::collections::BTreeMap;

/// `struct kernfs_node` of vmlinux.h: id, name, parent, __parent.
const KERNFS_NODE: usize = 32;

/// `struct css_set`: four pointers to subsystems, then a pointer to the group.
const CSS_SET: usize = 48;

/// Indices of the controllers `cpuset` and `cpu` among the subsystems (vmlinux.h).
const CPUSET_SUBSYSTEM: usize = 0;
const CPU_SUBSYSTEM: usize = 1;

/// Number of levels in `ancestors`, the root included.
const LEVELS_MAX: u32 = 64;

/// The structs of a run.
#[derive(Debug)]
pub struct Groups {
    layout: GroupLayout,
    zone: Zone,
    /// The block of each group, if it was shown.
    blocks: Vec<Option<Block>>,
    /// By address.
    ids: BTreeMap<u64, CgroupId>,
}

impl Groups {
    /// None yet.
    pub fn new(layout: GroupLayout, zone: Zone) -> Self {
        Self { layout, zone, blocks: Vec::new(), ids: BTreeMap::new() }
    }

    /// The group that a pointer refers to.
    pub fn group(&self, p: u64) -> Option<CgroupId> {
        self.ids.get(&p).copied()
    }

    /// Address of the `struct cgroup` of a group.
    pub fn show(&mut self, k: &Kernel<'_>, group: CgroupId) -> u64 {
        let base = match self.blocks.get(group.index()) {
            Some(Some(block)) => block.address(),
            _ => self.first_shown(k, group),
        };
        if let Some(cpus) = &k.cgroup(group).cpus {
            self.show_cpuset(base, cpus);
        }
        base
    }

    /// Writes the `struct cpuset` of a group that has one: `cpus_allowed` is what was written to
    /// its cpuset.cpus.
    #[cold]
    fn show_cpuset(&mut self, group: u64, cpus: &CpuMask) {
        let l = self.layout;
        let cpuset = group + (l.size + KERNFS_NODE + CSS_SET) as u64;
        // SAFETY: the block of the group has room for the struct.
        unsafe {
            put(group + (l.subsys + CPUSET_SUBSYSTEM * 8) as u64, cpuset);
            put(cpuset + l.css_cgroup as u64, group);
            put(cpuset + l.cpuset_cpus as u64, *cpus.words());
        }
    }

    /// Address of its `struct css_set`.
    pub fn css_set(&mut self, k: &Kernel<'_>, group: CgroupId) -> u64 {
        self.show(k, group) + (self.layout.size + KERNFS_NODE) as u64
    }

    fn first_shown(&mut self, k: &Kernel<'_>, group: CgroupId) -> u64 {
        let level = k.cgroup_level(group);
        let parent = (group.0 != 0).then(|| self.show(k, k.cgroup(group).parent));
        let l = self.layout;
        let block = self.zone.block(l.size + KERNFS_NODE + CSS_SET + l.cpuset_size);
        let base = block.address();
        if self.blocks.len() <= group.index() {
            self.blocks.resize_with(group.index() + 1, || None);
        }
        self.blocks[group.index()] = Some(block);
        self.ids.insert(base, group);
        let path = k.cgroup(group).path.clone();
        let name = path.rsplit('/').next().unwrap_or_default();
        let name = self.zone.block_of(&[name.as_bytes(), &[0]].concat()).address();
        let kn = base + self.layout.size as u64;
        let parent_kn = parent.map_or(0, |parent| parent + l.size as u64);
        // SAFETY: the block is ours and has room for the three structs.
        unsafe {
            put(base + l.self_cgroup as u64, base);
            put(base + l.dom_cgrp as u64, base);
            put(base + l.self_parent as u64, parent.unwrap_or(0));
            put(base + l.level as u64, level);
            put(base + l.kn as u64, kn);
            put(base + (l.subsys + CPU_SUBSYSTEM * 8) as u64, base);
            put(kn, k.cgroup_kernfs_id(group));
            put(kn + 8, name);
            put(kn + 16, parent_kn);
            put(kn + 24, parent_kn);
            let css_set = kn + KERNFS_NODE as u64;
            put(css_set + (CPU_SUBSYSTEM * 8) as u64, base);
            put(css_set + 32, base);
        }
        for above in 0..=level.min(LEVELS_MAX - 1) {
            let ancestor = k.cgroup_ancestor(group, above);
            let at = ancestor.map_or(0, |ancestor| self.show(k, ancestor));
            // SAFETY: `ancestors` has room for that many.
            unsafe { put(base + l.ancestors as u64 + u64::from(above) * 8, at) };
        }
        base
    }

    /// The group after `at` in the subtree of `top`, parents before children; `None`: it was the
    /// last.
    pub fn next_below(k: &Kernel<'_>, top: CgroupId, at: CgroupId) -> Option<CgroupId> {
        // Groups are numbered in the order of creation, so children follow their parents.
        (at.0 + 1..k.nr_cgroups()).map(CgroupId).find(|group| is_below(k, top, *group))
    }
}

fn is_below(k: &Kernel<'_>, top: CgroupId, group: CgroupId) -> bool {
    let mut at = group;
    while at != top && at.0 != 0 {
        at = k.cgroup(at).parent;
    }
    at == top
}
