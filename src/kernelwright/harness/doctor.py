"""Is this machine fit? Faults of the environment are found here and never blamed on a candidate."""
