//! The logs of iostat: what every version printed is read for what it means.

mod common;
mod damage;
mod forms;
mod mutations;
mod times;
mod versions;
mod wrapped;
