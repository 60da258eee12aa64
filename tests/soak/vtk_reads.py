#!/usr/bin/env python3
"""VTK itself reads what `backstay export --vtk` writes of examples/waveguide, and draws the field.

Usage: vtk_reads.py WAVEGUIDE BACKSTAY MESHER [PICTURE]. Debian's python3-vtk9 belongs to the
system's Python; xvfb is the screen.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from math import pi
from xml.etree import ElementTree

try:
    import vtkmodules.all as vtk
except ImportError:
    vtk = None
MESH = ("--vtk", "--points", "xyz", "--cells", "cells", "--all-versions")


def export(folder, waveguide, backstay, mesher):
    """Runs the program and writes what it saved: as VTU, in the legacy format, as raw bytes."""
    (folder / "durable").mkdir()
    os.environ |= {"BACKSTAY_JOB": "wave", "BACKSTAY_DURABLE_DIR": f"{folder}/durable",
                   "BACKSTAY_STRATEGY_NAME": "file_per_process", "BACKSTAY_CHECKPOINT_POLICY":
                   "calls", "BACKSTAY_CHECKPOINT_EVERY_CALLS": "30", "BACKSTAY_DIR": f"{folder}/no",
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    guide, wave = folder / "guide", [backstay, "export", "wave", "--dir", folder / "durable", "-o"]
    for words in ([mesher, "--elements-along", "12", "--length", "4", "--name", guide],
                  ["mpirun.openmpi", "--oversubscribe", "-n", "2", waveguide, "70", guide, "4"],
                  [*wave, folder, *MESH, "--time", "step"], [*wave, folder, *MESH, "--legacy"],
                  [*wave, folder / "raw", "--format", "raw"]):
        subprocess.run(words, check=True, timeout=300, stdout=subprocess.DEVNULL)


def read(path):
    reader = vtk.vtkXMLUnstructuredGridReader()
    if path.suffix == ".vtk":
        reader = vtk.vtkUnstructuredGridReader()
        reader.ReadAllScalarsOn()
    reader.SetFileName(str(path))
    quality = vtk.vtkMeshQuality()
    quality.SetInputConnection(reader.GetOutputPort())
    quality.SetHexQualityMeasureToVolume()
    quality.Update()
    assert reader.GetErrorCode() == 0, path
    volumes = memoryview(quality.GetOutput().GetCellData().GetArray("Quality")).tolist()
    assert min(volumes) > 0 and abs(sum(volumes) / (4 * pi) - 1) < 0.01, (path, sum(volumes))
    return reader.GetOutput()


def draw(grid, picture):
    """Half of the guide, coloured by Ey."""
    clip, plane, mapper = vtk.vtkClipDataSet(), vtk.vtkPlane(), vtk.vtkDataSetMapper()
    plane.SetNormal(-1, 0, 0)
    clip.SetInputData(grid)
    clip.SetClipFunction(plane)
    colours, peak = vtk.vtkColorTransferFunction(), grid.GetPointData().GetArray("Ey").GetRange()[1]
    for value, rgb in ((-peak, (0, 0.45, 0.7)), (0, (0.9, 0.9, 0.9)), (peak, (0.84, 0.37, 0))):
        colours.AddRGBPoint(value, *rgb)
    mapper.SetInputConnection(clip.GetOutputPort())
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("Ey")
    mapper.SetLookupTable(colours)
    actor, view, window = vtk.vtkActor(), vtk.vtkRenderer(), vtk.vtkRenderWindow()
    actor.SetMapper(mapper)
    actor.GetProperty().SetAmbient(0.2)
    view.AddActor(actor)
    view.SetBackground(1, 1, 1)
    view.GetActiveCamera().SetPosition(4, 2.2, -3)
    view.ResetCamera()
    view.GetActiveCamera().Zoom(1.35)
    window.SetOffScreenRendering(1)
    window.SetSize(560, 360)
    window.AddRenderer(view)
    image, writer = vtk.vtkWindowToImageFilter(), vtk.vtkPNGWriter()
    image.SetInput(window)
    writer.SetInputConnection(image.GetOutputPort())
    writer.SetFileName(str(picture))
    writer.Write()
    assert image.GetOutput().GetScalarRange()[0] < 100, "a white picture"


def main(*words):
    if vtk is None or shutil.which("Xvfb") is None:
        print("vtk_reads.py: left out: needs Debian's packages python3-vtk9 and xvfb")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="backstay-vtk-") as name:
        folder = pathlib.Path(name)
        export(folder, *words[:3])
        rows = list(ElementTree.parse(folder / "wave.pvd").getroot().iter("DataSet"))
        assert [row.get("timestep") for row in rows] == ["30", "60"], rows
        for path in (folder / row.get("file") for row in rows):
            grids = [read(path), read(path.with_suffix(".vtk"))]
        for file in (folder / "raw").glob("[EH][xyz].raw"):
            held = {bytes(memoryview(grid.GetPointData().GetArray(file.stem))) for grid in grids}
            assert held == {file.read_bytes()}, file
        told, tell = os.pipe()
        with subprocess.Popen(["Xvfb", "-displayfd", str(tell), "-nolisten", "tcp"],
                              pass_fds=[tell], stderr=subprocess.DEVNULL) as screen:
            os.environ["DISPLAY"] = ":" + os.read(told, 16).decode().strip()
            try:
                draw(grids[0], pathlib.Path(words[3] if words[3:] else folder / "wave.png"))
            finally:
                screen.terminate()
    print("ok: VTK reads two versions in both formats, and draws one")


main(*sys.argv[1:])
