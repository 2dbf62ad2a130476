//! "Did you mean …": the valid word nearest to a wrong one.

/// The candidate that a person most likely meant, or none when nothing is close.
///
/// Letters may be swapped, missing or doubled up to about a third of the word; case, `-` and `_`
/// do not count as differences.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(word);
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&wanted, &fold(candidate)),
                candidate,
            )
        })
        .filter(|(distance, candidate)| {
            // A word of one or two letters is within reach of everything.
            *distance <= allowed && *distance < candidate.chars().count().max(2)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// What to do about a wrong word: the nearest valid one, or all of them when they are few.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(near) = nearest(word, candidates.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    match candidates.as_slice() {
        [] => None,
        [only] => Some(format!("the only valid one is `{only}`")),
        few if few.len() <= 24 => {
            let list: Vec<_> = few.iter().map(|word| format!("`{word}`")).collect();
            Some(format!("valid ones are {}", list.join(", ")))
        }
        _ => None,
    }
}

fn fold(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_slips_find_their_word_and_strangers_do_not() {
        let keys = ["logging", "tenancy", "rate_limiting", "s3"];
        for (word, expected) in [
            ("loging", Some("logging")),
            ("Logging", Some("logging")),
            ("rateLimiting", Some("rate_limiting")),
            ("rate-limitng", Some("rate_limiting")),
            ("tenacny", Some("tenancy")),
            ("database", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), expected, "{word}");
        }
    }

    #[test]
    fn without_a_near_word_the_few_valid_ones_are_listed() {
        assert_eq!(
            did_you_mean("q", ["json", "plain"]).unwrap(),
            "valid ones are `json`, `plain`"
        );
        assert_eq!(
            did_you_mean("q", ["json"]).unwrap(),
            "the only valid one is `json`"
        );
        assert_eq!(
            did_you_mean("jsn", ["json", "plain"]).unwrap(),
            "did you mean `json`?"
        );
        assert_eq!(did_you_mean("q", []), None);
    }
}
