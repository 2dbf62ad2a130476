//! What earlier runs and the events of one run say to whoever looks: a log, and how long things usually take.

use sqlx::FromRow;

use crate::run::{PAGE_BYTES, select};
use crate::{StoreError, StoredEvent, StoredRun, TenantTx};

/// So many earlier runs say how long something usually takes.
const EARLIER_RUNS: i64 = 12;
/// Fewer say nothing.
const FEWEST: i64 = 3;

/// Which lines of a run's log.
#[derive(Clone, Debug, Default)]
pub struct RunLogFilter {
    pub unit: Option<String>,
    /// `debug`, `info`, `warning` or `error`: that one and worse.
    pub levels: Option<Vec<String>>,
    pub place: LogCursor,
    pub limit: u32,
}

/// Where in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogCursor {
    /// The last lines.
    #[default]
    End,
    /// The last lines before an event.
    Before(i64),
    /// The first lines after an event.
    After(i64),
}

/// How long a unit usually takes.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct UsualDuration {
    pub unit: String,
    pub seconds: i64,
}

#[derive(FromRow)]
struct FoundLine {
    #[sqlx(flatten)]
    line: StoredEvent,
    found: i64,
}

impl TenantTx {
    /// The newest runs of each of these deployments, so many of each, newest first.
    pub async fn runs_of_each(
        &mut self,
        deployments: &[String],
        limit: u32,
    ) -> Result<Vec<StoredRun>, StoreError> {
        Ok(sqlx::query_as(select(
            "WHERE deployment = ANY($1) AND number > (
                 SELECT max(newest.number) FROM runs newest WHERE newest.deployment = runs.deployment) - $2
             ORDER BY deployment, number DESC",
        ))
        .bind(deployments)
        .bind(i64::from(limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Of each environment of these deployments, the newest run that began and changes something.
    pub async fn newest_of_environments(
        &mut self,
        deployments: &[String],
    ) -> Result<Vec<StoredRun>, StoreError> {
        Ok(sqlx::query_as(select(
            "WHERE (deployment, number) IN (
                 SELECT deployment, max(number) FROM runs
                 WHERE deployment = ANY($1) AND began_at IS NOT NULL AND action <> 'preview'
                 GROUP BY deployment, environment)",
        ))
        .bind(deployments)
        .fetch_all(self.connection())
        .await?)
    }

    /// Lines of a run's log, oldest first: so many, or fewer when they are large. And whether there are more in the
    /// direction that was asked for.
    pub async fn log_lines(
        &mut self,
        run: &StoredRun,
        filter: &RunLogFilter,
    ) -> Result<(Vec<StoredEvent>, bool), StoreError> {
        let (before, after, order) = match filter.place {
            LogCursor::End => (None, None, "DESC"),
            LogCursor::Before(seq) => (Some(seq), None, "DESC"),
            LogCursor::After(seq) => (None, Some(seq), "ASC"),
        };
        let statement = format!(
            "WITH page AS (SELECT seq, event, octet_length(event::text) AS size FROM run_events
             WHERE deployment = $1 AND run = $2 AND event ->> 'event' IN ('diagnostic', 'check')
               AND (event ->> 'event' = 'diagnostic' OR event ->> 'message' IS NOT NULL)
               AND ($3::bigint IS NULL OR seq < $3) AND ($4::bigint IS NULL OR seq > $4)
               AND ($5::text IS NULL OR event ->> 'unit' = $5)
               AND ($6::text[] IS NULL OR COALESCE(event ->> 'level', 'info') = ANY ($6))
             ORDER BY seq {order} LIMIT $7),
             sized AS (SELECT seq, event, sum(size) OVER (ORDER BY seq {order}) - size AS before FROM page)
             SELECT seq, event, (SELECT count(*) FROM page) AS found FROM sized
             WHERE before < $8 ORDER BY seq {order}"
        );
        let limit = i64::from(filter.limit);
        // One more than is given says whether there are more.
        let rows: Vec<FoundLine> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(&run.deployment)
            .bind(run.number)
            .bind(before)
            .bind(after)
            .bind(&filter.unit)
            .bind(&filter.levels)
            .bind(limit.saturating_add(1))
            .bind(PAGE_BYTES)
            .fetch_all(self.connection())
            .await?;
        let found = rows.first().map_or(0, |row| row.found);
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut lines: Vec<_> = rows.into_iter().take(most).map(|row| row.line).collect();
        let more = i64::try_from(lines.len()).is_ok_and(|given| found > given);
        lines.sort_by_key(|line| line.seq);
        Ok((lines, more))
    }

    /// How long runs like this one usually took, in seconds, and their units.
    pub async fn usual_durations(
        &mut self,
        run: &StoredRun,
    ) -> Result<(Option<i64>, Vec<UsualDuration>), StoreError> {
        const LIKE_IT: &str = "SELECT number, began_at, ended_at FROM runs
             WHERE deployment = $1 AND environment = $2 AND rehearsal = $3 AND action = $4 AND number < $5
               AND status = 'ended' AND result = 'succeeded' AND began_at IS NOT NULL
             ORDER BY number DESC LIMIT $6";
        let whole = sqlx::AssertSqlSafe(format!(
            "SELECT CASE WHEN count(*) >= $7 THEN
                 (percentile_disc(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM ended_at - began_at)))::bigint END
             FROM ({LIKE_IT}) earlier"
        ));
        let seconds: Option<i64> = sqlx::query_scalar(whole)
            .bind(&run.deployment)
            .bind(&run.environment)
            .bind(run.rehearsal)
            .bind(&run.action)
            .bind(run.number)
            .bind(EARLIER_RUNS)
            .bind(FEWEST)
            .fetch_one(self.connection())
            .await?;
        let units = sqlx::AssertSqlSafe(format!(
            "SELECT event ->> 'unit' AS unit,
                 percentile_disc(0.5) WITHIN GROUP (ORDER BY (event ->> 'seconds')::bigint) AS seconds
             FROM run_events
             WHERE deployment = $1 AND run IN (SELECT number FROM ({LIKE_IT}) earlier)
               AND event ->> 'event' = 'unit' AND event ->> 'status' = 'succeeded'
               AND event ->> 'seconds' IS NOT NULL
             GROUP BY 1 HAVING count(*) >= $7"
        ));
        let units = sqlx::query_as(units)
            .bind(&run.deployment)
            .bind(&run.environment)
            .bind(run.rehearsal)
            .bind(&run.action)
            .bind(run.number)
            .bind(EARLIER_RUNS)
            .bind(FEWEST)
            .fetch_all(self.connection())
            .await?;
        Ok((seconds, units))
    }

    /// The newest run of a deployment.
    pub async fn run_newest(&mut self, deployment: &str) -> Result<StoredRun, StoreError> {
        let number: Option<i32> =
            sqlx::query_scalar("SELECT max(number) FROM runs WHERE deployment = $1")
                .bind(deployment)
                .fetch_one(self.connection())
                .await?;
        self.run_get(deployment, number.ok_or(StoreError::NotFound("run"))?)
            .await
    }
}
