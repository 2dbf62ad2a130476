//! Paths of version 2.3 and what they are now.

/// Old directories and their new places, longest first.
pub(super) const MOVED: &[(&str, &str)] = &[
    ("admin/v2/templates", "cloud/tools/templates"),
    ("admin/v2/docs", "cloud/tools/docs"),
    ("admin/v2", "cloud/tools"),
    ("aws/deploy", "cloud/deploy"),
];

/// A text with every reference to an old path rewritten. `aws/build/<stack>/v2/src` and
/// `…/v2/resources` become `cloud/stacks/<stack>/src`.
pub fn rewritten(text: &str) -> String {
    let mut text = text.to_owned();
    for (old, new) in MOVED {
        text = at_boundaries(&text, old, new);
    }
    programs(&text)
}

/// Replaces a path where it stands for itself and is not a part of a longer name.
fn at_boundaries(text: &str, old: &str, new: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let before = rest[..at]
            .chars()
            .next_back()
            .or_else(|| result.chars().next_back());
        let after = rest[at + old.len()..].chars().next();
        let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_');
        result.push_str(&rest[..at]);
        result.push_str(if part(before) || part(after) {
            old
        } else {
            new
        });
        rest = &rest[at + old.len()..];
    }
    result + rest
}

fn programs(text: &str) -> String {
    const BUILD: &str = "aws/build/";
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BUILD) {
        result.push_str(&rest[..at]);
        let tail = &rest[at + BUILD.len()..];
        let name_end = tail
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
            .unwrap_or(tail.len());
        let (name, after) = tail.split_at(name_end);
        let inner = ["/v2/src", "/v2/resources", "/v2"]
            .iter()
            .find_map(|inner| after.strip_prefix(inner).map(|after| (*inner, after)));
        match inner {
            _ if name.is_empty() => result.push_str("cloud/stacks/"),
            Some(("/v2", _)) | None => {
                result.push_str(&format!("cloud/stacks/{name}"));
            }
            Some(_) => result.push_str(&format!("cloud/stacks/{name}/src")),
        }
        rest = inner.map_or(after, |(_, after)| after);
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_old_path_has_its_new_one() {
        for (old, new) in [
            ("cd ./aws/deploy/D1-a-b", "cd ./cloud/deploy/D1-a-b"),
            ("./admin/v2/templates/x", "./cloud/tools/templates/x"),
            ("admin/v2/docs", "cloud/tools/docs"),
            ("see admin/v2/cli.md", "see cloud/tools/cli.md"),
            (
                "aws/build/network/v2/src/index.ts",
                "cloud/stacks/network/src/index.ts",
            ),
            (
                "aws/build/network/v2/resources/vpc.ts",
                "cloud/stacks/network/src/vpc.ts",
            ),
            ("ls aws/build/network", "ls cloud/stacks/network"),
            ("ls aws/build/", "ls cloud/stacks/"),
            ("aws/build/compute-ec2/v2", "cloud/stacks/compute-ec2"),
        ] {
            assert_eq!(rewritten(old), new);
        }
    }

    #[test]
    fn other_words_stay() {
        for text in [
            "myaws/deploy",
            "aws/deployment",
            "admin/v20",
            "aws s3 ls",
            "the admin",
        ] {
            assert_eq!(rewritten(text), text);
        }
    }

    #[test]
    fn rewriting_twice_changes_nothing_more() {
        let once = rewritten("a aws/build/x/v2/src b admin/v2/docs c aws/deploy/");
        assert_eq!(rewritten(&once), once);
    }
}
