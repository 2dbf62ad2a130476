//! What a tenant reads of a run: nothing of the machine that carried it out.
//!
//! The engine, plugins, Node and Python name files by where they are, and say who holds a lease on which machine. For
//! whoever runs a server that is right, and it is in the server's log. A tenant has a workspace: everything that is
//! recorded or served passes here, and names files as that workspace does. What a terminal would act on goes as well,
//! for logs are read in terminals.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::printable;
use nimbus_engine_backend::Owner;
use serde_json::Value;

use crate::programs::{ProgramSettings, linked_packages};

/// Texts as a tenant may read them. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct TenantTexts {
    /// What is found and what stands there instead, longest first.
    places: Arc<Vec<(String, ShownPlace)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ShownPlace {
    Word(String),
    /// The folder where workspaces of tenants are written out.
    Workspaces,
}

impl TenantTexts {
    /// Of this process, with these programs.
    pub(crate) fn new(settings: &ProgramSettings) -> Self {
        let word = |text: &str| ShownPlace::Word(text.to_owned());
        let mut places = Vec::new();
        add(&mut places, &settings.folder, ShownPlace::Workspaces);
        if let Some(data) = settings.folder.parent() {
            add(&mut places, data, word("[server]"));
        }
        if let Some(modules) = &settings.node_modules {
            add(&mut places, modules, word("node_modules"));
            for package in linked_packages(modules) {
                add(&mut places, &package, word("node_modules"));
            }
        }
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        for (path, shown) in [
            (variable("PULUMI_HOME"), "~/.pulumi"),
            (variable("HOME"), "~"),
            (std::env::current_exe().ok(), "nimbus"),
            (std::env::current_dir().ok(), "[server]"),
        ] {
            if let Some(path) = path {
                add(&mut places, &path, word(shown));
            }
        }
        let Owner {
            hostname, username, ..
        } = Owner::current("");
        places.push((format!("{username}@{hostname}"), word("the server")));
        // A machine that is called by a plain word would take that word out of every text.
        let is_name = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
        if hostname.contains(is_name) {
            places.push((hostname, word("server")));
        }
        places.sort_by_key(|(found, _)| std::cmp::Reverse(found.len()));
        places.dedup_by(|one, other| one.0 == other.0);
        Self {
            places: Arc::new(places),
        }
    }

    /// Without places of the server.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        for (found, place) in self.places.iter() {
            if shown.contains(found.as_str()) {
                shown = Cow::Owned(replaced(&shown, found, place));
            }
        }
        shown
    }

    /// Every text of a value without places of the server.
    pub(crate) fn places(&self, value: &mut Value) {
        each_text(value, &|text| self.text(text));
    }

    /// Every text of a record: without places of the server, and fit for a terminal. The database stores every
    /// character but one, which is among those that go.
    pub(crate) fn record(&self, value: &mut Value) {
        each_text(value, &|text| {
            // Before places are looked for: a colour in front of one would hide it.
            let plain = printable(text);
            let short = shortened(&plain);
            match self.text(&short) {
                Cow::Borrowed(same) if same == text => Cow::Borrowed(text),
                shown => Cow::Owned(shown.into_owned()),
            }
        });
    }
}

/// A record keeps no more of one text. Whoever reads it is told so.
const LONGEST_TEXT: usize = 256 * 1024;

fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_TEXT {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(LONGEST_TEXT);
    let left_out = text.len() - end;
    Cow::Owned(format!("{}… ({left_out} bytes left out)", &text[..end]))
}

fn add(places: &mut Vec<(String, ShownPlace)>, path: &Path, shown: ShownPlace) {
    for path in [Some(path.to_owned()), path.canonicalize().ok()] {
        let text = path.map(|path| path.display().to_string());
        let text = text.map(|text| text.trim_end_matches('/').to_owned());
        // A root, or a name without a folder, stands in texts that mean something else.
        if let Some(text) = text.filter(|text| text.starts_with('/') && text.len() > 1) {
            places.push((text, shown.clone()));
        }
    }
}

fn each_text(value: &mut Value, change: &dyn Fn(&str) -> Cow<'_, str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(entries) => entries
            .values_mut()
            .for_each(|entry| each_text(entry, change)),
        _ => {}
    }
}

