"""GPU MODE's problems: ``task.yml`` folders and the board's own JSON become problem folders of ours.

Texts of a board are parsed, never executed here; what has to run does so in the sandbox (``harness.official``).
"""
