//! Screens on a terminal: the one painter, which `watch`, the board of a race and `fleet top` share.
//!
//! A screen lays out ratatui's widgets on a [`ratatui_core::buffer::Buffer`], from its own state. [`Terminal`] writes
//! the cells that changed, in the codes of crossterm; [`Inline`] draws lines in place below what was there.
//!
//! Output and input are not left to crossterm:
//!
//! - Its output waits for a terminal that takes nothing (a connection that hangs, a stopped window), and with
//!   the thread that draws. Here bytes that the terminal does not take stay in memory, and no further frame is drawn
//!   until they are gone.
//! - Its events cannot be waited for together with other descriptors, take an escape sequence that arrives in
//!   two pieces for several keys, and do not tell of a terminal that is gone.
//! - It remembers the modes of a terminal for the process as a whole, and puts them back also where the shell
//!   has the terminal by then.

mod inline;
mod keys;
mod output;
mod run;
mod terminal;
mod text;

pub use inline::Inline;
pub use keys::Key;
pub use run::{App, KeyResult, run};
pub use terminal::{Terminal, is_possible, put_back};
pub use text::{Capabilities, Pieces, TextStyle, wrap};
