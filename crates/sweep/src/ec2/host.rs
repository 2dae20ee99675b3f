//! Filling and measuring the volumes on this host.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::{Engine, derive_seed};
use job::OwnedJob;
use linux::block::Devices;
use linux::consent::{Consent, open_for_destroying};
use linux::volume_id::name_disk;
use record::{Bytes, Severity};
use rustix::fs::OFlags;

use super::checkpoint::{RoundMeasurement, TypeSweepCheckpoint};
use super::rounds::MeasuringHost;
use crate::args::SweepArgs;
use crate::figures::figures_of;
use array::host::number_at;
use bench::FinishedRun;
use bench::args::BenchArgs;
use bench::conclusion::Conclusion;
use domain::values::Size;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure, sentence};

/// Size of a write that fills a volume, in bytes.
const WRITE_SIZE: usize = 1 << 20;

/// This host, as it fills and measures volumes.
pub(crate) struct HostBench<'a> {
    pub(crate) args: &'a SweepArgs,
    pub(crate) phases: Vec<String>,
    /// The part of each volume that is measured.
    pub(crate) span: Bytes,
    pub(crate) context: &'a mut Context,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) interrupt: &'a AtomicBool,
    /// The job, with the ledger of the runs.
    pub(crate) job: OwnedJob<TypeSweepCheckpoint>,
}

/// Arguments of `bench` for a disk, which the sweep has filled.
///
/// # Errors
/// When the text of the user's workload is invalid, as a sentence.
pub(crate) fn bench_args(
    args: &SweepArgs,
    phases: &[String],
    span: Bytes,
    disk: &Path,
    round: usize,
) -> Result<BenchArgs, String> {
    let workload = args.workload.as_ref().map(|text| {
        text.parse()
            .map_err(|why| format!("--workload {text}: {why}"))
    });
    let workload = workload.transpose()?;
    let mut consent = disk.as_os_str().to_owned();
    consent.push("=unknown");
    Ok(BenchArgs {
        target: Some(disk.to_path_buf()),
        phase: match workload.is_some() {
            true => Vec::new(),
            false => phases.iter().map(OsString::from).collect(),
        },
        workload,
        threads: args.threads,
        depth: args.depth,
        span: Some(Size(span)),
        seconds: Some(args.seconds),
        precision: Some(args.precision),
        destroy: vec![consent],
        seed: Some(derive_seed(args.seed, round as u64)),
        no_ledger: true,
        ..BenchArgs::default()
    })
}

impl MeasuringHost for HostBench<'_> {
    fn find(&mut self, volume: &str) -> Option<(PathBuf, Bytes)> {
        let root = &self.context.root;
        let mut word = OsString::from(volume);
        name_disk(&mut word, root).ok()?;
        let path = PathBuf::from(word);
        let devices = Devices::read(root).ok()?;
        let device = devices.get(number_at(root, &devices, &path)?)?;
        Some((path, device.size))
    }

    fn fill(&mut self, disk: &Path) -> Result<(), String> {
        // No consent to overwrite a signature is given.
        let consent = Consent::parse(disk.as_os_str()).map_err(|why| why.to_string())?;
        let claim = open_for_destroying(&self.context.root, disk, &[consent])
            .map_err(|refusal| format!("the new volume is not written to: {refusal}"))?;
        let failed = |why: std::io::Error| format!("{} cannot be written: {why}", disk.display());
        let mut file = claim.reopen(OFlags::CLOEXEC).map_err(failed)?;
        let mut piece = vec![0_u8; WRITE_SIZE];
        let mut state = self.args.seed | 1;
        let mut left = self.span.0;
        while left > 0 && !self.interrupt.load(Relaxed) {
            for word in piece.chunks_exact_mut(8) {
                // xorshift64: incompressible.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes());
            }
            let part = left.min(WRITE_SIZE as u64) as usize;
            file.write_all(&piece[..part]).map_err(failed)?;
            left -= part as u64;
        }
        file.sync_all().map_err(failed)
    }

    fn measure(
        &mut self,
        disk: &Path,
        spec: usize,
        round: usize,
    ) -> Result<Option<RoundMeasurement>, Failure> {
        let args = bench_args(self.args, &self.phases, self.span, disk, round)
            .map_err(Failure::refused)?;
        let ran = bench::run_once(&args, self.context, self.engine, self.interrupt);
        if self.interrupt.load(Relaxed) {
            return Ok(None);
        }
        let mut cell = RoundMeasurement {
            spec,
            round,
            run: None,
            figures: Default::default(),
            doubts: Vec::new(),
            failed: None,
        };
        match ran {
            Ok(FinishedRun { run, failed: None }) => {
                let conclusion = Conclusion::of(&run);
                let ledger = self.job.store_mut().ledger_mut();
                ledger
                    .save(&run, conclusion.verdict, &conclusion.findings)
                    .midway()?;
                let doubts = conclusion.findings.iter();
                cell.doubts = doubts
                    .filter(|finding| finding.severity > Severity::Note)
                    .map(|finding| finding.code.name().to_owned())
                    .collect();
                cell.doubts.sort();
                cell.doubts.dedup();
                cell.figures = figures_of(&run, &conclusion);
                cell.run = Some(run.id);
            }
            Ok(FinishedRun {
                failed: Some(error),
                ..
            })
            | Err(Failure::Refused(error) | Failure::Midway(error)) => {
                cell.failed = Some(sentence(&error));
            }
        }
        Ok(Some(cell))
    }

    fn save(&mut self, checkpoint: &TypeSweepCheckpoint) -> Result<(), Failure> {
        self.job.save(checkpoint).midway()
    }

    fn report(&mut self, text: &str) {
        self.context.notice(text);
    }
}
