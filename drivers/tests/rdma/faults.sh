# Queue pairs, an interface and a device that fail while a stream is checked by its hash.
# A queue pair fails after this many calls that post: a few times in a stream of any length.
every="VERBS_FAIL_EVERY $((MIB * 2 + 50))"
# The sender posts less often than the receiver, which asks for the pieces.
seldom="VERBS_FAIL_EVERY $((MIB / 2 + 16))"
stream="stream bytes $MIB"

job "queue pairs of both sides fail, the other of two rails over verbs carries on" \
  $two $count -genv $every  $stream
job "queue pairs of the sender fail, tcp carries on" \
  $mixed $count -env $seldom  $stream : -n 1 $stream
job "queue pairs of the receiver fail, tcp carries on" \
  $mixed $count $stream : -n 1 -env $seldom  $stream

apart="-genv NMAD_MPI_WINDOW network"
job "queue pairs fail under puts and gets, tcp carries on" \
  $mixed $apart $count -genv VERBS_FAIL_EVERY 60 windows stream $((MIB + 20))
job "the same over two rails over verbs" \
  $two $apart $count -genv VERBS_FAIL_EVERY 60 windows stream $((MIB + 20))

echo "== an interface is switched off and on again while it is in use"
(sleep 3; $ip link set rd0 down; sleep 2; $ip link set rd0 up) &
job "tcp carries on" $mixed  $stream
wait
echo "== a device is removed while it is in use"
(sleep 3; rdma link del rxe0) &
job "tcp carries on" $mixed  $stream
wait
says 'belongs to no RDMA device' mpiexec -n 2 $verbs ring
