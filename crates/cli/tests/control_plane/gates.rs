//! Gates of a server decide as they do on local files: what is open stops, and who passes or skips one is recorded.

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::{ApiCaller, register};
use crate::support::{AdminOutput, EMAIL, Site, Up};

const ID: &str = "D1GATE";

/// A server with a deployment of one stack over dev and stage.
struct GatedServer {
    site: Site,
    server: Up,
    address: String,
}

impl GatedServer {
    fn run(&self, arguments: &[&str]) -> AdminOutput {
        let all = [&["--server", self.address.as_str()], arguments].concat();
        self.site.run_with(&all, "")
    }

    fn in_rehearsal(&self, verb: &str, environment: &str, more: &[&str]) -> AdminOutput {
        let usual = [
            verb,
            ID,
            "--environment",
            environment,
            "--rehearse",
            "--json",
        ];
        self.run(&[&usual, more].concat())
    }

    fn stage(&self, more: &[&str]) -> AdminOutput {
        self.in_rehearsal("deploy", "stage", &[&["--no-typecheck"], more].concat())
    }

    /// A deploy of stage is refused by the gate of dev; what helps.
    fn closed(&self, words: &str) -> String {
        let output = self.stage(&[]);
        assert_eq!(output.code, 6, "{}\n{}", output.stdout, output.stderr);
        let error = last(&output)["error"].clone();
        assert_eq!(error["code"], "NIM-0757", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
        error["help"].as_str().unwrap().to_owned()
    }
}

fn last(output: &AdminOutput) -> Value {
    let line = output.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{}\n{}", output.stdout, output.stderr))
}

fn succeeded(output: &AdminOutput) -> Value {
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    last(output)
}

#[test]
fn an_environment_of_a_server_waits_for_the_gate_of_the_one_before_it() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::of_programs(&postgres, &sdk);
    let server = site.up();
    site.set_up(&server);
    let address = server.report["address"].as_str().unwrap().to_owned();
    let caller = ApiCaller::new(&server);
    register(&caller, "first", "", 1);
    let template = "name: gated\ndescription: One stack\nenvironments:\n  \
                    dev: {enabled: true, region: eu-west-1, gate: {items: [deploy, load-tests]}}\n  \
                    stage: {enabled: true, region: eu-west-1}\nstacks: {first: }\n";
    caller.post("/templates", &json!({"content": template}));
    let wanted = json!({"id": ID, "organization": "o", "project": "p", "template": "gated"});
    caller.post("/deployments", &wanted);
    let gated = GatedServer {
        site,
        server,
        address,
    };

    let help = gated.closed("it was never deployed");
    assert!(help.contains("deploy dev first"), "{help}");
    let runs = caller.get(&format!("/runs?deployment={ID}"));
    let refused = &runs["items"][0];
    assert!(
        refused["began_at"].is_null(),
        "nothing was begun: {refused}"
    );

    // Whoever goes around it says why, and that is recorded with the run.
    succeeded(&gated.stage(&["--skip-gate", "it burns"]));
    let runs = caller.get(&format!("/runs?deployment={ID}"));
    let skipped = &runs["items"][0];
    assert_eq!(skipped["skip_gate"], "it burns", "{skipped}");
    // What is open stops, until somebody has recorded it with the command that was named.
    succeeded(&gated.in_rehearsal("deploy", "dev", &["--no-typecheck"]));
    let help = gated.closed("open in the gate of dev: load-tests");
    let named = format!(
        "`nimbus --server {} gate {ID} --environment dev --rehearse --pass load-tests --note",
        gated.address
    );
    assert!(help.contains(&named), "{help}");
    let shown = last(&gated.in_rehearsal("gate", "dev", &[]));
    assert_eq!(shown["gates"][0]["items"][0]["done"], true, "{shown}");
    assert_eq!(shown["gates"][0]["items"][1]["done"], false, "{shown}");
    let passed = gated.in_rehearsal("gate", "dev", &["--pass", "load-tests", "--note", "seen"]);
    let passed = succeeded(&passed)["gates"][0]["items"][1].clone();
    assert_eq!(passed["done"], true, "{passed}");
    let note = passed["note"].as_str().unwrap();
    assert!(note.contains(EMAIL) && note.ends_with(": seen"), "{note}");
    succeeded(&gated.stage(&[]));

    // A signature is for what was there when it was given, and an environment that is off is no way around its gate.
    succeeded(&gated.in_rehearsal("destroy", "dev", &[]));
    gated.closed("it was destroyed");
    let off = gated.run(&["disable-environment", ID, "dev"]);
    assert_eq!(off.code, 0, "{}", off.stderr);
    gated.closed("it is not enabled");
    assert_eq!(gated.server.stop(), 0);
}
