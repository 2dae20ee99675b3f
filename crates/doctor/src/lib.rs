//! The verbs `doctor` and `playbook`: checks of a host and its database, with the measured figures of its disks.

pub mod args;
mod check;
mod checks;
mod client;
mod collect;
mod facts;
mod playbook;
mod sql;
mod views;
mod wal_sync;

use jiff::Timestamp;

use args::{DoctorArgs, PlaybookArgs};
pub use check::CheckResult;
use check::{Check, CheckRow};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};
use ui::output::{OutputFile, OutputFormat};

/// Checks the host, and the database if one is named. Exit status 1 if something is to be fixed.
pub fn doctor(args: &DoctorArgs, context: &mut Context) -> Outcome {
    if !args.nagios {
        let rows = match answer(args, context)? {
            Some(rows) => rows,
            None => return Ok(CommandEnd::Done),
        };
        if !args.check_only {
            let text = match args.json {
                true => views::json(&rows),
                false => views::text(&rows, args.all, context.columns),
            };
            context.print(&text)?;
        }
        return Ok(
            match rows.iter().any(|row| row.result() == CheckResult::Fix) {
                true => CommandEnd::No,
                false => CommandEnd::Done,
            },
        );
    }
    let (status, line) = match answer(args, context) {
        Ok(rows) => views::nagios(&rows.unwrap_or_default()),
        // The status 2 of other verbs would be taken for a critical state.
        Err(failure) => views::nagios_unknown(&sentence(&failure.error())),
    };
    context.print(&line)?;
    Ok(CommandEnd::Status(status))
}

/// Results of the checks; `None` with `--list`.
fn answer(args: &DoctorArgs, context: &mut Context) -> Result<Option<Vec<CheckRow>>, Failure> {
    let chosen = chosen(args)?;
    if args.list {
        context.print(&views::list(&chosen, context.columns))?;
        return Ok(None);
    }
    let page = OutputFile::check_if_any(args.report.as_ref(), OutputFormat::Page, args.force)?;
    let facts = collect::facts(args, context, Timestamp::now())?;
    let rows = check::judge(chosen, &facts);
    if let Some(page) = page {
        views::write_page(&page, &facts, &rows).midway()?;
    }
    Ok(Some(rows))
}

/// The requested checks.
fn chosen(args: &DoctorArgs) -> Result<Vec<&'static Check>, Failure> {
    let is_named = |check: &Check, name: &String| name == check.name || name == check.area.name();
    for name in args.check.iter().chain(&args.ignore) {
        if !checks::all().any(|check| is_named(check, name)) {
            return Err(Failure::refused(format!(
                "there is no check and no area '{name}'; 'disksmith doctor --list' lists them"
            )));
        }
    }
    let all = checks::all();
    Ok(all
        .filter(|check| {
            args.check.is_empty() || args.check.iter().any(|name| is_named(check, name))
        })
        .filter(|check| !args.ignore.iter().any(|name| is_named(check, name)))
        .collect())
}

/// Prints a playbook, or the list of playbooks.
pub fn playbook(args: &PlaybookArgs, context: &mut Context) -> Outcome {
    let text = match &args.name {
        None => playbook::list(context.columns),
        Some(name) => {
            let page = playbook::page(name).ok_or_else(|| {
                Failure::refused(format!(
                    "there is no playbook '{name}'; they are listed by: disksmith playbook"
                ))
            })?;
            playbook::fitted(page, context.columns)
        }
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![DocumentType::of::<views::Document>("doctor")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_check_has_a_page() {
        let mut names: Vec<&str> = checks::all().map(|check| check.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for check in checks::all() {
            let page = playbook::page(check.playbook);
            assert!(
                page.is_some(),
                "{}: no page docs/playbooks/{}.md",
                check.name,
                check.playbook
            );
            assert!(
                check.rule.ends_with('.') && !check.source.is_empty() && !check.reads.is_empty()
            );
        }
    }
}
