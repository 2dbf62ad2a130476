//! One cache of compiled programs for all tests of one build.
//!
//! Every test has a home of its own, and a binary that finds nothing there translates TypeScript, checks
//! types and compiles the SDK's JavaScript again: seconds for each start of a program. What was compiled is
//! kept under digests of everything it depends on, so tests may share it. They share it with tests of the
//! same binary only: what another build has compiled says nothing about this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder beside `binary` for `XDG_CACHE_HOME`. Folders of builds that are gone are removed.
pub fn compile_cache(binary: &Path) -> PathBuf {
    let built = fs::metadata(binary).and_then(|metadata| metadata.modified());
    let stamp = built.unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH);
    let name = binary.file_name().unwrap_or_default().to_string_lossy();
    let caches = binary.with_file_name("test-caches");
    let own = format!("{name}-{}", stamp.unwrap_or_default().as_nanos());
    let folder = caches.join(&own);
    if !folder.is_dir() {
        remove_old(&caches, &format!("{name}-"), &own);
        // A test that cannot have it compiles for itself.
        let _ = fs::create_dir_all(&folder);
    }
    folder
}

/// Another build may have just begun to run its tests, or still be running them; so only folders go that
/// nobody can be using any more.
fn remove_old(caches: &Path, prefix: &str, own: &str) {
    const OLD: Duration = Duration::from_secs(3600);
    let is_old = |entry: &fs::DirEntry| {
        let made = entry.metadata().and_then(|metadata| metadata.modified());
        let age = made.map(|made| SystemTime::now().duration_since(made).unwrap_or_default());
        age.is_ok_and(|age| age > OLD)
    };
    for entry in fs::read_dir(caches).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && name != own && is_old(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_has_another_cache() {
        let place = std::env::temp_dir().join(format!("nimbus-caches-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let binary = place.join("program");
        fs::write(&binary, "one").unwrap();
        let first = compile_cache(&binary);
        assert!(first.is_dir());
        assert_eq!(compile_cache(&binary), first);
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::options()
            .write(true)
            .open(&binary)
            .and_then(|file| file.set_modified(later))
            .unwrap();
        assert_ne!(compile_cache(&binary), first);
        fs::remove_dir_all(&place).unwrap();
    }
}
