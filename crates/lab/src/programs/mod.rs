// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the studies' own programs would have printed, made of our runs: the same columns, so that
//! scripts that draw their output draw ours.
//!
//! `sched` has study S0's records (`sched`, `sched_nice`) and those of their Python successors,
//! `load` study S1's times (`load`, `multiload`, `cpuperf`), `schedmark` the raw data of study S2.
//! Sources: `sched.c` and `sched_nice.c` of Satoru Takeuchi, "Linux in Practice" (2018), with
//! `visualize.py` of study S0; `sched.py`, `load.py`, `multiload.sh`, `cpuperf.sh` and
//! `plot_sched.py` of its second edition; `benchmark` and `analyze` of Shannon and Eller, "An
//! Analysis of Linux Schedulers" (2015).
//! Left out: what the programs print for people (`estimating workload ...`, `end estimation`): the
//! scripts do not read it. Mended: `cpuperf.sh` reads only times below a minute and shifts the
//! columns otherwise.

mod load;
mod sched;
mod schedmark;

pub use load::{cpuperf, time};
pub use sched::{data, record_times_ms, tsv, tsv_name};
pub use schedmark::{Cell, cells, is_cell, time_line};
