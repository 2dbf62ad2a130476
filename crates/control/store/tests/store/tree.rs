//! The tree of tenants.

use nimbus_control_store::{StoreError, TenantChange, TenantFilter};
use nimbus_control_testing::TestDatabase;
use serde_json::json;

use crate::support::{tenant, tenant_below};

crate::for_both_isolations!(each_sees_itself_and_what_is_below, sees_below);
async fn sees_below(database: TestDatabase) {
    let store = &database.store;
    let a = tenant(&database, "alpha").await;
    let team = tenant_below(store, a, a, "team").await;
    let b = tenant(&database, "beta").await;
    let list = async |acting| {
        let filter = TenantFilter {
            limit: 100,
            ..TenantFilter::default()
        };
        let seen = store
            .tenant_tx(acting, async |tx| tx.tenant_list(&filter).await)
            .await
            .unwrap();
        seen.into_iter()
            .map(|tenant| tenant.slug)
            .collect::<Vec<_>>()
    };
    assert_eq!(list(database.root).await, ["alpha", "beta", "root", "team"]);
    assert_eq!(list(a).await, ["alpha", "team"]);
    assert_eq!(list(team).await, ["team"]);
    assert_eq!(list(b).await, ["beta"]);
    let path = store
        .tenant_tx(a, async |tx| tx.tenant_get(team).await)
        .await
        .unwrap()
        .path;
    assert_eq!(path, [database.root, a, team]);
    assert_eq!(store.tenant_find(&["alpha", "team"]).await.unwrap(), team);
    assert_eq!(store.tenant_find(&[]).await.unwrap(), database.root);
    assert!(matches!(
        store.tenant_find(&["team"]).await,
        Err(StoreError::TenantUnknown)
    ));
}

crate::for_both_isolations!(nobody_changes_what_is_not_below, changes_below_only);
async fn changes_below_only(database: TestDatabase) {
    let store = &database.store;
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let team = tenant_below(store, b, b, "team").await;
    let rename = TenantChange {
        name: Some("mine now".into()),
        ..TenantChange::default()
    };
    let outcomes = [
        store
            .registry_tx(a, async |tx| tx.tenant_update(b, &rename).await.map(drop))
            .await,
        store
            .registry_tx(a, async |tx| tx.tenant_move(team, a).await.map(drop))
            .await,
        store
            .registry_tx(a, async |tx| {
                tx.tenant_delete(b, std::time::Duration::ZERO)
                    .await
                    .map(drop)
            })
            .await,
        store
            .registry_tx(a, async |tx| tx.tenant_undelete(b).await.map(drop))
            .await,
    ];
    for outcome in outcomes {
        assert!(
            matches!(outcome, Err(StoreError::TenantUnknown)),
            "{outcome:?}"
        );
    }
}

crate::for_both_isolations!(a_tenant_moves_with_all_below_and_never_below_itself, moves);
async fn moves(database: TestDatabase) {
    let (store, root) = (&database.store, database.root);
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let team = tenant_below(store, a, a, "team").await;
    let squad = tenant_below(store, a, team, "squad").await;
    store
        .tenant_tx(squad, async |tx| tx.compartment_create("kept", None).await)
        .await
        .unwrap();
    let go = async |id, parent| {
        store
            .registry_tx(root, async |tx| tx.tenant_move(id, parent).await)
            .await
    };
    for (id, parent) in [(team, squad), (team, team), (a, squad)] {
        assert!(matches!(go(id, parent).await, Err(StoreError::Cycle)));
    }
    assert!(matches!(
        go(root, a).await,
        Err(StoreError::Root | StoreError::Cycle)
    ));
    assert_eq!(go(team, b).await.unwrap().path, [root, b, team]);
    let squad_now = store
        .tenant_tx(b, async |tx| tx.tenant_get(squad).await)
        .await
        .unwrap();
    assert_eq!(squad_now.path, [root, b, team, squad]);
    assert!(
        store
            .tenant_tx(a, async |tx| tx.tenant_get(team).await)
            .await
            .is_err()
    );
    let kept = store
        .tenant_tx(squad, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
}

// Two moves that would make a circle together: one of them is refused.
crate::for_both_isolations!(moves_at_the_same_time_make_no_circle, no_circle);
async fn no_circle(database: TestDatabase) {
    let (store, root) = (&database.store, database.root);
    for round in 0..10 {
        let a = tenant(&database, &format!("a{round}")).await;
        let b = tenant(&database, &format!("b{round}")).await;
        let go = async |id, parent| {
            store
                .registry_tx(root, async |tx| tx.tenant_move(id, parent).await)
                .await
        };
        let (first, second) = tokio::join!(go(a, b), go(b, a));
        assert_eq!(
            [first.is_ok(), second.is_ok()]
                .iter()
                .filter(|&&ok| ok)
                .count(),
            1
        );
    }
}

crate::for_both_isolations!(a_change_on_an_old_generation_is_refused, generations);
async fn generations(database: TestDatabase) {
    let store = &database.store;
    let a = tenant(&database, "alpha").await;
    let change = |name: &str, generation| TenantChange {
        name: Some(name.into()),
        settings: Some(json!({"scan_schedule": "0 3 * * *"})),
        expected_generation: Some(generation),
        ..TenantChange::default()
    };
    let apply = async |change: TenantChange| {
        store
            .registry_tx(a, async |tx| tx.tenant_update(a, &change).await)
            .await
    };
    let changed = apply(change("New", 1)).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.generation), ("New", 2));
    assert_eq!(changed.settings["scan_schedule"], "0 3 * * *");
    assert!(matches!(
        apply(change("Old", 1)).await,
        Err(StoreError::Stale(_))
    ));
}
