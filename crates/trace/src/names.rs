//! Names of processes and files, each kept once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::io::NameIndex;

/// Distinct names that are kept. A trace with more of them, such as one of a server that names its threads by
/// request, must not take memory without a bound.
const MAX_NAMES: usize = 65_535;
/// Name of all that came after those.
const OTHERS_NAME: &str = "(others)";

/// A dictionary of names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, NameIndex>,
}

impl Names {
    /// The number of a name, which is taken in where it is new.
    pub(crate) fn number(&mut self, name: &str) -> NameIndex {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.list.len() >= MAX_NAMES && name != OTHERS_NAME {
            return self.number(OTHERS_NAME);
        }
        let number = NameIndex(self.list.len() as u32);
        let name: Arc<str> = name.into();
        self.list.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The name of a number.
    pub(crate) fn name(&self, number: NameIndex) -> Option<&str> {
        self.list.get(number.0 as usize).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let mut names = Names::default();
        for n in 0..MAX_NAMES + 1000 {
            names.number(&n.to_string());
        }
        assert_eq!(names.list.len(), MAX_NAMES + 1);
        let last = names.number("one more");
        assert_eq!(names.name(last), Some(OTHERS_NAME));
        let first = names.number("0");
        assert_eq!(names.name(first), Some("0"));
    }
}
