//! Resolvers, plan reviews, drafts and the page of the installation over GraphQL: the same as over REST, and nothing of
//! it for another tenant.

use nimbus_control_store::LeaseAsk;
use nimbus_core::TenantId;
use nimbus_resolvers::{LeaseHolder, ResolverKind, ResolverQuestion, UnitFacts};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::graphql::codes;
use crate::support::{Installation, installation, text};

/// Somebody with a role in a tenant.
async fn member(
    nimbus: &Installation,
    owner: &str,
    (slug, tenant): (&str, &str),
    role: &str,
) -> String {
    let email = format!("{slug}@{slug}.example");
    nimbus.user(owner, tenant, &email, Some(role)).await;
    nimbus.token(slug, &email).await
}

/// Each of these answers like something that is not there.
async fn find_nothing(nimbus: &Installation, token: &str, documents: &[String]) {
    for document in documents {
        let answer = nimbus.graphql(token, document, json!({})).await.ok();
        assert_eq!(codes(&answer), ["NOT_FOUND"], "{document}: {answer}");
    }
}

/// A block of the pool that the tenant's environments take from.
async fn leased(nimbus: &Installation, tenant: &str) {
    let ask = LeaseAsk {
        tenant: tenant.parse::<TenantId>().unwrap(),
        facts: UnitFacts {
            deployment: "D1".to_owned(),
            environment: "dev".to_owned(),
            component: "network".to_owned(),
            ..UnitFacts::default()
        },
        rehearsal: false,
        holder: LeaseHolder::Run(1),
        epoch: 1,
    };
    let question = ResolverQuestion::new(ResolverKind::Ipam, Map::new()).unwrap();
    let seal = |id: Uuid, _| Ok(id.as_bytes().to_vec());
    let store = &nimbus.database.store;
    store.resolver_answer(&ask, &question, &seal).await.unwrap();
}

