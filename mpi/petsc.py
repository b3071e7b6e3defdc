"""Solves a Poisson problem whose solution is known with the solvers of PETSc, MUMPS and SuperLU, and finds the lowest
eigenvalue of its matrix with SLEPc. Prints a line for each, and ends with 1 if one is wrong.

The wheel's library refers to extensions of MPICH that it calls for graphics processors only, and that no other MPI has.
Symbols are looked up when they are called, so that it loads.
"""

import math
import os
import sys

sys.setdlopenflags(os.RTLD_LAZY)

import petsc4py
import slepc4py

slepc4py.init(sys.argv)
from petsc4py import PETSc
from slepc4py import SLEPc

SIDE = 40
SOLVERS = [
    ("cg", "jacobi", None),
    ("gmres", "bjacobi", None),
    ("cg", "gamg", None),
    ("preonly", "lu", "mumps"),
    ("preonly", "lu", "superlu_dist"),
]


def laplacian():
    """The five-point stencil on a square, with zero around it."""
    matrix = PETSc.Mat().createAIJ((SIDE * SIDE, SIDE * SIDE), nnz=(5, 4))
    for row in range(*matrix.getOwnershipRange()):
        i, j = divmod(row, SIDE)
        matrix[row, row] = 4
        for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= k < SIDE and 0 <= m < SIDE:
                matrix[row, k * SIDE + m] = -1
    matrix.assemble()
    return matrix


def error_of(matrix, method, conditioner, package):
    """How far the solution of one solver is from ones."""
    solution, right = matrix.createVecs()
    solution.set(1)
    matrix.mult(solution, right)
    solution.set(0)
    solver = PETSc.KSP().create(matrix.comm)
    solver.setOperators(matrix)
    solver.setType(method)
    solver.getPC().setType(conditioner)
    if package:
        solver.getPC().setFactorSolverType(package)
    solver.setTolerances(rtol=1e-8)
    solver.solve(right, solution)
    solution.shift(-1)
    return solution.norm(PETSc.NormType.INFINITY)


def error_of_eigenvalue(matrix):
    """How far SLEPc's lowest eigenvalue is from the known one."""
    solver = SLEPc.EPS().create(matrix.comm)
    solver.setOperators(matrix)
    solver.setProblemType(SLEPc.EPS.ProblemType.HEP)
    solver.setWhichEigenpairs(SLEPc.EPS.Which.SMALLEST_REAL)
    solver.solve()
    known = 8 * math.sin(math.pi / (2 * (SIDE + 1))) ** 2
    return abs(solver.getEigenvalue(0).real - known) if solver.getConverged() else math.inf


matrix = laplacian()
errors = {" ".join(filter(None, solver)): error_of(matrix, *solver) for solver in SOLVERS}
errors["lowest eigenvalue"] = error_of_eigenvalue(matrix)
if matrix.comm.rank == 0:
    for name, error in errors.items():
        print("ok" if error < 1e-5 else "wrong", name, f"{error:.1e}")
sys.exit(max(errors.values()) >= 1e-5)
