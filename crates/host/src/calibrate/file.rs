// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the measured values as files for the simulator.

use super::{Calibration, Figure};
use schedlab_model::Costs;
use schedlab_run::MachineFile;
use schedlab_run::machine::costs_file;

impl Calibration {
    /// The costs as a costs file of this version of the program. A remark at each cost states how
    /// reliable it is.
    pub fn costs_file(&self, version: &str) -> String {
        let mut head = format!(
            "Costs measured by schedlab {version} `calibrate`, in ns: medians of repetitions.\n\
             What is missing keeps its default.\n"
        );
        let devices =
            self.figures.iter().filter(|figure| Costs::DEFAULT.field(figure.name).is_none());
        for figure in devices {
            head += &format!(
                "For [device] of a machine file: {} = {} ({})\n",
                figure.name,
                figure.median_ns,
                trust(figure)
            );
        }
        costs_file::format(&self.costs, &head, |name| match self.figure(name) {
            Some(figure) => trust(figure),
            None => "not measured".into(),
        })
    }

    /// The machine with the measured costs. Others keep their defaults.
    pub fn with_costs(&self, mut file: MachineFile) -> MachineFile {
        let measured = Costs::NAMES.iter().filter(|name| self.figure(name).is_some());
        let value = |name: &&str| Some(((**name).to_string(), self.costs.field(name)?));
        file.costs = measured.filter_map(value).collect();
        file.sources.push("costs: measured on this machine before the runs".into());
        file
    }
}

/// The reliability of a figure, in a line.
fn trust(figure: &Figure) -> String {
    let interval = figure
        .ci95_ns
        .map_or_else(String::new, |(low, high)| format!("{low} to {high} with 95 %, "));
    let (noise, count) = (figure.noise.name(), figure.nr_repetitions);
    format!("{interval}{noise}, {count} repetitions")
}
