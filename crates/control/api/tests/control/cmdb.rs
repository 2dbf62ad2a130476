//! Configuration items: they are there with the end of the run that left them, without secrets, and nobody else's.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use nimbus_control_cmdb::{SECRET, SIGNATURE, UnitSnapshot, items_of};
use nimbus_control_store::{
    CmdbSync, EnvironmentKey, HeldRun, NewDeployment, NewRun, RunEnd, StoreError, StoredRun,
    SyncCounts,
};
use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Installation, installation, text};

const CANARY: &str = "canary-of-the-items";

/// A tenant with a deployment whose runs end as a test says.
pub(crate) struct Inventory<'a> {
    pub(crate) nimbus: &'a Installation,
    pub(crate) owner: String,
    pub(crate) tenant: TenantId,
    pub(crate) admin: String,
}

impl<'a> Inventory<'a> {
    pub(crate) async fn new(nimbus: &'a Installation) -> Self {
        let owner = nimbus.set_up().await;
        let tenant = nimbus.tenant(&owner, "acme").await;
        nimbus
            .user(&owner, &tenant, "ann@acme.example", Some("tenant_admin"))
            .await;
        let admin = nimbus.token("acme", "ann@acme.example").await;
        let tenant: TenantId = tenant.parse().unwrap();
        let made: Result<_, StoreError> = nimbus
            .database
            .store
            .tenant_tx(tenant, async |tx| {
                tx.deployment_create(&NewDeployment {
                    id: "D1".to_owned(),
                    organization: "o".to_owned(),
                    project: "shop".to_owned(),
                    template: "t".to_owned(),
                    manifest: String::new(),
                    created_by: UserId::from(Uuid::new_v4()),
                })
                .await
            })
            .await;
        made.unwrap();
        Self {
            nimbus,
            owner,
            tenant,
            admin,
        }
    }

    /// A run that a worker has.
    pub(crate) async fn begin(&self) -> StoredRun {
        self.begin_in("dev").await
    }

    pub(crate) async fn begin_in(&self, environment: &str) -> StoredRun {
        let new = NewRun {
            deployment: "D1".to_owned(),
            action: "deploy".to_owned(),
            environment: environment.to_owned(),
            rehearsal: false,
            request: json!({}),
            catalog: json!({}),
            requested_by: UserId::from(Uuid::new_v4()),
            trace_id: None,
        };
        let taken: Result<_, StoreError> = self
            .nimbus
            .database
            .store
            .tenant_tx(self.tenant, async |tx| {
                tx.run_queue(&new).await?;
                Ok(tx.run_take(Uuid::new_v4()).await?.unwrap())
            })
            .await;
        taken.unwrap()
    }

    /// Ends a run with what its units' states say, as a worker does.
    pub(crate) async fn end(
        &self,
        run: &StoredRun,
        units: Vec<UnitSnapshot>,
    ) -> Result<SyncCounts, StoreError> {
        let held = HeldRun {
            deployment: run.deployment.clone(),
            number: run.number,
            epoch: run.epoch,
        };
        let end = RunEnd {
            status: "ended",
            wish: None,
            result: Some("succeeded".to_owned()),
            problem: None,
        };
        let sync = CmdbSync {
            of: EnvironmentKey {
                deployment: run.deployment.clone(),
                environment: run.environment.clone(),
                rehearsal: run.rehearsal,
            },
            project: "shop".to_owned(),
            run: run.id,
            units,
            needs: BTreeSet::from([("app".to_owned(), "net".to_owned())]),
            unreadable: Vec::new(),
        };
        let store = &self.nimbus.database.store;
        store
            .tenant_tx(self.tenant, async |tx| {
                tx.run_release(&held, &end).await?;
                tx.cmdb_sync(&sync).await
            })
            .await
    }

    pub(crate) async fn run(&self, units: Vec<UnitSnapshot>) -> SyncCounts {
        let run = self.begin().await;
        self.end(&run, units).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let path = format!("/api/v1/cmdb/{path}");
        self.nimbus.get(&path, &self.admin).await.ok()
    }

    async fn names(&self, query: &str) -> Vec<String> {
        names(&self.get(&format!("items?{query}")).await)
    }

