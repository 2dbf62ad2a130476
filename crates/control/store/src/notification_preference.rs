//! What somebody wants to be told and how, and what is gathered for their digests.

use nimbus_core::UserId;
use serde_json::{Value, json};
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx, Timestamp};

/// Digests of a tenant that are made in one transaction.
const AT_ONCE: i64 = 50;
/// What one mail of a digest says at most; more goes into another one.
const MOST_MAIL_BYTES: usize = 100_000;

/// How somebody wants to be told of a kind.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredPreference {
    /// `*` is for every kind that has none of its own.
    pub kind: String,
    /// `in_app` or `email`.
    pub channel: String,
    /// `off`, `instant` or `digest`.
    pub mode: String,
}

/// When somebody's digest is sent, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct StoredDigest {
    /// `daily` or `weekly`.
    pub period: String,
    pub hour: i16,
    /// 1 is Monday.
    pub weekday: i16,
    /// None while nothing is gathered.
    pub due_at: Option<Timestamp>,
}

impl Default for StoredDigest {
    fn default() -> Self {
        Self {
            period: "daily".to_owned(),
            hour: 7,
            weekday: 1,
            due_at: None,
        }
    }
}

#[derive(FromRow)]
struct DigestItem {
    kind: String,
    title: String,
    body: String,
    created_at: Timestamp,
}

impl TenantTx {
    pub async fn preference_list(
        &mut self,
        person: UserId,
    ) -> Result<Vec<StoredPreference>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT kind, channel, mode FROM notification_preferences WHERE person = $1 ORDER BY kind, channel",
        )
        .bind(Uuid::from(person))
        .fetch_all(self.connection())
        .await?)
    }

    /// Sets one, or without a mode takes it back.
    pub async fn preference_set(
        &mut self,
        person: UserId,
        kind: &str,
        channel: &str,
        mode: Option<&str>,
    ) -> Result<(), StoreError> {
        let statement = match mode {
            Some(_) => {
                "INSERT INTO notification_preferences (person, kind, channel, mode) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (tenant_id, person, kind, channel) DO UPDATE SET mode = EXCLUDED.mode"
            }
            None => {
                "DELETE FROM notification_preferences
                 WHERE person = $1 AND kind = $2 AND channel = $3 AND $4::text IS NULL"
            }
        };
        sqlx::query(statement)
            .bind(Uuid::from(person))
            .bind(kind)
            .bind(channel)
            .bind(mode)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    pub async fn digest_get(&mut self, person: UserId) -> Result<StoredDigest, StoreError> {
        let found: Option<StoredDigest> = sqlx::query_as(
            "SELECT period, hour, weekday, due_at FROM notification_digests WHERE person = $1",
        )
        .bind(Uuid::from(person))
        .fetch_optional(self.connection())
        .await?;
        Ok(found.unwrap_or_default())
    }

    /// Sets when somebody's digest is sent. What is gathered already goes with the next one.
    pub async fn digest_set(
        &mut self,
        person: UserId,
        digest: &StoredDigest,
    ) -> Result<StoredDigest, StoreError> {
        let set: StoredDigest = sqlx::query_as(
            "INSERT INTO notification_digests AS d (person, period, hour, weekday) VALUES ($1, $2, $3, $4)
             ON CONFLICT (tenant_id, person) DO UPDATE SET period = EXCLUDED.period, hour = EXCLUDED.hour,
                 weekday = EXCLUDED.weekday,
                 due_at = CASE WHEN d.due_at IS NULL THEN NULL ELSE nimbus_core.digest_after(
                     EXCLUDED.period, EXCLUDED.hour, EXCLUDED.weekday, clock_timestamp()) END
             RETURNING period, hour, weekday, due_at",
        )
        .bind(Uuid::from(person))
        .bind(&digest.period)
        .bind(digest.hour)
        .bind(digest.weekday)
        .fetch_one(self.connection())
        .await?;
        Ok(set)
    }

    /// The digests of these people are due at their hour, if they are not already.
    pub(crate) async fn digests_begin(&mut self, people: &[Uuid]) -> Result<(), StoreError> {
        if people.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO notification_digests AS d (person, due_at)
             SELECT p.person, nimbus_core.digest_after('daily', 7::smallint, 1::smallint, clock_timestamp())
             FROM unnest($1::uuid[]) AS p (person) ORDER BY p.person
             ON CONFLICT (tenant_id, person) DO UPDATE SET due_at = COALESCE(d.due_at,
                 nimbus_core.digest_after(d.period, d.hour, d.weekday, clock_timestamp()))",
        )
        .bind(people)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Makes deliveries of the digests that are due. What was gathered becomes a delivery and is gone in the same
    /// transaction, so that nothing is sent twice and nothing is left out, whenever a server dies. How many there were.
    pub async fn digests_gather(&mut self) -> Result<usize, StoreError> {
        let due: Vec<(Uuid, String)> = sqlx::query_as(
            "SELECT person, period FROM notification_digests WHERE due_at <= clock_timestamp()
             ORDER BY due_at, person LIMIT $1 FOR UPDATE SKIP LOCKED",
        )
        .bind(AT_ONCE)
        .fetch_all(self.connection())
        .await?;
        for (person, period) in &due {
            let mut items: Vec<DigestItem> = sqlx::query_as(
                "DELETE FROM digest_items WHERE person = $1 RETURNING kind, title, body, created_at",
            )
            .bind(person)
            .fetch_all(self.connection())
            .await?;
            items.sort_by_key(|item| item.created_at);
            let payloads = digest_payloads(period, &items);
            sqlx::query(
                "INSERT INTO deliveries (id, channel, person, kind, payload)
                 SELECT gen_random_uuid(), 'email', $1, 'digest', p.payload FROM unnest($2::text[]) AS p (payload)",
            )
            .bind(person)
            .bind(&payloads)
            .execute(self.connection())
            .await?;
            sqlx::query("UPDATE notification_digests SET due_at = NULL WHERE person = $1")
                .bind(person)
                .execute(self.connection())
                .await?;
        }
        if !due.is_empty() {
            self.delivery_note(None).await?;
        }
        Ok(due.len())
    }

    /// What somebody wanted and was to be sent goes with their account.
    pub(crate) async fn notification_settings_forget(
        &mut self,
        person: UserId,
    ) -> Result<(), StoreError> {
        for statement in [
            "DELETE FROM notification_preferences WHERE person = $1",
            "DELETE FROM notification_digests WHERE person = $1",
            "DELETE FROM digest_items WHERE person = $1",
            "DELETE FROM deliveries WHERE person = $1",
        ] {
            sqlx::query(statement)
                .bind(Uuid::from(person))
                .execute(self.connection())
                .await?;
        }
        Ok(())
    }
}

