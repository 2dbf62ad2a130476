//! A demonstration: one command, and there is something to look at.

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::ApiCaller;
use crate::support::{Site, Up, body_of, request};

fn sign_in(server: &Up, email: &str, password: &str) -> ApiCaller {
    let body = json!({"tenant": "demo", "email": email, "password": password}).to_string();
    let (status, answer) = request(&server.address(), "POST", "/api/v1/auth/login", "", &body);
    assert_eq!(status, 200, "{email}: {answer}");
    let token = body_of(&answer)["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    ApiCaller {
        address: server.address(),
        token,
    }
}

#[test]
fn a_demonstration_has_people_and_a_rehearsal_of_sixteen_programs() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::of_programs(&postgres, &sdk);
    let flags = ["--demo", "--no-download"];
    let server = site.try_up_with(&flags).unwrap();
    let demo = server.report["demo"].clone();
    let password = demo["password"].as_str().unwrap();
    let people = demo["people"].as_array().unwrap();
    assert_eq!(people.len(), 4);
    for person in people {
        sign_in(&server, person["email"].as_str().unwrap(), password);
    }
    let ada = sign_in(&server, "ada@demo.example", password);
    let runs = ada.get("/runs?deployment=D1DEMO");
    let run = &runs["items"][0];
    assert_eq!(
        (&run["action"], &run["rehearsal"]),
        (&json!("deploy"), &json!(true))
    );
    let events = ada.watch(run, |event| event["event"] == "plan");
    let plan = events
        .iter()
        .find(|event| event["event"] == "plan")
        .unwrap();
    let layers = plan["layers"].as_array().unwrap();
    let units: Vec<&Value> = layers
        .iter()
        .flat_map(|layer| layer.as_array().unwrap())
        .collect();
    assert_eq!(units.len(), 16, "{plan}");
    assert!(units.iter().any(|unit| unit["needs"].is_array()), "{plan}");
    assert_eq!(server.stop(), 0);

    // The next start finds what is there, and the password is kept nowhere.
    let again = site.try_up_with(&flags).unwrap();
    assert_eq!(again.report["demo"]["password"], Value::Null);
    sign_in(&again, "ada@demo.example", password);
    assert_eq!(again.stop(), 0);
}

#[test]
fn nothing_is_fetched_where_that_is_forbidden_and_nothing_is_left() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let site = Site::new(&postgres);
    let refused = site
        .try_up_with(&["--demo", "--no-download"])
        .err()
        .unwrap();
    assert!(refused.contains("NIM-0406"), "{refused}");
    assert!(!site.data().exists());
}
