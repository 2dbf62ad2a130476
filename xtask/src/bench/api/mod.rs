//! `cargo xtask bench api`: what the API answers a second, with one tenant and with a thousand, under more load than there is
//! room for, and what memory that takes.
//!
//! The server is `nimbus up` with its own PostgreSQL; the load comes from this process, on the same machine. With `--write`
//! the figures are kept in `docs/bench/api.json` and `api.md`.

mod load;
mod sockets;

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::load::LoadConnection;
use super::report::machine;
use super::tenancy::{BenchServer, proportional};
use crate::repo::Repo;
use crate::setup;

const EMAIL: &str = "owner@operator.example";
const PASSWORD: &str = "glass lamp river 9";

#[derive(clap::Args)]
pub(super) struct ApiBenchOptions {
    /// Numbers of tenants, rising.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1000])]
    tenants: Vec<usize>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Connections that ask at once.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Sign-ins at once.
    #[arg(long, default_value_t = 200)]
    logins: u8,
    /// Sockets that are open at once.
    #[arg(long, default_value_t = 10_000)]
    sockets: usize,
    /// Events that every socket is told.
    #[arg(long, default_value_t = 50)]
    events: usize,
    /// Keep the figures in docs/bench.
    #[arg(long)]
    write: bool,
    /// What is said of the build that is measured, such as `for debugging`.
    #[arg(long, default_value = "release")]
    build: String,
}

pub(super) fn run(repo: &Repo, options: &ApiBenchOptions, nimbus: PathBuf) -> Result<()> {
    let tools = setup::find(repo)?;
    let Some(postgres) = tools.postgres.path() else {
        bail!("no PostgreSQL: run `cargo xtask setup`");
    };
    let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let server = BenchServer::start(&nimbus, postgres, folder.path())?;
    let figures = measure(&server, folder.path(), options);
    server.stop()?;
    let mut figures = figures?;
    figures["build"] = json!(options.build);
    let page = page(&figures, options);
    println!("{page}");
    if options.write {
        let kept = json!({"bench": "api", "machine": machine(), "figures": figures});
        let folder = repo.join("docs/bench");
        fs::write(folder.join("api.json"), format!("{kept:#}\n"))?;
        fs::write(folder.join("api.md"), page)?;
    }
    Ok(())
}

/// A server that was set up.
struct LoadedSite {
    address: SocketAddr,
    token: String,
    root: String,
    pid: u32,
}

impl LoadedSite {
    fn set_up(server: &BenchServer, folder: &Path) -> Result<Self> {
        let said: Value = serde_json::from_str(&fs::read_to_string(folder.join("out"))?)?;
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let address: SocketAddr = text("address").trim_start_matches("http://").parse()?;
        let link = text("setup_link");
        let token = link
            .split("token=")
            .nth(1)
            .context("no link of the first run")?;
        let body =
            json!({"token": token, "email": EMAIL, "display_name": "Owner", "password": PASSWORD});
        let mut connection = LoadConnection::open(address)?;
        let done = connection
            .ask("POST", "/api/v1/setup/complete", None, Some(&body))?
            .json()?;
        let text = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            address,
            token: text("access_token"),
            root: text("tenant_id"),
            pid: server.id(),
        })
    }

    /// Signs in anew: a token lives for minutes, and a measurement may take longer than those before it left of it.
    fn sign_in(&mut self) -> Result<()> {
        let mut connection = LoadConnection::open(self.address)?;
        let body = json!({"email": EMAIL, "password": PASSWORD});
        let answer = connection.ask("POST", "/api/v1/auth/login", None, Some(&body))?;
        let token = answer.json()?["access_token"].as_str().map(str::to_owned);
        self.token = token.context("the sign-in gave no token")?;
        Ok(())
    }

    fn post(&self, connection: &mut LoadConnection, path: &str, body: Value) -> Result<Value> {
        connection
            .ask("POST", path, Some(&self.token), Some(&body))?
            .json()
    }

    fn memory(&self) -> Value {
        json!((proportional(self.pid) * 10.0).round() / 10.0)
    }

    fn load(
        &self,
        connections: usize,
        seconds: u64,
        question: &load::Question<'_>,
    ) -> Result<Value> {
        let duration = Duration::from_secs(seconds);
        load::run(self.address, &self.token, connections, duration, question)
    }
}

