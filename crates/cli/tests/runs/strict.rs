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

/// Settings are looked for where a command works, and that may be the stranger's workspace; and what a
/// recorded run says of its sandbox lies there too.
#[test]
fn a_workspace_does_not_bring_the_operators_settings() {
    let test = "a_workspace_does_not_bring_the_operators_settings";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let text = "engine:\n  sandbox: off\n  sandbox_env: AWS_SECRET_ACCESS_KEY\n";
    for place in ["config/nimbus.yaml", "cloud/config/nimbus.yaml"] {
        site.write(place, text);
        let folder = site.path(place.trim_end_matches("config/nimbus.yaml"));
        let folder = folder.display().to_string();
        for verb in ["deploy", "preview"] {
            let words = ["-C", &folder, verb, ID, "-e", "dev", "--rehearse"];
            let mut command = site.command(&words);
            command.env("NIMBUS_ENGINE_SANDBOX", "strict");
            let ran = command.output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(!ran.status.success(), "{verb}: {said}");
            assert!(said.contains("NIM-0412"), "{verb}: {said}");
            assert!(said.contains("sandbox_env"), "{verb}: {said}");
        }
        fs::remove_file(site.path(place)).unwrap();
    }
}

/// Nimbus reads and writes in a workspace under names that can be guessed. Whoever brings the workspace brings
/// its links.
#[test]
fn nothing_is_read_or_written_through_links_of_a_workspace() {
    let test = "nothing_is_read_or_written_through_links_of_a_workspace";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let refused = |site: &Site, what: &str, put: &dyn Fn(&Path)| {
        site.write("home/.bashrc", "own\n");
        site.write("home/credentials", "[default]\naws_secret: hunter2: [\n");
        put(&site.path("home"));
        for verb in ["deploy", "preview", "validate", "status", "list"] {
            let mut words = vec![verb];
            words.extend((verb != "list").then_some(ID));
            if matches!(verb, "deploy" | "preview") {
                words.extend(["-e", "dev", "--rehearse"]);
            }
            let mut command = site.command(&words);
            command.env("NIMBUS_ENGINE_SANDBOX", "strict");
            command.env("NIMBUS_ENGINE_SANDBOX_ROOTS", &sdk);
            let ran = command.output().unwrap();
            let said = [ran.stdout, ran.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(!ran.status.success(), "{what}, {verb}: {said}");
            assert!(said.contains("NIM-0407"), "{what}, {verb}: {said}");
            assert!(!said.contains("hunter2"), "{what}, {verb}: {said}");
        }
        let home = fs::read_dir(site.path("home")).unwrap();
        assert_eq!(home.count(), 2, "{what}");
        let bashrc = fs::read_to_string(site.path("home/.bashrc")).unwrap();
        assert_eq!(bashrc, "own\n", "{what}");
    };
    let replace = |link: &Path, to: &Path| {
        if link.is_dir() {
            fs::remove_dir_all(link).unwrap();
        } else if link.exists() {
            fs::remove_file(link).unwrap();
        }
        symlink(to, link).unwrap();
    };
    let links = [
        ("logs", ""),
        ("logs/a-dev-20260102-030405.log", ".bashrc"),
        (".nimbus", ""),
        ("config", ""),
        ("config/a.dev.yaml", "credentials"),
        ("Deployment_Manifest.yaml", "credentials"),
    ];
    for (name, to) in links {
        let site = Site::new(&sdk, &[("a", &[])]);
        refused(&site, name, &|home| {
            replace(&site.deployment(name), &home.join(to));
        });
    }
    let places = [
        "cloud/.nimbus",
        "cloud/stacks/a",
        "cloud/stacks/a/src",
        "cloud/tools/templates/config/a.yaml",
    ];
    for place in places {
        let site = Site::new(&sdk, &[("a", &[])]);
        refused(&site, place, &|home| replace(&site.path(place), home));
    }
}

/// A folder that is not there hides from the kernel where the rest of a path leads.
#[test]
fn a_source_does_not_lead_out_of_a_workspace_by_whatever_way() {
    let test = "a_source_does_not_lead_out_of_a_workspace_by_whatever_way";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    fs::rename(site.path("cloud/stacks/a"), site.path("victim")).unwrap();
    let template = "cloud/tools/templates/config/a.yaml";
    let text = fs::read_to_string(site.path(template)).unwrap();
    let ways = [
        "../victim/src",
        "deploy/x/../../../victim/src",
        "x/y/../../../victim/src",
        "tools/templates/config/a.yaml/../../../../../victim/src",
    ];
    for way in ways {
        site.write(template, &format!("{text}source: {way}\n"));
        for verb in ["validate", "preview", "deploy"] {
            let mut words = vec![verb, ID];
            if verb != "validate" {
                words.extend(["-e", "dev", "--rehearse"]);
            }
            let mut command = site.command(&words);
            command.env("NIMBUS_ENGINE_SANDBOX", "strict");
            command.env("NIMBUS_ENGINE_SANDBOX_ROOTS", &sdk);
            let ran = command.output().unwrap();
            let said = [ran.stdout, ran.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(!ran.status.success(), "{way}, {verb}: {said}");
            assert!(said.contains("NIM-0407"), "{way}, {verb}: {said}");
        }
    }
    // A program elsewhere in the workspace is its own.
    fs::rename(site.path("victim"), site.path("cloud/programs")).unwrap();
    let packages = site.path("cloud/programs/src/node_modules");
    symlink(sdk.join("node_modules"), packages).unwrap();
    let own = "source: tools/../programs/src\n";
    site.write(template, &format!("{text}{own}"));
    deploy(&site, &sdk, "strict", &[]).ok();
}

/// A workspace that every command would refuse is not made.
#[test]
fn a_project_elsewhere_is_adopted_with_a_root_of_the_operator() {
    let test = "a_project_elsewhere_is_adopted_with_a_root_of_the_operator";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.write("legacy/Pulumi.yaml", "name: legacy\nruntime: nodejs\n");
    site.write("legacy/Pulumi.dev.yaml", "config: {}\n");
    site.write("legacy/index.js", "exports.first = 1;\n");
    let strict = |words: &[&str], roots: &str| {
        let mut command = site.command(words);
        command.env("NIMBUS_ENGINE_SANDBOX", "strict");
        command.env("NIMBUS_ENGINE_SANDBOX_ROOTS", roots);
        let ran = command.output().unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        (
            ran.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    let adopt = ["adopt", "legacy", "--id", "D1ACME", "--no-state"];
    let roots = sdk.display().to_string();
    let (adopted, said) = strict(&adopt, &roots);
    assert!(!adopted, "{said}");
    assert!(said.contains("NIM-0407"), "{said}");
    assert!(said.contains("engine.sandbox_roots"), "{said}");
    let template = site.path("cloud/tools/templates/config/legacy.yaml");
    assert!(!template.exists());
    let (listed, said) = strict(&["list"], &roots);
    assert!(listed, "{said}");

    let roots = format!("{roots}:{}", site.path("legacy").display());
    for words in [&adopt[..], &["list"]] {
        let (done, said) = strict(words, &roots);
        assert!(done, "{words:?}: {said}");
    }
    assert!(template.exists());
}

/// In a backend that others use too, the manifest does not say whose stacks are read and overwritten.
#[test]
fn a_manifest_does_not_say_whose_stacks_it_works_on() {
    let test = "a_manifest_does_not_say_whose_stacks_it_works_on";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let program = |more: &str| {
        format!(
            "const pulumi = require('@pulumi/pulumi');\n\
             exports.first = 'secret of somebody else';\nexports.ids = [];\n{more}"
        )
    };
    let victim = Site::new(&sdk, &[("a", &[])]);
    fs::create_dir(victim.path("shared")).unwrap();
    let shared = format!("file://{}", victim.path("shared").display());
    let run = |site: &Site, verb: &str, projects: &str| {
        let own = site.path("cloud/stacks/a/src/node_modules");
        let _ = symlink(sdk.join("node_modules"), own);
        let mut words = vec![verb, ID, "-e", "dev", "--backend", &shared];
        words.extend((verb != "preview").then_some("--yes"));
        let mut command = site.command(&words);
        command
            .env("NIMBUS_ENGINE_SANDBOX", "strict")
            .env("NIMBUS_ENGINE_SANDBOX_ROOTS", &sdk)
            .env("NIMBUS_ENGINE_SANDBOX_PROJECTS", projects);
        let ran = command.output().unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (ran.status.success(), said)
    };
    victim.write("cloud/stacks/a/src/index.js", &program(""));
    let (deployed, said) = run(&victim, "deploy", "p");
    assert!(deployed, "{said}");
    let state = victim.path(&format!("shared/.pulumi/stacks/p/{ID}-a-dev.json"));
    let before = fs::read(&state).unwrap();

    // The same project, in a fresh workspace that has no records.
    let hostile = Site::new(&sdk, &[("a", &[])]);
    let reads = format!(
        "const other = new pulumi.StackReference('organization/p/{ID}-a-dev');\n\
         exports.stolen = other.getOutput('first');\n"
    );
    hostile.write("cloud/stacks/a/src/index.js", &program(&reads));
    for verb in ["preview", "deploy", "refresh", "destroy"] {
        for projects in ["none", "own"] {
            let (ran, said) = run(&hostile, verb, projects);
            assert!(!ran, "{verb}: {said}");
            assert!(said.contains("NIM-0413"), "{verb}: {said}");
            assert!(said.contains("engine.sandbox_projects"), "{verb}: {said}");
            assert!(!said.contains("secret of somebody"), "{verb}: {said}");
        }
    }
    // A project of its own, and one stack of it under the victim's names.
    manifest(&hostile, |text| {
        let own = text.replacen("project: p\n", "project: own\n", 1);
        let name = format!("\n    a:\n      pulumi: {{project: p, stacks: {{dev: {ID}-a-dev}}}}\n");
        let changed = own.replacen("\n    a:\n", &name, 1);
        assert_ne!(changed, own, "{text}");
        changed
    });
    for verb in ["preview", "deploy", "refresh", "destroy"] {
        let (ran, said) = run(&hostile, verb, "own");
        assert!(!ran, "{verb}: {said}");
        assert!(said.contains("NIM-0413"), "{verb}: {said}");
    }
    assert_eq!(fs::read(&state).unwrap(), before);
}

/// Services are asked for keys with the operator's credentials, so the operator says which.
#[test]
fn no_file_of_a_workspace_names_a_service_for_keys() {
    let site = Site::without_sdk(&[("a", &[])]);
    let mark = site.path("mark");
    site.write(
        "aws-config",
        &format!(
            "[profile evil]\ncredential_process = sh -c \"touch {}; exit 1\"\n",
            mark.display()
        ),
    );
    let url = "awskms://alias/x?region=us-east-1&profile=evil";
    let secrets = format!(
        "provider: {{type: cloud, state: {{url: \"{url}\", encryptedkey: AAAA}}}}\nsecrets: {{}}\n"
    );
    fs::write(site.deployment("secrets.yaml"), secrets).unwrap();
    let set = |variables: &[(&str, &str)]| {
        let mut command = site.command(&["secret", "set", ID, "mine", "--from-env", "VALUE"]);
        let command = command
            .env("AWS_CONFIG_FILE", site.path("aws-config"))
            .env("VALUE", "v")
            .envs(variables.iter().copied());
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let strict = ("NIMBUS_ENGINE_SANDBOX", "strict");
    let said = set(&[strict]);
    assert!(said.contains("NIM-0410") && said.contains(url), "{said}");
    assert!(!mark.exists(), "somebody was asked: {said}");
    // The operator's word is the whole address.
    let other = (
        "NIMBUS_ENGINE_SANDBOX_SECRETS",
        "awskms://alias/x?region=us-east-1",
    );
    assert!(set(&[strict, other]).contains("NIM-0410"));
    assert!(!mark.exists());
    let said = set(&[strict, ("NIMBUS_ENGINE_SANDBOX_SECRETS", url)]);
    assert!(!said.contains("NIM-0410") && mark.exists(), "{said}");
}
