//! Operations that run the program only if asked to, and content that comes from the web.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::Value;

use crate::support::Site;

/// Keeps a file of the web, and says whenever it runs and whenever something is about to go.
const PROGRAM: &str = r#""use strict";
const fs = require("fs");
const pulumi = require("@pulumi/pulumi");

const config = new pulumi.Config();
const note = (line) => fs.appendFileSync(config.require("log"), `${line}\n`);
note("runs");
const farewell = new pulumi.ResourceHook("farewell", async () => note("goes"));
new pulumi.Stash("kept", { input: new pulumi.asset.RemoteAsset(config.require("address")) }, {
    hooks: { beforeDelete: [farewell] },
});
"#;

/// Answers every question with what it holds at that moment.
struct Server {
    content: Arc<Mutex<&'static str>>,
    address: String,
}

impl Server {
    fn start(content: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/file", listener.local_addr().unwrap());
        let content = Arc::new(Mutex::new(content));
        let shared = Arc::clone(&content);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    connection.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                let body = *shared.lock().unwrap();
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
                let answer = format!("{head} {}\r\n\r\n{body}", body.len());
                connection.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { content, address }
    }
}

struct ServedSite {
    site: Site,
    server: Server,
}

impl ServedSite {
    fn new(sdk: &std::path::Path) -> Self {
        let (site, server) = (Site::new(), Server::start("first"));
        site.write("program/index.js", PROGRAM);
        site.write(
            "program/Pulumi.yaml",
            "name: notes\nruntime: nodejs\nmain: index.js\n",
        );
        site.write("program/package.json", "{\"name\": \"notes\"}");
        symlink(sdk.join("node_modules"), site.path("program/node_modules")).unwrap();
        let log = site.path("log").display().to_string();
        site.config(&["set", "log", &log]).ok();
        site.config(&["set", "address", &server.address]).ok();
        Self { site, server }
    }

    /// What the program has said since the last time.
    fn said(&self) -> String {
        let file = self.site.path("log");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        text
    }

    fn hash(&self) -> Value {
        let exported = self.site.state(&["export"]).ok().json();
        let resources = exported["deployment"]["resources"].as_array().unwrap();
        let kept = resources
            .iter()
            .find(|resource| resource["type"] == "pulumi:index:Stash")
            .unwrap();
        kept["inputs"]["input"]["hash"].clone()
    }
}

#[test]
fn what_is_at_a_web_address_is_known_by_its_content() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = ServedSite::new(&sdk);
    place.site.up().ok();
    let first = place.hash();
    assert_eq!(
        first,
        "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
    );
    let same = place.site.up().ok();
    assert!(same.stdout.contains("2 unchanged"), "{}", same.stdout);
    *place.server.content.lock().unwrap() = "second";
    let changed = place.site.up().ok();
    assert!(changed.stdout.contains("1 updated"), "{}", changed.stdout);
    assert_ne!(place.hash(), first);
}

#[test]
fn destroy_and_refresh_run_the_program_when_asked_to() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let place = ServedSite::new(&sdk);
    place.site.up().ok();
    assert_eq!(place.said(), "runs\n");
    place.site.program(&["refresh", "--yes"]).ok();
    assert_eq!(place.said(), "");
    let refresh = ["refresh", "--yes", "--skip-preview", "--run-program"];
    place.site.program(&refresh).ok();
    assert_eq!(place.said(), "runs\n");
    let destroy = ["destroy", "--yes", "--skip-preview", "--run-program"];
    let destroyed = place.site.program(&destroy).ok();
    assert!(
        destroyed.stdout.contains("2 deleted"),
        "{}",
        destroyed.stdout
    );
    assert_eq!(place.said(), "runs\ngoes\n");
}
