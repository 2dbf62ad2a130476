//! What a server tells somebody who comes from another one: nothing that they have, nothing left out.

use nimbus_control_app::{Call, LiveCursor, LiveFeed, LivePart, RequestContext};
use nimbus_control_events::{NewEvent, kind};
use nimbus_control_store::StoreError;
use nimbus_core::{TenantId, TraceId};
use serde_json::json;
use uuid::Uuid;

use crate::live::PATIENCE;
use crate::support::{Installation, installation};

async fn call_of(nimbus: &Installation, token: &str) -> Call {
    let context = RequestContext {
        ip: None,
        user_agent: None,
        location: None,
        trace_id: TraceId::random(),
        now: jiff::Timestamp::now(),
    };
    let who = nimbus.app.authenticate(&context, token).await.unwrap();
    Call { who, context }
}

/// Publishes an event and has it in the log, of which no server is told.
async fn log(nimbus: &Installation, tenant: TenantId, number: i64) {
    let store = &nimbus.database.store;
    let data = json!({"number": number});
    let events = [NewEvent::new(kind::TENANT_UPDATED, tenant, data)];
    let done: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| tx.live_publish(&events).await)
        .await;
    done.unwrap();
    let relay = Uuid::new_v4();
    store.live_hold(relay, 60.0).await.unwrap();
    while !store.live_relay(relay, 500).await.unwrap().is_empty() {}
    store.live_let_go(relay).await.unwrap();
}

/// Everything that there is now: its numbers, and the gaps between.
async fn read(feed: &mut LiveFeed) -> (Vec<i64>, Vec<(LiveCursor, LiveCursor)>) {
    let (mut numbers, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match feed.read().await.unwrap() {
            LivePart::Gap { from, to } => gaps.push((from, to)),
            LivePart::Events { events, more } => {
                numbers.extend(events.iter().filter_map(|one| one.data["number"].as_i64()));
                if !more {
                    return (numbers, gaps);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_is_behind_tells_nobody_what_they_have_from_another() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme: TenantId = nimbus.tenant(&owner, "acme").await.parse().unwrap();
    let second = nimbus.another_server("second").await;
    let call = call_of(&nimbus, &owner).await;
    log(&nimbus, acme, 0).await;
    // Somebody watches at the second server, which has read the log as far as it is.
    let app = &second.app;
    let mut there = app.live_feed(&call, acme, None).await.unwrap();
    assert_eq!(read(&mut there).await, (Vec::new(), Vec::new()));
    // The first one tells of more before the second hears of it, and its reader changes servers.
    log(&nimbus, acme, 1).await;
    let here = nimbus.app.live_feed(&call, acme, None).await.unwrap();
    let known = here.cursor();
    let mut moved = app.live_feed(&call, acme, Some(known)).await.unwrap();
    assert_eq!(read(&mut moved).await, (Vec::new(), Vec::new()));
    assert_eq!(moved.cursor(), known);
    // What comes then comes once, to both.
    log(&nimbus, acme, 2).await;
    let _relay = second.relay();
    for (feed, expected) in [(&mut there, vec![1, 2]), (&mut moved, vec![2])] {
        let mut heard = Vec::new();
        while heard.len() < expected.len() {
            let (numbers, gaps) = read(feed).await;
            assert!(gaps.is_empty(), "{gaps:?}");
            heard.extend(numbers);
            if heard.len() < expected.len() {
                tokio::time::timeout(PATIENCE, feed.changed())
                    .await
                    .unwrap();
            }
        }
        assert_eq!(heard, expected);
    }
}

#[tokio::test]
async fn a_place_that_no_log_has_is_a_gap_and_goes_on_at_the_end() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme: TenantId = nimbus.tenant(&owner, "acme").await.parse().unwrap();
    let call = call_of(&nimbus, &owner).await;
    log(&nimbus, acme, 0).await;
    let app = &nimbus.app;
    let end = app.live_feed(&call, acme, None).await.unwrap().cursor();
    let ahead = LiveCursor {
        seq: end.seq + 5,
        ..end
    };
    let foreign = LiveCursor {
        epoch: Uuid::new_v4(),
        ..end
    };
    for place in [ahead, foreign] {
        let mut feed = app.live_feed(&call, acme, Some(place)).await.unwrap();
        assert_eq!(read(&mut feed).await, (Vec::new(), vec![(place, end)]));
    }
}
