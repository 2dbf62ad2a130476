//! The tree, the line-by-line display and the end of an operation.

use std::time::Duration;

use insta::assert_snapshot;
use nimbus_engine_display::{DisplayState, LineStyle, TerminalSize, event_lines};
use nimbus_engine_model::{PropertyValue, ResourceState, StepOp};
use nimbus_engine_ports::{
    Diagnostic, EnforcementLevel, EngineEvent, FailureCause, PolicyViolation, Severity, StepEvent,
    Summary,
};

use crate::support::{
    diagnostic, display, map, marked, outputs, plain, planned, pre, root, secret, state, step,
    summary, urn,
};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn stack(outputs: nimbus_engine_model::PropertyMap) -> ResourceState {
    ResourceState {
        outputs,
        ..ResourceState::new(root(), false)
    }
}

fn component(name: &str) -> ResourceState {
    ResourceState {
        parent: Some(root()),
        ..ResourceState::new(urn("shop:web:Site", name), false)
    }
}

fn child(of: &ResourceState, type_: &str, name: &str) -> ResourceState {
    ResourceState {
        parent: Some(of.urn.clone()),
        ..state(type_, name, map([]))
    }
}

fn create(new: &ResourceState) -> StepEvent {
    step(StepOp::Create, None, Some(new.clone()))
}

fn run(state: &mut DisplayState, events: impl IntoIterator<Item = (u64, EngineEvent)>) {
    for (at, event) in events {
        state.apply(&event, seconds(at));
    }
}

/// A stack with a component of two resources, one of them still being made.
fn half_done() -> DisplayState {
    let mut state = display("Updating");
    let site = component("site");
    let bucket = child(&site, "aws:s3/bucket:Bucket", "assets");
    let cdn = child(&site, "aws:cloudfront/distribution:Distribution", "cdn");
    let old = self::state("aws:sns/topic:Topic", "alerts", map([("name", "a".into())]));
    let new = self::state("aws:sns/topic:Topic", "alerts", map([("name", "b".into())]));
    let topic = step(StepOp::Update, Some(old), Some(new));
    let provider = self::state("pulumi:providers:aws", "default_7_0_0", map([]));
    run(
        &mut state,
        [
            (0, pre(&create(&stack(map([]))))),
            (0, pre(&create(&provider))),
            (0, outputs(&create(&provider))),
            (0, pre(&create(&site))),
            (0, outputs(&create(&site))),
            (1, pre(&create(&bucket))),
            (1, pre(&topic)),
            (4, outputs(&create(&bucket))),
            (5, pre(&create(&cdn))),
            (
                6,
                EngineEvent::Diagnostic(Diagnostic {
                    severity: Severity::Info,
                    urn: Some(cdn.urn.clone()),
                    message: "waiting for certificate\n".into(),
                    stream_id: 0,
                    ephemeral: true,
                }),
            ),
            (
                7,
                diagnostic(
                    Severity::Warning,
                    Some(bucket.urn.clone()),
                    "acl is deprecated",
                ),
            ),
        ],
    );
    state
}

#[test]
fn the_live_tree_shows_parents_states_times_and_progress() {
    let state = half_done();
    let size = TerminalSize {
        width: 110,
        height: 30,
    };
    assert_snapshot!(marked(&state.live(size, seconds(9))));
}

#[test]
fn a_narrow_terminal_cuts_lines_and_a_low_one_keeps_what_is_running() {
    let state = half_done();
    let lines = state.live(
        TerminalSize {
            width: 60,
            height: 8,
        },
        seconds(9),
    );
    assert!(lines.len() <= 8 && lines.iter().all(|line| line.width() <= 60));
    assert_snapshot!(plain(&lines));
    // Any size at all is drawn without going beyond it.
    for width in 0..40 {
        for line in state.live(TerminalSize { width, height: 5 }, seconds(9)) {
            assert!(line.width() <= width, "{width}: {}", line.plain());
        }
    }
}

#[test]
fn the_end_has_the_tree_messages_outputs_counts_and_time() {
    let mut state = half_done();
    let site = component("site");
    let cdn = child(&site, "aws:cloudfront/distribution:Distribution", "cdn");
    let old = stack(map([("kept", 1.0.into()), ("url", "http://old".into())]));
    let new = stack(map([
        ("kept", 1.0.into()),
        ("password", secret("hunter2")),
        ("url", "http://new".into()),
    ]));
    let topic = self::state("aws:sns/topic:Topic", "alerts", map([]));
    run(
        &mut state,
        [
            (
                12,
                diagnostic(
                    Severity::Error,
                    Some(cdn.urn.clone()),
                    "limit exceeded:\n  5 of 5",
                ),
            ),
            (
                12,
                EngineEvent::ResourceFailed {
                    step: create(&cdn),
                    planning: false,
                    cause: FailureCause::Other,
                },
            ),
            (
                12,
                outputs(&step(StepOp::Update, Some(topic.clone()), Some(topic))),
            ),
            (12, diagnostic(Severity::Error, None, "update failed")),
            (13, outputs(&step(StepOp::Same, Some(old), Some(new)))),
            (
                13,
                EngineEvent::Summary(Summary {
                    is_preview: false,
                    duration: seconds(13),
                    changes: [(StepOp::Create, 3), (StepOp::Update, 1), (StepOp::Same, 2)].into(),
                    maybe_corrupt: true,
                    succeeded: false,
                    policy_packs: [].into(),
                }),
            ),
        ],
    );
    let lines = state.closing(100, seconds(13));
    assert!(!plain(&lines).contains("hunter2"));
    assert_snapshot!(marked(&lines));
}

