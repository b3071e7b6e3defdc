# The project's own tests of files, on NFS: $MANY are the numbers of ranks, $WAYS those of accesses of one rank.
for ranks in $MANY; do
  for way in $WAYS; do
    mkdir -p /export/tests-$way-$ranks
    job "every way, $ranks ranks, $way" -genv NMAD_MPI_FILE $way files /shared/tests-$way-$ranks apart
  done
  mkdir -p /export/random-$ranks
  job "random programs, $ranks ranks" oracle /shared/random-$ranks 1 $SEEDS apart
done
ranks=4
