//! What is to be sent, and what became of it: rows that are written with what they tell and taken by one worker at a time.
//!
//! A worker has a delivery until its lease ends, on the database's clock. One that dies leaves it to the next; one that
//! comes back too late changes nothing, for the outcome counts only with the lease. So a delivery is sent at least once,
//! and has the same id each time.

use std::time::Duration;

use nimbus_core::TenantId;
use sqlx::FromRow;
use uuid::Uuid;

use crate::work::WorkTurn;
use crate::{ListPage, RowCursor, Store, StoreError, TenantTx, Timestamp};

/// Days that what was delivered, or has nobody to be delivered to, is kept. Dead letters stay.
const KEPT_DAYS: i32 = 30;

/// A delivery as lists show it: without what it says.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredDelivery {
    pub id: Uuid,
    /// `webhook` or `email`.
    pub channel: String,
    pub webhook: Option<Uuid>,
    pub person: Option<Uuid>,
    pub kind: String,
    /// `pending`, `delivered`, `dead` or `dropped`.
    pub status: String,
    pub attempts: i32,
    /// When it is tried next.
    pub due_at: Timestamp,
    pub problem: Option<String>,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// One time that somebody tried.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct DeliveryAttempt {
    pub number: i32,
    pub began_at: Timestamp,
    /// None if it was cut short.
    pub ended_at: Option<Timestamp>,
    /// The number of the answer, of HTTP or SMTP.
    pub status: Option<i32>,
    pub problem: Option<String>,
}

/// Which deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    pub status: Option<String>,
    pub channel: Option<String>,
    pub webhook: Option<Uuid>,
}

/// What a server is able to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryChannels {
    pub webhook: bool,
    pub email: bool,
}

/// A delivery that a worker has, with where it goes.
#[derive(Clone, Debug, FromRow)]
pub struct TakenDelivery {
    pub id: Uuid,
    pub channel: String,
    pub kind: String,
    pub payload: String,
    /// This one counted.
    pub tries: i32,
    /// The number of this attempt.
    pub attempt: i32,
    pub began_at: Timestamp,
    pub webhook: Option<Uuid>,
    pub url: Option<String>,
    /// Sealed, and so is the one before it while it signs as well.
    pub secret: Option<Vec<u8>>,
    pub previous_secret: Option<Vec<u8>>,
    /// Of somebody who is there and may sign in.
    pub address: Option<String>,
}

/// What a worker leaves a delivery as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryEnd {
    Delivered,
    Retry {
        after: Duration,
    },
    Dead,
    /// There is nobody to deliver it to.
    Dropped,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct AttemptEnd {
    pub end: DeliveryEnd,
    pub status: Option<u16>,
    pub problem: Option<String>,
}

const COLUMNS: &str =
    "id, channel, webhook, person, kind, status, attempts, due_at, problem, created_at, ended_at";

/// What can be sent now, of `deliveries d` with its webhook as `w`: $1 is mail, $2 webhooks.
const SENDABLE: &str =
    "d.status = 'pending' AND CASE d.channel WHEN 'email' THEN $1 ELSE $2 AND w.enabled END";

impl Store {
    /// Tenants that have something to send now: customers in turn, of each whoever waits longest first.
    pub async fn delivery_due(&self, most: i32) -> Result<Vec<WorkTurn>, StoreError> {
        let mut connection = self.app().acquire().await?;
        let due: Vec<(Uuid, Uuid)> =
            sqlx::query_as("SELECT tenant, customer FROM nimbus_core.delivery_turns_due($1)")
                .bind(most)
                .fetch_all(&mut *connection)
                .await?;
        let turn = |(tenant, customer): (Uuid, Uuid)| WorkTurn {
            tenant: tenant.into(),
            customer: customer.into(),
        };
        Ok(due.into_iter().map(turn).collect())
    }

    /// Makes workers look at every tenant: nobody knows what a server that is gone, or could not send, left.
    pub async fn delivery_note_all(&self) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.delivery_note_all()")
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// A tenant that is gone has nothing to send.
    pub async fn delivery_forget(&self, tenant: TenantId) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.delivery_forget($1)")
            .bind(Uuid::from(tenant))
            .execute(&mut *connection)
            .await?;
        Ok(())
    }
}

impl TenantTx {
    /// The tenant has something to send from then on, or at once.
    pub(crate) async fn delivery_note(&mut self, at: Option<Timestamp>) -> Result<(), StoreError> {
        sqlx::query("SELECT nimbus_core.delivery_note($1)")
            .bind(at)
            .execute(self.connection())
            .await?;
        self.delivers = true;
        Ok(())
    }