#[test]
fn a_preview_says_what_would_happen() {
    let mut state = display("Previewing update");
    let old = self::state("aws:s3/bucket:Bucket", "data", map([("name", "a".into())]));
    let new = self::state("aws:s3/bucket:Bucket", "data", map([("name", "b".into())]));
    let half = |op| StepEvent {
        logical: op == StepOp::Replace,
        replace_keys: vec!["name".into()],
        ..step(op, Some(old.clone()), Some(new.clone()))
    };
    let same = step(
        StepOp::Same,
        Some(self::state("x:y:Z", "quiet", map([]))),
        Some(self::state("x:y:Z", "quiet", map([]))),
    );
    let mut unknown = stack(map([("url", PropertyValue::Computed)]));
    unknown.parent = None;
    let events = [
        planned(&half(StepOp::CreateReplacement)),
        planned(&half(StepOp::Replace)),
        planned(&same),
        planned(&half(StepOp::DeleteReplaced)),
        planned(&step(StepOp::Same, Some(stack(map([]))), Some(unknown))),
    ];
    run(
        &mut state,
        events.into_iter().flatten().map(|event| (0, event)),
    );
    run(
        &mut state,
        [(1, summary(true, [(StepOp::Replace, 1), (StepOp::Same, 2)]))],
    );
    assert_snapshot!(plain(&state.closing(100, seconds(2))));
}

#[test]
fn policy_findings_have_a_section_of_their_own() {
    let mut state = display("Previewing update");
    let violation = |enforcement, message: &str| {
        EngineEvent::PolicyViolation(PolicyViolation {
            urn: Some(urn("aws:s3/bucket:Bucket", "data")),
            message: message.into(),
            policy: "no-public".into(),
            pack: "house-rules".into(),
            pack_version: "1.2.0".into(),
            enforcement,
        })
    };
    run(
        &mut state,
        [
            (
                0,
                violation(EnforcementLevel::Mandatory, "buckets are private\nhere"),
            ),
            (0, violation(EnforcementLevel::Advisory, "consider tags")),
            (
                0,
                EngineEvent::PolicyRemediation {
                    urn: urn("aws:s3/bucket:Bucket", "data"),
                    policy: "add-owner".into(),
                    pack: "house-rules".into(),
                    pack_version: "1.2.0".into(),
                    before: map([]),
                    after: map([("owner", "me".into())]),
                },
            ),
        ],
    );
    assert_snapshot!(plain(&state.closing(100, seconds(2))));
}

#[test]
fn without_a_terminal_each_event_is_a_line() {
    let mut state = display("Updating");
    let bucket = self::state("aws:s3/bucket:Bucket", "data", map([("name", "b".into())]));
    let same = step(
        StepOp::Same,
        Some(self::state("x:y:Z", "quiet", map([]))),
        Some(self::state("x:y:Z", "quiet", map([]))),
    );
    let events = [
        (0, pre(&create(&bucket))),
        (2, pre(&same)),
        (2, outputs(&same)),
        (
            3,
            diagnostic(Severity::Warning, Some(bucket.urn.clone()), "slow\nday"),
        ),
        (4, diagnostic(Severity::Debug, None, "noise")),
        (5, outputs(&create(&bucket))),
        (5, EngineEvent::Cancelled),
    ];
    let mut text = String::new();
    for (at, event) in events {
        state.apply(&event, seconds(at));
        text += &plain(&event_lines(
            &event,
            &state,
            LineStyle::Progress,
            seconds(at),
        ));
    }
    assert_snapshot!(text);
}

#[test]
fn the_diff_display_shows_logical_steps_and_what_a_refresh_found() {
    let mut state = display("Refreshing");
    let site = component("site");
    let mut old = child(&site, "aws:s3/bucket:Bucket", "data");
    old.id = Some("b-1".into());
    old.outputs = map([("size", 1.0.into())]);
    let mut new = old.clone();
    new.outputs = map([("size", 2.0.into())]);
    let refresh = step(StepOp::Refresh, Some(old.clone()), Some(old.clone()));
    let found = step(StepOp::Update, Some(old.clone()), Some(new.clone()));
    let half = StepEvent {
        logical: false,
        ..step(StepOp::CreateReplacement, Some(old), Some(new))
    };
    let style = LineStyle::Diff(nimbus_engine_display::StepDetail::Short);
    let mut text = String::new();
    for event in [
        pre(&create(&site)),
        pre(&refresh),
        outputs(&found),
        pre(&half),
    ] {
        state.apply(&event, seconds(0));
        text += &plain(&event_lines(&event, &state, style, seconds(0)));
    }
    assert_snapshot!(text);
}
