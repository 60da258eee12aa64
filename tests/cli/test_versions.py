"""ls, show, verify, rm on a real version (tests/golden), without an agent."""

import os
import shutil
import signal

import pytest


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x40]))


def test_ls_of_nothing(world):
    done = world.run("ls")
    assert done.returncode == 3
    assert str(world.dir) in done.stderr and "--dir" in done.stderr
    assert world.json("ls", code=3)["jobs"] == []


def test_ls_jobs_and_versions(world):
    world.golden()
    (world.dir / "not-a-job").mkdir()
    assert world.run("ls", "--names").stdout == "golden\n"
    jobs = world.json("ls")["jobs"]
    assert [(job["job"], job["complete"], job["newest"]["version"]) for job
            in jobs] == [("golden", 1, 12)]
    version, = world.json("ls", "golden")["versions"]
    assert (version["version"], version["state"], version["level"], version["ranks"]) == (12,
        "complete", "local", 2)


def test_a_job_that_does_not_exist_names_those_that_do(world):
    world.golden()
    for command in ("ls", "show", "verify"):
        done = world.run(command, "golde")
        assert done.returncode == 3, command
        assert 'no job "golde"' in done.stderr and "jobs there: golden" in done.stderr
    assert world.json("show", "golde", code=3)["error"]["code"] == "not_found"


def test_a_name_that_is_no_job_name_is_refused(world):
    for name in ("../x", ".hidden", "a/b"):
        assert world.run("ls", name).returncode == 2, name


def test_show(world):
    world.golden()
    content = world.json("show", "golden")
    assert (content["version"], content["ranks"], content["nodes"], content["where"]) == (12, 2, 1,
        ["local"])
    regions = {region["name"]: region for region in content["regions"]}
    assert regions["u"] == {"name": "u", "kind": "array", "type": "float64", "shape": [1500],
                            "global_shape": None, "ranks": 2, "bytes": 2 * 1500 * 8}
    assert regions["rows"]["shape"] is None and regions["rows"]["global_shape"] == [6, 8]
    assert regions["log.1"]["kind"] == "file" and regions["log.1"]["ranks"] == 1
    text = world.run("show", "golden", 12).stdout
    assert "float64" in text and "6 x 8" in text and "2 ranks on 1 node" in text


def test_show_one_rank(world):
    world.golden()
    regions = {r["name"]: r for r in world.json("show", "golden", 12, "--rank", 1)["regions"]}
    assert regions["rows"]["shape"] == [2, 8] and "log.0" not in regions
    done = world.run("show", "golden", 12, "--rank", 2)
    assert done.returncode == 3 and "no rank 2" in done.stderr


def test_show_a_version_that_does_not_exist(world):
    world.golden()
    done = world.run("show", "golden", 13)
    assert done.returncode == 3 and "there are 12" in done.stderr


def test_verify_good(world):
    folder = world.golden()
    version, = world.json("verify", "golden")["versions"]
    assert version["good"] and version["bytes"] == 29977 and version["chunks"] == 8 and version["regions"] == 37
    assert not (folder / "damaged").exists()


# One byte in each kind of place: segment header, a chunk, another rank's chunk, manifest, commit
# record.
@pytest.mark.parametrize("name, at, says", [
    ("node-0000000.segment", 20, "header"),
    ("node-0000000.segment", 4096, "do not match their checksum"),
    ("node-0000000.segment", 9000, "do not match their checksum"),
    ("node-0000000.manifest", 50, ""),
    ("node-0000000.manifest", 300, ""),
    ("commit.local", 20, ""),
])
def test_verify_finds_every_flipped_byte(world, name, at, says):
    folder = world.golden()
    flip(folder / name, at)
    done = world.run("verify", "golden")
    assert done.returncode == 4 and "DAMAGED" in done.stdout and says in done.stdout
    assert (folder / "damaged").read_text().startswith("backstay verify: ")
    assert world.json("ls", "golden")["versions"][0]["state"] == "damaged"
    # Right again: it counts again.
    flip(folder / name, at)
    done = world.run("verify", "golden")
    assert done.returncode == 0 and "counts again" in done.stdout
    assert not (folder / "damaged").exists()


@pytest.mark.parametrize("name", ["node-0000000.segment", "node-0000000.manifest"])
def test_verify_missing_and_truncated_files(world, name):
    folder = world.golden()
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    assert world.run("verify", "golden", "--no-mark").returncode == 4
    if name.endswith("manifest"):
        os.truncate(folder / name, 1 << 40)
        assert world.run("verify", "golden", "--no-mark").returncode == 4
    assert not (folder / "damaged").exists()
    (folder / name).unlink()
    assert world.run("verify", "golden", 12).returncode == 4
    assert (folder / "damaged").exists()


