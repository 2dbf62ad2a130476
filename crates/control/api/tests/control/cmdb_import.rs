//! Imports of configuration items: all of a file or nothing of it, and every wrong line is named.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::cmdb::Inventory;
use crate::support::{Answer, installation, text};

async fn import(acme: &Inventory<'_>, format: &str, content: &str, dry_run: bool) -> Answer {
    let body = json!({"format": format, "content": content, "dry_run": dry_run});
    acme.nimbus
        .post("/api/v1/cmdb/imports", &acme.admin, body)
        .await
}

async fn imported(acme: &Inventory<'_>) -> Vec<Value> {
    let found = acme.get("items?source=import&status=any").await;
    found["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_file_is_imported_whole_or_not_at_all_and_wrong_lines_are_named() {
    let nimbus = installation!();
    let acme = Inventory::new(&nimbus).await;
    let put = async |class: &str, body: Value| {
        let path = format!("/api/v1/cmdb/classes/{class}");
        nimbus
            .call("PUT", &path, Some(&acme.admin), Some(body))
            .await
    };
    let schema =
        json!({"type": "object", "properties": {"ports": {"type": "integer", "minimum": 1}}});
    let class =
        json!({"attributes": schema, "relationships": ["protects"], "description": "a box"});
    put("firewall", class).await.ok();
    put("host", json!({})).await.ok();
    let broken = put(
        "odd",
        json!({"attributes": {"type": "object", "properties": 7}}),
    )
    .await;
    assert_eq!(
        broken.json()["error"]["reference"],
        "NIM-1101",
        "{}",
        broken.text
    );

    let good = "{\"key\": \"fw-1\", \"class\": \"firewall\", \"name\": \"edge\", \"attributes\": {\"ports\": 8, \"adminPassword\": \"hunter2\"}, \
                \"relationships\": [{\"relationship\": \"protects\", \"target\": \"host-1\"}]}\n\
                {\"key\": \"host-1\", \"class\": \"host\"}\n";
    let bad = format!(
        "{good}nonsense\n{}\n{}\n{}\n",
        "{\"key\": \"fw-2\", \"class\": \"firewall\", \"attributes\": {\"ports\": 0}}",
        "{\"key\": \"x\", \"class\": \"no-such-class\", \"compartment\": \"no/such\"}",
        "{\"key\": \"fw-3\", \"class\": \"firewall\", \"relationships\": [{\"relationship\": \"eats\", \"target\": \"host-9\"}]}",
    );
    // What cannot be read is told first, and by line.
    let refused = import(&acme, "jsonl", &bad, false).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let error = refused.json()["error"].clone();
    assert_eq!(error["reference"], "NIM-1100");
    assert!(text(&error["message"]).starts_with("line 3: "), "{error}");
    // Then what only the server knows, all of it at once.
    let readable = bad.replace("nonsense\n", "");
    let refused = import(&acme, "jsonl", &readable, false).await;
    let error = refused.json()["error"].clone();
    let lines: Vec<_> = error["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["field"]))
        .collect();
    assert_eq!(
        lines,
        ["line 3", "line 4", "line 4", "line 5", "line 5"],
        "{error}"
    );
    assert!(imported(&acme).await.is_empty(), "nothing is half imported");
    let tried = acme.get("imports").await;
    let newest = &tried["items"][0];
    assert_eq!(
        (
            &newest["status"],
            &newest["problem_count"],
            &newest["problems"][0]["line"]
        ),
        (&json!("failed"), &json!(5), &json!(3))
    );

    // Looking first changes nothing.
    let seen = import(&acme, "jsonl", good, true).await.ok();
    assert_eq!(
        (&seen["created"], &seen["dry_run"]),
        (&json!(2), &json!(true))
    );
    assert!(imported(&acme).await.is_empty());
    let done = import(&acme, "jsonl", good, false).await.ok();
    assert_eq!(
        (&done["created"], &done["status"]),
        (&json!(2), &json!("succeeded"))
    );
    let items = imported(&acme).await;
    let edge = items.iter().find(|item| item["key"] == "fw-1").unwrap();
    assert_eq!(
        (&edge["name"], &edge["attributes"]["ports"]),
        (&json!("edge"), &json!(8))
    );
    assert!(!edge.to_string().contains("hunter2"), "{edge}");
    let around = acme
        .get(&format!("items/{}/graph", text(&edge["id"])))
        .await;
    assert_eq!(around["relationships"][0]["relationship"], "protects");
    // The same file changes nothing; another one, in the other form, updates and takes away.
    let again = import(&acme, "jsonl", good, false).await.ok();
    assert_eq!(again["unchanged"], 2);
    let rows = "key,class,name,status\nfw-1,firewall,edge-2,\nhost-1,host,,decommissioned\n";
    let changed = import(&acme, "csv", rows, false).await.ok();
    assert_eq!(
        (&changed["updated"], &changed["decommissioned"]),
        (&json!(1), &json!(1))
    );
    let found = acme.get("items?text=edge").await;
    assert_eq!(
        found["items"][0]["id"], edge["id"],
        "a key stays the same item"
    );
    let refused = import(&acme, "csv", "key,class\nx\n", false).await;
    assert!(refused.text.contains("line 2"), "{}", refused.text);
    assert_eq!(
        import(&acme, "xml", "x", false).await.status,
        StatusCode::BAD_REQUEST
    );

    // Over GraphQL it is the same job.
    let document =
        "mutation ($file: String!) { importResources(input: {format: \"jsonl\", content: $file})
        { __typename status created unchanged problems { line } } }";
    let answer = nimbus
        .graphql(
            &acme.admin,
            document,
            json!({"file": "{\"key\": \"host-2\", \"class\": \"host\"}"}),
        )
        .await
        .ok();
    let job = &answer["data"]["importResources"];
    assert_eq!(
        (&job["__typename"], &job["created"]),
        (&json!("ImportJob"), &json!(1)),
        "{answer}"
    );
    // A user who may change items may not bring in files of them.
    let tenant = acme.tenant.to_string();
    nimbus
        .user(&acme.owner, &tenant, "bob@acme.example", Some("user"))
        .await;
    let bob = nimbus.token("acme", "bob@acme.example").await;
    let body = json!({"format": "jsonl", "content": good});
    let refused = nimbus.post("/api/v1/cmdb/imports", &bob, body).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}
