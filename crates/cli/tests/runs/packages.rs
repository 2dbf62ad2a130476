//! Packages that a run installs itself are there for everything that the run does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{DeployOutput, ID, Site, node_sdk};

/// A lock file and nothing installed, and a program that needs what the declarations of a package say.
fn uninstalled(sdk: &Path) -> Site {
    let site = Site::new(sdk, &[("a", &[])]);
    fs::remove_file(site.path("cloud/stacks/node_modules")).unwrap();
    let packages = r#""node_modules/@pulumi/demo": {}, "node_modules/@pulumi/pulumi": {}"#;
    site.write(
        "cloud/stacks/package-lock.json",
        &format!(r#"{{"name": "s", "lockfileVersion": 3, "packages": {{"": {{}}, {packages}}}}}"#),
    );
    site.write("cloud/stacks/package.json", "{\"name\": \"s\"}\n");
    site.write(
        "cloud/stacks/a/src/index.js",
        "const pulumi = require('@pulumi/pulumi');\n\
         class Thing extends pulumi.CustomResource {\n\
         \x20 constructor(name, args) { super('demo:index:Thing', name, { ...args, label: undefined }); }\n\
         }\n\
         const first = new Thing('a-first', { size: '1' });\n\
         // A text by its declaration; undefined if nobody has read that.\n\
         exports.first = first.label.apply(label => label.toUpperCase());\n\
         exports.ids = [];\n",
    );
    site
}

/// Stands for npm, which would fetch the same: two packages from this machine.
fn npm(site: &Site, sdk: &Path, script: &str) -> String {
    let pulumi = sdk.join("node_modules/@pulumi/pulumi");
    let script = format!(
        "#!/bin/sh\nmkdir -p node_modules/@pulumi/demo\nln -s {} node_modules/@pulumi/pulumi\n{script}",
        pulumi.display()
    );
    site.write("tools/npm", &script);
    let file = site.path("tools/npm");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", site.path("tools").display())
}

fn deploy(site: &Site, path: &str) -> DeployOutput {
    let mut command = site.command(&["deploy", ID, "--environment", "dev", "--rehearse"]);
    let output = command.env("PATH", path).output().unwrap();
    DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_rehearsal_knows_the_types_of_packages_that_it_installed_itself() {
    let test = "a_rehearsal_knows_the_types_of_packages_that_it_installed_itself";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = uninstalled(&sdk);
    // npm says that all is well, and a package is missing: nothing is put in place, nothing is made.
    let half = npm(&site, &sdk, "");
    let failed = deploy(&site, &half).with(1);
    let missing = "node_modules/@pulumi/demo is not there";
    assert!(failed.stdout.contains(missing), "{}", failed.stdout);
    assert!(!site.path("cloud/stacks/node_modules").exists());
    assert_eq!(site.resources(), [""; 0]);

    let whole = npm(
        &site,
        &sdk,
        "cd node_modules/@pulumi/demo\necho '{\"name\": \"@pulumi/demo\"}' > package.json\n\
         echo 'export declare class Thing extends pulumi.CustomResource {\n\
         readonly label: pulumi.Output<string>;\n}' > thing.d.ts\n",
    );
    let told = deploy(&site, &whole).ok().stderr;
    for words in ["installing packages in", "all 2 of the lock file are there"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let again = deploy(&site, &whole).ok();
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
    assert!(!again.stderr.contains("installing"), "{}", again.stderr);
}
