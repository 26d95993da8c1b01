// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines of the simulator: presets and files.

use schedlab_run::{MachineFile, MachineSpec};

/// The presets: name, and the text of the file.
pub const PRESETS: [(&str, &str); 12] = [
    ("laptop", include_str!("../../../machines/laptop.toml")),
    ("server-2x32", include_str!("../../../machines/server-2x32.toml")),
    ("pi", include_str!("../../../machines/pi.toml")),
    ("guest-counted", include_str!("../../../machines/guest-counted.toml")),
    ("guest-counted-smp", include_str!("../../../machines/guest-counted-smp.toml")),
    ("S0", include_str!("../../../machines/S0.toml")),
    ("S2", include_str!("../../../machines/S2.toml")),
    ("S3-a", include_str!("../../../machines/S3-a.toml")),
    ("S3-b", include_str!("../../../machines/S3-b.toml")),
    ("S3-c", include_str!("../../../machines/S3-c.toml")),
    ("S3-d", include_str!("../../../machines/S3-d.toml")),
    ("S4", include_str!("../../../machines/S4.toml")),
];

/// Finds the preset called `name`, in any case.
pub fn preset(name: &str) -> Option<MachineSpec> {
    let (_, text) = PRESETS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    // A test reads every preset.
    parse(text).ok()
}

/// Reads a machine file: TOML, or JSON if it begins with a brace.
pub fn read(text: &str) -> Result<MachineFile, String> {
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}

/// Reads a machine from the text of a file.
pub fn parse(text: &str) -> Result<MachineSpec, String> {
    read(text)?.spec()
}
