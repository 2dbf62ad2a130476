use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that answers each connection with the next of these, and tells what it was asked.
async fn server(answers: Vec<(u16, Value)>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut asked = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 65536];
            let count = stream.read(&mut buffer).await.unwrap();
            asked.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        asked
    });
    (address, task)
}

fn signed_in(server: &str, folder: &std::path::Path) -> (Profiles, Client) {
    let profiles = Profiles::in_folder(folder.to_owned());
    let tokens = ProfileTokens {
        access: "old".to_owned(),
        refresh: "refresh-1".to_owned(),
    };
    profiles.put_tokens("p", Some(&tokens)).unwrap();
    let profile = ServerProfile {
        server: server.to_owned(),
        tenant: String::new(),
        tenant_id: String::new(),
        email: String::new(),
    };
    let client = Client::of_profile(&profiles, "p", &profile).unwrap();
    (profiles, client)
}

#[tokio::test]
async fn an_expired_token_is_renewed_and_stored() {
    let (address, task) = server(vec![
        (401, json!({"error": {"message": "sign in first"}})),
        (
            200,
            json!({"access_token": "new", "refresh_token": "refresh-2"}),
        ),
        (200, json!({"fine": true})),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    let (profiles, mut client) = signed_in(&address, folder.path());
    assert_eq!(
        client.get("/api/v1/auth/me").await.unwrap(),
        json!({"fine": true})
    );
    assert_eq!(profiles.tokens("p").unwrap().unwrap().refresh, "refresh-2");
    let asked = task.await.unwrap();
    assert!(
        asked[0]
            .to_lowercase()
            .contains("authorization: bearer old")
    );
    assert!(
        !asked[1].to_lowercase().contains("authorization"),
        "a dead token is not sent along"
    );
    assert!(
        asked[2]
            .to_lowercase()
            .contains("authorization: bearer new")
    );
}

#[test]
fn queries_carry_any_text() {
    assert_eq!(encoded("a b&c=é"), "a%20b%26c%3D%C3%A9");
}

#[tokio::test]
async fn a_list_is_read_to_its_end() {
    let (address, task) = server(vec![
        (200, json!({"items": [1, 2], "next": "a b"})),
        (200, json!({"items": [3], "next": "c"})),
        (200, json!({"items": []})),
    ])
    .await;
    let mut client = Client::with_token(&address, "nbk_x".to_owned()).unwrap();
    let all = client.list("/things?kind=x").await.unwrap();
    assert_eq!(all, json!({"items": [1, 2, 3]}));
    let asked = task.await.unwrap();
    assert!(
        asked[1].contains("/things?kind=x&limit=500&after=a%20b "),
        "{}",
        asked[1]
    );
}

#[tokio::test]
async fn the_servers_error_keeps_its_code_and_text() {
    let (address, task) = server(vec![(
        403,
        json!({"error": {"code": "FORBIDDEN", "message": "no", "trace_id": "t", "reference": "NIM-0855"}}),
    )])
    .await;
    let mut client = Client::with_token(&address, "nbk_x".to_owned()).unwrap();
    let error = client.get("/x").await.unwrap_err();
    let error = nimbus_core::Error::from(error);
    assert_eq!(
        (error.code().to_string().as_str(), error.message()),
        ("NIM-0855", "no")
    );
    task.await.unwrap();
}

#[tokio::test]
async fn what_is_not_a_nimbus_server_is_told_apart() {
    let (address, task) = server(vec![(500, json!("oops"))]).await;
    let mut client = Client::anonymous(&address).unwrap();
    assert!(matches!(
        client.get("/x").await,
        Err(ClientError::Answer { .. })
    ));
    task.await.unwrap();
    assert!(matches!(
        client.get("/x").await,
        Err(ClientError::Unreachable { .. })
    ));
    for address in ["", "nimbus.example", "ftp://nimbus.example", "http://"] {
        assert!(
            matches!(Client::anonymous(address), Err(ClientError::Address { .. })),
            "{address}"
        );
    }
}
