//! Requests for approval, and what was decided on them. What a chain and a state mean is the approvals core's; here they
//! are JSON.

use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{ListPage, RowCursor, StoreError, StoredRun, TenantTx, Timestamp};

/// A request as the database has it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredApproval {
    pub id: Uuid,
    /// The run that waits for it, which may be gone once it has ended.
    pub run: Uuid,
    pub run_number: i32,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    pub action: String,
    /// The preview whose plan is approved.
    pub plan: Option<Uuid>,
    pub plan_digest: String,
    pub manifest_digest: String,
    pub planned_at: Timestamp,
    pub chain: Value,
    pub state: Value,
    /// `pending`, `approved`, `rejected`, `expired` or `withdrawn`.
    pub status: String,
    pub deadline: Option<Timestamp>,
    pub requested_by: Uuid,
    pub requested_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// A request to be made, for a run.
#[derive(Clone, Debug)]
pub struct NewApproval {
    pub plan_digest: String,
    pub manifest_digest: String,
    pub planned_at: Timestamp,
    pub chain: Value,
    pub moved: ApprovalMove,
}

/// Where a request is from now on.
#[derive(Clone, Debug)]
pub struct ApprovalMove {
    pub state: Value,
    pub status: &'static str,
    pub deadline: Option<Timestamp>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredDecision {
    pub request: Uuid,
    pub step: i32,
    pub person: Uuid,
    /// Who had asked them to decide in their place.
    pub for_person: Option<Uuid>,
    /// `approve` or `reject`.
    pub verdict: String,
    pub comment: String,
    pub decided_at: Timestamp,
    /// Which of the step's approvers it speaks for, by place.
    pub covers: Vec<i32>,
}

/// Which requests.
#[derive(Clone, Debug, Default)]
pub struct ApprovalFilter {
    pub status: Option<String>,
    pub deployment: Option<String>,
    pub environment: Option<String>,
}

const COLUMNS: &str = "id, run, run_number, deployment, environment, rehearsal, action, plan, plan_digest, \
    manifest_digest, planned_at, chain, state, status, deadline, requested_by, requested_at, ended_at";

fn select(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM approval_requests {rest}"))
}

impl TenantTx {
    /// Makes a request for a run that was queued in this transaction: from here on the run waits for it.
    pub async fn approval_create(
        &mut self,
        run: &StoredRun,
        new: &NewApproval,
    ) -> Result<StoredApproval, StoreError> {
        let id = Uuid::new_v4();
        sqlx::query(
            "INSERT INTO approval_requests (id, run, run_number, deployment, environment, rehearsal, action, plan,
                 plan_digest, manifest_digest, planned_at, chain, state, status, deadline, requested_by)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        )
        .bind(id)
        .bind(run.id)
        .bind(run.number)
        .bind(&run.deployment)
        .bind(&run.environment)
        .bind(run.rehearsal)
        .bind(&run.action)
        .bind(run.plan)
        .bind(&new.plan_digest)
        .bind(&new.manifest_digest)
        .bind(new.planned_at)
        .bind(&new.chain)
        .bind(&new.moved.state)
        .bind(new.moved.status)
        .bind(new.moved.deadline)
        .bind(run.requested_by)
        .execute(self.connection())
        .await?;
        sqlx::query("UPDATE runs SET approval = $2 WHERE id = $1")
            .bind(run.id)
            .bind(id)
            .execute(self.connection())
            .await?;
        self.approval_get(id).await
    }

    pub async fn approval_get(&mut self, id: Uuid) -> Result<StoredApproval, StoreError> {
        sqlx::query_as(select("WHERE id = $1"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("approval"))
    }

    /// A request that nobody changes until the transaction ends. Its run is locked before it, always.
    pub async fn approval_lock(&mut self, id: Uuid) -> Result<StoredApproval, StoreError> {
        sqlx::query_as(select("WHERE id = $1 FOR UPDATE"))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("approval"))
    }

    /// Newest first.
    pub async fn approval_list(
        &mut self,
        filter: &ApprovalFilter,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        Ok(sqlx::query_as(select(
            "WHERE ($1::text IS NULL OR status = $1) AND ($2::text IS NULL OR deployment = $2)
               AND ($3::text IS NULL OR environment = $3)
               AND ($4::timestamptz IS NULL OR (requested_at, id) < ($4, $5))
             ORDER BY requested_at DESC, id DESC LIMIT $6",
        ))
        .bind(&filter.status)
        .bind(&filter.deployment)
        .bind(&filter.environment)
        .bind(at)
        .bind(id)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Requests whose time is over at a moment, the oldest first.
    pub async fn approvals_due(&mut self, now: Timestamp) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT id FROM approval_requests WHERE status = 'pending' AND deadline <= $1 ORDER BY deadline, id
             LIMIT 100",
        )
        .bind(now)
        .fetch_all(self.connection())
        .await?)
    }

    /// What was decided on these requests, oldest first.
    pub async fn decisions_on(
        &mut self,
        requests: &[Uuid],
    ) -> Result<Vec<StoredDecision>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT request, step, person, for_person, verdict, comment, decided_at, covers FROM approval_decisions
             WHERE request = ANY($1) ORDER BY decided_at, step, person",
        )
        .bind(requests)
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn decision_add(&mut self, decision: &StoredDecision) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO approval_decisions (request, step, person, for_person, verdict, comment, decided_at, covers)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(decision.request)
        .bind(decision.step)
        .bind(decision.person)
        .bind(decision.for_person)
        .bind(&decision.verdict)
        .bind(&decision.comment)
        .bind(decision.decided_at)
        .bind(&decision.covers)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Moves a request that is locked.
    pub async fn approval_move(
        &mut self,
        id: Uuid,
        moved: &ApprovalMove,
    ) -> Result<StoredApproval, StoreError> {
        sqlx::query(
            "UPDATE approval_requests SET state = $2, status = $3, deadline = $4,
                 ended_at = CASE WHEN $3 = 'pending' THEN NULL ELSE clock_timestamp() END
             WHERE id = $1",
        )
        .bind(id)
        .bind(&moved.state)
        .bind(moved.status)
        .bind(moved.deadline)
        .execute(self.connection())
        .await?;
        self.approval_get(id).await
    }

    /// A run that was approved goes on to the end of the queue, unless somebody paused it meanwhile.
    pub async fn run_approved(&mut self, run: Uuid) -> Result<(), StoreError> {
        sqlx::query("UPDATE runs SET approval = NULL, queued_at = clock_timestamp() WHERE id = $1")
            .bind(run)
            .execute(self.connection())
            .await?;
        self.work_note().await
    }

    /// The newest other run that changed a run's environment, or was at it, after a moment.
    pub async fn run_since(
        &mut self,
        run: &StoredRun,
        since: Timestamp,
    ) -> Result<Option<i32>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT max(number) FROM runs WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND id <> $4
               AND action <> 'preview' AND began_at IS NOT NULL AND (ended_at IS NULL OR ended_at > $5)",
        )
        .bind(&run.deployment)
        .bind(&run.environment)
        .bind(run.rehearsal)
        .bind(run.id)
        .bind(since)
        .fetch_one(self.connection())
        .await?)
    }
}