    async fn id(&self, name: &str) -> String {
        let found = self.get(&format!("items?status=any&text={name}")).await;
        let items = found["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["name"] == name);
        text(&item.unwrap_or_else(|| panic!("{name}: {found}"))["id"])
    }
}

fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| text(&item["name"])).collect()
}

/// A unit with a resource for each name; each depends on the one before it.
pub(crate) fn unit(unit: &str, resources: &[(&str, &str)]) -> UnitSnapshot {
    let urn = |name: &str| format!("urn:pulumi:D1-{unit}-dev::shop::aws:ec2/vpc:Vpc::{name}");
    let root = format!("urn:pulumi:D1-{unit}-dev::shop::pulumi:pulumi:Stack::shop-D1-{unit}-dev");
    let mut state = vec![json!({"urn": root, "type": "pulumi:pulumi:Stack",
        "outputs": {"first": "x", "dbPassword": CANARY}})];
    state.push(
        json!({"urn": format!("{root}::provider"), "type": "pulumi:providers:aws",
        "outputs": {"accessKey": CANARY}}),
    );
    for (position, (name, size)) in resources.iter().enumerate() {
        let needs: Vec<_> = resources[..position]
            .last()
            .map(|(name, _)| urn(name))
            .into_iter()
            .collect();
        state.push(
            json!({"urn": urn(name), "type": "aws:ec2/vpc:Vpc", "custom": true,
            "id": format!("{name}-id"), "parent": root, "dependencies": needs,
            "outputs": {"size": size, "tags": {"Team": "Blue"},
                "token": {SIGNATURE: SECRET, "ciphertext": CANARY}}}),
        );
    }
    let checkpoint = json!({"version": 3, "checkpoint": {"latest": {"resources": state}}});
    let (items, edges) = items_of(unit, &checkpoint);
    UnitSnapshot {
        unit: unit.to_owned(),
        tag: Some(Uuid::new_v4()),
        state_version: "0".repeat(64),
        items,
        edges,
    }
}

