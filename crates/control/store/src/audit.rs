//! The audit trail's rows.

use jiff::Timestamp as Time;
use nimbus_control_audit::{Actor, AuditEntry, AuditRecord, ChainHash, Priority, SigningKey};
use nimbus_core::TenantId;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::{RegistryTx, Store, StoreError, TenantTx, Timestamp};

/// Which entries a list has. Everything that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub action: Option<String>,
    pub resource_type: Option<String>,
    pub resource_id: Option<String>,
    pub user_id: Option<String>,
    pub outcome: Option<String>,
    pub trace_id: Option<String>,
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only entries after this one.
    pub after: u64,
    /// Newest first instead of oldest first; then `after` means before.
    pub newest_first: bool,
    pub limit: u32,
}

impl AuditFilter {
    /// Whether a list of everything would have this entry. Order and number aside.
    pub fn matches(&self, entry: &AuditEntry) -> bool {
        let record = &entry.record;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        is(&self.action, Some(&record.action))
            && is(&self.resource_type, Some(&record.resource_type))
            && is(&self.resource_id, record.resource_id.as_deref())
            && is(&self.user_id, Some(&record.actor.id))
            && is(&self.outcome, Some(record.outcome.as_str()))
            && is(&self.trace_id, record.trace_id.as_deref())
            && self.from.is_none_or(|from| entry.at >= from.0)
            && self.until.is_none_or(|until| entry.at < until.0)
            && entry.sequence > self.after
    }
}

/// Where a chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    pub sequence: u64,
    pub hash: ChainHash,
}

impl Store {
    /// Remembers what was committed: nobody who owns the database can take it back from here.
    pub(crate) fn note_head(&self, tenant: TenantId, head: Option<ChainHead>) {
        if let Some(head) = head {
            let mut heads = self.heads.lock();
            let known = heads.entry(tenant).or_insert(head);
            if known.sequence < head.sequence {
                *known = head;
            }
        }
    }

    /// The last entry that this process committed to a chain since the ends were last taken.
    pub fn audit_head(&self, tenant: TenantId) -> Option<ChainHead> {
        self.heads.lock().get(&tenant).copied()
    }

    /// The ends of the chains that grew since the last call.
    pub fn audit_heads_take(&self) -> Vec<(TenantId, ChainHead)> {
        self.heads.lock().drain().collect()
    }

    /// Puts back what could not be used.
    pub fn audit_head_keep(&self, tenant: TenantId, head: ChainHead) {
        self.note_head(tenant, Some(head));
    }
}

/// Adds a record to a chain on a connection that acts for its tenant.
pub(crate) async fn append(
    connection: &mut PgConnection,
    tenant: TenantId,
    key: &SigningKey,
    now: Time,
    record: AuditRecord,
) -> Result<AuditEntry, StoreError> {
    let last = chain_end(connection).await?;
    let mut entry = AuditEntry::append(tenant, last, now, record);
    if entry.record.priority == Priority::Critical {
        entry.proof = Some(key.prove(&entry));
    }
    insert(connection, &entry).await?;
    Ok(entry)
}

/// Where a chain ends. Held until the transaction ends: who comes next continues from what is written here.
async fn chain_end(connection: &mut PgConnection) -> Result<Option<(u64, ChainHash)>, StoreError> {
    let (sequence, hash): (i64, Option<Vec<u8>>) = sqlx::query_as(
        "INSERT INTO nimbus_core.audit_chains AS c (tenant_id) VALUES (nimbus_core.current_tenant())
         ON CONFLICT (tenant_id) DO UPDATE SET sequence = c.sequence RETURNING sequence, hash",
    )
    .fetch_one(connection)
    .await?;
    Ok(hash.map(|hash| (sequence.unsigned_abs(), hash_of(&hash))))
}

