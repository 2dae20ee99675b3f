//! `trace convert`.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;
use serde::Serialize;

use crate::args::ConvertArgs;
use crate::io::TraceReader;
use crate::open::open;
use crate::write::Converted;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::NewFile;

#[derive(Serialize)]
struct Document {
    from: String,
    to: String,
    from_format: &'static str,
    ios: u64,
    bytes: u64,
    not_held: Vec<NotHeld>,
}

/// A part that the format cannot hold.
#[derive(Serialize)]
struct NotHeld {
    part: &'static str,
    ios: u64,
}

/// Writes a trace in another format, next to its place, which it takes when it is whole: a conversion that fails changes
/// nothing there.
pub(crate) fn convert(
    args: &ConvertArgs,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let mut reader = open(&args.from).refused()?;
    let there = existing(&args.to, args.force)?;
    let new = NewFile::in_folder(folder(&args.to));
    let new = new.map_err(|error| unwritable(&args.to, &error.to_string()))?;
    let converted = write(&mut *reader, &new.file, args, interrupt).and_then(|converted| {
        new.file.sync_all()?;
        let now = fs::symlink_metadata(&args.to).ok();
        let id = |facts: &Metadata| (facts.dev(), facts.ino());
        let is_known = now.is_none_or(|now| there.as_ref().map(id) == Some(id(&now)));
        anyhow::ensure!(is_known, "another file has come to its place");
        new.take_place(&args.to, there.as_ref())?;
        Ok(converted)
    });
    let converted = converted
        .with_context(|| format!("{} is not written", args.to.display()))
        .midway()?;
    let document = Document {
        from: args.from.display().to_string(),
        to: args.to.display().to_string(),
        from_format: reader.header().format,
        ios: converted.ios,
        bytes: fs::metadata(&args.to).map_or(0, |metadata| metadata.len()),
        not_held: converted
            .lost
            .iter()
            .map(|(part, ios)| NotHeld {
                part: part.name(),
                ios: *ios,
            })
            .collect(),
    };
    let text = match args.json {
        true => ui::json::document("trace convert", &document),
        false => text(&document),
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

fn write(
    reader: &mut dyn TraceReader,
    file: &File,
    args: &ConvertArgs,
    interrupt: &AtomicBool,
) -> anyhow::Result<Converted> {
    let format = args.format.format();
    let mut conversion = format.begin(file.try_clone()?, reader.header())?;
    while let Some(io) = reader.next() {
        let named: &dyn TraceReader = reader;
        conversion.write(&io?, &named)?;
        if interrupt.load(Relaxed) {
            anyhow::bail!("interrupted");
        }
    }
    Ok(conversion.finish()?)
}

/// An empty file for an output. With `force` it takes the place of a regular file.
pub(crate) fn create(path: &Path, force: bool) -> Result<File, Failure> {
    if existing(path, force)?.is_some() {
        fs::remove_file(path).refused()?;
    }
    File::create_new(path).map_err(|error| unwritable(path, &error.to_string()))
}

/// The file at the place of an output, which it may replace by `force`; `None` where there is nothing.
fn existing(path: &Path, force: bool) -> Result<Option<Metadata>, Failure> {
    let refused = |why: &str| Err(unwritable(path, why));
    if path.file_name().is_none() || path.as_os_str().as_bytes().ends_with(b"/") {
        return refused("it names no file");
    }
    match fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_file() && force => Ok(Some(there)),
        Ok(there) if there.file_type().is_file() => {
            refused("there is a file. Name another, or replace that one with --force")
        }
        Ok(there) if there.file_type().is_block_device() => refused("it is a disk"),
        Ok(_) => refused("it is no regular file. Name a file"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => refused(&error.to_string()),
    }
}

fn unwritable(path: &Path, why: &str) -> Failure {
    Failure::refused(format!(
        "the trace {} cannot be written: {why}",
        path.display()
    ))
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn text(document: &Document) -> String {
    let ios = ui::format::count(document.ios as usize, "I/O");
    let mut out = format!(
        "{}: {ios} from {} ({})\n",
        document.to, document.from, document.from_format
    );
    for part in &document.not_held {
        out.push_str(&format!(
            "  not held by the format: {} of {}\n",
            part.part,
            ui::format::count(part.ios as usize, "I/O")
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_names_no_file_is_refused_before_anything_is_written() {
        for path in ["no-folder/", "..", "/", ""] {
            assert!(existing(Path::new(path), true).is_err(), "{path}");
        }
        assert!(matches!(existing(Path::new("no-file"), true), Ok(None)));
    }
}
