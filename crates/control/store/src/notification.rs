//! What people are told in person, each one's own: kept, and told live with the same transaction.
//!
//! Callers say who is meant by users and groups; which people that are, and how each wants to be told, is found here, in
//! the statement that tells them. People of the tenant alone are told: not service accounts, which read nothing, and
//! nobody who is disabled. What leaves the application is written in the same transaction and sent by others.

use nimbus_control_events::{NewEvent, kind};
use nimbus_core::UserId;
use serde_json::{Value, json};
use sqlx::FromRow;
use uuid::Uuid;

use crate::run::ReleasedRun;
use crate::{ListPage, RowCursor, RunEnd, StoreError, TenantTx, Timestamp};

/// What was read is kept among so many of a person's newest.
pub const KEPT_NOTIFICATIONS: i64 = 1000;

/// Every kind there is. Webhooks and preferences name them.
pub const NOTIFICATION_KINDS: &[&str] = &[
    "approval_required",
    "approval_completed",
    "run_failed",
    "run_needs_attention",
];

const LONGEST_TITLE: usize = 300;
/// With this an event that has all of it is never too large.
const LONGEST_BODY: usize = 1000;

/// A notification as the database has it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredNotification {
    pub id: Uuid,
    pub person: Uuid,
    pub kind: String,
    pub title: String,
    pub body: String,
    /// What it is about, which may be gone.
    pub approval: Option<Uuid>,
    pub run: Option<Uuid>,
    pub deployment: Option<String>,
    pub environment: Option<String>,
    pub created_at: Timestamp,
    pub read_at: Option<Timestamp>,
}

/// Something that people are to be told.
#[derive(Clone, Debug)]
pub struct NewNotification {
    /// Such as `approval_required`.
    pub kind: &'static str,
    pub title: String,
    pub body: String,
    pub approval: Option<Uuid>,
    pub run: Option<Uuid>,
    pub deployment: Option<String>,
    pub environment: Option<String>,
}

/// Who is told.
#[derive(Clone, Debug, Default)]
pub struct NotifiedPeople {
    pub users: Vec<Uuid>,
    /// Whoever is in one of them now.
    pub groups: Vec<Uuid>,
    /// Also those who decide in the place of one of them at this moment.
    pub delegates_at: Option<Timestamp>,
    /// These are not told, and nobody in their place.
    pub except: Vec<Uuid>,
}

#[derive(FromRow)]
struct ToldPerson {
    person: Uuid,
    /// How they are told by mail.
    email: String,
    /// The notification, unless they want none in the application.
    id: Option<Uuid>,
    created_at: Option<Timestamp>,
}

const COLUMNS: &str =
    "id, person, kind, title, body, approval, run, deployment, environment, created_at, read_at";

fn select(rest: &str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM notifications {rest}"))
}

impl TenantTx {
    /// Tells people, each once and as they want it, and the tenant's webhooks. Who was told.
    pub async fn notify(
        &mut self,
        new: &NewNotification,
        to: &NotifiedPeople,
    ) -> Result<Vec<Uuid>, StoreError> {
        let title = shortened(&new.title, LONGEST_TITLE);
        let body = shortened(&new.body, LONGEST_BODY);
        let told = self.notify_people(new, to, &title, &body).await?;
        let event = |one: &ToldPerson| {
            let data = json!({
                "resource_id": one.id,
                "resource_type": "notifications",
                "kind": new.kind,
                "title": title,
                "text": body,
                "approval": new.approval,
                "run": new.run,
                "deployment": new.deployment,
                "environment": new.environment,
                "created_at": one.created_at.map(|at| at.0.to_string()),
            });
            let event = NewEvent::new(kind::NOTIFICATION_NEW, one.id?, data);
            Some(event.of_person(Some(one.person)))
        };
        let events: Vec<NewEvent> = told.iter().filter_map(event).collect();
        self.live_publish(&events).await?;
        let data = json!({
            "tenant_id": Uuid::from(self.tenant()),
            "title": title,
            "text": body,
            "approval": new.approval,
            "run": new.run,
            "deployment": new.deployment,
            "environment": new.environment,
        });
        self.deliver_to_webhooks(new.kind, &data).await?;
        Ok(told.into_iter().map(|one| one.person).collect())
    }