#[tokio::test]
async fn items_come_and_go_with_the_ends_of_runs_and_are_their_tenants() {
    let nimbus = installation!();
    let acme = Inventory::new(&nimbus).await;
    // A worker whose run was taken by another leaves nothing, neither an end nor items.
    let run = acme.begin().await;
    let late = StoredRun {
        epoch: run.epoch - 1,
        ..run.clone()
    };
    let refused = acme.end(&late, vec![unit("net", &[("one", "1")])]).await;
    assert!(matches!(refused, Err(StoreError::Stale(_))), "{refused:?}");
    assert!(acme.names("").await.is_empty());
    // And one whose items cannot be written does not end either: it is one transaction.
    let mut broken = unit("net", &[("one", "1")]);
    broken.items[0].content.name = String::new();
    acme.end(&run, vec![broken]).await.unwrap_err();
    let path = format!("/api/v1/runs/{}", run.id);
    assert_eq!(
        nimbus.get(&path, &acme.admin).await.ok()["status"],
        "running"
    );
    let counts = acme
        .end(&run, vec![unit("net", &[("one", "1"), ("two", "1")])])
        .await
        .unwrap();
    assert_eq!((counts.created, counts.updated), (3, 0));
    assert_eq!(nimbus.get(&path, &acme.admin).await.ok()["status"], "ended");
    assert_eq!(acme.names("").await, ["net", "one", "two"]);

    let one = acme.id("one").await;
    let item = acme.get(&format!("items/{one}")).await;
    assert_eq!(item["cloud_resource_id"], "one-id");
    assert_eq!(item["semantic_type"], "VirtualNetwork", "{item}");
    assert_eq!(item["provider"], "aws");
    assert_eq!(item["state_version"], "0".repeat(64));
    assert!(text(&item["urn"]).ends_with("::one"));
    assert_eq!(item["run"], run.id.to_string());
    // It is in the compartment of its project and environment.
    let folder = acme
        .get(&format!("compartments/{}", text(&item["compartment"])))
        .await;
    assert_eq!(folder["name"], "dev");
    let above = acme
        .get(&format!("compartments/{}", text(&folder["parent"])))
        .await;
    assert_eq!(above["name"], "shop");
    let unit_item = acme.get(&format!("items/{}", acme.id("net").await)).await;
    assert_eq!(
        (&unit_item["class"], &unit_item["attributes"]["first"]),
        (&json!("nimbus:unit"), &json!("x"))
    );
    // No secret is in any row.
    for query in [
        "SELECT attributes::text FROM nimbus_tenant_002.configuration_items",
        "SELECT changes::text FROM nimbus_tenant_002.ci_history",
        "SELECT word FROM nimbus_tenant_002.ci_words",
    ] {
        let rows = nimbus.database.texts(query).await;
        assert!(!rows.is_empty(), "{query}");
        assert!(!rows.iter().any(|row| row.contains(CANARY)), "{rows:?}");
    }

    // A change is told with both values; what did not change is not.
    let counts = acme
        .run(vec![unit("net", &[("one", "2"), ("two", "1")])])
        .await;
    assert_eq!(
        (counts.created, counts.updated, counts.decommissioned),
        (0, 1, 0)
    );
    let history = acme.get(&format!("items/{one}/history")).await;
    let newest = &history["items"][0];
    assert_eq!(
        (&newest["revision"], &newest["change"], &newest["changes"]),
        (
            &json!(2),
            &json!("updated"),
            &json!({"attributes.size": {"before": "1", "after": "2"}})
        )
    );
    assert_eq!(history["items"][1]["change"], "created");
    // The history has pages.
    let part = acme.get(&format!("items/{one}/history?limit=1")).await;
    let rest = acme
        .get(&format!(
            "items/{one}/history?limit=1&after={}",
            text(&part["next"])
        ))
        .await;
    assert_eq!(rest["items"][0]["revision"], 1);

    // A destroy decommissions; what is deployed again is the same item.
    let counts = acme.run(vec![unit("net", &[("two", "1")])]).await;
    assert_eq!(counts.decommissioned, 1);
    assert_eq!(acme.names("").await, ["net", "two"]);
    assert_eq!(acme.names("status=decommissioned").await, ["one"]);
    let mut gone = unit("net", &[]);
    gone.items.clear();
    gone.tag = None;
    acme.run(vec![gone]).await;
    assert!(acme.names("").await.is_empty());
    assert_eq!(acme.names("status=any").await.len(), 3);
    let item = acme.get(&format!("items/{one}")).await;
    assert_eq!(item["status"], "decommissioned");
    assert!(item["decommissioned_at"].is_string());
    acme.run(vec![unit("net", &[("one", "3")])]).await;
    assert_eq!(acme.id("one").await, one);
    let history = acme.get(&format!("items/{one}/history")).await;
    let told: Vec<_> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| text(&entry["change"]))
        .collect();
    assert_eq!(
        told,
        ["recommissioned", "decommissioned", "updated", "created"]
    );

    // Another tenant finds nothing, by list, search or id.
    let beta = nimbus.tenant(&acme.owner, "beta").await;
    nimbus
        .user(&acme.owner, &beta, "eve@beta.example", Some("admin"))
        .await;
    let eve = nimbus.token("beta", "eve@beta.example").await;
    let found = nimbus.get("/api/v1/cmdb/items?status=any", &eve).await.ok();
    assert!(names(&found).is_empty());
    let found = nimbus.get("/api/v1/cmdb/search?query=one", &eve).await.ok();
    assert!(names(&found).is_empty());
    for path in [
        format!("items/{one}"),
        format!("items/{one}/history"),
        format!("items/{one}/graph"),
        format!("items/{one}/relationships"),
        format!("items?tenant={}", acme.tenant),
    ] {
        let answer = nimbus.get(&format!("/api/v1/cmdb/{path}"), &eve).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
    // Whoever may only look moves nothing.
    nimbus
        .user(
            &acme.owner,
            &acme.tenant.to_string(),
            "vi@acme.example",
            Some("viewer"),
        )
        .await;
    let viewer = nimbus.token("acme", "vi@acme.example").await;
    let path = format!("/api/v1/cmdb/items/{one}");
    let body = Some(json!({"compartment": null}));
    let answer = nimbus
        .call("PATCH", &path, Some(&viewer), body.clone())
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let moved = nimbus
        .call("PATCH", &path, Some(&acme.admin), body)
        .await
        .ok();
    assert!(moved.get("compartment").is_none());
    let actions = nimbus
        .database
        .texts("SELECT DISTINCT action FROM nimbus_core.audit_logs WHERE action LIKE 'cmdb.%'")
        .await;
    assert!(
        actions.iter().any(|action| action == "cmdb.items.update"),
        "{actions:?}"
    );
}

