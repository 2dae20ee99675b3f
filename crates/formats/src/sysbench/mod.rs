//! The text that `sysbench fileio run` prints (sb_fileio.c and sysbench.c of each version):
//!
//! | | what differs |
//! | --- | --- |
//! | 0.4.8 | `sysbench v0.4.8:`; latencies in seconds, such as `0.0026s` |
//! | 0.4.10 to 0.5 | `Requests/sec executed` as before; latencies in milliseconds, such as `2.58ms` |
//! | 1.0 | `reads/s`, `read, MiB/s`; latencies below `Latency (ms)`; fsyncs are events too |
//! | 1.1 | `read: IOPS=6104.19 95.38 MiB/s (100.01 MB/s)`; neither a time nor a number of events |

pub(crate) mod read;
mod values;
pub(crate) mod write;

use record::PhaseSummary;

/// Text before the tool that measured, in a first line that this program writes.
const WRITTEN_BY: &str = "written by ";
/// Text before the name of the phase in that line.
const PHASE: &str = ", phase ";

/// Gives each cell of a grid a unique name: the test's mode, and if several have the same mode, the file sizes, request
/// sizes and threads that distinguish them.
pub(crate) fn name_cells(phases: &mut [PhaseSummary]) {
    let kinds: [fn(&PhaseSummary) -> String; 3] = [
        |phase| phase.work.span.map_or(String::new(), |s| s.to_string()),
        |phase| phase.work.block.map_or(String::new(), |b| b.to_string()),
        |phase| {
            phase
                .work
                .threads
                .map_or(String::new(), |t| format!("{t}t"))
        },
    ];
    let telling: Vec<_> = kinds
        .into_iter()
        .filter(|kind| phases.iter().any(|phase| kind(phase) != kind(&phases[0])))
        .collect();
    let names: Vec<String> = phases.iter().map(|phase| phase.name.clone()).collect();
    let shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    for phase in phases.iter_mut().filter(|phase| shared(&phase.name)) {
        for kind in &telling {
            let part = kind(phase).replace(' ', "");
            if !part.is_empty() {
                phase.name = format!("{}-{part}", phase.name);
            }
        }
    }
}
