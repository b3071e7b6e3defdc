# SPDX-License-Identifier: MIT OR Apache-2.0
"""`spack repo add packaging/spack && spack install newmadeleine`"""

import os

from spack.package import *


class Newmadeleine(Package):
    """A communication library, and an MPI on top of it, that uses every network of a node at once."""

    homepage = "https://github.com/newmadeleine/newmadeleine"
    git = "https://github.com/newmadeleine/newmadeleine.git"

    license("MIT OR Apache-2.0", checked_by="newmadeleine")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("binutils", type="build")

    provides("mpi@:3.1")

    conflicts("platform=darwin", msg="NewMadeleine runs on Linux only")
    conflicts("platform=windows", msg="NewMadeleine runs on Linux only")

    sanity_check_is_file = [
        join_path("bin", "nmad"),
        join_path("bin", "mpicc"),
        join_path("lib", "libnmad.so"),
        join_path("lib", "libmpi_abi.so.1"),
        join_path("lib", "libmpi.so.12"),
        join_path("include", "mpi.h"),
    ]

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("build", "--release", "--locked")
        installer = Executable(join_path("target", "release", "nmad"))
        installer("install", "--prefix", prefix)

    def setup_run_environment(self, env):
        self._name_wrappers(env)

    def setup_dependent_build_environment(self, env, dependent_spec):
        self._name_wrappers(env)
        # The wrappers call the compiler of the package that is being built.
        env.set("NMAD_CC", os.environ.get("SPACK_CC", "cc"))
        env.set("NMAD_CXX", os.environ.get("SPACK_CXX", "c++"))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
        self.spec.mpicxx_shared_libs = []

    def _name_wrappers(self, env):
        env.set("MPICC", join_path(self.prefix.bin, "mpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "mpicxx"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        """Two ranks start and end."""
        Executable(join_path(self.prefix.bin, "mpiexec"))("-n", "2", "--timeout", "60", "true")
