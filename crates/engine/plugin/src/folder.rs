//! Paths that are relative to the program's folder, for processes that do not run in it.
//!
//! Assets and archives say that they are files, so their paths are made absolute on the way out and
//! are given back as they were: what is recorded does not change. A text does not say that it is a
//! path. One that names something in the folder might be, and then only a process that runs there
//! is asked; taking a mere word for a path costs no more than a process.

use std::collections::BTreeMap;
use std::path::Path;

use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue};

/// Longer texts are documents, not paths.
const LONGEST_PATH: usize = 1024;

/// Whether a text in these values could be a path in the folder.
pub(crate) fn names_something(folder: &Path, values: &PropertyMap) -> bool {
    let mut found = false;
    texts(values, &mut |text| {
        found = found || text_names(folder, text);
    });
    found
}

/// Every text in these values.
pub(crate) fn texts(values: &PropertyMap, visit: &mut impl FnMut(&str)) {
    for value in values.values() {
        value.walk(&mut |value| {
            if let PropertyValue::String(text) = value {
                visit(text);
            }
        });
    }
}

/// Whether a text could be a path in the folder.
pub(crate) fn text_names(folder: &Path, text: &str) -> bool {
    if text.is_empty() || text.len() > LONGEST_PATH || text.contains('\n') {
        return false;
    }
    let deliberate = text.starts_with("./") || text.starts_with("../");
    let relative = Path::new(text).is_relative();
    deliberate || (relative && folder.join(text).symlink_metadata().is_ok())
}

/// Whether there are files among the values.
pub(crate) fn has_paths(values: &PropertyMap) -> bool {
    let mut found = false;
    for value in values.values() {
        value.walk(&mut |value| found |= path_of(value).is_some());
    }
    found
}

/// The values with files as they are found from anywhere.
pub(crate) fn absolute(folder: &Path, values: &PropertyMap) -> PropertyMap {
    let mut values = values.clone();
    let mut rewrite = |path: &mut String| {
        if let Some(absolute) = made_absolute(folder, path) {
            *path = absolute;
        }
    };
    values
        .values_mut()
        .for_each(|value| for_each_path(value, false, &mut rewrite));
    values
}

/// Gives paths back as they were in `sent`, before they were made absolute.
pub(crate) fn relative_again(folder: &Path, received: &mut PropertyMap, sent: &PropertyMap) {
    let mut original = BTreeMap::new();
    for value in sent.values() {
        value.walk(&mut |value| {
            let path = path_of(value);
            if let Some((path, absolute)) = path.and_then(|p| Some((p, made_absolute(folder, p)?)))
            {
                original.insert(absolute, path.to_owned());
            }
        });
    }
    if original.is_empty() {
        return;
    }
    let mut restore = |path: &mut String| {
        if let Some(original) = original.get(path) {
            path.clone_from(original);
        }
    };
    // A provider may repeat the path of a file as a text.
    for value in received.values_mut() {
        for_each_path(value, true, &mut restore);
    }
}

/// Joined, not tidied up: two ways to write a path stay two.
fn made_absolute(folder: &Path, path: &str) -> Option<String> {
    let relative = !path.is_empty() && Path::new(path).is_relative();
    relative
        .then(|| folder.join(path).into_os_string().into_string().ok())
        .flatten()
}

fn path_of(value: &PropertyValue) -> Option<&str> {
    match value {
        PropertyValue::Asset(Asset::Path { path, .. })
        | PropertyValue::Archive(Archive::Path { path, .. }) => Some(path),
        _ => None,
    }
}

/// Visits the paths of assets and archives, and texts too if asked to.
fn for_each_path(value: &mut PropertyValue, texts: bool, visit: &mut impl FnMut(&mut String)) {
    match value {
        PropertyValue::Asset(Asset::Path { path, .. })
        | PropertyValue::Archive(Archive::Path { path, .. }) => visit(path),
        PropertyValue::String(text) if texts => visit(text),
        other => other
            .parts_mut()
            .for_each(|part| for_each_path(part, texts, visit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<const N: usize>(entries: [(&str, PropertyValue); N]) -> PropertyMap {
        entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    fn file(path: &str) -> PropertyValue {
        PropertyValue::Asset(Asset::Path {
            hash: "h".to_owned(),
            path: path.to_owned(),
        })
    }

    fn folder_of(path: &str) -> PropertyValue {
        PropertyValue::Archive(Archive::Path {
            hash: "h".to_owned(),
            path: path.to_owned(),
        })
    }

    #[test]
    fn files_are_sent_absolute_and_come_back_as_they_were() {
        let assets = [("inner".to_owned(), file("inner.txt"))].into();
        let archive = Archive::Assets {
            hash: "h".to_owned(),
            assets,
        };
        let sent = map([
            ("plain", file("a.txt")),
            ("dotted", file("./a.txt")),
            ("absolute", file("/etc/hosts")),
            ("text", "a.txt".into()),
            ("secret", PropertyValue::secret(folder_of("../build"))),
            ("list", vec![PropertyValue::Archive(archive)].into()),
        ]);
        let folder = Path::new("/unit");
        let mut wire = absolute(folder, &sent);
        assert_eq!(wire["plain"], file("/unit/a.txt"));
        assert_eq!(wire["dotted"], file("/unit/./a.txt"));
        assert_eq!(wire["absolute"], file("/etc/hosts"));
        assert_eq!(wire["text"], "a.txt".into(), "a text is not a file");
        assert_eq!(
            wire["secret"],
            PropertyValue::secret(folder_of("/unit/../build"))
        );
        relative_again(folder, &mut wire, &sent);
        assert_eq!(wire, sent);
    }

    #[test]
    fn a_path_that_comes_back_as_text_is_recorded_as_it_was() {
        let sent = map([("source", file("a.txt"))]);
        let mut received = map([
            ("filename", "/unit/a.txt".into()),
            ("other", "/unit/b.txt".into()),
        ]);
        relative_again(Path::new("/unit"), &mut received, &sent);
        let expected = map([
            ("filename", "a.txt".into()),
            ("other", "/unit/b.txt".into()),
        ]);
        assert_eq!(received, expected);
    }

    #[test]
    fn a_text_that_names_something_in_the_folder_could_be_a_path() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(folder.path().join("canary.zip"), "").expect("a file");
        let names = |text: &str| {
            let values = map([("a", PropertyValue::secret(vec![text.into()].into()))]);
            names_something(folder.path(), &values)
        };
        assert!(names("canary.zip") && names("./canary.zip"));
        assert!(names("./not-there-yet") && names("../elsewhere"));
        assert!(!names("eu-west-1") && !names("") && !names("/etc/hosts"));
        assert!(!names("https://example.com/canary.zip"));
    }
}
