//! An expression's size, depth and loops, counted before anybody parses it.
//!
//! The library that evaluates expressions has no limits of its own: three kilobytes of `1+1+…` overflow its stack
//! and end the process, and nested loops take seconds. So tokens are counted here, by a reader that needs no stack,
//! and what is too large never reaches it.

use std::collections::BTreeSet;

use crate::expression::ExpressionProblem;

/// The longest expression.
pub(crate) const MOST_BYTES: usize = 1024;
/// Tokens, of which each is at most one node.
pub(crate) const MOST_TOKENS: usize = 200;
/// Brackets inside each other.
pub(crate) const DEEPEST: usize = 32;

/// Loops over a list or a map.
const LOOPS: &[&str] = &["all", "exists", "exists_one", "existsOne"];
/// Loops that make a list. The order of a map is another one each time, so what they make is not the same twice.
const MAKERS: &[&str] = &[
    "map",
    "filter",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// Words that are no names.
const WORDS: &[&str] = &["true", "false", "null", "in"];

/// Refuses what could not be evaluated in little time and space. The names of variables that it uses.
pub(crate) fn check(source: &str) -> Result<BTreeSet<&str>, ExpressionProblem> {
    if source.trim().is_empty() {
        return Err(ExpressionProblem::Empty);
    }
    if source.len() > MOST_BYTES {
        return Err(ExpressionProblem::TooLong);
    }
    let strange = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t' | '\r');
    if source.chars().any(strange) {
        return Err(ExpressionProblem::Text("it has control characters"));
    }
    let mut scan = TokenScan {
        rest: source,
        tokens: 0,
        open: Vec::new(),
        last_name: None,
        after_dot: false,
        begins_loop: false,
        names: BTreeSet::new(),
        bound: BTreeSet::new(),
    };
    while scan.step()? {}
    let TokenScan { names, bound, .. } = scan;
    Ok(names
        .into_iter()
        .filter(|name| !bound.contains(name) && !WORDS.contains(name))
        .collect())
}

struct TokenScan<'a> {
    rest: &'a str,
    tokens: usize,
    /// For each open bracket, whether it is a loop's.
    open: Vec<bool>,
    /// The name before, if it stands behind a dot.
    last_name: Option<&'a str>,
    after_dot: bool,
    /// A loop was just entered: its variable comes next.
    begins_loop: bool,
    names: BTreeSet<&'a str>,
    bound: BTreeSet<&'a str>,
}

