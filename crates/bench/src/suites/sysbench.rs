//! `--suite sysbench`: the grid of `sysbench fileio` cells by which database hosts are compared.
//! Each set of files is laid out, measured by all its cells, and removed before the next.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::anyhow;
use engine::{Engine, derive_seed};
use record::{Bytes, JobOptions, Nanos, TargetKind, Workload};

use crate::args::BenchArgs;
use crate::layout::Layout;
use crate::measure::{self, MeasuredPhases};
use crate::phase_plan::{PhasePlan, base};
use crate::progress::Progress;
use crate::schedule::FixedSchedule;
use crate::session::{FinishedRun, Session};
use crate::target::{self, Prepared, set_direct};
use crate::{descriptors, layout, testfile};
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Numbers of threads of the cells.
const THREADS: [u32; 2] = [1, 64];
/// Number of requests after which a cell ends.
const REQUESTS: u64 = 1_000_000;
/// Longest time of a cell.
const MAX_CELL_TIME: Nanos = Nanos::from_secs(60);
/// Maximum number of files: each takes a descriptor.
const MAX_FILES: u32 = 512;

/// Files of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FileSet {
    files: u32,
    each: Bytes,
}

impl FileSet {
    fn total(self) -> Bytes {
        Bytes(self.each.0 * u64::from(self.files))
    }
}

/// The sets of files: those of the grid, or the one that `--files` and `--size` ask for.
///
/// # Errors
/// When there are too many files, or one would be smaller than 1 MiB.
fn sets(args: &BenchArgs) -> Result<Vec<FileSet>, String> {
    if args.files.is_none() && args.shared.size.is_none() {
        let set = |files, mib| FileSet {
            files,
            each: Bytes::mib(mib),
        };
        return Ok(vec![set(1, 128), set(128, 1), set(128, 16)]);
    }
    let files = args.files.unwrap_or(1);
    let total = args.shared.size.map_or(Bytes::mib(128), |size| size.0);
    let each = Bytes(total.0 / u64::from(files)).round_down(Bytes::MIB);
    if files > MAX_FILES || each.0 == 0 {
        return Err(format!(
            "{total} in {files} files: at most {MAX_FILES} files of 1 MiB or more are laid out; \
             give fewer --files or a larger --size"
        ));
    }
    Ok(vec![FileSet { files, each }])
}

/// The cells of a set.
fn cells(set: FileSet, args: &BenchArgs) -> Vec<PhasePlan> {
    let threads = args
        .threads
        .map_or(THREADS.to_vec(), |threads| vec![threads]);
    let modes = [("rndrd", 1.0), ("rndwr", 0.0)];
    let cell = |(mode, read_fraction): (&str, f64), threads: u32| {
        let plain = base();
        let workload = Workload {
            read_fraction,
            threads,
            block: args.block.map_or(Bytes::kib(16), |block| block.0),
            span: Some(set.each),
            sync_at_end: read_fraction < 1.0,
            ops: Some(REQUESTS),
            longest: args.seconds.map_or(MAX_CELL_TIME, |seconds| seconds.0),
            shortest: args
                .seconds
                .map_or(plain.shortest, |s| plain.shortest.min(s.0)),
            precision: match (args.precision, args.quick) {
                (Some(precision), _) => precision.0,
                (None, true) => plain.precision,
                (None, false) => 0.0,
            },
            details: Some(Box::new(JobOptions {
                files: set.files,
                full_sync: true,
                ..JobOptions::default()
            })),
            ..plain
        };
        let each = set.each.to_string().replace(' ', "");
        PhasePlan::new(format!("{mode}-{}x{each}-{threads}t", set.files), workload)
    };
    modes
        .into_iter()
        .flat_map(|mode| threads.iter().map(move |threads| (mode, *threads)))
        .map(|(mode, threads)| cell(mode, threads))
        .collect()
}

/// The grid, on a target that was opened.
pub(crate) struct Grid {
    sets: Vec<FileSet>,
    cells: Vec<Vec<PhasePlan>>,
    /// The target, with the first of the files.
    prepared: Prepared,
}

