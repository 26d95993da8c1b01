// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct task_struct` for every task that was shown to a scheduler, and one for each idle CPU.
//!
//! A task gets its struct when it is first shown. `slice`, `dsq_vtime`, `weight` and `disallow` are
//! only in the struct (the core's `Entity` refers to it), so every store of the scheduler takes
//! effect at once. Values of the core (CPU, flags, priority, CPU time, ...) are written each time
//! the task is shown. A struct is reused after its task has exited and the scheduler has released
//! every reference.

use super::groups::Groups;
use super::layout::{EntityLayout, TaskLayout};
use super::zone::{self, Zone, put};
use schedlab_model::{CpuMask, Policy, TaskId};
use schedlab_sched::boundary::core::TaskState;
use schedlab_scx::Kernel;
use schedlab_scx::entity::Words;
use schedlab_scx::kernel::Seldom;
use std::ptr::NonNull;

/// Most structs at a time. Unused ones take no memory.
const SLOTS_MAX: usize = 1 << 18;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Least number of bytes between two structs.
const BETWEEN: usize = 16;

/// Structs whose shadow is made at a time.
const STEP: u64 = 64;

/// No task.
const NONE: u32 = u32::MAX;

const PF_IDLE: u32 = 2;
const PF_KTHREAD: u32 = 0x20_0000;

/// State of a struct.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The task; [`NONE`]: an idle task, or unused.
    task: u32,
    /// References that the scheduler holds.
    refs: u32,
    /// Whether its task has exited.
    is_dead: bool,
    /// The rarely changing values, as last written.
    seldom: Seldom,
}

/// The structs of a run.
#[derive(Debug)]
pub struct Tasks {
    zone: Zone,
    base: u64,
    /// End of the shadow.
    shadowed: u64,
    /// Distance of two structs (bytes): an odd number of cache lines, so that the same field of
    /// many structs does not compete for the same cache sets.
    stride: u64,
    layout: TaskLayout,
    entity: EntityLayout,
    slots: Vec<Slot>,
    /// Size of all slots (bytes).
    used: u64,
    free: Vec<u32>,
    slot_of: Vec<u32>,
    nr_idle: u32,
}

/// The living task with a number (`p->scx.tid`): that of the task, from 1 on. A kernel gives each
/// CPU a thousand at a time.
pub fn task_of_tid(k: &Kernel<'_>, tid: u64) -> Option<TaskId> {
    let index = u32::try_from(tid.checked_sub(1)?).ok()?;
    k.task_from_pid(index.checked_add(schedlab_scx::kernel::PID_BASE)?)
}

impl Tasks {
    /// Room for tasks, and for the idle tasks of `nr_cpus` CPUs.
    pub fn new(
        layout: TaskLayout,
        entity: EntityLayout,
        nr_cpus: u32,
        zone: &Zone,
    ) -> Result<Self, String> {
        let stride = ((layout.size + BETWEEN).div_ceil(LINE) | 1) * LINE;
        let base = zone.region((SLOTS_MAX as u64 + STEP + 1) * stride as u64 + zone::GRAIN)?;
        let mut this = Self {
            zone: zone.clone(),
            base,
            shadowed: base,
            stride: stride as u64,
            layout,
            entity,
            slots: Vec::new(),
            used: 0,
            free: Vec::new(),
            slot_of: Vec::new(),
            nr_idle: nr_cpus,
        };
        for cpu in 0..nr_cpus {
            let slot = this.new_slot(NONE).expect("there are fewer CPUs than structs");
            this.fill_idle(slot, cpu);
        }
        Ok(this)
    }

    fn address(&self, slot: u32) -> u64 {
        self.base + u64::from(slot) * self.stride
    }

