// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the words of pages, help texts and docstrings against `xtask/words.toml`.
//!
//! It reports words and phrases of the list, sentences with too many words, and sentences with
//! more than one dash. Code is left out. [`commits`] checks the messages of new commits.

pub mod commits;
mod texts;

use serde::Deserialize;
use std::fs;
use std::path::Path;
use texts::Block;

/// `xtask/words.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Maximum number of words in a sentence, or in its part up to a semicolon; code does not
    /// count.
    sentence_words_max: usize,
    /// The newest commit whose message is not checked; nor are those before it.
    commits_after: String,
    /// Pages in Markdown, studies and Rust sources whose texts are checked: files and directories.
    texts: Vec<String>,
    /// Directories of Rust sources whose docstrings are checked.
    docstrings: Vec<String>,
    word: Vec<Word>,
}

/// A refused word or phrase.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    /// The phrase in lower case, with one blank between words.
    find: String,
    /// The replacement, as the end of the sentence "... : write ...".
    instead: String,
    /// Allowed longer phrases that contain it.
    #[serde(default)]
    except: Vec<String>,
}

impl Rules {
    /// Reads the rules of the repository at `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let path = root.join("xtask/words.toml");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("xtask/words.toml: {error}"))
    }

    /// Problems of a file, as `:LINE: what`. `name` is its path from the root.
    pub fn check_file(&self, name: &str, text: &str) -> Vec<String> {
        let within = |places: &[String]| {
            places.iter().any(|place| {
                name.strip_prefix(place.as_str())
                    .is_some_and(|rest| rest.is_empty() || place.ends_with('/'))
            })
        };
        let is_text = within(&self.texts);
        let blocks = match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("md") if is_text => texts::of_page(text),
            Some("toml") if is_text => texts::of_study(text),
            Some("rs") if is_text => texts::of_source(text, texts::Strings::All),
            Some("rs") if within(&self.docstrings) => {
                texts::of_source(text, texts::Strings::Docstrings)
            }
            _ => return Vec::new(),
        };
        blocks.iter().flat_map(|block| self.check(block)).collect()
    }

    fn check(&self, block: &Block) -> Vec<String> {
        let mut problems = self.refused(&block.text);
        for (at, sentence) in sentences(&block.text) {
            let words = sentence.split(';').map(words_of).max().unwrap_or(0);
            if words > self.sentence_words_max {
                let max = self.sentence_words_max;
                let begin: String = sentence.chars().take(40).collect();
                problems.push((
                    at,
                    format!("a sentence of {words} words, at most {max}: split it: {begin}..."),
                ));
            }
            if has_dash_chain(sentence) {
                problems.push((at, "more than one dash in a sentence: write two sentences".into()));
            }
        }
        problems.sort();
        let with_line = |(at, what): (usize, String)| format!(":{}: {what}", block.line(at));
        problems.into_iter().map(with_line).collect()
    }

    /// Refused words in a text, with their offsets.
    fn refused(&self, text: &str) -> Vec<(usize, String)> {
        let text = text.to_ascii_lowercase();
        let mut found = Vec::new();
        for word in &self.word {
            for at in occurrences(&text, &word.find) {
                let allowed = |phrase: &String| {
                    let within = phrase.find(&word.find).unwrap_or(0);
                    occurrences(&text, phrase).any(|begin| begin + within == at)
                };
                if !word.except.iter().any(allowed) {
                    found.push((at, format!("\"{}\": write {}", word.find, word.instead)));
                }
            }
        }
        found
    }
}

/// Offsets of a phrase in a text, without a letter or digit before or after it.
fn occurrences<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).map(|(at, _)| at).filter(move |&at| {
        !is_word(text[..at].chars().next_back())
            && !is_word(text[at + phrase.len()..].chars().next())
    })
}

/// Sentences of a text with their offsets. A sentence ends where `.`, `!` or `?` is followed by a
/// blank and something that can begin a sentence.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices(['.', '!', '?']) {
        let rest = text[at + 1..].trim_start_matches(['"', ')', ']', '*', '\'', ',']);
        let Some(next) = rest.strip_prefix(' ') else { continue };
        if next.starts_with(|c: char| !c.is_lowercase()) {
            let end = text.len() - next.len();
            found.push((begin, text[begin..end].trim_end()));
            begin = end;
        }
    }
    found.push((begin, &text[begin..]));
    found
}

