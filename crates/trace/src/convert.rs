//! `trace convert`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;
use serde::Serialize;

use crate::args::ConvertArgs;
use crate::io::TraceReader;
use crate::open::open;
use crate::write::Converted;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};

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

/// Writes a trace in another format. A conversion that fails leaves no file.
pub(crate) fn convert(
    args: &ConvertArgs,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let mut reader = open(&args.from).refused()?;
    let file = create(&args.to, args.force)?;
    let written = write(&mut *reader, file, args, interrupt);
    let written = written.with_context(|| format!("{} is not written", args.to.display()));
    let converted = match written {
        Ok(converted) => converted,
        Err(error) => {
            // What is there is a part of a trace that was not requested.
            let _ = fs::remove_file(&args.to);
            return Err(Failure::Midway(error));
        }
    };
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
    Ok(Answer::Done)
}

fn write(
    reader: &mut dyn TraceReader,
    file: File,
    args: &ConvertArgs,
    interrupt: &AtomicBool,
) -> anyhow::Result<Converted> {
    let mut conversion = args.format.format().begin(file, reader.header())?;
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
    let refused = |why: &str| {
        Failure::refused(format!(
            "the trace {} cannot be written: {why}",
            path.display()
        ))
    };
    match fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_file() && force => {
            fs::remove_file(path).refused()?;
        }
        Ok(there) if there.file_type().is_file() => {
            return Err(refused(
                "there is a file. Name another, or replace that one with --force",
            ));
        }
        Ok(there) if there.file_type().is_block_device() => return Err(refused("it is a disk")),
        Ok(_) => return Err(refused("it is no regular file. Name a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(refused(&error.to_string())),
    }
    File::create_new(path).map_err(|error| refused(&error.to_string()))
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