impl Grid {
    /// Plans the grid and opens its directory.
    ///
    /// # Errors
    /// When the target is no directory, has no room, or an option makes no sense here.
    pub(crate) fn make(
        args: &BenchArgs,
        names: &[String],
        path: &Path,
        context: &Context,
        engine: &dyn Engine,
    ) -> Result<Grid, Failure> {
        if !path.is_dir() {
            return Err(Failure::refused(format!(
                "--suite sysbench lays out files of its own, and {} is not a directory; name one on \
                 the file system to be measured",
                path.display()
            )));
        }
        let sets = sets(args).map_err(Failure::refused)?;
        let all: Vec<Vec<PhasePlan>> = sets.iter().map(|set| cells(*set, args)).collect();
        let known: Vec<&str> = all.iter().flatten().map(|cell| &cell.name[..]).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Failure::refused(format!(
                "there is no phase '{name}'; the suite has {}",
                known.join(", ")
            )));
        }
        let wanted = |cell: &PhasePlan| names.is_empty() || names.contains(&cell.name);
        let cells: Vec<Vec<PhasePlan>> = all
            .into_iter()
            .map(|cells| cells.into_iter().filter(|cell| wanted(cell)).collect())
            .collect();
        for cell in cells.iter().flatten() {
            engine.check(&cell.workload, args.interface()).refused()?;
        }
        let thread = descriptors::of_thread(args.interface());
        let open = |cell: &PhasePlan| {
            let files = cell.workload.details.as_ref().map_or(1, |all| all.files);
            u64::from(files) + u64::from(cell.workload.threads) * thread
        };
        let most = cells.iter().flatten().map(open).max().unwrap_or(0);
        descriptors::allow(most, "--files or --threads").refused()?;
        let largest = sets.iter().map(|set| set.total()).max();
        let prepared = target::prepare_sized(&context.root, path, args, largest, &[])?;
        Ok(Grid {
            sets,
            cells,
            prepared,
        })
    }

    /// The names of all cells.
    fn names(&self) -> Vec<String> {
        let all = self.cells.iter().flatten();
        all.map(|cell| cell.name.clone()).collect()
    }
}

impl Session<'_> {
    /// Measures a grid.
    pub(crate) fn run_grid(&mut self, mut grid: Grid) -> Result<FinishedRun, Failure> {
        let mut progress = Progress::new(self.context.watched);
        let machine = self.machine(&grid.prepared);
        let began = std::time::Instant::now();
        let mut measured = MeasuredPhases {
            phases: Vec::new(),
            failed: None,
        };
        let names = grid.names();
        let notes = std::mem::take(&mut grid.prepared.notes);
        for (at, set) in grid.sets.iter().enumerate() {
            if grid.cells[at].is_empty() || self.interrupt.load(Relaxed) {
                continue;
            }
            let files = self.lay_out_set(*set, &grid.prepared, &mut progress)?;
            if self.interrupt.load(Relaxed) {
                break;
            }
            let began_s = began.elapsed().as_secs_f64();
            let mut part = measure::measure(
                self.engine,
                &grid.prepared,
                &files.iter().collect::<Vec<_>>(),
                &mut FixedSchedule(grid.cells[at].clone()),
                self.args.interface(),
                derive_seed(self.seed, at as u64),
                self.interrupt,
                &mut progress,
            );
            part.phases
                .iter_mut()
                .for_each(|cell| cell.began_s += began_s);
            measured.phases.append(&mut part.phases);
            measured.failed = part.failed;
            if measured.failed.is_some() {
                break;
            }
        }
        drop(progress);
        if measured.phases.is_empty() && measured.failed.is_none() {
            return Err(Failure::Midway(anyhow!(
                "interrupted while the test files were laid out; they are removed, and nothing was \
                 measured"
            )));
        }
        let mut target = grid.prepared.target;
        target.unwritten_fraction = Some(0.0);
        let missing = names[measured.phases.len()..].to_vec();
        Ok(self.recorded(target, machine, measured, &missing, notes))
    }

    /// Lays out the files of a set.
    fn lay_out_set(
        &self,
        set: FileSet,
        prepared: &Prepared,
        progress: &mut Progress,
    ) -> Result<Vec<File>, Failure> {
        let folder = Path::new(&prepared.target.path);
        let mut files = Vec::new();
        for _ in 0..set.files {
            let file = testfile::create(folder).midway()?;
            if prepared.target.direct {
                let _ = set_direct(&file).midway()?;
            }
            let data = Layout {
                most: set.each,
                fixed: true,
                contents: None,
            };
            layout::fill(
                self.engine,
                &file,
                &data,
                self.seed,
                self.interrupt,
                progress,
            )
            .map_err(|error| {
                anyhow::Error::new(error).context(format!(
                    "the test files in {} could not be laid out; they are removed",
                    folder.display()
                ))
            })
            .midway()?;
            files.push(file);
            if self.interrupt.load(Relaxed) {
                break;
            }
        }
        debug_assert!(prepared.target.kind == TargetKind::Directory);
        Ok(files)
    }
}
