// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggestions for misspelt names ("did you mean").

/// Returns the allowed word nearest to `found` if it may be a misspelling: at most a third of its
/// letters differ. Case, `_` and `-` do not count.
pub fn nearest<'a>(found: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are no slip; they would only cost time.
    if found.len() > 40 {
        return None;
    }
    let letters = |word: &str| word.to_lowercase().replace('_', "-").chars().collect::<Vec<_>>();
    let wanted = letters(found);
    allowed
        .into_iter()
        .map(|word| (edits(&wanted, &letters(word)), word))
        .filter(|(edits, word)| {
            let length = word.chars().count();
            *edits < length && *edits <= length.max(3) / 3
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, word)| word)
}

/// Number of letters to insert, delete, replace or exchange with their neighbours to turn `from`
/// into `to` (optimal string alignment).
fn edits(from: &[char], to: &[char]) -> usize {
    // Distances of what begins `from` to what begins `to`: the last two rows.
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut row = vec![i + 1];
        for j in 0..to.len() {
            let replaced = last[j] + usize::from(from[i] != to[j]);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && (from[i], from[i - 1]) == (to[j - 1], to[j]) {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

/// The words as a list for messages: `a, b, c`.
pub fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// Returns `did you mean `x`? `, or nothing if no allowed word is near.
pub fn did_you_mean<'a>(found: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    nearest(found, allowed).map(|word| format!("did you mean `{word}`? ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_nothing_else() {
        let words = ["run", "runtime", "sleep", "dl-runtime", "instance"];
        assert_eq!(nearest("slepe", words), Some("sleep"));
        assert_eq!(nearest("DL_RUNTIME", words), Some("dl-runtime"));
        assert_eq!(nearest("instances", words), Some("instance"));
        assert_eq!(nearest("banana", words), None);
        assert_eq!(nearest(&"r".repeat(5000), words), None);
        assert_eq!(nearest("linux6.12", ["linux-6.1", "linux-6.12"]), Some("linux-6.12"));
    }

    #[test]
    fn edits_are_counted() {
        let count = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|word| word.chars().collect::<Vec<_>>());
            edits(&from, &to)
        };
        assert_eq!((count("", "abc"), count("abc", ""), count("abc", "abc")), (3, 3, 0));
        assert_eq!((count("kitten", "sitting"), count("fcsf", "fcfs")), (3, 1));
        assert_eq!(count("thraeds", "threads"), 1);
    }
}
