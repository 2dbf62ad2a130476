//! Content behind the addresses of remote assets.

use async_trait::async_trait;
use nimbus_engine_monitor::AssetReader;

/// Reads `file://` addresses. Other addresses would make what a program deploys depend on whatever
/// a server says at that moment, unseen by any plan; they are refused with a remedy.
pub(crate) struct FileAssets;

#[async_trait]
impl AssetReader for FileAssets {
    async fn read(&self, uri: &str) -> Result<Vec<u8>, String> {
        let path = url::Url::parse(uri)
            .ok()
            .and_then(|url| url.to_file_path().ok());
        let Some(path) = path else {
            return Err(
                "only file:// addresses are read; download it and use a FileAsset".to_owned(),
            );
        };
        tokio::fs::read(&path)
            .await
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_read_and_servers_are_not_asked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "content").unwrap();
        let uri = url::Url::from_file_path(file.path()).unwrap();
        assert_eq!(FileAssets.read(uri.as_str()).await.unwrap(), b"content");
        assert!(FileAssets.read("file:///does/not/exist").await.is_err());
        let error = FileAssets.read("https://example.com/x").await.unwrap_err();
        assert!(error.contains("FileAsset"), "{error}");
    }
}
