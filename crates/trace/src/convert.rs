//! `trace convert`.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;
use serde::Serialize;

use crate::args::ConvertArgs;
use crate::io::TraceReader;
use crate::open::open;
use crate::write::Converted;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};
use ui::output::{OutputFile, OutputFormat};

/// The document of `trace convert --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document {
    /// Path of the trace that was read.
    from: String,
    /// Path of the trace that was written.
    to: String,
    /// Format of the trace that was read.
    from_format: &'static str,
    /// Number of I/Os that were written.
    ios: u64,
    /// Size of the file that was written.
    bytes: u64,
    /// Parts of the trace that the format cannot hold.
    not_held: Vec<UnsupportedPart>,
}

/// A part that the format cannot hold.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnsupportedPart {
    /// Name of the part.
    part: &'static str,
    /// Number of I/Os that lost it.
    ios: u64,
}

/// Writes a trace in another format. The file is written under another name and renamed when it is complete: a
/// conversion that fails does not change an existing file.
pub(crate) fn convert(
    args: &ConvertArgs,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let mut reader = open(&args.from).refused()?;
    let output = OutputFile::check(&args.to, OutputFormat::Trace, args.force)?;
    let converted = output.begin().and_then(|new| {
        let converted = write(&mut *reader, &new.file, args, interrupt)?;
        new.file.sync_all()?;
        output.put(new)?;
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
            .map(|(part, ios)| UnsupportedPart {
                part: part.name(),
                ios: *ios,
            })
            .collect(),
    };
    let text = match args.json {
        true => ui::json::document("trace convert", &document),
        false => text(&document, context.columns),
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

fn text(document: &Document, width: usize) -> String {
    let ios = ui::format::count(document.ios as usize, "I/O");
    let mut out = format!(
        "{}: {ios} from {} ({})\n",
        document.to, document.from, document.from_format
    );
    for part in &document.not_held {
        let ios = ui::format::count(part.ios as usize, "I/O");
        out.push_str(&format!(
            "  not held by the format: {} ({ios})\n",
            part.part
        ));
    }
    ui::table::wrap(&out, width, "      ")
}
