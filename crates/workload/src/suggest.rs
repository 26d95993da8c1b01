// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Did you mean": the nearest of the allowed words.

/// The allowed word nearest to `found`, if it is near enough to be a slip of the pen: at most a
/// third of its letters differ (Damerau-Levenshtein); case, `_` and `-` do not count.
pub fn nearest<'a>(found: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are no slip; they would only cost time.
    if found.len() > 40 {
        return None;
    }
    let normal = |word: &str| word.to_lowercase().replace('_', "-");
    let wanted = normal(found);
    allowed
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&wanted, &normal(word)), word))
        .filter(|(distance, word)| {
            let length = word.chars().count();
            *distance < length && *distance <= length.max(3) / 3
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// The words as a list for people: `a, b, c`.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// `Did you mean `x`? ` or nothing.
pub(crate) fn did_you_mean<'a>(found: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
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
    }
}