    fn new_slot(&mut self, task: u32) -> Option<u32> {
        let new = Slot { task, refs: 0, is_dead: false, seldom: Seldom::NOTHING };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None if self.slots.len() == SLOTS_MAX => return None,
            None => {
                self.slots.push(new);
                self.used += self.stride;
                self.shadow_to(self.base + self.used)?;
                self.slots.len() as u32 - 1
            }
        };
        self.zone.allow(self.address(slot), self.layout.size as u64);
        Some(slot)
    }

    /// Makes the shadow of the structs below `end`; `None`: there is no memory for it.
    fn shadow_to(&mut self, end: u64) -> Option<()> {
        if end > self.shadowed {
            let len = (STEP * self.stride).next_multiple_of(zone::GRAIN);
            self.zone.forbid_region(self.shadowed, len).ok()?;
            self.shadowed += len;
        }
        Some(())
    }

    /// The struct that an address is in, or that ends before it: whose it is, and its address.
    pub fn nearest(&self, at: u64) -> Option<(String, u64)> {
        let offset = at.wrapping_sub(self.base);
        if offset >= self.used {
            return None;
        }
        let slot = (offset / self.stride) as u32;
        let whose = match self.slots[slot as usize].task {
            NONE if slot < self.nr_idle => format!("the idle task of CPU {slot}"),
            NONE => "a task that has exited".to_owned(),
            task => format!("task {task}"),
        };
        Some((whose, self.address(slot)))
    }

    /// Bytes of a struct.
    pub fn size(&self) -> u64 {
        self.layout.size as u64
    }

    /// Address of the idle task of a CPU.
    pub fn idle(&self, cpu: u32) -> u64 {
        self.address(cpu)
    }

    /// The task of a pointer to the struct of a living task, and its slot.
    #[inline]
    fn live(&self, p: u64) -> Option<(TaskId, u32)> {
        if p.wrapping_sub(self.base) >= self.used {
            return None;
        }
        // SAFETY: the word is within the mapping, wherever in a struct `p` points.
        let task =
            unsafe { ((p + self.layout.schedlab_task as u64) as *const u32).read_unaligned() };
        let slot = *self.slot_of.get(task as usize)?;
        (slot != NONE && self.address(slot) == p).then_some((TaskId(task), slot))
    }

    /// The slot of a pointer to a struct that is in use.
    #[inline]
    fn slot(&self, p: u64) -> Option<u32> {
        match self.live(p) {
            Some((_, slot)) => Some(slot),
            None => self.slot_of_any(p),
        }
    }

    /// The slot of any pointer to a struct: also of idle tasks, and of exited ones with references.
    #[inline(never)]
    fn slot_of_any(&self, p: u64) -> Option<u32> {
        let offset = p.wrapping_sub(self.base);
        let slot = offset / self.stride;
        (offset < self.used && slot * self.stride == offset).then_some(slot as u32)
    }

    /// The task of a pointer that the scheduler passes; `None`: it refers to no task, or to an idle
    /// one.
    #[inline]
    pub fn task(&self, p: u64) -> Option<TaskId> {
        if let Some((task, _)) = self.live(p) {
            return Some(task);
        }
        let slot = self.slots[self.slot_of_any(p)? as usize];
        (slot.task != NONE).then_some(TaskId(slot.task))
    }

    /// Whether a pointer refers to a struct of a task.
    pub fn is_task(&self, p: u64) -> bool {
        self.slot(p).is_some()
    }

    /// The CPU whose idle task a pointer is.
    pub fn idle_cpu(&self, p: u64) -> Option<u32> {
        self.slot(p).filter(|slot| *slot < self.nr_idle)
    }

    /// Shows `task` to the scheduler: updates its struct and returns the address.
    #[inline(always)]
    pub fn show(
        &mut self,
        k: &mut Kernel<'_>,
        groups: &mut Groups,
        task: TaskId,
    ) -> Result<u64, String> {
        let slot = match self.slot_of.get(task.index()) {
            Some(&slot) if slot != NONE => slot,
            _ => self.first_shown(k, groups, task)?,
        };
        let at = self.address(slot);
        if !k.take_is_shown() {
            self.refresh(k, groups, task, slot, at);
        }
        Ok(at)
    }

    /// Writes the values that always change; and those that rarely change, if they did.
    #[inline(never)]
    fn refresh(&mut self, k: &Kernel<'_>, groups: &mut Groups, task: TaskId, slot: u32, at: u64) {
        let (l, field) = (&self.layout, |field: usize| at + field as u64);
        // Looked up once: this is written before every callback about a task.
        let view = k.task_view(task);
        // SAFETY: fields of a struct of ours, which C and we share.
        unsafe {
            put(field(l.sum_exec_runtime), view.sum_exec_runtime);
            put(field(l.utime), view.sum_exec_runtime);
            put(field(l.nvcsw), view.core.nr_voluntary_switches);
            put(field(l.nivcsw), view.core.nr_involuntary_switches);
        }
        if self.slots[slot as usize].seldom != view.seldom() {
            self.refresh_seldom(k, groups, task, slot, at);
        }
    }

    /// Writes the values that rarely change.
    #[inline(never)]
    fn refresh_seldom(
        &mut self,
        k: &Kernel<'_>,
        groups: &mut Groups,
        task: TaskId,
        slot: u32,
        at: u64,
    ) {
        let (view, at) = (k.task_view(task), |field: usize| at + field as u64);
        let group = view.core.attr.cgroup;
        let before = std::mem::replace(&mut self.slots[slot as usize].seldom, view.seldom());
        let l = &self.layout;
        if before.cgroup != group {
            let css_set = groups.css_set(k, group);
            // SAFETY: a field of a struct of ours, which C and we share.
            unsafe { put(at(l.cgroups), css_set) };
        }
        if view.seldom().has_own_name && !before.has_own_name {
            // SAFETY: as above.
            unsafe { put(at(l.comm), view.core.name.to_bytes_with_nul()) };
        }
        let (cpu, prio) = (view.core.cpu.0, view.core.prio);
        let is_running = view.core.state == TaskState::Running;
        // SAFETY: fields of a struct of ours, which C and we share.
        unsafe {
            put(at(l.cpu), cpu);
            put(at(l.flags), view.flags());
            put(at(l.on_cpu), u32::from(view.is_on_cpu));
            put(at(l.on_rq), u32::from(is_running));
            put(at(l.state), u32::from(!is_running));
            put(at(l.prio), prio);
            put(at(l.normal_prio), prio);
            put(at(l.static_prio), view.static_prio());
            put(at(l.wake_cpu), cpu);
            put(at(l.recent_used_cpu), cpu);
            put(at(l.nr_cpus_allowed), view.core.nr_cpus_allowed);
            put(at(self.layout.scx + self.entity.flags), u32::from(view.is_queued));
        }
    }

    #[cold]
    fn first_shown(
        &mut self,
        k: &mut Kernel<'_>,
        groups: &mut Groups,
        task: TaskId,
    ) -> Result<u32, String> {
        let slot = self.new_slot(task.0).ok_or_else(|| {
            format!("more than {SLOTS_MAX} tasks at a time that the scheduler has not let go")
        })?;
        if self.slot_of.len() <= task.index() {
            self.slot_of.resize(task.index() + 1, NONE);
        }
        self.slot_of[task.index()] = slot;
        let base = self.address(slot);
        // SAFETY: the struct is ours, and within the mapping.
        unsafe { std::ptr::write_bytes(base as *mut u8, 0, self.layout.size) };
        let leader = k.tgid(task).checked_sub(schedlab_scx::kernel::PID_BASE);
        let leader = leader.map_or(task, TaskId);
        let leader = match leader == task {
            true => base,
            false => self.slot_of.get(leader.index()).map_or(base, |slot| match *slot {
                NONE => base,
                slot => self.address(slot),
            }),
        };
        let l = self.layout;
        let at = |field: usize| base + field as u64;
        let now = k.clock_ns();
        // SAFETY: as above.
        unsafe {
            put(at(l.pid), k.pid(task));
            put(at(l.tgid), k.tgid(task));
            put(at(l.schedlab_task), task.0);
            put(at(l.scx + self.entity.tid), u64::from(task.0) + 1);
            put(at(l.comm), k.task_view(task).core.comm().to_bytes_with_nul());
            put(at(l.cpus_ptr), base + l.cpus_mask as u64);
            put(at(l.group_leader), leader);
            put(at(l.real_parent), self.idle(0));
            put(at(l.parent), self.idle(0));
            put(at(l.start_time), now);
            put(at(l.start_boottime), now);
            put(at(l.policy), policy_number(k.policy(task)));
            // Any address that differs between processes serves: schedulers compare it.
            put(at(l.mm), leader);
        }
        self.set_cpumask(slot, k.cpus_allowed(task));
        let words = NonNull::new((base + l.scx as u64) as *mut Words).expect("it is mapped");
        // SAFETY: the words are in the struct in this order (checked when it was loaded), zeroed,
        // and the struct is not used for another task before `exited` took them back.
        unsafe { k.place_entity(task, words) };
        let _ = groups;
        Ok(slot)
    }

    /// Updates the CPUs that a task may use.
    pub fn cpus_changed(&mut self, task: TaskId, mask: &CpuMask) {
        if let Some(&slot) = self.slot_of.get(task.index())
            && slot != NONE
        {
            self.set_cpumask(slot, mask);
        }
    }

    fn set_cpumask(&self, slot: u32, mask: &CpuMask) {
        let at = self.address(slot) + self.layout.cpus_mask as u64;
        // SAFETY: a field of a struct of ours, of the same size.
        unsafe { put(at, *mask.words()) };
    }

    /// Tells C the address of a struct's storage in the map at `map`; 0: it was removed.
    pub fn set_storage(&mut self, p: u64, map: u64, at: u64) {
        /// Mark of maps whose address C knows, in the upper half of the word.
        const MAP_TASK_STORAGE: u64 = 0x5ced_1ab3;
        if self.slot(p).is_none() {
            return;
        }
        // SAFETY: words of a map's variable and of a struct, both of which exist.
        unsafe {
            let (mark, place) = ((map as *const u64).read(), (map as *const u64).add(1).read());
            if mark >> 32 == MAP_TASK_STORAGE && place < 4 {
                put(p + self.layout.storage as u64 + place * 8, at);
            }
        }
    }

    /// Address of the mask of a struct.
    pub fn cpumask_of(&self, p: u64) -> u64 {
        p + self.layout.cpus_mask as u64
    }

    /// `task` has exited. Its struct is free when no reference is left.
    pub fn exited(&mut self, k: &mut Kernel<'_>, task: TaskId) {
        let Some(slot) = self.slot_of.get(task.index()).copied().filter(|slot| *slot != NONE)
        else {
            return;
        };
        k.take_entity_back(task);
        // SAFETY: words of a struct of ours.
        unsafe { put(self.address(slot) + self.layout.storage as u64, [0u64; 4]) };
        self.slot_of[task.index()] = NONE;
        self.slots[slot as usize].is_dead = true;
        self.free_if_unused(slot);
    }

    fn free_if_unused(&mut self, slot: u32) {
        let known = &mut self.slots[slot as usize];
        if known.is_dead && known.refs == 0 {
            known.task = NONE;
            known.is_dead = false;
            self.free.push(slot);
            self.zone.forbid(self.address(slot), self.layout.size as u64);
        }
    }

    /// The scheduler takes a reference. Returns false if the pointer refers to no task.
    pub fn acquire(&mut self, p: u64) -> bool {
        let Some(slot) = self.slot(p) else { return false };
        self.slots[slot as usize].refs += 1;
        true
    }

    /// The scheduler releases a reference. Returns false if it has none.
    pub fn release(&mut self, p: u64) -> bool {
        let Some(slot) = self.slot(p) else { return false };
        let known = &mut self.slots[slot as usize];
        if known.refs == 0 {
            return false;
        }
        known.refs -= 1;
        self.free_if_unused(slot);
        true
    }

    fn fill_idle(&self, slot: u32, cpu: u32) {
        let l = &self.layout;
        let base = self.address(slot);
        let at = |field: usize| base + field as u64;
        let mut name = [0u8; 16];
        let text = format!("swapper/{cpu}");
        name[..text.len()].copy_from_slice(text.as_bytes());
        // SAFETY: fields of a struct of ours.
        unsafe {
            put(at(l.cpu), cpu);
            put(at(l.flags), PF_IDLE | PF_KTHREAD);
            put(at(l.comm), name);
            put(at(l.prio), 140u32);
            put(at(l.static_prio), 140u32);
            put(at(l.nr_cpus_allowed), 1u32);
            put(at(l.on_cpu), 1u32);
            put(at(l.cpus_ptr), base + l.cpus_mask as u64);
            put(at(l.group_leader), base);
            put(at(l.real_parent), self.idle(0));
            put(at(l.parent), self.idle(0));
            put(at(l.schedlab_task), NONE);
        }
        let mask = CpuMask::only(schedlab_model::CpuId(cpu));
        self.set_cpumask(slot, &mask);
    }
}

/// SCHED_* of a policy.
fn policy_number(policy: Policy) -> u32 {
    match policy {
        Policy::Normal => 0,
        Policy::Fifo => 1,
        Policy::Rr => 2,
        Policy::Batch => 3,
        Policy::Idle => 5,
        Policy::Deadline => 6,
        Policy::Ext => 7,
    }
}
