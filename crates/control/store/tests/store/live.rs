//! Events on their way: told if and only if their transaction is, numbered without gaps, by one relay at a time.

use std::time::Duration;

use nimbus_control_events::{NewEvent, NoticeTopic, kind};
use nimbus_control_store::{Store, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_core::TenantId;
use serde_json::json;
use uuid::Uuid;

use crate::support::{administrator, execute, tenant};

fn event(number: usize) -> NewEvent {
    let data = json!({"number": number});
    NewEvent::new(kind::TENANT_UPDATED, "thing", data).traced(Some("trace".to_owned()))
}

async fn publish(store: &Store, tenant: TenantId, number: usize) {
    let done: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| tx.live_publish(&[event(number)]).await)
        .await;
    done.unwrap();
}

async fn numbers(store: &Store, tenant: TenantId) -> Vec<(i64, i64)> {
    let read: Result<_, StoreError> = store
        .tenant_tx(tenant, async |tx| {
            let mut from = tx.live_head().await?;
            from.seq = 0;
            tx.live_after(from, 10_000).await
        })
        .await;
    let number = |event: nimbus_control_events::LiveEvent| {
        (event.cursor.seq, event.data["number"].as_i64().unwrap())
    };
    read.unwrap().into_iter().map(number).collect()
}

/// Everything that a relay has, moved.
async fn relay(store: &Store, relay: Uuid) -> Vec<NoticeTopic> {
    let mut topics = Vec::new();
    loop {
        let moved = store.live_relay(relay, 100).await.unwrap();
        if moved.is_empty() {
            return topics;
        }
        topics.extend(
            moved
                .iter()
                .flat_map(|part| part.topics().collect::<Vec<_>>()),
        );
    }
}

crate::for_both_isolations!(events_are_told_with_their_transaction, told_with_it);
async fn told_with_it(database: TestDatabase) {
    let store = &database.store;
    let (acme, other) = (
        tenant(&database, "acme").await,
        tenant(&database, "other").await,
    );
    let me = Uuid::new_v4();
    assert_eq!(store.live_hold(me, 60.0).await.unwrap().len(), 8);
    relay(store, me).await;
    let begun = numbers(store, acme).await.len();
    publish(store, acme, 1).await;
    let given_up: Result<(), StoreError> = store
        .tenant_tx(acme, async |tx| {
            tx.live_publish(&[event(2)]).await?;
            Err(StoreError::NotFound("thing"))
        })
        .await;
    given_up.unwrap_err();
    publish(store, acme, 3).await;
    publish(store, other, 4).await;
    let topics = relay(store, me).await;
    assert!(topics.contains(&NoticeTopic::Tenant(acme)), "{topics:?}");
    let first = i64::try_from(begun).unwrap();
    assert_eq!(
        numbers(store, acme).await[begun..],
        [(first + 1, 1), (first + 2, 3)]
    );
    assert_eq!(numbers(store, other).await.last().unwrap().1, 4);
    assert_eq!(store.live_waiting().await.unwrap().0, 0);
}

crate::for_both_isolations!(numbers_have_no_gaps_whoever_relays, without_gaps);
async fn without_gaps(database: TestDatabase) {
    let acme = tenant(&database, "acme").await;
    let begun = {
        let me = Uuid::new_v4();
        database.store.live_hold(me, 60.0).await.unwrap();
        relay(&database.store, me).await;
        database.store.live_let_go(me).await.unwrap();
        numbers(&database.store, acme).await.len()
    };
    // Two servers relay while many write; one of them ends in the middle and another one comes.
    let writing = (0..8).map(|writer| {
        let store = database.store.clone();
        tokio::spawn(async move {
            for number in 0..40 {
                publish(&store, acme, writer * 40 + number).await;
            }
        })
    });
    let writing: Vec<_> = writing.collect();
    let relaying = (0..3).map(|_| {
        let store = database.store.clone();
        tokio::spawn(async move {
            let me = Uuid::new_v4();
            for round in 0..60 {
                store.live_hold(me, 0.2).await.unwrap();
                store.live_relay(me, 7).await.unwrap();
                if round % 20 == 19 {
                    store.live_let_go(me).await.unwrap();
                }
            }
            store.live_let_go(me).await.unwrap();
        })
    });
    let relaying: Vec<_> = relaying.collect();
    for task in writing.into_iter().chain(relaying) {
        task.await.unwrap();
    }
    let last = Uuid::new_v4();
    database.store.live_hold(last, 60.0).await.unwrap();
    relay(&database.store, last).await;
    let told = numbers(&database.store, acme).await;
    let mut seen: Vec<_> = told[begun..].iter().map(|(_, number)| *number).collect();
    for writer in 0..8_i64 {
        // What one writer did after another thing is told after it.
        let of_writer: Vec<_> = seen.iter().filter(|n| **n / 40 == writer).collect();
        assert!(of_writer.is_sorted(), "{of_writer:?}");
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..320).collect::<Vec<_>>());
    let places: Vec<_> = told.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(
        places,
        (1..=i64::try_from(told.len()).unwrap()).collect::<Vec<_>>()
    );
}

crate::for_both_isolations!(a_relay_without_its_lease_moves_nothing, leased);
async fn leased(database: TestDatabase) {
    let store = &database.store;
    let acme = tenant(&database, "acme").await;
    let (old, new) = (Uuid::new_v4(), Uuid::new_v4());
    assert_eq!(store.live_hold(old, 60.0).await.unwrap().len(), 8);
    relay(store, old).await;
    // Nobody else gets anything while the lease holds, but the fair half from the next sign of life on.
    assert_eq!(store.live_hold(new, 60.0).await.unwrap(), Vec::<i16>::new());
    assert_eq!(store.live_hold(old, 60.0).await.unwrap().len(), 4);
    assert_eq!(store.live_hold(new, 60.0).await.unwrap().len(), 4);
    publish(store, acme, 1).await;
    let mut administrator = administrator(&database.config).await;
    execute(
        &mut administrator,
        "UPDATE nimbus_core.live_shards SET expires_at = now() - interval '1 second' WHERE relay IS NOT NULL;
         DELETE FROM nimbus_core.live_relays",
    )
    .await
    .unwrap();
    for late in [old, new] {
        assert!(store.live_relay(late, 100).await.unwrap().is_empty());
    }
    assert!(store.live_waiting().await.unwrap().0 > 0);
    // Whoever takes the shards goes on.
    assert_eq!(store.live_hold(new, 60.0).await.unwrap().len(), 8);
    assert!(!relay(store, new).await.is_empty());
    assert!(relay(store, old).await.is_empty());
    let told = tokio::time::timeout(Duration::from_secs(1), numbers(store, acme));
    assert_eq!(told.await.unwrap().last().unwrap().1, 1);
}
