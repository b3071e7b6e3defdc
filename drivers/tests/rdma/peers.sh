# What MPICH asks the device for, over UCX and over libfabric, by the program that counts for us. Both ranks
# are taken for ranks of different nodes.
peer="$PEER/bin/mpiexec.hydra -launcher fork -n 2 -genv LD_LIBRARY_PATH $PEER/lib:$PEER/lib/mpich
  -genv LD_PRELOAD /usr/lib/libibverbs-before.so:libibverbs.so.1 -genv PEER 1 -genv MPIR_CVAR_NOLOCAL 1"
for netmod in "ucx -genv UCX_TLS rc_v,self -genv UCX_NET_DEVICES rxe0:1" \
  "ofi -genv FI_VERBS_IFACE rd0 -genv FI_PROVIDER verbs;ofi_rxm
  -genv FI_PROVIDER_PATH $PEER/lib/mpich/libfabric"; do
  echo "== MPICH over $netmod"
  timeout 200 $peer -genv MPIR_CVAR_CH4_NETMOD $netmod stream counts 2>&1 || echo "no counts over $netmod"
done
job "MAD-MPI" $verbs $count stream counts
