"""`backstay export --vtk`: meshio reads the very numbers, and what is no mesh writes nothing."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from xml.etree import ElementTree

import pytest

from conftest import PROGRAM, ROOT

np = pytest.importorskip("numpy")
pytest.importorskip("mpi4py")
LAUNCHER = shutil.which("mpirun.openmpi")
if not LAUNCHER:
    pytest.skip("the job of this test runs by Open MPI", allow_module_level=True)

STRIP = ("--points", "xy", "--cells", "squares")
OWN = ("--points", "own", "--cells", "tetra")


class Made:
    def __init__(self, folder):
        self.folder, self.out = pathlib.Path(folder), pathlib.Path(folder) / "out"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BACKSTAY_")} | {
            "BACKSTAY_DIR": folder + "/durable", "HOME": folder}

    def export(self, *words, code=0):
        shutil.rmtree(self.out, ignore_errors=True)
        done = subprocess.run([PROGRAM, "export", "mesh", *words, "-o", self.out], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
        return done.stderr

    def read(self, name):
        meshio = pytest.importorskip("meshio", reason="the PyPI package meshio is missing")
        return meshio.read(self.out / name)


@pytest.fixture(scope="module")
def made():
    folder = tempfile.mkdtemp(prefix="backstay-vtk-", dir="/tmp")
    world = Made(folder)
    (world.folder / "durable").mkdir()
    env = world.env | {"BACKSTAY_STRATEGY_NAME": "file_per_process", "BACKSTAY_JOB": "mesh",
                       "BACKSTAY_DIR": folder + "/local",
                       "BACKSTAY_DURABLE_DIR": folder + "/durable",
                       "PYTHONPATH": str(ROOT / "python"),
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run([LAUNCHER, "--oversubscribe", "-n", "2", ROOT / ".venv/bin/python",
                    ROOT / "tests/cli/vtk_job.py"], env=env, check=True, timeout=60)
    yield world
    shutil.rmtree(folder, ignore_errors=True)


FORMATS = pytest.mark.parametrize("form, words", [("vtu", ()), ("vtk", ("--legacy",))])


@FORMATS
def test_a_mesh_in_global_arrays(made, form, words):
    made.export("--vtk", *STRIP, *words, "--region", "flow <x>", "--region", "pair",
                "--region", "square")
    mesh = made.read(f"mesh.2.{form}")
    x, y = np.arange(10) % 5, np.arange(10) // 5
    assert mesh.points.dtype.name == "float32"
    assert (mesh.points == np.stack([x, y, 0 * x], axis=1)).all()
    first = np.arange(4)
    assert (mesh.cells_dict["quad"] == np.stack([first, first + 1, first + 6, first + 5], 1)).all()
    flow = mesh.point_data["flow <x>" if form == "vtu" else "flow%20%3Cx%3E"]
    assert flow.dtype.name == "float64" and (flow == np.stack([x, y, 2 * x], axis=1)).all()
    assert (mesh.point_data["pair"] == np.stack([y, x], axis=1)).all()
    assert (mesh.cell_data["square"][0].ravel() == first + 20).all()


@FORMATS
def test_each_rank_has_a_mesh_of_its_own(made, form, words):
    made.export("--vtk", *OWN, *words, "--region", "speed")
    mesh = made.read(f"mesh.2.{form}")
    own = [np.arange(12.0).reshape(-1, 3), np.arange(15.0).reshape(-1, 3)]
    assert (mesh.points == np.concatenate(own)).all()
    assert mesh.cells_dict["tetra"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 8]]
    speed = np.concatenate([own[0][:, 0], own[1][:, 0] + 100])
    assert (mesh.point_data["speed"].ravel() == speed).all()


def test_points_alone_and_every_field_that_fits(made):
    made.export("--vtk", "--points", "xy")
    mesh = made.read("mesh.2.vtu")
    assert mesh.cells_dict["vertex"].tolist() == [[i] for i in range(10)]
    assert set(mesh.point_data) == {"flow <x>", "pair"}
    made.export("--vtk", *STRIP, "--cell-type", "tetra")
    mesh = made.read("mesh.2.vtu")
    assert len(mesh.cells_dict["tetra"]) == 4 and "square" in mesh.cell_data


def test_all_versions_with_the_times_of_a_region(made):
    made.export("--vtk", *STRIP, "--all-versions", "--time", "step")
    listed = ElementTree.parse(made.out / "mesh.pvd").getroot().findall("Collection/DataSet")
    assert [(one.get("timestep"), one.get("file")) for one in listed] == [
        ("3", "mesh.1.vtu"), ("7", "mesh.2.vtu")]
    assert len(list(made.out.iterdir())) == 3
    for file, added in (("mesh.1.vtu", 10), ("mesh.2.vtu", 20)):
        assert (made.read(file).cell_data["square"][0].ravel() == np.arange(4) + added).all()
    made.export("1", "--vtk", *STRIP, "--legacy")
    heading = (made.out / "mesh.1.vtk").read_bytes().split(b"\n")[:4]
    assert heading[0] == b"# vtk DataFile Version 3.0" and heading[2:] == [
        b"BINARY", b"DATASET UNSTRUCTURED_GRID"] and b"job mesh, version 1" in heading[1]


@pytest.mark.parametrize("words, code, said", [
    (("--points", "nope"), 3, "has no region 'nope'"),
    (("--points", "xy", "--cells", "nope"), 3, "has no region 'nope'"),
    (("--points", "in a row"), 2, "region 'in a row' (float64 30) holds no points"),
    (("--points", "square"), 2, "region 'square' (int32 4) holds no points"),
    (("--points", "xy", "--cells", "pair"), 2, "region 'pair' (float32 10 x 2) holds no cells"),
    ((*STRIP, "--cell-type", "wedge"), 2, "holds no wedges: they are integers of shape cells x 6"),
    (("--points", "xy", "--cells", "off by one"), 2,
     "region 'off by one' (int64 4 x 4) names point 11 of region 'xy' (float32 10 x 2): there are"),
    (("--points", "own", "--cells", "wrong tetra"), 2, "rank 0 has 4 of them, from 0 on"),
    ((*STRIP, "--region", "short"), 2, "region 'short' (float64 6 x 2) has no real number for each "
     "point of region 'xy' (float32 10 x 2) or each cell of region 'squares' (int64 4 x 4)"),
    ((*STRIP, "--region", "complex"), 2, "region 'complex' (complex64 10) has no real number"),
    ((), 2, "--vtk needs --points"), ((*STRIP, "--rank", "0"), 2, "--rank has no meaning with"),
    ((*STRIP, "--time", "step"), 2, "--time is for the .pvd"),
    ((*STRIP, "1", "--all-versions"), 2, "--all-versions takes no VERSION"),
    ((*STRIP, "--all-versions", "--time", "speed"), 1, "is no time")])
def test_what_is_no_mesh_writes_nothing(made, words, code, said):
    assert said in made.export("--vtk", *words, code=code)
    assert not made.out.exists()
    if code == 2 and "--vtk" in said:
        assert "--points has no meaning without --vtk" in made.export("--points", "xy", code=2)


def test_a_file_that_exists_stays(made):
    made.export("--vtk", *STRIP)
    (made.out / "mesh.2.vtu").write_text("mine")
    again = [PROGRAM, "export", "mesh", "--vtk", *STRIP, "--all-versions", "-o", made.out, "--json"]
    done = subprocess.run(again, env=made.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and json.loads(done.stdout)["error"]["code"] == "io"
    assert [one.read_text() for one in made.out.iterdir()] == ["mine"]
    (made.out / "mesh.pvd").write_text("mine")  # the legacy format has no list
    assert subprocess.run([*again, "--legacy"], env=made.env, capture_output=True).returncode == 0
