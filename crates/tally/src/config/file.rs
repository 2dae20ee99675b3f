//! The configuration file, and the file that keeps its earlier rules.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Config, Routes, document, history};
use crate::level::Seconds;

/// A configuration with its file.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
    /// Path of the file with the rules of earlier hours, for events of those hours.
    history: PathBuf,
}

impl ConfigFile {
    /// The file at a path; `history` keeps its earlier rules.
    pub fn new(path: &Path, history: &Path) -> ConfigFile {
        ConfigFile {
            path: path.to_owned(),
            history: history.to_owned(),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file.
    ///
    /// # Errors
    /// A sentence with the file, the line and the reason.
    pub fn read(&self) -> anyhow::Result<Config> {
        let path = self.path.display();
        let text = std::fs::read_to_string(&self.path)
            .map_err(|error| anyhow::anyhow!(linux::remedy::unread(&self.path, &error)))?;
        document::parse(&text).map_err(|wrong| anyhow::anyhow!("{path}{wrong}"))
    }

    /// Routes of a configuration. If its rules differ from those in force, they apply from the next full hour on.
    ///
    /// # Errors
    /// Where the earlier rules cannot be read or kept.
    pub fn routes(&self, config: &Config, now: Seconds) -> anyhow::Result<Routes> {
        let versions = history::keep(&self.history, &config.rules, now).with_context(|| {
            format!(
                "the rules in force cannot be kept in {}",
                self.history.display()
            )
        })?;
        Ok(Routes::new(config, versions))
    }
}
