"""The shared data layer: settings, database, ids, models, passages, jobs and leases, errors, log."""
