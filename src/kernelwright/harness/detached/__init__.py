"""Candidates are evaluated on another machine: requests leave as files, results come back as files."""
