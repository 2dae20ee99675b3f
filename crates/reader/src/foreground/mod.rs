//! Foreground latency during background I/O, for a verb's answer: as JSON, in sentences, and as a page.

mod page;
mod report;
mod targets;

use std::path::PathBuf;

use clap::Args;
use study::pace::{Controller, HeldBy};
use ui::exit::Failure;
use ui::format::short_latency;
use ui::output::{OutputFile, OutputFormat};

pub use report::ForegroundReport;
use report::held_by_name;
pub use targets::KeepArgs;

/// Arguments of verbs that report on the foreground.
#[derive(Args, Clone, Debug, Default)]
pub struct ReportArgs {
    /// Also write a page: latency of other programs' requests alone and beside this, and over time
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// With --report: replace a file that is not a page of disksmith
    #[arg(long, requires = "report")]
    pub force: bool,
}

impl ReportArgs {
    /// The page's file, which is checked before the work starts.
    ///
    /// # Errors
    /// Refused if it cannot be written.
    pub fn check(&self) -> Result<Option<OutputFile>, Failure> {
        OutputFile::check_if_any(self.report.as_ref(), OutputFormat::Page, self.force)
    }
}

/// Text for the live progress line: latency and target of the foreground, seconds above the target, and the cause that
/// limits the background; `None` while there is no foreground.
pub(crate) fn live(controller: &Controller) -> Option<String> {
    if !controller.probes() {
        return None;
    }
    if controller.is_measuring() && controller.targets().is_none() {
        return Some("measuring the foreground".to_owned());
    }
    let (targets, _) = controller.targets()?;
    let of = |name: &str, latency: Option<f64>, target: Option<f64>| {
        let (latency, target) = (short_latency(latency?), short_latency(target?));
        Some(format!("{name} {latency} of {target}"))
    };
    let latency = of("p99", controller.p99_s(), targets.p99_s)
        .or_else(|| of("mean", controller.mean_s(), targets.mean_s))?;
    // These pauses are too short for a reader of the progress line.
    let held = controller.holds_back();
    let held = held.filter(|by| *by != HeldBy::Measuring);
    Some(latency + &pacing_text(controller.above_s(), held))
}

/// Text after the latency and its target in a progress line.
pub fn pacing_text(above_s: f64, held: Option<HeldBy>) -> String {
    let mut text = String::new();
    if above_s >= 1.0 {
        text += &format!(", above the target for {above_s:.0} s");
    }
    if let Some(held) = held {
        text += &format!(", held back by {}", held_by_name(held));
    }
    text
}

/// Writes the page of some devices, by name, each with the report of its foreground if it had one.
///
/// # Errors
/// When the file cannot be written.
pub fn write_page(
    output: &OutputFile,
    verb: &'static str,
    devices: &[(String, Option<&ForegroundReport>)],
) -> anyhow::Result<()> {
    output.write(&page::page(verb, devices)?)
}

#[cfg(test)]
pub(crate) mod tests {
    use study::pace::{Allowed, Foreground, Outcome, Sample, Targets};

    use super::*;

    /// A foreground of 300 requests per second for `seconds` seconds, whose latency doubles during background I/O.
    pub(crate) fn example(seconds: usize, targets: Targets) -> Outcome {
        let mut controller = Controller::new(targets);
        controller.set_device_rate(1e8);
        for poll in 0..10 * seconds {
            let (latency_s, background) = match controller.allowed() {
                Allowed::Nothing => (0.002, 0.0),
                Allowed::Rate(rate) => (0.004, 0.1 * rate),
                Allowed::All => (0.004, 1e7),
            };
            let latencies_s = [latency_s, latency_s * (1.0 + (poll % 10) as f64 / 10.0)];
            controller.take(&Sample {
                seconds: 0.1,
                foreground: Foreground {
                    requests: Some(30.0),
                    waited_s: 0.0,
                },
                latencies_s: &latencies_s,
                background,
                ..Sample::default()
            });
        }
        controller.outcome()
    }

    #[test]
    fn a_target_that_cannot_be_reached_is_called_so() {
        let targets = Targets {
            mean_s: None,
            p99_s: Some(0.001),
        };
        let report = ForegroundReport::of(&example(40, targets)).unwrap();
        assert_eq!(report.target_source, Some("unreachable"));
        let text = report.text();
        for words in [
            "There was foreground I/O for 40 s.",
            "Its latency alone: p50 2",
            "Beside this: p50 4",
            "(since it exceeds the requested target",
            "of the device was used beside it, held back by",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_progress_line_has_the_target_and_what_holds_the_background_back() {
        assert_eq!(
            live(&Controller::new(Targets::default())),
            Some("measuring the foreground".to_owned())
        );
        let text = pacing_text(3.4, Some(HeldBy::Search));
        assert_eq!(
            text,
            ", above the target for 3 s, held back by the search for the rate"
        );
        assert_eq!(pacing_text(0.0, None), "");
    }

    #[test]
    fn all_of_the_time_is_accounted_for() {
        let report = ForegroundReport::of(&example(40, Targets::default())).unwrap();
        let held = &report.held_back;
        let all = held.measuring_s
            + held.search_s
            + held.mean_s
            + held.p99_s
            + held.throughput_s
            + held.itself_s;
        assert!((all - report.foreground_s).abs() < 1e-6, "{held:?}");
        let slices: f64 = report.over_time.iter().map(|slice| slice.seconds).sum();
        assert!((slices - report.foreground_s).abs() < 1e-6);
        assert_eq!(
            report.distributions[1].last().map(|last| last.1),
            Some(100.0)
        );
    }
}
