// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own file systems, and the settings with which every run starts.

use std::ffi::CString;
use std::fs;

/// Type, directory, and whether the guest cannot work without it.
const MOUNTS: [(&str, &str, bool); 8] = [
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devtmpfs", "/dev", true),
    ("tmpfs", "/tmp", true),
    ("debugfs", "/sys/kernel/debug", false),
    ("tracefs", "/sys/kernel/tracing", false),
    ("bpf", "/sys/fs/bpf", false),
    ("cgroup2", "/sys/fs/cgroup", false),
];

/// Mounts everything. Errors go to the console.
pub fn mount_all() {
    for (kind, path, is_needed) in MOUNTS {
        // It may be there already, or be made by the kernel.
        let _ = fs::create_dir_all(path);
        if let Err(error) = mount(kind, path)
            && is_needed
        {
            eprintln!("schedlab-guest: mounting {kind} on {path}: {error}");
        }
    }
    // What groups may use: the launcher makes groups below the root.
    for controller in ["+cpu", "+cpuset"] {
        let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", controller);
    }
    // Sessions are not a unit of scheduling here: one program starts everything.
    let _ = fs::write("/proc/sys/kernel/sched_autogroup_enabled", "0");
}

fn mount(kind: &str, path: &str) -> std::io::Result<()> {
    let (kind, path) = (CString::new(kind)?, CString::new(path)?);
    // SAFETY: valid C strings; these file systems take no data.
    let result =
        unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
