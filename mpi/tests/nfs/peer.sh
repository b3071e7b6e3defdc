# Records for 5 s, by this MPI and by MPICH with ROMIO.
cat >/usr/bin/agent <<'AGENT'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec $(echo "$NMAD_TESTBED" | sed -n "s/.*$host=\([^;]*\).*/\1/p") sh -c "$*"
AGENT
chmod +x /usr/bin/agent
for bytes in 100 1000; do
  job "MAD-MPI" -genv LD_LIBRARY_PATH $MPI/lib records-mpich /shared/records 280 $bytes 5
  rm -f /export/records
  echo "== MPICH"
  timeout 100 $PEER/bin/mpiexec.hydra -launcher ssh -launcher-exec /usr/bin/agent -hosts host1,host2 -n 4 -ppn 1 \
    -genv LD_LIBRARY_PATH $PEER/lib:$PEER/lib/mpich -genv MPIR_CVAR_CH4_NETMOD ofi -genv FI_PROVIDER tcp \
    records-mpich /shared/records 280 $bytes 5 2>&1 || echo "MPICH ended with $?"
  rm -f /export/records
done
