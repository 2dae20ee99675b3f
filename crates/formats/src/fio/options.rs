//! Options of a job: fio repeats the options that were given, for the job and in `[global]`, as text. A missing option
//! has fio's default (fio's HOWTO).

use record::{Bytes, TargetKind};

use super::node::Node;
use crate::ReadError;

/// The options of one job.
pub(crate) struct Options<'a> {
    job: Option<Node<'a>>,
    global: Option<Node<'a>>,
}

impl<'a> Options<'a> {
    /// The options of `job`, and of its document's `[global]`.
    pub(crate) fn of(job: &Node<'a>, document: &Node<'a>) -> Result<Options<'a>, ReadError> {
        Ok(Options {
            job: job.object("job options")?,
            // A client writes a list with one object for each of its servers.
            global: document.objects("global options")?.into_iter().next(),
        })
    }

    /// True if the document has options at all; fio before 2.16 does not write them.
    pub(super) fn are_known(&self) -> bool {
        let mut sections = [&self.job, &self.global].into_iter().flatten();
        sections.any(|section| section.entries().next().is_some())
    }

    /// The value of an option that was given.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let sections = [&self.job, &self.global].into_iter().flatten();
        sections
            .filter_map(|section| section.value(name))
            .find_map(|value| value.as_str())
    }

    /// The value of an option that was given to the job itself.
    pub(crate) fn own(&self, name: &str) -> Option<&'a str> {
        self.job.as_ref()?.value(name)?.as_str()
    }

    /// All given options, each once; an option of the job itself takes precedence.
    pub(super) fn all(&self) -> Vec<(String, String)> {
        let sections = [&self.job, &self.global].into_iter().flatten();
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, value) in sections.flat_map(|section| section.entries()) {
            let known = all.iter().any(|(known, _)| known == name);
            if let Some(value) = value.as_str().filter(|_| !known) {
                all.push((name.to_owned(), value.to_owned()));
            }
        }
        all
    }

    /// A number that was given, or else `default`; `None` if the text is not a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Option<T> {
        match self.get(name) {
            Some(text) => text.trim().parse().ok(),
            None => self.are_known().then_some(default),
        }
    }

    /// A size that was given.
    pub(super) fn size(&self, name: &str) -> Option<Bytes> {
        self.size_of(self.get(name)?)
    }

    /// The size that a text means in this job.
    pub(super) fn size_of(&self, text: &str) -> Option<Bytes> {
        // With another kb_base, a "k" is not 1024 bytes.
        let binary = self.get("kb_base").is_none_or(|base| base == "1024");
        text.parse().ok().filter(|_| binary)
    }

    /// Measured file or directory.
    pub(crate) fn target(&self) -> Option<&'a str> {
        self.get("filename").or_else(|| self.get("directory"))
    }

    /// Kind of the target. A directory is one in which fio creates its files.
    pub(crate) fn target_kind(&self) -> Option<TargetKind> {
        let named = self.get("filename").is_some();
        let within = self.get("directory").filter(|_| !named);
        within.map(|_| TargetKind::Directory)
    }
}
