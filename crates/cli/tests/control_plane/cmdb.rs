//! Configuration items of a deployment that a server rehearsed, over the API and on the command line. Part of a test that
//! has a server and runs already.

use std::fs;

use serde_json::Value;

use crate::deployments::ApiCaller;
use crate::support::Site;

fn items(list: &Value) -> &Vec<Value> {
    list["items"].as_array().unwrap_or_else(|| panic!("{list}"))
}

fn named<'a>(list: &'a Value, unit: &str, class: &str) -> &'a Value {
    let found = items(list)
        .iter()
        .find(|item| item["unit"] == unit && item["class"] == class);
    found.unwrap_or_else(|| panic!("{unit} {class}: {list}"))
}

/// The environment was deployed: two units with one thing each.
pub(crate) fn has_the_items_of_both_units(site: &Site, caller: &ApiCaller) {
    let list = caller.get("/cmdb/items");
    assert_eq!(items(&list).len(), 4, "{list}");
    let thing = named(&list, "first", "demo:index:Thing");
    for (field, expected) in [
        ("deployment", "D1ACTS"),
        ("environment", "dev"),
        ("name", "thing"),
        ("status", "active"),
        ("source", "run"),
    ] {
        assert_eq!(thing[field], expected, "{thing}");
    }
    assert_eq!(thing["rehearsal"], true);
    assert_eq!(thing["attributes"]["size"], "1", "{thing}");
    let version = thing["state_version"].as_str().unwrap_or_default();
    assert_eq!(version.len(), 64, "{thing}");
    let unit = named(&list, "first", "nimbus:unit");
    let output = &unit["attributes"]["first"];
    assert_eq!(output, &thing["cloud_resource_id"], "the unit's outputs");
    let synced = caller.get("/cmdb/syncs");
    assert_eq!(items(&synced).len(), 2, "{synced}");
    let behind = |one: &Value| one.get("problem").is_some();
    assert!(!items(&synced).iter().any(behind), "{synced}");

    // The same on the command line: from one unit to the thing of the other.
    let id = named(&list, "second", "nimbus:unit")["id"]
        .as_str()
        .unwrap();
    let graph = site.ask(&["cmdb", "graph", id, "--depth", "3"]);
    let around = graph["data"]["items"].as_array().unwrap();
    assert_eq!(around.len(), 4, "{graph}");
    assert_eq!(graph["data"]["complete"], true);
    let found = site.ask(&["cmdb", "search", "DEMO", "--types", "resource"]);
    assert_eq!(items(&found["data"]).len(), 2, "{found}");
    let listed = site.ask(&["cmdb", "list", "--unit", "first", "--attribute", "size=1"]);
    assert_eq!(items(&listed["data"])[0]["id"], thing["id"]);
    let history = site.ask(&["cmdb", "history", thing["id"].as_str().unwrap()]);
    let first = items(&history["data"]).last().unwrap();
    assert_eq!(first["change"], "created", "{history}");

    // A file with a wrong line brings nothing in, and says which line it is.
    site.ask(&["cmdb", "class", "host"]);
    let file = site.folder.path().join("hosts.csv");
    fs::write(&file, "key,class\nh-1,host\nh-2,nothing\n").unwrap();
    let path = file.display().to_string();
    let refused = site.run_with(&["cmdb", "import", &path, "--json"], "");
    assert_ne!(refused.code, 0);
    let said = refused.stdout + &refused.stderr;
    assert!(
        said.contains("line 3") && said.contains("NIM-1100"),
        "{said}"
    );
    assert_eq!(items(&caller.get("/cmdb/items?source=import")).len(), 0);
    fs::write(&file, "key,class\nh-1,host\n").unwrap();
    let done = site.ask(&["cmdb", "import", &path]);
    assert_eq!(done["data"]["created"], 1, "{done}");
}

/// The environment was destroyed.
pub(crate) fn has_decommissioned_all(site: &Site, caller: &ApiCaller) {
    let left = caller.get("/cmdb/items?deployment=D1ACTS");
    assert!(items(&left).is_empty(), "{left}");
    let gone = site.ask(&["cmdb", "list", "--status", "decommissioned"]);
    let gone = items(&gone["data"]);
    assert_eq!(gone.len(), 4, "{gone:?}");
    assert!(
        gone.iter()
            .all(|item| item["decommissioned_at"].is_string())
    );
    // What was imported is nobody's unit, and stays.
    assert_eq!(items(&caller.get("/cmdb/items")).len(), 1);
}
