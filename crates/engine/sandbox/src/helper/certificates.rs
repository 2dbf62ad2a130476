//! Which files are certificates and nothing else.
//!
//! Folders of certificates are shown to programs, and people keep keys in them, under any name and in any
//! form. So a file is judged by what is in it.

use std::fs;
use std::path::{Path, PathBuf};

/// Bundles of all certificates have some hundred kilobytes.
const LARGEST_BUNDLE: u64 = 16 << 20;

/// Files at and below a place that hold something else than certificates, or cannot be looked at. Links
/// lead to what is shown, and that is looked at itself, or to nothing.
pub(super) fn other_than_certificates(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = vec![place.to_owned()];
    while let Some(path) = next.pop() {
        let Ok(kind) = fs::symlink_metadata(&path) else {
            continue;
        };
        if kind.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            next.extend(entries.map(|entry| entry.path()));
        } else if !kind.is_symlink() && !is_certificates(&path, kind.len()) {
            found.push(path);
        }
    }
    found
}

fn is_certificates(path: &Path, size: u64) -> bool {
    size <= LARGEST_BUNDLE && fs::read(path).is_ok_and(|content| are_certificates(&content))
}

/// Whether a text has certificates and nothing else that has a meaning: outside of them only lines of
/// comments, which is how bundles say whose they are.
fn are_certificates(content: &[u8]) -> bool {
    const BEGIN: [&str; 2] = [
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN TRUSTED CERTIFICATE-----",
    ];
    const END: [&str; 2] = [
        "-----END CERTIFICATE-----",
        "-----END TRUSTED CERTIFICATE-----",
    ];
    /// Names of authorities are shorter; a key in one line is longer.
    const LONGEST_COMMENT: usize = 160;
    let Ok(text) = str::from_utf8(content) else {
        return false;
    };
    let mut inside = false;
    let mut certificates = 0;
    for line in text.lines().map(str::trim_end) {
        match inside {
            true if END.contains(&line) => inside = false,
            true => {}
            false if BEGIN.contains(&line) => {
                inside = true;
                certificates += 1;
            }
            // Words have spaces or are a comment; a line of base64 has none and is long.
            false => {
                let comment = line.starts_with('#') || line.len() < 40 || line.contains(' ');
                if line.starts_with("-----") || line.len() > LONGEST_COMMENT || !comment {
                    return false;
                }
            }
        }
    }
    // A folder of hashes may have empty files.
    !inside && (certificates > 0 || content.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn of_a_folder_of_certificates_only_certificates_are_shown() {
        let certificate =
            "# An authority\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";
        let root = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, content: &[u8]| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, content).expect("a file");
        };
        write("ca-certificates.crt", certificate.repeat(3).as_bytes());
        write("deep/er/authority.pem", certificate.as_bytes());
        symlink("ca-certificates.crt", root.path().join("link.pem")).expect("a link");
        let hidden = [
            ("server.key", key.to_owned().into_bytes()),
            ("both.pem", format!("{certificate}{key}").into_bytes()),
            (
                "deep/er/server.pem",
                key.replace("PRIVATE", "EC PRIVATE").into_bytes(),
            ),
            ("server.der", vec![0x30, 0x82, 0x04, 0xbd, 0x02, 0x01, 0x00]),
            ("java/cacerts", vec![0xfe, 0xed, 0xfe, 0xed]),
            ("server.p12", vec![0x30, 0x82, 0x0a, 0x01]),
            (
                "bare.b64",
                "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj".into(),
            ),
            ("putty.ppk", "PuTTY-User-Key-File-3: ssh-ed25519\n".into()),
        ];
        for (name, content) in &hidden {
            write(name, content);
        }
        let mut expected: Vec<PathBuf> = hidden
            .iter()
            .map(|(name, _)| root.path().join(name))
            .collect();
        let mut found = other_than_certificates(root.path());
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }
}
