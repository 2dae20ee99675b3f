//! Checks of a plan against its target: consent, trims, zones and alignment.

use std::collections::BTreeSet;

use linux::{Root, offload, zoned};
use record::{Bytes, Stride, Workload};

use super::plan::FioPlan;
use super::stream::details;
use crate::target::Prepared;
use ui::exit::Failure;

impl FioPlan {
    /// Checks that the target may be written, where a job writes. Unlike a suite, a job file is not run
    /// without some of its jobs.
    ///
    /// # Errors
    /// Names the jobs that would write.
    pub(super) fn check_consent(&self, prepared: &Prepared) -> Result<(), Failure> {
        let streams = self.walls.iter().flatten();
        let writing: BTreeSet<&str> = streams
            .filter(|stream| stream.workload.writes())
            .map(|stream| stream.job.as_str())
            .collect();
        if prepared.writable || writing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = writing.into_iter().collect();
        Err(Failure::refused(format!(
            "{} would write, and an existing file or device is only read unless --destroy names \
             it; nothing was run",
            names.join(", ")
        )))
    }

    /// Checks that the target is a device that takes discards, where a job trims.
    ///
    /// # Errors
    /// Names a job that trims, and what the target is.
    pub(super) fn check_trims(&self, root: &Root, prepared: &Prepared) -> Result<(), Failure> {
        let mut streams = self.walls.iter().flatten();
        let Some(trimming) = streams.find(|stream| stream.workload.discards()) else {
            return Ok(());
        };
        let (job, path) = (&trimming.job, &prepared.target.path);
        let Some(device) = prepared.block_device(root)? else {
            return Err(Failure::refused(format!(
                "{job} trims, which only block devices take, and {path} is none; give a device"
            )));
        };
        match offload::takes_discards(root, &device) {
            true => Ok(()),
            false => Err(Failure::refused(format!(
                "{job} trims, and {path} takes no discards (queue/discard_max_bytes is 0); leave the job out"
            ))),
        }
    }

    /// Checks that the target is not a zoned block device, where a job uses it as one (`zonemode=zbd`).
    ///
    /// # Errors
    /// Names such a job.
    pub(super) fn check_zones(&self, root: &Root, prepared: &Prepared) -> Result<(), Failure> {
        let mut streams = self.walls.iter().flatten();
        let Some(with_zones) = streams.find(|stream| stream.zoned) else {
            return Ok(());
        };
        let (job, path) = (&with_zones.job, &prepared.target.path);
        let Some(device) = prepared.block_device(root)? else {
            return Ok(());
        };
        match zoned::model(root, &device) {
            None => Ok(()),
            Some(model) => Err(Failure::refused(format!(
                "{job} has zonemode=zbd, and {path} is a zoned block device ({model}); zones are done on devices \
                 without any, and those of a zoned one by fio"
            ))),
        }
    }

    /// Checks that requests that bypass the page cache are multiples of the device's block.
    ///
    /// # Errors
    /// Names the job and its smallest block.
    pub(super) fn check_alignment(&self, prepared: &Prepared) -> Result<(), anyhow::Error> {
        let streams = self.walls.iter().flatten();
        for stream in streams.filter(|stream| stream.direct || stream.workload.discards()) {
            let unit = prepared.alignment.0.max(1);
            let offset = details(&stream.workload).map_or(0, |details| details.offset.0);
            let sizes = sizes(&stream.workload);
            if let Some(size) = sizes
                .into_iter()
                .chain([offset])
                .chain(aligned(&stream.workload))
                .find(|size| size % unit != 0)
            {
                return Err(anyhow::anyhow!(
                    "{}: direct I/O on {} needs blocks and offsets that are multiples of {}, and \
                     {} is not",
                    stream.job,
                    prepared.target.path,
                    prepared.alignment,
                    Bytes(size)
                ));
            }
        }
        Ok(())
    }
}

/// Offsets and sizes that must be aligned: given alignments, and steps between requests.
fn aligned(workload: &Workload) -> Vec<u64> {
    let Some(details) = details(workload) else {
        return Vec::new();
    };
    let aligned =
        [details.read_align, details.write_align].map(|align| align.unwrap_or(Bytes(0)).0);
    let stride = match details.stride {
        None => vec![],
        Some(Stride::Add(add)) => vec![add.unsigned_abs()],
        Some(Stride::Zones { size, range, skip }) => vec![size.0, range.0, skip.0],
    };
    let zone = details.write_zones.map(|zones| zones.range.0);
    aligned.into_iter().chain(stride).chain(zone).collect()
}

/// All sizes of requests of a workload, in bytes.
fn sizes(workload: &Workload) -> Vec<u64> {
    let shares = details(workload).into_iter().flat_map(|details| {
        details
            .read_sizes
            .iter()
            .chain(&details.write_sizes)
            .map(|share| share.size.0)
    });
    let all: Vec<u64> = shares.collect();
    if all.is_empty() {
        vec![workload.block.0]
    } else {
        all
    }
}
