# The project's own tests of files, on NFS.
for ranks in 2 4; do
  for way in auto owners; do
    mkdir -p /export/tests-$way-$ranks
    job "every way, $ranks ranks, $way" -genv NMAD_MPI_FILE $way files /shared/tests-$way-$ranks apart
  done
  mkdir -p /export/random-$ranks
  job "random programs, $ranks ranks" oracle /shared/random-$ranks 1 5 apart
done
ranks=4
