//! The tour: a narrated run on virtual volumes or, if a machine is not available, a recording of such a run.

mod cast;

use std::io;
use std::sync::atomic::AtomicBool;

use ui::charset;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};
use ui::table::wrap;

use super::boots::BootSettings;
use super::prepared::{PreparedLab, describe};
use crate::args::{LabRunArgs, LabTourArgs, VolumesArgs};
use crate::machine::{Error, Machine};
use crate::server::Volume;
use cast::Cast;
use domain::values::{Size, Span};
use record::{Bytes, Nanos};

/// The steps, for the shell of the lab's machine.
const STEPS: &str = include_str!("tour/tour.sh");

/// A run of the tour, as `docs/pictures/draw` recorded it.
const RECORDED: &str = include_str!("tour/tour.cast");

/// The disks `/dev/vda` and following, in the order in which the steps name them: a cold disk, four disks for an array
/// of which one is slow, and a spare.
const VOLUMES: [&str; 5] = [
    "cold,throughput=80MiB:192MiB",
    "2xlatency=500us,throughput=100MiB:64MiB",
    "latency=12ms,throughput=100MiB:64MiB",
    "latency=500us,throughput=100MiB:64MiB",
    "latency=500us,throughput=100MiB:64MiB",
];

/// Data of the cold volume, as if restored from a snapshot: its blocks stay cold.
const PREPARE: &str = "yes 'a row of the database' | \
    dd of=/dev/vda bs=1M count=192 iflag=fullblock oflag=direct 2>/dev/null";

/// Maximum width of the answers in columns: the width of the recording.
const COLUMNS: usize = 100;

/// Runs the tour, or plays the recording.
pub(super) fn tour(args: &LabTourArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    if args.recorded {
        return play(args, context, interrupt);
    }
    let run = arguments(args, context)?;
    let prepared = match PreparedLab::prepare(&run, &mut |text| context.notice(text), interrupt) {
        Ok(prepared) => prepared,
        Err(error) if lacks_machine(&error) => {
            context.notice(&format!(
                "disksmith: {}\nUntil then, this is a recording of the tour:",
                sentence(&error)
            ));
            return play(args, context, interrupt);
        }
        Err(error) => return Err(Failure::Refused(error)),
    };
    let machine = Machine::start(&prepared.options, io::stdout(), io::stderr()).refused()?;
    context.notice(&describe(
        run.accel,
        &prepared.server,
        machine.accelerator(),
    ));
    let boots = BootSettings {
        options: prepared.options,
        server: &prepared.server,
        cuts: &[],
        interrupt,
    };
    let status = boots.until_the_end(machine, context)?;
    let truth = truth(prepared.server.volumes());
    let columns = context.columns.min(COLUMNS);
    context.print(&format!("\n{}\n", wrap(&truth, columns, "")))?;
    Ok(CommandEnd::Status(status))
}

/// A part of the machine is not available on this host.
fn lacks_machine(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<Error>()
        .is_some_and(|error| !matches!(error, Error::Interrupted))
}

/// The machine of the tour.
fn arguments(args: &LabTourArgs, context: &Context) -> Result<LabRunArgs, Failure> {
    let groups: Result<Vec<_>, _> = VOLUMES.iter().map(|volumes| volumes.parse()).collect();
    let command = ["sh".into(), "-c".into(), script(context).into()];
    Ok(LabRunArgs {
        volumes: VolumesArgs {
            groups: groups.refused()?,
            scale: 1.0,
            instance_iops: None,
            instance_throughput: None,
            instance_most_iops: None,
            instance_most_throughput: None,
            instance_burst: Span(Nanos(0)),
            truth: None,
            force: false,
            requests: None,
            seed: 0,
        },
        memory: Size(Bytes::gib(1)),
        cpus: 2,
        timeout: None,
        cache: args.cache.clone(),
        binary: None,
        ledger_out: None,
        state: None,
        cut_after: Vec::new(),
        prepare: Some(PREPARE.into()),
        copy: Vec::new(),
        accel: args.accel,
        command: command.into(),
    })
}

/// The script of the steps, with the width, symbols and styles of this terminal.
fn script(context: &Context) -> String {
    let columns = context.columns.min(COLUMNS);
    let locale = if charset::is_unicode() {
        "C.UTF-8"
    } else {
        "C"
    };
    let [bold, plain] = match has_styles(context) {
        true => [cast::BOLD, cast::PLAIN],
        false => [""; 2],
    };
    format!("export COLUMNS={columns} LC_ALL={locale}\nBOLD='{bold}' PLAIN='{plain}'\n{STEPS}")
}

/// True if bold text is shown as bold (no-color.org leaves it to programs whether `NO_COLOR` disables bold, too).
fn has_styles(context: &Context) -> bool {
    context.answers_a_person && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

/// The lab's own counts, to compare with the findings of the steps.
fn truth(volumes: &[Volume]) -> String {
    let cold = volumes
        .first()
        .map(|volume| volume.truth().cold_blocks_left);
    format!(
        "By the lab's own count: {} cold blocks are left on /dev/vda; /dev/vdd answers in 12 ms, the other \
         members in 0.5 ms; 64 KiB of /dev/vdb were overwritten.",
        cold.unwrap_or_default()
    )
}

fn play(args: &LabTourArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let cast = Cast::parse(RECORDED).refused()?;
    // Delays are only useful for a person at a terminal.
    let speed = context.answers_a_person.then_some(args.speed);
    let has_styles = has_styles(context);
    let columns = context.columns;
    cast.play(&mut context.out, columns, has_styles, speed, interrupt)
        .midway()?;
    Ok(CommandEnd::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_of_these_steps_and_each_answer_in_it_is_true() {
        let mut out = Vec::new();
        let never = AtomicBool::new(false);
        let cast = Cast::parse(RECORDED).unwrap();
        cast.play(&mut out, usize::MAX, false, None, &never)
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        for words in [
            "slow-member vdd",
            "cannot be told  /data/ibdata1",
            "By the lab's own count: 0 cold blocks",
        ] {
            assert!(text.contains(words), "no '{words}' in {text}");
        }
        assert!(!text.contains("calls for"), "{text}");
        // The recording contains the commands of the steps, as in the script.
        let steps = STEPS.lines().filter_map(|line| {
            let (_, command) = line.strip_prefix("run ")?.split_once(" '")?;
            Some(command.trim_end_matches(['\'', '\\']))
        });
        let steps: Vec<&str> = steps.collect();
        assert!(steps.len() > 10, "{steps:?}");
        for step in steps {
            assert!(text.contains(&format!("$ {step}")), "no '{step}' in {text}");
        }
    }
}
