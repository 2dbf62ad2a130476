//! What a case runs with, and a home with plugins in which both engines find them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nimbus_test_tools::{Tool, record_skip};

use crate::case::{Case, Language};
use crate::side::copy_all;

pub(crate) struct Tools {
    pub(crate) node_sdk: PathBuf,
    pub(crate) python: Option<PathBuf>,
    /// Without it, a case is compared with what the official engine did when it was recorded.
    pub(crate) official: Option<PathBuf>,
    /// A home of the official command line, with plugins as it installs them.
    pub(crate) home: PathBuf,
}

impl Tools {
    /// What the case needs; `None` after recording why it is skipped.
    pub(crate) fn find(case: &Case, folder: &Path) -> Option<Self> {
        let test = case.program;
        let node_sdk = Tool::NodeSdk.find_or_record_skip(test)?;
        let python = match case.language {
            Language::Python => Some(Tool::Python.find_or_record_skip(test)?),
            Language::TypeScript => None,
        };
        let home = folder.join("home");
        install_own_plugins(case, folder, &home, &node_sdk);
        if let Some((name, version)) = case.plugin {
            let file = format!("pulumi-resource-{name}");
            let built = Tool::ProviderPlugins.find_or_record_skip(test)?.join(&file);
            if !built.exists() {
                record_skip(&format!("no {name} plugin"), test);
                return None;
            }
            symlink(built, plugin_folder(&home, name, version).join(file)).unwrap();
        }
        Some(Self {
            node_sdk,
            python,
            official: Tool::PulumiCli.find(),
            home,
        })
    }

    /// The folder above the interpreter's.
    pub(crate) fn virtual_environment(&self) -> &Path {
        let python = self
            .python
            .as_deref()
            .expect("the case said that it needs Python");
        python
            .ancestors()
            .nth(2)
            .expect("an interpreter is in <environment>/bin")
    }

    /// The official language hosts are beside the official command line. That for Python takes the
    /// first interpreter, and leaves the `virtualenv` of a project aside.
    pub(crate) fn path_variable(&self) -> OsString {
        let official = self.official.as_deref().and_then(Path::parent);
        let python = self.python.as_deref().and_then(Path::parent);
        let mut folders: Vec<_> = official
            .into_iter()
            .chain(python)
            .map(Path::to_owned)
            .collect();
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&inherited));
        std::env::join_paths(folders).unwrap()
    }
}

/// The folder of an installed plugin, which it makes.
fn plugin_folder(home: &Path, name: &str, version: &str) -> PathBuf {
    let folder = home
        .join("plugins")
        .join(format!("resource-{name}-v{version}"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Installs the plugins that are written for these tests.
fn install_own_plugins(case: &Case, folder: &Path, home: &Path, node_sdk: &Path) {
    symlink(node_sdk.join("node_modules"), folder.join("node_modules")).unwrap();
    let provider = ["1.0.0"].iter().chain(case.provider_versions);
    let provider = provider.map(|version| ("parity", *version, "provider"));
    for (name, version, source) in provider.chain([("kit", "2.0.0", "kit")]) {
        let target = folder.join(source);
        copy_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join(source), &target);
        let script = plugin_folder(home, name, version).join(format!("pulumi-resource-{name}"));
        let text = format!(
            "#!/bin/sh\nexport PARITY_VERSION={version}\nexec node '{}/index.js' \"$@\"\n",
            target.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
