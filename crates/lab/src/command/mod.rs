//! Virtual volumes, alone or with a machine around them.

mod boots;
mod caps;
mod failure;
mod ledger;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::machine::{
    Accel, Accelerator, Disk, Machine, MachineOptions, Packages, Source, check_emulator,
    default_cache,
};
use crate::model::Caps;
use crate::server::{Options, Server, Truth, Volume};
use crate::spec::VolumeSpec;
use anyhow::Context as _;
use serde::Serialize;

use boots::{Boots, LOOK};
use failure::all;
use ledger::{check_new, keep_ledger};

use crate::args::AccelChoice;
use crate::args::LabArgs;
use crate::args::LabRunArgs;
use crate::args::LabServeArgs;
use crate::args::LabVerb;
use crate::args::VolumesArgs;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};
use ui::output;
use ui::output::{Format, OutputFile};

/// Serves volumes, and runs a command next to them.
pub fn lab(args: &LabArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    match &args.verb {
        LabVerb::Run(args) => run(args, context, interrupt),
        LabVerb::Serve(args) => serve(args, context, interrupt),
    }
}

fn run(args: &LabRunArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    if let Some(path) = &args.ledger_out {
        check_new(path)?;
    }
    let truth = check_truth(&args.volumes)?;
    check_emulator().refused()?;
    let cache = args
        .cache
        .clone()
        .unwrap_or_else(|| default_cache(|name| std::env::var_os(name)));
    let packages =
        Packages::ensure_unless(&cache, &mut |text| context.notice(text), interrupt).refused()?;
    let wanted = Options {
        hold: true,
        ..options(&args.volumes)
    };
    let server = Server::start(&specs(&args.volumes), &wanted).refused()?;
    // It arrives in the server's folder, and is put where the user wants it when it is whole.
    let copied = server.folder().join("ledger.db");
    let cuts = boots::cut_times(&args.cut_after, args.volumes.seed);
    let mut options = machine(args, packages, &cache, &server, &copied)?;
    if !cuts.is_empty() && options.state.is_none() {
        // The ledger must outlive the cuts. Without a place for it, it does so in the server's folder.
        options.state = Some(server.folder().join("state"));
    }
    let machine = Machine::start(&options, io::stdout(), io::stderr()).refused()?;
    context.notice(&describe(args, &server, machine.accelerator()));
    report_caps(&server, &args.volumes, context);
    let boots = Boots {
        options,
        server: &server,
        cuts: &cuts,
        interrupt,
    };
    let status = boots.until_the_end(machine, context);
    // However it ended, what is known is kept.
    let kept = keep_ledger(&copied, args.ledger_out.as_deref(), context);
    let written = write_truth(truth.as_ref(), &server);
    all(context, status, [kept, written]).map(Answer::Status)
}

fn machine(
    args: &LabRunArgs,
    packages: Packages,
    cache: &Path,
    server: &Server,
    copied: &Path,
) -> Result<MachineOptions, Failure> {
    let own = std::env::current_exe().context("this program's own file could not be found");
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => own.refused()?,
    };
    let mut options = MachineOptions::new(packages, cache, &binary, args.command.clone());
    options.disks = server
        .volumes()
        .iter()
        .map(|volume| Disk {
            source: Source::Socket {
                path: volume.socket().to_path_buf(),
                export: String::new(),
            },
            serial: volume.serial().to_owned(),
        })
        .collect();
    options.prepare = args.prepare.clone();
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

/// The file for the truth, which is written at the end.
fn check_truth(volumes: &VolumesArgs) -> Result<Option<OutputFile>, Failure> {
    OutputFile::check_if_any(volumes.truth.as_ref(), Format::Json, volumes.force)
}

fn serve(args: &LabServeArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let truth = check_truth(&args.volumes)?;
    let options = Options {
        folder: args.socket_dir.clone(),
        listen: args.listen,
        ..options(&args.volumes)
    };
    let server = Server::start(&specs(&args.volumes), &options).refused()?;
    for volume in server.volumes() {
        let socket = volume.socket().display();
        let line = format!(
            "{}  {}  nbd+unix:///?socket={socket}\n",
            volume.serial(),
            volume.size()
        );
        context.print(&line)?;
    }
    if let Some(address) = server.address() {
        for volume in server.volumes() {
            context.print(&format!("{}  nbd://{address}/{0}\n", volume.serial()))?;
        }
    }
    report_caps(&server, &args.volumes, context);
    while !interrupt.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    write_truth(truth.as_ref(), &server)?;
    Ok(Answer::Done)
}

/// Body of the document of `lab --truth`.
#[derive(Serialize)]
struct TruthBody {
    /// The program that wrote it, by which it may be replaced.
    generator: String,
    volumes: Vec<Truth>,
}

/// Writes what each volume did and still holds, if the user wants it, and the rest of the log of requests.
fn write_truth(truth: Option<&OutputFile>, server: &Server) -> Result<(), Failure> {
    let logged = server.finish_requests();
    logged
        .context("the log of requests could not be written")
        .midway()?;
    let Some(output) = truth else {
        return Ok(());
    };
    let body = TruthBody {
        generator: output::generator(),
        volumes: server.volumes().iter().map(Volume::truth).collect(),
    };
    output
        .write(ui::json::document("lab", &body).as_bytes())
        .midway()
}

fn specs(volumes: &VolumesArgs) -> Vec<VolumeSpec> {
    let groups = volumes.groups.iter();
    groups.flat_map(|group| group.volumes()).collect()
}

fn options(volumes: &VolumesArgs) -> Options {
    Options {
        scale: volumes.scale,
        seed: volumes.seed,
        instance: Caps {
            iops: volumes.instance_iops,
            throughput: volumes.instance_throughput.map(|size| size.0),
        },
        requests: volumes.requests.clone(),
        ..Options::default()
    }
}

fn report_caps(server: &Server, volumes: &VolumesArgs, context: &Context) {
    for line in caps::lines(server, volumes) {
        context.notice(&line);
    }
}

/// The emulated volumes.
fn describe(args: &LabRunArgs, server: &Server, accelerator: Accelerator) -> String {
    let count = server.volumes().len();
    let volumes = match count {
        1 => "1 volume".to_owned(),
        _ => format!("{count} volumes"),
    };
    let runs_on = match accelerator {
        Accelerator::Kvm => "on KVM",
        Accelerator::Emulation if args.accel == AccelChoice::Emulation => {
            "emulated: computation is slow, the volumes keep their speed"
        }
        Accelerator::Emulation => {
            "emulated, since KVM does not work here: computation is slow, the volumes keep \
             their speed"
        }
    };
    format!("A machine with {volumes}, {runs_on}.")
}
