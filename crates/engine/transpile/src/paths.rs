//! Names of modules that `paths` and `baseUrl` of `tsconfig.json` send elsewhere.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A pattern with at most one `*`, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRule {
    pub pattern: String,
    /// Absolute, with at most one `*`.
    pub targets: Vec<String>,
}

pub(crate) fn read(paths: &Map<String, Value>, base: &Path) -> Vec<PathRule> {
    let mut rules: Vec<PathRule> = paths
        .iter()
        .map(|(pattern, targets)| PathRule {
            pattern: pattern.clone(),
            targets: targets
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|target| base.join(target).to_string_lossy().into_owned())
                .collect(),
        })
        .collect();
    // The longest prefix wins, as in the compiler; a name without `*` is the longest of all.
    rules.sort_by_key(|rule| {
        let prefix = rule.pattern.find('*').unwrap_or(usize::MAX);
        std::cmp::Reverse(prefix)
    });
    rules
}

/// Files that a name may mean, best first.
pub(crate) fn candidates(rules: &[PathRule], base_url: Option<&Path>, name: &str) -> Vec<PathBuf> {
    let ruled = rules
        .iter()
        .find_map(|rule| Some((rule, matched(&rule.pattern, name)?)));
    let ruled = ruled.into_iter().flat_map(|(rule, star)| {
        let targets = rule.targets.iter();
        targets.map(move |target| PathBuf::from(target.replacen('*', star, 1)))
    });
    ruled.chain(base_url.map(|base| base.join(name))).collect()
}

fn matched<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    match pattern.split_once('*') {
        None => (pattern == name).then_some(""),
        Some((prefix, suffix)) => {
            let star = name.strip_prefix(prefix)?;
            star.strip_suffix(suffix)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_exact_pattern_decides() {
        let paths =
            json!({"@lib/*": ["lib/*", "more/*"], "@lib/special": ["s.ts"], "*": ["any/*"]});
        let rules = read(paths.as_object().expect("an object"), Path::new("/p"));
        let found = |name: &str| candidates(&rules, None, name);
        assert_eq!(found("@lib/special"), [PathBuf::from("/p/s.ts")]);
        assert_eq!(
            found("@lib/a/b"),
            [PathBuf::from("/p/lib/a/b"), PathBuf::from("/p/more/a/b")]
        );
        assert_eq!(found("x"), [PathBuf::from("/p/any/x")]);
        let with_base = candidates(&[], Some(Path::new("/p/src")), "x");
        assert_eq!(with_base, [PathBuf::from("/p/src/x")]);
    }
}
