"""Writes a matrix and a vector with PETSc's binary viewer through MPI-IO (`write FILE`), or loads them, with any number
of ranks, and compares (`read FILE`). Prints a line for each check, and ends with 1 if one is wrong.

See petsc.py about the flags.
"""

import os
import sys

sys.setdlopenflags(os.RTLD_LAZY)

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc

# No multiple of a number of ranks, and longer than a region of a file.
SIDE = 257


def matrix():
    """The five-point stencil on a square, with entries that name their row and column."""
    made = PETSc.Mat().createAIJ((SIDE * SIDE, SIDE * SIDE), nnz=(5, 4))
    for row in range(*made.getOwnershipRange()):
        i, j = divmod(row, SIDE)
        made[row, row] = row
        for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= k < SIDE and 0 <= m < SIDE:
                made[row, k * SIDE + m] = row + (k * SIDE + m) / 2**20
    made.assemble()
    return made


def vector():
    """Entries that name their place."""
    made = PETSc.Vec().createMPI(SIDE * SIDE)
    for place in range(*made.getOwnershipRange()):
        made[place] = 1 / (place + 1)
    made.assemble()
    return made


def write(path):
    """Writes both with MPI-IO, and without it, and compares the files."""
    for viewer in (PETSc.Viewer().createMPIIO(path, "w"), PETSc.Viewer().createBinary(path + ".plain", "w")):
        matrix().view(viewer)
        vector().view(viewer)
        viewer.destroy()
    if PETSc.COMM_WORLD.rank > 0:
        return {}
    with open(path, "rb") as one, open(path + ".plain", "rb") as other:
        return {"the file that is written without MPI-IO": one.read() == other.read()}


def read(path):
    """Loads both with MPI-IO."""
    viewer = PETSc.Viewer().createMPIIO(path, "r")
    loaded, entries = PETSc.Mat().load(viewer), PETSc.Vec().load(viewer)
    viewer.destroy()
    wanted = vector()
    product, wanted_product = entries.duplicate(), wanted.duplicate()
    loaded.mult(entries, product)
    matrix().mult(wanted, wanted_product)
    return {
        "matrix": loaded.equal(matrix()),
        "vector": entries.equal(wanted),
        "their product": product.equal(wanted_product),
    }


checks = {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
if PETSc.COMM_WORLD.rank == 0:
    for name, is_right in checks.items():
        print("ok" if is_right else "wrong", name, flush=True)
sys.exit(not all(checks.values()))
