//! The web console's files, compressed, as part of the binary.
//!
//! `cargo xtask console` builds them with Vite; a build of Rust alone works without them and has none. Who
//! asks for what, and under which policy, is the server's business: this crate only finds files.

use std::io::{self, Read as _};

use flate2::read::GzDecoder;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// One file of the console, in the two forms that browsers take.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleFile {
    path: &'static str,
    pub gzip: &'static [u8],
    pub brotli: &'static [u8],
}

impl ConsoleFile {
    /// For whoever takes neither form.
    pub fn plain(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.gzip).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Its name has a digest of what it holds, so it never changes.
    pub fn is_immutable(&self) -> bool {
        self.path.starts_with("/assets/")
    }

    pub fn media_type(&self) -> &'static str {
        match self.path.rsplit('.').next().unwrap_or_default() {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "woff2" => "font/woff2",
            "json" => "application/json",
            _ => "application/octet-stream",
        }
    }
}

/// The file at a path such as `/assets/index-1a2b3c.js`.
pub fn file(path: &str) -> Option<ConsoleFile> {
    FILES.iter().find(|file| file.path == path).copied()
}

/// The page in which the console runs; `None` when it was not built.
pub fn start_page() -> Option<ConsoleFile> {
    file("/index.html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_on_types_and_on_how_long_a_file_is_kept() {
        let file = |path| ConsoleFile {
            path,
            gzip: &[],
            brotli: &[],
        };
        assert!(file("/assets/index-1a2b.js").is_immutable());
        assert!(!file("/index.html").is_immutable());
        assert_eq!(file("/assets/x-1.woff2").media_type(), "font/woff2");
        assert_eq!(file("/other").media_type(), "application/octet-stream");
    }

    /// Holds for whatever was compiled in, nothing included.
    #[test]
    fn every_file_opens_and_none_is_there_without_the_start_page() {
        assert_eq!(FILES.is_empty(), start_page().is_none());
        for one in FILES {
            assert!(one.plain().is_ok(), "{}", one.path);
        }
    }
}