/// What the mails of a digest say, each not too long.
fn digest_payloads(period: &str, items: &[DigestItem]) -> Vec<String> {
    let mut parts: Vec<Vec<Value>> = Vec::new();
    let mut bytes = usize::MAX;
    for item in items {
        let written = json!({
            "kind": item.kind,
            "title": item.title,
            "text": item.body,
            "created_at": item.created_at.0.to_string(),
        });
        let length = written.to_string().len();
        if bytes.saturating_add(length) > MOST_MAIL_BYTES {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(part) = parts.last_mut() {
            part.push(written);
        }
    }
    let of = parts.len();
    let payload = |(number, items): (usize, Vec<Value>)| {
        json!({"period": period, "part": number + 1, "parts": of, "items": items}).to_string()
    };
    parts.into_iter().enumerate().map(payload).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_that_is_too_long_is_several_mails_and_nothing_is_left_out() {
        let item = |number: usize| DigestItem {
            kind: "run_failed".to_owned(),
            title: format!("n{number}"),
            body: "ä".repeat(1000),
            created_at: Timestamp(jiff::Timestamp::UNIX_EPOCH),
        };
        assert_eq!(digest_payloads("daily", &[]), Vec::<String>::new());
        assert_eq!(digest_payloads("daily", &[item(1)]).len(), 1);
        let items: Vec<_> = (0..200).map(item).collect();
        let mails = digest_payloads("weekly", &items);
        assert!(mails.len() > 1);
        let mut titles = Vec::new();
        for (place, mail) in mails.iter().enumerate() {
            assert!(mail.len() < 2 * MOST_MAIL_BYTES);
            let mail: Value = serde_json::from_str(mail).unwrap();
            assert_eq!(mail["part"], place + 1);
            assert_eq!(mail["parts"], mails.len());
            let items = mail["items"].as_array().unwrap().iter();
            titles.extend(items.map(|one| one["title"].as_str().unwrap().to_owned()));
        }
        let expected: Vec<_> = (0..200).map(|number| format!("n{number}")).collect();
        assert_eq!(titles, expected);
    }
}
