//! Virtual volumes, alone or with a machine that uses them.

mod boots;
mod caps;
mod failure;
mod ledger;
mod prepared;
mod tour;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::machine::Machine;
use crate::server::{Options, Server, Volume, VolumeTruth};
use anyhow::Context as _;
use serde::Serialize;

use boots::{BootSettings, POLL};
use failure::all;
use ledger::{check_new, keep_ledger};
use prepared::{PreparedLab, describe, options, specs};

use crate::args::LabArgs;
use crate::args::LabRunArgs;
use crate::args::LabServeArgs;
use crate::args::LabVerb;
use crate::args::VolumesArgs;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output;
use ui::output::{OutputFile, OutputFormat};

/// Serves volumes, or runs a command in a machine with them.
pub fn lab(args: &LabArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    match &args.verb {
        LabVerb::Run(args) => run(args, context, interrupt),
        LabVerb::Serve(args) => serve(args, context, interrupt),
        LabVerb::Tour(args) => tour::tour(args, context, interrupt),
    }
}

fn run(args: &LabRunArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    if let Some(path) = &args.ledger_out {
        check_new(path)?;
    }
    let truth = check_truth(&args.volumes)?;
    let mut prepared =
        PreparedLab::prepare(args, &mut |text| context.notice(text), interrupt).refused()?;
    let cuts = boots::cut_times(&args.cut_after, args.volumes.seed);
    if !cuts.is_empty() && prepared.options.state.is_none() {
        // The ledger must survive the power cuts; without a given path it is in the server's folder.
        prepared.options.state = Some(prepared.server.folder().join("state"));
    }
    let PreparedLab {
        server,
        options,
        copied,
    } = prepared;
    let machine = Machine::start(&options, io::stdout(), io::stderr()).refused()?;
    context.notice(&describe(args.accel, &server, machine.accelerator()));
    report_caps(&server, &args.volumes, context);
    let boots = BootSettings {
        options,
        server: &server,
        cuts: &cuts,
        interrupt,
    };
    let status = boots.until_the_end(machine, context);
    // The results are kept, however it ended.
    let kept = keep_ledger(&copied, args.ledger_out.as_deref(), context);
    let written = write_truth(truth.as_ref(), &server);
    all(context, status, [kept, written]).map(CommandEnd::Status)
}

/// The file for the counts of the volumes, which is written at the end.
fn check_truth(volumes: &VolumesArgs) -> Result<Option<OutputFile>, Failure> {
    OutputFile::check_if_any(volumes.truth.as_ref(), OutputFormat::Json, volumes.force)
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
        std::thread::sleep(POLL);
    }
    write_truth(truth.as_ref(), &server)?;
    Ok(CommandEnd::Done)
}

/// The document of `lab --truth`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TruthBody {
    /// Name and version of the program that wrote the file; a file with it may be replaced.
    generator: String,
    /// Counts of each volume.
    volumes: Vec<VolumeTruth>,
}

/// Writes the counts and the state of each volume, if requested, and the rest of the log of requests.
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

fn report_caps(server: &Server, volumes: &VolumesArgs, context: &Context) {
    for line in caps::lines(server, volumes) {
        context.notice(&line);
    }
}
