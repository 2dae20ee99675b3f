//! A JSON object and its path, for error messages.

use serde_json::{Map, Value};

use crate::ReadError;

/// An object of a document.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    object: &'a Map<String, Value>,
    /// The line where the document begins.
    line: usize,
    /// Path of the object, such as `jobs[0].read`; empty for the document itself.
    path: String,
}

impl<'a> Node<'a> {
    /// The document itself.
    pub(crate) fn of_document(line: usize, document: &'a Value) -> Result<Node<'a>, ReadError> {
        match document.as_object() {
            Some(object) => Ok(Node {
                object,
                line,
                path: String::new(),
            }),
            None => Err(ReadError::at(line, "the JSON of fio is not an object")),
        }
    }

    /// The keys and values.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.object.iter().map(|(key, value)| (key.as_str(), value))
    }

    fn at(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Error for a value of `key` of the wrong type.
    pub(crate) fn wrong(&self, key: &str, what: &str) -> ReadError {
        ReadError::at(
            self.line,
            format!(
                "in the JSON of fio that begins here, {} is {what}",
                self.at(key)
            ),
        )
    }

    /// The value of `key`; `None` if it is missing or null.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// The text of `key`.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, ReadError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "not a text")),
        }
    }

    /// The number of `key`, which is not negative.
    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, ReadError> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if number >= 0.0 && number.is_finite() => Ok(Some(number)),
            Some(_) => Err(self.wrong(key, "a negative number")),
            None => Err(self.wrong(key, "not a number")),
        }
    }

    /// The whole number of `key`.
    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>, ReadError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(self.wrong(key, "not a count")),
            },
        }
    }

    /// The object of `key`.
    pub(crate) fn object(&self, key: &str) -> Result<Option<Node<'a>>, ReadError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Node {
                object,
                line: self.line,
                path: self.at(key),
            })),
            Some(_) => Err(self.wrong(key, "not an object")),
        }
    }

    /// The objects in the list of `key`; a single object, which some versions write, is a list of one.
    pub(crate) fn objects(&self, key: &str) -> Result<Vec<Node<'a>>, ReadError> {
        let items = match self.value(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Ok(self.object(key)?.into_iter().collect()),
        };
        let node = |(index, item): (usize, &'a Value)| {
            let place = format!("{key}[{index}]");
            match item.as_object() {
                Some(object) => Ok(Node {
                    object,
                    line: self.line,
                    path: self.at(&place),
                }),
                None => Err(self.wrong(&place, "not an object")),
            }
        };
        items.iter().enumerate().map(node).collect()
    }
}
