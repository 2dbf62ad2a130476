//! A provider's opinion on a difference.

use nimbus_engine_ports::{DiffKind, DiffResponse, Diffs, PropertyDiff};
use nimbus_engine_proto as proto;
use proto::diff_response::DiffChanges;
use proto::property_diff::Kind;

pub(crate) fn decode_diff(response: proto::DiffResponse) -> DiffResponse {
    let changes = match response.changes() {
        DiffChanges::DiffUnknown => Diffs::Unknown,
        DiffChanges::DiffNone => Diffs::None,
        DiffChanges::DiffSome => Diffs::Some,
    };
    let decode_property = |(path, diff): (String, proto::PropertyDiff)| {
        // A kind that this version does not know is an update.
        let kind = match Kind::try_from(diff.kind) {
            Ok(Kind::Add) => DiffKind::Add,
            Ok(Kind::AddReplace) => DiffKind::AddReplace,
            Ok(Kind::Delete) => DiffKind::Delete,
            Ok(Kind::DeleteReplace) => DiffKind::DeleteReplace,
            Ok(Kind::UpdateReplace) => DiffKind::UpdateReplace,
            Ok(Kind::Update) | Err(_) => DiffKind::Update,
        };
        (
            path,
            PropertyDiff {
                kind,
                input_diff: diff.input_diff,
            },
        )
    };
    let detailed = response.has_detailed_diff.then(|| {
        response
            .detailed_diff
            .into_iter()
            .map(decode_property)
            .collect()
    });
    DiffResponse {
        changes,
        replace_keys: response.replaces,
        changed_keys: response.diffs,
        stable_keys: response.stables,
        detailed,
        delete_before_replace: response.delete_before_replace,
    }
}
