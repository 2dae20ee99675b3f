//! Past results as text: the answer of a race, or a list of hosts.

use serde::Deserialize;

use crate::hosts::{Host, listed};
use crate::plan::past::host::{KEEP_DECISION, PastHost, could_be_good};
use sweep::{Figure, Requirement};

/// The relevant keys of the answer of a race.
#[derive(Debug, Deserialize)]
struct PastAnswer {
    figure: Option<String>,
    hosts: Vec<PastRacedHost>,
}

#[derive(Debug, Deserialize)]
struct PastRacedHost {
    zone: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    figure: Option<Value>,
    decision: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Value {
    value: f64,
}

/// The hosts of an answer or a list.
///
/// # Errors
/// Sentences, if it is neither.
pub(crate) fn of_text(
    name: &str,
    bytes: &[u8],
    good: Option<&Requirement>,
) -> Result<Vec<PastHost>, Vec<String>> {
    let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if begins == Some(&b'{') {
        of_answer(name, bytes, good).map_err(|why| vec![why])
    } else {
        of_list(name, bytes)
    }
}

/// The hosts of a race's answer.
fn of_answer(
    name: &str,
    bytes: &[u8],
    good: Option<&Requirement>,
) -> Result<Vec<PastHost>, String> {
    let answer: PastAnswer = serde_json::from_slice(bytes)
        .map_err(|why| format!("{name} is not the answer of 'fleet race --json': {why}."))?;
    if let (Some(ranked), Some(requirement)) = (&answer.figure, good) {
        let wanted = requirement.figure.to_string();
        if *ranked != wanted {
            return Err(format!(
                "{name} has the figures of {ranked}, and --good asks for {wanted}; write --good with \
                 {ranked}, or leave it out."
            ));
        }
    }
    // Without a requirement a larger figure is better; for a latency only the decision counts.
    let ranked = answer.figure.as_deref().and_then(|name| name.parse().ok());
    let is_latency = ranked.is_some_and(|figure: Figure| figure.metric.is_latency());
    let counts = good.is_some() || !is_latency;
    let host = |raced: PastRacedHost| PastHost {
        zone: raced.zone,
        kind: raced.kind,
        // However high its figure is, the race found it bad.
        figure: (counts && raced.decision.as_deref().is_none_or(could_be_good))
            .then(|| raced.figure.map(|figure| figure.value))
            .flatten(),
        kept: raced.decision.map(|word| word == KEEP_DECISION),
    };
    Ok(answer.hosts.into_iter().map(host).collect())
}

/// The hosts of a list.
fn of_list(name: &str, bytes: &[u8]) -> Result<Vec<PastHost>, Vec<String>> {
    let hosts = listed(name, bytes)?;
    let mut past = Vec::new();
    let mut problems = Vec::new();
    for host in hosts {
        match of_attributes(&host) {
            Ok(one) => past.push(one),
            Err(why) => problems.push(format!("{name}: {why}")),
        }
    }
    if problems.is_empty() {
        Ok(past)
    } else {
        Err(problems)
    }
}

fn of_attributes(host: &Host) -> Result<PastHost, String> {
    let written = host.tags.get("figure");
    let figure: Option<f64> = written
        .and_then(|text| text.parse().ok())
        .filter(|figure: &f64| figure.is_finite());
    if let (Some(text), None) = (written, figure) {
        return Err(format!(
            "the figure of {}, '{text}', is not a number; write it as 11870.",
            host.name
        ));
    }
    let decision = host.tags.get("decision");
    if written.is_none() && decision.is_none() {
        return Err(format!(
            "{} has neither figure=… nor decision=…; write 'decision=failed' for a host that was \
             never measured.",
            host.name
        ));
    }
    Ok(PastHost {
        zone: host.zone.clone(),
        kind: host.kind.clone(),
        figure: figure.filter(|_| decision.is_none_or(|word| could_be_good(word))),
        kept: decision.map(|word| word == KEEP_DECISION),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = of_text("past", &bytes, None);
        }
    }
}
