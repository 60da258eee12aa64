"""Subcommands of `backstay` that are written in Python. The program `backstay` starts them as
`python -m backstay.cli NAME ...` with BACKSTAY_DIR set to the configured storage folder."""
