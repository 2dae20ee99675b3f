//! Parses and validates `tally.toml`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::{Config, DisabledParts, RouteRule, TagPattern};
use crate::level::RollUpLevel;

/// Number of possible hashes of a tag (16 bits).
const HASHES: f64 = 65_536.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    stores: BTreeMap<String, String>,
    #[serde(default)]
    route: Vec<Route>,
    #[serde(default)]
    off: OffTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    tag: Option<String>,
    prefix: Option<String>,
    hash: Option<String>,
    percent: Option<f64>,
    store: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct OffTable {
    sources: Vec<String>,
    levels: Vec<String>,
    tags: Vec<String>,
}

/// Reason why a file is refused, with its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConfigError {
    line: Option<usize>,
    reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, ", line {line}: {}", self.reason),
            None => write!(f, ": {}", self.reason),
        }
    }
}

/// Text of a file, to find the line of an error.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    /// An error at the nth line that begins with `begin`.
    fn wrong(&self, begin: &str, nth: usize, reason: String) -> ConfigError {
        let mut lines = self.0.lines().enumerate();
        let line = lines
            .by_ref()
            .filter(|(_, line)| {
                let line = line.trim_start();
                line.starts_with(begin) || line.trim_start_matches(['"', '[']).starts_with(begin)
            })
            .nth(nth);
        ConfigError {
            line: line.map(|(line, _)| line + 1),
            reason,
        }
    }

    /// An error of the TOML parser. For an unknown key, the line is that of the key, not the end of its table.
    fn unread(&self, reason: &str) -> ConfigError {
        let key = reason.strip_prefix("unknown field `");
        match key.and_then(|rest| rest.split_once('`')) {
            Some((key, _)) => {
                let reason = reason.split(" at line ").next().unwrap_or(reason);
                self.wrong(key, 0, reason.to_owned())
            }
            None => ConfigError {
                line: None,
                reason: reason.to_owned(),
            },
        }
    }
}

/// Reads and checks a file.
pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    let lines = Lines(text);
    let document: Document =
        basic_toml::from_str(text).map_err(|error| lines.unread(&error.to_string()))?;
    let mut stores = Vec::new();
    for (name, address) in &document.stores {
        let wrong = |reason| lines.wrong(name, 0, reason);
        let address = address.parse().map_err(wrong)?;
        if stores.iter().any(|(_, other)| *other == address) {
            return Err(wrong(format!("{address} is named twice")));
        }
        stores.push((name.clone(), address));
    }
    let rules = rules(&document, &lines)?;
    let wrong = |reason| lines.wrong("[off]", 0, reason);
    let levels: Result<Vec<RollUpLevel>, ConfigError> = document
        .off
        .levels
        .iter()
        .map(|name| {
            RollUpLevel::named(name)
                .filter(|level| *level != RollUpLevel::Minute)
                .ok_or_else(|| {
                    wrong(format!(
                        "'{name}' is no level that can be off; there are hour, day and month"
                    ))
                })
        })
        .collect();
    let levels = levels?;
    for level in &levels {
        if let Some(coarser) = level.coarser().filter(|coarser| !levels.contains(coarser)) {
            let (level, coarser) = (level.name(), coarser.name());
            return Err(wrong(format!(
                "the {coarser} is made of the {level}; without levels = [\"{level}\"], or with \"{coarser}\" in it too"
            )));
        }
    }
    Ok(Config {
        stores,
        rules,
        off: DisabledParts {
            sources: document.off.sources,
            levels,
            tags: document.off.tags,
        },
    })
}

fn rules(document: &Document, lines: &Lines<'_>) -> Result<Vec<RouteRule>, ConfigError> {
    if document.route.is_empty() {
        let mut names = document.stores.keys();
        return match (names.next(), names.next()) {
            (Some(store), None) => Ok(vec![RouteRule {
                when: TagPattern::Rest,
                store: store.clone(),
            }]),
            (None, _) => Err(lines.wrong("[stores]", 0, "no store is named".to_owned())),
            _ => Err(lines.wrong(
                "[stores]",
                0,
                "there are several stores, and no [[route]] to them".to_owned(),
            )),
        };
    }
    // Share of the hashes that earlier routes take.
    let mut taken = 0.0;
    let mut rules = Vec::new();
    for (nth, route) in document.route.iter().enumerate() {
        let wrong = |reason: String| lines.wrong("[[route]]", nth, reason);
        if !document.stores.contains_key(&route.store) {
            return Err(wrong(format!(
                "there is no store '{}' in [stores]",
                route.store
            )));
        }
        let when = route.when(&mut taken).map_err(wrong)?;
        let is_last = nth + 1 == document.route.len();
        match (&when, is_last) {
            (TagPattern::Rest, false) => {
                return Err(wrong(
                    "it matches every tag, so that no route below it is used".to_owned(),
                ));
            }
            (TagPattern::Rest, true) | (_, false) => {}
            (_, true) => {
                return Err(wrong(
                    "the last route takes what is left, and has neither tag, prefix, hash nor percent".to_owned(),
                ));
            }
        }
        rules.push(RouteRule {
            when,
            store: route.store.clone(),
        });
    }
    Ok(rules)
}

