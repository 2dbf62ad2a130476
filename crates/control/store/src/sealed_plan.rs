//! Sealed plans: what previews showed, for deploys that are held to it.

use serde_json::Value;
use uuid::Uuid;

use crate::{HeldRun, StoreError, TenantTx};

impl TenantTx {
    /// Keeps the plan of a preview that its worker still has.
    pub async fn plan_keep(&mut self, held: &HeldRun, plan: &Value) -> Result<(), StoreError> {
        self.run_require(held).await?;
        // A preview that another worker went on with is made again, and what it shows last counts.
        sqlx::query(
            "INSERT INTO sealed_plans (deployment, run, plan) VALUES ($1, $2, $3)
             ON CONFLICT (tenant_id, deployment, run) DO UPDATE SET plan = $3, created_at = clock_timestamp()",
        )
        .bind(&held.deployment)
        .bind(held.number)
        .bind(plan)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Notes which preview's plan a queued run is held to.
    pub async fn run_held_to(&mut self, run: Uuid, preview: Uuid) -> Result<(), StoreError> {
        sqlx::query("UPDATE runs SET plan = $2 WHERE id = $1")
            .bind(run)
            .bind(preview)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// The plan that a preview made, if it came to its end.
    pub async fn plan_get(
        &mut self,
        deployment: &str,
        number: i32,
    ) -> Result<Option<Value>, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT plan FROM sealed_plans WHERE deployment = $1 AND run = $2")
                .bind(deployment)
                .bind(number)
                .fetch_optional(self.connection())
                .await?,
        )
    }
}
