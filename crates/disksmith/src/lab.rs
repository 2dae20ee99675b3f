//! Virtual volumes, alone or with a machine around them.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use lab::machine::{
    Accel, Accelerator, Disk, Machine, MachineOptions, Packages, Source, check_emulator,
    default_cache,
};
use lab::model::Caps;
use lab::server::{Options, Server, Volume};
use lab::spec::VolumeSpec;
use ledger::{Filter, Ledger};

use crate::cli::{AccelChoice, LabArgs, LabRunArgs, LabServeArgs, LabVerb, VolumesArgs};
use crate::context::Context;
use crate::failure::{Answer, Failure, Outcome, Standing as _};
use crate::render::json::SCHEMA;

/// How often it is looked whether the user wants the end.
const LOOK: Duration = Duration::from_millis(100);

/// Serves volumes, and runs a command beside them.
pub(crate) fn lab(args: &LabArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    match &args.verb {
        LabVerb::Run(args) => run(args, context, interrupt),
        LabVerb::Serve(args) => serve(args, context, interrupt),
    }
}

fn run(args: &LabRunArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    check_emulator().refused()?;
    let cache = args
        .cache
        .clone()
        .unwrap_or_else(|| default_cache(|name| std::env::var_os(name)));
    let packages = Packages::ensure(&cache, &mut |text| context.tell(text)).refused()?;
    let server = Server::start(&specs(&args.volumes), &options(&args.volumes)).refused()?;
    let options = machine(args, packages, &cache, &server)?;
    let started = Machine::start(&options, io::stdout(), io::stderr());
    let mut machine = started.refused()?;
    context.tell(&describe(args, &server, machine.accelerator()));
    machine.wait_until_started(interrupt).map_err(of_machine)?;
    server.begin();
    let ended = machine.wait(interrupt).map_err(of_machine)?;
    write_truth(&args.volumes, &server)?;
    if let Some(copied) = &options.ledger_out
        && copied.is_file()
    {
        keep_runs(copied, context)?;
    }
    // The power is cut by nobody here, so there is a status.
    Ok(Answer::Status(ended.status.unwrap_or(3)))
}

fn machine(
    args: &LabRunArgs,
    packages: Packages,
    cache: &Path,
    server: &Server,
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
    options.memory = args.memory.0;
    options.cpus = args.cpus;
    options.timeout = args.timeout.map(|span| span.0.into());
    // Where nobody wants it, it goes with the server's folder.
    let beside = || server.folder().join("ledger.db");
    options.ledger_out = Some(args.ledger_out.clone().unwrap_or_else(beside));
    options.state = args.state.clone();
    options.accel = match args.accel {
        AccelChoice::Auto => Accel::Auto,
        AccelChoice::Kvm => Accel::Kvm,
        AccelChoice::Emulation => Accel::Emulation,
    };
    Ok(options)
}

fn of_machine(error: lab::machine::Error) -> Failure {
    match error {
        // A pipe that nobody reads any more ends the command quietly, as everywhere.
        lab::machine::Error::Output(source) => Failure::Midway(source.into()),
        error => Failure::Midway(error.into()),
    }
}

/// Adds the machine's runs to this host's ledger: those that it does not have.
fn keep_runs(copied: &Path, context: &Context) -> Result<(), Failure> {
    let theirs = Ledger::open(copied).midway()?;
    let runs = theirs.list(&Filter::default()).midway()?;
    if runs.is_empty() {
        return Ok(());
    }
    let mut ours = context.open_ledger()?;
    let mut kept = 0;
    for summary in &runs {
        let id = summary.id.to_string();
        if ours.conclusion(&id).is_ok() {
            continue;
        }
        let run = theirs.load(&id).midway()?;
        let conclusion = theirs.conclusion(&id).midway()?;
        ours.save(&run, conclusion.verdict, &conclusion.findings)
            .midway()?;
        kept += 1;
    }
    let path = ours.path().display();
    context.tell(&format!("{kept} runs of the machine are now in {path}."));
    Ok(())
}

fn serve(args: &LabServeArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
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
    context.tell(&scaled(&args.volumes));
    while !interrupt.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    write_truth(&args.volumes, &server)?;
    Ok(Answer::Done)
}

/// Writes what each volume did and still holds, if the user wants it.
fn write_truth(volumes: &VolumesArgs, server: &Server) -> Result<(), Failure> {
    let Some(path) = &volumes.truth else {
        return Ok(());
    };
    let truths: Vec<_> = server.volumes().iter().map(Volume::truth).collect();
    let document = serde_json::json!({
        "schema": SCHEMA,
        "command": "lab",
        "volumes": truths,
    });
    std::fs::write(path, format!("{document:#}\n"))
        .with_context(|| format!("the truth could not be written to {}", path.display()))
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
        ..Options::default()
    }
}

/// What is emulated and scaled.
fn describe(args: &LabRunArgs, server: &Server, accelerator: Accelerator) -> String {
    let count = server.volumes().len();
    let volumes = match count {
        1 => "1 volume".to_owned(),
        _ => format!("{count} volumes"),
    };
    let runs_on = match accelerator {
        Accelerator::Kvm => "on KVM",
        Accelerator::Emulation if args.accel == AccelChoice::Emulation => {
            "emulated: what is computed is slow, the volumes keep their speed"
        }
        Accelerator::Emulation => {
            "emulated, since KVM does not run it here: what is computed is slow, the volumes keep \
             their speed"
        }
    };
    format!(
        "A machine with {volumes}, {runs_on}. {}",
        scaled(&args.volumes)
    )
}

fn scaled(volumes: &VolumesArgs) -> String {
    let scale = volumes.scale;
    if (scale - 1.0).abs() < f64::EPSILON {
        return "Caps are not scaled.".to_owned();
    }
    format!("Caps are scaled: IOPS and throughput are {scale} of what the volumes sell.")
}
