// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers of bpf/scx, compiled when this crate was built.

use crate::error::HostError;

/// Name, model in the simulator and one line of each, in the order of their descriptions.
pub const SCHEDULERS: &[Builtin] = &[
    Builtin { name: "fifo", twin: "fcfs", summary: "first come, first served; no preemption" },
    Builtin { name: "rr", twin: "rr", summary: "round robin: FIFO queue with a quantum" },
    Builtin { name: "vtime", twin: "vtime", summary: "weighted virtual time" },
    Builtin {
        name: "mlfq",
        twin: "mlfq",
        summary: "multilevel feedback queue: using up a quantum leads to the next queue",
    },
    Builtin {
        name: "wrr",
        twin: "wrr",
        summary: "weighted round robin: 100 ms in the foreground, 10 ms in the background",
    },
    Builtin {
        name: "group-wrr",
        twin: "group-wrr",
        summary: "WRR with control groups as members: each group its turn",
    },
    Builtin {
        name: "rmlfq",
        twin: "rmlfq-design",
        summary: "WRR with slices of 100 to 1,000 ms by priority and random moves",
    },
    Builtin {
        name: "sd",
        twin: "sd-0.48",
        summary: "Staircase Deadline 0.48: 40 slots a rotation, no measuring of sleep",
    },
];

/// A scheduler of bpf/scx.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// The model in the simulator with the same rules.
    pub twin: &'static str,
    /// A description in one line.
    pub summary: &'static str,
}

#[cfg(schedlab_bpf)]
mod objects {
    include!(concat!(env!("OUT_DIR"), "/scx_objects.rs"));
}

/// The object of scheduler `name`, as clang and libbpf made it.
///
/// # Errors
/// There is no such scheduler, or this build has none.
pub fn object(name: &str) -> Result<&'static [u8], HostError> {
    if !SCHEDULERS.iter().any(|known| known.name == name) {
        let names: Vec<&str> = SCHEDULERS.iter().map(|known| known.name).collect();
        return Err(HostError::Input(format!(
            "no sched_ext scheduler is called {name:?}; known: {}; a path (./my.bpf.c, my.bpf.o) \
             names a file",
            names.join(", ")
        )));
    }
    #[cfg(schedlab_bpf)]
    if let Some((_, object)) = objects::OBJECTS.iter().find(|(known, _)| *known == name) {
        return Ok(object);
    }
    Err(HostError::Unavailable(
        "this build has no sched_ext schedulers: clang was missing when it was built".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = object("cfs").unwrap_err().to_string();
        assert!(error.contains("\"cfs\"") && error.contains("fifo, rr"), "{error}");
    }
}
