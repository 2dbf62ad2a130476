//! Calls against real sockets: what leads inwards is not called, and what has no end is not read to it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests end the test"
)]

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nimbus_core::{Error, ErrorCode};
use nimbus_outbound::{
    AddressRules, NameResolver, OutboundCall, OutboundClient, OutboundError, OutboundLimits,
};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Answers each question with the next of its answers, and the last of them from then on.
#[derive(Default)]
struct ChangingNames {
    answers: Mutex<Vec<Vec<&'static str>>>,
    asked: AtomicUsize,
}

impl ChangingNames {
    fn of(answers: &[&[&'static str]]) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.iter().rev().map(|one| one.to_vec()).collect()),
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl NameResolver for ChangingNames {
    async fn addresses(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock();
        let now = if answers.len() > 1 {
            answers.pop()
        } else {
            answers.last().cloned()
        };
        let Some(now) = now else {
            return Err(std::io::Error::other("the resolver is away"));
        };
        Ok(now.iter().map(|text| text.parse().unwrap()).collect())
    }
}

/// A server that answers every connection with these bytes and then does `after`; its port and how many came.
async fn server(head: String, after: Duration, body: usize) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let came = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let head = head.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(head.as_bytes()).await;
                let part = vec![b'x'; 64 * 1024];
                for _ in 0..body / part.len() {
                    if stream.write_all(&part).await.is_err() {
                        return;
                    }
                }
                // tidy-allow(sleep): a server that stays silent is what is tried
                tokio::time::sleep(after).await;
            });
        }
    });
    (port, came)
}

fn rules(allowed: &[&str], ports: &[u16]) -> AddressRules {
    AddressRules {
        allowed: allowed.iter().map(|text| text.parse().unwrap()).collect(),
        plain: true,
        ports: ports.to_vec(),
    }
}

fn client(rules: AddressRules, names: Arc<ChangingNames>) -> OutboundClient {
    let limits = OutboundLimits {
        time: Duration::from_secs(2),
        bytes: 1024 * 1024,
        ..OutboundLimits::default()
    };
    OutboundClient::resolving_with(rules, limits, names).unwrap()
}

async fn refusal(client: &OutboundClient, url: &str) -> OutboundError {
    client.call(OutboundCall::get(url)).await.unwrap_err()
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";

#[tokio::test]
async fn a_name_that_leads_inwards_is_not_called_and_nothing_reaches_it() {
    let (port, came) = server(OK.to_owned(), Duration::ZERO, 0).await;
    for answers in [
        &["127.0.0.1"][..],
        &["8.8.8.8", "127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["169.254.169.254"],
        &["::"],
        &["fd00:ec2::254"],
    ] {
        let client = client(rules(&[], &[port]), ChangingNames::of(&[answers]));
        let found = refusal(&client, &format!("http://inside.example:{port}/")).await;
        assert_eq!(
            found,
            OutboundError::Unknown("inside.example".to_owned()),
            "{answers:?}"
        );
        // The same as of a name that nobody has.
        assert_eq!(Error::from(found).code(), ErrorCode::CALL_FAILED);
    }
    // A resolver that does not answer, and one that knows nothing, let nothing through.
    for names in [ChangingNames::of(&[]), ChangingNames::of(&[&[]])] {
        let client = client(rules(&["127.0.0.0/8"], &[port]), names);
        let found = refusal(&client, &format!("http://away.example:{port}/")).await;
        assert_eq!(found, OutboundError::Unknown("away.example".to_owned()));
    }
    assert_eq!(came.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_connection_goes_to_what_was_checked() {
    let (port, came) = server(OK.to_owned(), Duration::ZERO, 0).await;
    // Between the check and the connection the name changes: whoever asked again would be led elsewhere.
    let names = ChangingNames::of(&[&["127.0.0.1"], &["10.255.255.1"]]);
    let client = client(rules(&["127.0.0.1/32"], &[port]), Arc::clone(&names));
    let url = format!("http://changing.example:{port}/");
    let answer = client.call(OutboundCall::get(&url)).await.unwrap();
    assert_eq!(&answer.body[..], b"hi");
    assert_eq!(
        (
            names.asked.load(Ordering::SeqCst),
            came.load(Ordering::SeqCst)
        ),
        (1, 1)
    );
    // The next call asks anew and finds that it leads inwards now.
    assert!(matches!(
        refusal(&client, &url).await,
        OutboundError::Unknown(_)
    ));
}

#[tokio::test]
async fn redirects_are_checked_like_addresses() {
    let (inside, came) = server(OK.to_owned(), Duration::ZERO, 0).await;
    for (target, allowed) in [
        (format!("http://127.0.0.2:{inside}/"), false),
        (format!("http://[::ffff:127.0.0.2]:{inside}/"), false),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), false),
        ("file:///etc/passwd".to_owned(), false),
        (format!("http://user:secret@127.0.0.1:{inside}/"), false),
        (format!("http://127.0.0.1:{inside}/"), true),
    ] {
        let head = format!(
            "HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let (port, _) = server(head, Duration::ZERO, 0).await;
        let names = ChangingNames::of(&[&["127.0.0.1"]]);
        let client = client(rules(&["127.0.0.1/32"], &[port, inside]), names);
        let before = came.load(Ordering::SeqCst);
        let answer = client
            .call(OutboundCall::get(format!("http://a.example:{port}/")))
            .await;
        assert_eq!(answer.is_ok(), allowed, "{target}: {answer:?}");
        let more = usize::from(allowed);
        assert_eq!(came.load(Ordering::SeqCst), before + more, "{target}");
    }
    // Round and round has an end, and what changes something is not sent twice.
    let (port, came) = server(
        "HTTP/1.1 307 Go\r\nlocation: /again\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            .to_owned(),
        Duration::ZERO,
        0,
    )
    .await;
    let client = client(
        rules(&["127.0.0.1/32"], &[port]),
        ChangingNames::of(&[&["127.0.0.1"]]),
    );
    let url = format!("http://round.example:{port}/");
    assert!(matches!(
        refusal(&client, &url).await,
        OutboundError::Redirects(_)
    ));
    assert_eq!(came.load(Ordering::SeqCst), 4);
    let posted = client.call(OutboundCall::post(&url, "x")).await.unwrap();
    assert_eq!(
        (posted.status.as_u16(), came.load(Ordering::SeqCst)),
        (307, 5)
    );
}

#[tokio::test]
async fn answers_without_an_end_are_left() {
    let names = || ChangingNames::of(&[&["127.0.0.1"]]);
    let gigabyte = 1 << 30;
    for (what, head, after, body) in [
        (
            "announced",
            format!("HTTP/1.1 200 OK\r\ncontent-length: {gigabyte}\r\n\r\n"),
            Duration::ZERO,
            gigabyte,
        ),
        (
            "unannounced",
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned(),
            Duration::ZERO,
            gigabyte,
        ),
        (
            "slow",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi".to_owned(),
            Duration::from_secs(60),
            0,
        ),
        ("silent", String::new(), Duration::from_secs(60), 0),
    ] {
        let (port, _) = server(head, after, body).await;
        let client = client(rules(&["127.0.0.1/32"], &[port]), names());
        let begun = Instant::now();
        let found = refusal(&client, &format!("http://endless.example:{port}/")).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}");
        let expected = match what {
            "announced" | "unannounced" => matches!(found, OutboundError::Large(..)),
            _ => matches!(found, OutboundError::Late(_)),
        };
        assert!(expected, "{what}: {found:?}");
        assert_eq!(Error::from(found).code(), ErrorCode::CALL_FAILED);
    }
}
