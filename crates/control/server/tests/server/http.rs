//! What is served before anybody signs in.

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{Running, folder, options, request};

#[tokio::test]
async fn health_is_at_the_root_and_under_the_api() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    for base in ["", "/api/v1"] {
        for path in ["/live", "/ready", "/health"] {
            let answer = server.get(&format!("{base}{path}")).await;
            assert_eq!(answer.status, 200, "{base}{path}: {}", answer.body);
            assert!(
                answer.head.contains("x-content-type-options: nosniff"),
                "{}",
                answer.head
            );
        }
    }
    assert_eq!(
        server.get("/health").await.json()["checks"]["database"],
        "up"
    );
    let home = server.get_page("/").await;
    assert!(
        home.status == 200
            && home.body.contains("Nimbus")
            && home.head.contains("content-security-policy")
    );
    server.stop().await;
}

#[tokio::test]
async fn errors_have_one_form_and_tell_nothing_of_the_inside() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    for (method, path, status, code) in [
        ("GET", "/nowhere", 404, "NOT_FOUND"),
        ("GET", "/api/v1/nowhere", 404, "NOT_FOUND"),
        ("DELETE", "/health", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/api/v1/auth/login", 405, "METHOD_NOT_ALLOWED"),
    ] {
        let answer = request(server.address, method, path).await;
        assert_eq!(answer.status, status, "{method} {path}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], code);
        assert!(error["details"].is_array() && error["message"].is_string());
        assert_eq!(error["trace_id"].as_str().unwrap().len(), 32);
        assert!(error["timestamp"].as_str().unwrap().ends_with('Z'));
    }
    server.stop().await;
}

#[tokio::test]
async fn the_first_run_is_open_until_its_link_was_used() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    assert_eq!(
        server.get("/api/v1/setup/status").await.json()["completed"],
        false
    );
    let link = server.setup_link.clone().unwrap();
    let token = link.split_once("token=").unwrap().1.to_owned();
    let root = server.store.tenant_find(&[]).await.unwrap();
    let complete = async |token: &str| {
        server
            .store
            .tenant_tx(root, async |tx| tx.setup_complete(token).await)
            .await
            .unwrap()
    };
    assert!(!complete("guess").await);
    assert!(complete(&token).await);
    assert!(!complete(&token).await, "a link works once");
    let status = server.get("/api/v1/setup/status").await.json();
    assert_eq!(status["completed"], true);
    assert!(status["completed_at"].is_string());
    server.stop().await;
    let again = Running::start(&options).await;
    assert_eq!(again.setup_link, None);
    again.stop().await;
}

/// Holds for the console, and for the plain page of a build without it.
#[tokio::test]
async fn the_page_of_the_first_run_loads_nothing_from_elsewhere() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let server = Running::start(&options(folder.path(), &binaries)).await;
    let page = server.get_page("/setup?token=x").await;
    assert_eq!(page.status, 200);
    assert!(page.head.contains("script-src 'self'"), "{}", page.head);
    let mut loaded = 0;
    for reference in page.body.split('"').filter(|part| part.contains('/')) {
        if reference.starts_with("/pages/") || reference.starts_with("/assets/") {
            let file = server.get(reference).await;
            assert_eq!(file.status, 200, "{reference}");
            loaded += 1;
        } else {
            assert!(!reference.starts_with("http"), "{reference}");
        }
    }
    assert!(loaded >= 2, "a script and a style: {}", page.body);
    server.stop().await;
}
