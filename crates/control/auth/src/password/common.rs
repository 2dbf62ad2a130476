//! Passwords that attackers try first, as roots and disguises instead of millions of lines.
//!
//! Lists of leaked passwords are, for the most part, a few thousand roots (words, names, walks
//! over the keyboard, counting) with digits and signs around them and letters swapped for lookalikes.
//! Undoing the disguise and looking up what is left covers them in a few kilobytes, and covers next
//! year's `summer2027!` too.

use std::collections::HashSet;
use std::sync::OnceLock;

/// Roots, sorted, one per word; see the file for how it is made.
const ROOTS: &str = include_str!("roots.txt");

/// Rows of keyboards and counting, in both directions a walk along them is a root.
const WALKS: &[&str] = &[
    "01234567890123456789",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiop",
    "yxcvbnm",
    "azertyuiop",
    "qsdfghjklm",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "zaq1xsw2cde3vfr4bgt5nhy6mju7",
    "q1w2e3r4t5y6u7i8o9p0",
    "1q2w3e4r5t6y7u8i9o0p",
    "!@#$%^&*()",
];
const MIN_WALK: usize = 4;

fn roots() -> &'static HashSet<&'static str> {
    static SET: OnceLock<HashSet<&'static str>> = OnceLock::new();
    SET.get_or_init(|| {
        ROOTS
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::split_whitespace)
            .collect()
    })
}

/// Whether a password, in lower case, is a root in disguise.
pub(super) fn is_common(lower: &str) -> bool {
    let original: Vec<char> = lower.chars().collect();
    let undisguised: Vec<char> = original.iter().copied().map(undisguised).collect();
    [&original, &undisguised]
        .into_iter()
        .any(|letters| is_made_of_roots(letters, &original))
}

/// The letter that a sign or a digit stands in for.
fn undisguised(letter: char) -> char {
    match letter {
        '@' | '4' => 'a',
        '8' => 'b',
        '3' | '€' => 'e',
        '1' | '!' | '|' => 'i',
        '0' => 'o',
        '$' | '5' => 's',
        '7' | '+' => 't',
        other => other,
    }
}

/// Whether nothing remains but a couple of characters when roots, walks, digits and signs are
/// taken out. A sign that stands for no letter of a root is a sign.
fn is_made_of_roots(letters: &[char], original: &[char]) -> bool {
    let mut position = 0;
    let mut found = false;
    let mut rest = 0;
    while position < letters.len() {
        let taken = longest_root(&letters[position..]).max(longest_walk(&letters[position..]));
        if taken > 0 {
            found = true;
            position += taken;
            continue;
        }
        if original[position].is_alphabetic() {
            rest += 1;
        }
        position += 1;
    }
    found && rest <= 2 && root_count(letters) <= 2
}

/// How many roots there are; three unrelated words are a passphrase, not a disguise.
fn root_count(letters: &[char]) -> usize {
    let mut position = 0;
    let mut seen = HashSet::new();
    while position < letters.len() {
        let taken = longest_root(&letters[position..]);
        if taken > 0 {
            seen.insert(&letters[position..position + taken]);
            position += taken;
        } else {
            position += 1;
        }
    }
    seen.len()
}

fn longest_root(letters: &[char]) -> usize {
    let longest = letters.len().min(16);
    (3..=longest)
        .rev()
        .find(|length| {
            let word: String = letters[..*length].iter().collect();
            roots().contains(word.as_str())
        })
        .unwrap_or(0)
}

fn longest_walk(letters: &[char]) -> usize {
    let longest = letters.len().min(20);
    (MIN_WALK..=longest)
        .rev()
        .find(|length| {
            let forward: String = letters[..*length].iter().collect();
            let backward: String = letters[..*length].iter().rev().collect();
            WALKS
                .iter()
                .any(|walk| walk.contains(&forward) || walk.contains(&backward))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_lower_case_and_has_no_doubles() {
        let words: Vec<&str> = ROOTS
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::split_whitespace)
            .collect();
        let mut sorted = words.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(words, sorted);
        assert!(words.len() > 500);
        assert!(words.iter().all(|word| (3..=16).contains(&word.len())));
        assert!(words.iter().all(|word| *word == word.to_lowercase()));
    }

    #[test]
    fn walks_count_in_both_directions() {
        assert_eq!(longest_walk(&"poiuytrewq".chars().collect::<Vec<_>>()), 10);
        assert_eq!(longest_walk(&"987654".chars().collect::<Vec<_>>()), 6);
        assert_eq!(longest_walk(&"qpwo".chars().collect::<Vec<_>>()), 0);
    }
}
