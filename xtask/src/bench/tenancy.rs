//! `cargo xtask bench tenancy`: what a tenant costs, with one or a thousand neighbours, and what the
//! control plane does per second.
//!
//! Examples of the store and of the use cases do the measuring, because developer commands name no crate
//! of ours. What is printed is kept in `docs/bench/tenancy.json` and `tenancy.md` with `--write`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::report::machine;
use crate::process;
use crate::repo::Repo;
use crate::setup;

#[derive(clap::Args)]
pub(super) struct TenancyBenchOptions {
    /// Numbers of tenants, rising.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1000])]
    tenants: Vec<u32>,
    /// Entries of the audit trail that are written and verified.
    #[arg(long, default_value_t = 100_000)]
    entries: u32,
    /// Sign-ins.
    #[arg(long, default_value_t = 200)]
    logins: u32,
    /// Keep the figures in docs/bench.
    #[arg(long)]
    write: bool,
    /// Measure builds for debugging: to try the bench, not to believe it.
    #[arg(long, conflicts_with = "write")]
    debug: bool,
}

pub(super) fn run(
    repo: &Repo,
    options: &TenancyBenchOptions,
    nimbus: impl FnOnce() -> Result<std::path::PathBuf>,
) -> Result<()> {
    let tools = setup::find(repo)?;
    let Some(postgres) = tools.postgres.path() else {
        bail!("no PostgreSQL: run `cargo xtask setup`");
    };
    let counts: Vec<String> = options.tenants.iter().map(u32::to_string).collect();
    let tenancy = example(
        repo,
        options,
        "nimbus-control-store",
        "tenancy",
        postgres,
        &counts,
    )?;
    let numbers = [options.entries.to_string(), options.logins.to_string()];
    let control = example(
        repo,
        options,
        "nimbus-control-app",
        "control",
        postgres,
        &numbers,
    )?;
    let idle = idle(&nimbus()?, postgres)?;
    let page = page(&tenancy, &control, &idle);
    println!("{page}");
    if options.write {
        let kept = json!({
            "bench": "tenancy",
            "machine": machine(),
            "figures": {"tenancy": tenancy, "control": control, "idle": idle},
        });
        let folder = repo.join("docs/bench");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("tenancy.json"), format!("{kept:#}\n"))?;
        fs::write(folder.join("tenancy.md"), page)?;
    }
    Ok(())
}

fn example(
    repo: &Repo,
    options: &TenancyBenchOptions,
    package: &str,
    name: &str,
    postgres: &Path,
    arguments: &[String],
) -> Result<Value> {
    let mut command = process::cargo();
    command.args(["run", "--quiet"]);
    if !options.debug {
        command.arg("--release");
    }
    command
        .args(["--package", package, "--example", name, "--"])
        .arg(postgres)
        .args(arguments)
        .current_dir(repo.root());
    let text = process::capture(&mut command)?;
    serde_json::from_str(&text)
        .with_context(|| format!("the example {name} printed something else"))
}

/// Memory of a server that nobody asks anything, and how long it takes to start, new and again.
fn idle(nimbus: &Path, postgres: &Path) -> Result<Value> {
    let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let (_, first) = BenchServer::start(nimbus, postgres, folder.path())?.measured()?;
    let (memory, again) = BenchServer::start(nimbus, postgres, folder.path())?.measured()?;
    Ok(json!({
        "first_start_ms": first.as_millis() as u64,
        "restart_ms": again.as_millis() as u64,
        "nimbus_mb": memory.0,
        "postgresql_mb": memory.1,
    }))
}

/// A server with a database of its own.
pub(super) struct BenchServer {
    process: Child,
    started: Duration,
}

