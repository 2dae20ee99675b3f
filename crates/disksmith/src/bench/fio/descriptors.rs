//! How many files a job file needs open at once, and that this process may have so many.

use anyhow::{Context as _, bail};
use engine::Choice;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::plan::{Plan, Stream};

/// What is open beside the jobs: the standard streams, the ledger, the kernel's counters, and the
/// target with whatever claims it.
const BESIDE: u64 = 64;

/// Lets this process have as many files open as `plan` needs. Shells set a soft limit of 1,024, for
/// programs that wait with select(2), which cannot take more; we may raise it up to the hard one
/// (getrlimit(2)).
///
/// # Errors
/// When the hard limit is lower. To find that out later would be to find it out when all files are
/// written.
pub(super) fn allow(plan: &Plan) -> Result<(), anyhow::Error> {
    let needed = needed(plan);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum.filter(|hard| *hard < needed) {
        bail!(
            "the jobs need {needed} files and descriptors open at once, and this process may have \
             {hard} (ulimit -Hn); use fewer files or clones, or raise the limit"
        );
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .with_context(|| format!("the limit of open files could not be raised to {needed}"))
}

/// The files themselves, and what the streams between two walls have open beside them.
fn needed(plan: &Plan) -> u64 {
    let wall = |streams: &Vec<Stream>| streams.iter().map(of_stream).sum::<usize>();
    let most = plan.walls.iter().map(wall).max().unwrap_or(0);
    (plan.files.len() + most) as u64 + BESIDE
}

/// Its files, its ring, and the kernel's account of its thread.
fn of_stream(stream: &Stream) -> usize {
    let ring = usize::from(stream.choice != Choice::Sync);
    stream.files.len() + ring + 1
}
