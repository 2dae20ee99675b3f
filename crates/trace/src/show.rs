//! `trace show`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;

use crate::args::ShowArgs;
use crate::figures::Figures;
use crate::html;
use crate::open::open;
use crate::views;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};
use ui::output::{OutputFile, OutputFormat};

/// Shows a trace.
pub(crate) fn show(args: &ShowArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let output = OutputFile::check_if_any(args.report.as_ref(), OutputFormat::Page, args.force)?;
    let mut reader = open(&args.file).refused()?;
    let mut figures = Figures::default();
    for io in reader.by_ref() {
        figures.add(&io.refused()?);
        if interrupt.load(Relaxed) {
            let file = args.file.display();
            return Err(anyhow!("interrupted before {file} was read to its end")).midway();
        }
    }
    let shown = views::document(args.file.display().to_string(), &*reader, &mut figures);
    if let Some(output) = output {
        let devices = reader.header().devices.iter();
        let devices: Vec<String> = devices.map(|device| device.name.clone()).collect();
        html::write(&output, &shown, &figures, &devices).midway()?;
    }
    let text = match args.json {
        true => views::json(&shown),
        false => views::text(&shown, context.columns),
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}
