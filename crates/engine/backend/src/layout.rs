//! Where everything lies under a backend's root.
//!
//! `.pulumi/…` is the layout of Pulumi's self-managed backends, version 1, to the letter: the
//! official command line works on the same files. What Nimbus adds lies beside it in `.nimbus/…`
//! and can be deleted, when nobody works, without harm to the state.

use jiff::Timestamp;

use crate::clock::unix_nanos;
use crate::names::{ORGANIZATION, StackRef};

pub(crate) const META: &str = ".pulumi/meta.yaml";
pub(crate) const META_CONTENT: &str = "version: 1\n";
pub(crate) const STACKS: &str = ".pulumi/stacks";
pub(crate) const SCRATCH: &str = ".nimbus/tmp";

/// Keys of one stack.
#[derive(Clone, Debug)]
pub(crate) struct StackKeys {
    project: String,
    stack: String,
}

/// How a checkpoint is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Gzip, Self::Zstd];

    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    /// Splits `dev.json.gz` into `dev.json` and its compression.
    pub(crate) fn split(name: &str) -> (&str, Self) {
        for compression in [Self::Gzip, Self::Zstd] {
            if let Some(plain) = name.strip_suffix(compression.extension()) {
                return (plain, compression);
            }
        }
        (name, Self::None)
    }
}

impl StackKeys {
    pub(crate) fn new(stack: &StackRef) -> Self {
        Self {
            project: stack.project().to_owned(),
            stack: stack.stack().to_owned(),
        }
    }

    pub(crate) fn checkpoint(&self, compression: Compression) -> String {
        format!("{}.json{}", self.base(), compression.extension())
    }

    /// The previous checkpoint, kept by each save.
    pub(crate) fn previous_checkpoint(&self, compression: Compression) -> String {
        format!("{}.bak", self.checkpoint(compression))
    }

    pub(crate) fn tags(&self) -> String {
        format!("{}.pulumi-tags", self.base())
    }

    pub(crate) fn history_folder(&self) -> String {
        format!(".pulumi/history/{}/{}", self.project, self.stack)
    }

    /// The common part of an update's `.history.json` and `.checkpoint.json`.
    pub(crate) fn history_base(&self, nanos: i128) -> String {
        format!("{}/{}-{nanos}", self.history_folder(), self.stack)
    }

    pub(crate) fn backup_folder(&self) -> String {
        format!(".pulumi/backups/{}/{}", self.project, self.stack)
    }

    pub(crate) fn backup(&self, at: Timestamp, compression: Compression) -> String {
        let folder = self.backup_folder();
        let nanos = unix_nanos(at);
        format!(
            "{folder}/{}.{nanos}.json{}",
            self.stack,
            compression.extension()
        )
    }

    pub(crate) fn pulumi_lock_folder(&self) -> String {
        format!(
            ".pulumi/locks/{ORGANIZATION}/{}/{}",
            self.project, self.stack
        )
    }

    pub(crate) fn pulumi_lock(&self, id: &str) -> String {
        format!("{}/{id}.json", self.pulumi_lock_folder())
    }

    /// Who writes, and under which epoch.
    pub(crate) fn lease(&self) -> String {
        format!(".nimbus/leases/{}/{}.json", self.project, self.stack)
    }

    /// The file whose flock a writer holds. It has no content and is never replaced: a lock on a
    /// file that somebody renamed away excludes nobody.
    pub(crate) fn lock(&self) -> String {
        format!(".nimbus/leases/{}/{}.lock", self.project, self.stack)
    }

    /// Versions of the state that Nimbus has seen.
    pub(crate) fn ledger(&self) -> String {
        format!(".nimbus/versions/{}/{}.json", self.project, self.stack)
    }

    pub(crate) fn journal_file(&self) -> String {
        format!(".nimbus/journal/{}/{}.jsonl", self.project, self.stack)
    }

    pub(crate) fn journal_folder(&self) -> String {
        format!(".nimbus/journal/{}/{}", self.project, self.stack)
    }

    /// Journals that are no longer needed, and cut-off tails, kept as evidence.
    pub(crate) fn evidence_folder(&self) -> String {
        format!(".nimbus/evidence/{}/{}", self.project, self.stack)
    }

    fn base(&self) -> String {
        format!("{STACKS}/{}/{}", self.project, self.stack)
    }
}

/// The stack that a key under [`STACKS`] is the checkpoint of.
pub(crate) fn stack_of_checkpoint(key: &str) -> Option<StackRef> {
    let rest = key.strip_prefix(STACKS)?.strip_prefix('/')?;
    let (project, file) = rest.split_once('/')?;
    let (plain, _) = Compression::split(file);
    let stack = plain.strip_suffix(".json")?;
    StackRef::new(project, stack).ok()
}

/// The stack that a key is the checkpoint of in the old layout, which had no projects.
pub(crate) fn is_legacy_checkpoint(key: &str) -> bool {
    let Some(file) = key
        .strip_prefix(STACKS)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        return false;
    };
    let (plain, _) = Compression::split(file);
    plain
        .strip_suffix(".json")
        .is_some_and(crate::names::is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_told_from_everything_beside_them() {
        let found = |key: &str| stack_of_checkpoint(key).map(|stack| stack.to_string());
        let dev = Some("organization/shop/dev".to_owned());
        assert_eq!(found(".pulumi/stacks/shop/dev.json"), dev);
        assert_eq!(found(".pulumi/stacks/shop/dev.json.gz"), dev);
        assert_eq!(found(".pulumi/stacks/shop/dev.json.zst"), dev);
        for key in [
            ".pulumi/stacks/shop/dev.json.bak",
            ".pulumi/stacks/shop/dev.json.attrs",
            ".pulumi/stacks/shop/dev.pulumi-tags",
            ".pulumi/stacks/dev.json",
            ".pulumi/stacks/shop/deep/dev.json",
            ".pulumi/history/shop/dev.json",
        ] {
            assert_eq!(found(key), None, "{key}");
        }
        assert!(is_legacy_checkpoint(".pulumi/stacks/dev.json"));
        assert!(is_legacy_checkpoint(".pulumi/stacks/dev.json.gz"));
        assert!(!is_legacy_checkpoint(".pulumi/stacks/shop/dev.json"));
    }

    #[test]
    fn keys_are_those_of_the_official_layout() {
        let keys = StackKeys::new(&StackRef::new("shop", "dev").unwrap());
        let at = Timestamp::new(1_700_000_000, 5).unwrap();
        assert_eq!(
            keys.checkpoint(Compression::None),
            ".pulumi/stacks/shop/dev.json"
        );
        assert_eq!(
            keys.previous_checkpoint(Compression::Gzip),
            ".pulumi/stacks/shop/dev.json.gz.bak"
        );
        assert_eq!(
            keys.history_base(1_700_000_000_000_000_005),
            ".pulumi/history/shop/dev/dev-1700000000000000005"
        );
        assert_eq!(
            keys.backup(at, Compression::None),
            ".pulumi/backups/shop/dev/dev.1700000000000000005.json"
        );
        assert_eq!(
            keys.pulumi_lock("7c"),
            ".pulumi/locks/organization/shop/dev/7c.json"
        );
        assert_eq!(keys.tags(), ".pulumi/stacks/shop/dev.pulumi-tags");
    }
}
