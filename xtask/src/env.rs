//! `cargo xtask env`: the variables by which tests find what `setup` installed.
//!
//! `cargo xtask test` sets the same ones. For a single test: `eval "$(cargo xtask env)"`, then
//! `cargo test -p …`.

use std::ffi::OsString;

use anyhow::Result;

use crate::repo::Repo;
use crate::setup::{self, InstalledTools};

/// A test that lacks a tool appends `SKIPPED(<reason>): <test>` to the file that this names.
pub(crate) const SKIPS: &str = "NIMBUS_TEST_SKIPS";

/// A test that has a long form runs in it when this is set.
pub(crate) const LONG: &str = "NIMBUS_TEST_LONG";

pub(crate) fn run(repo: &Repo) -> Result<()> {
    for (name, value) in variables(&setup::find(repo)?) {
        println!("export {name}={}", quoted(&value.to_string_lossy()));
    }
    Ok(())
}

/// One variable per tool that is there; a missing tool has none.
pub(crate) fn variables(tools: &InstalledTools) -> Vec<(&'static str, OsString)> {
    [
        ("NIMBUS_TEST_NODE_SDK", &tools.node_sdk),
        ("NIMBUS_TEST_PYTHON", &tools.python),
        ("NIMBUS_TEST_MOTO", &tools.moto),
        ("NIMBUS_TEST_SCHEMATHESIS", &tools.schemathesis),
        ("NIMBUS_TEST_PULUMI", &tools.pulumi),
        ("NIMBUS_TEST_PLUGINS", &tools.plugins),
        ("NIMBUS_TEST_LIBRARY", &tools.library),
        ("NIMBUS_TEST_POSTGRES", &tools.postgres),
        ("NIMBUS_TEST_PROMTOOL", &tools.promtool),
        ("NIMBUS_TEST_HELM", &tools.helm),
        ("NIMBUS_TEST_VALKEY", &tools.valkey),
        ("NIMBUS_TEST_SOCKET_IO", &tools.socket_io),
        ("NIMBUS_TEST_TEMPORAL", &tools.temporal),
        ("NIMBUS_TEST_CHROMIUM", &tools.chromium),
    ]
    .into_iter()
    .filter_map(|(name, tool)| Some((name, tool.path()?.clone().into_os_string())))
    .collect()
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::InstalledTool;

    #[test]
    fn only_tools_that_are_there_have_a_variable() {
        let missing = || InstalledTool::Missing("no".into());
        let tools = InstalledTools {
            node_sdk: InstalledTool::Ready("sdk".into()),
            python: missing(),
            moto: missing(),
            schemathesis: missing(),
            pulumi: missing(),
            plugins: InstalledTool::Ready("plugins".into()),
            library: missing(),
            postgres: missing(),
            promtool: missing(),
            helm: missing(),
            valkey: missing(),
            socket_io: missing(),
            temporal: missing(),
            chromium: missing(),
        };
        assert_eq!(
            variables(&tools),
            [
                ("NIMBUS_TEST_NODE_SDK", OsString::from("sdk")),
                ("NIMBUS_TEST_PLUGINS", OsString::from("plugins")),
            ]
        );
    }

    #[test]
    fn values_survive_the_shell() {
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
    }
}
