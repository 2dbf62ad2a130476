//! A workspace that somebody pushes is written to other people's disks: names that are something else there, or one with
//! another, are not kept.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{Answer, Installation, installation};

/// The content `x`, and SHA-256 of it.
const CONTENT: &str = "eA==";
const DIGEST: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

async fn put(nimbus: &Installation, owner: &str, tenant: &str, paths: &[&str]) -> Answer {
    let files: serde_json::Map<String, Value> = paths
        .iter()
        .map(|path| ((*path).to_owned(), json!(DIGEST)))
        .collect();
    let body = json!({"put": files, "remove": []});
    let path = format!("/api/v1/workspace?tenant={tenant}");
    nimbus.call("PUT", &path, Some(owner), Some(body)).await
}

#[tokio::test]
async fn names_that_are_another_place_on_some_disk_are_not_kept() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let contents = format!("/api/v1/workspace/contents?tenant={acme}");
    let given = json!({"contents": {DIGEST: CONTENT}});
    let stored = nimbus.post(&contents, &owner, given).await;
    assert!(stored.status.is_success(), "{}", stored.text);

    let refused: [&[&str]; 12] = [
        &["stacks/a/src/Index.ts", "stacks/a/src/index.ts"],
        &["stacks/a/src/Lib/x.ts", "stacks/a/src/lib/y.ts"],
        &["stacks/a/src/x", "stacks/a/src/x/y.ts"],
        &["stacks/a/src/con.ts"],
        &["stacks/a/src/NUL"],
        &["stacks/a/src/lpt1.d.ts"],
        &["stacks/a/src/x./y.ts"],
        &["stacks/a/.git/config"],
        &["stacks/a/.GIT/hooks/post-checkout"],
        &["stacks/a/.Nimbus/state.json"],
        &["stacks/a/Node_Modules/x/index.js"],
        &["stacks/a/src/a b.ts"],
    ];
    for paths in refused {
        let answer = put(&nimbus, &owner, &acme, paths).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{paths:?} {}",
            answer.text
        );
        assert!(
            answer.text.contains("NIM-0885"),
            "{paths:?} {}",
            answer.text
        );
    }
    // What is there already counts as well, in another push.
    put(&nimbus, &owner, &acme, &["stacks/a/src/index.ts"])
        .await
        .ok();
    for other in [
        "stacks/a/src/INDEX.ts",
        "stacks/A/src/more.ts",
        "stacks/a/src/index.ts/x",
    ] {
        let answer = put(&nimbus, &owner, &acme, &[other]).await;
        assert!(answer.text.contains("NIM-0885"), "{other} {}", answer.text);
    }
    put(&nimbus, &owner, &acme, &["stacks/a/src/more.ts"])
        .await
        .ok();
}

/// A `source` would be a folder of the server: of the operator, or of another tenant.
#[tokio::test]
async fn a_template_names_no_folder_of_the_server() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let contents = format!("/api/v1/workspace/contents?tenant={acme}");
    let workspace = format!("/api/v1/workspace?tenant={acme}");
    for source in [
        "/etc",
        "../../other/stacks/app/src",
        "stacks/b/src",
        "/proc/self/root",
    ] {
        let template = format!("name: a\ndescription: x\nsource: {source}\n");
        let digest = hex::encode(Sha256::digest(&template));
        let given = json!({"contents": {&digest: STANDARD.encode(&template)}});
        nimbus.post(&contents, &owner, given).await.ok();
        let body = json!({"put": {"tools/templates/config/a.yaml": digest}, "remove": []});
        let pushed = nimbus
            .call("PUT", &workspace, Some(&owner), Some(body))
            .await;
        let registered = json!({"name": "a", "template": template, "files": {}});
        let path = format!("/api/v1/stacks?tenant={acme}");
        let registered = nimbus.post(&path, &owner, registered).await;
        for answer in [pushed, registered] {
            assert_eq!(
                answer.status,
                StatusCode::BAD_REQUEST,
                "{source} {}",
                answer.text
            );
            assert!(
                answer.text.contains("below stacks/"),
                "{source} {}",
                answer.text
            );
        }
    }
}