#[tokio::test]
async fn resolvers_pools_and_leases_are_the_ones_of_rest_and_their_tenants() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let beta = nimbus.tenant(&owner, "beta").await;
    let looking = member(&nimbus, &owner, ("acme", &acme), "tenant_admin").await;
    let stranger = member(&nimbus, &owner, ("beta", &beta), "tenant_admin").await;

    let make = "mutation {
         createAddressPool(tenantId: \"acme\", idempotencyKey: \"p1\", input: {name: \"lan\", cidr: \"10.0.0.0/24\", reserved: [\"10.0.0.192/26\"]}) {
             id name owner cidr purpose reserved usage { free } }
         configureResolver(tenantId: \"acme\", resolver: \"ipam\", input: {config: {pool: \"lan\", prefix_length: 26}})
         putImage(tenantId: \"acme\", input: {cloud: \"proxmox\", osFamily: \"debian\", osVersion: \"13\", imageId: \"mine\"}) { id imageName } }";
    let made = nimbus.data(&owner, make, json!({})).await;
    let pool = &made["createAddressPool"];
    assert_eq!(
        (&pool["purpose"], &pool["reserved"], &pool["usage"]),
        (&json!("blocks"), &json!(["10.0.0.192/26"]), &Value::Null)
    );
    // Whoever only looks changes nothing.
    let refused = nimbus.graphql(&looking, make, json!({})).await.ok();
    assert_eq!(codes(&refused), ["FORBIDDEN", "FORBIDDEN", "FORBIDDEN"]);

    leased(&nimbus, &acme).await;
    let query = "{ resolvers { resolverType system }
         resolverConfigurations { resolver ownerId config }
         addressPools { id name }
         addressPool(name: \"lan\") { id usage { addresses free usedPercent leased committed } }
         resolverLeases(filter: {pool: \"lan\", status: \"leased\"}) { nodes { id heldBy deploymentId component status outputs } pageInfo { hasNextPage } }
         images { id imageId } }";
    let found = nimbus.data(&looking, query, json!({})).await;
    let types: Vec<_> = found["resolvers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["resolverType"]))
        .collect();
    assert_eq!(types, ["image_catalog", "ipam", "naming", "secret"]);
    assert_eq!(
        found["resolverConfigurations"],
        json!([{"resolver": "ipam", "ownerId": acme, "config": {"pool": "lan", "prefix_length": 26}}])
    );
    assert_eq!(
        found["addressPools"],
        json!([{"id": pool["id"], "name": "lan"}])
    );
    let usage = &found["addressPool"]["usage"];
    assert_eq!(
        (&usage["addresses"], &usage["free"], &usage["leased"]),
        (&json!("256"), &json!("128"), &json!(1))
    );
    let lease = &found["resolverLeases"]["nodes"][0];
    assert_eq!(
        (
            &lease["heldBy"],
            &lease["component"],
            &lease["outputs"]["cidr"]
        ),
        (&json!(acme), &json!("network"), &json!("10.0.0.0/26"))
    );
    assert_eq!(found["images"][0]["imageId"], "mine");
    // REST tells the same.
    let rest = format!("/api/v1/tenants/{acme}/resolver-leases");
    let rest = nimbus.get(&rest, &looking).await.ok();
    assert_eq!(rest["items"][0]["id"], lease["id"]);
    assert_eq!(rest["items"][0]["outputs"], lease["outputs"]);

    // Another tenant finds nothing: neither in its own place, nor by naming the one that it is in.
    let (lease, image) = (text(&lease["id"]), text(&made["putImage"]["id"]));
    let nothing = "{ addressPools { id } resolverConfigurations { resolver } resolverLeases { nodes { id } } }";
    let own = nimbus.data(&stranger, nothing, json!({})).await;
    assert_eq!(
        own,
        json!({"addressPools": [], "resolverConfigurations": [], "resolverLeases": {"nodes": []}})
    );
    let of_acme = [
        "{ resolvers(tenantId: $) { id } }",
        "{ resolverConfigurations(tenantId: $) { resolver } }",
        "{ addressPools(tenantId: $) { id } }",
        "{ addressPool(tenantId: $, name: \"lan\") { id } }",
        "{ resolverLeases(filter: {tenantId: $}) { nodes { id } } }",
        "{ images(tenantId: $) { id } }",
        "mutation { createAddressPool(tenantId: $, input: {name: \"x\", cidr: \"10.1.0.0/24\"}) { id } }",
    ];
    let mut hidden: Vec<_> = of_acme
        .map(|document| document.replace('$', &format!("\"{acme}\"")))
        .into();
    hidden.push("{ addressPool(name: \"lan\") { id } }".to_owned());
    hidden.push("{ resolverLeases(filter: {pool: \"lan\"}) { nodes { id } } }".to_owned());
    find_nothing(&nimbus, &stranger, &hidden).await;
    // Whoever may change both tenants finds them only where they are.
    find_nothing(
        &nimbus,
        &owner,
        &[
            format!(
                "mutation {{ releaseLease(tenantId: \"beta\", id: \"{lease}\", force: true) }}"
            ),
            format!("mutation {{ deleteImage(tenantId: \"beta\", id: \"{image}\") }}"),
        ],
    )
    .await;

    let block = "mutation { reserveBlock(tenantId: \"acme\", pool: \"lan\", cidr: \"10.0.0.128/26\") { reserved } }";
    let reserved = nimbus.data(&owner, block, json!({})).await;
    assert_eq!(
        reserved["reserveBlock"]["reserved"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let block = block.replace("reserveBlock", "unreserveBlock");
    nimbus.data(&owner, &block, json!({})).await;
    let release = "mutation($id: ID!, $force: Boolean!) { releaseLease(tenantId: \"acme\", id: $id, force: $force) }";
    let busy = nimbus
        .graphql(&owner, release, json!({"id": lease, "force": false}))
        .await
        .ok();
    assert!(
        busy["errors"][0]["extensions"]["code"].is_string(),
        "{busy}"
    );
    let variables = json!({"id": lease, "force": true});
    nimbus.data(&owner, release, variables).await;
    let image = format!("mutation {{ deleteImage(tenantId: \"acme\", id: \"{image}\") }}");
    nimbus.data(&owner, &image, json!({})).await;
    // A configuration without anything is none.
    let none = "mutation { configureResolver(tenantId: \"acme\", resolver: \"ipam\", input: {config: {}}) }";
    nimbus.data(&owner, none, json!({})).await;
    let left = "{ resolverConfigurations { resolver } }";
    let left = nimbus.data(&looking, left, json!({})).await;
    assert_eq!(left["resolverConfigurations"], json!([]));
}

/// A tenant with a plan that nobody carries out; the run's id.
async fn planned(nimbus: &Installation, owner: &str) -> String {
    let make = "mutation {
         createDeployment(tenantId: \"acme\", input: {id: \"D1PLAN\", organization: \"o\", project: \"p\", template: \"minimal\",
             domain: \"o.example\", accounts: {dev: \"111111111111\"}}) { id }
         preview(tenantId: \"acme\", id: \"D1PLAN\", input: {environment: \"dev\", rehearsal: true}) { id } }";
    let made = nimbus.data(owner, make, json!({})).await;
    text(&made["preview"]["id"])
}

#[tokio::test]
async fn plans_are_reviewed_and_marked_by_who_may_read_them() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let beta = nimbus.tenant(&owner, "beta").await;
    let reader = member(&nimbus, &owner, ("acme", &acme), "viewer").await;
    let stranger = member(&nimbus, &owner, ("beta", &beta), "admin").await;
    let run = planned(&nimbus, &owner).await;
    let mark = "mutation($run: ID!) { setReviewMark(runId: $run, item: \"unit:network\", digest: \"abc\") }";
    nimbus.data(&reader, mark, json!({"run": run})).await;
    let query = "query($run: ID!) {
         planReview(runId: $run) { seq risks { key } seal { kind name proof moved } forecast { units oneWay { urn type } } }
         reviewMarks(runId: $run) { nodes { item digest email } } }";
    let found = nimbus.data(&reader, query, json!({"run": run})).await;
    assert_eq!(
        found["reviewMarks"]["nodes"],
        json!([{"item": "unit:network", "digest": "abc", "email": "acme@acme.example"}])
    );
    let path = format!("/api/v1/runs/{run}/review?tenant={acme}");
    let rest = nimbus.get(&path, &owner).await.ok();
    let review = &found["planReview"];
    assert_eq!(review["seq"], rest["seq"]);
    let kinds = |review: &Value| -> Vec<_> {
        let items = review["seal"].as_array().unwrap().iter();
        items
            .map(|item| (text(&item["kind"]), text(&item["proof"])))
            .collect()
    };
    assert_eq!(kinds(review), kinds(&rest));
    assert!(!kinds(review).is_empty(), "{review}");

    // Another tenant's run is not there, whichever tenant is named with it.
    let mut hidden = Vec::new();
    for tenant in [String::new(), format!("tenantId: \"{acme}\", ")] {
        for field in [
            format!("planReview({tenant}runId: \"{run}\") {{ seq }}"),
            format!("reviewMarks({tenant}runId: \"{run}\") {{ nodes {{ item }} }}"),
        ] {
            hidden.push(format!("{{ {field} }}"));
        }
        for field in [
            format!("setReviewMark({tenant}runId: \"{run}\", item: \"x\", digest: \"y\")"),
            format!("removeReviewMark({tenant}runId: \"{run}\", item: \"unit:network\")"),
        ] {
            hidden.push(format!("mutation {{ {field} }}"));
        }
    }
    find_nothing(&nimbus, &stranger, &hidden).await;
    let take_back = "mutation($run: ID!) { removeReviewMark(runId: $run, item: \"unit:network\") }";
    nimbus.data(&reader, take_back, json!({"run": run})).await;
    let left = nimbus.data(&reader, query, json!({"run": run})).await;
    assert_eq!(left["reviewMarks"]["nodes"], json!([]));
}

#[tokio::test]
async fn drafts_are_their_writers_and_the_system_page_is_the_operators() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let beta = nimbus.tenant(&owner, "beta").await;
    let writer = member(&nimbus, &owner, ("acme", &acme), "developer").await;
    let stranger = member(&nimbus, &owner, ("beta", &beta), "admin").await;
    let put = "mutation { putDraft(id: \"new\", input: {kind: \"deployment\", content: {project: \"shop\"}}) { id kind content expiresAt } }";
    let kept = nimbus.data(&writer, put, json!({})).await;
    assert_eq!(kept["putDraft"]["content"], json!({"project": "shop"}));
    let list = "query($t: ID) { drafts(tenantId: $t) { id content } }";
    let own = nimbus.data(&writer, list, json!({})).await;
    assert_eq!(
        own["drafts"],
        json!([{"id": "new", "content": {"project": "shop"}}])
    );
    // Not even whoever runs the installation sees them, and to another tenant the place itself is not there.
    let others = nimbus.data(&owner, list, json!({"t": acme})).await;
    assert_eq!(others["drafts"], json!([]));
    let of_acme = format!("tenantId: \"{acme}\"");
    let hidden = [
        format!("{{ drafts({of_acme}) {{ id }} }}"),
        format!("mutation {{ deleteDraft({of_acme}, id: \"new\") }}"),
        "mutation { deleteDraft(id: \"new\") }".to_owned(),
        format!("{{ system({of_acme}) {{ version }} }}"),
    ];
    find_nothing(&nimbus, &stranger, &hidden).await;
    let wrong =
        "mutation { putDraft(id: \"a/b\", input: {kind: \"deployment\", content: {}}) { id } }";
    let wrong = nimbus.graphql(&writer, wrong, json!({})).await.ok();
    assert_eq!(codes(&wrong), ["VALIDATION_ERROR"]);
    nimbus
        .data(&writer, "mutation { deleteDraft(id: \"new\") }", json!({}))
        .await;

    let system = "query($t: ID) { system(tenantId: $t) { checks { kind status } runners { queued } database { tenants bytes isolation } } }";
    let shown = nimbus.data(&owner, system, json!({})).await;
    let checks = shown["system"]["checks"].as_array().unwrap();
    assert!(
        checks.contains(&json!({"kind": "isolation", "status": "ok"})),
        "{checks:?}"
    );
    assert_eq!(shown["system"]["database"]["tenants"], 3);
    // It is the operator's: nowhere else is there one, and nobody else may look.
    let elsewhere = nimbus.graphql(&owner, system, json!({"t": acme})).await;
    assert_eq!(codes(&elsewhere.ok()), ["NOT_FOUND"]);
    let refused = nimbus.graphql(&stranger, system, json!({})).await;
    assert_eq!(codes(&refused.ok()), ["FORBIDDEN"]);
}
