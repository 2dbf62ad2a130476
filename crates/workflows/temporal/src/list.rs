//! Lists of workflows, oldest first. The server's index has them newest first and knows no other order,
//! so a page is read from a window of time that is small enough to be sorted here.

use std::collections::BTreeSet;

use futures::stream::{StreamExt as _, TryStreamExt as _, iter};
use jiff::{SignedDuration, Timestamp};
use nimbus_core::{Error, ErrorCode};
use nimbus_workflows::{FlowFilter, FlowId, FlowPage, FlowRecord};
use temporalio_client::grpc::WorkflowService as _;
use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    CountWorkflowExecutionsRequest, ListWorkflowExecutionsRequest,
};

use crate::options::invalid;
use crate::server::{TemporalServer, refused, timestamp};

/// As many workflows are sorted at once; also the server's largest page.
const WINDOW: i64 = 1000;
/// As many records are read at once.
const AT_ONCE: usize = 8;

/// A workflow's place in the list.
type ListPlace = (Timestamp, String);

impl TemporalServer {
    pub(crate) async fn list(
        &self,
        filter: &FlowFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<FlowPage, Error> {
        let after = cursor.map(read_cursor).transpose()?;
        let Some(query) = self.query(filter) else {
            return Ok(FlowPage::default());
        };
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let prefix = filter.id_prefix.as_deref().unwrap_or_default();
        let mut found = BTreeSet::new();
        let mut low = after
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |(time, _)| *time);
        loop {
            let (high, last) = self.window(&query, low).await?;
            for place in self.places(&within(&query, low, high)).await? {
                let later = after.as_ref().is_none_or(|after| place > *after);
                if later && place.1.starts_with(prefix) {
                    found.insert(place);
                }
            }
            if last || found.len() > wanted {
                break;
            }
            low = high;
        }
        let more = found.len() > wanted;
        let places: Vec<ListPlace> = found.into_iter().take(wanted).collect();
        let next = places.last().filter(|_| more).map(write_cursor);
        let flows = iter(places).map(|(_, id)| async move {
            match self.record(&FlowId::parse(id)?).await {
                // The server deleted it in between.
                Err(error) if error.code() == ErrorCode::WORKFLOW_UNKNOWN => Ok(None),
                other => other.map(Some),
            }
        });
        let flows: Vec<Option<FlowRecord>> = flows.buffered(AT_ONCE).try_collect().await?;
        Ok(FlowPage {
            flows: flows.into_iter().flatten().collect(),
            next,
        })
    }

    /// Nothing if no workflow of ours can match.
    fn query(&self, filter: &FlowFilter) -> Option<String> {
        let mut query = format!("TaskQueue = '{}'", self.options.queue);
        for (what, text) in [
            ("WorkflowId STARTS_WITH", &filter.id_prefix),
            ("WorkflowType =", &filter.flow),
        ] {
            let Some(text) = text else {
                continue;
            };
            if text.contains(['\'', '"', '\\']) || text.chars().any(char::is_control) {
                return None;
            }
            query.push_str(&format!(" AND {what} '{text}'"));
        }
        match filter.ended {
            Some(true) => query.push_str(" AND ExecutionStatus != 'Running'"),
            Some(false) => query.push_str(" AND ExecutionStatus = 'Running'"),
            None => {}
        }
        Some(query)
    }

    /// How far from `low` one window goes, and whether it is the last one.
    async fn window(&self, query: &str, low: Timestamp) -> Result<(Timestamp, bool), Error> {
        // Clocks differ.
        let ahead = SignedDuration::from_hours(1);
        let mut high = Timestamp::now()
            .checked_add(ahead)
            .unwrap_or(Timestamp::MAX);
        let mut last = true;
        while self.count(&within(query, low, high)).await? > WINDOW {
            let half = high.duration_since(low) / 2;
            if half < SignedDuration::from_millis(1) {
                break;
            }
            high = low.checked_add(half).unwrap_or(high);
            last = false;
        }
        Ok((high, last))
    }

    async fn count(&self, query: &str) -> Result<i64, Error> {
        let request = CountWorkflowExecutionsRequest {
            namespace: self.namespace(),
            query: query.to_owned(),
        };
        let mut api = self.api();
        let count = api.count_workflow_executions(request.into_request());
        let count = count.await.map_err(|status| refused(&status))?;
        Ok(count.into_inner().count)
    }

    async fn places(&self, query: &str) -> Result<Vec<ListPlace>, Error> {
        let mut places = Vec::new();
        let mut token = Vec::new();
        loop {
            let request = ListWorkflowExecutionsRequest {
                namespace: self.namespace(),
                page_size: i32::try_from(WINDOW).unwrap_or(i32::MAX),
                next_page_token: token,
                query: query.to_owned(),
            };
            let mut api = self.api();
            let page = api.list_workflow_executions(request.into_request());
            let page = page.await.map_err(|status| refused(&status))?.into_inner();
            places.extend(page.executions.into_iter().filter_map(place));
            token = page.next_page_token;
            if token.is_empty() {
                return Ok(places);
            }
        }
    }
}

/// A name that is not one of ours belongs to somebody else's workflow on our queue.
fn place(info: WorkflowExecutionInfo) -> Option<ListPlace> {
    let id = FlowId::parse(info.execution?.workflow_id).ok()?;
    let time = info.start_time?;
    Some((timestamp(time.seconds, time.nanos)?, id.into()))
}

/// Both ends belong to it: the index may know less of a time than its milliseconds.
fn within(query: &str, low: Timestamp, high: Timestamp) -> String {
    let millis = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    let high = high
        .checked_add(SignedDuration::from_millis(1))
        .unwrap_or(high);
    format!(
        "{query} AND StartTime >= '{}' AND StartTime <= '{}'",
        millis(low),
        millis(high)
    )
}

fn write_cursor((time, id): &ListPlace) -> String {
    format!("{}:{id}", time.as_nanosecond())
}

fn read_cursor(cursor: &str) -> Result<ListPlace, Error> {
    cursor
        .split_once(':')
        .and_then(|(time, id)| {
            let time = Timestamp::from_nanosecond(time.parse().ok()?).ok()?;
            Some((time, id.to_owned()))
        })
        .ok_or_else(|| invalid("the cursor is not one that a list gave"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_were_written() {
        let place = (
            "2026-11-18T01:02:03.000456789Z".parse().unwrap(),
            "a:b/c".to_owned(),
        );
        assert_eq!(read_cursor(&write_cursor(&place)).unwrap(), place);
        for wrong in ["", "x", "x:y", ":"] {
            assert!(read_cursor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_window_has_both_its_ends() {
        let time = "2026-11-18T01:02:03.4567Z".parse().unwrap();
        assert_eq!(
            within("Q", time, time),
            "Q AND StartTime >= '2026-11-18T01:02:03.456Z' AND StartTime <= '2026-11-18T01:02:03.457Z'"
        );
    }
}
