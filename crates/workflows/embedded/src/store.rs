//! Every statement of this crate: our own tables beside those of the library, and the library's table
//! of workflows, which starting and listing use directly.

use std::time::Duration;

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode};
use nimbus_workflows::{
    Fail, FlowFailure, FlowFilter, FlowId, FlowPage, FlowRecord, FlowSchedule, FlowState, NewFlow,
    ScheduleView, Started,
};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, PgPool, Row as _};

use crate::options::{APPLICATION, EmbeddedOptions, QUEUE};

const NOW: &str = "(EXTRACT(epoch FROM clock_timestamp()) * 1000)::bigint";
const OPEN: &str = "('PENDING', 'ENQUEUED', 'DELAYED')";

/// How a workflow ended without a result, as the library records it.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedEnd {
    #[error(transparent)]
    Failed(FlowFailure),
    #[error("the workflow was cancelled")]
    Cancelled,
}

/// The database.
#[derive(Clone, Debug)]
pub(crate) struct WorkflowStore {
    pool: PgPool,
    options: PgConnectOptions,
    schema: String,
    version: String,
}

impl WorkflowStore {
    pub(crate) fn connect(options: &EmbeddedOptions) -> Result<Self, Error> {
        let address: PgConnectOptions = options.url.expose_secret().parse().map_err(unavailable)?;
        let pool = PgPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(Duration::from_secs(60))
            .connect_lazy_with(address.clone());
        Ok(Self {
            pool,
            options: address,
            schema: options.schema.clone(),
            version: options.version.clone(),
        })
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// A connection that belongs to nobody else.
    pub(crate) async fn session(&self) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect_with(&self.options).await
    }

    fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        let text = text.replace("{s}", &self.schema);
        AssertSqlSafe(text.replace("{now}", NOW).replace("{open}", OPEN))
    }

    /// Our tables; those of the library are there.
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        let tables = "
            SELECT pg_advisory_xact_lock(hashtextextended('{s}.tables', 0));
            CREATE TABLE IF NOT EXISTS {s}.nimbus_owner (one bool PRIMARY KEY CHECK (one), term bigint NOT NULL);
            INSERT INTO {s}.nimbus_owner VALUES (true, 0) ON CONFLICT DO NOTHING;
            CREATE TABLE IF NOT EXISTS {s}.nimbus_cancelled (id text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
            CREATE TABLE IF NOT EXISTS {s}.nimbus_stuck (id text PRIMARY KEY, reason text NOT NULL, at timestamptz NOT NULL DEFAULT now());
            CREATE TABLE IF NOT EXISTS {s}.nimbus_begun (id text PRIMARY KEY, steps bigint NOT NULL, times int NOT NULL, at timestamptz NOT NULL DEFAULT now());
            CREATE TABLE IF NOT EXISTS {s}.nimbus_answer (id text, query text, answer jsonb NOT NULL, PRIMARY KEY (id, query));
            CREATE TABLE IF NOT EXISTS {s}.nimbus_schedule (name text PRIMARY KEY, schedule jsonb NOT NULL, next_at bigint, last_id text);";
        let mut transaction = self.pool.begin().await.map_err(unavailable)?;
        sqlx::raw_sql(self.sql(tables))
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
        transaction.commit().await.map_err(unavailable)
    }

    /// Adds a workflow to the queue, once.
    pub(crate) async fn start(&self, new: &NewFlow) -> Result<Started, Error> {
        let mut connection = self.pool.acquire().await.map_err(unavailable)?;
        self.start_on(&mut connection, new).await
    }

    async fn start_on(&self, session: &mut PgConnection, new: &NewFlow) -> Result<Started, Error> {
        let insert = "
            INSERT INTO {s}.workflow_status (workflow_uuid, status, name, inputs, serialization, queue_name,
                application_version, application_name, created_at, updated_at, recovery_attempts, priority)
            VALUES ($1, 'ENQUEUED', $2, $3, 'rust_serde', $4, $5, $6, {now}, {now}, 0, 0)
            ON CONFLICT (workflow_uuid) DO NOTHING";
        let input = new.input.to_string();
        let done = sqlx::query(self.sql(insert))
            .bind(new.id.as_str())
            .bind(&new.flow)
            .bind(&input)
            .bind(QUEUE)
            .bind(&self.version)
            .bind(APPLICATION)
            .execute(&mut *session)
            .await
            .map_err(unavailable)?;
        if done.rows_affected() == 1 {
            return Ok(Started::New);
        }
        let found = "SELECT name, inputs FROM {s}.workflow_status WHERE workflow_uuid = $1";
        let found = sqlx::query(self.sql(found))
            .bind(new.id.as_str())
            .fetch_one(session)
            .await
            .map_err(unavailable)?;
        let name: Option<String> = found.get("name");
        let inputs: Option<String> = found.get("inputs");
        let inputs = inputs.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        if name.as_ref() == Some(&new.flow) && inputs.as_ref() == Some(&new.input) {
            return Ok(Started::Before);
        }
        Err(FlowRecord::taken(&new.id))
    }

    pub(crate) async fn find(&self, id: &FlowId) -> Result<Option<FlowRecord>, Error> {
        let query = format!("{SELECT} WHERE w.workflow_uuid = $1");
        let row = sqlx::query(self.sql(&query))
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await
            .map_err(unavailable)?;
        row.map(|row| record(&row)).transpose()
    }

    /// What a workflow says to a query from now on.
    pub(crate) async fn publish(
        &self,
        id: &FlowId,
        query: &str,
        answer: &Value,
    ) -> sqlx::Result<()> {
        let put = "INSERT INTO {s}.nimbus_answer (id, query, answer) VALUES ($1, $2, $3)
            ON CONFLICT (id, query) DO UPDATE SET answer = excluded.answer";
        let put = sqlx::query(self.sql(put)).bind(id.as_str()).bind(query);
        put.bind(answer).execute(&self.pool).await.map(|_| ())
    }

    pub(crate) async fn answer(&self, id: &FlowId, query: &str) -> Result<Option<Value>, Error> {
        let found = "SELECT answer FROM {s}.nimbus_answer WHERE id = $1 AND query = $2";
        let found = sqlx::query_scalar(self.sql(found)).bind(id.as_str());
        let found = found.bind(query).fetch_optional(&self.pool).await;
        found.map_err(unavailable)
    }

    pub(crate) async fn list(
        &self,
        filter: &FlowFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<FlowPage, Error> {
        let (time, id) = cursor.map_or(Ok((0, "")), read_cursor)?;
        let query = format!(
            "{SELECT} WHERE w.application_name = $1
             AND (w.created_at, w.workflow_uuid) > ($2, $3)
             AND ($4::text IS NULL OR starts_with(w.workflow_uuid, $4))
             AND ($5::text IS NULL OR w.name = $5)
             AND ($6::bool IS NULL OR (w.status NOT IN {{open}}) = $6)
             ORDER BY w.created_at, w.workflow_uuid LIMIT $7"
        );
        let rows = sqlx::query(self.sql(&query))
            .bind(APPLICATION)
            .bind(time)
            .bind(id)
            .bind(filter.id_prefix.as_deref())
            .bind(filter.flow.as_deref())
            .bind(filter.ended)
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.pool)
            .await
            .map_err(unavailable)?;
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let next = (rows.len() > wanted)
            .then(|| rows.get(wanted.saturating_sub(1)))
            .flatten()
            .map(|row| {
                let (time, id): (i64, String) = (row.get("created_at"), row.get("workflow_uuid"));
                format!("{time}:{id}")
            });
        let flows = rows.iter().take(wanted).map(record);
        Ok(FlowPage {
            flows: flows.collect::<Result<_, _>>()?,
            next,
        })
    }

    /// Records that a workflow is to end, then returns it and those of its children that have not ended.
    /// A child that is added later reads the record before it does anything.
    pub(crate) async fn cancel(&self, id: &FlowId) -> Result<Vec<String>, Error> {
        let insert = "INSERT INTO {s}.nimbus_cancelled (id) VALUES ($1) ON CONFLICT DO NOTHING";
        sqlx::query(self.sql(insert))
            .bind(id.as_str())
            .execute(&self.pool)
            .await
            .map_err(unavailable)?;
        let family = "SELECT workflow_uuid FROM {s}.workflow_status WHERE status IN {open}
                      AND (workflow_uuid = $1 OR starts_with(workflow_uuid, $2))";
        sqlx::query_scalar(self.sql(family))
            .bind(id.as_str())
            .bind(id.children_prefix())
            .fetch_all(&self.pool)
            .await
            .map_err(unavailable)
    }

    /// Whether a workflow or one that it is a child of was cancelled. Waits for a database that is away.
    pub(crate) async fn is_cancelled(&self, id: &FlowId) -> bool {
        let lineage: Vec<_> = id.lineage().map(str::to_owned).collect();
        let query = "SELECT EXISTS (SELECT 1 FROM {s}.nimbus_cancelled WHERE id = ANY($1))";
        loop {
            let found = sqlx::query_scalar(self.sql(query)).bind(&lineage);
            match found.fetch_one(&self.pool).await {
                Ok(found) => return found,
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    pub(crate) async fn all_cancelled(&self) -> Result<Vec<String>, sqlx::Error> {
        let query = "SELECT id FROM {s}.nimbus_cancelled";
        sqlx::query_scalar(self.sql(query))
            .fetch_all(&self.pool)
            .await
    }

    /// Counts that a workflow begins; how often it did without getting any further.
    pub(crate) async fn begin(&self, id: &str) -> Result<i32, sqlx::Error> {
        let query = "
            WITH known AS (DELETE FROM {s}.nimbus_stuck WHERE id = $1),
                 done AS (SELECT count(*) AS steps FROM {s}.operation_outputs WHERE workflow_uuid = $1)
            INSERT INTO {s}.nimbus_begun AS b (id, steps, times) SELECT $1, steps, 1 FROM done
            ON CONFLICT (id) DO UPDATE SET steps = excluded.steps, at = now(),
                times = CASE WHEN b.steps = excluded.steps THEN b.times + 1 ELSE 1 END
            RETURNING times";
        sqlx::query_scalar(self.sql(query))
            .bind(id)
            .fetch_one(&self.pool)
            .await
    }

    pub(crate) async fn stuck(&self, id: &str, reason: &str) -> Result<(), sqlx::Error> {
        let query = "INSERT INTO {s}.nimbus_stuck (id, reason) VALUES ($1, $2)
                     ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, at = now()";
        let insert = sqlx::query(self.sql(query)).bind(id).bind(reason);
        insert.execute(&self.pool).await.map(|_| ())
    }

    /// Those that have been stuck for a while.
    pub(crate) async fn long_stuck(&self) -> Result<Vec<String>, sqlx::Error> {
        let query =
            "DELETE FROM {s}.nimbus_stuck WHERE at < now() - interval '1 minute' RETURNING id";
        sqlx::query_scalar(self.sql(query))
            .fetch_all(&self.pool)
            .await
    }

    /// A process that ends in order, or has run for a while, holds nothing against its workflows.
    pub(crate) async fn forgive(&self, all: bool) -> Result<(), sqlx::Error> {
        let query = "DELETE FROM {s}.nimbus_begun WHERE $1 OR at < now() - interval '1 minute'";
        sqlx::query(self.sql(query))
            .bind(all)
            .execute(&self.pool)
            .await?;
        // The library gives up after a hundred restarts, however long a workflow has been waiting.
        let reset = "UPDATE {s}.workflow_status SET recovery_attempts = 0
                     WHERE status IN ('PENDING', 'ENQUEUED') AND recovery_attempts > 1";
        sqlx::query(self.sql(reset))
            .execute(&self.pool)
            .await
            .map(|_| ())
    }

    /// Deletes some of what ended long ago.
    pub(crate) async fn purge(&self, retention: Duration) -> Result<u64, sqlx::Error> {
        let query = "
            DELETE FROM {s}.workflow_status WHERE workflow_uuid IN (
                SELECT workflow_uuid FROM {s}.workflow_status
                WHERE status NOT IN {open} AND COALESCE(completed_at, updated_at) < {now} - $1 LIMIT 1000)";
        let age = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX / 2);
        let purged = sqlx::query(self.sql(query))
            .bind(age)
            .execute(&self.pool)
            .await?;
        let orphans = "DELETE FROM {s}.nimbus_cancelled c WHERE at < now() - interval '1 minute' AND NOT EXISTS (
            SELECT 1 FROM {s}.workflow_status w WHERE w.status IN {open}
            AND (w.workflow_uuid = c.id OR starts_with(w.workflow_uuid, c.id || '/')))";
        sqlx::query(self.sql(orphans)).execute(&self.pool).await?;
        let unasked = "DELETE FROM {s}.nimbus_answer a WHERE NOT EXISTS (
            SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = a.id)";
        sqlx::query(self.sql(unasked)).execute(&self.pool).await?;
        Ok(purged.rows_affected())
    }

    pub(crate) async fn put_schedule(&self, schedule: &FlowSchedule) -> Result<(), Error> {
        schedule.check()?;
        let next = schedule.next_after(Timestamp::now())?;
        let next = (!schedule.paused).then(|| next.as_millisecond());
        let query = "INSERT INTO {s}.nimbus_schedule (name, schedule, next_at) VALUES ($1, $2, $3)
                     ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule, next_at = excluded.next_at";
        sqlx::query(self.sql(query))
            .bind(&schedule.name)
            .bind(sqlx::types::Json(schedule))
            .bind(next)
            .execute(&self.pool)
            .await
            .map_err(unavailable)
            .map(|_| ())
    }

    pub(crate) async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        let query = "SELECT schedule, next_at, last_id FROM {s}.nimbus_schedule ORDER BY name";
        let rows = sqlx::query(self.sql(query)).fetch_all(&self.pool).await;
        rows.map_err(unavailable)?.iter().map(planned).collect()
    }

    pub(crate) async fn delete_schedule(&self, name: &str) -> Result<(), Error> {
        let query = "DELETE FROM {s}.nimbus_schedule WHERE name = $1";
        let deleted = sqlx::query(self.sql(query)).bind(name).execute(&self.pool);
        deleted.await.map_err(unavailable).map(|_| ())
    }

    /// Starts one schedule that is due; whether there was one.
    pub(crate) async fn start_due(&self) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await.map_err(unavailable)?;
        let query = "SELECT schedule, next_at, last_id FROM {s}.nimbus_schedule
                     WHERE next_at <= {now} ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED";
        let row = sqlx::query(self.sql(query))
            .fetch_optional(&mut *transaction)
            .await;
        let Some(row) = row.map_err(unavailable)? else {
            return Ok(false);
        };
        let ScheduleView {
            schedule,
            next,
            last,
        } = planned(&row)?;
        let due = next.unwrap_or_else(Timestamp::now);
        let open = "SELECT EXISTS (SELECT 1 FROM {s}.workflow_status
                    WHERE workflow_uuid = $1 AND status IN {open})";
        let open: bool = sqlx::query_scalar(self.sql(open))
            .bind(last.as_ref().map(FlowId::as_str))
            .fetch_one(&mut *transaction)
            .await
            .map_err(unavailable)?;
        let mut started = last;
        if !open {
            let new = NewFlow {
                id: schedule.id_at(due)?,
                flow: schedule.flow.clone(),
                input: schedule.input.clone(),
            };
            self.start_on(&mut transaction, &new).await?;
            started = Some(new.id);
        }
        let next = schedule.next_after(Timestamp::now())?;
        let update = "UPDATE {s}.nimbus_schedule SET next_at = $2, last_id = $3 WHERE name = $1";
        sqlx::query(self.sql(update))
            .bind(&schedule.name)
            .bind(next.as_millisecond())
            .bind(started.as_ref().map(FlowId::as_str))
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
        transaction.commit().await.map_err(unavailable)?;
        Ok(true)
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