    /// Writes one for each webhook that wants this kind.
    pub(crate) async fn deliver_to_webhooks(
        &mut self,
        kind: &str,
        data: &serde_json::Value,
    ) -> Result<(), StoreError> {
        let written = sqlx::query(
            "INSERT INTO deliveries (id, channel, webhook, kind, payload)
             SELECT gen_random_uuid(), 'webhook', w.id, $1, nimbus_core.webhook_payload($1, $2)
             FROM webhooks w WHERE w.enabled AND (w.kinds = '{}' OR $1 = ANY(w.kinds))",
        )
        .bind(kind)
        .bind(data)
        .execute(self.connection())
        .await?;
        if written.rows_affected() > 0 {
            self.delivery_note(None).await?;
        }
        Ok(())
    }

    /// Writes one for a webhook, whatever it wants.
    pub async fn deliver_to_webhook(
        &mut self,
        webhook: Uuid,
        kind: &str,
        data: &serde_json::Value,
    ) -> Result<StoredDelivery, StoreError> {
        let statement = format!(
            "INSERT INTO deliveries (id, channel, webhook, kind, payload)
             VALUES (gen_random_uuid(), 'webhook', $1, $2, nimbus_core.webhook_payload($2, $3)) RETURNING {COLUMNS}"
        );
        let written = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(webhook)
            .bind(kind)
            .bind(data)
            .fetch_one(self.connection())
            .await?;
        self.delivery_note(None).await?;
        Ok(written)
    }

