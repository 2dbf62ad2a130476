//! The audit trail.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use nimbus_control_app::{AuditFilter, ChainVerdict, ExportFormat, Failure, Timestamp, operation};
use nimbus_core::TenantId;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{ListFilter, Segments, page_size};
use crate::route::Route;
use crate::wire::{AuditEntryBody, AuditQuery, AuditVerdict, Page};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_AUDIT, list)
            .asks::<AuditQuery>()
            .gives::<Page<AuditEntryBody>>(),
        Route::new(operation::EXPORT_AUDIT, export).asks::<AuditQuery>(),
        Route::new(operation::VERIFY_AUDIT, verify).gives::<AuditVerdict>(),
    ]
}

const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1000;
/// Where an export goes on that has more than one answer holds.
const NEXT_HEADER: &str = "x-nimbus-next";

fn filter(query: AuditQuery) -> Result<AuditFilter, Failure> {
    let time = |field, text: Option<String>| {
        text.map(|text| {
            text.parse()
                .ok()
                // Nothing was recorded before, and the database does not know every time that is older.
                .filter(|at| *at >= jiff::Timestamp::UNIX_EPOCH)
                .map(Timestamp)
                .ok_or_else(|| {
                    Failure::field(field, "this is not a time such as 2026-01-31T12:00:00Z")
                })
        })
        .transpose()
    };
    let after = query.after.unwrap_or_default();
    if i64::try_from(after).is_err() {
        return Err(Failure::field("after", "this is not the `next` of a page"));
    }
    Ok(AuditFilter {
        from: time("from", query.from)?,
        until: time("until", query.until)?,
        action: query.action,
        resource_type: query.resource_type,
        resource_id: query.resource_id,
        user_id: query.user_id,
        outcome: query.outcome,
        trace_id: query.trace_id,
        after,
        newest_first: query.newest_first,
        limit: page_size(query.limit, PAGE, LARGEST_PAGE)?,
    })
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<AuditQuery>,
) -> ApiResult<Json<Page<AuditEntryBody>>> {
    let filter = filter(query)?;
    let limit = filter.limit as usize;
    let entries = state.app.audit_list(&call, tenant, filter).await?;
    let next = entries
        .last()
        .filter(|_| entries.len() == limit)
        .map(|entry| entry.sequence.to_string());
    let items = entries.into_iter().map(AuditEntryBody::from).collect();
    Ok(Json(Page { items, next }))
}

async fn export(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<AuditQuery>,
) -> ApiResult<Response> {
    let (format, kind) = match query.format.as_deref() {
        None | Some("jsonl") => (ExportFormat::JsonLines, "application/jsonl"),
        Some("csv") => (ExportFormat::Csv, "text/csv; charset=utf-8"),
        Some(_) => {
            return Err(Failure::field("format", "this is neither `jsonl` nor `csv`").into());
        }
    };
    let export = state
        .app
        .audit_export(&call, tenant, filter(query)?, format)
        .await?;
    let mut response = ([(header::CONTENT_TYPE, kind)], export.text).into_response();
    if let Some(next) = export.next {
        response.headers_mut().insert(NEXT_HEADER, next.into());
    }
    Ok(response)
}

async fn verify(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<AuditVerdict>> {
    let report = state.app.audit_verify(&call, tenant).await?;
    let (entries, checkpoints, fault) = match report.verdict {
        ChainVerdict::Intact {
            entries,
            checkpoints,
        } => (Some(entries), Some(checkpoints), None),
        ChainVerdict::Broken { fault } => (None, None, Some(fault)),
    };
    Ok(Json(AuditVerdict {
        intact: fault.is_none(),
        entries,
        checkpoints,
        archived: report.archived,
        fault_sequence: fault.as_ref().map(|fault| fault.sequence),
        fault: fault.map(|fault| fault.to_string()),
        public_key: report.public_key,
    }))
}
