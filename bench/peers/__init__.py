"""Other checkpointing systems at the same shape, in the same run (README.md). None is needed."""

import json
import pathlib
import shutil
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent


def command_of_veloc(build):
    program = build / "bench" / "peer_veloc"
    return [str(program), "--json"] if program.exists() else None


def command_of_dmtcp(_build):
    return [str(FOLDER / "dmtcp")] if shutil.which("dmtcp_launch") else None


PEERS = {"VeloC": command_of_veloc, "DMTCP": command_of_dmtcp}


def run_peer(name, command, checkpoint, out):
    shape = [f"--{key}={checkpoint[key]}" for key in ("ranks", "mib", "repetitions")]
    done = subprocess.run([*command, *shape, f"--dir={out / name.lower()}"],
                          stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode != 0:  # a peer may fail: the rest of the run still counts
        return {"state": f"failed with status {done.returncode}"}
    return json.loads(done.stdout)


def run_all(checkpoint, build, out):
    results = {}
    for name, command_of in PEERS.items():
        command = command_of(build)
        results[name] = (run_peer(name, command, checkpoint, out) if command
                         else {"state": "not installed"})
    return results