    /// Takes the tenant's turn. False when another worker is at it.
    pub async fn delivery_turn(&mut self) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("SELECT nimbus_core.delivery_turn()")
            .fetch_one(self.connection())
            .await?)
    }

    /// Takes at most so many that are due, for so many seconds.
    pub async fn deliveries_take(
        &mut self,
        channels: DeliveryChannels,
        lease: Uuid,
        seconds: f64,
        most: i64,
    ) -> Result<Vec<TakenDelivery>, StoreError> {
        let statement = format!(
            "WITH due AS (
                 SELECT d.id FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook
                 WHERE {SENDABLE} AND d.due_at <= clock_timestamp()
                 ORDER BY d.due_at LIMIT $3 FOR UPDATE OF d SKIP LOCKED),
             taken AS (
                 UPDATE deliveries d SET lease = $4, attempts = d.attempts + 1, tries = d.tries + 1,
                     due_at = clock_timestamp() + make_interval(secs => $5)
                 FROM due WHERE d.id = due.id
                 RETURNING d.id, d.channel, d.kind, d.payload, d.tries, d.attempts, d.webhook, d.person),
             noted AS (
                 INSERT INTO delivery_attempts (delivery, number) SELECT t.id, t.attempts FROM taken t
                 RETURNING delivery, began_at)
             SELECT t.id, t.channel, t.kind, t.payload, t.tries, t.attempts AS attempt, n.began_at, t.webhook, w.url,
                 w.secret, CASE WHEN w.previous_until > clock_timestamp() THEN w.previous_secret END AS previous_secret,
                 u.email AS address
             FROM taken t JOIN noted n ON n.delivery = t.id
             LEFT JOIN webhooks w ON w.id = t.webhook
             LEFT JOIN nimbus_core.users u ON u.id = t.person AND u.deleted_at IS NULL AND u.disabled_at IS NULL"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(channels.email)
            .bind(channels.webhook)
            .bind(most)
            .bind(lease)
            .bind(seconds)
            .fetch_all(self.connection())
            .await?)
    }

    /// Notes when the tenant has something to send next; after [`delivery_turn`](Self::delivery_turn).
    pub async fn delivery_next(&mut self, channels: DeliveryChannels) -> Result<(), StoreError> {
        let statement = format!(
            "SELECT nimbus_core.delivery_next(
                 (SELECT min(d.due_at) FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook WHERE {SENDABLE}))"
        );
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(channels.email)
            .bind(channels.webhook)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Notes how an attempt ended. False when the delivery was not this worker's any more: then only the attempt is noted.
    pub async fn delivery_end(
        &mut self,
        taken: &TakenDelivery,
        lease: Uuid,
        ended: &AttemptEnd,
    ) -> Result<bool, StoreError> {
        sqlx::query(
            "UPDATE delivery_attempts SET ended_at = clock_timestamp(), status = $3, problem = left($4, 500)
             WHERE delivery = $1 AND number = $2",
        )
        .bind(taken.id)
        .bind(taken.attempt)
        .bind(ended.status.map(i32::from))
        .bind(&ended.problem)
        .execute(self.connection())
        .await?;
        let (status, seconds) = match ended.end {
            DeliveryEnd::Delivered => ("delivered", None),
            DeliveryEnd::Retry { after } => ("pending", Some(after.as_secs_f64())),
            DeliveryEnd::Dead => ("dead", None),
            DeliveryEnd::Dropped => ("dropped", None),
        };
        let due: Option<Timestamp> = sqlx::query_scalar(
            "UPDATE deliveries SET status = $3, problem = left($4, 500), lease = NULL,
                 due_at = clock_timestamp() + make_interval(secs => COALESCE($5, 0)),
                 ended_at = CASE WHEN $5 IS NULL THEN clock_timestamp() END
             WHERE id = $1 AND lease = $2 AND status = 'pending' RETURNING due_at",
        )
        .bind(taken.id)
        .bind(lease)
        .bind(status)
        .bind(&ended.problem)
        .bind(seconds)
        .fetch_optional(self.connection())
        .await?;
        if seconds.is_some() && due.is_some() {
            self.delivery_note(due).await?;
        }
        Ok(due.is_some())
    }

    /// Newest first.
    pub async fn delivery_list(
        &mut self,
        filter: &DeliveryFilter,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        let statement = format!(
            "SELECT {COLUMNS} FROM deliveries
             WHERE ($1::timestamptz IS NULL OR (created_at, id) < ($1, $2))
               AND ($3::text IS NULL OR status = $3) AND ($4::text IS NULL OR channel = $4)
               AND ($5::uuid IS NULL OR webhook = $5)
             ORDER BY created_at DESC, id DESC LIMIT $6"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(at)
            .bind(id)
            .bind(&filter.status)
            .bind(&filter.channel)
            .bind(filter.webhook)
            .bind(i64::from(page.limit))
            .fetch_all(self.connection())
            .await?)
    }

    /// One, and every time that somebody tried, the newest first.
    pub async fn delivery_get(
        &mut self,
        id: Uuid,
    ) -> Result<(StoredDelivery, Vec<DeliveryAttempt>), StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM deliveries WHERE id = $1");
        let delivery: Option<StoredDelivery> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id)
            .fetch_optional(self.connection())
            .await?;
        let delivery = delivery.ok_or(StoreError::NotFound("delivery"))?;
        let attempts = sqlx::query_as(
            "SELECT number, began_at, ended_at, status, problem FROM delivery_attempts
             WHERE delivery = $1 ORDER BY number DESC",
        )
        .bind(id)
        .fetch_all(self.connection())
        .await?;
        Ok((delivery, attempts))
    }

    /// Sends one again from the beginning, with its id and what it says. None when it is under way, or was dropped.
    pub async fn delivery_resend(
        &mut self,
        id: Uuid,
    ) -> Result<Option<StoredDelivery>, StoreError> {
        let statement = format!(
            "UPDATE deliveries SET status = 'pending', tries = 0, lease = NULL, ended_at = NULL, due_at = clock_timestamp()
             WHERE id = $1 AND status IN ('dead', 'delivered') RETURNING {COLUMNS}"
        );
        let again: Option<StoredDelivery> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id)
            .fetch_optional(self.connection())
            .await?;
        if again.is_some() {
            self.delivery_note(None).await?;
        }
        Ok(again)
    }

    /// Sends every dead letter of a webhook again. How many there were.
    pub async fn deliveries_resend_dead(&mut self, webhook: Uuid) -> Result<u64, StoreError> {
        let again = sqlx::query(
            "UPDATE deliveries SET status = 'pending', tries = 0, lease = NULL, ended_at = NULL, due_at = clock_timestamp()
             WHERE webhook = $1 AND status = 'dead'",
        )
        .bind(webhook)
        .execute(self.connection())
        .await?;
        if again.rows_affected() > 0 {
            self.delivery_note(None).await?;
        }
        Ok(again.rows_affected())
    }

    /// Removes what was delivered, or dropped, long ago. How many there were.
    pub async fn deliveries_trim(&mut self) -> Result<u64, StoreError> {
        let removed = sqlx::query(
            "DELETE FROM deliveries WHERE status IN ('delivered', 'dropped')
                 AND ended_at < clock_timestamp() - make_interval(days => $1)",
        )
        .bind(KEPT_DAYS)
        .execute(self.connection())
        .await?;
        Ok(removed.rows_affected())
    }
}
