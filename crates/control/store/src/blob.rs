//! A tenant's own templates and programs: content by digest, and paths that name it.

use sha2::{Digest as _, Sha256};
use sqlx::FromRow;

use crate::{ListPage, StoreError, TenantTx, Timestamp};

/// A path of a tenant's workspace and what is there.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct WorkspaceFile {
    pub path: String,
    /// SHA-256 of the content.
    pub digest: Vec<u8>,
    pub updated_at: Timestamp,
}

impl TenantTx {
    /// Puts a file into the tenant's workspace. Content that is there already is not stored again.
    pub async fn workspace_put(&mut self, path: &str, content: &[u8]) -> Result<(), StoreError> {
        let digest = Sha256::digest(content).to_vec();
        sqlx::query("INSERT INTO blobs (digest, content) VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(&digest)
            .bind(content)
            .execute(self.connection())
            .await?;
        self.workspace_link(path, &digest).await
    }

    /// Removes a file, or everything below a folder that is named with `/` at its end. How many.
    pub async fn workspace_remove(&mut self, path: &str) -> Result<u64, StoreError> {
        let removed = sqlx::query(
            "DELETE FROM workspace_files
             WHERE path = $1 OR (right($1, 1) = '/' AND starts_with(path, $1))",
        )
        .bind(path)
        .execute(self.connection())
        .await?
        .rows_affected();
        self.blobs_forget_unused().await?;
        Ok(removed)
    }

    /// Forgets contents that no file has. Those that were stored just now are on their way into a workspace.
    pub async fn blobs_forget_unused(&mut self) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM blobs b WHERE b.created_at < now() - interval '1 hour' AND NOT EXISTS (
                 SELECT FROM workspace_files f WHERE f.tenant_id = b.tenant_id AND f.digest = b.digest)",
        )
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Stores content that no file has yet; it is kept for an hour at least.
    pub async fn blob_put(&mut self, digest: &[u8], content: &[u8]) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO blobs (digest, content) VALUES ($1, $2)
             ON CONFLICT (tenant_id, digest) DO UPDATE SET created_at = now()",
        )
        .bind(digest)
        .bind(content)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// How many bytes of content the tenant has.
    pub async fn blobs_size(&mut self) -> Result<i64, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT coalesce(sum(length(content)), 0)::bigint FROM blobs")
                .fetch_one(self.connection())
                .await?,
        )
    }

    /// Which of these contents are there.
    pub async fn blobs_known(&mut self, digests: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT digest FROM blobs WHERE digest = ANY($1)")
                .bind(digests)
                .fetch_all(self.connection())
                .await?,
        )
    }

    /// Names content that is there as a file of the workspace.
    pub async fn workspace_link(&mut self, path: &str, digest: &[u8]) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO workspace_files (path, digest) VALUES ($1, $2)
             ON CONFLICT (tenant_id, path) DO UPDATE SET digest = $2, updated_at = now()
             WHERE workspace_files.digest <> $2",
        )
        .bind(path)
        .bind(digest)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Removes one file; its content stays until nobody has it.
    pub async fn workspace_unlink(&mut self, path: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM workspace_files WHERE path = $1")
            .bind(path)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Nobody else changes the workspace until the transaction is over.
    pub async fn workspace_lock(&mut self) -> Result<(), StoreError> {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('workspace/' || $1::text, 0))")
            .bind(self.tenant().to_string())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Size of every content, by digest.
    pub async fn blob_sizes(&mut self) -> Result<Vec<(Vec<u8>, i64)>, StoreError> {
        Ok(
            sqlx::query_as("SELECT digest, length(content)::bigint FROM blobs")
                .fetch_all(self.connection())
                .await?,
        )
    }

    /// Every file whose path begins so, by path, after the given one.
    pub async fn workspace_list(
        &mut self,
        prefix: &str,
        page: &ListPage<String>,
    ) -> Result<Vec<WorkspaceFile>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT path, digest, updated_at FROM workspace_files
             WHERE starts_with(path, $1) AND ($2::text IS NULL OR path > $2) ORDER BY path LIMIT $3",
        )
        .bind(prefix)
        .bind(&page.after)
        .bind(i64::from(page.limit))
        .fetch_all(self.connection())
        .await?)
    }

    /// Every file, by path: a workspace is small, and a run needs all of it.
    pub async fn workspace_index(&mut self) -> Result<Vec<WorkspaceFile>, StoreError> {
        Ok(
            sqlx::query_as("SELECT path, digest, updated_at FROM workspace_files ORDER BY path")
                .fetch_all(self.connection())
                .await?,
        )
    }

    pub async fn workspace_content(&mut self, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT b.content FROM workspace_files f
             JOIN blobs b ON b.tenant_id = f.tenant_id AND b.digest = f.digest WHERE f.path = $1",
        )
        .bind(path)
        .fetch_optional(self.connection())
        .await?)
    }

    pub async fn blob_get(&mut self, digest: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(
            sqlx::query_scalar("SELECT content FROM blobs WHERE digest = $1")
                .bind(digest)
                .fetch_optional(self.connection())
                .await?,
        )
    }
}
