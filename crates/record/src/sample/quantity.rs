//! Units of rates and shares.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// Operations per second, such as requests, merges or packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PerSecond(pub f64);

/// Bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct BytesPerSecond(pub f64);

/// A share of a whole, 0 to 1. iostat's busy time can exceed 1 by the error of its clock; it is not clamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Fraction(pub f64);

impl Fraction {
    /// The share in percent.
    pub fn percent(self) -> f64 {
        100.0 * self.0
    }
}

macro_rules! arithmetic {
    ($unit:ty) => {
        impl Add for $unit {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl Sub for $unit {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
    };
}
arithmetic!(PerSecond);
arithmetic!(BytesPerSecond);
