//! Lines of a journal, and how much of a damaged one can be believed.
//!
//! `{"n":7,"b":6,"sum":"…","entry":{…}}`: the line's number, the number of the first line of its
//! batch, the start of a sha256 over the rest, and a content whose meaning the frame does not know.
//! A batch is acknowledged as a whole after one sync, and the next one starts only then. A gap
//! therefore has one innocent explanation: it lies in the last batch, which nobody was promised.
//! Any other gap means that the file was damaged later, and nothing after it is believed.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The first line: what the journal belongs to.
    Header,
    /// How secrets of later lines are encrypted, where that was not known at the start.
    Secrets,
    /// What the engine recorded.
    Entry,
    /// The writer has compacted everything before into a checkpoint.
    Closed,
    /// A successor allows no further lines.
    Sealed,
}

impl FrameKind {
    const ALL: [Self; 5] = [
        Self::Header,
        Self::Secrets,
        Self::Entry,
        Self::Closed,
        Self::Sealed,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Secrets => "secrets",
            Self::Entry => "entry",
            Self::Closed => "closed",
            Self::Sealed => "sealed",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalFrame<'a> {
    pub(crate) number: u64,
    batch: u64,
    pub(crate) kind: FrameKind,
    pub(crate) text: &'a str,
}

/// Appends one line. `text` is JSON without line breaks.
pub(crate) fn write(out: &mut String, number: u64, batch: u64, kind: FrameKind, text: &str) {
    let sum = sum(number, batch, kind, text);
    let name = kind.name();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        r#"{{"n":{number},"b":{batch},"sum":"{sum}","{name}":{text}}}"#
    );
}

/// The believable part of a journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frames<'a> {
    pub(crate) frames: Vec<JournalFrame<'a>>,
    /// Bytes of an unfinished last batch, cut off in the middle.
    pub(crate) torn: Option<&'a [u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is damaged, and whole lines of later batches follow it")]
pub struct Damaged {
    pub line: usize,
}

/// Reads lines whose first is expected to have the number `first`.
pub(crate) fn read(bytes: &[u8], first: u64) -> Result<Frames<'_>, Damaged> {
    let mut frames = Vec::new();
    let mut offset = 0;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    for (expected, line) in (first..).zip(lines) {
        match parse(line).filter(|frame| frame.number == expected) {
            Some(frame) => frames.push(frame),
            None => {
                let rest = &bytes[offset..];
                return if belongs_to_last_batch(rest, expected) {
                    Ok(Frames {
                        frames,
                        torn: Some(rest),
                    })
                } else {
                    Err(Damaged {
                        line: frames.len() + 1,
                    })
                };
            }
        }
        offset += line.len();
    }
    Ok(Frames { frames, torn: None })
}

/// Whether everything that can be read of `rest` was written together with line `missing`.
fn belongs_to_last_batch(rest: &[u8], missing: u64) -> bool {
    rest.split_inclusive(|byte| *byte == b'\n')
        .filter_map(parse)
        .all(|frame| frame.batch <= missing && frame.number > missing)
}