/// A name goes on with these, so that `/root` is not in `/rooted` and not in `/srv/root`.
fn goes_on(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn replaced(text: &str, found: &str, place: &ShownPlace) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(found) {
        let (before, from) = rest.split_at(at);
        let after = &from[found.len()..];
        shown.push_str(before);
        // The folder of workspaces is like no other, whatever stands in front of it.
        let begins = *place == ShownPlace::Workspaces || !shown.ends_with(goes_on);
        if !begins || after.starts_with(goes_on) {
            shown.push_str(found);
            rest = after;
            continue;
        }
        match place {
            ShownPlace::Word(word) => {
                shown.push_str(word);
                rest = after;
            }
            ShownPlace::Workspaces => {
                let (word, after) = in_workspace(after);
                shown.push_str(word);
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    shown
}

/// What stands for the beginning of a path below the folder of workspaces, and what is left of it: each tenant has a
/// folder, with one for each state of its workspace.
fn in_workspace(path: &str) -> (&'static str, &str) {
    let Some((tenant, rest)) = segment(path) else {
        return ("[server]", path);
    };
    if tenant.parse::<uuid::Uuid>().is_err() {
        return ("[server]", path);
    }
    let Some((state, rest)) = segment(rest) else {
        return (".", rest);
    };
    let digest = state.len() == 64 && state.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digest && !state.starts_with("draft-") {
        return (".", rest);
    }
    match rest.strip_prefix('/') {
        Some(below) if below.starts_with(|c: char| goes_on(c) || matches!(c, '.' | '@')) => {
            ("", below)
        }
        _ => (".", rest),
    }
}

fn segment(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/')?;
    let end = path.find(|c: char| !goes_on(c)).unwrap_or(path.len());
    (end > 0).then(|| path.split_at(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view() -> TenantTexts {
        TenantTexts::new(&ProgramSettings {
            folder: "/srv/data/runs".into(),
            node_modules: Some("/opt/packages/node_modules".into()),
            sandbox: None,
        })
    }

    #[test]
    fn files_are_named_as_the_workspace_names_them() {
        let tenant = "0b7e4c1a-6f0e-4c58-9d5e-3d6f5a1f2b3c";
        let digest = "ab".repeat(32);
        let root = format!("/srv/data/runs/{tenant}/{digest}");
        for (given, shown) in [
            (
                format!("at {root}/stacks/web/src/index.ts:3:1"),
                "at stacks/web/src/index.ts:3:1",
            ),
            (format!("file://{root}/stacks/web#3"), "file://stacks/web#3"),
            (format!("in `{root}`"), "in `.`"),
            (format!("cannot read {root}."), "cannot read .."),
            (
                "/srv/data/runs/worlds/x: no room".to_owned(),
                "[server]/worlds/x: no room",
            ),
            (
                "/srv/data/keys/vault is not there".to_owned(),
                "[server]/keys/vault is not there",
            ),
            (
                "/opt/packages/node_modules/a/b.js".to_owned(),
                "node_modules/a/b.js",
            ),
            ("/srv/database".to_owned(), "/srv/database"),
            ("/mnt/srv/data".to_owned(), "/mnt/srv/data"),
        ] {
            assert_eq!(view().text(&given), shown);
        }
    }

    #[test]
    fn nobody_learns_who_runs_the_server_or_where() {
        let owner = Owner::current("nimbus deploy");
        let shown = view().text(&format!("{owner} holds it")).into_owned();
        assert!(shown.starts_with("the server (process"), "{shown}");
        if let Ok(home) = std::env::var("HOME")
            && home.len() > 1
        {
            let text = format!("{home}/.pulumi/plugins has no aws");
            assert_eq!(view().text(&text), "~/.pulumi/plugins has no aws");
        }
    }

    #[test]
    fn a_text_without_end_has_one_and_says_so() {
        let mut value = json!("x".repeat(LONGEST_TEXT + 10));
        view().record(&mut value);
        let text = value.as_str().unwrap();
        assert!(text.ends_with("x… (10 bytes left out)"));
    }

    #[test]
    fn every_text_of_a_record_is_looked_at() {
        let mut value = json!({"a": ["/srv/data/keys\u{0}", {"b": "\u{1b}[2Jx"}], "n": 1,
            "c": "at \u{1b}[90m/srv/data/keys\u{1b}[39m"});
        view().record(&mut value);
        let shown = json!({"a": ["[server]/keys", {"b": "x"}], "n": 1, "c": "at [server]/keys"});
        assert_eq!(value, shown);
    }
}
