//! How a run is shown: one file a form. Views only view: nothing here measures or decides.

