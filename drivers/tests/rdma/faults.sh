# Queue pairs and a device that fail while a stream is checked by its hash.
# A queue pair fails after this many calls that post: a few times in a stream of any length.
every="-genv VERBS_FAIL_EVERY $((MIB * 2 + 50))"

job "queue pairs fail, the other of two rails over verbs carries on" \
  $two $count $every -genv NMAD_STATS 1 stream bytes $MIB
job "queue pairs fail, tcp carries on" \
  $mixed $count $every -genv NMAD_STATS 1 stream bytes $MIB
echo "== a device is removed while it is in use"
(sleep 4; rdma link del rxe0) &
job "tcp carries on" $mixed -genv NMAD_STATS 1 stream bytes $MIB
wait
says 'belongs to no RDMA device' mpiexec -n 2 $verbs ring
