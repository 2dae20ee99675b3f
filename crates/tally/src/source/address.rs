//! Addresses of sources.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[cfg(feature = "kafka")]
use super::kafka;
use super::{Source, file, gearman, http, statsd, stdin};

/// Schemes of sources that are servers.
const SCHEMES: &[&str] = &[
    "gearman://",
    "http://",
    "statsd://",
    #[cfg(feature = "kafka")]
    "kafka://",
];

/// Where events are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceAddress {
    /// Standard input.
    Stdin,
    /// A file, by its path.
    File(PathBuf),
    /// A function of gearmand.
    Gearman(gearman::GearmanFunction),
    /// A server of HTTP.
    Http(http::HttpAddress),
    /// A port of StatsD: `host:port`.
    Statsd(String),
    /// A topic of Kafka.
    #[cfg(feature = "kafka")]
    Kafka(kafka::KafkaTopic),
}

/// Options of sources.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// True if files are read as they grow.
    pub follow: bool,
    /// Token that clients of HTTP must send.
    pub token: Option<String>,
}

impl FromStr for SourceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<SourceAddress, String> {
        match text.split_once("://") {
            _ if text == "-" => Ok(SourceAddress::Stdin),
            None if !text.is_empty() => Ok(SourceAddress::File(text.into())),
            Some(("gearman", place)) => {
                gearman::GearmanFunction::parse(place).map(SourceAddress::Gearman)
            }
            Some(("http", place)) => http::HttpAddress::parse(place).map(SourceAddress::Http),
            #[cfg(feature = "kafka")]
            Some(("kafka", place)) => kafka::KafkaTopic::parse(place).map(SourceAddress::Kafka),
            #[cfg(not(feature = "kafka"))]
            Some(("kafka", _)) => Err(crate::features::missing_feature_error("kafka")),
            Some(("statsd", place)) if place.contains(':') => {
                Ok(SourceAddress::Statsd(place.to_owned()))
            }
            Some(("file", path)) if !path.is_empty() => Ok(SourceAddress::File(path.into())),
            Some(("statsd", _)) => Err(format!(
                "'{text}' names no port; write it as statsd://127.0.0.1:8125"
            )),
            _ => Err(format!(
                "'{text}' is no source; there are files, - for standard input, and {}",
                SCHEMES.join(", ")
            )),
        }
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceAddress::Stdin => f.write_str("-"),
            SourceAddress::File(path) => write!(f, "{}", path.display()),
            SourceAddress::Http(place) => place.fmt(f),
            SourceAddress::Statsd(place) => write!(f, "statsd://{place}"),
            #[cfg(feature = "kafka")]
            SourceAddress::Kafka(place) => place.fmt(f),
            SourceAddress::Gearman(place) => {
                write!(f, "gearman://{}/{}", place.server, place.function)
            }
        }
    }
}

impl SourceAddress {
    /// Reservation that its user should know.
    pub fn reservation(&self) -> Option<&'static str> {
        match self {
            SourceAddress::Statsd(_) => Some(
                "StatsD has no acknowledgement, so that its events are counted at most once; datagrams that the kernel drops are reported",
            ),
            _ => None,
        }
    }

    /// Checks what can be checked without the network: a file, and that a token is set where clients must send one.
    ///
    /// # Errors
    /// As [`SourceAddress::open`].
    pub fn check(&self, options: &Options) -> anyhow::Result<()> {
        match self {
            SourceAddress::File(path) => file::regular(path).map(drop),
            SourceAddress::Http(place) => place.check(options.token.as_deref()),
            _ => Ok(()),
        }
    }

    /// Opens the source.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn open(&self, options: &Options) -> anyhow::Result<Box<dyn Source>> {
        Ok(match self {
            SourceAddress::Stdin => Box::new(stdin::Stdin::new()),
            SourceAddress::File(path) => Box::new(file::FileSource::open(path, options.follow)?),
            SourceAddress::Http(place) => {
                Box::new(http::Http::open(place, options.token.as_deref())?)
            }
            SourceAddress::Statsd(place) => Box::new(statsd::Statsd::open(place)?),
            #[cfg(feature = "kafka")]
            SourceAddress::Kafka(place) => Box::new(kafka::Kafka::new(place.clone())),
            SourceAddress::Gearman(place) => Box::new(gearman::Gearman::new(place.clone())),
        })
    }
}
