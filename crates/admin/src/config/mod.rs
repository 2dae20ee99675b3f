//! Configuration of services: `/etc/disksmith/NAME.toml` has the options of the verb NAME, by their long names.

mod options;
mod program;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use linux::remedy;
use serde::Serialize;
use ui::context::Context;
use ui::exit::{CommandEnd, Failure, Outcome, sentence};
use ui::table::wrap;

use crate::args::{ConfigArgs, ConfigVerb, SERVICES, ServiceArgs};

pub use options::Problem;
pub use program::Program;

/// Folder of the configuration.
const FOLDER: &str = "/etc/disksmith";

/// Checks files of configuration.
///
/// # Errors
/// Refused where a file cannot be read; the others are checked all the same. What is wrong in these is the answer, with
/// status 1 where all can be read.
pub fn config(args: &ConfigArgs, program: &Program, context: &mut Context) -> Outcome {
    let ConfigVerb::Check { files, json } = &args.verb;
    let files = match files.is_empty() {
        true => installed(),
        false => files.clone(),
    };
    let mut body = CheckBody {
        files: Vec::new(),
        problems: Vec::new(),
    };
    let mut unread = Vec::new();
    for file in &files {
        match problems(file, program) {
            Ok(found) => {
                body.problems.extend(found);
                body.files.push(file.display().to_string());
            }
            Err(failure) => unread.push(sentence(&failure.error())),
        }
    }
    if unread.is_empty() || !body.files.is_empty() {
        let text = match json {
            true => ui::json::document("config check", &body),
            false => body.text(context.columns),
        };
        context.print(&text)?;
    }
    if !unread.is_empty() {
        return Err(Failure::refused_for("not all is checked", &unread));
    }
    Ok(match body.problems.is_empty() {
        true => CommandEnd::Done,
        false => CommandEnd::No,
    })
}

/// The command line of a service: its verb, and the options of its file. The file may be missing where it was not
/// named.
///
/// # Errors
/// Refused where the file cannot be read, or something in it is wrong.
pub fn command_line(args: &ServiceArgs, program: &Program) -> Result<Vec<OsString>, Failure> {
    let path = match &args.config {
        Some(path) => path.clone(),
        None => file_of(&args.verb),
    };
    if args.config.is_none() && !path.exists() {
        return Ok(vec!["disksmith".into(), OsString::from(&args.verb)]);
    }
    let text = read(&path)?;
    options::command_line(&path, &text, &args.verb, program).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(Problem::to_string).collect();
        let what = format!("the service {} does not start", args.verb);
        Failure::refused_for(&what, &problems)
    })
}

/// Body of the document of `config check --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckBody {
    /// Paths of the files that were checked.
    files: Vec<String>,
    /// Errors in the files; empty where there are none.
    problems: Vec<Problem>,
}

impl CheckBody {
    fn text(&self, columns: usize) -> String {
        if self.files.is_empty() {
            let none = format!(
                "There is no configuration in {FOLDER}; services run with their defaults.\n"
            );
            return wrap(&none, columns, "");
        }
        let mut text = String::new();
        for problem in &self.problems {
            text += &format!("{problem}\n");
        }
        for file in &self.files {
            if !self.problems.iter().any(|problem| &problem.file == file) {
                text += &format!("{file}: well\n");
            }
        }
        text
    }
}

fn problems(file: &Path, program: &Program) -> Result<Vec<Problem>, Failure> {
    let text = read(file)?;
    let verb = file.file_stem().unwrap_or_default().to_string_lossy();
    if !SERVICES.contains(&verb.as_ref()) {
        return Ok(vec![Problem {
            file: file.display().to_string(),
            line: None,
            reason: format!(
                "no service is named '{verb}'; the files are {}",
                SERVICES.map(|name| format!("{name}.toml")).join(", ")
            ),
        }]);
    }
    Ok(options::command_line(file, &text, &verb, program)
        .err()
        .unwrap_or_default())
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| Failure::refused(remedy::unread(file, &error)))
}

fn file_of(verb: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{verb}.toml"))
}

/// The files of services that exist.
fn installed() -> Vec<PathBuf> {
    SERVICES
        .iter()
        .map(|verb| file_of(verb))
        .filter(|path| path.exists())
        .collect()
}