fn measure(server: &BenchServer, folder: &Path, options: &ApiBenchOptions) -> Result<Value> {
    let mut site = LoadedSite::set_up(server, folder)?;
    thread::sleep(Duration::from_secs(2));
    let idle = site.memory();
    let mut connection = LoadConnection::open(site.address)?;
    let mut tenants: Vec<String> = Vec::new();
    let mut sizes = Vec::new();
    let seconds = options.seconds;
    for count in &options.tenants {
        while tenants.len() < *count {
            if tenants.len() % 100 == 99 {
                site.sign_in()?;
            }
            let path = format!("/api/v1/tenants/{}/tenants", site.root);
            let slug = format!("t{}", tenants.len());
            let made = site.post(&mut connection, &path, json!({"slug": slug, "name": slug}))?;
            tenants.push(made["id"].as_str().unwrap_or_default().to_owned());
        }
        site.sign_in()?;
        let of = |number: u64| &tenants[usize::try_from(number).unwrap_or(0) % tenants.len()];
        let read = site.load(options.connections, seconds, &|number| {
            ("GET", format!("/api/v1/tenants/{}", of(number)), None)
        })?;
        let before = tenants.len();
        let write = site.load(options.connections, seconds, &|number| {
            let body = json!({"name": format!("g{before}-{number}")});
            (
                "POST",
                format!("/api/v1/tenants/{}/groups", of(number)),
                Some(body),
            )
        })?;
        let graphql = site.load(options.connections, seconds, &|number| {
            let query = "query($t: ID!) { tenant(id: $t) { name parent { slug } } groups(filter: {tenantId: $t}, pagination: {first: 10}) { nodes { name members(first: 3) { email } } } }";
            let body = json!({"query": query, "variables": {"t": of(number)}});
            ("POST", "/graphql".to_owned(), Some(body))
        })?;
        sizes.push(json!({"tenants": count, "read": read, "write": write, "graphql": graphql}));
    }
    let loaded = site.memory();
    site.sign_in()?;
    let of = |number: u64| &tenants[usize::try_from(number).unwrap_or(0) % tenants.len()];
    let question = |number: u64| ("GET", format!("/api/v1/tenants/{}", of(number)), None);
    let many = options.connections * 64;
    let overload = site.load(many, seconds, &question)?;
    let began = Instant::now();
    let after = site.load(options.connections, seconds.min(5), &question)?;
    let overload_memory = site.memory();
    site.sign_in()?;
    raise_open_files();
    let groups = format!("/api/v1/tenants/{}/groups", site.root);
    let publish = |number: usize| {
        let mut connection = LoadConnection::open(site.address)?;
        let body = json!({"name": format!("fan-{number}")});
        site.post(&mut connection, &groups, body).map(drop)
    };
    let sockets = sockets::measure(
        site.address,
        &site.token,
        options.sockets,
        options.events,
        &publish,
        &|| site.memory(),
    )?;
    let logins = sign_ins(&site, options.logins)?;
    Ok(json!({
        "sockets": sockets,
        "idle_mb": idle,
        "loaded_mb": loaded,
        "sizes": sizes,
        "overload": {"under": overload, "after": after, "after_seconds": began.elapsed().as_secs(), "mb": overload_memory},
        "sign_ins": logins,
    }))
}

