//! Addresses of topics.

use std::fmt;

const PORT: u16 = 9092;

/// A topic of some brokers: `host:port,host:port/topic[?partitions=0,2-5]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTopic {
    pub(super) brokers: Vec<String>,
    pub(super) topic: String,
    /// Ranges of partitions, both ends included; empty for all partitions.
    partitions: Vec<(i32, i32)>,
}

impl KafkaTopic {
    /// Parses `host:port,host:port/topic`, the part of an address after `kafka://`.
    ///
    /// # Errors
    /// If the text names no topic, or has an unknown option.
    pub fn parse(text: &str) -> Result<KafkaTopic, String> {
        let wrong = || {
            format!("'kafka://{text}' is no topic; write it as kafka://host:9092,host:9092/topic")
        };
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (brokers, topic) = place.split_once('/').ok_or_else(wrong)?;
        let is_letter = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_' | '-');
        if topic.is_empty() || topic.len() > 249 || !topic.chars().all(is_letter) {
            return Err(wrong());
        }
        let with_port = |broker: &str| match broker.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Some(broker.to_owned())
            }
            None if !broker.is_empty() => Some(format!("{broker}:{PORT}")),
            _ => None,
        };
        let brokers: Option<Vec<String>> = brokers.split(',').map(with_port).collect();
        let range = |text: &str| -> Option<(i32, i32)> {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (0 <= first && first <= last).then_some((first, last))
        };
        let partitions: Option<Vec<_>> = match options.strip_prefix("partitions=") {
            Some(list) => list.split(',').map(range).collect(),
            None if options.is_empty() => Some(Vec::new()),
            None => None,
        };
        Ok(KafkaTopic {
            brokers: brokers.ok_or_else(wrong)?,
            topic: topic.to_owned(),
            partitions: partitions.ok_or_else(|| {
                format!("'{options}' is no option of a topic; there is partitions=0,2-5")
            })?,
        })
    }

    pub(super) fn has(&self, partition: i32) -> bool {
        let mut ranges = self.partitions.iter();
        self.partitions.is_empty()
            || ranges.any(|(first, last)| (*first..=*last).contains(&partition))
    }
}

impl fmt::Display for KafkaTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kafka://{}/{}", self.brokers.join(","), self.topic)?;
        let ranges: Vec<String> = self
            .partitions
            .iter()
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            })
            .collect();
        match ranges.is_empty() {
            true => Ok(()),
            false => write!(f, "?partitions={}", ranges.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_and_written() {
        for text in [
            "kafka://a:9092/events",
            "kafka://a:9092,b:9093/my.topic_1?partitions=0,2-5",
        ] {
            let place = KafkaTopic::parse(text.trim_start_matches("kafka://")).unwrap();
            assert_eq!(place.to_string(), text);
        }
        let place = KafkaTopic::parse("a/t?partitions=1-2").unwrap();
        assert_eq!(place.brokers, ["a:9092"]);
        assert!(place.has(2) && !place.has(0));
        for wrong in [
            "a",
            "a/",
            "/t",
            "a:x/t",
            "a/t;",
            "a/t?partitions=2-1",
            "a/t?group=x",
        ] {
            assert!(KafkaTopic::parse(wrong).is_err(), "{wrong}");
        }
    }
}
