"""run_in_sandbox.py --agent BACKSTAYD -- COMMAND...: the command with an agent of its own."""

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from sandbox import Sandbox  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--agent", required=True)
parser.add_argument("command", nargs="+")
options = parser.parse_args()
with Sandbox(options.agent, BACKSTAY_CHECKPOINT_POLICY="calls",
             BACKSTAY_CHECKPOINT_EVERY_CALLS=2) as box:
    code = subprocess.run(options.command, env=box.environment, cwd=box.folder,
                          timeout=120).returncode
    if code:
        raise SystemExit(f"exit code {code}\n--- agent log\n{box.log()}")
