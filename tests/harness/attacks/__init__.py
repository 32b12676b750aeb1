"""Attacks on the harness from inside its children: none may succeed. ``python -m tests.harness.attacks``."""
