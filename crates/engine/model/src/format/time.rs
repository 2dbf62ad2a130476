//! Times as the official engine writes them: RFC 3339, with as many digits of a second as needed.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

pub(crate) fn write(time: Timestamp, offset: Offset) -> String {
    let local = offset.to_datetime(time);
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        local.year(),
        local.month(),
        local.day(),
        local.hour(),
        local.minute(),
        local.second()
    );
    let nanoseconds = local.subsec_nanosecond();
    if nanoseconds != 0 {
        text.push('.');
        text.push_str(format!("{nanoseconds:09}").trim_end_matches('0'));
    }
    let minutes = offset.seconds() / 60;
    if minutes == 0 {
        text.push('Z');
    } else {
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.abs();
        text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
    }
    text
}

/// The instant and the offset it was written with; `None` when the text is no such time.
pub(crate) fn read(text: &str) -> Option<(Timestamp, Offset)> {
    let time: Timestamp = text.parse().ok()?;
    let offset = Pieces::parse(text).ok()?.to_numeric_offset()?;
    Some((time, offset))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_of_the_official_engine_come_back_unchanged() {
        for text in [
            "0001-01-01T00:00:00Z",
            "2026-08-21T10:11:12.123456789Z",
            "2026-08-21T10:11:12.1Z",
            "2017-11-08T11:52:26.954469-08:00",
            "2026-08-21T10:11:12.000001+05:30",
        ] {
            let (time, offset) = read(text).unwrap();
            assert_eq!(write(time, offset), text);
        }
    }

    #[test]
    fn other_spellings_of_a_time_become_the_usual_one() {
        let (time, offset) = read("2026-08-21T10:11:12.100+00:00").unwrap();
        assert_eq!(write(time, offset), "2026-08-21T10:11:12.1Z");
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "now",
            "2026-08-21",
            "2026-08-21T10:11:12",
            "2026-13-01T00:00:00Z",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_reads_back(
            seconds in -62_135_596_800_i64..253_402_207_200,
            nanoseconds in 0..1_000_000_000,
            quarters in -48..=56_i32,
        ) {
            let time = Timestamp::new(seconds, nanoseconds).unwrap();
            let offset = Offset::from_seconds(quarters * 900).unwrap();
            // A local year before 1 has no spelling in this form.
            prop_assume!((1..=9999).contains(&offset.to_datetime(time).year()));
            prop_assert_eq!(read(&write(time, offset)), Some((time, offset)));
        }

        #[test]
        fn reading_any_text_is_total(text in any::<String>()) {
            let _ = read(&text);
        }
    }
}
