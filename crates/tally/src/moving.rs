//! `tally move`: moves rows from one store to another, piece by piece.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::args::MoveArgs;
use crate::level::{MAX_TIME, MIN_TIME, RollUpLevel, Seconds};
use crate::pipeline::now;
use crate::places::refused;
use crate::query::Series;
use crate::store::StoreError;
use crate::store::piece::{Movable, MovedRows};
use ui::context::Context;
use ui::exit::{CommandEnd, Failure, Outcome};
use ui::format::count;

/// Maximum number of tags in a slice.
const TAGS: usize = 100;

/// Runs `tally move`.
pub(crate) fn run(args: &MoveArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    if args.from == args.to {
        return Err(Failure::refused(
            "--from and --to name the same store; nothing is to be moved",
        ));
    }
    let mut archive = args.from.open_archive().map_err(refused)?;
    let settings = archive.settings().clone();
    let tags = match &args.tag {
        None => None,
        Some(selection) => {
            let entries = archive.entries().map_err(refused)?.into_iter();
            let chosen = entries.filter(|entry| selection.holds(&Series::of(&entry.name)));
            Some(chosen.map(|entry| entry.id).collect())
        }
    };
    drop(archive);
    let from = args.from.open_movable(&settings).map_err(refused)?;
    let to = args.to.open_movable(&settings).map_err(refused)?;
    let since = args.since.map_or(MIN_TIME, |when| when.at.as_second());
    let until = args.until.map_or(MAX_TIME, |when| {
        when.day_ends.unwrap_or(when.at).as_second()
    });
    let mut moving = StoreMove {
        target: args.to.to_string(),
        from,
        to,
        rows: 0,
    };
    let done = moving.all(&slices(tags, since..until), interrupt);
    let moved = count(moving.rows, "row");
    match done {
        Ok(true) => {
            context.print(&format!(
                "Moved {moved} from {} to {}.\n",
                args.from, args.to
            ))?;
            Ok(CommandEnd::Done)
        }
        Ok(false) => Err(Failure::Midway(anyhow::anyhow!(
            "stopped after {moved}; the same command moves the rest"
        ))),
        // No row was moved yet.
        Err(StoreError::Refused(error)) if moving.rows == 0 => Err(Failure::Refused(error)),
        Err(error) => Err(Failure::Midway(anyhow::anyhow!(
            "{error}. {moved} are moved; the same command moves the rest"
        ))),
    }
}

/// Slices of all levels, with as many tags each as a statement may have.
fn slices(tags: Option<Vec<i64>>, range: Range<Seconds>) -> Vec<MovedRows> {
    let groups: Vec<Option<Vec<i64>>> = match tags {
        None => vec![None],
        Some(tags) => tags.chunks(TAGS).map(|tags| Some(tags.to_vec())).collect(),
    };
    let of_level = |level| groups.iter().map(move |tags| (level, tags.clone()));
    RollUpLevel::ALL
        .into_iter()
        .flat_map(of_level)
        .map(|(level, tags)| MovedRows {
            level,
            tags,
            range: range.clone(),
        })
        .collect()
}

/// A move of rows between two stores.
struct StoreMove {
    from: Box<dyn Movable>,
    to: Box<dyn Movable>,
    /// Address of the store that the rows go to.
    target: String,
    rows: usize,
}

impl StoreMove {
    /// Delivers the piece that an earlier run left undelivered, then moves the slices; false if it was stopped.
    fn all(&mut self, slices: &[MovedRows], interrupt: &AtomicBool) -> Result<bool, StoreError> {
        self.deliver()?;
        self.from.roll_over(now())?;
        for slice in slices {
            while self.from.take_out(slice, &self.target)? {
                self.deliver()?;
                if interrupt.load(Relaxed) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Delivers the piece that was taken out, if there is one.
    fn deliver(&mut self) -> Result<(), StoreError> {
        let Some(pending) = self.from.pending()? else {
            return Ok(());
        };
        if pending.target != self.target {
            return Err(StoreError::refused(format!(
                "{} has rows on their way to {}, of a move that was not finished; run it again first, with --to {}",
                self.from.address(),
                pending.target,
                pending.target
            )));
        }
        let name = self.from.name()?;
        self.to.put(&name, &pending, now())?;
        self.from.remove(pending.number)?;
        self.rows += pending.piece.rows.len();
        Ok(())
    }
}
