// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab calibrate`: measures what the kernel's acts cost on this machine, for `--costs FILE`.

use crate::args::CalibrateArgs;
use crate::error::CliResult;
use crate::output::{Out, say};
use crate::table::{self, duration, number};

use schedlab_host::Figure;
use schedlab_model::Costs;
use schedlab_run::LaneError;
use schedlab_run::file::write_whole;
use serde_json::json;

/// Runs the command.
pub fn calibrate(args: &CalibrateArgs, out: &mut Out) -> CliResult<()> {
    say("measuring: keep the machine quiet for a few seconds");
    let found = schedlab_host::calibrate(args.repetitions).map_err(LaneError::from)?;
    for note in &found.notes {
        say(format!("note: {note}"));
    }
    if let Some(path) = &args.output {
        write_whole(path, found.costs_file(env!("CARGO_PKG_VERSION")).as_bytes())?;
        say(format!("wrote {}: use it with --costs {}", path.display(), path.display()));
    }
    if args.json {
        let costs: serde_json::Map<String, serde_json::Value> = Costs::NAMES
            .iter()
            .map(|name| ((*name).to_string(), json!(found.costs.field(name))))
            .collect();
        let figures = &found.figures;
        return out.json(&json!({"costs": costs, "figures": figures, "notes": found.notes}));
    }
    let heads = ["cost", "median", "95 % interval", "spread", "noise", "samples", "default"];
    let mut rows = table::table(&heads);
    for figure in &found.figures {
        rows.add_row([
            comfy_table::Cell::new(figure.name),
            number(duration(figure.median_ns)),
            number(figure.ci95_ns.map_or_else(
                || "-".into(),
                |(low, high)| format!("{} to {}", duration(low), duration(high)),
            )),
            number(format!("{:.0} %", figure.spread_percent)),
            comfy_table::Cell::new(figure.noise.name()),
            number(format!("{} x {}", figure.nr_repetitions, samples_each(figure))),
            number(table::maybe_duration(Costs::DEFAULT.field(figure.name))),
        ]);
    }
    out.line(table::render(&rows))
}

/// Mean number of samples in a repetition.
fn samples_each(figure: &Figure) -> u64 {
    figure.nr_samples / u64::from(figure.nr_repetitions.max(1))
}
