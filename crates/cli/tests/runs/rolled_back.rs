//! What commands say of an environment that was returned to an earlier version, and who has to say
//! yes to a run.

use serde_json::Value;

use crate::support::{DIAMOND, ID, Site, node_sdk};

fn stack(site: &Site, name: &str) -> Value {
    let status = site.run(&["status", ID, "--rehearse", "--json"]).ok();
    let status = status.summary();
    let stacks = status["environments"][0]["stacks"].as_array().unwrap();
    stacks
        .iter()
        .find(|one| one["name"] == name)
        .unwrap()
        .clone()
}

fn why(site: &Site, name: &str) -> String {
    site.rehearse("why", &[name]).ok().stdout
}

const AGAIN: &str = "it was rolled back; applies again: config a:size changed";

#[test]
fn a_rolled_back_environment_says_so_and_names_what_a_deploy_would_apply_again() {
    let test = "a_rolled_back_environment_says_so_and_names_what_a_deploy_would_apply_again";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    site.rehearse("deploy", &[]).ok();
    site.set_size("a", "2");
    site.rehearse("deploy", &[]).ok();
    site.rehearse("rollback", &[]).ok();

    let a = stack(&site, "a");
    assert_eq!(
        (&a["state"], &a["resources"]),
        (&"rolled_back".into(), &3.into())
    );
    assert_eq!(stack(&site, "b")["state"], "deployed");
    assert!(why(&site, "a").contains(AGAIN), "{}", why(&site, "a"));
    let again = site.rehearse("deploy", &[]).ok();
    assert!(again.stderr.contains(AGAIN), "{}", again.stderr);
    assert_eq!(stack(&site, "a")["state"], "deployed");

    // With the change taken out of the manifest there is nothing to apply again.
    site.rehearse("rollback", &[]).ok();
    site.set_size("a", "1");
    let skipped = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(skipped.status("a"), "skipped");
}

#[test]
fn a_run_that_undoes_itself_leaves_units_that_are_what_they_were() {
    let Some(sdk) = node_sdk("a_run_that_undoes_itself_leaves_units_that_are_what_they_were")
    else {
        return;
    };
    let site = Site::new(&sdk, DIAMOND);
    site.rehearse("deploy", &[]).ok();
    site.set_size("a", "2");
    site.set_size("d", "2");
    let orders = site.orders("orders: [{on: update, name: d-second, do: fail, message: no}]\n");
    let undone = ["--json", "--orders", &orders, "--on-failure", "rollback"];
    let ran = site.rehearse("deploy", &undone).with(1);
    assert_eq!(ran.summary()["result"], "rolled_back");

    for name in ["a", "d"] {
        let one = stack(&site, name);
        assert_eq!(one["state"], "rolled_back", "{one}");
        assert_eq!(one["resources"], 3, "{one}");
    }
    assert!(why(&site, "a").contains(AGAIN), "{}", why(&site, "a"));
    // A unit that did not exist before is not there again, and was never deployed.
    let fresh = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let orders = fresh.orders("orders: [{on: create, name: b-second, do: fail, message: no}]\n");
    let ran = fresh.rehearse("deploy", &["--json", "--orders", &orders]);
    assert_eq!(ran.with(1).summary()["result"], "rolled_back");
    assert_eq!(stack(&fresh, "a")["state"], "not_deployed");
    assert!(why(&fresh, "a").contains("no run before left it here"));
}

/// The next step that a failed run names works: what the run left goes, what it changed returns.
#[test]
fn a_rollback_after_a_failed_run_undoes_that_run() {
    let Some(sdk) = node_sdk("a_rollback_after_a_failed_run_undoes_that_run") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    for name in ["a", "b"] {
        site.rehearse("deploy-stack", &[name]).ok();
    }
    let before = site.resources();
    for name in ["a", "b"] {
        site.set_size(name, "2");
    }
    let orders = site.orders("orders: [{on: create, name: c-second, do: fail, message: no}]\n");
    let held = ["--json", "--orders", &orders, "--on-failure", "hold"];
    let failed = site.rehearse("deploy", &held).with(1);
    let next = failed.summary()["next"].as_str().unwrap().to_owned();
    assert!(next.contains("nimbus rollback"), "{next}");
    assert_ne!(site.resources(), before, "it left something");

    site.rehearse("rollback", &[]).ok();
    assert_eq!(site.resources(), before);
    for name in ["a", "b"] {
        assert_eq!(stack(&site, name)["state"], "rolled_back");
    }
    assert_eq!(stack(&site, "c")["state"], "not_deployed");

    // Also where there is no version yet.
    let fresh = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let orders = fresh.orders("orders: [{on: create, name: b-second, do: fail, message: no}]\n");
    let held = ["--orders", &orders, "--on-failure", "hold"];
    fresh.rehearse("deploy", &held).with(1);
    fresh.rehearse("rollback", &[]).ok();
    for name in ["a", "b"] {
        assert_eq!(stack(&fresh, name)["state"], "not_deployed");
    }
    assert_eq!(fresh.resources(), [""; 0]);
    let nothing = fresh.rehearse("rollback", &["--json"]).with(3);
    assert_eq!(nothing.summary()["error"]["code"], "NIM-0756");
}

