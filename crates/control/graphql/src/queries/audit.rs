//! The audit trail.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{AuditEntry, AuditFilter, Failure, Timestamp};

use crate::act::{FieldResult, act, asked};
use crate::nodes::{AuditNode, AuditVerificationNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page};
use crate::scalars::{GraphTime, read_time};

#[derive(Default)]
pub(crate) struct AuditQueries;

/// Which entries.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "AuditFilter")]
struct AuditChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    action: Option<String>,
    resource_type: Option<String>,
    resource_id: Option<String>,
    user_id: Option<String>,
    outcome: Option<String>,
    trace_id: Option<String>,
    /// Included.
    from: Option<GraphTime>,
    /// Not included.
    until: Option<GraphTime>,
    #[graphql(default)]
    newest_first: bool,
}

impl AuditChoices {
    fn filter(self, page: nimbus_control_app::ListPage<u64>) -> Result<AuditFilter, Failure> {
        let after = page.after.unwrap_or_default();
        if i64::try_from(after).is_err() {
            return Err(Failure::field(
                "after",
                "this is not the `endCursor` of a page",
            ));
        }
        Ok(AuditFilter {
            from: read_time("from", self.from)?.map(Timestamp),
            until: read_time("until", self.until)?.map(Timestamp),
            action: self.action,
            resource_type: self.resource_type,
            resource_id: self.resource_id,
            user_id: self.user_id,
            outcome: self.outcome,
            trace_id: self.trace_id,
            after,
            newest_first: self.newest_first,
            limit: page.limit,
        })
    }
}

#[Object]
impl AuditQueries {
    /// What happened in a tenant.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn audit_logs(
        &self,
        ctx: &Context<'_>,
        filter: Option<AuditChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<AuditNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let filter = given.filter(page(pagination)?)?;
            let limit = filter.limit;
            let rows = asked
                .app()
                .audit_list(asked.call()?, tenant, filter)
                .await?;
            let place = |row: &AuditEntry| row.sequence.to_string();
            Ok(connection(rows, limit, place, |row| {
                AuditNode::new(tenant, row)
            }))
        })
        .await
    }

    /// Whether a tenant's trail is whole.
    #[graphql(complexity = "500 + child_complexity")]
    async fn audit_verification(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<AuditVerificationNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let report = asked.app().audit_verify(asked.call()?, tenant).await?;
            Ok(report.into())
        })
        .await
    }
}
