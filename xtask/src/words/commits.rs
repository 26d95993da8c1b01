// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the messages of commits: `area: imperative`, then a body that gives the reason.

use super::{Rules, texts};
use std::path::Path;
use std::process::Command;

const SUBJECT_CHARS_MAX: usize = 72;
const BODY_CHARS_MAX: usize = 100;
/// Maximum number of added and removed lines of a change without a body.
const TRIVIAL_LINES_MAX: usize = 30;

/// Subjects of git's own messages. A commit without parents in this clone may be a merge, which
/// `git log --no-merges` cannot detect.
const OF_GIT: [&str; 2] = ["Merge ", "Revert "];

/// Imperatives that end like a past tense or a gerund.
const IMPERATIVES: [&str; 9] =
    ["bring", "embed", "exceed", "feed", "need", "proceed", "seed", "speed", "string"];

struct Commit<'a> {
    id: &'a str,
    message: &'a str,
    /// Number of added and removed lines.
    lines: usize,
}

/// Problems of the commits after [`Rules::commits_after`] in the repository at `root`. Empty if it
/// cannot know which commits are new: that commit is unknown (as in a shallow clone), there is no
/// git directory, or no git.
pub fn check(root: &Path, rules: &Rules) -> Result<Vec<String>, String> {
    if !root.join(".git").exists() || Command::new("git").arg("--version").output().is_err() {
        return Ok(Vec::new());
    }
    let first = &rules.commits_after;
    if git(root, &["merge-base", "--is-ancestor", first, "HEAD"]).is_err() {
        return Ok(Vec::new());
    }
    let range = format!("{first}..HEAD");
    let format = "--format=%x00%h%x01%B%x01";
    let log = git(root, &["log", "--no-merges", "--shortstat", format, &range])?;
    Ok(parse(&log).iter().flat_map(|commit| check_commit(commit, rules)).collect())
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    // Reading a checkout of another user is harmless: tests in containers run as root.
    let options = ["-c", "safe.directory=*", "-C"];
    let output = Command::new("git").args(options).arg(root).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git {}: {}", arguments[0], error.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse(log: &str) -> Vec<Commit<'_>> {
    log.split('\0')
        .filter_map(|commit| {
            let mut fields = commit.split('\u{1}');
            let (id, message) = (fields.next()?, fields.next()?);
            Some(Commit { id, message, lines: changed_lines(fields.next().unwrap_or_default()) })
        })
        .collect()
}

/// The sum of insertions and deletions in `1 file changed, 2 insertions(+), 3 deletions(-)`.
fn changed_lines(stat: &str) -> usize {
    let numbers = stat.split(',').filter(|part| part.contains("(+)") || part.contains("(-)"));
    numbers.filter_map(|part| part.split_whitespace().next()?.parse::<usize>().ok()).sum()
}

fn check_commit(commit: &Commit, rules: &Rules) -> Vec<String> {
    let (subject, rest) = commit.message.split_once('\n').unwrap_or((commit.message, ""));
    let mut found = Vec::new();
    if OF_GIT.iter().any(|begin| subject.starts_with(begin)) {
        return found;
    }
    found.extend(subject_problem(subject));
    if subject.chars().count() > SUBJECT_CHARS_MAX {
        found.push(format!("the subject has more than {SUBJECT_CHARS_MAX} characters"));
    }
    if subject.ends_with('.') {
        found.push("the subject ends with a full stop".into());
    }
    if rest.lines().next().is_some_and(|line| !line.trim().is_empty()) {
        found.push("no blank line follows the subject".into());
    }
    if rest.trim().is_empty() && commit.lines > TRIVIAL_LINES_MAX {
        found.push(format!(
            "{} changed lines without a body: say why, with the figure that moved",
            commit.lines
        ));
    }
    for line in rest.lines() {
        if line.chars().count() > BODY_CHARS_MAX && !line.contains("https://") {
            found.push(format!("a line of the body has more than {BODY_CHARS_MAX} characters"));
        }
    }
    let message = texts::without_quotes(&texts::without_code(commit.message));
    found.extend(rules.refused(&message).into_iter().map(|(_, what)| what));
    found.into_iter().map(|what| format!("commit {}: {what}: {subject}", commit.id)).collect()
}

