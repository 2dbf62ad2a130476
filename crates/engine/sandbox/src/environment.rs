//! Which variables a program gets: those on this list, and nothing else.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables that programs and their runtimes need and that open no door.
const ALLOWED: &[&str] = &[
    "COLORTERM",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "NIMBUS_PROGRAM",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NO_COLOR",
    "PATH",
    "PULUMI_CONFIG",
    "PULUMI_CONFIG_SECRET_KEYS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "TERM",
    "TZ",
    "VIRTUAL_ENV",
];

/// Beginnings of the same kind.
const ALLOWED_PREFIXES: &[&str] = &["LC_", "PULUMI_NODEJS_", "PULUMI_RUNTIME_", "TS_NODE_"];

/// Where every system has its programs.
const USUAL_FOLDERS: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin"];

/// The search path of a stranger's program: what was put in front of the operator's own for it (a virtual environment),
/// where its interpreter is, and the usual folders. The operator's own says how the machine is set up and who set it up.
pub(crate) fn strangers_path(
    program: &OsStr,
    given: &OsStr,
    operators: Option<&OsStr>,
) -> OsString {
    let folders = |text: &OsStr| env::split_paths(text).collect::<Vec<PathBuf>>();
    let given = folders(given);
    let operators = operators.map(folders).unwrap_or_default();
    let program = Path::new(program);
    let home = match program.parent().filter(|_| program.is_absolute()) {
        Some(folder) => Some(folder.to_owned()),
        // A name alone is looked for where it always was.
        None => given
            .iter()
            .find(|folder| folder.join(program).is_file())
            .cloned(),
    };
    let own = given.iter().filter(|folder| !operators.contains(folder));
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in own
        .cloned()
        .chain(home)
        .chain(USUAL_FOLDERS.iter().map(PathBuf::from))
    {
        if folder.is_absolute() && !kept.contains(&folder) {
            kept.push(folder);
        }
    }
    // What came out of a path goes into one.
    env::join_paths(kept).unwrap_or_default()
}

/// What is left of an environment. `more` are names that the operator lets through.
pub(crate) fn filter<'a>(
    environment: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    more: &[String],
) -> BTreeMap<OsString, OsString> {
    environment
        .into_iter()
        .filter(|(name, _)| is_allowed(name, more))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn is_allowed(name: &OsStr, more: &[String]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    ALLOWED.contains(&name)
        || ALLOWED_PREFIXES.iter().any(|p| name.starts_with(p))
        || more.iter().any(|extra| extra == name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(names: &[&str], more: &[&str]) -> Vec<String> {
        let more: Vec<_> = more.iter().map(|&name| name.to_owned()).collect();
        let given = names
            .iter()
            .map(|name| (OsStr::new(*name), OsStr::new("x")));
        let kept = filter(given, &more).into_keys();
        kept.map(|name| name.into_string().expect("text")).collect()
    }

    #[test]
    fn credentials_and_tokens_stay_outside() {
        let secrets = [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_PROFILE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AZURE_CLIENT_SECRET",
            "PULUMI_ACCESS_TOKEN",
            "PULUMI_CONFIG_PASSPHRASE",
            "PULUMI_CONFIG_PASSPHRASE_FILE",
            "NIMBUS_DATABASE_URL",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
        ];
        assert_eq!(kept(&secrets, &[]), Vec::<String>::new());
    }

    #[test]
    fn what_programs_need_comes_through() {
        let needed = [
            "LC_ALL",
            "PATH",
            "PULUMI_CONFIG",
            "PULUMI_NODEJS_TYPESCRIPT",
        ];
        assert_eq!(kept(&needed, &[]), needed);
        assert_eq!(kept(&["MY_FLAG", "OTHER"], &["MY_FLAG"]), ["MY_FLAG"]);
    }

    #[test]
    fn a_strangers_search_path_says_nothing_of_the_operators() {
        let path = |program: &str, given: &str, operators: &str| {
            let operators = OsStr::new(operators);
            let path = strangers_path(OsStr::new(program), OsStr::new(given), Some(operators));
            path.into_string().expect("text")
        };
        let usual = USUAL_FOLDERS.join(":");
        let operators = "/home/alice/.cargo/bin:/opt/acme-internal/bin:/usr/bin";
        let seen = path("/usr/bin/node", operators, operators);
        assert!(!seen.contains("alice") && !seen.contains("acme"), "{seen}");
        assert_eq!(
            path("/opt/node/bin/node", operators, operators),
            format!("/opt/node/bin:{usual}")
        );
        let with_own = format!("/project/venv/bin:{operators}");
        assert_eq!(
            path("/usr/local/bin/python", &with_own, operators),
            format!("/project/venv/bin:{usual}")
        );
        assert_eq!(path("nothing-of-this-name", ".:relative", ""), usual);
    }

    proptest! {
        #[test]
        fn nothing_comes_through_that_is_not_listed(name in "[A-Z_]{1,24}") {
            let listed = ALLOWED.contains(&name.as_str())
                || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            prop_assert_eq!(kept(&[&name], &[]).len(), usize::from(listed));
        }
    }
}
