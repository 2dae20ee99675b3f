//! Markers in the forms of other tools: Grafana's annotations and Ganglia's events.json.

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::documents::Marker;

/// Maximum length of a marker's text in characters, the same as of `disksmith mark`.
const MAX_TEXT_CHARS: usize = 200;
/// Maximum length of a host name in characters.
const MAX_HOST_CHARS: usize = 253;
/// Maximum number of markers in a request.
const MAX_MARKERS: usize = 1000;

/// A marker that a request sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewMarker {
    /// Time of the marker; `None` is now.
    pub(crate) at: Option<Timestamp>,
    /// The host; `None` is this one.
    pub(crate) host: Option<String>,
    /// Text of the marker.
    pub(crate) text: String,
}

/// disksmith's own form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnMarker {
    text: String,
    time: Option<Timestamp>,
    hostname: Option<String>,
}

/// Grafana's annotation (grafana.com/docs/grafana/latest/developers/http_api/annotations): times in milliseconds.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GrafanaAnnotation {
    #[serde(default)]
    id: i64,
    time: i64,
    #[serde(default)]
    time_end: i64,
    text: String,
    #[serde(default)]
    tags: Vec<String>,
}

/// Ganglia's event (ganglia-web, api/events.php): times in seconds.
#[derive(Serialize, Deserialize)]
struct GangliaEvent {
    #[serde(default)]
    event_id: Value,
    start_time: i64,
    summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_time: Option<i64>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    grid: String,
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    host_regex: String,
}

/// Reads markers: one or a list, each in any of the three forms.
///
/// # Errors
/// A sentence, when the body has none of these forms.
pub(crate) fn read(body: &[u8]) -> anyhow::Result<Vec<NewMarker>> {
    let value: Value = serde_json::from_slice(body).context("the body is no JSON")?;
    let all = match value {
        Value::Array(all) => all,
        one => vec![one],
    };
    if all.is_empty() || all.len() > MAX_MARKERS {
        bail!(
            "the body has {} markers; 1 to {MAX_MARKERS} are taken at once",
            all.len()
        );
    }
    all.into_iter().map(|one| checked(one_of(one)?)).collect()
}

fn one_of(value: Value) -> anyhow::Result<NewMarker> {
    let Some(fields) = value.as_object() else {
        bail!("a marker is an object such as {{\"text\": \"deploy 1.4.2\"}}");
    };
    if fields.contains_key("start_time") {
        let event: GangliaEvent =
            serde_json::from_value(value).context("this is no event of Ganglia")?;
        return Ok(NewMarker {
            at: Some(Timestamp::from_second(event.start_time).context("start_time")?),
            host: literal(&event.host_regex),
            text: event.summary,
        });
    }
    let is_grafana = fields.get("time").is_some_and(Value::is_number);
    if is_grafana {
        let annotation: GrafanaAnnotation =
            serde_json::from_value(value).context("this is no annotation of Grafana")?;
        return Ok(NewMarker {
            at: Some(Timestamp::from_millisecond(annotation.time).context("time")?),
            host: None,
            text: annotation.text,
        });
    }
    let own: OwnMarker = serde_json::from_value(value).context(
        "a marker is {\"text\": \"deploy 1.4.2\", \"time\": \"2026-11-24T14:05:00Z\", \"hostname\": \"db-1\"}, of which time and hostname may be left out",
    )?;
    Ok(NewMarker {
        at: own.time,
        host: own.hostname,
        text: own.text,
    })
}

/// The host name that a regular expression matches literally; `None` if it has other operators.
fn literal(regex: &str) -> Option<String> {
    let name = regex
        .trim_start_matches('^')
        .trim_end_matches('$')
        .replace("\\.", ".");
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

fn checked(wanted: NewMarker) -> anyhow::Result<NewMarker> {
    let text = wanted.text.trim().to_owned();
    let is_broken = |text: &str| text.chars().any(char::is_control);
    if text.is_empty() || is_broken(&text) || text.chars().count() > MAX_TEXT_CHARS {
        bail!(
            "a marker is a name of 1 to {MAX_TEXT_CHARS} characters on one line, such as \"deploy 1.4.2\""
        );
    }
    if let Some(host) = &wanted.host
        && (host.is_empty() || is_broken(host) || host.chars().count() > MAX_HOST_CHARS)
    {
        bail!("a host's name has 1 to {MAX_HOST_CHARS} characters");
    }
    Ok(NewMarker { text, ..wanted })
}

/// Markers as Grafana's annotations.
pub(crate) fn grafana(markers: &[Marker]) -> String {
    let annotation = |marker: &Marker| GrafanaAnnotation {
        id: marker.id,
        time: marker.time.as_millisecond(),
        time_end: marker.time.as_millisecond(),
        text: marker.text.clone(),
        tags: vec![marker.hostname.clone()],
    };
    let all: Vec<GrafanaAnnotation> = markers.iter().map(annotation).collect();
    serde_json::to_string(&all).unwrap_or_default()
}

/// Markers as Ganglia's events.json.
pub(crate) fn ganglia(markers: &[Marker]) -> String {
    let event = |marker: &Marker| GangliaEvent {
        event_id: Value::from(marker.id.to_string()),
        start_time: marker.time.as_second(),
        summary: marker.text.clone(),
        end_time: None,
        description: String::new(),
        grid: "*".to_owned(),
        cluster: "*".to_owned(),
        host_regex: marker.hostname.replace('.', "\\."),
    };
    let all: Vec<GangliaEvent> = markers.iter().map(event).collect();
    serde_json::to_string(&all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_forms_are_read() {
        let own = br#"{"text":" deploy 1 ","time":"2026-11-24T14:05:00Z","hostname":"db-1"}"#;
        let grafana = br#"{"dashboardUID":"x","panelId":1,"time":1795529100000,"timeEnd":0,"tags":["a"],"text":"deploy 2"}"#;
        let ganglia = br#"[{"event_id":"5","start_time":1795529100,"summary":"deploy 3","host_regex":"^db\\.x$","grid":"*","cluster":"*"}]"#;
        let at = "2026-11-24T14:05:00Z".parse().ok();
        let of = |host: Option<&str>, text: &str| NewMarker {
            at,
            host: host.map(str::to_owned),
            text: text.to_owned(),
        };
        assert_eq!(read(own).unwrap(), [of(Some("db-1"), "deploy 1")]);
        assert_eq!(read(grafana).unwrap(), [of(None, "deploy 2")]);
        assert_eq!(read(ganglia).unwrap(), [of(Some("db.x"), "deploy 3")]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let markers = [Marker {
            id: 3,
            time: "2026-11-24T14:05:00Z".parse().unwrap(),
            hostname: "db.x".to_owned(),
            text: "deploy <b>".to_owned(),
        }];
        for text in [grafana(&markers), ganglia(&markers)] {
            let found = read(text.as_bytes()).unwrap();
            assert_eq!(
                (found[0].text.as_str(), found[0].at),
                ("deploy <b>", Some(markers[0].time))
            );
        }
        assert_eq!(
            read(ganglia(&markers).as_bytes()).unwrap()[0]
                .host
                .as_deref(),
            Some("db.x")
        );
    }

    #[test]
    fn lines_that_are_no_marker_are_refused() {
        for wrong in [
            "",
            "[]",
            "3",
            "{}",
            r#"{"text":""}"#,
            r#"{"text":"a\nb"}"#,
            r#"{"text":"a","typo":1}"#,
            r#"{"text":"a","hostname":""}"#,
            r#"{"start_time":99999999999999999,"summary":"a"}"#,
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(MAX_TEXT_CHARS + 1));
        assert!(read(long.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
