//! What `tsconfig.json` says, and which files it has that from.
//!
//! Two ask: who shows a program what its settings extend, and who translates it. They have to find the same
//! files, so both find them here. The text is a stranger's: it is read as data, within the bounds of the JSON
//! parser, and never as the language whose literals it resembles.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::project_files::ProjectFiles;

/// Everything that the compiler and those who stand in for it read at the top of the file.
const KEYS: &[&str] = &[
    "$schema",
    "_version",
    "buildOptions",
    "bundle",
    "compileOnSave",
    "compilerOptions",
    "display",
    "docs",
    "exclude",
    "extends",
    "files",
    "include",
    "references",
    "ts-node",
    "tsc-alias",
    "typeAcquisition",
    "watchOptions",
];

/// Settings of TypeScript.
#[derive(Clone, Debug, PartialEq)]
pub struct TsConfig {
    document: Value,
}

impl Default for TsConfig {
    fn default() -> Self {
        let document = Value::Object(Map::new());
        Self { document }
    }
}

impl TsConfig {
    /// Reads JSON with comments and trailing commas; `None` when the text is no such document. An empty one
    /// says nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Some(Self::default());
        }
        let document = serde_json::from_str(&plain(text)?).ok()?;
        Some(Self { document })
    }

    /// The whole document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Whether it has what settings have and nothing else, so that a file of another sort, which somebody
    /// calls settings to have it shown, is not taken for one.
    pub fn is_plausible(&self) -> bool {
        let object = self.document.as_object();
        object.is_some_and(|object| object.keys().all(|key| KEYS.contains(&key.as_str())))
    }

    /// The names that it extends, later ones over earlier ones; `None` if they are neither a name nor a list.
    pub fn extends(&self) -> Option<Vec<&str>> {
        match self.document.get("extends") {
            None => Some(Vec::new()),
            Some(Value::String(one)) => Some(vec![one]),
            Some(Value::Array(several)) => Some(several.iter().filter_map(Value::as_str).collect()),
            Some(_) => None,
        }
    }
}

/// The file that settings at `file` mean by a name after `extends`: a path, or a file of a package.
pub fn extended_file(files: &ProjectFiles, file: &Path, name: &str) -> Option<PathBuf> {
    let folder = file.parent()?;
    let with_ending = |path: PathBuf| {
        let mut ended = path.clone().into_os_string();
        ended.push(".json");
        let mut candidates = [path, ended.into()].into_iter();
        candidates.find(|path| files.is_file(path))
    };
    if name.starts_with('.') || Path::new(name).is_absolute() {
        return with_ending(folder.join(name));
    }
    folder.ancestors().find_map(|ancestor| {
        let place = ancestor.join("node_modules").join(name);
        with_ending(place.clone()).or_else(|| with_ending(place.join("tsconfig.json")))
    })
}

/// The text without comments and without commas that nothing follows. `None` if a string or a comment has no
/// end.
fn plain(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    // Where a comma stands that may turn out to be the last.
    let mut comma: Option<usize> = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                // As between any two words.
                plain.push(' ');
                rest = &rest[rest.find("*/")? + 2..];
                continue;
            }
            '"' => string_length(rest)?,
            _ => first.len_utf8(),
        };
        match first {
            ',' => comma = Some(plain.len()),
            ']' | '}' => {
                if let Some(last) = comma.take() {
                    plain.replace_range(last..=last, " ");
                }
            }
            blank if blank.is_whitespace() => {}
            _ => comma = None,
        }
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Some(plain)
}

/// The bytes of the string that a text begins with.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn document(text: &str) -> Option<Value> {
        TsConfig::parse(text).map(|read| read.document)
    }

    #[test]
    fn comments_and_trailing_commas_are_read_over() {
        let text = r#"{
            // what to build, "extends": "./no"
            "compilerOptions": { "target": "es2022", /* yes, */ "strict": true, },
            "files": ["index.ts", /* last */ ], "depth": -1.5, "none": null, "url": "https://x/*,]*/\"",
        }"#;
        let expected = json!({
            "compilerOptions": {"target": "es2022", "strict": true},
            "files": ["index.ts"], "depth": -1.5, "none": null, "url": "https://x/*,]*/\"",
        });
        assert_eq!(document(text), Some(expected));
        assert_eq!(document(" \u{feff} ".trim()), Some(json!({})));
    }

    #[test]
    fn what_computes_or_has_no_end_is_no_document() {
        let deep = "[".repeat(100_000);
        for text in [
            "{",
            "{a: 1}",
            "{\"a\": f()}",
            "[...x]",
            "{} {}",
            "[,]x",
            "\"",
            "/*",
            &deep,
        ] {
            assert_eq!(document(text), None, "{}", &text[..text.len().min(20)]);
        }
    }

    #[test]
    fn names_are_one_or_several_or_a_mistake() {
        let extends = |text: &str| {
            let read = TsConfig::parse(text).expect("a document");
            let names = read.extends();
            names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(extends("{}"), Some(vec![]));
        assert_eq!(extends(r#"{"extends": "./a"}"#), Some(vec!["./a".into()]));
        let several = r#"{ // both
            "extends": ["./a", "@b/c",]}"#;
        assert_eq!(extends(several), Some(vec!["./a".into(), "@b/c".into()]));
        assert_eq!(extends(r#"{"extends": 1}"#), None);
    }

    #[test]
    fn a_file_of_another_sort_is_no_settings() {
        let plausible = |text: &str| TsConfig::parse(text).is_some_and(|read| read.is_plausible());
        assert!(plausible(
            r#"{"extends": "./a", "compilerOptions": {}, "ts-node": {}}"#
        ));
        for text in [
            r#"{"type": "service_account", "private_key": "x"}"#,
            r#"{"compilerOptions": {}, "password": "x"}"#,
            r#"["secret"]"#,
            "\"secret\"",
            "secret",
        ] {
            assert!(!plausible(text), "{text}");
        }
    }

    proptest! {
        /// Plain JSON means what it means elsewhere, whatever is in its strings.
        #[test]
        fn plain_json_is_read_as_it_is(texts in proptest::collection::vec(".*", 0..4)) {
            let value = json!({ "a": texts, "b": { "c": [] } });
            for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("text")] {
                prop_assert_eq!(document(&text), Some(value.clone()));
            }
        }

        #[test]
        fn no_text_brings_it_down(text in ".*") {
            let _ = TsConfig::parse(&text);
        }
    }
}
