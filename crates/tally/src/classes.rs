//! Classes of response times with exact counts: ≤ 200, ≤ 500, ≤ 1,000, ≤ 2,000 and > 2,000 ms, or others that are set
//! when a store is created.

use std::fmt;
use std::str::FromStr;

/// Maximum number of classes.
pub const MAX_CLASSES: usize = 8;

/// Upper bounds of all classes but the last, in milliseconds, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassBounds(Vec<f64>);

impl Default for ClassBounds {
    fn default() -> ClassBounds {
        ClassBounds(vec![200.0, 500.0, 1000.0, 2000.0])
    }
}

impl ClassBounds {
    /// Upper bounds of all classes but the last, in milliseconds.
    pub fn millis(&self) -> &[f64] {
        &self.0
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.0.len() + 1
    }

    /// Index of the class of a response time in milliseconds.
    pub fn class(&self, millis: f64) -> usize {
        self.0.iter().take_while(|bound| millis > **bound).count()
    }
}

impl FromStr for ClassBounds {
    type Err = String;

    fn from_str(text: &str) -> Result<ClassBounds, String> {
        let wrong = || {
            format!(
                "'{text}' is not a list of classes; write up to {} bounds in ms, ascending: 200,500,1000,2000",
                MAX_CLASSES - 1
            )
        };
        let bounds: Result<Vec<f64>, _> =
            text.split(',').map(|bound| bound.trim().parse()).collect();
        let bounds = bounds.map_err(|_| wrong())?;
        let ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        let sound = bounds.iter().all(|bound| bound.is_finite() && *bound > 0.0);
        match ascending && sound && bounds.len() < MAX_CLASSES {
            true => Ok(ClassBounds(bounds)),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for ClassBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds: Vec<String> = self.0.iter().map(f64::to_string).collect();
        f.write_str(&bounds.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_class_below_it() {
        let bounds = ClassBounds::default();
        for (millis, class) in [(0.0, 0), (200.0, 0), (200.5, 1), (2000.0, 3), (2001.0, 4)] {
            assert_eq!(bounds.class(millis), class);
        }
        assert_eq!(bounds.to_string().parse(), Ok(bounds));
        for wrong in ["", "5,1", "1,1", "NaN", "-1", "1,2,3,4,5,6,7,8"] {
            assert!(wrong.parse::<ClassBounds>().is_err(), "{wrong}");
        }
    }
}