    /// Writes for each of them what they want: something to read here, a mail, or a part of their digest.
    async fn notify_people(
        &mut self,
        new: &NewNotification,
        to: &NotifiedPeople,
        title: &str,
        body: &str,
    ) -> Result<Vec<ToldPerson>, StoreError> {
        let mails = self.mails;
        let mail = json!({"title": title, "text": body}).to_string();
        let told: Vec<ToldPerson> = sqlx::query_as(
            "WITH named AS (
                 SELECT given.person FROM unnest($1::uuid[]) AS given (person)
                 UNION SELECT m.user_id FROM nimbus_core.group_members m WHERE m.group_id = ANY($2)),
             meant AS (
                 SELECT n.person FROM named n
                 UNION SELECT d.delegate FROM approval_delegations d
                     JOIN named n ON n.person = d.person
                     JOIN nimbus_core.users u ON u.id = d.person
                 WHERE d.until > $3 AND d.person <> ALL($4) AND u.deleted_at IS NULL AND u.disabled_at IS NULL),
             -- What is said of the kind itself goes before what is said of all.
             wanted AS (
                 SELECT DISTINCT ON (p.person, p.channel) p.person, p.channel, p.mode FROM notification_preferences p
                 WHERE p.kind IN ($5, '*') ORDER BY p.person, p.channel, p.kind = '*'),
             people AS (
                 SELECT u.id AS person, COALESCE(a.mode, 'instant') AS in_app,
                     CASE WHEN $12 THEN COALESCE(m.mode, 'instant') ELSE 'off' END AS email
                 FROM nimbus_core.users u JOIN meant ON meant.person = u.id
                     LEFT JOIN wanted a ON a.person = u.id AND a.channel = 'in_app'
                     LEFT JOIN wanted m ON m.person = u.id AND m.channel = 'email'
                 WHERE u.kind = 'user' AND u.deleted_at IS NULL AND u.disabled_at IS NULL AND u.id <> ALL($4)),
             kept AS (
                 INSERT INTO notifications (id, person, kind, title, body, approval, run, deployment, environment)
                 SELECT gen_random_uuid(), p.person, $5, $6, $7, $8, $9, $10, $11 FROM people p WHERE p.in_app <> 'off'
                 RETURNING id, person, created_at),
             mailed AS (
                 INSERT INTO deliveries (id, channel, person, kind, payload)
                 SELECT gen_random_uuid(), 'email', p.person, $5, $13 FROM people p WHERE p.email = 'instant'),
             gathered AS (
                 INSERT INTO digest_items (id, person, kind, title, body)
                 SELECT gen_random_uuid(), p.person, $5, $6, $7 FROM people p WHERE p.email = 'digest')
             SELECT p.person, p.email, k.id, k.created_at FROM people p LEFT JOIN kept k ON k.person = p.person",
        )
        .bind(&to.users)
        .bind(&to.groups)
        .bind(to.delegates_at)
        .bind(&to.except)
        .bind(new.kind)
        .bind(title)
        .bind(body)
        .bind(new.approval)
        .bind(new.run)
        .bind(&new.deployment)
        .bind(&new.environment)
        .bind(mails)
        .bind(mail)
        .fetch_all(self.connection())
        .await?;
        if told.iter().any(|one| one.email == "instant") {
            self.delivery_note(None).await?;
        }
        let gathered = told.iter().filter(|one| one.email == "digest");
        let gathered: Vec<Uuid> = gathered.map(|one| one.person).collect();
        self.digests_begin(&gathered).await?;
        Ok(told)
    }

    /// Tells whoever asked for a run that it did not come to a good end, if it did not.
    pub(crate) async fn notify_run_end(
        &mut self,
        run: &ReleasedRun,
        end: &RunEnd,
    ) -> Result<(), StoreError> {
        let Some((kind, words)) = bad_end(end) else {
            return Ok(());
        };
        let message = end.problem.as_ref().map(|problem| &problem["message"]);
        let new = NewNotification {
            kind,
            title: format!(
                "{} R{:04}: the {} in {} {words}",
                run.deployment, run.number, run.action, run.environment
            ),
            body: message.and_then(Value::as_str).unwrap_or("").to_owned(),
            approval: None,
            run: Some(run.id),
            deployment: Some(run.deployment.clone()),
            environment: Some(run.environment.clone()),
        };
        let to = NotifiedPeople {
            users: vec![run.requested_by],
            ..NotifiedPeople::default()
        };
        self.notify(&new, &to).await.map(drop)
    }

    /// Somebody's notifications, newest first.
    pub async fn notification_list(
        &mut self,
        person: UserId,
        unread: bool,
        page: &ListPage<RowCursor>,
    ) -> Result<Vec<StoredNotification>, StoreError> {
        let (at, id) = RowCursor::parts(page.after);
        let rest = match unread {
            true => "AND read_at IS NULL",
            false => "",
        };
        let rest = format!(
            "WHERE person = $1 AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3)) {rest}
             ORDER BY created_at DESC, id DESC LIMIT $4"
        );
        Ok(sqlx::query_as(select(&rest))
            .bind(Uuid::from(person))
            .bind(at)
            .bind(id)
            .bind(i64::from(page.limit))
            .fetch_all(self.connection())
            .await?)
    }

    /// Notes that somebody has read one of theirs. The first time stays.
    pub async fn notification_read(
        &mut self,
        person: UserId,
        id: Uuid,
    ) -> Result<StoredNotification, StoreError> {
        let statement = format!(
            "UPDATE notifications SET read_at = COALESCE(read_at, clock_timestamp())
             WHERE person = $1 AND id = $2 RETURNING {COLUMNS}"
        );
        sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(Uuid::from(person))
            .bind(id)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NotFound("notification"))
    }

    /// Notes that somebody has read all of theirs. How many they had not.
    pub async fn notifications_read(&mut self, person: UserId) -> Result<u64, StoreError> {
        let read = sqlx::query(
            "UPDATE notifications SET read_at = clock_timestamp() WHERE person = $1 AND read_at IS NULL",
        )
        .bind(Uuid::from(person))
        .execute(self.connection())
        .await?;
        Ok(read.rows_affected())
    }

    /// Removes what was read and is not among so many of its person's newest. How many there were.
    pub async fn notifications_trim(&mut self, kept: i64) -> Result<u64, StoreError> {
        let removed = sqlx::query(
            "DELETE FROM notifications n USING (
                 SELECT o.id, row_number() OVER (PARTITION BY o.person ORDER BY o.created_at DESC, o.id DESC) AS place
                 FROM notifications o
                 WHERE o.person IN (SELECT m.person FROM notifications m GROUP BY m.person HAVING count(*) > $1)) old
             WHERE n.id = old.id AND old.place > $1 AND n.read_at IS NOT NULL",
        )
        .bind(kept)
        .execute(self.connection())
        .await?;
        Ok(removed.rows_affected())
    }
}

