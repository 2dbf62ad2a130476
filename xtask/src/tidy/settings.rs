//! A setting that nothing reads is a promise that nobody keeps.
//!
//! A reader goes through the settings (`settings.mail.host`), or through a section that it has in hand and takes the value
//! or its origin (`mail.host.value`). Anything else with such a name is something else: an address that has a bucket reads
//! no setting of that name.

use super::{BrokenRule, find};
use crate::repo::RepoFile;

const LIST: &str = "crates/config/src/settings.rs";

pub(super) fn check(files: &[RepoFile]) -> Vec<BrokenRule> {
    let Some(list) = find(files, LIST) else {
        return Vec::new();
    };
    let settings = listed(&list.text);
    let readers: Vec<String> = files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs"))
        .filter(|file| !file.path.starts_with("crates/config/") && !file.path.contains("/tests/"))
        .map(|file| on_one_line(&file.text))
        .collect();
    let mut findings = Vec::new();
    for setting in &settings {
        let alone = settings.iter().filter(|one| one.key == setting.key).count() == 1;
        if readers.iter().any(|text| setting.is_read(text, alone)) {
            continue;
        }
        let what = format!(
            "nothing reads the setting {}.{}",
            setting.section, setting.key
        );
        let remedy = "read it, or move its name to crates/config/src/unused.rs";
        findings.push(BrokenRule::at(LIST, setting.line, what, remedy));
    }
    findings
}

/// A chain of fields that was broken into lines, in one.
fn on_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    lines.fold(String::new(), |mut joined, line| {
        if !line.starts_with('.') {
            joined.push('\n');
        }
        joined.push_str(line);
        joined
    })
}

struct ListedSetting<'a> {
    section: &'a str,
    key: &'a str,
    line: usize,
}

impl ListedSetting<'_> {
    /// Through the settings, through its section, or by its name where no other section has one of that name.
    fn is_read(&self, text: &str, alone: bool) -> bool {
        let path = format!("{}.{}", self.section, self.key);
        let taken = |rest: &str| takes(rest, "value") || takes(rest, "origin");
        let through_all =
            |(before, rest): (&str, &str)| before.ends_with("settings.") || taken(rest);
        let by_name = |(before, rest): (&str, &str)| before.ends_with('.') && taken(rest);
        mentions(text, &path).any(through_all) || (alone && mentions(text, self.key).any(by_name))
    }
}

/// What stands before and behind a chain of names, wherever it is whole.
fn mentions<'t>(text: &'t str, chain: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let length = chain.len();
    text.match_indices(chain)
        .map(move |(at, _)| (&text[..at], &text[at + length..]))
        .filter(move |(before, rest)| !before.ends_with(part) && !rest.starts_with(part))
}

/// Whether a field of this name is taken next.
fn takes(rest: &str, field: &str) -> bool {
    let named = rest
        .strip_prefix('.')
        .and_then(|rest| rest.strip_prefix(field));
    named.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Lines of the list: `section: Type at "path" {` and `key: type = default, "VARIABLE";` below.
fn listed(text: &str) -> Vec<ListedSetting<'_>> {
    let mut found = Vec::new();
    let mut section = "";
    let lines = text.lines().enumerate();
    for (index, line) in lines.skip_while(|(_, line)| *line != "settings! {") {
        let trimmed = line.trim();
        if line == "}" {
            break;
        }
        if trimmed.starts_with("///") {
            continue;
        }
        let name = trimmed.split(':').next().unwrap_or_default();
        if line.starts_with("    ") && trimmed.contains(" at \"") {
            section = name;
        } else if line.starts_with("        ") && trimmed.contains(" = ") {
            found.push(ListedSetting {
                section,
                key: name,
                line: index + 1,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn findings(reader: &str) -> Vec<String> {
        let list = "settings! {\n    /// Mail.\n    mail: Mail at \"mail\" {\n        /// Host.\n        \
                    host: String = x(), \"M_HOST\";\n        /// Port of it.\n        \
                    port: u16 = 1, \"M_PORT\";\n    }\n\n    /// Other.\n    web: Web at \"web\" {\n        \
                    /// Host.\n        host: String = x(),\n            \"W_HOST\";\n    }\n}\n";
        let files = [file(LIST, list), file("crates/x/src/lib.rs", reader)];
        check(&files).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn a_setting_is_read_through_the_settings_or_taken_from_its_section() {
        let all = "let a = &settings.mail.host; let b = web.host.value; post.port.origin";
        assert_eq!(findings(all), [""; 0]);
        assert_eq!(
            findings("settings.mail.host; it.port.value; web.hosts.value; spider_web.host.value"),
            ["nothing reads the setting web.host"]
        );
    }

    #[test]
    fn what_only_has_the_same_name_reads_no_setting() {
        // As the address of a store has a bucket, whatever the settings say.
        let address = "Self::Web(web) => write!(f, \"http://{}\", web.host), mail.host.len(), it.port.values()";
        assert_eq!(
            findings(address),
            [
                "nothing reads the setting mail.host",
                "nothing reads the setting mail.port",
                "nothing reads the setting web.host"
            ]
        );
    }
}
