//! `--suite bonnie`: the twelve tests of Bonnie++, through the page cache as it makes them.
//!
//! `data` makes the calls of the tests of one large file, `small` those of the tests of many small ones, in a
//! [`test_folder`](crate::test_folder) that the next start removes after a kill.

mod data;
mod plan;
mod small;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use engine::calls::{self, CallPhase, Task};
use engine::{EngineError, derive_seed};
use linux::machine;
use record::{Bytes, Phase};

use self::data::{InOrder, Seeker, Transfer};
use self::plan::{FileOp, Test, Tests};
use self::small::SmallFileSet;
use crate::args::BenchArgs;
use crate::measure::{MeasuredPhases, Watch};
use crate::phase_plan::PhasePlan;
use crate::progress::Progress;
use crate::session::{FinishedRun, Session};
use crate::target::Prepared;
use crate::test_folder::{self, Folder};
use crate::{descriptors, target, testfile};
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

pub(crate) use plan::check_options;

/// The planned tests, and their opened directory.
pub(crate) struct ReadyTests {
    tests: Tests,
    prepared: Prepared,
    /// The directory, for files with a name.
    directory: OwnedFd,
}

impl ReadyTests {
    /// Plans the tests and opens their directory. Nothing is written yet; remains of a killed run are removed.
    ///
    /// # Errors
    /// When the target is no directory, has no room, or an option makes no sense here.
    pub(crate) fn make(args: &BenchArgs, context: &Context) -> Result<ReadyTests, Failure> {
        let (path, names) = args.target_and_phases().map_err(Failure::refused)?;
        if !path.is_dir() {
            return Err(Failure::refused(format!(
                "--suite bonnie writes files of its own, and {} is not a directory; name one on the \
                 file system to be measured",
                path.display()
            )));
        }
        let memory = machine::facts(&context.root, None, None).memory;
        let tests = Tests::of(args, &names, memory).map_err(Failure::refused)?;
        descriptors::allow(tests.open_at_once(), "--threads or --directories").refused()?;
        // Without a test of data there is no large file; the smallest one takes its place.
        let size = Some(tests.data().max(Bytes::MIB));
        let mut prepared = target::prepare_sized(&context.root, &path, args, size, &[])?;
        // The room is checked after the files of a killed run are removed.
        tests.check_room(&path).map_err(Failure::refused)?;
        prepared.target.direct = false;
        prepared.target.unwritten_fraction = Some(0.0);
        let directory = test_folder::open_parent(&path).map_err(|error| {
            Failure::refused(format!("{} cannot be opened: {error}", path.display()))
        })?;
        Ok(ReadyTests {
            tests,
            prepared,
            directory,
        })
    }
}

impl Session<'_> {
    /// Runs the tests, one after another, until one fails or a signal comes.
    pub(crate) fn run_bonnie(&mut self, ready: ReadyTests) -> Result<FinishedRun, Failure> {
        let ReadyTests {
            tests,
            mut prepared,
            directory,
        } = ready;
        let mut progress = Progress::new(self.context.watched);
        let machine = self.machine(&prepared);
        let mut notes = std::mem::take(&mut prepared.notes);
        notes.extend(tests.notes.iter().cloned());
        let mut measured = MeasuredPhases {
            phases: Vec::new(),
            failed: None,
        };
        let began = Instant::now();
        let mut stage = Stage {
            path: Path::new(&prepared.target.path),
            directory: &directory,
            file: &prepared.file,
            tests: &tests,
            seed: self.seed,
            small: None,
        };
        for test in &tests.list {
            if self.interrupt.load(Relaxed) {
                break;
            }
            let began_s = began.elapsed().as_secs_f64();
            match self.test(*test, &mut stage, &prepared, &mut progress) {
                Ok(mut phase) => {
                    phase.began_s = began_s;
                    measured.phases.push(phase);
                }
                Err(error) => {
                    measured.failed = Some((test.name().to_owned(), error));
                    break;
                }
            }
        }
        drop(stage);
        drop(progress);
        let left = tests.list.iter().skip(measured.phases.len());
        let missing: Vec<String> = left.map(|test| test.name().to_owned()).collect();
        let target = prepared.target;
        Ok(self.recorded(target, machine, measured, &missing, notes))
    }

    fn test(
        &self,
        test: Test,
        stage: &mut Stage<'_>,
        prepared: &Prepared,
        progress: &mut Progress,
    ) -> Result<Phase, EngineError> {
        let plan = PhasePlan::new(test.name(), stage.tests.workload(test));
        progress.begin(&plan.name, f64::INFINITY);
        let tasks = stage.tasks(test)?;
        let mut watch = Watch::new(&plan, &prepared.counters, progress);
        let calls = CallPhase {
            name: &plan.name,
            workload: &plan.workload,
            window: plan.window,
            interrupt: self.interrupt,
        };
        let mut phase = calls::run(&calls, tasks, &mut watch)?;
        watch.finish(&mut phase);
        progress.end();
        Ok(phase)
    }
}

