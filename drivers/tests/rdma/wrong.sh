# Memory, sides and devices that do not fit, and what is said of them.
job "memory that cannot be registered is copied" $verbs $count -genv VERBS_REFUSE 1 -genv NO_NOTICE 1 \
  stream bytes 16
job "memory that a device faults in is not copied" $verbs $count -genv VERBS_REFUSE 1 -genv VERBS_ON_DEMAND 1 \
  stream counts
echo "== two sides with different MTU"
timeout 100 mpiexec $verbs $count -n 1 -env VERBS_MTU 2 ring : -n 1 ring ||
  { echo "FAILED: two MTU"; failed=1; }

echo "== what is said of wrong input"
# A rail that is named has to open.
wrong="mpiexec -n 2 $mixed"
says 'belongs to no RDMA device (rd0, rd1 does' mpiexec -n 2 -genv NMAD_RAILS verbs/lo ring
says 'port 1 of RDMA device rxe0 is not active' $wrong $count -genv VERBS_PORT_STATE 1 ring
says 'is too old: it has no ibv_' $wrong -genv LD_LIBRARY_PATH /usr/old ring
chmod -R a+rwX /dev/infiniband/*
says 'the limit of locked memory is too low' \
  su -s /bin/sh nobody -c "ulimit -l 1024; PATH=$PATH NMAD_SAMPLE=off $wrong ring"
