use std::fmt;

use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, PutMultipartOptions,
    PutOptions, PutResult,
};

use super::*;

/// Takes every condition and heeds those that it is told to.
#[derive(Debug)]
struct Heedless {
    inner: InMemory,
    create: bool,
    update: bool,
}

impl fmt::Display for Heedless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("heedless")
    }
}

#[async_trait]
impl ObjectStore for Heedless {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> object_store::Result<PutResult> {
        let heeded = match options.mode {
            PutMode::Overwrite => true,
            PutMode::Create => self.create,
            PutMode::Update(_) => self.update,
        };
        if !heeded {
            options.mode = PutMode::Overwrite;
        }
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn bucket(create: bool, update: bool) -> RemoteStorage {
    let heedless = Heedless {
        inner: InMemory::new(),
        create,
        update,
    };
    RemoteStorage::new(Arc::new(heedless), "states")
}

#[tokio::test]
async fn a_bucket_that_ignores_conditions_is_refused_with_the_reason() {
    for (create, update, reason) in [
        (false, true, "If-None-Match"),
        (true, false, "If-Match"),
        (false, false, "If-None-Match"),
    ] {
        let bucket = bucket(create, update);
        let refused = bucket
            .put("lease", Bytes::from_static(b"mine"), WriteCondition::Absent)
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, StorageError::Unconditional { .. })
                && refused.to_string().contains(reason),
            "{refused}"
        );
        assert!(bucket.get("lease").await.unwrap().is_none());
        assert!(
            bucket.list(SCRATCH).await.unwrap().is_empty(),
            "nothing is left behind"
        );
    }
}

#[tokio::test]
async fn a_bucket_that_honours_them_is_asked_once() {
    let bucket = bucket(true, true);
    for number in 0..3 {
        let key = format!("lease-{number}");
        let put = bucket
            .put(&key, Bytes::from_static(b"mine"), WriteCondition::Absent)
            .await
            .unwrap();
        assert!(matches!(put, Put::Stored(_)));
        let again = bucket
            .put(&key, Bytes::from_static(b"theirs"), WriteCondition::Absent)
            .await
            .unwrap();
        assert_eq!(again, Put::Refused);
    }
    assert!(bucket.conditional.initialized());
    assert!(bucket.list(SCRATCH).await.unwrap().is_empty());
}
