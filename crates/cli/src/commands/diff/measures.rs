// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measures of two schedulers over several seeds.

use super::Party;
use crate::commands::sim;
use crate::error::CliResult;
use schedlab_lab::versus::{Versus, measures_default};
use schedlab_run::{RunRequest, RunResult};
use schedlab_sim::SimLane;

/// Runs both schedulers under each seed on `nr_threads` threads, and compares their measures. B is
/// compared with A. `None` if they share no measure.
pub fn compare(
    mut lane: SimLane,
    parties: &[Party; 2],
    requests: Vec<[RunRequest; 2]>,
    nr_threads: usize,
) -> CliResult<Option<Versus>> {
    let (a, b): (Vec<RunRequest>, Vec<RunRequest>) =
        requests.into_iter().map(|[a, b]| (a, b)).unzip();
    let mut run = |party: &Party, requests: Vec<RunRequest>| -> CliResult<Vec<RunResult>> {
        let seed = requests.first().map_or(0, |request| request.seed);
        lane.schedulers = party.known.compiled();
        sim::run_many(&lane, requests, nr_threads, seed)
    };
    let [of_a, of_b] = [run(&parties[0], a)?, run(&parties[1], b)?];
    let [of_a, of_b] = [&of_a, &of_b].map(|runs| runs.iter().collect::<Vec<_>>());
    let measures: Vec<String> = measures_default().map(String::from).collect();
    Ok(Versus::of(("A", &of_a), ("B", &of_b), &measures))
}
