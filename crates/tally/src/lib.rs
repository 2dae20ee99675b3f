//! Exactly-once roll-ups of events: sources, sums, stores and queries.
