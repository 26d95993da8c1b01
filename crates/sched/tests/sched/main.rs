// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the schedulers' classes, without an engine. They are one program, which is compiled
//! and linked once.

mod balance;
mod balance_features;
mod balancing_support;
mod bandwidth;
mod cfs;
mod eevdf;
mod eevdf_7_1;
mod eevdf_model;
mod fair_groups;
mod fair_kernel;
mod features;
mod rmlfq;
mod rt;
mod rt_kernel;
mod select;
mod textbook;
mod textbook_laws;
mod textbook_programs;
mod textbook_random;
mod textbook_support;
mod user;
