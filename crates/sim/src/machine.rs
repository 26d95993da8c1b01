// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines of the simulator: presets, files, and the preemption model of a scheduler's kernel.

use schedlab_model::Preempt;
use schedlab_run::{MachineFile, MachineSpec};
use schedlab_sched::registry::SchedulerInfo;

/// The presets by name, each the text of its file.
pub const PRESETS: [(&str, &str); 11] = [
    ("laptop", include_str!("../../../machines/laptop.toml")),
    ("server-2x32", include_str!("../../../machines/server-2x32.toml")),
    ("pi", include_str!("../../../machines/pi.toml")),
    ("guest-counted", include_str!("../../../machines/guest-counted.toml")),
    ("S0", include_str!("../../../machines/S0.toml")),
    ("S2", include_str!("../../../machines/S2.toml")),
    ("S3-a", include_str!("../../../machines/S3-a.toml")),
    ("S3-b", include_str!("../../../machines/S3-b.toml")),
    ("S3-c", include_str!("../../../machines/S3-c.toml")),
    ("S3-d", include_str!("../../../machines/S3-d.toml")),
    ("S4", include_str!("../../../machines/S4.toml")),
];

/// The preset called `name`, in any case.
pub fn preset(name: &str) -> Option<MachineSpec> {
    let (_, text) = PRESETS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    // A test reads every preset.
    parse(text).ok()
}

/// A machine file: TOML, or JSON if the first letter is a brace.
pub fn read(text: &str) -> Result<MachineFile, String> {
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}

/// A machine from the text of a file.
pub fn parse(text: &str) -> Result<MachineSpec, String> {
    read(text)?.spec()
}

/// Preemption model of the kernel that a scheduler is faithful to, as Debian builds it for amd64.
///
/// 6.1 (Debian 12) and 6.12 (Debian 13) have CONFIG_PREEMPT_VOLUNTARY=y, 6.18 (backports of Debian
/// 13) has CONFIG_PREEMPT_LAZY=y, all beside CONFIG_PREEMPT_DYNAMIC=y: read from the packages
/// linux-config-6.1 6.1.192-2, linux-config-6.12 6.12.117-1 and linux-image-6.18.9+deb13. 6.6 lies
/// between two that agree; from 7.0 on lazy is the kernel's own default. 2.4 could not be preempted
/// inside the kernel at all; from 2.6 up to 2.6.24 that was an option that distributions left off;
/// 2.6.32 is what Red Hat Enterprise Linux 6 ran, with CONFIG_PREEMPT_VOLUNTARY=y (from memory).
/// Textbook schedulers have no kernel: they preempt at once.
pub fn default_preempt(scheduler: &SchedulerInfo) -> Preempt {
    match scheduler.name {
        "linux-2.4.18" | "linux-2.6.0" | "linux-2.6.11" | "linux-2.6.22" | "linux-2.6.24" => {
            Preempt::None
        }
        "rsdl-0.31" | "sd-0.48" => Preempt::None,
        "linux-2.6.32" | "linux-6.1" | "linux-6.6" | "linux-6.12.0" | "linux-6.12" => {
            Preempt::Voluntary
        }
        "linux-6.18" | "linux-7.1" | "linux-7.2" => Preempt::Lazy,
        _ => Preempt::Full,
    }
}
