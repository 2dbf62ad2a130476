//! Cargo with clippy as the compiler of our own crates.
//!
//! Whatever builds for tests goes through here. Cargo keeps what one compiler made apart from what another did: a
//! build without the lints beside one with them would compile every crate of ours twice.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// Lints are shown as warnings; who counts them decides what they mean.
pub(crate) fn cargo() -> Result<Command> {
    let root = process::capture(Command::new("rustc").args(["--print", "sysroot"]))?;
    // Where `cargo clippy` finds it too.
    let driver = Path::new(root.trim()).join("bin/clippy-driver");
    anyhow::ensure!(
        driver.is_file(),
        "{} is missing; run `rustup component add clippy`",
        driver.display()
    );
    let mut cargo = process::cargo();
    cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
    Ok(cargo)
}
