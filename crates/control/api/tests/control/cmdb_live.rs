//! Configuration items that come, change and go are told one by one, to whoever may read them.

use nimbus_control_store::MOST_ITEMS_TOLD;
use serde_json::{Value, json};

use crate::cmdb::{Inventory, unit};
use crate::live_wire::WireClient;
use crate::socket_io::Served;
use crate::support::{Installation, installation, text};

async fn import(nimbus: &Installation, token: &str, lines: &[Value]) {
    let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let body = json!({"format": "jsonl", "content": content});
    nimbus.post("/api/v1/cmdb/imports", token, body).await.ok();
}

/// The next event of this type about the item with this key.
async fn of_key(client: &mut WireClient, kind: &str, key: &str) -> Value {
    loop {
        let event = client.event(kind).await;
        if event["data"]["key"] == key {
            return event;
        }
    }
}

#[tokio::test]
async fn items_that_come_change_and_go_are_told_to_who_may_read_them() {
    let nimbus = installation!();
    let acme = Inventory::new(&nimbus).await;
    let _relay = nimbus.relay();
    let served = Served::new(nimbus.router.clone()).await;
    let tenant = acme.tenant.to_string();
    nimbus
        .user(&acme.owner, &tenant, "nobody@acme.example", None)
        .await;
    let nobody = nimbus.token("acme", "nobody@acme.example").await;
    let (mut admin, _) = WireClient::connected(&served, json!({"token": acme.admin})).await;
    let (mut other, _) = WireClient::connected(&served, json!({"token": nobody})).await;
    let path = "/api/v1/cmdb/classes/host";
    nimbus
        .call("PUT", path, Some(&acme.admin), Some(json!({})))
        .await
        .ok();

    let host = |size: i64, status: &str| json!({"key": "h-1", "class": "host", "name": "one", "status": status, "attributes": {"size": size}});
    import(&nimbus, &acme.admin, &[host(1, "active")]).await;
    let made = of_key(&mut admin, "resource.created", "h-1").await;
    let id = text(&made["data"]["resource_id"]);
    assert_eq!(made["data"]["resource_type"], "host");
    assert_eq!(made["tenant_id"], tenant);
    // Whoever joins the room of the item hears of it; who may not read it finds no such room.
    let room = json!({"room": format!("resource:{id}")});
    assert_eq!(admin.ask("subscribe", room.clone()).await["ok"], true);
    assert_eq!(other.ask("subscribe", room).await["ok"], false);

    import(&nimbus, &acme.admin, &[host(2, "active")]).await;
    let changed = of_key(&mut admin, "resource.updated", "h-1").await;
    assert_eq!(changed["data"]["resource_id"], id);
    assert!(
        changed["data"]["changes"].to_string().contains("size"),
        "{changed}"
    );
    // The same file again changes nothing, and nothing is told of it.
    import(&nimbus, &acme.admin, &[host(2, "active")]).await;
    import(&nimbus, &acme.admin, &[host(2, "decommissioned")]).await;
    let gone = of_key(&mut admin, "resource.deleted", "h-1").await;
    assert_eq!(gone["data"]["resource_id"], id);

    // What a run leaves is told with its deployment, and where.
    acme.run(vec![unit("net", &[("vpc", "1")])]).await;
    let mut units = Vec::new();
    while units.len() < 2 {
        let event = admin.event("resource.created").await;
        assert_eq!(event["data"]["unit"], "net");
        assert_eq!(event["data"]["environment"], "dev");
        units.push(text(&event["data"]["resource_type"]));
    }
    assert!(units.contains(&"nimbus:unit".to_owned()), "{units:?}");

    // Of very many the first are told one by one, and the numbers of all.
    let count = MOST_ITEMS_TOLD + 7;
    let many: Vec<Value> = (0..count)
        .map(|number| json!({"key": format!("m-{number}"), "class": "host"}))
        .collect();
    import(&nimbus, &acme.admin, &many).await;
    let mut told = 0;
    let counted = loop {
        let (kind, said) = admin.packet().await;
        match kind.as_str() {
            "event:resource.created" => told += 1,
            "event:cmdb.changed" if said["data"]["changes"]["counts"]["created"] == count => {
                break said;
            }
            _ => {}
        }
    };
    assert_eq!(told, MOST_ITEMS_TOLD, "{counted}");

    // Who may not read items has heard of none.
    nimbus
        .call(
            "PATCH",
            &format!("/api/v1/tenants/{tenant}"),
            Some(&acme.owner),
            Some(json!({"name": "Acme, renamed"})),
        )
        .await
        .ok();
    nimbus.post("/api/v1/auth/logout", &nobody, json!({})).await;
    loop {
        let (kind, said) = other.packet().await;
        assert!(
            !kind.starts_with("event:resource.") && !kind.starts_with("event:cmdb."),
            "{said}"
        );
        if kind == "ended" || kind == "event:closing" {
            break;
        }
    }
}
