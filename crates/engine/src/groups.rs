// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of control groups by tasks.

use crate::engine::Engine;
use crate::observe::Cause;
use schedlab_model::{Change, CpuId, TaskId, TraceSink};

impl<S: TraceSink> Engine<'_, S> {
    /// `task`, running on `cpu`, writes a control file of a group. All of it happens at once, as the call that the
    /// kernel makes for the writer: what it costs is that of a system call.
    pub(crate) fn change_group(&mut self, cpu: CpuId, task: TaskId, change: &Change) {
        let spec = &mut self.core.cgroups[change.group().index()];
        let old = spec.clone();
        change.apply(spec);
        self.each_class(|class, core| class.cgroup_changed(core, cpu, change, &old));
        self.drain();
        if self.watch.is_some() {
            self.note_cause(&Cause::Group { task });
        }
    }
}
