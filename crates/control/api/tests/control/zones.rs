//! The semantic layer, landing zones and environments in them.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::catalog::{bucket, published, put, tenant_texts};
use crate::support::{Installation, installation, text};

async fn account(nimbus: &Installation, token: &str, tenant: &str) {
    let path = format!("/api/v1/tenants/{tenant}/cloud-accounts/main");
    let body = json!({"provider": "aws", "credentials": {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE"}});
    put(nimbus, &path, token, body).await.ok();
}

#[tokio::test]
async fn the_semantic_layer_is_there_with_aliases_and_every_cloud_and_the_operator_edits_it() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("provider_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let clouds = nimbus.get("/api/v1/semantic/clouds", &admin).await.ok();
    let names: Vec<String> = clouds["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["name"]))
        .collect();
    assert_eq!(
        names,
        ["aws", "azure", "gcp", "kubernetes", "oci", "proxmox"]
    );
    let types = nimbus.get("/api/v1/semantic/types", &admin).await.ok();
    let aliases = |name: &str| {
        let items = types["items"].as_array().unwrap();
        items
            .iter()
            .find(|one| one["name"] == name)
            .map(|one| one["aliases"].clone())
    };
    for name in [
        "VirtualMachine",
        "Container",
        "BlockStorage",
        "VirtualNetwork",
        "FirewallRule",
    ] {
        assert!(aliases(name).is_some(), "{name}");
    }
    assert_eq!(aliases("VirtualMachine"), Some(json!(["Compute"])));
    assert_eq!(aliases("VirtualNetwork"), Some(json!(["Network"])));
    let mappings = nimbus.get("/api/v1/semantic/mappings", &admin).await.ok();
    let named = |kind: &str, cloud: &str| {
        let items = mappings["items"].as_array().unwrap();
        let found = items
            .iter()
            .find(|one| one["semantic_type"] == kind && one["provider"] == cloud);
        found.map(|one| one["names"].clone()).unwrap_or_default()
    };
    for (kind, proxmox, aws, azure, gcp, oci) in [
        (
            "Tenancy",
            json!(["Datacenter", "Cluster"]),
            json!(["Account"]),
            json!(["Subscription"]),
            json!(["Project"]),
            json!(["Tenancy"]),
        ),
        (
            "Compartment",
            json!(["Pool"]),
            json!(["Tags", "OUs"]),
            json!(["Resource Group"]),
            json!(["Folder"]),
            json!(["Compartment"]),
        ),
        (
            "VirtualNetwork",
            json!(["Bridge", "SDN VNet"]),
            json!(["VPC"]),
            json!(["VNet"]),
            json!(["VPC network"]),
            json!(["VCN"]),
        ),
        (
            "Subnet",
            json!(["SDN Subnet"]),
            json!(["Subnet"]),
            json!(["Subnet"]),
            json!(["Subnetwork"]),
            json!(["Subnet"]),
        ),
        (
            "VirtualMachine",
            json!(["QEMU VM", "LXC"]),
            json!(["EC2"]),
            json!(["VM"]),
            json!(["Compute Engine instance"]),
            json!(["Instance"]),
        ),
        (
            "Database",
            json!([]),
            json!(["RDS"]),
            json!(["SQL Database"]),
            json!(["Cloud SQL"]),
            json!(["ATP"]),
        ),
        (
            "LoadBalancer",
            json!([]),
            json!(["ALB", "NLB"]),
            json!(["LB"]),
            json!(["Cloud Load Balancing"]),
            json!(["LB"]),
        ),
        (
            "FirewallRule",
            json!(["Firewall rules"]),
            json!(["SG"]),
            json!(["NSG"]),
            json!(["VPC firewall rule"]),
            json!(["NSL"]),
        ),
    ] {
        let found = ["proxmox", "aws", "azure", "gcp", "oci"].map(|cloud| named(kind, cloud));
        assert_eq!(found, [proxmox, aws, azure, gcp, oci], "{kind}");
    }
    assert_eq!(
        named("BlockStorage", "proxmox"),
        json!(["ZFS", "Ceph", "LVM"])
    );
    assert_eq!(
        (named("BlockStorage", "aws"), named("ObjectStorage", "aws")),
        (json!(["EBS"]), json!(["S3"]))
    );
    let what = nimbus
        .get("/api/v1/semantic/resources/aws:ec2%2Fvpc:Vpc", &admin)
        .await
        .ok();
    assert_eq!(
        (&what["semantic_type"], &what["provider"]),
        (&json!("VirtualNetwork"), &json!("aws"))
    );
    let unknown = nimbus
        .get("/api/v1/semantic/resources/moon:rock:Rock", &admin)
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);

    // It is one for all: whoever may everything in a tenant does not change it.
    let queue = "/api/v1/semantic/types/Queue";
    let body = json!({"category": "data", "aliases": ["Message Queue"]});
    let refused = put(&nimbus, queue, &admin, body.clone()).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("NIM-0971"), "{}", refused.text);
    put(&nimbus, queue, &owner, body).await.ok();
    put(
        &nimbus,
        &format!("{queue}/clouds/aws"),
        &owner,
        json!({"names": ["SQS"], "resources": ["aws:sqs/queue:Queue"]}),
    )
    .await
    .ok();
    let what = nimbus
        .get("/api/v1/semantic/resources/aws:sqs%2Fqueue:Queue", &admin)
        .await
        .ok();
    assert_eq!(what["semantic_type"], "Queue");
    let taken = put(
        &nimbus,
        "/api/v1/semantic/types/Other",
        &owner,
        json!({"category": "data", "aliases": ["compute"]}),
    )
    .await;
    assert_eq!(
        taken.status,
        StatusCode::BAD_REQUEST,
        "a name means one type"
    );
    let root = nimbus.root.to_string();
    let mut bound = bucket("bucket");
    bound["semantic_type"] = json!("message queue");
    published(&nimbus, &owner, &root, bound).await;
    let used = nimbus.call("DELETE", queue, Some(&owner), None).await;
    assert_eq!(used.status, StatusCode::CONFLICT, "{}", used.text);
    assert!(used.text.contains("NIM-0983"), "{}", used.text);
    let trail = nimbus.database.texts("SELECT action FROM nimbus_core.audit_logs WHERE action = 'semantic.types.put' AND outcome = 'done'").await;
    assert_eq!(trail.len(), 1);
}

#[tokio::test]
async fn a_zone_is_published_with_an_account_of_its_cloud_and_has_a_platform_environment() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    let zones = "/api/v1/zones";
    let zone = json!({"name": "europe", "provider": "aws", "region": "eu-central-1", "account": "main",
        "system_services": [{"component": "bucket", "parameters": {"size": 3}}]});
    nimbus.post(zones, &owner, zone.clone()).await.ok();
    let publish = format!("{zones}/europe/publish");
    let refused = nimbus
        .post(&publish, &owner, json!({"rehearsal": true}))
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("NIM-0979") && refused.text.contains("main"),
        "{}",
        refused.text
    );
    account(&nimbus, &owner, &root).await;
    let refused = nimbus
        .post(&publish, &owner, json!({"rehearsal": true}))
        .await;
    assert!(
        refused.text.contains("NIM-0973"),
        "its services are published first: {}",
        refused.text
    );
    let status = nimbus
        .database
        .texts("SELECT status FROM nimbus_core.landing_zones")
        .await;
    assert_eq!(status, ["draft"], "nothing half-published");
    published(&nimbus, &owner, &root, bucket("bucket")).await;
    let hidden = nimbus.get(&format!("{zones}/europe"), &admin).await;
    assert_eq!(
        hidden.status,
        StatusCode::NOT_FOUND,
        "a draft is nobody else's"
    );
    let open = nimbus
        .post(&publish, &owner, json!({"rehearsal": true}))
        .await
        .ok();
    let platform = &open["platform"];
    assert_eq!(
        (&open["status"], &platform["status"], &platform["platform"]),
        (&json!("published"), &json!("provisioning"), &json!(true))
    );
    let again = nimbus
        .post(&publish, &owner, json!({"rehearsal": true}))
        .await
        .ok();
    assert_eq!(
        again["platform"]["run"], platform["run"],
        "its services are deployed once"
    );
    let runs = tenant_texts(
        &nimbus,
        &root,
        "SELECT environment || ' ' || action FROM {}.runs",
    )
    .await;
    assert_eq!(runs, ["platform deploy"]);
    // What the run ends with is what the environment is.
    let schema = "SELECT schema_name FROM nimbus_core.tenants WHERE parent_id IS NULL";
    let schema = nimbus.database.texts(schema).await.concat();
    let end = format!("UPDATE {schema}.runs SET status = 'running', began_at = now(), server = gen_random_uuid(), expires_at = now();
        UPDATE {schema}.runs SET status = 'ended', result = 'succeeded', server = NULL, expires_at = NULL");
    nimbus.database.run_as_administrator(&end).await;
    let shown = nimbus.get(&format!("{zones}/europe"), &owner).await.ok();
    assert_eq!(shown["platform"]["status"], "active");
    let instances = tenant_texts(&nimbus, &root, "SELECT status FROM {}.deployed_components").await;
    assert_eq!(instances, ["deployed"]);
    let seen = nimbus.get(zones, &admin).await.ok();
    assert_eq!(
        (&seen["items"][0]["name"], &seen["items"][0]["shared"]),
        (&json!("europe"), &json!(true))
    );
    let mut moved = zone;
    moved["account"] = Value::Null;
    let refused = put(&nimbus, &format!("{zones}/europe"), &owner, moved).await;
    assert!(refused.text.contains("NIM-0979"), "{}", refused.text);
    let busy = nimbus
        .call("DELETE", &format!("{zones}/europe"), Some(&owner), None)
        .await;
    assert_eq!(busy.status, StatusCode::CONFLICT, "{}", busy.text);
}

#[tokio::test]
async fn an_environment_has_what_its_template_demands_and_follows_its_run() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "admin@acme.example", Some("tenant_admin"))
        .await;
    let admin = nimbus.token("acme", "admin@acme.example").await;
    published(&nimbus, &owner, &root, bucket("bucket")).await;
    account(&nimbus, &owner, &root).await;
    let zones = "/api/v1/zones";
    nimbus
        .post(
            zones,
            &owner,
            json!({"name": "europe", "provider": "aws", "account": "main"}),
        )
        .await
        .ok();
    let template =
        json!({"mandatory_components": [{"component": "bucket", "parameters": {"size": 5}}]});
    put(
        &nimbus,
        &format!("{zones}/europe/templates/standard"),
        &owner,
        template,
    )
    .await
    .ok();
    let make = format!("{zones}/europe/environments");
    let body = json!({"template": "standard", "rehearsal": true});
    let early = nimbus
        .post(&format!("{make}/dev"), &admin, body.clone())
        .await;
    assert_eq!(early.status, StatusCode::NOT_FOUND, "the zone is a draft");
    nimbus
        .post(&format!("{zones}/europe/publish"), &owner, json!({}))
        .await
        .ok();
    for (name, body, words) in [
        ("dev", json!({"template": "other"}), "give one of standard"),
        ("platform", json!({}), "zone's own"),
        ("Not A Name", json!({}), "environment"),
    ] {
        let name = name.replace(' ', "%20");
        let refused = nimbus.post(&format!("{make}/{name}"), &admin, body).await;
        assert!(
            refused.status == StatusCode::BAD_REQUEST && refused.text.contains(words),
            "{}",
            refused.text
        );
    }
    // A rule about the component holds here too, and nothing is left of what it refuses.
    let rule = format!("/api/v1/tenants/{acme}/governance/bucket");
    put(
        &nimbus,
        &rule,
        &owner,
        json!({"allowed": true, "constraints": {"parameters": {"size": {"max": 4}}}}),
    )
    .await
    .ok();
    let refused = nimbus
        .post(&format!("{make}/dev"), &admin, body.clone())
        .await;
    assert!(refused.text.contains("NIM-0975"), "{}", refused.text);
    let left = tenant_texts(&nimbus, &acme, "SELECT id FROM {}.deployments").await;
    assert!(left.is_empty());
    nimbus.call("DELETE", &rule, Some(&owner), None).await.ok();

    let made = nimbus
        .post(&format!("{make}/dev"), &admin, body.clone())
        .await;
    assert_eq!(made.status, StatusCode::ACCEPTED, "{}", made.text);
    let made = made.json();
    assert_eq!(
        (&made["status"], &made["zone"]),
        (&json!("provisioning"), &json!("europe"))
    );
    let twice = nimbus.post(&format!("{make}/dev"), &admin, body).await;
    assert_eq!(twice.status, StatusCode::CONFLICT);
    let sizes = tenant_texts(
        &nimbus,
        &acme,
        "SELECT resolved_parameters ->> 'size' FROM {}.deployed_components",
    )
    .await;
    assert_eq!(sizes, ["5"]);
    let early = nimbus
        .call("DELETE", &format!("{make}/dev"), Some(&admin), None)
        .await;
    assert!(early.text.contains("NIM-0981"), "{}", early.text);
    // A run that fails leaves an environment that is not active.
    let run = text(&made["run"]);
    nimbus
        .post(&format!("/api/v1/runs/{run}/cancel"), &admin, json!({}))
        .await
        .ok();
    let shown = nimbus.get(&format!("{make}/dev"), &admin).await.ok();
    assert_eq!(shown["status"], "failed");
    let gone = nimbus
        .call("DELETE", &format!("{make}/dev"), Some(&admin), None)
        .await;
    assert_eq!(
        (gone.status, &gone.json()["status"]),
        (StatusCode::ACCEPTED, &json!("deleting"))
    );
    // Nothing is mandatory without a template.
    let plain = nimbus
        .post(&format!("{make}/stage"), &admin, json!({}))
        .await
        .json();
    assert_eq!(plain["status"], "active");
    let listed = nimbus
        .get("/api/v1/environments?zone=europe", &admin)
        .await
        .ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let used = nimbus
        .call("DELETE", &format!("{zones}/europe"), Some(&owner), None)
        .await;
    assert_eq!(used.status, StatusCode::CONFLICT, "{}", used.text);
    nimbus
        .post(&format!("{zones}/europe/retire"), &owner, json!({}))
        .await
        .ok();
    let closed = nimbus
        .post(&format!("{make}/prod"), &admin, json!({}))
        .await;
    assert_eq!(
        closed.status,
        StatusCode::NOT_FOUND,
        "a retired zone of the operator is not offered"
    );
}

