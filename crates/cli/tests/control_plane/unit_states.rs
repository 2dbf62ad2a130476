//! The state of one unit over the API: its versions, what differs between them, and its repair. Part of a test that has a
//! server and runs already.

use serde_json::{Value, json};

use crate::deployments::ApiCaller;

fn of(unit: &str, what: &str) -> String {
    format!("/deployments/D1ACTS/units/{unit}/{what}?environment=dev&rehearsal=true")
}

fn repair(caller: &ApiCaller, unit: &str, body: Value) -> (u16, String) {
    let mut whole = json!({"environment": "dev", "rehearsal": true});
    for (name, value) in body.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let path = format!("/deployments/D1ACTS/units/{unit}/repair");
    caller.ask("POST", &path, "", &whole)
}

/// A run that is at work has the environment to itself.
pub(crate) fn is_refused_while_a_run_is_open(caller: &ApiCaller) {
    let (status, answer) = repair(caller, "first", json!({"version": "x", "act": "mend"}));
    assert_eq!(status, 409, "{answer}");
    assert!(answer.contains("NIM-0751"), "{answer}");
}

/// A unit that was made, and run again.
pub(crate) fn has_versions_with_differences(caller: &ApiCaller) {
    let history = caller.get(&of("first", "history"));
    let versions = history["versions"].as_array().unwrap();
    assert!(versions.len() >= 2, "{history}");
    let newest = versions[0]["number"].as_u64().unwrap();
    assert_eq!(versions.last().unwrap()["number"], 1, "newest first");
    assert!(versions.iter().all(|version| version["kept"] == true));
    let from_nothing = caller.get(&format!("{}&from=0&to=1", of("first", "difference")));
    let made = from_nothing["resources"].as_array().unwrap();
    assert!(made.iter().all(|one| one["op"] == "create"), "{made:?}");
    let thing = made.iter().find(|one| one["name"] == "thing").unwrap();
    let rows = thing["properties"].as_array().unwrap();
    let size = rows.iter().find(|row| row["path"] == "size").unwrap();
    assert_eq!((size.get("old"), &size["new"]), (None, &json!("\"1\"")));
    // It ran again and came to the same.
    let changed = caller.get(&format!("{}&from=1", of("first", "difference")));
    assert_eq!(
        (&changed["from"], &changed["to"]),
        (&json!("1"), &json!("current"))
    );
    assert_eq!(changed["resources"], json!([]), "{changed}");
    assert_eq!(changed["same"].as_u64().unwrap(), made.len() as u64);
    let beyond = format!(
        "/deployments/D1ACTS/units/first/difference?environment=dev&rehearsal=true&from={}",
        newest + 9
    );
    assert_eq!(caller.ask("GET", &beyond, "", &Value::Null).0, 404);
    assert_eq!(
        caller
            .ask("GET", &of("nobody", "history"), "", &Value::Null)
            .0,
        404
    );
}

/// Forgets a resource: shown first, on the very state that was looked at, and kept as a version.
pub(crate) fn is_mended_step_by_step(caller: &ApiCaller) {
    let health = caller.get(&of("second", "health"));
    assert_eq!(health["problems"], json!([]), "{health}");
    assert_eq!(
        (&health["pending"], &health["held"]),
        (&json!([]), &json!(false))
    );
    assert!(health.get("journal").is_none(), "{health}");
    let version = health["version"].as_str().unwrap();
    let whole = caller.get(&format!("{}&from=0", of("second", "difference")));
    let mut made = whole["resources"].as_array().unwrap().iter();
    let urn = made.find(|one| one["name"] == "thing").unwrap()["urn"].clone();
    let step = json!({"version": version, "act": "forget", "urn": urn, "dry_run": true});
    let (status, shown) = repair(caller, "second", step);
    assert_eq!(status, 200, "{shown}");
    let shown = crate::support::body_of(&shown);
    assert_eq!(shown["written"], false);
    let gone: Vec<_> = shown["difference"].as_array().unwrap().iter().collect();
    assert_eq!(
        (gone.len(), &gone[0]["op"]),
        (1, &json!("delete")),
        "{shown}"
    );
    assert_eq!(caller.get(&of("second", "health"))["version"], version);

    let versions = |caller: &ApiCaller| {
        let history = caller.get(&of("second", "history"));
        history["versions"].as_array().unwrap().len()
    };
    let before = versions(caller);
    let step = json!({"version": version, "act": "forget", "urn": urn});
    let (status, done) = repair(caller, "second", step.clone());
    assert_eq!(status, 200, "{done}");
    assert_eq!(crate::support::body_of(&done)["written"], true);
    assert_eq!(versions(caller), before + 1, "what was there before stays");
    let after = caller.get(&of("second", "health"));
    let count = |health: &Value| health["resources"].as_u64().unwrap();
    assert_eq!(count(&after), count(&health) - 1);
    // What was looked at is not what is there any more.
    let (status, stale) = repair(caller, "second", step);
    assert_eq!(status, 409, "{stale}");
    assert!(stale.contains("NIM-0217"), "{stale}");
    let nothing = json!({"version": after["version"], "act": "settle", "urn": urn});
    let (status, refused) = repair(caller, "second", nothing);
    assert_eq!(status, 422, "{refused}");
    assert!(refused.contains("NIM-0615"), "{refused}");
    let (status, unnamed) = repair(caller, "second", json!({"version": "x", "act": "forget"}));
    assert_eq!(status, 400, "{unnamed}");
}
