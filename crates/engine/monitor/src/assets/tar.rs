//! A tar stream whose every byte follows from names and contents.
//!
//! Recorded archive hashes are hashes of such streams as the official engine makes them, so this
//! writes what it writes: ustar headers with mode 0600 and everything else zero, long names split
//! at a slash where they can be, and a pax record for names that ustar cannot hold. It is not a
//! tool to make archives with.

use std::io::{self, Read, Write};

const BLOCK: usize = 512;
const NAME_SIZE: usize = 100;
const PREFIX_SIZE: usize = 155;
/// The largest size that the eleven digits of a ustar header can say.
const LARGEST: u64 = 0o777_7777_7777;

pub(super) struct TarStream<W> {
    out: W,
}

impl<W: Write> TarStream<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    /// Appends a file; `content` must have `size` bytes.
    pub(super) fn file(&mut self, name: &str, size: u64, content: &mut dyn Read) -> io::Result<()> {
        self.file_header(name, size)?;
        let copied = io::copy(&mut content.take(size), &mut self.out)?;
        if copied != size || content.read(&mut [0])? != 0 {
            return Err(io::Error::other("it changed while it was read"));
        }
        self.pad(size)
    }

    /// Ends the stream.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        Ok(self.out)
    }

    fn file_header(&mut self, name: &str, size: u64) -> io::Result<()> {
        let is_large = size > LARGEST;
        let is_short = name.len() <= NAME_SIZE && name.is_ascii();
        if is_short && !is_large {
            return self.header(&TarHeader::file(name, "", size));
        }
        if !is_large && let Some((prefix, rest)) = split(name) {
            return self.header(&TarHeader::file(rest, prefix, size));
        }
        let mut records = String::new();
        if !is_short {
            records.push_str(&pax_record("path", name));
        }
        if is_large {
            records.push_str(&pax_record("size", &size.to_string()));
        }
        self.pax(name, &records)?;
        let told = if is_large { 0 } else { size };
        self.header(&TarHeader::file(&ascii(name), "", told))
    }

    /// Says of the next file what its header cannot.
    fn pax(&mut self, name: &str, records: &str) -> io::Result<()> {
        let (directory, file) = name.rsplit_once('/').unwrap_or(("", name));
        let header_name = match directory {
            "" => format!("PaxHeaders.0/{file}"),
            directory => format!("{directory}/PaxHeaders.0/{file}"),
        };
        let mut header_name = ascii(&header_name);
        header_name.truncate(NAME_SIZE);
        let header_name = header_name.trim_end_matches('/');
        let size = records.len() as u64;
        self.header(&TarHeader::pax(header_name, size))?;
        self.out.write_all(records.as_bytes())?;
        self.pad(size)
    }

    fn header(&mut self, header: &TarHeader<'_>) -> io::Result<()> {
        self.out.write_all(&header.block())
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        let over = (size % BLOCK as u64) as usize;
        if over == 0 {
            return Ok(());
        }
        self.out.write_all(&[0; BLOCK][over..])
    }
}

struct TarHeader<'a> {
    name: &'a str,
    prefix: &'a str,
    mode: u64,
    size: u64,
    kind: u8,
    /// Device numbers are written out only for files.
    devices: bool,
}

impl<'a> TarHeader<'a> {
    fn file(name: &'a str, prefix: &'a str, size: u64) -> Self {
        let kind = if name.ends_with('/') { b'5' } else { b'0' };
        Self {
            name,
            prefix,
            mode: 0o600,
            size,
            kind,
            devices: true,
        }
    }

    fn pax(name: &'a str, size: u64) -> Self {
        Self {
            name,
            prefix: "",
            mode: 0,
            size,
            kind: b'x',
            devices: false,
        }
    }

    fn block(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        text(&mut block[0..100], self.name);
        octal(&mut block[100..108], self.mode);
        octal(&mut block[108..116], 0);
        octal(&mut block[116..124], 0);
        octal(&mut block[124..136], self.size);
        octal(&mut block[136..148], 0);
        block[156] = self.kind;
        block[257..263].copy_from_slice(b"ustar\0");
        block[263..265].copy_from_slice(b"00");
        if self.devices {
            octal(&mut block[329..337], 0);
            octal(&mut block[337..345], 0);
        }
        text(&mut block[345..500], self.prefix);
        block[148..156].fill(b' ');
        let sum = block.iter().map(|byte| u64::from(*byte)).sum();
        octal(&mut block[148..155], sum);
        block
    }
}

