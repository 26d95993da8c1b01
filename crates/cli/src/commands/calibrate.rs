// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab calibrate`: what things cost on this machine, for `--costs FILE`.

use crate::args::CalibrateArgs;
use crate::error::CliResult;
use crate::machine;
use crate::output::{AtomicFile, Out, say};
use crate::table::{self, duration, number};

use schedlab_lab::LaneError;
use schedlab_model::Costs;
use serde_json::json;
use std::io::Write;

/// Runs the command.
pub fn calibrate(args: &CalibrateArgs, out: &mut Out) -> CliResult<()> {
    say("measuring: keep the machine quiet for a few seconds");
    let found = schedlab_host::calibrate::calibrate().map_err(LaneError::from)?;
    for note in &found.notes {
        say(format!("note: {note}"));
    }
    if let Some(path) = &args.output {
        let head = format!(
            "Costs measured by schedlab {} `calibrate`, in nanoseconds.\n\
             What is missing keeps its default.",
            env!("CARGO_PKG_VERSION")
        );
        let mut file = AtomicFile::create(path)?;
        file.write_all(machine::format_costs(&found.costs, &head).as_bytes())?;
        file.commit()?;
        say(format!("wrote {}: use it with --costs {}", path.display(), path.display()));
    }
    if args.json {
        let costs: serde_json::Map<String, serde_json::Value> = Costs::NAMES
            .iter()
            .map(|name| ((*name).to_string(), json!(found.costs.field(name))))
            .collect();
        let figures: Vec<serde_json::Value> = found
            .figures
            .iter()
            .map(|figure| {
                json!({
                    "name": figure.name,
                    "median_ns": figure.median_ns,
                    "p10_ns": figure.p10_ns,
                    "p90_ns": figure.p90_ns,
                    "count": figure.count,
                })
            })
            .collect();
        return out.json(&json!({"costs": costs, "figures": figures, "notes": found.notes}));
    }
    let mut rows = table::table(&["cost", "median", "10 %", "90 %", "samples", "default"]);
    for figure in &found.figures {
        let default = Costs::DEFAULT.field(figure.name);
        rows.add_row([
            comfy_table::Cell::new(figure.name),
            number(duration(figure.median_ns)),
            number(duration(figure.p10_ns)),
            number(duration(figure.p90_ns)),
            number(figure.count),
            number(table::maybe_duration(default)),
        ]);
    }
    out.line(table::render(&rows))
}
