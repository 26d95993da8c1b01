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

/// Settings of the kernel under which every run starts, unless its request has others.
const SETTINGS: [(&str, &str); 6] = [
    // Sessions are not a unit of scheduling here: one program starts everything.
    ("/proc/sys/kernel/sched_autogroup_enabled", "0"),
    // Housekeeping that would take the CPU from tasks every few seconds, and with it change their
    // order: counters of memory in use (now every hour: this is in seconds), a look for scattered
    // memory, a task of the highest class that shows that the CPU is not stuck, and a look at
    // neighbours in networks (ms).
    ("/proc/sys/vm/stat_interval", "3600"),
    ("/proc/sys/vm/compaction_proactiveness", "0"),
    ("/proc/sys/kernel/watchdog", "0"),
    ("/proc/sys/net/ipv4/neigh/default/interval_probe_time_ms", "3600000"),
    ("/proc/sys/net/ipv6/neigh/default/interval_probe_time_ms", "3600000"),
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
    for (path, value) in SETTINGS {
        // A kernel built without one does not have what it would stop.
        let _ = fs::write(path, value);
    }
}

fn mount(kind: &str, path: &str) -> std::io::Result<()> {
    let (kind, path) = (CString::new(kind)?, CString::new(path)?);
    // SAFETY: valid C strings; these file systems take no data.
    let result =
        unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
