//! Pool of connections to a source, reused between requests.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::documents::{SourceDocument, SourceState};

/// Maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 4;

/// Idle connections to a source, and the error of its last use.
pub(crate) struct Pool<T> {
    name: String,
    kind: &'static str,
    idle: Mutex<Vec<T>>,
    away: Mutex<Option<(String, Timestamp)>>,
}

impl<T> Pool<T> {
    /// A pool without connections yet.
    pub(crate) fn new(name: String, kind: &'static str) -> Pool<T> {
        Pool {
            name,
            kind,
            idle: Mutex::new(Vec::new()),
            away: Mutex::new(None),
        }
    }

    /// Passes an idle connection to `work`, or a new one if none is idle or its use fails. A connection whose use fails
    /// is closed.
    ///
    /// # Errors
    /// Those of `open` and of `work`; the source's state reports the last one.
    pub(crate) fn with<R>(
        &self,
        open: impl Fn() -> anyhow::Result<T>,
        work: impl Fn(&mut T) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        let idle = lock(&self.idle).pop();
        // The other end may have closed an idle connection, which is not an error of the source.
        if let Some(mut connection) = idle
            && let Ok(answer) = work(&mut connection)
        {
            self.put_back(connection);
            return Ok(answer);
        }
        let answer = open().and_then(|mut connection| {
            let answer = work(&mut connection)?;
            self.put_back(connection);
            Ok(answer)
        });
        let mut away = lock(&self.away);
        match &answer {
            Ok(_) => *away = None,
            Err(error) => {
                let since = away
                    .as_ref()
                    .map_or_else(Timestamp::now, |(_, since)| *since);
                *away = Some((ui::exit::sentence(error), since));
            }
        }
        answer
    }

    fn put_back(&self, connection: T) {
        *lock(&self.away) = None;
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }

    /// The source and its state.
    pub(crate) fn source(&self) -> SourceDocument {
        let away = lock(&self.away).clone();
        let (error, since) = away.map_or((None, None), |(error, since)| (Some(error), Some(since)));
        SourceDocument {
            name: self.name.clone(),
            kind: self.kind,
            state: match error {
                None => SourceState::Ok,
                Some(_) => SourceState::Away,
            },
            error,
            since,
        }
    }
}

/// Locks a mutex, even if a thread has panicked while it held the lock.
pub(crate) fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_source_that_comes_back_is_opened_again() {
        let pool: Pool<u32> = Pool::new("db".to_owned(), "tally");
        let opened = Cell::new(0);
        let open = || {
            opened.set(opened.get() + 1);
            Ok(opened.get())
        };
        let answer = pool.with(open, |connection| Ok(*connection)).unwrap();
        assert_eq!(answer, 1);
        // The kept one fails, and so does a new one.
        let failed: anyhow::Result<()> = pool.with(open, |_| anyhow::bail!("gone"));
        assert!(failed.is_err());
        assert_eq!(pool.source().error.as_deref(), Some("gone"));
        assert_eq!(pool.with(open, |connection| Ok(*connection)).unwrap(), 3);
        assert_eq!(pool.source().state, SourceState::Ok);
    }
}
