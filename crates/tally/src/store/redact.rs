//! Removes passwords from addresses.

/// An address that is safe to print: the text between `user:` and `@` is removed.
pub(super) fn without_password(text: &str) -> String {
    let begin = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(begin);
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}{user}@{host}")
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_passwords_are_left_out() {
        for (text, shown) in [
            ("mysql://ann:s3cret@db/sums", "mysql://ann@db/sums"),
            ("oracle://ann:s@cret@db", "oracle://ann@db"),
            ("ann:s3cret@db", "ann@db"),
            ("sqlite:file", "sqlite:file"),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }
}
