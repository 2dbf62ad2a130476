//! Valkey for tests of several servers: the system's (or its Redis), else Debian's packages, unpacked and not installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{InstalledTool, on_path};
use crate::cache::{DownloadCache, Recipe};
use crate::process;

const POOL: &str = "https://deb.debian.org/debian/pool/main";
/// Packages with their digests (SHA-256). The server is a name of another program of its tools.
const PACKAGES: [(&str, &str); 3] = [
    (
        "v/valkey/valkey-tools_8.0.1+dfsg1-1~bpo12+1_amd64.deb",
        "d2c2ea67642fa9571a07138b80ae52ebe566311c952aef25a39c1d5050697853",
    ),
    (
        "libl/liblzf/liblzf1_3.6-3_amd64.deb",
        "9854b0866201b63e04f1e446f45f01ef4a6f72c61f2250b75f944f6046cc7e8c",
    ),
    (
        "j/jemalloc/libjemalloc2_5.3.0-1_amd64.deb",
        "a4117c23c5c8acf6c9678a6cb086f000b79476369da7efe8a78a70826956ad3d",
    ),
];
/// Finds its libraries beside itself.
const STARTER: &str = "#!/bin/sh
here=$(dirname \"$(readlink -f \"$0\")\")
LD_LIBRARY_PATH=\"$here/usr/lib/x86_64-linux-gnu\" exec \"$here/usr/bin/valkey-server\" \"$@\"
";

pub(crate) fn install(cache: &DownloadCache) -> Result<InstalledTool> {
    if let Some(found) = of_the_system() {
        return Ok(found);
    }
    if !can_unpack() {
        return Ok(InstalledTool::Missing(
            "install valkey-server or redis-server with the system's packages".into(),
        ));
    }
    let entry = with_recipe(|recipe| cache.install(recipe, download));
    Ok(match entry {
        Ok(entry) => InstalledTool::Ready(entry.join("valkey-server")),
        // Tests that need it say that they are skipped.
        Err(error) => {
            InstalledTool::Missing(format!("Debian's packages were not fetched: {error:#}"))
        }
    })
}

pub(crate) fn find(cache: &DownloadCache) -> InstalledTool {
    if let Some(found) = of_the_system() {
        return found;
    }
    let entry = with_recipe(|recipe| cache.entry(recipe));
    let server = entry.join("valkey-server");
    if server.is_file() {
        InstalledTool::Ready(server)
    } else {
        InstalledTool::Missing("run `cargo xtask setup --integration`".into())
    }
}

fn of_the_system() -> Option<InstalledTool> {
    let names = ["valkey-server", "redis-server"];
    let mut found = names.iter().map(|name| on_path(name));
    found.find(|tool| tool.path().is_some())
}

/// Debian and what is made from it, with the libraries of its twelfth edition or newer.
fn can_unpack() -> bool {
    cfg!(all(target_os = "linux", target_arch = "x86_64"))
        && ["dpkg-deb", "curl"]
            .iter()
            .all(|name| on_path(name).path().is_some())
}

fn download(folder: &Path) -> Result<()> {
    println!("setup: unpacking Debian's Valkey");
    let log = folder.join("install.log");
    for (path, digest) in PACKAGES {
        let package = folder.join("package.deb");
        let mut curl = Command::new("curl");
        curl.args(["-sSfL", "--max-time", "120", "-o"])
            .arg(&package)
            .arg(format!("{POOL}/{path}"));
        process::run_logged(&mut curl, &log).with_context(|| format!("{path} was not fetched"))?;
        let line = format!("{digest}  {}\n", package.display());
        let sums = folder.join("sums");
        fs::write(&sums, line)?;
        let mut check = Command::new("sha256sum");
        check.arg("--check").arg(&sums);
        process::run_logged(&mut check, &log).with_context(|| format!("{path} is another one"))?;
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(&package).arg(folder);
        process::run_logged(&mut unpack, &log)?;
        fs::remove_file(&package)?;
    }
    let programs = folder.join("usr/bin");
    fs::copy(
        programs.join("valkey-check-rdb"),
        programs.join("valkey-server"),
    )?;
    let starter = folder.join("valkey-server");
    fs::write(&starter, STARTER)?;
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755))?;
    let mut version = Command::new(&starter);
    version.arg("--version");
    process::run_logged(&mut version, &log).context("Valkey does not start")
}

fn with_recipe<T>(use_it: impl FnOnce(&Recipe<'_>) -> T) -> T {
    let mut inputs = vec![STARTER];
    inputs.extend(PACKAGES.iter().flat_map(|(path, digest)| [*path, *digest]));
    use_it(&Recipe {
        name: "valkey",
        inputs: &inputs,
        megabytes: 20,
    })
}