/// Files and directories that the tests use.
struct Stage<'a> {
    path: &'a Path,
    directory: &'a OwnedFd,
    /// The large file, which has no name.
    file: &'a File,
    tests: &'a Tests,
    seed: u64,
    /// The small files, from their creation to their removal.
    small: Option<SmallFileSet>,
}

impl Stage<'_> {
    /// Work of the threads of a test.
    fn tasks(&mut self, test: Test) -> Result<Vec<Box<dyn Task + '_>>, EngineError> {
        let tests = self.tests;
        let seed = derive_seed(self.seed, test.number());
        let in_order = |file: File, transfer: Transfer, chunk: Bytes, size: Bytes| {
            let one: Box<dyn Task> =
                Box::new(InOrder::new(file, transfer, chunk, size, seed, tests.sync));
            vec![one]
        };
        let one_byte = Bytes(1);
        Ok(match test {
            // As in Bonnie++, its file is not that of the other tests.
            Test::CharWrite => {
                let file = testfile::create(self.path).map_err(EngineError::Setup)?;
                in_order(file, Transfer::Write, one_byte, tests.chars)
            }
            Test::BlockWrite => {
                in_order(self.reopened()?, Transfer::Write, tests.block, tests.size)
            }
            Test::Rewrite => in_order(self.reopened()?, Transfer::Rewrite, tests.block, tests.size),
            Test::CharRead => in_order(self.reopened()?, Transfer::Read, one_byte, tests.chars),
            Test::BlockRead => in_order(self.reopened()?, Transfer::Read, tests.block, tests.size),
            Test::Seeks => self.seekers(seed)?,
            Test::Files(round, op) => {
                let kept = self.small.take().filter(|_| op != FileOp::Create);
                let small = match kept {
                    Some(small) => small,
                    None => {
                        let folder = Folder::create(self.directory).map_err(EngineError::Setup)?;
                        SmallFileSet::new(folder, &tests.files, round, self.seed, tests.sync)?
                    }
                };
                vec![self.small.insert(small).task(op)]
            }
        })
    }

    /// Another open file description of the large file, with its own read-ahead and without O_DIRECT.
    fn reopened(&self) -> Result<File, EngineError> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let open = File::options().read(true).write(true).open(&path);
        open.map_err(|error: io::Error| {
            calls::call_error(format!("opening the test file again as {path}"), error)
        })
    }

    fn seekers(&self, seed: u64) -> Result<Vec<Box<dyn Task + '_>>, EngineError> {
        let tests = self.tests;
        let left = Arc::new(AtomicU64::new(tests.seeks));
        (0..u64::from(tests.seekers))
            .map(|number| {
                let seeker = Seeker::new(
                    self.reopened()?,
                    tests.block,
                    tests.size,
                    Arc::clone(&left),
                    derive_seed(seed, number),
                    tests.sync,
                );
                Ok(Box::new(seeker) as Box<dyn Task>)
            })
            .collect()
    }
}
