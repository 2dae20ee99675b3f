//! Clients that a build may leave out.

/// Error of an address whose client was left out.
pub(crate) fn missing_feature_error(feature: &str) -> String {
    format!("this program was built without {feature}; build it with --features {feature}")
}
