//! Settings and quotas go down the tree.

use nimbus_control_store::{
    DeploymentFilter, EffectiveQuota, ListPage, NewDeployment, NewTenant, Quota, StoreError,
    TenantChange,
};
use nimbus_control_testing::TestDatabase;
use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

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

async fn deploy(database: &TestDatabase, tenant: TenantId, id: &str) -> Result<(), StoreError> {
    let new = NewDeployment {
        id: id.to_owned(),
        organization: "o".to_owned(),
        project: "p".to_owned(),
        template: "t".to_owned(),
        manifest: String::new(),
        created_by: UserId::from(Uuid::new_v4()),
    };
    let made = database
        .store
        .tenant_tx(tenant, async |tx| tx.deployment_create(&new).await);
    made.await.map(drop)
}

async fn used(database: &TestDatabase, of: TenantId, resource: &str) -> Option<i64> {
    let quotas = database
        .store
        .tenant_tx(of, async |tx| tx.quotas_effective(of).await)
        .await
        .unwrap();
    let found = quotas.iter().find(|quota| quota.resource == resource);
    found.map(|quota| quota.used)
}

crate::for_both_isolations!(who_comes_at_once_never_passes_a_limit, together);
async fn together(database: TestDatabase) {
    let a = tenant(&database, "alpha").await;
    let teams = [
        tenant_below(&database.store, a, a, "one").await,
        tenant_below(&database.store, a, a, "two").await,
    ];
    change(&database, a, json!({}), json!({"deployments": 7})).await;
    let ids: Vec<_> = (0..20).map(|turn| format!("D{turn}")).collect();
    let tries = ids
        .iter()
        .enumerate()
        .map(|(turn, id)| deploy(&database, teams[turn % 2], id));
    let outcomes = futures::future::join_all(tries).await;
    let granted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(granted, 7);
    for outcome in outcomes.into_iter().filter_map(Result::err) {
        let full = matches!(
            outcome,
            StoreError::QuotaExceeded {
                quota: Quota::Deployments,
                limit: 7,
                used: 7,
            }
        );
        assert!(full, "{outcome:?}");
        let text = outcome.to_string();
        assert_eq!(text, "the quota `deployments` is 7, and 7 are there");
    }
    assert_eq!(used(&database, a, "deployments").await, Some(7));
    // What is taken out of use makes room.
    let first: Result<_, StoreError> = database
        .store
        .tenant_tx(teams[0], async |tx| {
            let page = ListPage {
                after: None,
                limit: 1,
            };
            let filter = DeploymentFilter::default();
            let one = tx.deployment_list(&filter, &page).await?.remove(0);
            tx.deployment_archive(&one.id).await
        })
        .await;
    first.unwrap();
    deploy(&database, teams[1], "D100").await.unwrap();
    assert!(deploy(&database, teams[1], "D101").await.is_err());
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
    for id in ["D1", "D2", "D3"] {
        deploy(&database, team, id).await.unwrap();
    }
    let go = async || {
        database
            .store
            .registry_tx(database.root, async |tx| tx.tenant_move(team, b).await)
            .await
    };
    assert!(matches!(
        go().await,
        Err(StoreError::QuotaExceeded {
            limit: 2,
            used: 0,
            ..
        })
    ));
    change(&database, b, json!({}), json!({"deployments": 3})).await;
    go().await.unwrap();
    let used = async |of| used(&database, of, "deployments").await;
    assert_eq!((used(a).await, used(b).await), (Some(0), Some(3)));
}

crate::for_both_isolations!(
    tenants_below_are_counted_and_deleted_ones_are_not,
    tenants_count
);
async fn tenants_count(database: TestDatabase) {
    let a = tenant(&database, "alpha").await;
    change(&database, a, json!({}), json!({"tenants": 2})).await;
    let one = tenant_below(&database.store, a, a, "one").await;
    tenant_below(&database.store, one, one, "deep").await;
    let create = async |slug: &str| {
        let new = NewTenant::new(one, slug, "Name");
        let made = database
            .store
            .registry_tx(one, async |tx| tx.tenant_create(&new).await);
        made.await
    };
    let refused = create("more").await.unwrap_err();
    let full = matches!(
        refused,
        StoreError::QuotaExceeded {
            quota: Quota::Tenants,
            limit: 2,
            used: 2,
        }
    );
    assert!(full, "{refused:?}");
    let gone = database.store.registry_tx(a, async |tx| {
        let grace = std::time::Duration::from_secs(60);
        tx.tenant_delete(one, grace).await
    });
    gone.await.unwrap();
    for slug in ["two", "three"] {
        tenant_below(&database.store, a, a, slug).await;
    }
    // What was deleted does not come back past the limit.
    let back = database
        .store
        .registry_tx(a, async |tx| tx.tenant_undelete(one).await);
    let refused = back.await.unwrap_err();
    assert!(
        matches!(refused, StoreError::QuotaExceeded { .. }),
        "{refused:?}"
    );
}

crate::for_both_isolations!(
    quotas_that_nothing_holds_and_that_are_no_numbers_are_refused,
    bad_quotas
);
async fn bad_quotas(database: TestDatabase) {
    for quotas in [
        json!({"users": -1}),
        json!({"users": "many"}),
        json!({"users": 1.5}),
        json!({"keys": 1}),
        json!({"Users": 1}),
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
