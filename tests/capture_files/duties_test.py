#!/usr/bin/env python3
"""What the collector owes to programs, each of it where nobody else does it.

    duties_test.py BACKSTAY FOLDER [--only NAME]

Agents and collectors stand at failpoints, so that nothing depends on who is faster.
"""

import argparse
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from capturing import World, temporary_files  # noqa: E402
from collector_test import need, place_in, small_disk, start_with  # noqa: E402
from obedient import Gate, Program  # noqa: E402
from processes import wait_for  # noqa: E402

MIB = 1 << 20
OLD = b"old" * 1000
NEW = bytes(range(251)) * (3 * MIB // 251)
WAITS = "still on the way to"


def has(place, wanted, what):
    found = (place / "x").read_bytes()
    need(found == wanted, f"{what}: x has {len(found)} bytes, {found[:3]}")
    need(not temporary_files(place), f"{what}: left {temporary_files(place)}")


def ended_well(program, what):
    said = program.end()
    need("could not be brought" not in said, f"{what}, at the end: {said}")


def job_of(world):
    return next((world.folder / "versions").glob("test.files.*"))


def start_agent(world, failpoint, gate):
    """An agent after this one has no failpoint."""
    armed = {"BACKSTAY_FAILPOINT": failpoint, "BACKSTAY_FAILPOINT_PIPE": gate.pipe}
    subprocess.run([world.program, "agent", "start"], env={**world.env, **armed}, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def end_that_waits(world, place):
    """A program that has ended, but for the pending file of another one."""
    ends = subprocess.Popen(world.words(place, "true"), env=world.env, cwd=world.folder, text=True,
                            stderr=subprocess.PIPE)
    said = ends.stderr.readline()
    need("1 captured file, " in said and WAITS in said, f"the end does not wait: {said!r}")
    return ends


def waits_for_its_agent(program, folder):
    """Who changes a pending file, and who ends, while the agent writes its version down."""
    with World(program) as world, place_in(folder, "waits") as place:
        gate = Gate(world)
        writer = Program(world, place, "commit.1=wait", gate)
        need(writer.do("write") == "closed", "not closed")
        gate.reached()
        writer.tell("change")
        other = end_that_waits(world, place)
        need(writer.is_silent(), "a change does not wait")
        need((place / "x").read_bytes() == OLD, "x was at its place: the test says nothing")
        gate.go()
        need(writer.hear() == "new", "what is changed is not the new file")
        other.communicate()
        need(other.returncode == 0, f"the end: {other}")
        writer.end()
        has(place, NEW, "the agent went on")
    print("a change of a pending file waits, and so does the end of a program, with a word")


def hands_in_again(program, folder):
    """The agent dies with the only version, which is on no disk."""
    with World(program) as world, place_in(folder, "again") as place:
        start_with(world, place, "commit.1=hang", "backstayd")
        writer = Program(world, place)
        need(writer.do("write") == "closed", "not closed")
        need(world.kill("backstayd") == 1, "no agent")
        writer.end()
        has(place, NEW, "an agent died before the version was local")
    print("a file is handed in again to another agent")


def keeps_what_another_program_replaced(program, folder):
    """The same; another program has put a newer file there before: the captured one is kept."""
    with World(program) as world, place_in(folder, "replaced") as place:
        start_with(world, place, "commit.1=hang", "backstayd")
        writer = Program(world, place)
        need(writer.do("write") == "closed", "not closed")
        other = place / "other"
        other.write_bytes(b"other")
        later = time.time_ns() + 10**9
        os.utime(other, ns=(later, later))
        other.rename(place / "x")
        need(world.kill("backstayd") == 1, "no agent")
        writer.end()
        has(place, b"other", "a newer file was replaced")
        kept = [found.parent for found in job_of(world).rglob("commit.local")]
        need(len(kept) == 1, f"the captured file is not kept: {kept}")
        mark = wait_for(lambda: list(kept[0].glob("*.home")), "its mark")[0]
        need(os.fsencode(place / "x") in mark.read_bytes(), "not named")
    print("a file that another program has replaced is kept, also where its agent dies")


def closes_local(program, folder):
    """`capture.close = "local"`: close waits for the node's disk, also where the agent dies."""
    for dies in (False, True):
        with World(program, BACKSTAY_CAPTURE_CLOSE="local") as world, \
                place_in(folder, "local") as place:
            gate = Gate(world)
            start_agent(world, "commit.1=wait", gate)
            writer = Program(world, place)
            writer.tell("write")
            gate.reached()
            other = end_that_waits(world, place)
            need(writer.is_silent(), "close returns before its file is local")
            world.kill("backstayd") if dies else gate.go()
            need(writer.hear() == "closed", f"not closed: {world.log()}")
            need(list(job_of(world).rglob("commit.local")), "closed, and it is not local")
            need("to its place directly" not in world.log(), f"not captured: {world.log()}")
            other.communicate()
            writer.end()
            has(place, NEW, f"close = local, the agent dies: {dies}")
    print("close waits for the disk where it is told to, and another agent gets the file")


def settles_leftovers(program, folder):
    """Program and collector die while the agent is at their file: the next program waits."""
    with World(program) as world, place_in(folder, "leftovers") as place:
        gate = Gate(world)
        writer = Program(world, place, "home.3=wait", gate)
        need(writer.do("write") == "closed", "not closed")
        gate.reached()
        writer.kill()
        need(world.kill("backstay-collector") == 1, "no collector")
        reader = Program(world, place)
        reader.tell("change")
        spoke, _, _ = select.select([reader.process.stdout, reader.process.stderr], [], [], 60)
        need(spoke == [reader.process.stderr], "the next program does not wait")
        said = reader.process.stderr.readline()
        need(f"before this one are {WAITS}" in said, f"it waits with {said!r}")
        need((place / "x").read_bytes() == OLD, "x was at its place: the test says nothing")
        gate.go()
        need(reader.hear() == "new", "the next program does not find the new file")
        reader.end()
    print("a program starts once the files of one before it are at their places, with a word")


def temporary_of_agent(program, place):
    """The name that an agent takes for x before it is at its place: the same one each time."""
    with World(program) as world:
        start_with(world, place, "home.1=hang", "backstayd")
        writer = Program(world, place)
        need(writer.do("write") == "closed", "not closed")
        name = wait_for(lambda: temporary_files(place), "the agent's temporary file")[0]
        writer.kill()
    name.unlink()
    return name


def waits_for_the_mark(program, folder):
    """The agent can make no temporary file. What the collector brings itself is at its place once
    the agent has written down that nobody is to bring it any more."""
    with place_in(folder, "mark") as place:
        blocked = temporary_of_agent(program, place)
        (place / "x").write_bytes(OLD)
        (blocked / "full").mkdir(parents=True)
        with World(program) as world:
            gate = Gate(world)
            start_agent(world, "home.5=wait", gate)
            writer = Program(world, place)
            need(writer.do("write") == "closed", "not closed")
            writer.tell("change")
            gate.reached()
            other = end_that_waits(world, place)
            need(writer.is_silent(), "a change does not wait for the mark")
            world.kill("backstayd")
            need(writer.hear() == "new", "what the collector has brought is not the new file")
            need(writer.do("remove") == "removed", "not removed")
            world.kill("backstayd")
            need("placed=yes" in world.log(), f"the agent has brought it: {world.log()}")
            writer.kill()
            world.kill("backstay-collector")
            other.communicate()
            shutil.rmtree(blocked)
            ended_well(Program(world, place), "the next program")
            need(not (place / "x").exists(), "a file that its program has removed has come back")
    print("what the collector has brought itself is marked before its program goes on")


def follows_a_rename(program, folder):
    """A file gets another name while the agent is asked for it. That cannot bring it there, and
    knows of nothing that is missing at the former name."""
    with place_in(folder, "renamed") as place:
        blocked = temporary_of_agent(program, place)
        (place / "x").write_bytes(OLD)
        (blocked / "full").mkdir(parents=True)
        with World(program) as world:
            gate = Gate(world)
            start_agent(world, "commit.1=wait", gate)
            writer = Program(world, place)
            need(writer.do("write_beside") == "closed", "not closed")
            gate.reached()
            other = end_that_waits(world, place)
            need(writer.do("rename") == "renamed", "not renamed")
            need("a file is renamed on its way" in world.log(), f"not taken: {world.log()}")
            gate.go()
            ended_well(writer, "renamed")
            other.communicate()
            shutil.rmtree(blocked)
            has(place, NEW, "renamed on its way")
            need(not (place / "x.tmp").exists(), "it has come to its former name")
    print("a file that is renamed while it is awaited comes to its new name")


def calls_back_what_was_lost(program, folder):
    """The agent dies with a synced version that is on the disk, and nobody was told. The file is
    handed in again, still open: neither version is brought."""
    with World(program) as world, place_in(folder, "synced") as place:
        gate = Gate(world)
        start_agent(world, "commit.5=wait", gate)
        writer = Program(world, place)
        writer.tell("sync")
        gate.reached()
        world.kill("backstayd")
        need(writer.hear() == "synced", "not synced")
        need(len(list(job_of(world).rglob("commit.local"))) == 2, "it was not handed in again")
        ended_well(Program(world, place), "another program")
        has(place, OLD, "a version that was lost with an agent was brought")
        writer.end()
        has(place, NEW, "its program has ended")
        need(not list((world.folder / "agent").glob("hold-*")), "a hold was left")
    print("a synced version that was lost with an agent is called back")


def brings_what_a_former_collector_had(program, folder):
    """Of a file that was synced before this collector came nothing tells that its program has been
    killed. At the end of `backstay run` it is looked for."""
    with World(program) as world, place_in(folder, "former") as place:
        writer = Program(world, place)
        need(writer.do("sync") == "synced", "not synced")
        need(world.kill("backstay-collector") == 1, "no collector")
        other = Program(world, place)
        need(other.do("look") == "looked", "the other program does not start")
        has(place, OLD, "its program lives")
        writer.kill()
        done = subprocess.run([world.program, "run", "--retries", "0", "--job", "test",
                               "--capture-files", f"{place}/*", "--", "true"], env=world.env,
                              cwd=world.folder, check=False, stderr=subprocess.PIPE, text=True)
        need(done.returncode == 0, f"run: {done}")
        has(place, NEW, "its program was killed")
        other.end()
    print("`backstay run` brings what was synced with a former collector")


def gives_up_for_a_killed_program(program, folder):
    """It is killed before its file is captured: nobody has promised it, and the old file stays."""
    with World(program) as world, place_in(folder, "killed") as place:
        gate = Gate(world)
        writer = Program(world, place, "collector.begun=wait", gate)
        writer.tell("write")
        gate.reached()
        writer.kill()
        gate.go()
        ended_well(Program(world, place), "the next program")
        has(place, OLD, "the program was killed in its close")
        need(not list(job_of(world).rglob("commit.local")), "its version was not given up")
    print("what a killed program had not closed is given up")


def tries_again_at_the_end(program, folder):
    """The disk of the file is full, so the next try is a minute away. Then there is room."""
    with World(program) as world, small_disk(folder / "full", "1m") as mounted:
        if not mounted:
            print("tries_again_at_the_end: left out, nothing can be mounted here")
            return
        place = folder / "full"
        (place / "x").write_bytes(OLD)
        writer = Program(world, place)
        need(writer.do("write") == "closed", "not closed")
        for _ in range(7):
            answer = writer.do("change")
            need(answer == "Input/output error", f"a change goes on with {answer}")
        subprocess.run(["mount", "-o", "remount,size=16m", place], check=True)
        ended_well(writer, "there is room")
        has(place, NEW, "there is room at the end")
    print("what could not be brought is tried once more at the end")


def ends_without_its_file(program, folder):
    """The disk of the file is full and no program is left: the agent keeps the file, the collector
    ends. The next program finds it at its place once there is room."""
    with World(program) as world, small_disk(folder / "kept", "1m") as mounted:
        if not mounted:
            print("ends_without_its_file: left out, nothing can be mounted here")
            return
        place = folder / "kept"
        (place / "x").write_bytes(OLD)
        writer = Program(world, place)
        need(writer.do("write") == "closed", "not closed")
        said = writer.end()
        need(f"{place}/x could not be brought to its place" in said, f"not named: {said}")
        wait_for(lambda: not world.pids("backstay-collector"), "the end of the collector")
        need(not list((world.folder / "agent").glob("files-*")), "the collector left something")
        subprocess.run(["mount", "-o", "remount,size=16m", place], check=True)
        ended_well(Program(world, place), "there is room")
        has(place, NEW, "there is room for the next program")
    print("a collector ends with a file that cannot be brought, and the agent keeps that")


def run_can_be_ended(program, folder):
    """The agent hangs with a file: `backstay run` says that it waits for it, until a signal comes.
    The program has ended before: its job is not called stopped, and is not to be queued again."""
    for wish in (signal.SIGINT, signal.SIGTERM):
        ends_the_wait(program, folder, wish)
    print("`backstay run` says that it waits for an agent that hangs, and a signal ends the wait")


def ends_the_wait(program, folder, wish):
    with World(program) as world, place_in(folder, f"run-{wish.name}") as place:
        gate = Gate(world)
        writer = Program(world, place, "home.1=wait", gate)
        need(writer.do("write") == "closed", "not closed")
        gate.reached()
        writer.kill()
        running = subprocess.Popen(
            [world.program, "run", "--retries", "0", "--job", "test", "--capture-files",
             f"{place}/*", "--", "sh", "-c", "kill -9 $$"], env=world.env, cwd=world.folder,
            stderr=subprocess.PIPE)
        said = b""
        while WAITS.encode() not in said:
            need(select.select([running.stderr], [], [], 60)[0], f"it waits in silence: {said}")
            more = os.read(running.stderr.fileno(), 4096)
            need(more, f"it does not wait: {said}")
            said += more
        running.send_signal(wish)
        _, said = running.communicate(timeout=60)
        need(b"may not be at their places yet" in said, f"it ends without a word: {said}")
        need(b"stopped; the same command" not in said, f"its program had ended: {said}")
        need(running.returncode == 137, f"it ended with {running.returncode}")


TESTS = {test.__name__: test for test in (
    waits_for_its_agent, hands_in_again, keeps_what_another_program_replaced, closes_local,
    settles_leftovers, waits_for_the_mark, follows_a_rename, calls_back_what_was_lost,
    brings_what_a_former_collector_had, gives_up_for_a_killed_program, tries_again_at_the_end,
    ends_without_its_file, run_can_be_ended)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", choices=TESTS)
    options = parser.parse_args()
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="duties", dir=options.folder.parent))
    for name, test in TESTS.items():
        if options.only in (None, name):
            test(options.program, folder)
            sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
