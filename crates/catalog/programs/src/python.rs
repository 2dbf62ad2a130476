//! Programs in Python: their texts, brackets and calls, without a parser of the language.

use std::collections::BTreeMap;

use nimbus_catalog::{ProgramSurface, SourceProblem};

use crate::missing;

const ENTRY: &str = "src/__main__.py";
/// Calls whose first argument is a configuration key that has to be there.
const REQUIRES: [&str; 8] = [
    "require",
    "require_bool",
    "require_int",
    "require_float",
    "require_object",
    "require_secret",
    "require_secret_int",
    "require_secret_object",
];

pub(crate) fn read(files: &BTreeMap<String, String>) -> Result<ProgramSurface, Vec<SourceProblem>> {
    if !files.contains_key(ENTRY) {
        return Err(missing(ENTRY));
    }
    let mut found = ProgramSurface {
        self_contained: true,
        ..ProgramSurface::default()
    };
    let mut problems = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".py")) {
        let mut scan = PythonScan {
            letters: text.chars().collect(),
            at: 0,
            line: 1,
            open: Vec::new(),
            words: Vec::new(),
            found: &mut found,
        };
        if let Err((line, message)) = scan.run() {
            problems.push(SourceProblem {
                file: path.clone(),
                line: Some(line),
                message: message.to_owned(),
            });
        }
        found.self_contained &= text.lines().all(is_known_import);
    }
    match problems.is_empty() {
        true => Ok(found),
        false => Err(problems),
    }
}

fn is_known_import(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let module = match (words.next(), words.next()) {
        (Some("import" | "from"), Some(module)) => module,
        _ => return true,
    };
    let root = module.split('.').next().unwrap_or_default();
    root.is_empty() || root.starts_with("pulumi") || STANDARD.contains(&root.trim_end_matches(','))
}

/// Modules of Python itself that programs use.
const STANDARD: [&str; 12] = [
    "base64",
    "collections",
    "dataclasses",
    "functools",
    "hashlib",
    "ipaddress",
    "itertools",
    "json",
    "os",
    "re",
    "typing",
    "datetime",
];

struct PythonScan<'a> {
    letters: Vec<char>,
    at: usize,
    line: usize,
    /// Open brackets and the lines that they are on.
    open: Vec<(char, usize)>,
    /// The last words and signs, newest last.
    words: Vec<String>,
    found: &'a mut ProgramSurface,
}

impl PythonScan<'_> {
    fn run(&mut self) -> Result<(), (usize, &'static str)> {
        while let Some(letter) = self.peek(0) {
            match letter {
                '\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                '#' => {
                    while self.peek(0).is_some_and(|letter| letter != '\n') {
                        self.at += 1;
                    }
                }
                '"' | '\'' => {
                    let text = self.text(letter)?;
                    self.told(&text);
                    self.found.texts.insert(text);
                    self.word(String::new());
                }
                '(' | '[' | '{' => {
                    self.open.push((letter, self.line));
                    self.word(letter.to_string());
                    self.at += 1;
                }
                ')' | ']' | '}' => {
                    let opened = self.open.pop().map(|(letter, _)| letter);
                    if opened != Some(partner(letter)) {
                        return Err((self.line, "a bracket is closed that was not opened"));
                    }
                    self.word(letter.to_string());
                    self.at += 1;
                }
                letter if letter.is_alphabetic() || letter == '_' => {
                    let start = self.at;
                    while self
                        .peek(0)
                        .is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
                    {
                        self.at += 1;
                    }
                    let word: String = self.letters[start..self.at].iter().collect();
                    self.word(word);
                }
                letter if letter.is_whitespace() => self.at += 1,
                letter => {
                    self.word(letter.to_string());
                    self.at += 1;
                }
            }
        }
        match self.open.last() {
            Some((_, line)) => Err((*line, "a bracket is not closed")),
            None => Ok(()),
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn word(&mut self, word: String) {
        self.words.push(word);
        let extra = self.words.len().saturating_sub(4);
        self.words.drain(..extra);
    }

    /// A text that was just read, as what it may be.
    fn told(&mut self, text: &str) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["pulumi", ".", "export", "("] | [.., "export", "("] => {
                self.found.outputs.insert(text.to_owned());
            }
            [.., ".", method, "("] if REQUIRES.contains(method) => {
                self.found.required_keys.insert(text.to_owned());
            }
            _ => {}
        }
    }

    fn text(&mut self, quote: char) -> Result<String, (usize, &'static str)> {
        let start = self.line;
        let triple = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        let width = if triple { 3 } else { 1 };
        self.at += width;
        let mut text = String::new();
        loop {
            let Some(letter) = self.peek(0) else {
                return Err((start, "a text does not end"));
            };
            match letter {
                '\\' => {
                    text.extend(self.peek(1));
                    self.line += usize::from(self.peek(1) == Some('\n'));
                    self.at += 2;
                }
                '\n' if !triple => return Err((start, "a text does not end")),
                letter
                    if letter == quote
                        && (!triple
                            || self.peek(1) == Some(quote) && self.peek(2) == Some(quote)) =>
                {
                    self.at += width;
                    return Ok(text);
                }
                letter => {
                    self.line += usize::from(letter == '\n');
                    text.push(letter);
                    self.at += 1;
                }
            }
        }
    }
}

fn partner(closing: char) -> char {
    match closing {
        ')' => '(',
        ']' => '[',
        _ => '{',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Result<ProgramSurface, Vec<SourceProblem>> {
        read(&BTreeMap::from([(ENTRY.to_owned(), text.to_owned())]))
    }

    #[test]
    fn exports_and_required_keys_are_found() {
        let found = program(
            "import pulumi\nfrom pulumi_aws import s3\n\nconfig = pulumi.Config()\nsize = config.require_int(\"size\")\n\
             zone = config.get('zone')  # \"not a text\"\nbucket = s3.Bucket('b', tags={\"a\": \"\"\"x\ny\"\"\"})\n\
             pulumi.export('id', bucket.id)\n",
        )
        .unwrap();
        assert_eq!(found.outputs.iter().collect::<Vec<_>>(), ["id"]);
        assert_eq!(found.required_keys.iter().collect::<Vec<_>>(), ["size"]);
        assert!(found.texts.contains("zone") && !found.texts.contains("not a text"));
        assert!(found.self_contained);
        assert!(!program("import boto3\n").unwrap().self_contained);
    }

    #[test]
    fn texts_and_brackets_that_do_not_end_are_told_with_their_line() {
        for (text, line) in [
            ("a = 1\nb = (1,\n", 2),
            ("a = 'x\n", 1),
            ("a = [1)\n", 1),
            ("a = \"\"\"x\n", 1),
            (")", 1),
        ] {
            let problems = program(text).unwrap_err();
            assert_eq!(problems[0].line, Some(line), "{text:?} {problems:?}");
        }
        assert_eq!(read(&BTreeMap::new()).unwrap_err()[0].file, ENTRY);
    }
}