#[tokio::test]
async fn items_are_searched_listed_in_pages_and_gone_through_without_end() {
    let nimbus = installation!();
    let acme = Inventory::new(&nimbus).await;
    let net = unit(
        "net",
        &[
            ("alpha", "1"),
            ("beta", "2"),
            ("gamma", "3"),
            ("delta", "4"),
        ],
    );
    acme.run(vec![net, unit("app", &[("web-front", "9")])])
        .await;
    // Pages have everything once, whatever the filter.
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = acme.get(&format!("items?limit=2{after}")).await;
        all.extend(names(&page));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(
        all,
        ["alpha", "app", "beta", "delta", "gamma", "net", "web-front"]
    );
    // By words that begin words, by attributes, and by structure.
    assert_eq!(acme.names("text=FRO%20we").await, ["web-front"]);
    assert!(acme.names("text=ront").await.is_empty());
    assert_eq!(acme.names("attribute=size=3").await, ["gamma"]);
    assert_eq!(
        acme.names("attribute=tags.team=blue,size=9").await,
        ["web-front"]
    );
    assert_eq!(acme.names("class=nimbus:unit").await, ["app", "net"]);
    assert_eq!(
        acme.names("semantic_type=VirtualNetwork&unit=app").await,
        ["web-front"]
    );
    assert_eq!(acme.names("cloud_resource_id=beta-id").await, ["beta"]);
    assert_eq!(
        acme.names("deployment=D1&environment=dev&provider=aws&text=del")
            .await,
        ["delta"]
    );
    assert!(acme.names("rehearsal=true").await.is_empty());
    for wrong in [
        "text=--",
        "status=gone",
        "attribute=size",
        "compartment=x",
        "source=y",
        "limit=0",
        "after=x",
    ] {
        let answer = nimbus
            .get(&format!("/api/v1/cmdb/items?{wrong}"), &acme.admin)
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    // One search over everything, in pages.
    let found = acme.get("search?query=net&limit=1").await;
    assert_eq!(found["items"][0]["type"], "resource", "{found}");
    let found = acme.get("search?query=dev&limit=2").await;
    assert_eq!(found["items"][0]["type"], "compartment", "{found}");
    let more = acme
        .get(&format!(
            "search?query=dev&limit=2&after={}",
            text(&found["next"])
        ))
        .await;
    assert_eq!(names(&more), ["app", "beta"], "{found} {more}");
    let classes = acme.get("search?query=vpc&types=class").await;
    assert_eq!(names(&classes), ["aws:ec2/vpc:Vpc"]);

    // alpha ← beta ← gamma ← delta by what they depend on; net contains all of them; app depends on net.
    let (alpha, delta) = (acme.id("alpha").await, acme.id("delta").await);
    let around = async |id: &str, query: &str| {
        let graph = acme.get(&format!("items/{id}/graph?{query}")).await;
        let items = graph["items"].as_array().unwrap().iter();
        let told: Vec<(u64, String)> = items
            .map(|one| (one["depth"].as_u64().unwrap(), text(&one["item"]["name"])))
            .collect();
        (
            told,
            graph["complete"] == true,
            graph["relationships"].as_array().unwrap().len(),
        )
    };
    let pairs = |told: &[(u64, &str)]| -> Vec<(u64, String)> {
        told.iter()
            .map(|(depth, name)| (*depth, (*name).to_owned()))
            .collect()
    };
    let (near, complete, edges) = around(&alpha, "depth=1").await;
    assert_eq!(
        (near, complete, edges),
        (pairs(&[(0, "alpha"), (1, "beta"), (1, "net")]), true, 2)
    );
    // A person closes the circle; it is gone through once all the same.
    let circle = json!({"source": alpha, "target": delta, "relationship": "backs_up"});
    let made = nimbus
        .post("/api/v1/cmdb/relationships", &acme.admin, circle.clone())
        .await
        .ok();
    let again = nimbus
        .post("/api/v1/cmdb/relationships", &acme.admin, circle)
        .await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let (whole, complete, edges) = around(&alpha, "depth=5").await;
    assert_eq!((whole.len(), complete), (7, true), "{whole:?}");
    // Three dependencies, five contained things, one need of a unit, and the circle.
    assert_eq!(edges, 10);
    // What is too much is cut, and the answer says so.
    let (some, complete, _) = around(&alpha, "depth=5&items=3").await;
    assert_eq!((some.len(), complete), (3, false));
    for wrong in ["depth=0", "depth=6", "items=0", "items=2001"] {
        let path = format!("/api/v1/cmdb/items/{alpha}/graph?{wrong}");
        assert_eq!(
            nimbus.get(&path, &acme.admin).await.status,
            StatusCode::BAD_REQUEST,
            "{wrong}"
        );
    }
    // A run keeps what it says, and takes nothing of what a person said.
    acme.run(vec![unit("net", &[("alpha", "5"), ("delta", "5")])])
        .await;
    let listed = acme.get(&format!("items/{alpha}/relationships")).await;
    let told: BTreeSet<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["said_by"]), text(&one["relationship"])))
        .collect();
    let expected = [
        ("person", "backs_up"),
        ("run", "contains"),
        ("run", "depends_on"),
    ];
    assert_eq!(
        told,
        expected
            .map(|(who, what)| (who.to_owned(), what.to_owned()))
            .into()
    );
    let of_run = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["said_by"] == "run");
    let delete = async |id: &str| {
        let path = format!("/api/v1/cmdb/relationships/{id}");
        nimbus.call("DELETE", &path, Some(&acme.admin), None).await
    };
    let kept = delete(&text(&of_run.unwrap()["id"])).await;
    assert_eq!(
        (kept.status, kept.json()["error"]["reference"].clone()),
        (StatusCode::CONFLICT, json!("NIM-1103"))
    );
    assert!(delete(&text(&made["id"])).await.status.is_success());
    let syncs = acme.get("syncs").await;
    let told: Vec<_> = syncs["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["unit"]), one["items"].clone()))
        .collect();
    assert_eq!(
        told,
        [("net".to_owned(), json!(3)), ("app".to_owned(), json!(2))]
    );
}

