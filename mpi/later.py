"""Runs a program of Python (mpi4py's tests) on an MPI that has no files yet.

What answers MPI_ERR_UNSUPPORTED_OPERATION there raises NotImplementedError, by which mpi4py's tests know what to skip.
    python mpi/later.py PROGRAM ARGUMENTS...
"""

import runpy
import sys

from mpi4py import MPI

MAKERS = {
    MPI.File: ["Open"],
}


def or_later(make):
    """The function, but NotImplementedError says what is unsupported."""

    def call(*arguments, **names):
        try:
            return make(*arguments, **names)
        except MPI.Exception as error:
            if error.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION:
                raise NotImplementedError(str(error)) from error
            raise

    return staticmethod(call)


for base, makers in MAKERS.items():
    name = base.__name__
    functions = {maker: or_later(getattr(base, maker)) for maker in makers}
    setattr(MPI, name, type(name, (base,), {"__module__": "mpi4py.MPI", **functions}))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
