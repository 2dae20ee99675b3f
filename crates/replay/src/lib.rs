//! Replay of a trace's I/O on another disk, at the recorded times, by its dependencies, or as fast as it goes.