impl<'a> TokenScan<'a> {
    fn step(&mut self) -> Result<bool, ExpressionProblem> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else {
            return Ok(false);
        };
        self.tokens += 1;
        if self.tokens > MOST_TOKENS {
            return Err(ExpressionProblem::TooManyTokens);
        }
        let name = self.last_name.take();
        let after_dot = std::mem::take(&mut self.after_dot);
        let begins_loop = std::mem::take(&mut self.begins_loop);
        match first {
            '"' | '\'' => self.text(first)?,
            '(' | '[' | '{' => self.enter(first == '(' && name.is_some_and(is_loop))?,
            ')' | ']' | '}' => {
                self.open.pop();
                self.advance(1);
            }
            '.' => {
                self.after_dot = true;
                self.advance(1);
            }
            '/' if self.rest.starts_with("//") => {
                return Err(ExpressionProblem::Text("it has a comment"));
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                self.word(after_dot, begins_loop)?;
            }
            digit if digit.is_ascii_digit() => {
                let end = self.span(|letter| letter.is_ascii_alphanumeric() || letter == '.');
                self.advance(end);
            }
            other => self.advance(other.len_utf8()),
        }
        Ok(true)
    }

    fn word(&mut self, after_dot: bool, begins_loop: bool) -> Result<(), ExpressionProblem> {
        let end = self.span(|letter| letter.is_alphanumeric() || letter == '_');
        let (word, rest) = self.rest.split_at(end);
        if rest.starts_with(['"', '\'']) {
            return Err(ExpressionProblem::Text(
                "it has a text with a letter before it",
            ));
        }
        if after_dot && MAKERS.contains(&word) {
            return Err(ExpressionProblem::Maker(word.to_owned()));
        }
        if begins_loop {
            self.bound.insert(word);
        } else if !after_dot && !rest.trim_start().starts_with('(') {
            self.names.insert(word);
        }
        self.last_name = after_dot.then_some(word);
        self.rest = rest;
        Ok(())
    }

    fn enter(&mut self, is_loop: bool) -> Result<(), ExpressionProblem> {
        if is_loop && self.open.contains(&true) {
            return Err(ExpressionProblem::NestedLoop);
        }
        self.open.push(is_loop);
        self.begins_loop = is_loop;
        if self.open.len() > DEEPEST {
            return Err(ExpressionProblem::TooDeep);
        }
        self.advance(1);
        Ok(())
    }

    fn text(&mut self, quote: char) -> Result<(), ExpressionProblem> {
        let mut escaped = false;
        for (place, letter) in self.rest.char_indices().skip(1) {
            if escaped {
                escaped = false;
            } else if letter == '\\' {
                escaped = true;
            } else if letter == quote {
                self.advance(place + 1);
                // Three of them would begin a text of several lines.
                if self.rest.starts_with(quote) {
                    return Err(ExpressionProblem::Text("it has a text in three quotes"));
                }
                return Ok(());
            }
        }
        Err(ExpressionProblem::Text("a text in it does not end"))
    }

    fn span(&self, inside: impl Fn(char) -> bool) -> usize {
        let end = self.rest.find(|letter| !inside(letter));
        end.unwrap_or(self.rest.len())
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }
}

fn is_loop(name: &str) -> bool {
    LOOPS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_passes() {
        for fine in [
            "params.size <= 4",
            "has(params.tags) && params.tags.all(t, t.startsWith('team-'))",
            "params.zones.exists(z, z == \"a\") || params.zones.all(z, z != \"b\")",
            "environment in ['dev', 'stage'] ? params.size < 3 : true",
            "params.name.matches('^[a-z]+$')",
            "params.note == 'it\\'s'",
        ] {
            assert!(check(fine).is_ok(), "{fine}");
        }
    }

    #[test]
    fn names_are_those_that_nothing_in_it_binds() {
        let names = |source| check(source).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(
            names("params.zones.all(z, z.name in limits && size(z) > 1 && true)"),
            ["limits", "params"]
        );
    }

    #[test]
    fn what_could_hurt_is_refused_before_it_is_parsed() {
        let chain = vec!["1"; 1500].join("+");
        let path = "a.".repeat(5000);
        let deep = format!("{}1{}", "(".repeat(40), ")".repeat(40));
        let wide = vec!["1"; 150].join("+");
        for (bad, expected) in [
            (chain.as_str(), ExpressionProblem::TooLong),
            (&path, ExpressionProblem::TooLong),
            (&deep, ExpressionProblem::TooDeep),
            (&wide, ExpressionProblem::TooManyTokens),
            ("  ", ExpressionProblem::Empty),
            ("a.all(x, a.all(y, x == y))", ExpressionProblem::NestedLoop),
            (
                "a.exists(x, (b.all(y, [y].exists_one(z, z == x))))",
                ExpressionProblem::NestedLoop,
            ),
            (
                "params.map(k, k)",
                ExpressionProblem::Maker("map".to_owned()),
            ),
            ("'abc", ExpressionProblem::Text("a text in it does not end")),
            (
                "true // and so on",
                ExpressionProblem::Text("it has a comment"),
            ),
            (
                "a == r'x'",
                ExpressionProblem::Text("it has a text with a letter before it"),
            ),
            (
                "a\u{0}b",
                ExpressionProblem::Text("it has control characters"),
            ),
        ] {
            assert_eq!(check(bad), Err(expected), "{}", &bad[..bad.len().min(40)]);
        }
    }
}
