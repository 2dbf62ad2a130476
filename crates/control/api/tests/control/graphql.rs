//! GraphQL over the router: what it answers, and to whom.

use axum::http::{Request, StatusCode, header};
use nimbus_control_store::{NewDeployment, NewRun, StoreError};
use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};

use crate::catalog::bucket;
use crate::support::{Answer, Installation, ORIGIN, PASSWORD, installation, text};

impl Installation {
    pub(crate) async fn graphql(&self, token: &str, query: &str, variables: Value) -> Answer {
        let body = json!({"query": query, "variables": variables});
        self.post("/graphql", token, body).await
    }

    /// The data of a document that has to succeed.
    pub(crate) async fn data(&self, token: &str, query: &str, variables: Value) -> Value {
        let answer = self.graphql(token, query, variables).await.ok();
        assert!(answer.get("errors").is_none(), "{answer}");
        answer["data"].clone()
    }

    /// Deployments with a run each, made beside the API.
    pub(crate) async fn deployments(&self, tenant: &str, user: &str, count: usize) {
        let tenant: TenantId = tenant.parse().unwrap();
        let user: UserId = user.parse().unwrap();
        let made: Result<(), StoreError> = self
            .database
            .store
            .tenant_tx(tenant, async |tx| {
                for number in 0..count {
                    let id = format!("D{number:04}");
                    let new = NewDeployment {
                        id: id.clone(),
                        organization: "o".to_owned(),
                        project: format!("p{number}"),
                        template: "minimal".to_owned(),
                        manifest: MANIFEST.replace("D0000", &id),
                        created_by: user,
                    };
                    tx.deployment_create(&new).await?;
                    let run = NewRun {
                        deployment: id,
                        action: "deploy".to_owned(),
                        environment: "dev".to_owned(),
                        rehearsal: true,
                        request: json!({}),
                        catalog: json!({}),
                        requested_by: user,
                        trace_id: None,
                    };
                    tx.run_queue(&run).await?;
                }
                Ok(())
            })
            .await;
        made.unwrap();
    }
}

const MANIFEST: &str = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata:\n  deploymentId: D0000\n  organization: o\n  project: p\n  template: minimal\nspec:\n  environments:\n    dev:\n      enabled: true\n      region: eu-west-1\n  stacks: {}\n";

pub(crate) fn codes(answer: &Value) -> Vec<String> {
    let errors = answer["errors"].as_array().into_iter().flatten();
    errors
        .map(|error| text(&error["extensions"]["code"]))
        .collect()
}

#[tokio::test]
async fn tenants_and_deployments_are_read_in_pages_with_filters() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus.tenant(&owner, "beta").await;
    let ann = nimbus
        .user(&owner, &acme, "ann@acme.example", Some("admin"))
        .await;
    nimbus.deployments(&acme, &ann, 5).await;

    let query = "query($parent: ID) { viewer { user { email } tenant { slug children { slug parent { id } } } roles }
         tenants(filter: {parentId: $parent}) { nodes { id slug } pageInfo { hasNextPage } } }";
    let root = nimbus.root.to_string();
    let found = nimbus.data(&owner, query, json!({"parent": root})).await;
    assert_eq!(found["viewer"]["user"]["email"], "owner@operator.example");
    let slugs: Vec<_> = found["tenants"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["slug"]))
        .collect();
    assert_eq!(slugs, ["acme", "beta"]);
    assert_eq!(found["viewer"]["tenant"]["children"][1]["slug"], "beta");
    assert_eq!(
        found["viewer"]["tenant"]["children"][0]["parent"]["id"],
        root
    );

    // From page to page without losing or repeating one, by id of the tenant and by its slug.
    let query = "query($after: String, $tenant: ID) { deployments(filter: {tenantId: $tenant}, pagination: {first: 2, after: $after}) {
         edges { cursor node { id createdBy { email } enabledEnvironments runs(first: 3) { number status } environments { name lastRun { id } } } }
         pageInfo { hasNextPage endCursor } } }";
    let mut seen = Vec::new();
    let mut after = Value::Null;
    for tenant in [acme.as_str(), "acme", "acme"] {
        let page = nimbus
            .data(&owner, query, json!({"after": after, "tenant": tenant}))
            .await;
        let page = &page["deployments"];
        for edge in page["edges"].as_array().unwrap() {
            assert_eq!(edge["cursor"], edge["node"]["id"]);
            assert_eq!(edge["node"]["createdBy"]["email"], "ann@acme.example");
            assert_eq!(edge["node"]["runs"][0]["number"], "R0001");
            assert_eq!(edge["node"]["environments"][0]["name"], "dev");
            seen.push(text(&edge["node"]["id"]));
        }
        after = page["pageInfo"]["endCursor"].clone();
    }
    assert_eq!(seen, ["D0000", "D0001", "D0002", "D0003", "D0004"]);
    let one = nimbus.data(&owner, "{ deployments(filter: {tenantId: \"acme\", project: \"p3\"}) { nodes { id } } runs(filter: {tenantId: \"acme\", deployment: \"D0002\"}) { nodes { deployment { project } requestedBy { id } } } }", json!({})).await;
    assert_eq!(one["deployments"]["nodes"], json!([{"id": "D0003"}]));
    assert_eq!(
        one["runs"]["nodes"],
        json!([{"deployment": {"project": "p2"}, "requestedBy": {"id": ann}}])
    );
}

