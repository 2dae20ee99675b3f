//! Addresses of pages: the query of the current page with some parameters replaced.

use form_urlencoded::Serializer;

/// Names and values of the request's query.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(raw: &str) -> Query {
        let pairs = form_urlencoded::parse(raw.as_bytes());
        Query(
            pairs
                .filter(|(_, value)| !value.is_empty())
                .map(|(key, value)| (key.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    /// The first value of a key; empty if the key does not occur.
    pub(super) fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(other, _)| other == key);
        found.map_or("", |(_, value)| value)
    }

    /// The address of `path` with this query.
    pub(super) fn at(&self, path: &str) -> String {
        address(
            path,
            self.0
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str())),
        )
    }

    /// The address of `path` with this query, with its range of time replaced.
    pub(super) fn in_range(&self, path: &str, range: &[(&str, &str)]) -> String {
        let kept = self
            .0
            .iter()
            .filter(|(key, _)| !["from", "to", "last"].contains(&key.as_str()));
        let kept = kept.map(|(key, value)| (key.as_str(), value.as_str()));
        address(path, kept.chain(range.iter().copied()))
    }

    /// The address of `path` with this query, between two times in seconds since 1970.
    pub(super) fn between(&self, path: &str, from: i64, to: i64) -> String {
        self.in_range(
            path,
            &[("from", &from.to_string()), ("to", &to.to_string())],
        )
    }
}

/// An address with a query.
pub(super) fn address<'a>(path: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
    match query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_replaces_the_one_before_and_nothing_else() {
        let query = Query::of("tag=a%3Bhost%3Dx&last=1h&disk=h%2Fvda&disk=h%2Fvdb&host=");
        assert_eq!(query.get("tag"), "a;host=x");
        assert_eq!(
            query.between("/response-times", 5, 9),
            "/response-times?tag=a%3Bhost%3Dx&disk=h%2Fvda&disk=h%2Fvdb&from=5&to=9"
        );
        assert_eq!(Query::of("").at("/x"), "/x");
    }
}