impl BenchServer {
    pub(super) fn start(nimbus: &Path, postgres: &Path, folder: &Path) -> Result<Self> {
        let began = Instant::now();
        let out = folder.join("out");
        let mut process = Command::new(nimbus)
            .args(["up", "--listen", "127.0.0.1:0", "--json", "--data-dir"])
            .arg(folder.join("data"))
            .env("NIMBUS_DB_BINARIES", postgres)
            .env("NIMBUS_RATE_LIMITING_ENABLED", "false")
            .stdout(fs::File::create(&out)?)
            .stderr(Stdio::null())
            .spawn()
            .context("nimbus does not start")?;
        while !fs::read_to_string(&out)?.contains("address") {
            if process.try_wait()?.is_some() || began.elapsed() > Duration::from_secs(120) {
                let _ = process.kill();
                bail!("`nimbus up` is not ready: {}", fs::read_to_string(&out)?);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self {
            process,
            started: began.elapsed(),
        })
    }

    /// Megabytes of the server and of its PostgreSQL after a while of rest, each page counted once.
    fn measured(self) -> Result<((f64, f64), Duration)> {
        std::thread::sleep(Duration::from_secs(3));
        let own = proportional(self.process.id());
        let database: f64 = descendants(self.process.id())
            .into_iter()
            .map(proportional)
            .sum();
        let started = self.started;
        self.stop()?;
        Ok(((rounded(own), rounded(database)), started))
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn stop(mut self) -> Result<()> {
        let pid = nix::unistd::Pid::from_raw(self.process.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        self.process.wait()?;
        Ok(())
    }
}

fn rounded(megabytes: f64) -> f64 {
    (megabytes * 10.0).round() / 10.0
}

/// Megabytes of a process, each page counted once.
pub(super) fn proportional(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .map_or(0.0, |kilobytes| kilobytes / 1024.0)
}

fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children
            .split_whitespace()
            .filter_map(|text| text.parse().ok())
        {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

/// The figures for people.
fn page(tenancy: &Value, control: &Value, idle: &Value) -> String {
    let ms = |value: &Value| {
        value
            .as_f64()
            .map_or_else(|| "-".to_owned(), |us| format!("{:.1}", us / 1000.0))
    };
    let mut page = String::from(
        "# Tenancy and the control plane\n\n`cargo xtask bench tenancy --write` wrote this page; `tenancy.json` names the machine. \
         PostgreSQL is a private one\nwith everything forced to disk. Times are milliseconds.\n\n\
         | isolation | tenants | create p50 | create p95 | request p50 | request p99 | same query without RLS p99 |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let rows = tenancy.as_array().map(Vec::as_slice).unwrap_or_default();
    for row in rows.iter().filter(|row| row["tenants"].is_u64()) {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row["isolation"].as_str().unwrap_or_default(),
            row["tenants"],
            ms(&row["create"]["p50_us"]),
            ms(&row["create"]["p95_us"]),
            ms(&row["request"]["p50_us"]),
            ms(&row["request"]["p99_us"]),
            ms(&row["same_query_without_rls"]["p99_us"]),
        );
    }
    page.push_str("\n| what | figure |\n|---|---|\n");
    let mut line = |what: &str, figure: String| {
        let _ = writeln!(page, "| {what} | {figure} |");
    };
    for row in rows.iter().filter(|row| row["migrated_schemas"].is_u64()) {
        line(
            "migration of every schema",
            format!(
                "{} schemas in {} ms",
                row["migrated_schemas"], row["migration_ms"]
            ),
        );
        line(
            "the same, killed half-way and resumed",
            format!(
                "{} schemas were left, done in {} ms",
                row["left_after_kill"], row["resumed_ms"]
            ),
        );
    }
    line(
        "audit entries appended per second, one tenant",
        control["audit_append_per_s_one_tenant"].to_string(),
    );
    line(
        "audit entries appended per second, seven tenants at once",
        control["audit_append_per_s_seven_tenants"].to_string(),
    );
    line(
        "audit entries verified per second",
        control["audit_verify_per_s"].to_string(),
    );
    line(
        "sign-ins per second (argon2id, as many at once as cores)",
        control["logins_per_s"].to_string(),
    );
    line(
        "first start of `nimbus up`",
        format!("{} ms", idle["first_start_ms"]),
    );
    line("restart", format!("{} ms", idle["restart_ms"]));
    line(
        "memory at rest, nimbus",
        format!("{} MB", idle["nimbus_mb"]),
    );
    line(
        "memory at rest, its PostgreSQL",
        format!("{} MB", idle["postgresql_mb"]),
    );
    page
}
