//! Volumes and instances that carry a measured workload, and their prices.
