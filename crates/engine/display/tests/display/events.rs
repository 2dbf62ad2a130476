//! The public event stream, line by line.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use jiff::Timestamp;
use nimbus_engine_display::EventLog;
use nimbus_engine_model::{Archive, Asset, PropertyValue, ResourceState, StepOp};
use nimbus_engine_ports::{
    Diagnostic, DiffKind, EnforcementLevel, EngineEvent, FailureCause, PolicyViolation, Severity,
    Summary,
};

use crate::support::{
    array, detailed, diagnostic, map, object, outputs, planned, pre, secret, state, step, summary,
    urn,
};

fn lines(events: impl IntoIterator<Item = EngineEvent>) -> Vec<String> {
    let mut log = EventLog::new();
    let at = Timestamp::from_second(1_700_000_000).expect("a time of this century");
    events
        .into_iter()
        .filter_map(|event| log.line(&event, at))
        .collect()
}

fn bucket(text: &str) -> ResourceState {
    ResourceState {
        id: Some("b-1".into()),
        provider: format!("{}::1", urn("pulumi:providers:aws", "west")),
        ..state("aws:s3:Bucket", "logs", map([("acl", text.into())]))
    }
}

#[test]
fn an_update_from_prelude_to_summary() {
    let config = [
        ("shop:size".to_owned(), "3".to_owned()),
        ("shop:token".to_owned(), "[secret]".to_owned()),
    ];
    let mut change = step(StepOp::Update, Some(bucket("a")), Some(bucket("b")));
    change.changed_keys = vec!["acl".into()];
    change.detailed_diff = detailed([("acl", DiffKind::Update)]);
    let failed = StepOp::Delete;
    let events = [
        EngineEvent::Prelude {
            config: config.into(),
        },
        pre(&change),
        outputs(&change),
        diagnostic(
            Severity::Error,
            Some(urn("aws:s3:Bucket", "logs")),
            "\u{1b}[31mno\u{1b}[0m",
        ),
        EngineEvent::ResourceFailed {
            step: step(failed, Some(bucket("c")), None),
            planning: false,
            cause: FailureCause::Other,
        },
        summary(false, [(StepOp::Update, 1), (StepOp::Same, 2)]),
    ];
    assert_snapshot!(lines(events).join("\n"));
}

#[test]
fn values_are_written_as_in_state_files_but_for_secrets() {
    let mut new = bucket("a");
    new.inputs = map([
        ("count", 3.0.into()),
        ("half", 0.5.into()),
        ("html", "<a href=\"x\">&</a>".into()),
        ("nothing", PropertyValue::Null),
        (
            "list",
            array([true.into(), secret(object([("user", "root".into())]))]),
        ),
        ("later", PropertyValue::Computed),
        (
            "file",
            PropertyValue::Asset(Asset::Path {
                hash: "ff".into(),
                path: "a.txt".into(),
            }),
        ),
    ]);
    let line = lines([pre(&step(StepOp::Create, None, Some(new)))]).remove(0);
    assert!(!line.contains("root"), "{line}");
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_snapshot!(event["resourcePreEvent"]["metadata"]["new"]["inputs"].to_string());
}

#[test]
fn the_content_of_files_is_left_out_at_any_depth() {
    let text = || {
        PropertyValue::Asset(Asset::Text {
            hash: "ff".into(),
            text: "line after line".into(),
        })
    };
    let archive = PropertyValue::Archive(Archive::Assets {
        hash: "ee".into(),
        assets: [("a.txt".to_owned(), text())].into(),
    });
    let mut new = bucket("a");
    new.inputs = map([
        ("file", text()),
        ("list", array([object([("all", archive)])])),
    ]);
    let line = lines([pre(&step(StepOp::Create, None, Some(new)))]).remove(0);
    assert!(!line.contains("line after line"), "{line}");
    assert_eq!(line.matches("<contents elided>").count(), 2, "{line}");
    assert_eq!(line.matches("\"hash\":\"ff\"").count(), 2, "{line}");
}

#[test]
fn previews_say_so_and_default_providers_are_nobodys_business() {
    let provider = state("pulumi:providers:aws", "default_7_0_0", map([]));
    let mut events = planned(&step(StepOp::Create, None, Some(provider))).to_vec();
    events.extend(planned(&step(StepOp::Create, None, Some(bucket("a")))));
    events.push(summary(true, [(StepOp::Create, 1)]));
    let lines = lines(events);
    assert_eq!(lines.len(), 3);
    for (sequence, line) in lines.iter().enumerate() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["sequence"], sequence);
        assert_eq!(event["timestamp"], 1_700_000_000);
    }
    assert!(lines[0].contains(r#""planning":true"#));
    assert!(lines[2].contains(r#""isPreview":true,"result":"succeeded""#));
}

#[test]
fn policies_and_cancellation() {
    let events = [
        EngineEvent::PolicyLoaded {
            pack: "rules".into(),
            version: "1.0.0".into(),
        },
        EngineEvent::PolicyViolation(PolicyViolation {
            urn: Some(urn("aws:s3:Bucket", "logs")),
            message: "too public".into(),
            policy: "private".into(),
            pack: "rules".into(),
            pack_version: "1.0.0".into(),
            enforcement: EnforcementLevel::Mandatory,
        }),
        EngineEvent::PolicyRemediation {
            urn: urn("aws:s3:Bucket", "logs"),
            policy: "tags".into(),
            pack: "rules".into(),
            pack_version: "1.0.0".into(),
            before: map([]),
            after: map([("owner", secret("me"))]),
        },
        EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Info,
            urn: None,
            message: "one\n".into(),
            stream_id: 7,
            ephemeral: true,
        }),
        EngineEvent::Cancelled,
        EngineEvent::Summary(Summary {
            is_preview: false,
            duration: std::time::Duration::ZERO,
            changes: BTreeMap::new(),
            maybe_corrupt: true,
            succeeded: false,
            policy_packs: [("rules".to_owned(), "1.0.0".to_owned())].into(),
        }),
    ];
    assert_snapshot!(lines(events).join("\n"));
}
