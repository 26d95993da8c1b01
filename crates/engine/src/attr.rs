// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running task changes its own attributes (sched_setattr, sched_setaffinity).

use crate::engine::Engine;
use crate::observe::Cause;
use schedlab_model::{CpuId, SchedAttr, TaskId, TraceSink};
use schedlab_sched::{DequeueFlags, EnqueueFlags};

impl<S: TraceSink> Engine<'_, S> {
    /// Gives `task`, which runs on `cpu`, the attributes `attr`. With nothing to change nothing
    /// happens at all, as in the kernel.
    pub(crate) fn set_attr(&mut self, cpu: CpuId, task: TaskId, attr: &SchedAttr) {
        let old = self.core.task(task).attr;
        if old == *attr {
            return;
        }
        let (old_class, old_prio) = (self.core.task(task).class, self.core.task(task).prio);
        let new_class = self.core.class_of(attr.policy);
        let moved = attr.kernel_prio() != old_prio;
        self.account(cpu, task);
        let (class, core) = self.class(old_class);
        let save = DequeueFlags { save: true, moved, ..DequeueFlags::NONE };
        class.dequeue_task(core, cpu, task, save);
        class.put_prev_task(core, cpu, task, Some(task));
        class.attr_changing(core, task, attr);
        let cpus_allowed = attr.affinity.unwrap_or(core.cpus).and(&core.cpus);
        let t = &mut core.tasks[task.index()];
        t.attr = *attr;
        t.prio = attr.kernel_prio();
        t.class = new_class;
        t.nr_cpus_allowed = cpus_allowed.weight();
        t.cpus_allowed = cpus_allowed;
        let worse = old_prio < t.prio;
        let (class, core) = self.class(new_class);
        let restore = EnqueueFlags { restore: true, moved, head: worse, ..EnqueueFlags::NONE };
        class.enqueue_task(core, cpu, task, restore);
        class.set_next_task(core, cpu, task, false);
        if new_class != old_class {
            let (class, core) = self.class(old_class);
            class.switched_from(core, cpu, task);
            let (class, core) = self.class(new_class);
            class.switched_to(core, cpu, task);
        } else if moved {
            class.prio_changed(core, cpu, task, old_prio);
        }
        if !cpus_allowed.contains(cpu) {
            self.execs[task.index()].must_move = true;
            self.core.resched_curr(cpu);
        }
        self.drain();
        if self.watch.is_some() {
            self.note_cause(&Cause::Attr { task });
        }
    }
}
