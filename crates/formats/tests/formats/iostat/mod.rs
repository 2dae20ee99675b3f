//! Tests with logs of every version of iostat.

mod common;
mod damage;
mod forms;
mod mutations;
mod times;
mod versions;
mod wrapped;