/// A socket is a file, here and there.
fn raise_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// So many at once, each from an address of its own.
fn sign_ins(site: &LoadedSite, count: u8) -> Result<Value> {
    let before = site.memory();
    let began = Instant::now();
    let statuses: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = (1..=count)
            .map(|last| {
                scope.spawn(move || -> Result<u16> {
                    let mut connection = LoadConnection::open_from(site.address, Ipv4Addr::new(127, 9, 0, last))?;
                    let body = json!({"email": EMAIL, "password": PASSWORD});
                    let answer = connection.ask("POST", "/api/v1/auth/login", None, Some(&body))?;
                    Ok(answer.status)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join()).collect()
    });
    let took = began.elapsed();
    let good = statuses
        .iter()
        .filter(|status| matches!(status, Ok(Ok(200))))
        .count();
    let during = site.memory();
    thread::sleep(Duration::from_secs(10));
    Ok(json!({
        "at_once": count,
        "signed_in": good,
        "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
        "before_mb": before,
        "after_mb": during,
        "ten_seconds_later_mb": site.memory(),
    }))
}

fn page(figures: &Value, options: &ApiBenchOptions) -> String {
    let mut page = String::from("# What the API answers\n\n");
    let _ = writeln!(
        page,
        "`cargo xtask bench api --write` wrote this. Server, its PostgreSQL and the load are on one machine ({}); the build is {}.\n\
         {} connections ask one after the other for {} seconds each.\n",
        machine(),
        figures["build"].as_str().unwrap_or_default(),
        options.connections,
        options.seconds
    );
    page.push_str("| tenants | asked | answers a second | median | p99 | shed | failed |\n|---|---|---|---|---|---|---|\n");
    let row = |page: &mut String, first: &str, what: &str, one: &Value| {
        let _ = writeln!(
            page,
            "| {first} | {what} | {} | {} ms | {} ms | {} | {} |",
            one["per_second"], one["median_ms"], one["p99_ms"], one["shed"], one["failed"]
        );
    };
    for size in figures["sizes"].as_array().into_iter().flatten() {
        let tenants = size["tenants"].to_string();
        for (what, name) in [
            ("a tenant is read", "read"),
            ("a group is made", "write"),
            (
                "GraphQL: a tenant, its parent, ten groups with members",
                "graphql",
            ),
        ] {
            row(&mut page, &tenants, what, &size[name]);
        }
    }
    let overload = &figures["overload"];
    let words = format!("reads on {} connections", overload["under"]["connections"]);
    row(&mut page, "overload", &words, &overload["under"]);
    row(&mut page, "afterwards", "reads", &overload["after"]);
    let sockets = &figures["sockets"];
    let _ = writeln!(
        page,
        "\n| sockets | |\n|---|---|\n| asked for, connected, refused | {}, {}, {} |\n| until all were welcomed | {} s |\n\
         | memory of the server with them | {} MB |\n| events, messages heard, missing | {}, {}, {} |\n\
         | messages a second | {} |\n| from the request to the socket, median and p99 | {} s, {} s |\n\
         | cut off together: came back, refused, after | {}, {}, {} s |",
        sockets["asked_for"],
        sockets["connected"],
        sockets["refused"],
        sockets["connect_seconds"],
        sockets["mb"],
        sockets["events"],
        sockets["heard"],
        sockets["missing"],
        sockets["messages_per_second"],
        sockets["median_seconds"],
        sockets["p99_seconds"],
        sockets["came_back"],
        sockets["refused_again"],
        sockets["back_seconds"],
    );
    let signs = &figures["sign_ins"];
    let _ = writeln!(
        page,
        "\nMemory of the server: {} MB at rest, {} MB after all of this, {} MB after the overload. {} sign-ins at once, {} of them answered, took {} s \
         and left {} MB, ten seconds later {} MB (before: {} MB).\n\n\
         Aims are L3 (2,000 reads, 300 writes and 300 GraphQL requests a second at 1,000 tenants), L4 (10,000 sockets, an event at the browser within a second, all back within a minute) and L9 (four fifths of the peak under overload).",
        figures["idle_mb"],
        figures["loaded_mb"],
        overload["mb"],
        signs["at_once"],
        signs["signed_in"],
        signs["seconds"],
        signs["after_mb"],
        signs["ten_seconds_later_mb"],
        signs["before_mb"],
    );
    page
}