fn parse(line: &[u8]) -> Option<JournalFrame<'_>> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("}\n")?;
    let rest = line.strip_prefix(r#"{"n":"#)?;
    let (number, rest) = rest.split_once(r#","b":"#)?;
    let (batch, rest) = rest.split_once(r#","sum":""#)?;
    let (stated, rest) = rest.split_once(r#"",""#)?;
    let (name, text) = rest.split_once(r#"":"#)?;
    let (number, batch) = (number.parse().ok()?, batch.parse().ok()?);
    let kind = FrameKind::ALL
        .into_iter()
        .find(|kind| kind.name() == name)?;
    let frame = JournalFrame {
        number,
        batch,
        kind,
        text,
    };
    (stated == sum(number, batch, kind, text)).then_some(frame)
}

fn sum(number: u64, batch: u64, kind: FrameKind, text: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(number.to_le_bytes());
    hasher.update(batch.to_le_bytes());
    hasher.update(kind.name());
    hasher.update(text);
    hex::encode(&hasher.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines 0.. in batches of these sizes, and where each batch ends.
    fn journal(batches: &[usize]) -> (String, Vec<usize>) {
        let (mut text, mut ends, mut number) = (String::new(), Vec::new(), 0);
        for size in batches {
            let batch = number;
            for _ in 0..*size {
                write(
                    &mut text,
                    number,
                    batch,
                    FrameKind::Entry,
                    &format!(r#"{{"act":{number}}}"#),
                );
                number += 1;
            }
            ends.push(text.len());
        }
        (text, ends)
    }

    fn numbers(frames: &Frames<'_>) -> Vec<u64> {
        frames.frames.iter().map(|frame| frame.number).collect()
    }

    #[test]
    fn lines_are_json_and_read_back() {
        let mut text = String::new();
        write(&mut text, 0, 0, FrameKind::Header, r#"{"a":"}\n"}"#);
        write(&mut text, 1, 0, FrameKind::Entry, "{}");
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        let read = read(text.as_bytes(), 0).unwrap();
        assert_eq!(read.torn, None);
        assert_eq!(read.frames[0].text, r#"{"a":"}\n"}"#);
        assert_eq!(read.frames[0].kind, FrameKind::Header);
        assert_eq!(numbers(&read), [0, 1]);
    }

    #[test]
    fn damage_before_an_acknowledged_batch_is_not_explained_away() {
        let (text, ends) = journal(&[2, 2, 1]);
        let mut bytes = text.into_bytes();
        bytes[ends[0] + 30] ^= 1;
        assert_eq!(read(&bytes, 0), Err(Damaged { line: 3 }));
    }

    #[test]
    fn a_hole_in_the_last_batch_is_a_torn_end() {
        let (text, ends) = journal(&[2, 3]);
        let mut bytes = text.into_bytes();
        let line = bytes[ends[0]..].iter().position(|b| *b == b'\n').unwrap();
        bytes[ends[0]..ends[0] + line].fill(0);
        let read = read(&bytes, 0).unwrap();
        assert_eq!(numbers(&read), [0, 1]);
        assert_eq!(read.torn, Some(&bytes[ends[0]..]));
    }

    #[test]
    fn a_line_that_went_missing_is_noticed() {
        let (text, _) = journal(&[1, 1, 1]);
        let without: String = text
            .lines()
            .enumerate()
            .filter(|(n, _)| *n != 1)
            .fold(String::new(), |text, (_, line)| text + line + "\n");
        assert_eq!(read(without.as_bytes(), 0), Err(Damaged { line: 2 }));
    }

    proptest! {
        /// Whatever prefix a crash leaves, every whole batch in it is there and nothing is invented.
        #[test]
        fn every_prefix_keeps_its_whole_batches(
            batches in prop::collection::vec(1usize..5, 1..8),
            cut in 0.0f64..=1.0,
        ) {
            let (text, ends) = journal(&batches);
            let length = (text.len() as f64 * cut) as usize;
            let read = read(&text.as_bytes()[..length], 0).unwrap();
            let whole = ends.iter().filter(|end| **end <= length).count();
            let promised: usize = batches[..whole].iter().sum();
            let found = numbers(&read);
            prop_assert!(found.len() >= promised);
            prop_assert_eq!(found.clone(), (0..found.len() as u64).collect::<Vec<_>>());
            let kept: usize = text.split_inclusive('\n').take(found.len()).map(str::len).sum();
            prop_assert_eq!(read.torn.map_or(0, <[u8]>::len), length - kept);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, 0);
        }

        /// One flipped bit is never read as something else.
        #[test]
        fn a_flipped_bit_is_seen(batches in prop::collection::vec(1usize..4, 1..4), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let (text, _) = journal(&batches);
            let clean = read(text.as_bytes(), 0).unwrap();
            let mut bytes = text.clone().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Ok(damaged) = read(&bytes, 0) {
                prop_assert!(damaged.frames.len() < clean.frames.len());
                prop_assert_eq!(&damaged.frames[..], &clean.frames[..damaged.frames.len()]);
            }
        }
    }
}
