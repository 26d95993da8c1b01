// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colour, dash and marker of each line, the same everywhere in a report.
//!
//! A measured policy and its model share colour and marker shape. The measured line is solid with
//! filled markers, the simulated one dashed with hollow markers, so that colour is never the only
//! cue. The colours are Okabe and Ito's set for all kinds of colour vision (jfly.uni-koeln.de,
//! "Color Universal Design"). Yellow is last because it is faint on white paper.

use crate::group::{Config, Group};
use crate::order::config_order;
use crate::pairs::twins_of;

/// The palette on white, in order of use. The style sheet has the same order as `--c0` ...
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#666666", "#c9b800"];

/// Number of marker shapes (`Path::marker`), one for each colour.
const MARKERS: usize = 8;

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Style {
    /// Index into [`COLOURS`].
    pub colour: usize,
    /// Number of the marker shape.
    pub marker: usize,
    /// Whether the line is simulated: dashed with hollow markers.
    pub dashed: bool,
}

impl Style {
    /// The look of the line with this number in its figure, solid. After eight lines the colours
    /// repeat with another marker.
    pub fn numbered(index: usize) -> Style {
        let marker = (index + index / COLOURS.len()) % MARKERS;
        Style { colour: index % COLOURS.len(), marker, dashed: false }
    }
}

/// The look of every configuration in the report.
#[derive(Debug, Default)]
pub struct Styles {
    known: Vec<(Config, Style)>,
}

impl Styles {
    /// Assigns colours: to models in order of appearance; to each measured policy the colour of its
    /// model, or the next free one if another policy has that.
    pub fn new(groups: &[Group<'_>]) -> Styles {
        let mut styles = Styles::default();
        let mut next = 0;
        for group in groups {
            // Models with a measured partner come first: compared lines get the clearest colours.
            for config in config_order(group).into_iter().map(|index| &group.configs[index]) {
                if config.is_simulated() {
                    styles.add(config, &mut next, None);
                }
            }
        }
        for group in groups {
            let twins = twins_of(group);
            for (index, config) in group.configs.iter().enumerate() {
                if !config.is_simulated() {
                    let wanted = twins[index].map(|twin| styles.of(&group.configs[twin]).colour);
                    styles.add(config, &mut next, wanted);
                }
            }
        }
        styles
    }

    fn add(&mut self, config: &Config, next: &mut usize, wanted: Option<usize>) {
        if self.known.iter().any(|(known, _)| known == config) {
            return;
        }
        let taken = |colour: usize| {
            self.known.iter().any(|(c, s)| c.lane == config.lane && s.colour == colour)
        };
        let slot = match wanted {
            Some(colour) if !taken(colour) => colour,
            _ => {
                *next += 1;
                *next - 1
            }
        };
        let style = Style { dashed: config.is_simulated(), ..Style::numbered(slot) };
        self.known.push((config.clone(), style));
    }

    /// The look of `config`; an unknown one looks like the first line.
    pub fn of(&self, config: &Config) -> Style {
        self.known
            .iter()
            .find(|(known, _)| known == config)
            .map_or(Style { colour: 0, marker: 0, dashed: false }, |(_, style)| *style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};

    #[test]
    fn a_policy_has_the_colour_of_its_model_and_another_dash() {
        let mut other = run(Host, "OTHER", 1, 1);
        other.machine.kernel = "6.18.0".into();
        let mut batch = run(Host, "BATCH", 1, 1);
        batch.machine.kernel = "6.18.0".into();
        let results = [experiment("x", vec![run(Sim, "linux-6.12", 1, 1), other, batch])];
        let groups = group_all(&results);
        let styles = Styles::new(&groups);
        let look: Vec<Style> = groups[0].configs.iter().map(|c| styles.of(c)).collect();
        assert_eq!(look[0].colour, look[1].colour);
        assert!(look[0].dashed && !look[1].dashed);
        assert_ne!(look[1].colour, look[2].colour);
    }

    #[test]
    fn twenty_lines_differ_in_colour_or_marker() {
        let runs = (0..20).map(|i| run(Sim, &format!("s{i}"), 1, 1)).collect();
        let results = [experiment("x", runs)];
        let groups = group_all(&results);
        let styles = Styles::new(&groups);
        let mut looks: Vec<(usize, usize)> =
            groups[0].configs.iter().map(|c| (styles.of(c).colour, styles.of(c).marker)).collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 20);
    }
}