impl Route {
    fn when(&self, taken: &mut f64) -> Result<TagPattern, String> {
        match (&self.tag, &self.prefix, &self.hash, self.percent) {
            (Some(tag), None, None, None) => Ok(TagPattern::Tag(tag.clone())),
            (None, Some(prefix), None, None) => Ok(TagPattern::Prefix(prefix.clone())),
            (None, None, Some(range), None) => TagPattern::hash(range),
            (None, None, None, Some(percent)) => {
                let first = *taken;
                *taken += percent;
                if !(percent > 0.0 && *taken <= 100.0) {
                    return Err(format!(
                        "percent = {percent}: each share must be above 0, and their sum 100 at most"
                    ));
                }
                let at = |percent: f64| (percent / 100.0 * HASHES).round() as u32;
                Ok(TagPattern::Hash(at(first), at(*taken)))
            }
            (None, None, None, None) => Ok(TagPattern::Rest),
            _ => Err("a route has one of tag, prefix, hash and percent".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORES: &str = "[stores]\na = \"sqlite:a.db\"\nb = \"sqlite:b.db\"\n";

    #[test]
    fn rules_are_read_in_their_order() {
        let text = format!(
            "{STORES}[[route]]\ntag = \"login\"\nstore = \"b\"\n[[route]]\npercent = 25\nstore = \"b\"\n\
             [[route]]\npercent = 25.0\nstore = \"a\"\n[[route]]\nhash = \"f000-ffff\"\nstore = \"b\"\n\
             [[route]]\nstore = \"a\"\n[off]\nsources = [\"http\"]\nlevels = [\"day\", \"month\"]\ntags = [\"debug.*\"]\n"
        );
        let config = parse(&text).unwrap();
        let when: Vec<TagPattern> = config.rules.into_iter().map(|rule| rule.when).collect();
        let expected = [
            TagPattern::Tag("login".to_owned()),
            TagPattern::Hash(0, 16_384),
            TagPattern::Hash(16_384, 32_768),
            TagPattern::Hash(0xf000, 0x1_0000),
            TagPattern::Rest,
        ];
        assert_eq!(when, expected);
        assert!(config.off.has_source("http://127.0.0.1:1/events") && !config.off.has_source("-"));
        assert!(config.off.has_tag(b"debug.x") && !config.off.has_tag(b"debug"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, line, words) in [
            ("[stores]\na = \"oracle:x\"\n", 2, "no store"),
            ("[stores]\na = \"sqlite:x\"\nb = \"sqlite:x\"\n", 3, "twice"),
            (STORES, 1, "no [[route]]"),
            ("[stores]\n", 1, "no store"),
            (
                &format!("{STORES}[[route]]\nstore = \"c\"\n"),
                4,
                "no store 'c'",
            ),
            (
                &format!("{STORES}[[route]]\nstore = \"a\"\n[[route]]\nstore = \"b\"\n"),
                4,
                "no route below",
            ),
            (
                &format!("{STORES}[[route]]\ntag = \"x\"\nstore = \"a\"\n"),
                4,
                "what is left",
            ),
            (
                &format!("{STORES}[[route]]\npercent = 120\nstore = \"a\"\n"),
                4,
                "100 at most",
            ),
            (
                &format!("{STORES}[[route]]\nhash = \"9-1\"\nstore = \"a\"\n"),
                4,
                "hash",
            ),
            (
                &format!("{STORES}[[route]]\nstore = \"a\"\n[off]\nlevels = [\"hour\"]\n"),
                6,
                "day",
            ),
            (
                &format!(
                    "{STORES}[[route]]\nprefx = \"x\"\nstore = \"a\"\n[[route]]\nstore = \"b\"\n"
                ),
                5,
                "unknown field `prefx`",
            ),
            (
                "[stores]\na = \"sqlite:x\"\n[of]\n",
                3,
                "unknown field `of`",
            ),
        ] {
            let wrong = parse(text).unwrap_err();
            assert_eq!(wrong.line, Some(line), "{wrong:?}");
            assert!(wrong.reason.contains(words), "{wrong:?}");
        }
        // Errors of the TOML parser name their line too.
        for text in ["[stores]\na = \n", "[stores]\nx = 1\n"] {
            let wrong = parse(text).unwrap_err();
            assert!(wrong.to_string().contains("line"), "{wrong}");
        }
    }
}