fn text(field: &mut [u8], text: &str) {
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
    if text.len() > field.len() && field.last() == Some(&b'/') {
        let kept = text[..field.len() - 1].trim_end_matches('/').len();
        field[kept] = 0;
    }
}

/// Digits with leading zeros and a final NUL.
fn octal(field: &mut [u8], number: u64) {
    let digits = format!("{number:0width$o}", width = field.len() - 1);
    let length = digits.len().min(field.len());
    field[..length].copy_from_slice(&digits.as_bytes()[..length]);
    field[field.len() - 1] = 0;
}

/// Splits a long name so that both parts fit a ustar header.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME_SIZE || !name.is_ascii() {
        return None;
    }
    let reach = match name.len() {
        length if length > PREFIX_SIZE + 1 => PREFIX_SIZE + 1,
        length if name.ends_with('/') => length - 1,
        length => length,
    };
    let slash = name[..reach].rfind('/')?;
    let rest = &name[slash + 1..];
    let fits = slash > 0 && !rest.is_empty() && rest.len() <= NAME_SIZE && slash <= PREFIX_SIZE;
    fits.then(|| (&name[..slash], rest))
}

fn ascii(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_ascii() && *c != '\0')
        .collect()
}

/// A record begins with its own length in bytes.
fn pax_record(key: &str, value: &str) -> String {
    let without_length = key.len() + value.len() + " =\n".len();
    let mut length = without_length + without_length.to_string().len();
    if length.to_string().len() + without_length != length {
        length = without_length + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and contents as a foreign reader sees them.
    fn read_back(names: &[&str]) -> Vec<(String, Vec<u8>)> {
        let mut stream = TarStream::new(Vec::new());
        for name in names {
            let content = format!("content of {name}");
            stream
                .file(name, content.len() as u64, &mut content.as_bytes())
                .expect("writing to memory");
        }
        let bytes = stream.finish().expect("writing to memory");
        let mut archive = ::tar::Archive::new(bytes.as_slice());
        let entries = archive.entries().expect("a tar stream");
        entries
            .map(|entry| {
                let mut entry = entry.expect("a whole entry");
                let name = entry.path().expect("a path").display().to_string();
                let mut content = Vec::new();
                entry.read_to_end(&mut content).expect("the content");
                (name, content)
            })
            .collect()
    }

    #[test]
    fn other_readers_understand_every_kind_of_name() {
        let split = format!("{}/{}", "d".repeat(90), "f".repeat(60));
        let unsplittable = "u".repeat(180);
        let names = ["a.txt", "ä/ö.txt", &split, &unsplittable];
        let read = read_back(&names);
        assert_eq!(read.len(), names.len());
        for ((name, content), expected) in read.iter().zip(names) {
            assert_eq!(name, expected);
            assert_eq!(*content, format!("content of {expected}").into_bytes());
        }
    }

    #[test]
    fn sizes_beyond_the_digits_of_a_header_are_understood() {
        let long = format!("{}/{}", "d".repeat(90), "f".repeat(60));
        for (name, size) in [
            ("small.bin", LARGEST),
            ("large.bin", LARGEST + 1),
            (long.as_str(), 1 << 40),
        ] {
            let mut stream = TarStream::new(Vec::new());
            stream.file_header(name, size).expect("writing to memory");
            let bytes = stream.finish().expect("writing to memory");
            let mut archive = ::tar::Archive::new(bytes.as_slice());
            let mut entries = archive.entries().expect("a tar stream");
            let entry = entries.next().expect("an entry").expect("a header");
            assert_eq!(entry.size(), size, "{name}");
            assert_eq!(entry.path().expect("a path").display().to_string(), name);
        }
    }

    #[test]
    fn a_record_counts_its_own_length() {
        for length in 80..120 {
            let record = pax_record("path", &"x".repeat(length));
            let (told, _) = record.split_once(' ').expect("a length and a space");
            assert_eq!(told.parse(), Ok(record.len()), "{record}");
        }
    }

    #[test]
    fn a_file_of_another_size_is_noticed() {
        let mut stream = TarStream::new(Vec::new());
        assert!(stream.file("a", 3, &mut &b"ab"[..]).is_err());
        assert!(stream.file("a", 3, &mut &b"abcd"[..]).is_err());
    }
}