/// A version has what a failed run made and the next one skipped. Where a rollback makes something anew, what
/// names the earlier one is told, and the next deploy runs it.
#[test]
fn a_rollback_leads_to_what_there_was_and_says_what_no_longer_holds() {
    let Some(sdk) = node_sdk("a_rollback_leads_to_what_there_was_and_says_what_no_longer_holds")
    else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    // Another network is another object, with another id.
    site.write(
        "cloud/stacks/a/src/index.js",
        "const pulumi = require('@pulumi/pulumi');\n\
         class Thing extends pulumi.CustomResource {\n\
         \x20 constructor(name, args) { super('demo:index:Thing', name, args); }\n\
         }\n\
         const vpcId = `v${new pulumi.Config('a').require('size')}`;\n\
         const net = new Thing('net', { vpcId });\n\
         const sub = new Thing('sub', { net: net.id });\n\
         exports.first = net.id;\nexports.ids = [net.id, sub.id];\n",
    );
    let has = |vpc: &str| {
        let resources = site.resources();
        let found = resources
            .iter()
            .any(|one| one.contains(&format!("\"{vpc}\"")));
        assert!(found, "{vpc}: {resources:?}");
    };
    site.rehearse("deploy", &[]).ok();
    site.set_size("a", "2");
    let orders = site.orders("orders: [{on: update, name: b-first, do: fail, message: no}]\n");
    let held = ["--orders", &orders, "--on-failure", "hold"];
    site.rehearse("deploy", &held).with(1);
    let mended = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(mended.status("a"), "skipped");
    site.set_size("a", "3");
    site.rehearse("deploy", &[]).ok();
    site.rehearse("rollback", &["--to-version", "2"]).ok();
    has("v2");

    // The simulated cloud gives an id again once it is free, so only every other change has a new one.
    site.set_size("a", "4");
    site.rehearse("deploy", &[]).ok();
    let back = site
        .rehearse("rollback", &["--to-version", "3", "--json"])
        .with(1);
    has("v3");
    let summary = back.summary();
    assert_eq!(summary["result"], "needs_attention", "{summary}");
    let told = summary["attention"].to_string();
    let expected = "a: net was made anew, and what it was is still in output first, output ids, sub.net; b built on it";
    assert!(told.contains(expected), "{told}");
    assert!(
        summary["next"].to_string().contains("nimbus deploy"),
        "{summary}"
    );

    site.set_size("a", "3");
    for name in ["a", "b"] {
        assert!(
            why(&site, name).contains("it has drifted"),
            "{}",
            why(&site, name)
        );
    }
    let again = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(
        (again.status("a"), again.status("b")),
        ("succeeded".into(), "succeeded".into())
    );
    let skipped = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(
        (skipped.status("a"), skipped.status("b")),
        ("skipped".into(), "skipped".into())
    );
}

#[test]
fn without_a_terminal_a_real_deploy_needs_a_yes() {
    let Some(sdk) = node_sdk("without_a_terminal_a_real_deploy_needs_a_yes") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    // A component alone, so that no provider is needed.
    site.write(
        "cloud/stacks/a/src/index.js",
        "const pulumi = require('@pulumi/pulumi');\n\
         class Box extends pulumi.ComponentResource {\n\
         \x20 constructor(name) { super('demo:index:Box', name, {}, {}); this.registerOutputs({}); }\n\
         }\n\
         new Box('a');\nexports.first = 'x';\nexports.ids = [];\n",
    );
    let deploy = ["deploy", ID, "--environment", "dev", "--json"];
    let asked = site.run(&deploy).with(6);
    assert_eq!(asked.summary()["error"]["code"], "NIM-0010");
    assert!(asked.stdout.contains("--yes"), "{}", asked.stdout);
    assert!(
        !site.deployment(".nimbus/runs").exists(),
        "nothing was begun"
    );
    let plain = site.run(&deploy[..4]).with(6);
    assert!(plain.stderr.contains("--yes"), "{}", plain.stderr);

    site.run(&[&deploy[..], &["--yes"]].concat()).ok();
    // Nothing to do is nothing to ask about.
    site.run(&deploy).ok();
}