#[tokio::test]
async fn changes_are_the_use_cases_with_their_records_and_keys() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let make = "mutation($slug: String!, $key: String) { createTenant(input: {slug: $slug, name: \"Acme\"}, idempotencyKey: $key) { id slug generation parent { id } } }";
    let first = nimbus
        .data(&owner, make, json!({"slug": "acme", "key": "k1"}))
        .await;
    let acme = text(&first["createTenant"]["id"]);
    assert_eq!(
        first["createTenant"]["parent"]["id"],
        nimbus.root.to_string()
    );
    // The same again is the same, and something else under the same key is refused.
    let again = nimbus
        .data(&owner, make, json!({"slug": "acme", "key": "k1"}))
        .await;
    assert_eq!(again, first);
    let other = nimbus
        .graphql(&owner, make, json!({"slug": "beta", "key": "k1"}))
        .await
        .ok();
    assert_eq!(codes(&other), ["CONFLICT"]);
    let taken = nimbus
        .graphql(&owner, make, json!({"slug": "acme", "key": null}))
        .await
        .ok();
    assert_eq!(codes(&taken), ["ALREADY_EXISTS"]);

    let update = "mutation($id: ID!, $generation: Int) { updateTenant(id: $id, input: {name: \"Acme Ltd\", expectedGeneration: $generation}) { name generation } }";
    let stale = nimbus
        .graphql(&owner, update, json!({"id": acme, "generation": 99}))
        .await
        .ok();
    assert_eq!(codes(&stale), ["CONFLICT"]);
    let changed = nimbus
        .data(&owner, update, json!({"id": acme, "generation": 1}))
        .await;
    assert_eq!(
        changed["updateTenant"],
        json!({"name": "Acme Ltd", "generation": 2})
    );

    // A secret is shown once.
    let robot = nimbus.data(&owner, "mutation($t: ID) { createUser(tenantId: $t, input: {email: \"robot\", serviceAccount: true}) { id kind } }", json!({"t": acme})).await;
    let key = "mutation($t: ID, $of: ID!) { createApiKey(tenantId: $t, input: {serviceAccountId: $of, name: \"ci\", scopes: [\"users:read\"]}, idempotencyKey: \"k2\") { secret serviceAccount { email } } }";
    let variables = json!({"t": acme, "of": robot["createUser"]["id"]});
    let made = nimbus.data(&owner, key, variables.clone()).await;
    assert!(text(&made["createApiKey"]["secret"]).starts_with("nbk_"));
    assert_eq!(made["createApiKey"]["serviceAccount"]["email"], "robot");
    let repeated = nimbus.graphql(&owner, key, variables).await.ok();
    assert_eq!(repeated["errors"][0]["extensions"]["reference"], "NIM-0889");

    // A wrong field is told by its name, in the form of every error.
    let wrong = nimbus.graphql(&owner, "mutation { createUser(tenantId: \"acme\", input: {email: \"nonsense\", password: \"x\"}) { id } }", json!({})).await.ok();
    let problem = &wrong["errors"][0]["extensions"];
    assert_eq!(
        (&problem["code"], &problem["details"][0]["field"]),
        (&json!("VALIDATION_ERROR"), &json!("email"))
    );
    assert!(text(&problem["trace_id"]).len() == 32 && text(&problem["timestamp"]).ends_with('Z'));

    let audit = nimbus.data(&owner, "{ auditLogs(filter: {tenantId: \"acme\", newestFirst: true}, pagination: {first: 100}) { nodes { action outcome } } mine: auditLogs(pagination: {first: 100}) { nodes { action outcome } } }", json!({})).await;
    let recorded: Vec<_> = ["auditLogs", "mine"]
        .iter()
        .flat_map(|list| audit[*list]["nodes"].as_array().unwrap())
        .map(|one| (text(&one["action"]), text(&one["outcome"])))
        .collect();
    for (action, outcome) in [
        ("tenants.create", "done"),
        ("tenants.create", "failed"),
        ("tenants.update", "done"),
        ("users.create", "done"),
        ("users.create", "failed"),
        ("keys.create", "done"),
        ("graphql.execute", "done"),
    ] {
        assert!(
            recorded.contains(&(action.to_owned(), outcome.to_owned())),
            "{action} {outcome}: {recorded:?}"
        );
    }
}

