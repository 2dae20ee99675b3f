//! The screen of a run: rates, lag, flush times and top tags, drawn in place on standard error.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ratatui_core::text::Line;

use crate::metrics::NamedMeter;
use crate::notices;
use ui::format::{number, seconds};
use ui::screen::Inline;
use ui::table::{Column, layout};

/// Interval at which the screen is redrawn.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of tags that are shown.
const TAGS: usize = 5;

/// Screen of a run, drawn in place on standard error.
pub(crate) struct TallyScreen {
    inline: Inline,
    drawn: Option<Instant>,
    /// Event count of each source when the screen was last drawn.
    events: Vec<u64>,
}

impl TallyScreen {
    /// A screen; `None` if standard error is not a terminal.
    pub(crate) fn open(meters: &[NamedMeter]) -> Option<TallyScreen> {
        let inline = ui::progress::is_drawn().then(Inline::on_stderr)?.ok()?;
        notices::take();
        for (_, meter) in meters {
            meter.top_is_shown.store(true, Relaxed);
        }
        Some(TallyScreen {
            inline,
            drawn: None,
            events: vec![0; meters.len()],
        })
    }

    /// Redraws the screen if a second has passed or a notice waits, and prints the waiting notices above it.
    pub(crate) fn show(&mut self, meters: &[NamedMeter]) {
        let pending = notices::take();
        let elapsed = self.drawn.map(|drawn| drawn.elapsed());
        if pending.is_empty() && elapsed.is_some_and(|elapsed| elapsed < INTERVAL) {
            return;
        }
        if !pending.is_empty() {
            self.inline.hide();
            pending.iter().for_each(|text| ui::context::notice(text));
        }
        let events: Vec<u64> = meters
            .iter()
            .map(|(_, meter)| meter.events.load(Relaxed))
            .collect();
        let span = elapsed.unwrap_or(INTERVAL).as_secs_f64();
        let rates: Vec<f64> = events
            .iter()
            .zip(&self.events)
            .map(|(now, before)| (now - before) as f64 / span)
            .collect();
        let text = render(meters, &rates, self.inline.room().width.into());
        let lines = text.lines().map(|line| Line::raw(line.to_owned()));
        self.inline.draw(lines.collect());
        self.events = events;
        self.drawn = Some(Instant::now());
    }
}

impl Drop for TallyScreen {
    fn drop(&mut self) {
        self.inline.hide();
        notices::end()
            .iter()
            .for_each(|text| ui::context::notice(text));
    }
}

/// A row for each source, and the tags with the most events of the last flush.
fn render(meters: &[NamedMeter], rates: &[f64], columns: usize) -> String {
    let whole = |value: f64| number(value).trim_end_matches(".0").to_owned();
    let of = |counter: &AtomicU64| counter.load(Relaxed) as f64;
    let shown = [
        Column::text("source"),
        Column::numbers("events/s", 0),
        Column::numbers("events", 3),
        Column::numbers("lag", 1),
        Column::numbers("sums", 5),
        Column::numbers("flushes", 6),
        Column::numbers("last flush", 2),
        Column::numbers("rejected", 4),
    ];
    let rows: Vec<Vec<String>> = meters
        .iter()
        .zip(rates)
        .map(|((address, meter), rate)| {
            let lag = match meter.has_lag.load(Relaxed) {
                true => whole(of(&meter.lag)),
                false => "–".to_owned(),
            };
            vec![
                address.clone(),
                whole(rate.round()),
                whole(of(&meter.events)),
                lag,
                whole(of(&meter.sums)),
                whole(of(&meter.flushes)),
                seconds(of(&meter.last_flush_us) / 1e6),
                whole(of(&meter.rejected)),
            ]
        })
        .collect();
    let mut text = layout(&shown, &rows, columns);
    for (_, meter) in meters {
        for reason in meter.reasons() {
            text.push_str(&format!("down: {reason}\n"));
        }
    }
    let mut top: Vec<(String, f64)> = meters.iter().flat_map(|(_, meter)| meter.top()).collect();
    top.sort_by(|a, b| b.1.total_cmp(&a.1));
    let top: Vec<String> = top
        .iter()
        .take(TAGS)
        .map(|(tag, count)| format!("{tag} {}", whole(*count)))
        .collect();
    if !top.is_empty() {
        text.push_str(&format!("of the last flush: {}\n", top.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::meter::Meter;
    use std::sync::Arc;

    #[test]
    fn a_picture_has_each_source_its_reasons_and_the_top_tags() {
        let meter = Meter::default();
        meter.events.store(1_234_567, Relaxed);
        meter.last_flush_us.store(120_000, Relaxed);
        meter.set_lag(Some(17));
        meter.set_top(vec![
            ("login".to_owned(), 900.0),
            ("api.get".to_owned(), 20.0),
        ]);
        meter.source_is_down("x", "the connection was refused");
        let meters = [
            ("kafka://a:9092/events".to_owned(), Arc::new(meter)),
            ("-".to_owned(), Arc::default()),
        ];
        insta::assert_snapshot!(render(&meters, &[12_345.0, 0.0], 100), @r"
        source                 events/s     events  lag  sums  flushes  last flush  rejected
        kafka://a:9092/events    12,345  1,234,567   17     0        0      0.12 s         0
        -                             0          0    –     0        0      0.0 ms         0
        down: the connection was refused
        of the last flush: login 900, api.get 20
        ");
    }
}
