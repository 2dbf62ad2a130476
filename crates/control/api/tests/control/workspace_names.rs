//! A workspace that somebody pushes is written to other people's disks: names that are something else there, or one with
//! another, are not kept.

use axum::http::StatusCode;
use serde_json::{Value, json};

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