#[tokio::test]
async fn graphql_has_the_items_under_the_names_of_the_founding_document() {
    let nimbus = installation!();
    let acme = Inventory::new(&nimbus).await;
    acme.run(vec![unit("net", &[("alpha", "1"), ("beta", "2")])])
        .await;
    let ask = async |document: &str, variables: Value| {
        let answer = nimbus.graphql(&acme.admin, document, variables).await.ok();
        assert!(answer.get("errors").is_none(), "{document}: {answer}");
        answer["data"].clone()
    };
    let page = ask(
        "{ resources(filter: {text: \"alp\"}, pagination: {first: 1}) { __typename pageInfo { hasNextPage }
           nodes { __typename id name stateVersion pulumiUrn cloudResourceId compartmentId } } }",
        json!({}),
    )
    .await;
    let resources = &page["resources"];
    assert_eq!(resources["__typename"], "ResourceConnection");
    let alpha = &resources["nodes"][0];
    assert_eq!(
        (&alpha["__typename"], &alpha["name"]),
        (&json!("ConfigurationItem"), &json!("alpha"))
    );
    let found = ask(
        "query ($id: ID!, $folder: ID!) { resource(id: $id) { class attributes }
           resourceGraph(id: $id, depth: 2) { complete items { depth item { name } } }
           resourceHistory(id: $id) { nodes { change } }
           compartment(id: $folder) { name parentId }
           compartments(filter: {text: \"sho\"}) { name cursor }
           search(query: \"alpha\", types: [RESOURCE]) { hits { type name } endCursor } }",
        json!({"id": alpha["id"], "folder": alpha["compartmentId"]}),
    )
    .await;
    assert_eq!(found["resource"]["class"], "aws:ec2/vpc:Vpc");
    assert_eq!(found["resource"]["attributes"]["size"], "1");
    assert_eq!(found["resourceGraph"]["items"].as_array().unwrap().len(), 3);
    assert_eq!(found["resourceHistory"]["nodes"][0]["change"], "created");
    assert_eq!(found["compartment"]["name"], "dev");
    assert_eq!(found["compartments"][0]["name"], "shop");
    assert_eq!(
        found["search"],
        json!({"hits": [{"type": "resource", "name": "alpha"}], "endCursor": null})
    );
}