async fn insert(connection: &mut PgConnection, entry: &AuditEntry) -> Result<(), StoreError> {
    let record = &entry.record;
    sqlx::query(
        "WITH entry AS (
             INSERT INTO nimbus_core.audit_logs (sequence, actor_kind, user_id, original_user, action,
                 resource_type, resource_id, outcome, priority, old_value, new_value, trace_id, ip_address,
                 timestamp, previous_hash, hash, proof)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::json, $11::json, $12, $13, $14, $15, $16, $17))
         UPDATE nimbus_core.audit_chains SET sequence = $1, hash = $16
         WHERE tenant_id = nimbus_core.current_tenant()",
    )
    .bind(entry.sequence.cast_signed())
    .bind(record.actor.kind.as_str())
    .bind(&record.actor.id)
    .bind(&record.actor.original)
    .bind(&record.action)
    .bind(&record.resource_type)
    .bind(&record.resource_id)
    .bind(record.outcome.as_str())
    .bind(record.priority.as_str())
    .bind(record.old_value())
    .bind(record.new_value())
    .bind(&record.trace_id)
    .bind(&record.ip_address)
    .bind(Timestamp(entry.at))
    .bind(entry.previous.0.as_slice())
    .bind(entry.hash.0.as_slice())
    .bind(&entry.proof)
    .execute(connection)
    .await?;
    Ok(())
}

/// Entries that follow each other, in one statement.
async fn insert_all(
    connection: &mut PgConnection,
    entries: &[AuditEntry],
) -> Result<(), StoreError> {
    let Some(last) = entries.last() else {
        return Ok(());
    };
    let of = |field: fn(&AuditEntry) -> &str| -> Vec<&str> { entries.iter().map(field).collect() };
    let optional = |field: fn(&AuditEntry) -> Option<&str>| -> Vec<Option<&str>> {
        entries.iter().map(field).collect()
    };
    let sequences: Vec<i64> = entries
        .iter()
        .map(|entry| entry.sequence.cast_signed())
        .collect();
    let times: Vec<Timestamp> = entries.iter().map(|entry| Timestamp(entry.at)).collect();
    let previous: Vec<&[u8]> = entries
        .iter()
        .map(|entry| entry.previous.0.as_slice())
        .collect();
    let hashes: Vec<&[u8]> = entries
        .iter()
        .map(|entry| entry.hash.0.as_slice())
        .collect();
    sqlx::query(
        "WITH entries AS (
             INSERT INTO nimbus_core.audit_logs (sequence, actor_kind, user_id, original_user, action,
                 resource_type, resource_id, outcome, priority, old_value, new_value, trace_id, ip_address,
                 timestamp, previous_hash, hash)
             SELECT g.sequence, g.actor_kind, g.user_id, g.original_user, g.action, g.resource_type,
                 g.resource_id, g.outcome, g.priority, g.old_value::json, g.new_value::json, g.trace_id,
                 g.ip_address, g.at, g.previous, g.hash
             FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                 $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
                 $14::timestamptz[], $15::bytea[], $16::bytea[])
                 AS g (sequence, actor_kind, user_id, original_user, action, resource_type, resource_id,
                 outcome, priority, old_value, new_value, trace_id, ip_address, at, previous, hash))
         UPDATE nimbus_core.audit_chains SET sequence = $17, hash = $18
         WHERE tenant_id = nimbus_core.current_tenant()",
    )
    .bind(sequences)
    .bind(of(|entry| entry.record.actor.kind.as_str()))
    .bind(of(|entry| &entry.record.actor.id))
    .bind(optional(|entry| entry.record.actor.original.as_deref()))
    .bind(of(|entry| &entry.record.action))
    .bind(of(|entry| &entry.record.resource_type))
    .bind(optional(|entry| entry.record.resource_id.as_deref()))
    .bind(of(|entry| entry.record.outcome.as_str()))
    .bind(of(|entry| entry.record.priority.as_str()))
    .bind(optional(|entry| entry.record.old_value()))
    .bind(optional(|entry| entry.record.new_value()))
    .bind(optional(|entry| entry.record.trace_id.as_deref()))
    .bind(optional(|entry| entry.record.ip_address.as_deref()))
    .bind(times)
    .bind(previous)
    .bind(hashes)
    .bind(last.sequence.cast_signed())
    .bind(last.hash.0.as_slice())
    .execute(connection)
    .await?;
    Ok(())
}