/// What kind of bad end a run came to, and how that is said. One that somebody stopped came to none.
fn bad_end(end: &RunEnd) -> Option<(&'static str, &'static str)> {
    if end.status != "ended" {
        return None;
    }
    match end.result.as_deref() {
        Some("failed") => Some(("run_failed", "failed")),
        Some("rolled_back") => Some(("run_failed", "failed and was rolled back")),
        Some("needs_attention") => Some(("run_needs_attention", "needs your attention")),
        // The server stopped it, and says why.
        Some("interrupted") if end.problem.is_some() => {
            Some(("run_needs_attention", "was stopped"))
        }
        _ => None,
    }
}

/// As much of a text as fits.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars()
        .take(most.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(status: &'static str, result: &str, problem: Option<Value>) -> RunEnd {
        RunEnd {
            status,
            wish: None,
            result: Some(result.to_owned()),
            problem,
        }
    }

    #[test]
    fn only_a_bad_end_that_nobody_asked_for_is_told() {
        let kind = |end: &RunEnd| bad_end(end).map(|(kind, _)| kind);
        assert_eq!(kind(&end("ended", "failed", None)), Some("run_failed"));
        assert_eq!(kind(&end("ended", "rolled_back", None)), Some("run_failed"));
        let attention = Some("run_needs_attention");
        assert_eq!(kind(&end("ended", "needs_attention", None)), attention);
        let late = end("ended", "interrupted", Some(json!({"message": "too long"})));
        assert_eq!(kind(&late), attention);
        for (status, result) in [
            ("ended", "succeeded"),
            ("ended", "interrupted"),
            ("ended", "cancelled"),
            ("paused", "interrupted"),
            ("running", "failed"),
        ] {
            assert_eq!(kind(&end(status, result, None)), None, "{status} {result}");
        }
    }

    #[test]
    fn texts_fit_by_letters_and_say_that_they_were_cut() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
