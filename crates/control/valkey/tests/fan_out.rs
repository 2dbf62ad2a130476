//! One suite over both ways between servers: the database's notifications and Valkey.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::sync::Arc;
use std::time::Duration;

use nimbus_control_events::{FanOut, LiveNotice, NoticeSource, NoticeTopic};
use nimbus_control_store::Isolation;
use nimbus_control_testing::{TestDatabase, TestValkey};
use nimbus_control_valkey::ValkeyFanOut;
use nimbus_core::ErrorCode;
use nimbus_test_tools::{Tool, tool_or_skip};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

fn news(count: usize) -> LiveNotice {
    let topic = |number: usize| match number % 2 {
        0 => NoticeTopic::Tenant(Uuid::new_v4().into()),
        _ => NoticeTopic::Run(Uuid::new_v4()),
    };
    LiveNotice {
        topics: (0..count).map(topic).collect(),
    }
}

/// Topics until so many came, in however many announcements.
async fn hear(source: &mut dyn NoticeSource, count: usize) -> Vec<NoticeTopic> {
    let mut topics = Vec::new();
    while topics.len() < count {
        let next = tokio::time::timeout(PATIENCE, source.next()).await;
        topics.extend(next.unwrap().unwrap().unwrap().topics);
    }
    topics
}

/// Two servers of one installation, and one of another.
async fn suite(one: Arc<dyn FanOut>, two: Arc<dyn FanOut>, stranger: Arc<dyn FanOut>) {
    // Nobody listens yet, and nobody is waited for.
    one.announce(&news(1)).await.unwrap();
    let mut here = one.listen().await.unwrap();
    let mut there = two.listen().await.unwrap();
    let mut elsewhere = stranger.listen().await.unwrap();
    // Both hear what either says, in its order.
    let (first, second) = (news(3), news(2));
    one.announce(&first).await.unwrap();
    two.announce(&second).await.unwrap();
    for source in [&mut here, &mut there] {
        let heard = hear(source.as_mut(), 5).await;
        assert_eq!(heard.len(), 5);
        assert_eq!(heard.iter().filter(|t| first.topics.contains(t)).count(), 3);
        assert_eq!(
            heard.iter().filter(|t| second.topics.contains(t)).count(),
            2
        );
    }
    // More than a message has room for.
    let many = news(3000);
    one.announce(&many).await.unwrap();
    assert_eq!(hear(there.as_mut(), 3000).await, many.topics);
    // A sign of life says nothing and is heard.
    two.announce(&LiveNotice::default()).await.unwrap();
    let next = tokio::time::timeout(PATIENCE, there.next()).await.unwrap();
    assert_eq!(next.unwrap(), Some(LiveNotice::default()));
    // The first thing that a stranger hears is a stranger's.
    let own = news(1);
    stranger.announce(&own).await.unwrap();
    assert_eq!(hear(elsewhere.as_mut(), 1).await, own.topics);
}

#[tokio::test]
async fn servers_hear_each_other_through_the_database() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&postgres, Isolation::SchemaWithRls).await;
    let other = TestDatabase::new(&postgres, Isolation::SchemaWithRls).await;
    let again = nimbus_control_store::Store::connect(database.config.clone());
    suite(
        Arc::new(database.store.notifications()),
        Arc::new(again.notifications()),
        Arc::new(other.store.notifications()),
    )
    .await;
}

#[tokio::test]
async fn servers_hear_each_other_through_valkey() {
    let valkey = TestValkey::start(&tool_or_skip!(Tool::Valkey));
    let fan_out = |installation: &str| -> Arc<dyn FanOut> {
        Arc::new(ValkeyFanOut::new(&valkey.url(), installation).unwrap())
    };
    suite(fan_out("one"), fan_out("one"), fan_out("two")).await;
}

#[tokio::test]
async fn a_valkey_that_is_gone_is_an_error_and_one_that_is_back_is_used() {
    let mut valkey = TestValkey::start(&tool_or_skip!(Tool::Valkey));
    let fan_out = ValkeyFanOut::new(&valkey.url(), "one").unwrap();
    let mut source = fan_out.listen().await.unwrap();
    fan_out.announce(&LiveNotice::default()).await.unwrap();
    source.next().await.unwrap();
    valkey.kill();
    let heard = tokio::time::timeout(PATIENCE, source.next()).await.unwrap();
    assert_eq!(heard.unwrap_err().code(), ErrorCode::VALKEY_AWAY);
    let said = fan_out.announce(&news(1)).await.unwrap_err();
    assert_eq!(said.code(), ErrorCode::VALKEY_AWAY);
    let listening = fan_out.listen().await.map(drop).unwrap_err();
    assert_eq!(listening.code(), ErrorCode::VALKEY_AWAY);
    valkey.resume();
    let mut source = fan_out.listen().await.unwrap();
    let said = news(2);
    fan_out.announce(&said).await.unwrap();
    assert_eq!(hear(source.as_mut(), 2).await, said.topics);
}

#[test]
fn an_address_that_is_none_is_refused_without_its_password() {
    let address = "http://u:hunter2@cache:6379/0";
    let refused = ValkeyFanOut::new(address, "one").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::VALKEY_ADDRESS);
    let told = format!("{refused:?} {}", refused.log_text());
    assert!(!told.contains("hunter2"), "{told}");
    let fan_out = ValkeyFanOut::new("valkey://u:hunter2@cache:6379/0", "one").unwrap();
    assert!(!format!("{fan_out:?}").contains("hunter2"));
}
