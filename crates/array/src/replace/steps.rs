//! The steps of an exchange, each with its undo. The array stays in use, and no step reduces its redundancy.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use linux::exec;
use linux::md;
use ui::progress;

use super::super::create::{Erase, check_paths};
use super::super::host::ArrayHost;
use super::super::steps::{BuildStep, UndoResult};
use super::super::{superblock, teardown};
use super::exchange::{Exchange, ExchangeMethod, member, serves};

/// Interval at which the copying is examined.
const POLL: Duration = Duration::from_millis(500);

/// Maximum number of attempts to remove a device: md keeps a failed one until its superblocks are updated.
const REMOVALS: u32 = 60;

const BAR_TEMPLATE: &str = "{prefix} [{bar:20}] {bytes} of {total_bytes}";

/// Steps of an exchange, in their order.
pub(super) fn steps<'i, 'h: 'i>(
    exchange: &Exchange,
    interrupt: &'i AtomicBool,
) -> Vec<Box<dyn BuildStep<ArrayHost<'h>> + 'i>> {
    let mut steps: Vec<Box<dyn BuildStep<ArrayHost<'h>> + 'i>> = Vec::new();
    let of = || exchange.clone();
    if let Some(member) = &exchange.claimed {
        if member.signed {
            steps.push(Box::new(Erase::of(std::slice::from_ref(member))));
        }
        steps.push(Box::new(Add {
            exchange: of(),
            begun: false,
        }));
    }
    if matches!(
        exchange.course,
        ExchangeMethod::Replace | ExchangeMethod::Continue
    ) {
        steps.push(Box::new(Replace {
            exchange: of(),
            begun: false,
        }));
    }
    if exchange.course != ExchangeMethod::Spare {
        steps.push(Box::new(Wait {
            exchange: of(),
            interrupt,
        }));
    }
    steps.push(Box::new(Remove(of())));
    if !exchange.erase.is_empty() {
        steps.push(Box::new(EraseOld {
            exchange: of(),
            erased: Vec::new(),
        }));
    }
    steps
}

/// Adds the disk to the array.
struct Add {
    exchange: Exchange,
    begun: bool,
}

impl BuildStep<ArrayHost<'_>> for Add {
    fn name(&self) -> String {
        format!("adding {}", self.exchange.new.path.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let exchange = &self.exchange;
        let claimed = exchange.claimed.iter().cloned().collect::<Vec<_>>();
        check_paths(host, &claimed)?;
        self.begun = true;
        // mdadm claims it itself.
        host.claims.clear();
        host.run(&exchange.add(&exchange.new.path))?;
        let array = exchange.now(host)?;
        if member(&array, exchange.new.number).is_none() {
            bail!(
                "mdadm reports no error, but {} has not the disk {} that was checked",
                exchange.node.display(),
                exchange.new.path.display()
            );
        }
        Ok(())
    }

    fn undo(&mut self, host: &mut ArrayHost) -> Vec<UndoResult> {
        if !self.begun {
            return Vec::new();
        }
        let exchange = &self.exchange;
        let mut undone: Vec<UndoResult> = give_up(host, exchange, false).into_iter().collect();
        let array = exchange.now(host);
        let is_out = array.is_ok_and(|array| member(&array, exchange.new.number).is_none());
        if is_out {
            undone.extend(teardown::release(host, &exchange.uuid, &exchange.new.path));
        }
        undone
    }
}

/// Begins to copy.
struct Replace {
    exchange: Exchange,
    begun: bool,
}

impl BuildStep<ArrayHost<'_>> for Replace {
    fn name(&self) -> String {
        format!("replacing {}", self.exchange.old.path.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        self.begun = true;
        if self.exchange.course == ExchangeMethod::Replace {
            host.run(&self.exchange.copy())?;
        }
        Ok(())
    }

    /// A disk that was added is taken out by the undo of that. A hot spare of the array becomes one again.
    fn undo(&mut self, host: &mut ArrayHost) -> Vec<UndoResult> {
        if !self.begun || self.exchange.claimed.is_some() {
            return Vec::new();
        }
        give_up(host, &self.exchange, true).into_iter().collect()
    }
}

/// Waits until the disk has all of the contents.
struct Wait<'i> {
    exchange: Exchange,
    interrupt: &'i AtomicBool,
}