#[tokio::test]
async fn a_zone_and_an_environment_show_resolvers_and_what_is_deployed() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let root = nimbus.root.to_string();
    published(&nimbus, &owner, &root, bucket("bucket")).await;
    account(&nimbus, &owner, &root).await;
    let zones = "/api/v1/zones";
    let zone = json!({"name": "europe", "provider": "aws", "account": "main"});
    nimbus.post(zones, &owner, zone).await.ok();
    let template =
        json!({"mandatory_components": [{"component": "bucket", "parameters": {"size": 5}}]});
    let path = format!("{zones}/europe/templates/standard");
    put(&nimbus, &path, &owner, template).await.ok();
    let path = format!("{zones}/europe/publish");
    nimbus.post(&path, &owner, json!({})).await.ok();
    let configure = format!("/api/v1/tenants/{root}/resolvers/naming/configuration");
    for (place, pattern) in [
        (json!({}), "{type}-{seq:03d}"),
        (json!({"landing_zone": "europe"}), "eu-{type}-{seq:03d}"),
        (
            json!({"landing_zone": "europe", "environment": "dev"}),
            "eu-dev-{type}-{seq:03d}",
        ),
        (json!({"environment": "prod"}), "prod-{type}-{seq:03d}"),
    ] {
        let mut body = place;
        body["config"] = json!({"pattern": pattern});
        put(&nimbus, &configure, &owner, body).await.ok();
    }
    let environment = format!("{zones}/europe/environments/dev");
    let body = json!({"template": "standard", "rehearsal": true});
    nimbus.post(&environment, &owner, body).await.ok();

    let zone = nimbus.get(&format!("{zones}/europe"), &owner).await.ok();
    let patterns = |of: &Value| -> Vec<String> {
        let all = of.as_array().expect("configurations").iter();
        all.map(|one| text(&one["config"]["pattern"])).collect()
    };
    let of_zone = ["eu-{type}-{seq:03d}", "eu-dev-{type}-{seq:03d}"];
    assert_eq!(patterns(&zone["resolver_configs"]), of_zone);
    let shown = nimbus.get(&environment, &owner).await.ok();
    assert_eq!(
        patterns(&shown["resolver_scope"]),
        [
            "{type}-{seq:03d}",
            "eu-{type}-{seq:03d}",
            "eu-dev-{type}-{seq:03d}"
        ]
    );
    let instance = &shown["instances"][0];
    assert_eq!(
        (
            &instance["component"],
            &instance["version"],
            &instance["status"]
        ),
        (&json!("bucket"), &json!(1), &json!("pending"))
    );
    assert_eq!(shown["mandatory_components"][0]["component"], "bucket");
    let all = json!(["deploy", "preview", "upgrade", "destroy", "refresh"]);
    assert_eq!(shown["operations"], all);
    let query = "{ zone(name: \"europe\") { resolverConfigs { landingZone environment config } }
        zoneEnvironment(zone: \"europe\", environment: \"dev\") { operations
            resolverScope { config } instances { component version } mandatoryComponents { component } } }";
    let found = nimbus.data(&owner, query, json!({})).await;
    assert_eq!(patterns(&found["zone"]["resolverConfigs"]), of_zone);
    let shown = &found["zoneEnvironment"];
    assert_eq!(
        shown["instances"],
        json!([{"component": "bucket", "version": 1}])
    );
    assert_eq!(shown["resolverScope"].as_array().map(Vec::len), Some(3));
    assert_eq!(shown["operations"], all);
}