#[derive(FromRow)]
struct AuditRow {
    sequence: i64,
    actor_kind: String,
    user_id: String,
    original_user: Option<String>,
    action: String,
    resource_type: String,
    resource_id: Option<String>,
    outcome: String,
    priority: String,
    old_value: Option<String>,
    new_value: Option<String>,
    trace_id: Option<String>,
    ip_address: Option<String>,
    timestamp: Timestamp,
    previous_hash: Vec<u8>,
    hash: Vec<u8>,
    proof: Option<String>,
}

const COLUMNS: &str = "sequence, actor_kind, user_id, original_user, action, resource_type, resource_id, outcome, \
    priority, old_value::text AS old_value, new_value::text AS new_value, trace_id, ip_address, timestamp, \
    previous_hash, hash, proof";

/// Held by whoever moves a tenant's entries to the archive, shared by whoever reads across the border.
const ARCHIVE_LOCK: &str =
    "hashtextextended('nimbus/audit/archive/' || nimbus_core.current_tenant(), 0)";

/// A word or a hash that was changed by hand cannot be read; the entry then has a hash that does
/// not fit it, and verification names it.
fn hash_of(bytes: &[u8]) -> ChainHash {
    ChainHash(bytes.try_into().unwrap_or([0; 32]))
}

impl TenantTx {
    fn audit_entry(&self, row: AuditRow) -> AuditEntry {
        let actor = Actor {
            kind: row
                .actor_kind
                .parse()
                .unwrap_or(nimbus_control_audit::ActorKind::Nobody),
            id: row.user_id,
            original: row.original_user,
        };
        let mut record = AuditRecord::new(actor, &row.action, &row.resource_type)
            .outcome(
                row.outcome
                    .parse()
                    .unwrap_or(nimbus_control_audit::Outcome::Failed),
            )
            .priority(row.priority.parse().unwrap_or(Priority::Low))
            .with_stored_values(row.old_value, row.new_value);
        record.resource_id = row.resource_id;
        record.trace_id = row.trace_id;
        record.ip_address = row.ip_address;
        AuditEntry {
            tenant: self.tenant(),
            sequence: row.sequence.unsigned_abs(),
            at: row.timestamp.into(),
            record,
            previous: hash_of(&row.previous_hash),
            hash: hash_of(&row.hash),
            proof: row.proof,
        }
    }

    /// Adds a record to the tenant's chain, in this transaction: no act without its entry, no entry
    /// without its act. Other transactions of the tenant that record wait until this one ends, so it
    /// is the last thing that a transaction does.
    pub async fn audit_append(
        &mut self,
        key: &SigningKey,
        now: Time,
        record: AuditRecord,
    ) -> Result<AuditEntry, StoreError> {
        let tenant = self.tenant();
        let entry = append(self.raw_connection(), tenant, key, now, record).await?;
        self.note_entry(&entry);
        self.live_publish_entry(&entry).await?;
        Ok(entry)
    }

    /// Records a read once this transaction is committed, soon and together with others.
    pub fn audit_later(&mut self, now: Time, record: AuditRecord) {
        self.later.push((now, record));
    }

    /// Adds records of reads to the tenant's chain, in the order in which they are given. None of them is
    /// critical, so none carries a proof of its own.
    pub(crate) async fn audit_append_reads(
        &mut self,
        records: Vec<(Time, AuditRecord)>,
    ) -> Result<(), StoreError> {
        let tenant = self.tenant();
        let mut last = chain_end(self.raw_connection()).await?;
        let mut entries = Vec::with_capacity(records.len());
        for (now, record) in records {
            let entry = AuditEntry::append(tenant, last, now, record);
            last = Some((entry.sequence, entry.hash));
            entries.push(entry);
        }
        insert_all(self.raw_connection(), &entries).await?;
        for entry in &entries {
            self.note_entry(entry);
        }
        Ok(())
    }

    fn note_entry(&mut self, entry: &AuditEntry) {
        self.head = Some(ChainHead {
            sequence: entry.sequence,
            hash: entry.hash,
        });
        let record = &entry.record;
        self.recorded
            .push((record.action.clone(), record.resource_type.clone()));
    }