fn words_of(sentence: &str) -> usize {
    sentence.split(' ').filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Whether two dashes of the sentence separate clauses. Dashes between figures do not.
fn has_dash_chain(sentence: &str) -> bool {
    let separates = |at: usize| !sentence[..at].ends_with(|c: char| c.is_ascii_digit());
    let dashes = sentence.match_indices(['\u{2014}', '\u{2013}']);
    dashes.filter(|(at, _)| separates(*at)).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        toml::from_str(
            "sentence_words_max = 6\ncommits_after = \"x\"\n\
             texts = [\"docs/\", \"a.rs\", \"studies/\"]\ndocstrings = [\"src/\"]\n\
             [[word]]\nfind = \"stands\"\ninstead = \"is\"\nexcept = [\"stands for\"]\n\
             [[word]]\nfind = \"says so\"\ninstead = \"who says what\"\n",
        )
        .unwrap()
    }

    #[test]
    fn a_refused_word_is_named_with_its_line_and_what_to_write() {
        let found = rules().check_file("docs/a.md", "# A\n\nThe file\nStands there.\n");
        assert_eq!(found, [":4: \"stands\": write is"]);
        let found = rules().check_file("docs/a.md", "The result says\nso. It is.\n");
        assert_eq!(found, [":1: \"says so\": write who says what"]);
    }

    #[test]
    fn parts_of_words_code_links_and_exceptions_are_no_problem() {
        for text in [
            "Grandstands.",
            "A `that stands`.",
            "See [a](stands.md).",
            "It stands for A.",
            "```\nstands\n```",
            "A\n\n    stands\n\nB",
        ] {
            assert_eq!(rules().check_file("docs/a.md", text), [""; 0], "{text}");
        }
        assert_eq!(rules().check_file("docs/a.md", "It stands for what stands.").len(), 1);
    }

    #[test]
    fn only_the_listed_files_are_checked() {
        assert_eq!(rules().check_file("docs.md", "stands"), [""; 0]);
        assert_eq!(rules().check_file("docs/a.svg", "stands"), [""; 0]);
        assert_eq!(rules().check_file("a.rsx", "stands"), [""; 0]);
    }

    #[test]
    fn long_sentences_are_found_without_their_code() {
        let found = rules().check_file("docs/a.md", "One.\nA b c\nd e f g. H.\n");
        assert_eq!(found, [":2: a sentence of 7 words, at most 6: split it: A b c d e f g...."]);
        assert_eq!(rules().check_file("docs/a.md", "A b c d e f `g` `h i`."), [""; 0]);
        assert_eq!(rules().check_file("docs/a.md", "- A b c d\n- e f g h\n"), [""; 0]);
        assert_eq!(rules().check_file("docs/a.md", "| a b c d | e f g h |\n"), [""; 0]);
        // A semicolon splits it; an abbreviation in the middle does not.
        assert_eq!(rules().check_file("docs/a.md", "A b c d; e f g h."), [""; 0]);
        assert_eq!(rules().check_file("docs/a.md", "A b c, e.g. d e f.").len(), 1);
    }

    #[test]
    fn chains_of_dashes_are_found() {
        let text = "A \u{2014} b \u{2014} c.";
        assert_eq!(rules().check_file("docs/a.md", text).len(), 1);
        assert_eq!(rules().check_file("docs/a.md", "A \u{2014} b."), [""; 0]);
        assert_eq!(rules().check_file("docs/a.md", "A 0\u{2013}8, b 8\u{2013}9."), [""; 0]);
    }

    #[test]
    fn docstrings_help_and_studies_are_checked() {
        let source = "//! It stands.\n\n/// Fine.\n/// It\n/// stands.\nfn f() {\n    \
                      // stands\n    g(\"stands\");\n}\n";
        let line = |n: usize| format!(":{n}: \"stands\": write is");
        assert_eq!(rules().check_file("src/b.rs", source), [line(1), line(5)]);
        assert_eq!(rules().check_file("a.rs", source), [line(1), line(5), line(8)]);
        let study = "# stands\nname = \"stands\"\n[[claim]]\ntext = \"\"\"\nIt\nstands.\n\"\"\"\n\
                     why = \"stands\"\n";
        assert_eq!(rules().check_file("studies/a.toml", study), [line(6), line(8)]);
    }

    #[test]
    fn the_rules_of_the_repository_can_be_read() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let rules = Rules::read(root).unwrap();
        for word in &rules.word {
            assert_eq!(word.find, word.find.to_ascii_lowercase());
            assert!(!word.instead.is_empty(), "{}", word.find);
            assert!(word.except.iter().all(|phrase| phrase.contains(&word.find)), "{}", word.find);
        }
        for place in rules.texts.iter().chain(&rules.docstrings) {
            assert!(root.join(place).exists(), "{place}");
        }
    }
}
