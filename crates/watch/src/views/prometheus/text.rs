//! Prometheus' text format: the `HELP` and `TYPE` lines of metrics, and their values.

use std::fmt::Write as _;

/// Text that metrics are appended to.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl Text {
    /// Appends the `HELP` and `TYPE` lines of a metric.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Appends a value of a metric.
    pub(super) fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let pairs: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
            .collect();
        let labels = match pairs.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", pairs.join(",")),
        };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

pub(super) fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
