// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of measures and swept parameters for people. Axes and titles of figures show "time a task
//! waits for a CPU, 99th percentile (ms)"; the caption has the measure's name in results.

/// Measures and parts of them, by the start of their name.
const NAMES: [(&str, &str); 23] = [
    ("turnaround", "time from release to exit"),
    ("response", "time from release to first run"),
    ("run_delay", "time a task waits for a CPU"),
    ("wakeup_latency", "time from wake-up to running"),
    ("wait", "a single wait for a CPU"),
    ("slice", "uninterrupted time on a CPU"),
    ("makespan", "time until the last task ends"),
    ("last_phase", "length of the last phase"),
    ("throughput_per_s", "tasks that end per second"),
    ("utilisation", "part of the CPU time used"),
    ("jain_index", "Jain's fairness index of CPU time"),
    ("cpu_time", "CPU time"),
    ("cpu_share", "share of the CPU time"),
    ("user_time", "CPU time in user mode"),
    ("system_time", "CPU time in the kernel"),
    ("idle_capacity", "CPU time that nobody used"),
    ("sleep", "time asleep"),
    ("blocked_io", "time blocked on a device"),
    ("nr_switches", "context switches"),
    ("nr_voluntary_switches", "voluntary context switches"),
    ("nr_involuntary_switches", "involuntary context switches"),
    ("nr_migrations", "moves of tasks between CPUs"),
    ("nr_wakeups", "wake-ups"),
];

/// Values of a distribution, by the end of a measure's name.
const PARTS: [(&str, &str); 9] = [
    ("_mean", "mean"),
    ("_median", "median"),
    ("_p95", "95th percentile"),
    ("_p99", "99th percentile"),
    ("_min", "least"),
    ("_max", "greatest"),
    ("_q1", "first quartile"),
    ("_q3", "third quartile"),
    ("_count", "number"),
];

/// A measure's name for people, with `unit` in brackets if it has one. A name that is not in the
/// list, such as a figure of a third-party program, stays as it is, with blanks.
pub fn measure_words(measure: &str, unit: &str) -> String {
    let part = PARTS.iter().find_map(|(end, words)| Some((measure.strip_suffix(end)?, *words)));
    let (stem, part) = part.map_or((measure, ""), |(stem, words)| (stem, words));
    let stem = stem.strip_suffix("_ns").unwrap_or(stem);
    let known = NAMES.iter().find(|(name, _)| *name == stem);
    let mut words = known.map_or_else(|| stem.replace('_', " "), |(_, words)| (*words).into());
    if !part.is_empty() {
        words += &format!(", {part}");
    }
    if !unit.is_empty() {
        words += &format!(" ({unit})");
    }
    words
}

/// A swept parameter's name for people, with `unit` in brackets if it has one.
pub fn axis_words(axis: &str, unit: &str) -> String {
    let words = match axis.trim_start_matches("set.") {
        "n" | "tasks" | "nr_tasks" => "number of tasks".into(),
        "cpus" | "nr_cpus" => "number of CPUs".into(),
        other => other.replace('_', " "),
    };
    if unit.is_empty() { words } else { format!("{words} ({unit})") }
}

/// `text` with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::values;

    #[test]
    fn measures_have_words_and_units() {
        let delay = measure_words("run_delay_ns_p99", "ms");
        assert_eq!(delay, "time a task waits for a CPU, 99th percentile (ms)");
        assert_eq!(measure_words("nr_switches", ""), "context switches");
        assert_eq!(measure_words("frames_per_s", ""), "frames per s");
        assert_eq!(axis_words("set.base_slice", "ms"), "base slice (ms)");
    }

    /// Every entry of the table is the start of the name of a run's or a task's measure.
    #[test]
    fn every_name_is_that_of_a_measure() {
        let mut names = values::measure_names();
        let task = schedlab_metrics::TaskMeasures::default();
        let json = serde_json::to_value(&task).unwrap();
        names.extend(json.as_object().unwrap().keys().cloned());
        for (stem, _) in NAMES {
            assert!(names.iter().any(|name| name.starts_with(stem)), "{stem}");
        }
    }
}
