//! What the `random` package draws: programs count on lengths, ranges and forms of it.

use nimbus_engine_model::{PropertyMap, PropertyValue};

use crate::identity::{hex_of, uuid};
use crate::values::SimulatedResource;

/// The most letters and bytes that anybody is given.
const MOST: usize = 4096;

/// The outputs that follow from the inputs; the same for the same object.
pub(crate) fn outputs(inputs: &PropertyMap, subject: &SimulatedResource<'_>) -> PropertyMap {
    let Some(kind) = subject.type_.strip_prefix("random:index/") else {
        return PropertyMap::new();
    };
    let kind = kind.split(':').next().unwrap_or_default();
    let number = |key: &str| match inputs.get(key) {
        Some(PropertyValue::Number(number)) => Some(*number),
        _ => None,
    };
    let count = |key: &str| number(key).map_or(0, |count| (count.max(0.0) as usize).min(MOST));
    let result = match kind {
        "randomUuid" | "randomUuid4" | "randomUuid7" => {
            PropertyValue::from(uuid(&hex_of(subject.id)))
        }
        "randomString" | "randomPassword" => {
            PropertyValue::from(digits(subject.id, count("length")))
        }
        "randomInteger" => {
            let (min, max) = (number("min").unwrap_or(0.0), number("max").unwrap_or(0.0));
            let drawn = hex_of(subject.id).bytes().map(f64::from).sum::<f64>();
            PropertyValue::Number(min + drawn % (max - min + 1.0).max(1.0))
        }
        "randomShuffle" => {
            let given = inputs.get("inputs").cloned();
            let list = given.unwrap_or_else(|| PropertyValue::Array(Vec::new()));
            return PropertyMap::from([("results".to_owned(), list)]);
        }
        "randomId" => return bytes(&digits(subject.id, count("byteLength") * 2)),
        _ => return PropertyMap::new(),
    };
    PropertyMap::from([("result".to_owned(), result)])
}

/// So many digits of base 16.
fn digits(seed: &str, count: usize) -> String {
    let mut text = String::new();
    for round in 0_u32.. {
        if text.len() >= count {
            break;
        }
        text.push_str(&hex_of(&format!("{seed}{round}")));
    }
    text.truncate(count);
    text
}

/// What `RandomId` shows of its bytes where the form matters.
fn bytes(hex: &str) -> PropertyMap {
    let number = hex.get(..hex.len().min(16)).unwrap_or_default();
    let number = u64::from_str_radix(number, 16).unwrap_or_default();
    PropertyMap::from([
        ("hex".to_owned(), PropertyValue::from(hex)),
        ("dec".to_owned(), PropertyValue::from(number.to_string())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(kind: &str, inputs: &[(&str, f64)]) -> PropertyMap {
        let inputs = inputs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), PropertyValue::Number(*value)))
            .collect();
        let type_ = format!("random:index/{kind}:X");
        let subject = SimulatedResource {
            type_: &type_,
            name: "x",
            id: "x-1",
            region: "r",
            account: "a",
        };
        outputs(&inputs, &subject)
    }

    #[test]
    fn what_is_drawn_has_the_length_range_and_form_that_was_asked_for() {
        let text = |map: &PropertyMap, key: &str| map[key].as_str().unwrap().to_owned();
        let password = drawn("randomPassword", &[("length", 100.0)]);
        assert_eq!(text(&password, "result").len(), 100);
        let uuid = text(&drawn("randomUuid", &[]), "result");
        assert_eq!((uuid.len(), uuid.matches('-').count()), (36, 4));
        let PropertyValue::Number(number) =
            drawn("randomInteger", &[("min", 7.0), ("max", 9.0)])["result"]
        else {
            panic!("a number")
        };
        assert!((7.0..=9.0).contains(&number));
        let id = drawn("randomId", &[("byteLength", 8.0)]);
        assert_eq!(text(&id, "hex").len(), 16);
        assert_eq!(
            u64::from_str_radix(&text(&id, "hex"), 16)
                .unwrap()
                .to_string(),
            text(&id, "dec")
        );
        assert!(drawn("randomThing", &[]).is_empty());
        assert_eq!(
            drawn("randomString", &[("length", 1e300)])["result"]
                .as_str()
                .map(str::len),
            Some(MOST)
        );
        assert!(drawn("randomInteger", &[]).contains_key("result"));
    }
}