    /// Keeps a signed checkpoint where other servers and backups find it.
    pub async fn checkpoint_add(
        &mut self,
        server: Uuid,
        sequence: u64,
        line: &str,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO nimbus_core.audit_checkpoints (server, sequence, line) VALUES ($1, $2, $3)
             ON CONFLICT DO NOTHING",
        )
        .bind(server)
        .bind(sequence.cast_signed())
        .bind(line)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Every checkpoint that is kept here, with the server that made it.
    pub async fn checkpoints(&mut self) -> Result<Vec<(Uuid, String)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT server, line FROM nimbus_core.audit_checkpoints ORDER BY sequence",
        )
        .fetch_all(self.connection())
        .await?)
    }

    pub async fn audit_list(
        &mut self,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let (order, beyond) = if filter.newest_first {
            ("DESC", "<")
        } else {
            ("ASC", ">")
        };
        let statement = format!(
            "SELECT {COLUMNS} FROM nimbus_core.audit_logs
             WHERE ($1::text IS NULL OR action = $1)
               AND ($2::text IS NULL OR resource_type = $2)
               AND ($3::text IS NULL OR resource_id = $3)
               AND ($4::text IS NULL OR user_id = $4)
               AND ($5::text IS NULL OR outcome = $5)
               AND ($6::text IS NULL OR trace_id = $6)
               AND ($7::timestamptz IS NULL OR timestamp >= $7)
               AND ($8::timestamptz IS NULL OR timestamp < $8)
               AND ($9 = 0 OR sequence {beyond} $9)
             ORDER BY sequence {order} LIMIT $10"
        );
        let rows: Vec<AuditRow> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(&filter.action)
            .bind(&filter.resource_type)
            .bind(&filter.resource_id)
            .bind(&filter.user_id)
            .bind(&filter.outcome)
            .bind(&filter.trace_id)
            .bind(filter.from)
            .bind(filter.until)
            .bind(filter.after.cast_signed())
            .bind(i64::from(filter.limit))
            .fetch_all(self.connection())
            .await?;
        Ok(rows.into_iter().map(|row| self.audit_entry(row)).collect())
    }

    /// The last entry that was moved to the archive, after which the table begins. Nothing more is moved
    /// until the transaction ends.
    pub async fn audit_archived(&mut self) -> Result<Option<(u64, ChainHash)>, StoreError> {
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT pg_advisory_xact_lock_shared({ARCHIVE_LOCK})"
        )))
        .execute(self.connection())
        .await?;
        let row: Option<(i64, Option<Vec<u8>>)> =
            sqlx::query_as("SELECT archived_sequence, archived_hash FROM nimbus_core.audit_chains")
                .fetch_optional(self.connection())
                .await?;
        Ok(row.and_then(|(sequence, hash)| Some((sequence.unsigned_abs(), hash_of(&hash?)))))
    }
}

impl RegistryTx {
    /// Keeps others from archiving this tenant's trail until the transaction ends. False if somebody does.
    pub async fn audit_archive_lock(&mut self) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "SELECT pg_try_advisory_xact_lock({ARCHIVE_LOCK})"
        )))
        .fetch_one(self.connection())
        .await?)
    }

    /// Removes what was archived, up to this entry. Only the owner of the tables may.
    pub async fn audit_remove_archived(&mut self, last: &AuditEntry) -> Result<u64, StoreError> {
        sqlx::query(
            "UPDATE nimbus_core.audit_chains SET archived_sequence = $1, archived_hash = $2
             WHERE tenant_id = nimbus_core.current_tenant()",
        )
        .bind(last.sequence.cast_signed())
        .bind(last.hash.0.as_slice())
        .execute(self.connection())
        .await?;
        let removed = sqlx::query(
            "DELETE FROM nimbus_core.audit_logs WHERE tenant_id = nimbus_core.current_tenant() AND sequence <= $1",
        )
        .bind(last.sequence.cast_signed())
        .execute(self.connection())
        .await?;
        Ok(removed.rows_affected())
    }
}
