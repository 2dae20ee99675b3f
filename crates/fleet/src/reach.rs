//! The hosts that arguments name, and the transport to them.

use std::path::PathBuf;

use bench::descriptors;
use ui::exit::{ExitClass as _, Failure};

use crate::args::{ReachArgs, SourceArgs};
use crate::connection::{OpenSsh, Program};
use crate::hosts::{Host, HostList, Selection, Source};

/// The hosts that the arguments name.
///
/// # Errors
/// Refused, for all problems of the source, or if no host is left.
pub(crate) fn find(args: &SourceArgs) -> Result<HostList, Failure> {
    let source = match (&args.list, &args.hosts, &args.inventory) {
        (Some(list), ..) => Source::List(list.clone()),
        (None, Some(sets), _) => Source::Named(sets.clone()),
        (None, None, Some(inventory)) => Source::Inventory(inventory.clone()),
        (None, None, None) => Source::Ec2(args.ec2.clone(), args.address),
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let found = source
        .ask(home.as_deref())
        .map_err(|problems| Failure::refused_for("there are no hosts", &problems))?;
    let selection = Selection {
        include: args.include.clone(),
        exclude: args.exclude.clone(),
    };
    let hosts: Vec<Host> = selection.of(found.hosts).map_err(Failure::refused)?;
    Ok(HostList { hosts, ..found })
}

/// The transport to the hosts that the arguments request.
///
/// # Errors
/// Refused, if the program to send cannot be read.
pub(crate) fn reach(args: &ReachArgs) -> Result<OpenSsh, Failure> {
    let mut programs = args
        .binary
        .iter()
        .map(|path| Program::read(path))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::refused)?;
    if programs.is_empty() {
        programs.push(Program::own().map_err(Failure::refused)?);
    }
    Ok(OpenSsh {
        programs,
        ..connection(args)
    })
}

/// The transport that the arguments request, without a program to send.
pub(crate) fn connection(args: &ReachArgs) -> OpenSsh {
    OpenSsh {
        config: args.ssh_config.clone(),
        user: args.user.clone(),
        connect_timeout: std::time::Duration::from_nanos(args.connect.0.0),
        sudo: args.sudo,
        programs: Vec::new(),
    }
}

/// Number of descriptors of a connection to ssh: its three pipes.
const CONNECTION_DESCRIPTORS: u64 = 3;
/// Number of descriptors of a connection that is being established: also the other ends of its pipes, and the pipe
/// that reports that a program cannot be executed.
const START_DESCRIPTORS: u64 = 8;

/// Raises the limit of open files for this number of connections: some that are being established at the same time,
/// and some that stay open. `fewer` names the option to lower if the limit is too low.
///
/// # Errors
/// Refused, if that exceeds the hard limit of open files. Otherwise hosts would later be reported as dead that were
/// never tried.
pub(crate) fn allow_connections(
    starting: usize,
    staying: usize,
    fewer: &str,
) -> Result<(), Failure> {
    let needed = START_DESCRIPTORS * starting as u64 + CONNECTION_DESCRIPTORS * staying as u64;
    descriptors::allow(needed, fewer).refused()
}
