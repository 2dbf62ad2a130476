//! More requests than the database can serve: some are told to come back, the others are answered.

use axum::http::{StatusCode, header};
use tokio::sync::watch;

use crate::support::installation;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_would_wait_too_long_is_told_to_come_back_and_the_others_are_answered() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let store = &nimbus.database.store;
    let (release, held) = watch::channel(false);
    let (took, mut taken) = tokio::sync::mpsc::channel(8);
    // Somebody uses all five connections.
    let mut holders = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (store, mut held, took) = (store.clone(), held.clone(), took.clone());
        let root = nimbus.root;
        holders.spawn(async move {
            let done: Result<(), nimbus_control_store::StoreError> = store
                .tenant_tx(root, async |_| {
                    took.send(()).await.unwrap();
                    held.wait_for(|free| *free).await.unwrap();
                    Ok(())
                })
                .await;
            done.unwrap();
        });
    }
    for _ in 0..5 {
        taken.recv().await.unwrap();
    }
    let requests = (0..400).map(|_| nimbus.get("/api/v1/auth/me", &owner));
    let mut waiting: futures::stream::FuturesUnordered<_> = requests.collect();
    let mut refused = Vec::new();
    // Those that are refused are refused at once, while the others wait.
    while refused.len() < 400 - 128 {
        let answer = futures::StreamExt::next(&mut waiting).await.unwrap();
        assert_eq!(
            answer.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            answer.text
        );
        assert_eq!(answer.code(), "UNAVAILABLE");
        let retry = answer.headers[header::RETRY_AFTER].to_str().unwrap();
        assert!((1..=30).contains(&retry.parse::<u32>().unwrap()), "{retry}");
        refused.push(answer);
    }
    release.send_replace(true);
    let answered: Vec<_> = futures::StreamExt::collect(waiting).await;
    assert_eq!(answered.len(), 128);
    for answer in &answered {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }
    while holders.join_next().await.is_some() {}
    nimbus.get("/api/v1/auth/me", &owner).await.ok();
    let text = store.metrics().text();
    let shed = format!(
        "nimbus_http_requests_shed_total{{reason=\"database\"}} {}",
        refused.len()
    );
    assert!(text.contains(&shed), "{shed}\n{text}");
}
