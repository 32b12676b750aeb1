"""Plain frozen records, expressions, spaces and objectives. Imports nothing else of the project."""
