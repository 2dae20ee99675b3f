//! Playbooks: for each finding a page with its symptom, its confirmation, and the immediate and the permanent remedy.

use ui::table::{Column, layout, wrap};

/// The pages of `docs/playbooks/`.
macro_rules! pages {
    ($($name:literal,)+) => {
        const PAGES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../docs/playbooks/", $name, ".md"))),)+
        ];
    };
}

pages! {
    "alignment",
    "array-degraded",
    "array-mismatches",
    "array-resync",
    "array-unchecked",
    "array-writes-slow",
    "backups",
    "buffer-pool",
    "burst-credit",
    "cannot-create-thread",
    "checkpoints",
    "cold-volume",
    "commits-lost-at-power-cut",
    "degraded-volume",
    "device-queue",
    "index-not-used",
    "innodb-flushing",
    "instance-cap",
    "io-setup-eagain",
    "login-rejected-by-limits",
    "memory-pressure",
    "mount-options",
    "no-replica",
    "nvme-timeout",
    "placement",
    "postgres-plans",
    "replication-lag",
    "settings-lost-at-restart",
    "slow-clock",
    "slow-commits",
    "too-many-connections",
    "too-many-open-files",
    "torn-pages",
    "volume-cap",
    "write-stalls",
}

/// The text of a page.
pub(crate) fn page(name: &str) -> Option<&'static str> {
    let found = PAGES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// The text of a page in at most `columns` columns: if it is wider, its paragraphs are wrapped; commands are unchanged.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    if text.lines().all(|line| line.chars().count() <= columns) {
        return text.to_owned();
    }
    let (mut fitted, mut sentences, mut is_command) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        if !is_fence && !is_command && !line.is_empty() {
            sentences.push(line);
            continue;
        }
        end_paragraph(&mut sentences, &mut fitted, columns);
        fitted.push_str(line);
        fitted.push('\n');
        is_command ^= is_fence;
    }
    end_paragraph(&mut sentences, &mut fitted, columns);
    fitted
}

fn end_paragraph(sentences: &mut Vec<&str>, fitted: &mut String, columns: usize) {
    if !sentences.is_empty() {
        fitted.push_str(&wrap(&sentences.join(" "), columns, ""));
        fitted.push('\n');
        sentences.clear();
    }
}

/// The names of the pages with their titles.
pub(crate) fn list(columns: usize) -> String {
    let titles = [Column::text("playbook"), Column::text("symptom")];
    let row = |(name, text): &(&str, &str)| {
        let title = text.lines().next().unwrap_or_default();
        vec![
            (*name).to_owned(),
            title.trim_start_matches("# ").to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = PAGES.iter().map(row).collect();
    layout(&titles, &rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks;

    #[test]
    fn sentences_of_a_page_are_broken_anew_and_commands_are_not() {
        let page =
            "# Slow\n\nReads wait for\none disk.\n\n```\ncat /sys/block/md0/md/chunk_size\n```\n";
        assert_eq!(fitted(page, 40), page);
        assert_eq!(
            fitted(page, 20),
            "# Slow\n\nReads wait for one\ndisk.\n\n```\ncat /sys/block/md0/md/chunk_size\n```\n"
        );
        // No word of a page is lost.
        for (name, text) in PAGES {
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&fitted(text, 40)), words(text), "{name}");
        }
    }

    #[test]
    fn every_page_has_its_parts_and_every_file_is_a_page_of_a_check() {
        for (name, text) in PAGES {
            for part in ["# ", "\n## Confirm\n", "\n## Now\n", "\n## For good\n"] {
                assert!(text.contains(part), "{name}: no {part:?}");
            }
            // With the names beside them, titles fit in 80 columns.
            let title = text.lines().next().unwrap();
            assert!(title.len() <= 55, "{title}");
            assert!(
                checks::all().any(|check| check.playbook == *name),
                "{name} is of no check"
            );
        }
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/playbooks");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), PAGES.len());
    }
}
