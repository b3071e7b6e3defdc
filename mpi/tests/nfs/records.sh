# Small records on NFS: each is read and overwritten by a rank of the other host. In the end the file on the server
# is the same as one that a single rank has written there.
for bytes in 100 1000 4000; do
  says "nodes do not see each other's writes" "records of $bytes B" -genv NMAD_MPI_EXPLAIN 1 \
    records /shared/records 1 $bytes
  env -u NMAD_TESTBED timeout 200 mpiexec -n 1 records /tmp/alone 1 $bytes >/dev/null
  cmp /export/records /tmp/alone || { echo "FAILED: the server has other bytes"; failed=1; }
done
rm -f /export/records /tmp/alone
job "$MB MB of records" records /shared/records $MB 1000
rm -f /export/records
