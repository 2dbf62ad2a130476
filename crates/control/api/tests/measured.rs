//! Figures that are promised, measured in a process of their own.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    unused_imports,
    unused_macros,
    reason = "helpers of tests end the test, and not every test needs all of them"
)]

#[path = "control/support.rs"]
mod support;

use std::time::{Duration, Instant};

use axum::http::{Request, StatusCode};
use nimbus_control_auth::password::{Cost, Hasher};
use nimbus_test_tools::{Tool, is_long, short_or_long, tool_or_skip};
use serde_json::json;

use crate::support::Installation;

/// Seconds that a hundredth, a half and so on of the measurements stay below.
fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * part) as usize]
}

/// One measurement at a time: each is disturbed by others.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// S2, measured: whether the time tells who exists. Five per cent is what is promised, and what the long form
/// holds to; the short form runs beside other tests and sees whether something was left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_a_refusal_does_not_tell_who_exists() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let _alone = ALONE.lock().await;
    let nimbus = Installation::with(&binaries, |settings, _| {
        settings.password_cost = Cost::STANDARD;
    })
    .await;
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let (rounds, allowed) = short_or_long((24, 0.5), (300, 0.05));
    // Each is tried four times, and the fifth mistake is free as well.
    let people = rounds / 4;
    for number in 0..people {
        nimbus
            .user(&owner, &acme, &format!("user{number}@acme.example"), None)
            .await;
    }
    let kinds = ["known user", "unknown user", "unknown tenant"];
    let mut times: [Vec<Duration>; 3] = Default::default();
    for round in 0..rounds {
        // In another order each time, on accounts and from networks that are not slowed yet.
        for step in 0..3 {
            let kind = (step + round) % 3;
            let (tenant, email) = match kind {
                0 => ("acme", format!("user{}@acme.example", round % people)),
                1 => ("acme", format!("nobody{}@acme.example", round % people)),
                _ => ("nowhere", format!("user{}@acme.example", round % people)),
            };
            let body = json!({"tenant": tenant, "email": email, "password": "wrong"});
            let request = Request::builder().method("POST").uri("/api/v1/auth/login");
            let address = format!("10.{}.{kind}.{}:4000", 9 + round / 250, round % 250);
            let begun = Instant::now();
            let answer = nimbus.send_from(&address, request, Some(&body)).await;
            let took = begun.elapsed();
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text);
            times[kind].push(took);
        }
    }
    let medians = times.map(|mut times| quantile(&mut times, 0.5).as_secs_f64());
    for (kind, median) in kinds.iter().zip(medians) {
        println!("{kind}: {:.1} ms", median * 1000.0);
        let off = (median - medians[0]).abs() / medians[0];
        assert!(
            off < allowed,
            "{kind} differs by {:.0} %: {medians:?}",
            off * 100.0
        );
    }
}

/// S1, measured: two hundred people sign in at once, in the short form a hundred; others are served meanwhile, and nothing piles up. Half a
/// second and the time of a hash are promised on a machine of its own, in the long form.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_sign_ins_leaves_room_for_others() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let _alone = ALONE.lock().await;
    let nimbus = Installation::with(&binaries, |settings, _| {
        settings.password_cost = Cost::STANDARD;
    })
    .await;
    let owner = nimbus.set_up().await;
    let before = resident_mib();
    let mut worst = Vec::new();
    let storm = async {
        let attempts = (0..short_or_long(100, 200)).map(|number| {
            let body =
                json!({"email": format!("user{number}@operator.example"), "password": "wrong"});
            let request = Request::builder().method("POST").uri("/api/v1/auth/login");
            let nimbus = &nimbus;
            async move {
                let address = format!("10.8.0.{number}:4000");
                nimbus
                    .send_from(&address, request, Some(&body))
                    .await
                    .status
            }
        });
        futures::future::join_all(attempts).await
    };
    let mut storm = std::pin::pin!(storm);
    let statuses = loop {
        let begun = Instant::now();
        tokio::select! {
            statuses = &mut storm => break statuses,
            me = nimbus.get("/api/v1/auth/me", &owner) => {
                me.ok();
                worst.push(begun.elapsed());
            }
        }
    };
    let refused = statuses
        .iter()
        .all(|status| *status == StatusCode::UNAUTHORIZED);
    assert!(refused, "{statuses:?}");
    let p99 = quantile(&mut worst, 0.99);
    println!(
        "others: {} requests, p99 {p99:?}; memory {before} -> {} MiB",
        worst.len(),
        resident_mib()
    );
    let allowed = short_or_long(Duration::from_secs(5), Duration::from_millis(500));
    assert!(p99 < allowed, "{p99:?}");
    // A hash has 19 MiB, of which at most four are in use; a gigabyte was left behind once.
    assert!(
        resident_mib() < before + 150,
        "{before} -> {} MiB",
        resident_mib()
    );
}

/// S1: what one hash costs, on this machine, with what is standard.
#[tokio::test]
async fn a_hash_costs_what_is_promised() {
    let _alone = ALONE.lock().await;
    let cost = Cost::STANDARD;
    assert!(cost.memory_kib >= 19 * 1024 && cost.rounds >= 2, "{cost:?}");
    let hasher = Hasher::new(cost);
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let begun = Instant::now();
            assert!(hasher.hash("glass lamp river 9").is_some());
            begun.elapsed()
        })
        .collect();
    let median = quantile(&mut times, 0.5);
    println!("one hash: {median:?}");
    // A busy machine is slower, never faster.
    assert!(median > Duration::from_millis(short_or_long(10, 15)));
    assert!(
        !is_long() || median < Duration::from_millis(250),
        "{median:?}"
    );
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}
