//! Settings and quotas go down the tree.

use nimbus_control_store::{EffectiveQuota, NewTenant, StoreError, TenantChange};
use nimbus_control_testing::TestDatabase;
use nimbus_core::TenantId;
use serde_json::{Value, json};

use crate::support::{tenant, tenant_below};

async fn change(database: &TestDatabase, id: TenantId, settings: Value, quotas: Value) {
    let change = TenantChange {
        settings: Some(settings),
        quotas: Some(quotas),
        ..TenantChange::default()
    };
    database
        .store
        .registry_tx(database.root, async |tx| {
            tx.tenant_update(id, &change).await
        })
        .await
        .unwrap();
}

crate::for_both_isolations!(the_nearest_setting_and_the_smallest_quota_win, inheritance);
async fn inheritance(database: TestDatabase) {
    let a = tenant(&database, "alpha").await;
    let team = tenant_below(&database.store, a, a, "team").await;
    change(
        &database,
        database.root,
        json!({"colour": "grey", "region": "eu"}),
        json!({"deployments": 10, "users": 5}),
    )
    .await;
    change(
        &database,
        a,
        json!({"colour": "blue"}),
        json!({"deployments": 100}),
    )
    .await;
    change(&database, team, json!({"own": true}), json!({"users": 2})).await;
    let (settings, quotas) = database
        .store
        .tenant_tx(team, async |tx| {
            Ok::<_, StoreError>((
                tx.settings_effective(team).await?,
                tx.quotas_effective(team).await?,
            ))
        })
        .await
        .unwrap();
    let settings: Vec<_> = settings
        .into_iter()
        .map(|s| (s.key, s.value, s.inherited))
        .collect();
    assert_eq!(
        settings,
        [
            ("colour".into(), json!("blue"), true),
            ("own".into(), json!(true), false),
            ("region".into(), json!("eu"), true)
        ]
    );
    let quota = |resource: &str, quota, inherited| EffectiveQuota {
        resource: resource.into(),
        quota,
        used: 0,
        inherited,
    };
    assert_eq!(
        quotas,
        [quota("deployments", 10, true), quota("users", 2, false)]
    );
}

async fn reserve(database: &TestDatabase, tenant: TenantId, amount: i64) -> Result<(), StoreError> {
    database
        .store
        .tenant_tx(tenant, async |tx| {
            tx.quota_reserve("deployments", amount).await
        })
        .await
}

crate::for_both_isolations!(reservations_never_pass_a_limit, reservations);
async fn reservations(database: TestDatabase) {
    let a = tenant(&database, "alpha").await;
    let teams = [
        tenant_below(&database.store, a, a, "one").await,
        tenant_below(&database.store, a, a, "two").await,
    ];
    change(&database, a, json!({}), json!({"deployments": 7})).await;
    let tries = (0..20).map(|turn| reserve(&database, teams[turn % 2], 1));
    let outcomes = futures::future::join_all(tries).await;
    let granted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(granted, 7);
    for outcome in outcomes.into_iter().filter_map(Result::err) {
        assert!(
            matches!(outcome, StoreError::QuotaExceeded { limit: 7, .. }),
            "{outcome:?}"
        );
    }
    // What did not commit was not taken; what is given back can be taken again.
    database
        .store
        .tenant_tx(teams[0], async |tx| {
            tx.quota_release("deployments", 1).await
        })
        .await
        .unwrap();
    reserve(&database, teams[1], 1).await.unwrap();
    let too_much = database
        .store
        .tenant_tx(a, async |tx| tx.quota_release("deployments", 8).await)
        .await;
    assert!(
        matches!(too_much, Err(StoreError::Invalid { .. })),
        "{too_much:?}"
    );
}

crate::for_both_isolations!(what_is_used_moves_along, usage_moves);
async fn usage_moves(database: TestDatabase) {
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let team = tenant_below(&database.store, a, a, "team").await;
    change(&database, a, json!({}), json!({"deployments": 5})).await;
    change(&database, b, json!({}), json!({"deployments": 2})).await;
    reserve(&database, team, 3).await.unwrap();
    let go = async || {
        database
            .store
            .registry_tx(database.root, async |tx| tx.tenant_move(team, b).await)
            .await
    };
    assert!(matches!(
        go().await,
        Err(StoreError::QuotaExceeded { limit: 2, .. })
    ));
    change(&database, b, json!({}), json!({"deployments": 3})).await;
    go().await.unwrap();
    let used = async |of| {
        let quotas = database
            .store
            .tenant_tx(of, async |tx| tx.quotas_effective(of).await)
            .await
            .unwrap();
        quotas
            .iter()
            .find(|quota| quota.resource == "deployments")
            .map(|quota| quota.used)
    };
    assert_eq!((used(a).await, used(b).await), (Some(0), Some(3)));
}

crate::for_both_isolations!(quotas_that_are_not_numbers_are_refused, bad_quotas);
async fn bad_quotas(database: TestDatabase) {
    for quotas in [
        json!({"users": -1}),
        json!({"users": "many"}),
        json!({"users": 1.5}),
        json!([]),
    ] {
        let mut new = NewTenant::new(database.root, "acme", "Acme");
        new.quotas = quotas;
        let created = database
            .store
            .registry_tx(database.root, async |tx| tx.tenant_create(&new).await)
            .await;
        assert!(
            matches!(created, Err(StoreError::Invalid { .. })),
            "{created:?}"
        );
    }
}
