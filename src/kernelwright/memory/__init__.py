"""What happened, kept for good: campaigns, templates, experiments with raw samples."""
