// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stored figures of random workloads, and the tables of the page that shows them.
//!
//! `schedlab validate --cases held-out --store studies/results/agreement.json` measures them.

use schedlab_lab::Study;
use schedlab_lab::cases::{Agreement, markdown};
use schedlab_lab::pairs::Wanted;
use schedlab_lab::studies::VALIDATION;
use schedlab_testing::golden;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/reference/fidelity.md";
const FIGURES: &str = "studies/results/agreement.json";
const BEGIN: &str = "<!-- agreement: written by `cargo xtask bless` -->\n";
const END: &str = "<!-- agreement: end -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn stored() -> Agreement {
    serde_json::from_str(&fs::read_to_string(root().join(FIGURES)).unwrap()).unwrap()
}

#[test]
fn the_page_shows_the_stored_figures() {
    let page = root().join(PAGE);
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has the begin of the tables");
    let (_, after) = rest.split_once(END).expect("the page has the end of the tables");
    let tables = markdown(&stored());
    golden(&page, &format!("{before}{BEGIN}{tables}{END}{after}")).unwrap();
}

#[test]
fn the_stored_figures_are_of_the_studys_cases() {
    for one in stored().kernels {
        let wanted = Wanted { cases: Some(one.half), ..Wanted::default() };
        let study = Study::parse(VALIDATION).unwrap().with_pairs(&wanted).unwrap();
        let cases = study.of_cases.cases.iter();
        let cases: Vec<_> =
            cases.filter(|case| case.set == one.set && case.is_for(&one.kernel)).collect();
        assert_eq!(one.nr_cases as usize, cases.len(), "{} {:?}", one.kernel, one.half);
        let seeds: BTreeSet<u64> = cases.iter().map(|case| case.seed).collect();
        assert!(one.outside.iter().all(|comparison| seeds.contains(&comparison.seed)));
        for (name, found) in &one.figures.features {
            let nr = cases.iter().filter(|case| case.features.contains(name)).count();
            assert!(found.nr_cases as usize <= nr, "{}: {name}", one.kernel);
        }
        let pair = study.pairs.iter().find(|pair| pair.kernel == one.kernel);
        assert_eq!(pair.map(|pair| &pair.model), Some(&one.model));
    }
}