const SELECT: &str = "
    SELECT w.workflow_uuid, w.name, w.status, w.output, w.error, w.created_at, w.updated_at, w.completed_at,
           s.reason
    FROM {s}.workflow_status w LEFT JOIN {s}.nimbus_stuck s ON s.id = w.workflow_uuid";

fn record(row: &PgRow) -> Result<FlowRecord, Error> {
    let status: Option<String> = row.get("status");
    let created: i64 = row.get("created_at");
    let state = state(status.as_deref().unwrap_or_default(), row);
    let ended: Option<i64> = row.get("completed_at");
    let ended = ended.unwrap_or_else(|| row.get("updated_at"));
    let ended = state
        .is_ended()
        .then(|| Timestamp::from_millisecond(ended).ok());
    Ok(FlowRecord {
        id: FlowId::parse(row.get::<String, _>("workflow_uuid"))?,
        flow: row.get::<Option<String>, _>("name").unwrap_or_default(),
        created: Timestamp::from_millisecond(created).map_err(unavailable)?,
        ended: ended.flatten(),
        state,
    })
}

fn state(status: &str, row: &PgRow) -> FlowState {
    let given_up = |message: &str| {
        FlowState::Failed(FlowFailure::new(ErrorCode::WORKFLOW_POISONED, message).lasting())
    };
    match status {
        "SUCCESS" => {
            let output: Option<String> = row.get("output");
            let output = output.and_then(|text| serde_json::from_str(&text).ok());
            FlowState::Succeeded(output.unwrap_or_default())
        }
        "ERROR" => {
            let error: Option<String> = row.get("error");
            let text = error.unwrap_or_default();
            match serde_json::from_str::<dbos::Error<RecordedEnd>>(&text) {
                Ok(dbos::Error::Application(RecordedEnd::Cancelled)) => FlowState::Cancelled,
                Ok(dbos::Error::Application(RecordedEnd::Failed(failure))) => {
                    FlowState::ended(Err(Fail::App(failure)))
                }
                Ok(other) => given_up(&other.to_string()),
                Err(_) => given_up("its end was recorded in another form"),
            }
        }
        "CANCELLED" => FlowState::Cancelled,
        "MAX_RECOVERY_ATTEMPTS_EXCEEDED" => given_up("it was begun too often"),
        _ => match row.get::<Option<String>, _>("reason") {
            Some(reason) => FlowState::Stuck(reason),
            None => FlowState::Running,
        },
    }
}

fn planned(row: &PgRow) -> Result<ScheduleView, Error> {
    let sqlx::types::Json(schedule) = row.try_get("schedule").map_err(unavailable)?;
    let next: Option<i64> = row.get("next_at");
    let last: Option<String> = row.get("last_id");
    Ok(ScheduleView {
        schedule,
        next: next.and_then(|next| Timestamp::from_millisecond(next).ok()),
        last: last.map(FlowId::parse).transpose()?,
    })
}

fn read_cursor(cursor: &str) -> Result<(i64, &str), Error> {
    let parts = cursor.split_once(':');
    parts
        .and_then(|(time, id)| Some((time.parse().ok()?, id)))
        .ok_or_else(|| {
            Error::new(
                ErrorCode::WORKFLOW_INVALID,
                "the cursor is not one that a list gave",
            )
        })
}

/// Errors of the database hold no secrets: the library leaves the address out.
pub(crate) fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::WORKFLOW_RUNTIME,
        format!("the database of the workflows: {error}"),
    )
}
