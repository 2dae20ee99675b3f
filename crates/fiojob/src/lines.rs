//! Lines, comments, sections and included files.

use crate::error::{FioError, JobFileLine};

/// Maximum depth of included files, as in fio.
const MAX_DEPTH: usize = 16;
/// Maximum number of lines of a job file.
const MAX_LINES: usize = 100_000;
/// Maximum size of a job file in bytes, with the files that it includes, each as often as it is included.
pub const MAX_BYTES: usize = 1 << 20;

/// Facts about the machine that a job file may use.
pub struct MachineFacts<'a> {
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that `from` includes by `name`, or the reason why it cannot be read.
    pub include: &'a dyn Fn(&str, &str) -> Result<String, String>,
    /// `$pagesize`, in bytes.
    pub page_size: u64,
    /// `$mb_memory`, in MiB.
    pub memory_mb: u64,
    /// `$ncpus`: number of online processors.
    pub processors: u64,
}

/// A line `name=value` or `name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionLine {
    pub place: JobFileLine,
    pub name: String,
    pub value: Option<String>,
}

/// A section and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub place: JobFileLine,
    pub name: String,
    pub entries: Vec<OptionLine>,
}

impl Section {
    /// As in fio, a section whose name begins with `global` is a global section.
    pub(crate) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// The sections of a job file, with included files in place.
pub(crate) fn sections(
    file: &str,
    text: &str,
    surroundings: &MachineFacts<'_>,
) -> Result<Vec<Section>, FioError> {
    let mut reader = Reader {
        surroundings,
        sections: Vec::new(),
        lines: 0,
        bytes: 0,
    };
    reader.read(file, text, 0)?;
    Ok(reader.sections)
}

struct Reader<'a> {
    surroundings: &'a MachineFacts<'a>,
    sections: Vec<Section>,
    lines: usize,
    bytes: usize,
}

impl Reader<'_> {
    fn read(&mut self, file: &str, text: &str, depth: usize) -> Result<(), FioError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_BYTES {
            let place = JobFileLine {
                file: file.to_owned(),
                line: 1,
            };
            return Err(place.error(format!(
                "a job file has at most {} KiB with all that it includes, and here it is more",
                MAX_BYTES >> 10
            )));
        }
        for (index, line) in text.lines().enumerate() {
            let place = JobFileLine {
                file: file.to_owned(),
                line: index + 1,
            };
            self.lines += 1;
            if self.lines > MAX_LINES {
                return Err(place.error(format!("a job file has at most {MAX_LINES} lines")));
            }
            let line = without_comment(line);
            if !line.is_empty() {
                self.line(place, line, depth)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, place: JobFileLine, line: &str, depth: usize) -> Result<(), FioError> {
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.strip_suffix(']').unwrap_or_default();
            if name.is_empty() {
                return Err(place.error(format!("'{line}' is not a section; write [name]")));
            }
            self.sections.push(Section {
                place,
                name: name.to_owned(),
                entries: Vec::new(),
            });
            return Ok(());
        }
        if let Some(name) = included(line) {
            return self.include(&place, name, depth);
        }
        let Some(section) = self.sections.last_mut() else {
            return Err(place.error(format!(
                "'{line}' is before the first section; write [global] or [name] above it"
            )));
        };
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.to_owned())),
            None => (line, None),
        };
        section.entries.push(OptionLine {
            place,
            name: name.to_owned(),
            value,
        });
        Ok(())
    }

    fn include(&mut self, place: &JobFileLine, name: &str, depth: usize) -> Result<(), FioError> {
        if depth >= MAX_DEPTH {
            return Err(place.error_in(
                "include",
                format!("files include each other more than {MAX_DEPTH} deep"),
            ));
        }
        let text = (self.surroundings.include)(&place.file, name)
            .map_err(|why| place.error_in("include", format!("{name} cannot be read: {why}")))?;
        self.read(name, &text, depth + 1)
    }
}

/// The line without its comment, which begins at any `;` or `#`, and without surrounding blanks.
fn without_comment(line: &str) -> &str {
    let end = line.find([';', '#']).unwrap_or(line.len());
    line[..end].trim_matches(|c: char| c.is_whitespace() || c.is_control())
}

/// The file's name in `include NAME`.
fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    let name = rest.strip_prefix([' ', '\t'])?.trim();
    (!name.is_empty()).then_some(name)
}
