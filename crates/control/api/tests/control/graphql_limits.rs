//! What a GraphQL document may cost, how it has to be given, and how one that is refused is answered.

use std::time::{Duration, Instant};

use axum::http::{Request, StatusCode, header};
use nimbus_control_api::{ApiLimits, ApiState, Limit, router};
use serde_json::{Value, json};

use crate::graphql::codes;
use crate::support::{Answer, ORIGIN, installation};

/// S16: each of these is refused before anything is done for it.
#[tokio::test]
async fn documents_that_cost_too_much_are_refused_at_once() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let deep = format!(
        "{{ viewer {{ tenant {} id {} }} }}",
        "{ parent ".repeat(10),
        "}".repeat(10)
    );
    let aliases: String = (0..31)
        .map(|number| format!("a{number}: me {{ id }} "))
        .collect();
    let mut bomb = "query { viewer { tenant { ...f0 } } }".to_owned();
    for number in 0..30 {
        bomb.push_str(&format!(
            " fragment f{number} on Tenant {{ ...f{0} ...f{0} }}",
            number + 1
        ));
    }
    bomb.push_str(" fragment f30 on Tenant { id }");
    let many_variables: String = (0..4800)
        .map(|number| format!("$v{number}: Int "))
        .collect();
    let many_variables = format!("query({many_variables}) {{ me {{ id }} }}");
    let directives = format!("{{ me {{ id {} }} }}", "@skip(if: false) ".repeat(3000));
    let costly = "{ tenants(pagination: {first: 500}) { nodes { children(first: 500) { children(first: 500) { id } } } } }";
    for (what, query) in [
        ("depth", deep.as_str()),
        ("aliases", &format!("{{ {aliases} }}")),
        ("complexity", costly),
        ("fragments", &bomb),
        (
            "cycle",
            "{ viewer { tenant { ...a } } } fragment a on Tenant { parent { ...b } } fragment b on Tenant { parent { ...a } }",
        ),
        ("directives", &directives),
        ("introspection", "{ __schema { types { name } } }"),
        (
            "introspection of a type",
            "{ __type(name: \"User\") { name } }",
        ),
        (
            "bytes",
            &format!("{{ me {{ id }} }} # {}", "x".repeat(70_000)),
        ),
        ("brackets", &"{ a ".repeat(12_000)),
        ("variables", &many_variables),
        ("spreads", &format!("{{ {} }}", "...f ".repeat(9000))),
        (
            "fragments that are not there",
            &format!("{{ {} }}", "...f ".repeat(500)),
        ),
        (
            "arguments",
            &format!("{{ tenant({}) {{ id }} }}", "id: 1 ".repeat(9000)),
        ),
        ("roots", &format!("{{ {} }}", "me { id } ".repeat(51))),
        ("syntax", "{ me {"),
        ("unknown field", "{ secrets { id } }"),
        ("wrong type", "{ tenant(id: {a: 1}) { id } }"),
        ("no variable", "query($id: ID!) { tenant(id: $id) { id } }"),
        (
            "no variable beside what could be answered",
            "query($id: ID!) { me { id } tenant(id: $id) { id } }",
        ),
        ("NUL", "{ user(id: \"\\u0000\") { id } }"),
        (
            "subscription",
            "subscription { auditEvent(tenantId: \"x\") { action } }",
        ),
    ] {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let begun = Instant::now();
            let answer = nimbus.graphql(&owner, query, json!({})).await;
            best = best.min(begun.elapsed());
            assert_eq!(
                answer.status,
                StatusCode::BAD_REQUEST,
                "{what}: {}",
                answer.text
            );
            let answer_json = answer.json();
            assert!(answer_json.get("data").is_none(), "{what}: {}", answer.text);
            let found = codes(&answer_json);
            assert!(
                !found.is_empty() && found.iter().all(|code| code == "VALIDATION_ERROR"),
                "{what}: {}",
                answer.text
            );
        }
        // 50 ms are promised; this is an unoptimised build that shares its machine.
        assert!(best < Duration::from_millis(500), "{what}: {best:?}");
    }
    let many = json!(vec![json!({"query": "{ me { id } }"}); 11]);
    assert_eq!(
        nimbus.post("/graphql", &owner, many).await.status,
        StatusCode::BAD_REQUEST
    );
    let ten = nimbus
        .post(
            "/graphql",
            &owner,
            json!(vec![json!({"query": "{ me { id } }"}); 10]),
        )
        .await
        .ok();
    assert_eq!(ten.as_array().unwrap().len(), 10);
    let large = json!({"query": "{ me { id } }", "variables": {"x": "y".repeat(1 << 20)}});
    assert_eq!(
        nimbus.post("/graphql", &owner, large).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    for body in [
        json!([]),
        json!({}),
        json!({"query": 1}),
        json!({"query": "{ me { id } }", "more": 1}),
        json!("x"),
        json!({"query": "{ me { id } }", "variables": [1]}),
    ] {
        assert_eq!(
            nimbus.post("/graphql", &owner, body.clone()).await.status,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
    // What is refused is recorded.
    let failed = nimbus.database.texts("SELECT DISTINCT new_value::text FROM nimbus_core.audit_logs WHERE action = 'graphql.execute' AND outcome = 'failed'").await;
    assert!(
        failed.iter().any(|one| one.contains("NIM-0940"))
            && failed.iter().any(|one| one.contains("NIM-0941")),
        "{failed:?}"
    );
}

/// S10: many questions in one request are many requests.
#[tokio::test]
async fn every_field_at_the_root_counts_as_a_request() {
    let mut nimbus = installation!();
    let owner = nimbus.set_up().await;
    let many = Limit::per_second(1_000_000);
    let limits = ApiLimits::new(many, many, Limit::per_minute(40));
    let state = ApiState::new(nimbus.app.clone(), vec![ORIGIN.to_owned()], limits);
    nimbus.router = router(state);
    let aliases: String = (0..20)
        .map(|number| format!("a{number}: me {{ id }} "))
        .collect();
    let query = format!("{{ {aliases} }}");
    let first = nimbus.graphql(&owner, &query, json!({})).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text);
    let batch = json!(vec![
        json!({"query": "{ a: me { id } b: me { id } c: me { id } }"});
        8
    ]);
    let second = nimbus.post("/graphql", &owner, batch).await;
    assert_eq!(
        second.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        second.text
    );
    assert!(second.headers.contains_key(header::RETRY_AFTER));
}

/// S10: nobody has to be signed in to try tokens, and trying many at once is no way round the limit of an address.
#[tokio::test]
async fn tokens_that_are_tried_at_once_count_for_their_address() {
    let mut nimbus = installation!();
    nimbus.set_up().await;
    let many = Limit::per_second(1_000_000);
    let limits = ApiLimits::new(Limit::per_minute(10), many, many);
    let state = ApiState::new(nimbus.app.clone(), vec![ORIGIN.to_owned()], limits);
    nimbus.router = router(state);
    let aliases: String = (0..20)
        .map(|number| format!("a{number}: refreshToken(refreshToken: \"x\") {{ accessToken }} "))
        .collect();
    let body = json!({"query": format!("mutation {{ {aliases} }}")});
    let answer = nimbus.call("POST", "/graphql", None, Some(body)).await;
    assert_eq!(
        answer.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        answer.text
    );
}

/// By the specification of GraphQL over HTTP.
#[tokio::test]
async fn the_status_of_an_answer_is_the_one_of_its_media_type() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let send = async |accept: Option<&str>, body: Value| -> Answer {
        let mut request = Request::builder()
            .method("POST")
            .uri("/graphql")
            .header(header::AUTHORIZATION, format!("Bearer {owner}"));
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        nimbus.send(request, Some(&body)).await
    };
    let own = "application/graphql-response+json";
    let good = json!({"query": "{ me { id } }"});
    // Each of these is a request, and nothing of it is carried out.
    let refused = [
        json!({"query": "{ me {"}),
        json!({"query": "{ secrets { id } }"}),
        json!({"query": "query A { me { id } } query B { me { id } }"}),
        json!({"query": "query A { me { id } }", "operationName": "B"}),
        json!({"query": "query($id: ID!) { me { id } tenant(id: $id) { id } }"}),
        json!({"query": "query($id: ID!) { tenant(id: $id) { id } }", "variables": {"id": null}}),
        json!({"query": "query($n: Int) { tenants(pagination: {first: $n}) { nodes { id } } }", "variables": {"n": "many"}}),
        json!({"query": "query($no: Boolean!) { me { id @skip(if: $no) } }", "variables": {"no": 1}}),
    ];
    for (accept, media, status) in [
        (None, own, 400),
        (Some("*/*"), own, 400),
        (Some(own), own, 400),
        (
            Some("application/json;q=0.9, application/graphql-response+json"),
            own,
            400,
        ),
        (Some("application/json"), "application/json", 200),
    ] {
        let answer = send(accept, good.clone()).await;
        assert_eq!(answer.headers[header::CONTENT_TYPE], media, "{accept:?}");
        assert!(answer.ok()["data"]["me"]["id"].is_string());
        for body in &refused {
            let answer = send(accept, body.clone()).await;
            let place = format!("{accept:?} {body}: {}", answer.text);
            assert_eq!(answer.headers[header::CONTENT_TYPE], media, "{place}");
            assert_eq!(answer.status.as_u16(), status, "{place}");
            assert!(answer.json().get("data").is_none(), "{place}");
            assert_eq!(codes(&answer.json()), ["VALIDATION_ERROR"], "{place}");
        }
        // What is carried out and fails in a field is a success with an error in it.
        let missing = "query($id: ID!) { me { id } user(id: $id) { id } }";
        let variables = json!({"id": nimbus.root.to_string()});
        let answer = send(accept, json!({"query": missing, "variables": variables})).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let answer = answer.json();
        assert_eq!(codes(&answer), ["NOT_FOUND"]);
        assert!(answer["data"]["user"].is_null() && answer["data"]["me"]["id"].is_string());
        // What is no request is not one in any form.
        for body in [
            json!({}),
            json!([]),
            json!({"query": 1}),
            json!({"query": "{ me { id } }", "variables": [1]}),
        ] {
            assert_eq!(
                send(accept, body.clone()).await.status,
                StatusCode::BAD_REQUEST,
                "{body}"
            );
        }
    }
    // Whoever signs in is told what is missing, and not to sign in first.
    let login = "mutation($p: String!) { login(input: {email: \"a@b.example\", password: $p}) { accessToken } }";
    let body = json!({"query": login});
    let answer = nimbus.call("POST", "/graphql", None, Some(body)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert_eq!(codes(&answer.json()), ["VALIDATION_ERROR"]);
    // A refused document does nothing, also where a part of it could have been carried out.
    let half =
        "mutation($id: ID!) { createGroup(input: {name: \"half\"}) { id } deleteUser(id: $id) }";
    let answer = send(None, json!({"query": half})).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    let groups = nimbus
        .data(&owner, "{ groups { nodes { name } } }", json!({}))
        .await;
    assert_eq!(groups["groups"]["nodes"], json!([]));
}
