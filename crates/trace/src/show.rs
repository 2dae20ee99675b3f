//! `trace show`.

use crate::args::ShowArgs;
use crate::figures::Figures;
use crate::open::open;
use crate::views;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Outcome};

/// Shows a trace.
pub(crate) fn show(args: &ShowArgs, context: &mut Context) -> Outcome {
    let mut reader = open(&args.file).refused()?;
    let mut figures = Figures::default();
    for io in reader.by_ref() {
        figures.add(&io.refused()?);
    }
    let shown = views::document(args.file.display().to_string(), &*reader, &mut figures);
    let text = match args.json {
        true => views::json(&shown),
        false => views::text(&shown, context.columns),
    };
    context.print(&text)?;
    Ok(Answer::Done)
}
