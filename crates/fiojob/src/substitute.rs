//! Variables and keywords in a value.

use crate::lines::MachineFacts;
use crate::{error, expression};

/// Maximum length of a value, in bytes; a variable could make it longer.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// A value with `${NAME}` replaced by the environment variable, an unset one by nothing as in fio,
/// and with `$pagesize`, `$mb_memory` and `$ncpus` replaced by their numbers. A value with one of
/// these three may calculate without parentheses, as `8*$mb_memory` does.
///
/// # Errors
/// A sentence, where the arithmetic cannot be done.
pub(crate) fn substitute(
    value: &str,
    kb_base: u64,
    surroundings: &MachineFacts<'_>,
) -> Result<String, String> {
    let value = variables(value, surroundings);
    if value.len() > MAX_VALUE_BYTES {
        return Err(format!("the value is longer than {MAX_VALUE_BYTES} bytes"));
    }
    let mut replaced = value.clone();
    for (keyword, number) in [
        ("$pagesize", surroundings.page_size),
        ("$mb_memory", surroundings.memory_mb),
        ("$ncpus", surroundings.processors),
    ] {
        replaced = replaced.replace(keyword, &number.to_string());
    }
    if replaced == value || !replaced.contains(['+', '-', '*', '/', '%', '^', '(']) {
        return Ok(replaced);
    }
    let unit = |suffix: &str| crate::number::size_unit(suffix, kb_base);
    expression::evaluate(&replaced, &unit).map(|number| number.to_string())
}

fn variables(value: &str, surroundings: &MachineFacts<'_>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else {
            break;
        };
        out.push_str(before);
        if let Some(text) = (surroundings.variable)(name) {
            out.push_str(&text);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

impl error::JobFileLine {
    /// Replaces variables and keywords in the value of `option`, which stands here.
    ///
    /// # Errors
    /// Where the arithmetic in it cannot be done.
    pub(crate) fn substitute(
        &self,
        option: &str,
        value: &str,
        kb_base: u64,
        surroundings: &MachineFacts<'_>,
    ) -> Result<String, error::FioError> {
        substitute(value, kb_base, surroundings).map_err(|why| self.error_in(option, why))
    }
}
