//! `cargo xtask bench tenancy`: what a tenant costs, with one or a thousand neighbours.
//!
//! An example of the store does the measuring, because developer commands name no crate of ours; its
//! figures are printed and kept in `docs/bench/tenancy.json`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::report::machine;
use crate::process;
use crate::repo::Repo;
use crate::setup;

pub(super) fn run(repo: &Repo, tenants: &[u32]) -> Result<()> {
    let tools = setup::find(repo)?;
    let Some(postgres) = tools.postgres.path() else {
        bail!("no PostgreSQL: run `cargo xtask setup --integration`");
    };
    let mut command = Command::new("cargo");
    command
        .args([
            "run",
            "--release",
            "--package",
            "nimbus-control-store",
            "--example",
            "tenancy",
            "--",
        ])
        .arg(postgres)
        .args(tenants.iter().map(u32::to_string))
        .current_dir(repo.root());
    let text = process::capture(&mut command)?;
    let figures: Value = serde_json::from_str(&text).context("the bench printed something else")?;
    println!("{text}");
    let kept = json!({ "bench": "tenancy", "machine": machine(), "figures": figures });
    let folder = repo.join("docs/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("tenancy.json"), format!("{kept:#}\n"))?;
    Ok(())
}
