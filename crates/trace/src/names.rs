//! Interned names of processes and files.

use std::collections::HashMap;
use std::sync::Arc;

use crate::io::NameIndex;

/// Maximum number of distinct names. Some servers name a thread for each request; memory must be bounded.
const MAX_NAMES: usize = 65_535;
/// Name that replaces all further names.
const OTHERS_NAME: &str = "(others)";

/// A dictionary of names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, NameIndex>,
}

impl Names {
    /// The index of a name; a new name is added.
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

    /// The name with this index.
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
