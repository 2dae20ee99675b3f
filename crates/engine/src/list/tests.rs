//! The loop on a simulated volume.
