//! Substitution of variables and keywords in a value of a job file.

use crate::lines::MachineFacts;
use crate::{error, expression};

/// Maximum length of a value after variables are replaced, in bytes.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// Replaces `${NAME}` in a value by the environment variable, or by nothing if it is not set, as fio does; and
/// `$pagesize`, `$mb_memory` and `$ncpus` by their numbers. A value that has one of these three keywords may be an
/// expression without parentheses, such as `8*$mb_memory`: it is evaluated, with `kb_base` bytes to the `k`.
///
/// # Errors
/// A sentence, when the value is too long or the expression cannot be evaluated.
pub(crate) fn substitute(
    value: &str,
    kb_base: u64,
    machine: &MachineFacts<'_>,
) -> Result<String, String> {
    let value = variables(value, machine);
    if value.len() > MAX_VALUE_BYTES {
        return Err(format!("the value is longer than {MAX_VALUE_BYTES} bytes"));
    }
    let mut replaced = value.clone();
    for (keyword, number) in [
        ("$pagesize", machine.page_size),
        ("$mb_memory", machine.memory_mb),
        ("$ncpus", machine.processors),
    ] {
        replaced = replaced.replace(keyword, &number.to_string());
    }
    if replaced == value || !replaced.contains(['+', '-', '*', '/', '%', '^', '(']) {
        return Ok(replaced);
    }
    let unit = |suffix: &str| crate::number::size_unit(suffix, kb_base);
    expression::evaluate(&replaced, &unit).map(|number| number.to_string())
}

/// The value with each `${NAME}` replaced by the environment variable.
fn variables(value: &str, machine: &MachineFacts<'_>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after_sign)) = rest.split_once("${") {
        let Some((name, after)) = after_sign.split_once('}') else {
            break;
        };
        out.push_str(before);
        if let Some(text) = (machine.variable)(name) {
            out.push_str(&text);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

impl error::JobFileLine {
    /// Replaces variables and keywords in the value of `option` in this line, as [`substitute`] does.
    ///
    /// # Errors
    /// As [`substitute`], with the line and the option.
    pub(crate) fn substitute(
        &self,
        option: &str,
        value: &str,
        kb_base: u64,
        machine: &MachineFacts<'_>,
    ) -> Result<String, error::FioError> {
        substitute(value, kb_base, machine).map_err(|why| self.error_in(option, why))
    }
}
