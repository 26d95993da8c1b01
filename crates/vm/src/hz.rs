// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ticks per second of a guest's kernel. They are fixed when a kernel is built (CONFIG_HZ).
//!
//! The distribution's builds have 250. Other kernels are asked once, in a run of a millisecond: the
//! resolution of CLOCK_MONOTONIC_COARSE is a tick (kernel/time/posix-timers.c). The answer is
//! stored with the kernel.

use crate::VmError;
use crate::kernel::Kernel;
use crate::lane::VmLane;
use schedlab_model::CpuMask;
use schedlab_model::trace::NullSink;
use schedlab_run::file::write_whole;
use schedlab_run::{Lane, LaneError, RunRequest};
use std::fs;

/// CONFIG_HZ of Debian's kernels for clouds (debian/config/kernelarch-x86/config of its packages).
const DISTRIBUTION_HZ: u32 = 250;

impl VmLane {
    /// Ticks per second of the kernel with this name.
    pub fn hz(&self, name: &str) -> Result<u32, LaneError> {
        let kernel = self.kernel(name)?;
        if kernel.package.is_some() {
            return Ok(DISTRIBUTION_HZ);
        }
        let path = self.cache().dir("kernels")?.join(format!("{}.hz", kernel.sha256));
        let kept = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        if let Some(hz) = kept {
            return Ok(hz);
        }
        let hz = self.measure_hz(name, &kernel)?;
        write_whole(&path, format!("{hz}\n").as_bytes()).map_err(VmError::from)?;
        Ok(hz)
    }

    fn measure_hz(&self, name: &str, kernel: &Kernel) -> Result<u32, LaneError> {
        let parameters = [("n", "1"), ("work", "1ms")];
        let workload = schedlab_workload::builtin("hogs", &parameters)
            .map_err(|error| LaneError::System(error.to_string()))?;
        let request = RunRequest::new(workload, name, CpuMask::first(1));
        let result = self.run(&request, &mut NullSink)?;
        result.machine.hz.ok_or_else(|| {
            LaneError::System(format!("kernel {} does not tell its HZ", kernel.release))
        })
    }
}