impl BuildStep<ArrayHost<'_>> for Wait<'_> {
    fn name(&self) -> String {
        format!("copying to {}", self.exchange.new.path.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let exchange = &self.exchange;
        let shown = exchange.new.path.display().to_string();
        (host.report)(&format!(
            "md copies to {shown}; the array can be used meanwhile.\n"
        ));
        let bar = progress::alone(None, BAR_TEMPLATE);
        bar.set_prefix(self.name());
        while !self.interrupt.load(Ordering::Relaxed) {
            let array = exchange.now(host)?;
            let new = member(&array, exchange.new.number)
                .with_context(|| format!("{shown} is no longer in the array"))?;
            if serves(new) {
                break;
            }
            if new.has("faulty") {
                bail!("{shown} has failed while it was written");
            }
            if let Some((done, of)) = array.position {
                bar.set_length(of.0);
                bar.set_position(done.0);
            }
            std::thread::sleep(POLL);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        Vec::new()
    }
}

/// Removes the old member. md has marked it faulty when the copy was complete.
struct Remove(Exchange);

impl BuildStep<ArrayHost<'_>> for Remove {
    fn name(&self) -> String {
        format!("taking {} out", self.0.old.path.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let exchange = &self.0;
        remove(host, exchange, &exchange.old.path)?;
        let array = exchange.now(host)?;
        if member(&array, exchange.old.number).is_some() {
            bail!("mdadm reports no error, but it is still in the array");
        }
        Ok(())
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        Vec::new()
    }
}

/// Erases the superblock of the old member.
struct EraseOld {
    exchange: Exchange,
    erased: Vec<PathBuf>,
}

impl BuildStep<ArrayHost<'_>> for EraseOld {
    fn name(&self) -> String {
        format!(
            "erasing the superblock of {}",
            self.exchange.old.path.display()
        )
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let Exchange { old, erase, .. } = &self.exchange;
        let claim = superblock::claim(host, &old.path, erase)?;
        if claim.device != Some(old.number) {
            bail!(
                "{} no longer leads to the device that was checked",
                old.path.display()
            );
        }
        superblock::erase(host, &[claim], &mut self.erased)
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        let shown = self.exchange.old.path.display();
        match self.erased.is_empty() {
            true => vec![UndoResult::Leftover(format!(
                "{shown} is out of the array and may still carry its superblock"
            ))],
            false => vec![UndoResult::Leftover(format!(
                "the superblock of {shown} is erased"
            ))],
        }
    }
}

/// Removes a device from the array.
fn remove(host: &mut ArrayHost, exchange: &Exchange, path: &Path) -> Result<(), exec::Error> {
    host.run_with_retries(&exchange.remove(path).bound(), REMOVALS, POLL)
}

/// Removes the new disk again, unless it is in use and md has given up the old member. `None` if there is nothing to
/// remove. md is stopped first, so that the copy does not complete between the check and the removal. With `is_spare`
/// the disk becomes a hot spare again.
fn give_up(host: &mut ArrayHost, exchange: &Exchange, is_spare: bool) -> Option<UndoResult> {
    let shown = exchange.new.path.display().to_string();
    let halted = write(host, exchange, "sync_action", "frozen");
    let outcome = halted.and_then(|()| take_out(host, exchange, is_spare));
    let resumed = write(host, exchange, "sync_action", "idle");
    match outcome.and_then(|outcome| resumed.map(|()| outcome)) {
        Ok(undone) => undone,
        Err(error) => Some(UndoResult::Leftover(format!(
            "{shown} in {}: {error:#}",
            exchange.node.display()
        ))),
    }
}

fn take_out(
    host: &mut ArrayHost,
    exchange: &Exchange,
    is_spare: bool,
) -> anyhow::Result<Option<UndoResult>> {
    let path = &exchange.new.path;
    let shown = path.display();
    let array = exchange.now(host)?;
    let Some(new) = member(&array, exchange.new.number) else {
        return Ok(None);
    };
    if serves(new) {
        return Ok(Some(UndoResult::Leftover(format!(
            "{shown} has the place of {}",
            exchange.old.path.display()
        ))));
    }
    let waits = new.is_spare();
    if !waits && !new.has("faulty") {
        host.run(&exchange.fail(path).bound())?;
    }
    if !(waits && is_spare) {
        remove(host, exchange, path)?;
    }
    want_no_replacement(host, exchange, &array)?;
    if is_spare && !waits {
        host.run(&exchange.add(path).bound())?;
    }
    Ok(Some(UndoResult::Reverted(match is_spare {
        true => format!("{shown} is a hot spare again"),
        false => format!("{shown} was taken out of the array"),
    })))
}

/// Withdraws the request by which md would replace the old member with the next available spare.
fn want_no_replacement(
    host: &mut ArrayHost,
    exchange: &Exchange,
    array: &md::Array,
) -> anyhow::Result<()> {
    let old = member(array, exchange.old.number);
    let Some(old) = old.filter(|old| old.has("want_replacement")) else {
        return Ok(());
    };
    let file = format!("dev-{}/state", old.name.replace('/', "!"));
    write(host, exchange, &file, "-want_replacement")
}

/// Writes a word to a file of the array in sysfs.
fn write(host: &mut ArrayHost, exchange: &Exchange, file: &str, word: &str) -> anyhow::Result<()> {
    let below = Path::new("class/block")
        .join(&exchange.sysfs_name)
        .join("md")
        .join(file);
    (host.report)(&format!("+ echo {word} > /sys/{}\n", below.display()));
    let path = host.root.sys.join(&below);
    std::fs::write(&path, word).with_context(|| format!("{} cannot be written", path.display()))
}
