# The project's own tests of files, on NFS.
for ranks in 2 4; do
  mkdir -p /export/tests
  job "every way, $ranks ranks" files /shared/tests
  job "every way by owners, $ranks ranks" -genv NMAD_MPI_FILE owners files /shared/tests
  job "random programs, $ranks ranks" oracle /shared/tests 1 5
done
ranks=4
