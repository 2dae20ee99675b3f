//! Finds a job by a word of the user.

/// The word for the newest job.
pub const LAST_JOB_WORD: &str = "last";

/// The key that a word names: [`LAST_JOB_WORD`], a whole key, or a prefix of one; `None` if there is none. `keys` must
/// be ordered with the newest first.
///
/// # Errors
/// The keys that begin with the word, if there are several.
pub fn named<'a>(keys: &[&'a str], word: &str) -> Result<Option<&'a str>, Vec<&'a str>> {
    if word == LAST_JOB_WORD {
        return Ok(keys.first().copied());
    }
    let keys = keys.iter().copied();
    let mut fitting: Vec<&str> = keys.filter(|key| key.starts_with(word)).collect();
    match fitting.iter().copied().find(|key| *key == word) {
        Some(whole) => Ok(Some(whole)),
        None if fitting.len() > 1 => Err(fitting),
        None => Ok(fitting.pop()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_the_beginning_of_its_key_if_no_other_begins_so() {
        let keys = ["b-2-x", "b-1", "b-2", "a-1"];
        for (word, key) in [
            (LAST_JOB_WORD, Some("b-2-x")),
            ("a", Some("a-1")),
            ("b-1", Some("b-1")),
            // It is also the prefix of another.
            ("b-2", Some("b-2")),
            ("c", None),
        ] {
            assert_eq!(named(&keys, word), Ok(key), "{word}");
        }
        assert_eq!(named(&keys, "b"), Err(vec!["b-2-x", "b-1", "b-2"]));
        assert_eq!(named(&[], LAST_JOB_WORD), Ok(None));
    }
}