/// The problem with the form `area: imperative summary`, if any.
fn subject_problem(subject: &str) -> Option<String> {
    let is_area = |area: &str| {
        let of_area = |c: char| c.is_ascii_alphanumeric() || "-_./, ".contains(c);
        !area.is_empty() && area.len() <= 30 && area.chars().all(of_area)
    };
    let Some((_, summary)) = subject.split_once(": ").filter(|(area, _)| is_area(area)) else {
        return Some("the subject is not of the form \"area: imperative summary\"".into());
    };
    let verb = summary.split([' ', ',']).next().unwrap_or_default();
    let is_past = verb.ends_with("ed") || verb.ends_with("ing");
    let is_third = verb.ends_with('s') && !verb.ends_with("ss") && verb != "focus";
    let is_article = ["a", "an", "the", "what", "how", "who"].contains(&verb);
    if verb.starts_with(char::is_uppercase) {
        return Some(format!("\"{verb}\" begins with a capital"));
    }
    ((is_past && !IMPERATIVES.contains(&verb)) || is_third || is_article)
        .then(|| format!("\"{verb}\" is no imperative, as \"add\" or \"remove\" are"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn rules() -> Rules {
        toml::from_str(
            "sentence_words_max = 9\ncommits_after = \"0000000\"\ntexts = []\ndocstrings = []\n\
             [[word]]\nfind = \"whoever\"\ninstead = \"the caller\"\n",
        )
        .unwrap()
    }

    fn problems(message: &str, lines: usize) -> usize {
        check_commit(&Commit { id: "1", message, lines }, &rules()).len()
    }

    #[test]
    fn a_good_message_has_no_problem() {
        for message in [
            "engine: charge a tick before ending it\n\nThe slice was 1 us too long.\n",
            "docs, cli: bring tables to 80 columns\n\nWhy.\n",
            "docs: replace a word\n\nPages had \"whoever\" and `whoever`.\n",
            "sched: pass the flags on\n\nWhy.\n",
            "Merge branch 'x'\n",
            "Revert \"Something.\"\n\nThis reverts commit 1.\n",
        ] {
            assert_eq!(problems(message, 31), 0, "{message}");
        }
        assert_eq!(problems("ci: name the step\n", 30), 0);
    }

    #[test]
    fn bad_messages_are_found() {
        for (message, lines) in [
            ("Charge a tick\n", 1),
            ("engine charges: Ticks\n", 1),
            ("engine: charged a tick\n", 1),
            ("engine: charging a tick\n", 1),
            ("engine: charges a tick\n", 1),
            ("engine: the tick is charged\n", 1),
            ("engine: charge a tick.\n", 1),
            ("engine: charge a tick\nWhy.\n", 1),
            ("engine: charge a tick\n", 31),
            ("engine: charge a tick for whoever runs\n", 1),
        ] {
            assert_eq!(problems(message, lines), 1, "{message}");
        }
        assert_eq!(problems(&format!("engine: add {}\n", "x".repeat(60)), 1), 0);
        assert_eq!(problems(&format!("engine: add {}\n", "x".repeat(61)), 1), 1);
        assert_eq!(problems(&format!("engine: add x\n\n{}\n", "x".repeat(100)), 1), 0);
        assert_eq!(problems(&format!("engine: add x\n\n{}\n", "x".repeat(101)), 1), 1);
    }

    #[test]
    fn commits_are_read_from_git() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(check(root, &rules()).unwrap(), [""; 0]);
        let run = |arguments: &[&str]| git(root, arguments).unwrap();
        run(&["init", "-q"]);
        run(&["config", "user.name", "A"]);
        run(&["config", "user.email", "a@example.org"]);
        fs::write(root.join("a"), "x\n".repeat(31)).unwrap();
        run(&["add", "a"]);
        run(&["commit", "-q", "-m", "Bad subject"]);
        let first = run(&["rev-parse", "HEAD"]).trim().to_string();
        fs::write(root.join("a"), "y\n").unwrap();
        run(&["commit", "-q", "-a", "-m", "a: write y"]);

        // In a clone without the first commit, no commit counts as new.
        assert_eq!(check(root, &rules()).unwrap(), [""; 0]);

        let rules = Rules { commits_after: first, ..rules() };
        let found = check(root, &rules).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("32 changed lines without a body"), "{found:?}");
    }
}
