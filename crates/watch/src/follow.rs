//! Samples and findings of this host, for other crates of the program.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linux::Root;
use record::sample::Sample;
use study::watch::WatchEvent;
use study::watch::{Settings, Watch};

use crate::collect::Collector;
use crate::live::Ticks;

/// Calls `see` with each sample and the open findings, until `stop` is set.
///
/// # Errors
/// When the kernel does not show its counters.
pub fn follow(
    root: &Root,
    every: Duration,
    stop: &AtomicBool,
    mut see: impl FnMut(&Sample, &[&WatchEvent]),
) -> linux::Result<()> {
    let mut collector = Collector::new(root, every)?;
    let mut watch = Watch::new(Settings::default());
    collector.sample()?;
    let mut ticks = Ticks::every(every);
    while ticks.wait(stop) {
        if let Some(sample) = collector.sample()? {
            watch.observe(&sample);
            let open: Vec<&WatchEvent> = watch.open().collect();
            see(&sample, &open);
        }
    }
    Ok(())
}
