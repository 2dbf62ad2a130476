//! A stranger's manifest and `engine.sandbox: strict`: its checks run in the sandbox, and its placeholders
//! get what the operator named.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::network::isolates;
use crate::support::{DeployOutput, ID, Site, node_sdk};

fn deploy(site: &Site, sdk: &Path, sandbox: &str, more: &[(&str, &str)]) -> DeployOutput {
    let words = ["deploy", ID, "--environment", "dev", "--rehearse"];
    // A stranger's program has its packages in its own folder, or in a root of the operator.
    let own = site.path("cloud/stacks/a/src/node_modules");
    let _ = symlink(sdk.join("node_modules"), own);
    let mut command = site.command(&words);
    command
        .env("NIMBUS_ENGINE_SANDBOX", sandbox)
        .env("NIMBUS_ENGINE_SANDBOX_ROOTS", sdk)
        .env("NIMBUS_JWT_SECRET", "secret of the server")
        .env("PULUMI_CONFIG_PASSPHRASE_FILE", "/secret-of-states")
        .env("AWS_SECRET_ACCESS_KEY", "credential of the operator")
        .envs(more.iter().copied());
    let output = command.output().unwrap();
    DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn manifest(site: &Site, change: impl FnOnce(String) -> String) {
    let path = site.deployment("Deployment_Manifest.yaml");
    let text = change(fs::read_to_string(&path).unwrap());
    fs::write(&path, text).unwrap();
}

#[test]
fn a_check_of_a_stranger_reaches_nothing() {
    let test = "a_check_of_a_stranger_reaches_nothing";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.write("outside/secret", "secret of somebody else");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!(
        "(env; cat {}; echo x > {}; cat /proc/$PPID/environ; \
         (exec 3<>/dev/tcp/127.0.0.1/{}) && echo REACHED; ls $HOME/..; cat $NIMBUS_OUTPUTS) \
         2>&1 | sed 's/^/tried: /'; true",
        site.path("outside/secret").display(),
        site.path("mark").display(),
        listener.local_addr().unwrap().port(),
    );
    site.write("cloud/check.sh", &script);
    manifest(&site, |text| {
        let check = script.replace('\'', "''");
        text.replacen(
            "\n    dev:",
            &format!("\n    dev:\n      checks: {{evil: {{command: '{check}', rehearse: true}}}}"),
            1,
        )
    });
    let ran = deploy(&site, &sdk, "strict", &[]);
    let said = format!("{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 0, "{said}");
    assert!(said.contains("NIMBUS_ENVIRONMENT=dev"), "it ran: {said}");
    assert!(said.contains("first"), "it sees the outputs: {said}");
    for secret in [
        "secret of somebody else",
        "secret of the server",
        "secret-of-states",
        "credential of the operator",
        "correct horse",
        "REACHED",
    ] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    assert!(!site.path("mark").exists());
    // Without a sandbox the manifest is one's own and its checks can do what their user can, but
    // still have nothing that opens states.
    let ran = deploy(&site, &sdk, "off", &[]);
    let said = format!("{}\n{}", ran.stdout, ran.stderr);
    assert!(site.path("mark").exists(), "{said}");
    assert!(said.contains("secret of somebody else"), "{said}");
}

#[test]
fn a_placeholder_of_a_stranger_reads_what_the_operator_named() {
    let test = "a_placeholder_of_a_stranger_reads_what_the_operator_named";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    manifest(&site, |text| {
        let changed = text.replacen(
            "size: \"1\"",
            "size: \"{{RUNTIME:env:NIMBUS_JWT_SECRET}}\"",
            1,
        );
        let changed = changed.replacen("size: '1'", "size: '{{RUNTIME:env:NIMBUS_JWT_SECRET}}'", 1);
        assert_ne!(changed, text);
        changed
    });
    let ran = deploy(&site, &sdk, "strict", &[]);
    let said = format!("{}\n{}", ran.stdout, ran.stderr);
    assert_ne!(ran.code, 0, "{said}");
    assert!(said.contains("engine.sandbox_env"), "{said}");
    assert!(!said.contains("secret of the server"), "{said}");
    let named = [("NIMBUS_ENGINE_SANDBOX_ENV", "NIMBUS_JWT_SECRET")];
    deploy(&site, &sdk, "strict", &named).ok();
    deploy(&site, &sdk, "off", &[]).ok();
}

/// What a program consists of is found by reading its sources, and a stranger writes those.
#[test]
fn a_source_of_a_stranger_has_nothing_else_read() {
    let test = "a_source_of_a_stranger_has_nothing_else_read";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    // Whoever reads it notices.
    site.write("outside/holes", "");
    let holes = fs::File::create(site.path("outside/holes")).unwrap();
    holes.set_len(1 << 42).unwrap();
    let source = site.path("cloud/stacks/a/src/index.js");
    let text = fs::read_to_string(&source).unwrap();
    let names = "// \"../../../../outside\" \"../../../../../../../../../../proc\"\n";
    fs::write(&source, format!("{names}{text}")).unwrap();
    deploy(&site, &sdk, "strict", &[]).ok();
    // A link to it is not overlooked.
    symlink(
        site.path("outside/holes"),
        site.path("cloud/stacks/a/src/link"),
    )
    .unwrap();
    let ran = deploy(&site, &sdk, "strict", &[]);
    let said = format!("{}\n{}", ran.stdout, ran.stderr);
    assert_ne!(ran.code, 0, "{said}");
    assert!(said.contains("NIM-0407"), "{said}");
}
