//! The bars that a person watches while something takes long. They go to standard error, and only to a
//! terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bars below each other, or nothing where nobody watches.
pub(crate) struct Bars {
    all: Option<MultiProgress>,
}

impl Bars {
    /// Bars, if somebody watches.
    pub(crate) fn new(watched: bool) -> Bars {
        let target = ProgressDrawTarget::stderr;
        Bars {
            all: watched.then(|| MultiProgress::with_draw_target(target())),
        }
    }

    /// One more, with its name before it, of so many steps; `None` where nobody watches.
    pub(crate) fn add(&self, name: &str, steps: u64) -> Option<ProgressBar> {
        let all = self.all.as_ref()?;
        let bar = all.add(ProgressBar::new(steps));
        dress(&bar, "{prefix} [{bar:20}] {wide_msg}");
        bar.set_prefix(name.to_owned());
        Some(bar)
    }
}

/// Gives a bar its look, by a template of indicatif.
pub(crate) fn dress(bar: &ProgressBar, template: &str) {
    // A template that is wrong would be found by every run on a terminal; the default does.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}
