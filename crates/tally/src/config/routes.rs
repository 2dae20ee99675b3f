//! Finds the store of an event by the rules that were in force in its hour.

use serde::{Deserialize, Serialize};

use super::{Config, DisabledParts};
use crate::identity::fingerprint;
use crate::level::Seconds;

/// Pattern of tags. It is compared with the tag without its labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TagPattern {
    /// The tag of this name.
    Tag(String),
    /// Tags that begin with this text.
    Prefix(String),
    /// Tags whose 16-bit hash is in a range; the end is excluded.
    Hash(u32, u32),
    /// All tags.
    Rest,
}

impl TagPattern {
    /// Parses a range of hashes: `0000-7fff`, both ends included.
    ///
    /// # Errors
    /// If the text is not a range of hashes.
    pub fn hash(range: &str) -> Result<TagPattern, String> {
        let number = |text: &str| u32::from(u16::from_str_radix(text, 16).unwrap_or(0));
        let is_hash = |text: &str| u16::from_str_radix(text, 16).is_ok();
        match range.split_once('-') {
            Some((first, last))
                if is_hash(first) && is_hash(last) && number(first) <= number(last) =>
            {
                Ok(TagPattern::Hash(number(first), number(last) + 1))
            }
            _ => Err(format!(
                "'{range}' is no range of a hash; write it as 0000-7fff"
            )),
        }
    }

    /// True if the pattern matches this tag.
    pub fn fits(&self, tag: &[u8]) -> bool {
        match self {
            TagPattern::Tag(name) => tag == name.as_bytes(),
            TagPattern::Prefix(begin) => tag.starts_with(begin.as_bytes()),
            TagPattern::Hash(first, end) => (*first..*end).contains(&hash(tag)),
            TagPattern::Rest => true,
        }
    }
}

/// Hash of a tag: 16 bits of FNV-1a, the same in every version.
fn hash(tag: &[u8]) -> u32 {
    let bytes = fingerprint(tag);
    let pairs = bytes.as_chunks::<2>().0.iter();
    let folded = pairs.fold(0, |sum, pair| sum ^ u16::from_be_bytes(*pair));
    u32::from(folded)
}

/// A rule: tags that match the pattern go to the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteRule {
    /// Pattern of the tags.
    pub when: TagPattern,
    /// Name of the store.
    pub store: String,
}

/// Rules that apply to events from a time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RouteVersion {
    pub(super) from: Seconds,
    pub(super) rules: Vec<RouteRule>,
}

/// The routes of all events.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Versions, the newest first: start in event time, and the rules as patterns with indexes of stores.
    versions: Vec<(Seconds, Vec<(TagPattern, usize)>)>,
    off: DisabledParts,
}

impl Routes {
    pub(super) fn new(config: &Config, versions: Vec<RouteVersion>) -> Routes {
        let place = |name: &str| config.stores.iter().position(|(store, _)| store == name);
        let versions = versions.into_iter().rev().map(|version| {
            // Rules that name a store which no longer exists are dropped; other versions route their tags.
            let rules = version.rules.into_iter();
            let rules = rules.filter_map(|rule| Some((rule.when, place(&rule.store)?)));
            (version.from, rules.collect())
        });
        Routes {
            versions: versions.collect(),
            off: config.off.clone(),
        }
    }

    /// Index of the store of an event; `None` if its tag is off.
    pub fn store(&self, name: &[u8], at: Seconds) -> Option<usize> {
        let end = memchr::memchr(b';', name).unwrap_or(name.len());
        let tag = &name[..end];
        if self.off.has_tag(tag) {
            return None;
        }
        let of = |rules: &[(TagPattern, usize)]| {
            let rule = rules.iter().find(|(when, _)| when.fits(tag));
            rule.map(|(_, store)| *store)
        };
        let held = self.versions.iter().find(|(from, _)| *from <= at);
        held.and_then(|(_, rules)| of(rules))
            .or_else(|| self.versions.iter().find_map(|(_, rules)| of(rules)))
    }

    /// True if no events are taken from this source.
    pub fn is_off(&self, source: &str) -> bool {
        self.off.has_source(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreAddress;

    fn config(rules: &[(TagPattern, &str)]) -> Config {
        Config {
            stores: ["a", "b"]
                .map(|name| (name.to_owned(), StoreAddress::Sqlite(name.into())))
                .to_vec(),
            rules: rules
                .iter()
                .map(|(when, store)| RouteRule {
                    when: when.clone(),
                    store: store.to_string(),
                })
                .collect(),
            off: DisabledParts::default(),
        }
    }

    #[test]
    fn the_rules_of_an_events_hour_decide() {
        let old = config(&[(TagPattern::Rest, "a")]);
        let new = config(&[
            (TagPattern::Prefix("api.".to_owned()), "b"),
            (TagPattern::Rest, "a"),
        ]);
        let version = |from, config: &Config| RouteVersion {
            from,
            rules: config.rules.clone(),
        };
        let routes = Routes::new(&new, vec![version(0, &old), version(7200, &new)]);
        assert_eq!(routes.store(b"api.get;host=x", 7199), Some(0));
        assert_eq!(routes.store(b"api.get;host=x", 7200), Some(1));
        assert_eq!(routes.store(b"login", 9000), Some(0));
        // A store that is gone.
        let gone = version(0, &config(&[(TagPattern::Rest, "c")]));
        let routes = Routes::new(&new, vec![gone, version(7200, &new)]);
        assert_eq!(routes.store(b"api.get", 0), Some(1));
    }

    #[test]
    fn hashes_spread_tags_evenly() {
        let halves = TagPattern::Hash(0, 0x8000);
        for form in ["t{}", "shop.page.{}", "{}.requests.count"] {
            let tags = (0..10_000).map(|tag: u32| form.replace("{}", &tag.to_string()));
            let share = tags.filter(|tag| halves.fits(tag.as_bytes())).count();
            assert!((4_700..5_300).contains(&share), "{form}: {share}");
        }
    }
}
