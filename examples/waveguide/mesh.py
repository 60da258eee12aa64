#!/usr/bin/env python3
"""Writes the two files of a cylindrical guide along z: NAME.rea (the mesh) and NAME.map (its map).

The cross-section is a square of K x K quadrilaterals with four blocks of K x K around it; the outer
sides of the blocks lie on the wall. The guide is periodic in z. README.md describes both files.
"""

import argparse
from math import cos, pi, sin
from pathlib import Path

SQUARE = 0.4  # half the square's side, in radii


def block(size: int, radius: float) -> list[tuple[list[tuple[float, float]], bool]]:
    """The block at x > 0: (corners, whether its outer side lies on the wall)."""
    def point(i: int, j: int) -> tuple[float, float]:
        out, s = i / size, 2 * j / size - 1
        return (radius * ((1 - out) * SQUARE + out * cos(pi / 4 * s)),
                radius * ((1 - out) * SQUARE * s + out * sin(pi / 4 * s)))
    return [([point(i, j), point(i + 1, j), point(i, j + 1), point(i + 1, j + 1)], i == size - 1)
            for j in range(size) for i in range(size)]


def cross_section(size: int, radius: float) -> list[tuple[list[tuple[float, float]], bool]]:
    side = [radius * SQUARE * (2 * i / size - 1) for i in range(size + 1)]
    quads = [([(side[i + a], side[j + b]) for b in (0, 1) for a in (0, 1)], False)
             for j in range(size) for i in range(size)]
    turned = block(size, radius)
    for _ in range(4):
        quads += turned
        turned = [([(-y, x) for x, y in corners], wall) for corners, wall in turned]
    return quads


def extrude(quads, along: int, length: float):
    """Elements: (corners, sides, vertex numbers). Corners run with x fastest and z slowest."""
    numbers: dict[tuple[float, float], int] = {}
    for corners, _ in quads:
        for x, y in corners:
            numbers.setdefault((round(x, 9) + 0.0, round(y, 9) + 0.0), len(numbers))
    elements = []
    for layer in range(along):
        for flat, wall in quads:
            corners = [(x, y, length * (layer + up) / along) for up in (0, 1) for x, y in flat]
            sides = "EWEE" if wall else "EEEE"
            sides += ("P" if layer == 0 else "E") + ("P" if layer == along - 1 else "E")
            vertices = [1 + numbers[round(x, 9) + 0.0, round(y, 9) + 0.0]
                        + (layer + up) % along * len(numbers) for up in (0, 1) for x, y in flat]
            elements.append((corners, sides, vertices))
    return elements


def bisected(elements, some: list[int]) -> list[int]:
    """An order in which near elements are near: halves along the longest extent, again and again.

    Contiguous shares of it are compact for any number of ranks.
    """
    if len(some) == 1:
        return some
    def centre(e: int, axis: int) -> float:
        return round(sum(corner[axis] for corner in elements[e][0]) / 8, 9)
    extents = [max(centre(e, axis) for e in some) - min(centre(e, axis) for e in some)
               for axis in range(3)]
    axis = extents.index(max(extents))
    some = sorted(some, key=lambda e: (centre(e, axis), e))
    half = (len(some) + 1) // 2
    return bisected(elements, some[:half]) + bisected(elements, some[half:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements-across", type=int, default=2, metavar="K",
                        help="along a side of the square, and from the square to the wall")
    parser.add_argument("--elements-along", type=int, default=6, metavar="L", help="at least 3")
    parser.add_argument("--radius", type=float, default=1.0)
    parser.add_argument("--length", type=float, default=2.0)
    parser.add_argument("--name", default="guide", help="the files' path without .rea and .map")
    options = parser.parse_args()
    if options.elements_across < 1 or options.elements_along < 3:
        parser.error("K is at least 1 and L at least 3")
    elements = extrude(cross_section(options.elements_across, options.radius),
                       options.elements_along, options.length)
    rea = [f"{len(elements)} elements radius {options.radius!r} length {options.length!r}"]
    for number, (corners, sides, _) in enumerate(elements, 1):
        rea.append(f"element {number} sides {sides}")
        rea += [" ".join(f"{corner[axis]:.17g}" for corner in corners) for axis in range(3)]
    position = {e: place for place, e in enumerate(bisected(elements, [*range(len(elements))]))}
    vertices = max(max(element[2]) for element in elements)
    lines = [f"{len(elements)} elements {vertices} vertices"]
    lines += [" ".join(map(str, [position[e], *element[2]])) for e, element in enumerate(elements)]
    Path(options.name + ".rea").write_text("\n".join(rea) + "\n")
    Path(options.name + ".map").write_text("\n".join(lines) + "\n")
    print(f"{options.name}.rea, {options.name}.map: {len(elements)} elements, {vertices} vertices")


main()
