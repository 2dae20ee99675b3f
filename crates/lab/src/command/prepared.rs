//! Volumes and a machine that are ready to be started, according to the arguments.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;

use crate::args::{AccelChoice, LabRunArgs, VolumesArgs};
use crate::machine::{
    Accel, Accelerator, Disk, DiskContent, MachineOptions, Packages, check_emulator, default_cache,
};
use crate::model::Caps;
use crate::server::{Options, Server};
use crate::spec::VolumeSpec;

/// Served volumes, and the machine for them, which is not started.
pub(super) struct PreparedLab {
    /// The volumes.
    pub server: Server,
    /// The machine and its command.
    pub options: MachineOptions,
    /// Path at which the machine's ledger arrives, in the server's folder.
    pub copied: PathBuf,
}

impl PreparedLab {
    /// Downloads kernel and tools if they are not in the cache, and serves the volumes. No fault occurs, and no block
    /// becomes warm, before the command begins.
    ///
    /// # Errors
    /// When a part of the machine is not available on this host, or the volumes cannot be served.
    pub(super) fn prepare(
        args: &LabRunArgs,
        notice: &mut dyn FnMut(&str),
        interrupt: &AtomicBool,
    ) -> anyhow::Result<PreparedLab> {
        check_emulator()?;
        let cache = args
            .cache
            .clone()
            .unwrap_or_else(|| default_cache(|name| std::env::var_os(name)));
        let packages = Packages::ensure_unless(&cache, notice, interrupt)?;
        let wanted = Options {
            hold: true,
            ..options(&args.volumes)
        };
        let server = Server::start(&specs(&args.volumes), &wanted)?;
        // It is copied to the requested path when it is complete.
        let copied = server.folder().join("ledger.db");
        let options = machine(args, packages, &cache, &server, &copied)?;
        Ok(PreparedLab {
            server,
            options,
            copied,
        })
    }
}

fn machine(
    args: &LabRunArgs,
    packages: Packages,
    cache: &Path,
    server: &Server,
    copied: &Path,
) -> anyhow::Result<MachineOptions> {
    let own = std::env::current_exe().context("this program's own file could not be found");
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => own?,
    };
    let mut options = MachineOptions::new(packages, cache, &binary, args.command.clone());
    options.disks = server
        .volumes()
        .iter()
        .map(|volume| Disk {
            source: DiskContent::Socket {
                path: volume.socket().to_path_buf(),
                export: String::new(),
            },
            serial: volume.serial().to_owned(),
        })
        .collect();
    options.prepare = args.prepare.clone();
    options.copies = args.copy.clone();
    // What is logged are the machine's own requests.
    options.merge = args.volumes.requests.is_none();
    options.memory = args.memory.0;
    options.cpus = args.cpus;
    options.timeout = args.timeout.map(|span| span.0.into());
    options.ledger_out = Some(copied.to_path_buf());
    options.state = args.state.clone();
    options.accel = match args.accel {
        AccelChoice::Auto => Accel::Auto,
        AccelChoice::Kvm => Accel::Kvm,
        AccelChoice::Emulation => Accel::Emulation,
    };
    Ok(options)
}

/// The specifications of the requested volumes.
pub(super) fn specs(volumes: &VolumesArgs) -> Vec<VolumeSpec> {
    let groups = volumes.groups.iter();
    groups.flat_map(|group| group.volumes()).collect()
}

/// The options of the server of volumes, without places at which clients find it.
pub(super) fn options(volumes: &VolumesArgs) -> Options {
    Options {
        scale: volumes.scale,
        seed: volumes.seed,
        instance: Caps {
            iops: volumes.instance_iops,
            throughput: volumes.instance_throughput.map(|size| size.0),
            most_iops: volumes.instance_most_iops,
            most_throughput: volumes.instance_most_throughput.map(|size| size.0),
            burst: volumes.instance_burst.0,
        },
        requests: volumes.requests.clone(),
        ..Options::default()
    }
}

/// The emulated volumes.
pub(super) fn describe(accel: AccelChoice, server: &Server, accelerator: Accelerator) -> String {
    let count = server.volumes().len();
    let volumes = match count {
        1 => "1 volume".to_owned(),
        _ => format!("{count} volumes"),
    };
    let runs_on = match accelerator {
        Accelerator::Kvm => "on KVM",
        Accelerator::Emulation if accel == AccelChoice::Emulation => {
            "emulated: computation is slow, the volumes keep their speed"
        }
        Accelerator::Emulation => {
            "emulated, since KVM does not work here: computation is slow, the volumes keep \
             their speed"
        }
    };
    format!("A machine with {volumes}, {runs_on}.")
}
