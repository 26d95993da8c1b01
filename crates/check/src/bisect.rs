// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary search for the first bad one of several versions in order.

/// The verdict on one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trial {
    /// It is good.
    Good,
    /// It is bad, for this reason.
    Bad(String),
    /// It cannot be tried, for this reason.
    Untried(String),
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bisected {
    /// The last version is good.
    NoneBad,
    /// The first version is bad already.
    AllBad,
    /// A version at an end of the list cannot be tried: its index and the reason.
    NoEnd(usize, String),
    /// The change is between two versions. Those between them cannot be tried.
    Found {
        /// Index of the last good version.
        last_good: usize,
        /// Index of the first bad version.
        first_bad: usize,
    },
}

/// Searches `count` versions, at least one, of which the first should be good and the last bad.
/// `test` tries the version with an index.
///
/// # Errors
/// Those of `test`.
pub fn bisect<E>(
    count: usize,
    test: &mut dyn FnMut(usize) -> Result<Trial, E>,
) -> Result<Bisected, E> {
    match test(0)? {
        Trial::Good => {}
        Trial::Bad(_) => return Ok(Bisected::AllBad),
        Trial::Untried(why) => return Ok(Bisected::NoEnd(0, why)),
    }
    let (mut last_good, mut first_bad) = (0_usize, count - 1);
    match if first_bad == 0 { Trial::Good } else { test(first_bad)? } {
        Trial::Bad(_) => {}
        Trial::Good => return Ok(Bisected::NoneBad),
        Trial::Untried(why) => return Ok(Bisected::NoEnd(first_bad, why)),
    }
    let mut untried = vec![false; count];
    loop {
        let middle = last_good.midpoint(first_bad);
        // The version nearest to the middle that can be tried.
        let open = (last_good + 1..first_bad).filter(|index| !untried[*index]);
        let Some(next) = open.min_by_key(|index| index.abs_diff(middle)) else {
            return Ok(Bisected::Found { last_good, first_bad });
        };
        match test(next)? {
            Trial::Good => last_good = next,
            Trial::Bad(_) => first_bad = next,
            Trial::Untried(_) => untried[next] = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(count: usize, bad_from: usize, untried: &[usize]) -> (Bisected, usize) {
        let mut nr_trials = 0;
        let found = bisect(count, &mut |index| -> Result<Trial, ()> {
            nr_trials += 1;
            Ok(match index {
                _ if untried.contains(&index) => Trial::Untried("no".into()),
                _ if index >= bad_from => Trial::Bad("bad".into()),
                _ => Trial::Good,
            })
        });
        (found.unwrap(), nr_trials)
    }

    #[test]
    fn the_first_bad_version_is_found_in_few_trials() {
        for count in 2..40 {
            for bad_from in 1..count {
                let (found, nr_trials) = search(count, bad_from, &[]);
                let expected = Bisected::Found { last_good: bad_from - 1, first_bad: bad_from };
                assert_eq!(found, expected, "{count} {bad_from}");
                assert!(nr_trials <= 8, "{count}: {nr_trials}");
            }
        }
    }

    #[test]
    fn what_cannot_be_tried_is_left_out() {
        let found = |untried: &[usize]| search(8, 4, untried).0;
        assert_eq!(found(&[2]), Bisected::Found { last_good: 3, first_bad: 4 });
        assert_eq!(found(&[3, 4]), Bisected::Found { last_good: 2, first_bad: 5 });
        assert_eq!(found(&[7]), Bisected::NoEnd(7, "no".into()));
        assert_eq!(found(&[0]), Bisected::NoEnd(0, "no".into()));
    }

    #[test]
    fn ends_that_are_no_ends_are_told() {
        assert_eq!(search(5, 9, &[]).0, Bisected::NoneBad);
        assert_eq!(search(5, 0, &[]).0, Bisected::AllBad);
        assert_eq!(search(1, 9, &[]).0, Bisected::NoneBad);
    }
}
