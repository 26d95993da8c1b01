// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the block device, and copying through the page cache, in a private directory.

use super::statistics::Repeated;
use crate::files::{self, FileNeeds, TaskFiles};
use crate::pace::Pace;
use crate::sys;
use schedlab_model::machine::Device;
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::{Amount, Nanos, Op};
use std::path::PathBuf;

/// The field of `device` called `name`, if it is measured.
pub fn field_mut<'d>(device: &'d mut Device, name: &str) -> Option<&'d mut Nanos> {
    Some(match name {
        "copy_kib_ns" => &mut device.copy_kib_ns,
        "read_latency_ns" => &mut device.read_latency_ns,
        "write_latency_ns" => &mut device.write_latency_ns,
        _ => return None,
    })
}

/// Open files for the measurements. Their directory is removed on drop.
pub struct Disk {
    dir: PathBuf,
    files: TaskFiles,
}

impl Disk {
    /// Creates the files. The error gives the reason if this is not possible.
    pub fn open() -> Result<Self, String> {
        let len = Pace::LIVE.file_len;
        let dir = files::make_dir(None, FileNeeds { any: true, reads: true, sync: true }, len)?;
        let mut disk = Self { files: TaskFiles::new(Some(dir.clone()), 0, len), dir };
        let op = Op::Io { direction: IoDirection::Read, bytes: Amount::Constant(1), sync: true };
        let mut program = ProgramBuilder::new();
        program.op(op);
        disk.files.open(&program.build()).map_err(|error| error.to_string())?;
        // The first pass makes the pages of the file.
        disk.timed(false, len, false, 1);
        Ok(disk)
    }

    /// Measures once. A failed transfer gives no sample.
    pub fn measure(&mut self, found: &mut Repeated) {
        let copies = self.timed(false, 1 << 16, false, 40);
        found.add("copy_kib_ns", copies.into_iter().map(|ns| ns / 64).collect(), 0);
        found.add("read_latency_ns", self.timed(true, files::BLOCK, true, 20), 0);
        found.add("write_latency_ns", self.timed(false, files::BLOCK, true, 10), 0);
    }

    fn timed(&mut self, is_read: bool, bytes: u64, is_sync: bool, count: u32) -> Vec<u64> {
        let mut sample = || {
            let start = sys::monotonic_ns();
            let is_moved = self.files.transfer(is_read, bytes, is_sync).is_ok();
            is_moved.then(|| sys::monotonic_ns() - start)
        };
        (0..count).filter_map(|_| sample()).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The system's own cleaning removes what remains.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
