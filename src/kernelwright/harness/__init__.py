"""compile, benchmark, profile, submit: in processes of their own, behind a sandbox."""