#[tokio::test]
async fn the_catalog_and_landing_zones_are_the_ones_of_rest() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let body = bucket("bucket");
    let make = "mutation($contract: JSON!, $settings: JSON, $files: JSON!) {
         createComponent(tenantId: \"acme\", idempotencyKey: \"c1\", input: {name: \"bucket\", provider: \"aws\",
             semanticType: \"Storage\", language: \"typescript\", contract: $contract, settings: $settings, files: $files}) {
             name semanticType version shared }
         publishComponent(tenantId: \"acme\", name: \"bucket\", input: {changelog: \"first\"}) {
             created version { version semanticVersion } }
         again: publishComponent(tenantId: \"acme\", name: \"bucket\", input: {changelog: \"again\"}) { created }
         setGovernanceRule(tenantId: \"acme\", component: \"bucket\", input: {allowed: true, maxInstances: 3,
             constraints: {parameters: {size: {max: 4}}}}) { maxInstances inherited constraints }
         createZone(tenantId: \"acme\", input: {name: \"west\", provider: \"aws\",
             systemServices: [{component: \"bucket\", parameters: {size: 1}}]}) { status systemServices { component parameters } } }";
    let variables =
        json!({"contract": body["contract"], "settings": body["settings"], "files": body["files"]});
    let made = nimbus.data(&owner, make, variables).await;
    assert_eq!(
        made["createComponent"],
        json!({"name": "bucket", "semanticType": "BlockStorage", "version": null, "shared": false})
    );
    assert_eq!(
        made["publishComponent"],
        json!({"created": true, "version": {"version": 1, "semanticVersion": "1.0.0"}})
    );
    assert_eq!(made["again"]["created"], false);
    let rule = &made["setGovernanceRule"];
    assert_eq!(
        (&rule["maxInstances"], &rule["inherited"]),
        (&json!(3), &json!(false))
    );
    assert_eq!(
        rule["constraints"]["parameters"]["size"]["max"].as_f64(),
        Some(4.0)
    );
    assert_eq!(
        made["createZone"],
        json!({"status": "draft", "systemServices": [{"component": "bucket", "parameters": {"size": 1}}]})
    );

    let query = "{ components(filter: {tenantId: \"acme\", text: \"bucket\"}) { nodes { name version } }
         component(tenantId: \"acme\", name: \"bucket\") { draft { files } newest { files contract { outputs } changes { place } } }
         componentVersions(tenantId: \"acme\", name: \"bucket\") { nodes { version files } }
         componentInstances(tenantId: \"acme\", name: \"bucket\") { nodes { id } }
         governanceRules(tenantId: \"acme\") { component allowed }
         clouds(tenantId: \"acme\") { name }
         semanticTypes(tenantId: \"acme\") { name aliases }
         resourceMeaning(tenantId: \"acme\", resource: \"aws:ec2/vpc:Vpc\") { semanticType provider }
         zones(tenantId: \"acme\") { nodes { name shared } }
         zone(tenantId: \"acme\", name: \"west\") { templates { name } platform { name } }
         zoneEnvironments(tenantId: \"acme\") { nodes { name } } }";
    let found = nimbus.data(&owner, query, json!({})).await;
    assert_eq!(
        found["components"]["nodes"],
        json!([{"name": "bucket", "version": 1}])
    );
    // A component has a project file of its own where nobody wrote one.
    let mut files = body["files"].clone();
    files["src/Pulumi.yaml"] = json!("name: bucket\nruntime: nodejs\n");
    assert_eq!(found["component"]["draft"]["files"], files);
    assert_eq!(found["component"]["newest"]["files"], files);
    assert_eq!(
        found["componentVersions"]["nodes"],
        json!([{"version": 1, "files": null}])
    );
    assert_eq!(
        found["governanceRules"],
        json!([{"component": "bucket", "allowed": true}])
    );
    assert_eq!(found["clouds"][0]["name"], "aws");
    assert_eq!(
        found["resourceMeaning"],
        json!({"semanticType": "VirtualNetwork", "provider": "aws"})
    );
    assert_eq!(
        found["zones"]["nodes"],
        json!([{"name": "west", "shared": false}])
    );
    assert_eq!(found["zone"], json!({"templates": [], "platform": null}));

    // What REST made since is there too, and what is another tenant's is not.
    let other = nimbus.tenant(&owner, "other").await;
    let path = format!("/api/v1/components?tenant={acme}");
    nimbus.post(&path, &owner, bucket("second")).await.ok();
    let names = "query($t: ID) { components(filter: {tenantId: $t}) { nodes { name } } }";
    let own = nimbus.data(&owner, names, json!({"t": acme})).await;
    assert_eq!(
        own["components"]["nodes"],
        json!([{"name": "bucket"}, {"name": "second"}])
    );
    let others = nimbus.data(&owner, names, json!({"t": other})).await;
    assert_eq!(others["components"]["nodes"], json!([]));
}

#[tokio::test]
async fn signing_in_needs_no_sign_in_and_everything_else_does() {
    let nimbus = installation!();
    nimbus.set_up().await;
    let send = async |body: Value| nimbus.call("POST", "/graphql", None, Some(body)).await;
    let login = "mutation($p: String!) { login(input: {email: \"owner@operator.example\", password: $p}) { accessToken refreshToken expiresIn } }";
    let wrong = send(json!({"query": login, "variables": {"p": "wrong"}}))
        .await
        .ok();
    assert_eq!(codes(&wrong), ["UNAUTHENTICATED"]);
    let signed_in = send(json!({"query": login, "variables": {"p": PASSWORD}}))
        .await
        .ok();
    let tokens = &signed_in["data"]["login"];
    let me = nimbus
        .data(&text(&tokens["accessToken"]), "{ me { email } }", json!({}))
        .await;
    assert_eq!(me["me"]["email"], "owner@operator.example");
    let refresh = json!({"query": "mutation($t: String!) { refreshToken(refreshToken: $t) { accessToken } }", "variables": {"t": tokens["refreshToken"]}});
    let fresh = send(refresh).await.ok();
    let token = text(&fresh["data"]["refreshToken"]["accessToken"]);
    nimbus.data(&token, "mutation { logout }", json!({})).await;
    let gone = nimbus.graphql(&token, "{ me { id } }", json!({})).await;
    assert_eq!(gone.status, StatusCode::UNAUTHORIZED);
    for query in [
        "{ me { id } }",
        "{ tenants { nodes { id } } }",
        "mutation { logout }",
        "{ a: __typename me { id } }",
        "nonsense",
    ] {
        assert_eq!(
            send(json!({"query": query})).await.status,
            StatusCode::UNAUTHORIZED,
            "{query}"
        );
    }
    // A cookie counts only for requests of the console's own pages.
    let body = json!({"tenant": "", "email": "owner@operator.example", "password": PASSWORD, "cookies": true});
    let request = Request::builder()
        .method("POST")
        .uri("/api/v1/auth/login")
        .header(header::ORIGIN, ORIGIN);
    let by_cookie = nimbus.send(request, Some(&body)).await;
    let cookie: Vec<_> = by_cookie
        .headers
        .get_all(header::SET_COOKIE)
        .iter()
        .map(|one| one.to_str().unwrap().split(';').next().unwrap().to_owned())
        .collect();
    let csrf = text(&by_cookie.json()["csrf_token"]);
    let mut statuses = Vec::new();
    for (origin, code) in [
        (ORIGIN, csrf.as_str()),
        ("https://evil.example", &csrf),
        (ORIGIN, "x"),
    ] {
        let request = Request::builder()
            .method("POST")
            .uri("/graphql")
            .header(header::ORIGIN, origin)
            .header(header::COOKIE, cookie.join("; "))
            .header("x-nimbus-csrf", code);
        statuses.push(
            nimbus
                .send(request, Some(&json!({"query": "{ me { id } }"})))
                .await
                .status
                .as_u16(),
        );
    }
    assert_eq!(statuses, [200, 403, 403]);
}

#[tokio::test]
async fn pages_are_ours_and_load_nothing_from_elsewhere() {
    let nimbus = installation!();
    for (path, has) in [
        ("/graphql/explorer", "<script src=\"/graphql/explorer.js\""),
        ("/graphql/explorer.js", "fetch(\"/graphql\""),
        ("/graphql/explorer.css", "--line"),
        ("/graphql/schema.graphql", "type Query"),
        ("/api/v1/docs", "<script src=\"/api/v1/docs.js\""),
        ("/api/v1/docs.js", "/api/v1/openapi.json"),
        ("/api/v1/docs.css", "--line"),
    ] {
        let answer = nimbus.call("GET", path, None, None).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert!(answer.text.contains(has), "{path}");
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'")
                && !policy.contains("unsafe"),
            "{policy}"
        );
        for outside in [
            "http://", "https://", "//cdn", "<script>", "style=", "onclick=",
        ] {
            assert!(!answer.text.contains(outside), "{path} has {outside}");
        }
    }
}