@pytest.mark.parametrize("name", ["node-0000000.segment", "node-0000000.manifest", "commit.local"])
@pytest.mark.parametrize("put", [os.mkdir, os.mkfifo, lambda path: path.symlink_to(path.name)],
                         ids=["folder", "pipe", "loop"])
def test_verify_what_is_no_file(world, name, put):
    folder = world.golden()
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    put(folder / name)
    done = world.run("verify", "golden")
    assert done.returncode == 4 and "DAMAGED" in done.stdout and name in done.stdout, done.stdout + done.stderr
    (folder / name).rmdir() if put is os.mkdir else (folder / name).unlink()
    (folder / name).write_bytes(content)
    assert world.run("verify", "golden").returncode == 0


def test_show_of_a_damaged_manifest_names_the_version_and_the_file(world):
    manifest = world.golden() / "node-0000000.manifest"
    flip(manifest, 300)
    done = world.run("show", "golden")
    assert done.returncode == 4 and done.stdout == "", done
    assert "golden version 12: " in done.stderr and str(manifest) in done.stderr, done.stderr
    assert "`backstay verify golden 12`" in done.stderr, done.stderr


def test_verify_while_retention_takes_the_version(world):
    folder = world.golden()
    flip(folder / "node-0000000.segment", 4096)  # as a newer version's bytes would
    running = world.popen("verify", "golden", env={"BACKSTAY_FAILPOINT": "verify.read=stop"})
    os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WNOWAIT)
    shutil.rmtree(folder)
    folder.parent.joinpath("v0000000000000013").mkdir()  # the next one, being written
    running.send_signal(signal.SIGCONT)
    out, error = running.communicate(timeout=30)
    assert "DAMAGED" not in out and running.returncode in (0, 3), error
    assert not folder.exists()


def test_verify_goes_on_after_a_version_that_cannot_be_read(world):
    folder = world.golden()
    shutil.copytree(folder, folder.parent / "v0000000000000013")  # its records say 12: damaged
    (folder / "node-0000000.manifest").unlink()
    (folder / "node-0000000.manifest").symlink_to("x"
                                                  * 300)  # an error that is none of the disk's bytes
    first, second = world.json("verify", "golden", code=4)["versions"]
    assert first["version"] == 12 and not first["good"] and "node-0000000.manifest" in first[
        "error"]
    assert second["version"] == 13 and second["damages"] == 1
    assert not (folder / "damaged").exists()
    done = world.run("verify", "golden", 12)
    assert done.returncode == 1 and "node-0000000.manifest" in done.stderr


def test_verify_of_a_version_that_is_being_written(world):
    (world.golden() / "commit.local").unlink()
    done = world.run("verify", "golden")
    assert done.returncode == 3 and "no complete version" in done.stderr
    assert world.json("ls", "golden")["versions"][0]["state"] == "incomplete"


def test_rm_keeps_the_newest_complete_version(world):
    folder = world.golden()
    done = world.run("rm", "golden", 12)
    assert done.returncode == 7 and "--force" in done.stdout and folder.exists()
    assert world.run("rm", "golden", "--older-than", "1s").returncode == 0 and folder.exists()
    assert world.run("rm", "golden", 12, "--force").returncode == 0 and not folder.exists()


@pytest.mark.parametrize("more", [[], ["--force"]])
def test_rm_all_removes_the_newest_too(world, more):
    folder = world.golden()
    assert world.json("rm", "golden", "--all", "--dry-run",
                      *more)["removed"] == [12] and folder.exists()
    assert world.run("rm", "golden", "--all", *more).returncode == 0
    assert not folder.exists()


def test_rm_usage(world):
    folder = world.golden()
    done = world.run("rm", "golden")
    assert done.returncode == 2 and "--damaged" in done.stderr
    assert world.run("rm", "golden", 11).returncode == 3
    assert world.run("rm", "golden", "--older-than", "5").returncode == 2
    done = world.run("rm", "golden", "--older-than=-5d")
    assert done.returncode == 2 and "an age is 0 or more" in done.stderr
    assert folder.exists()


def test_rm_of_any_age(world):
    folder = world.golden()
    assert world.json("rm", "golden", "--older-than",
                      "0s")["kept"][0]["version"] == 12 and folder.exists()
    assert world.json("rm", "golden", "--older-than", "0s",
                      "--force")["removed"] == [12] and not folder.exists()


def test_rm_damaged(world):
    folder = world.golden()
    (folder / "damaged").write_text("a test says so\n")
    assert world.json("rm", "golden", "--damaged")["removed"] == [12]
    assert not folder.exists()


def test_a_folder_that_cannot_be_read_is_an_error(world):
    world.dir.write_text("not a folder")
    done = world.run("ls")
    assert done.returncode not in (0, 3) and str(world.dir) in done.stderr
