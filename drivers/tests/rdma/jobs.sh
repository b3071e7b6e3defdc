# MPI jobs over verbs, inside the virtual machine. MPI is the folder of an installation; MIB the length of the
# streams during which queue pairs fail.
export PATH=$MPI/bin:$PATH NMAD_SAMPLE=off
count="-genv LD_PRELOAD /usr/lib/libibverbs-count.so"
verbs="-genv NMAD_RAILS verbs/rd0"
two="-genv NMAD_RAILS verbs/rd0,verbs/rd1"
mixed="-genv NMAD_RAILS verbs/rd0,tcp/rd1"

# A queue pair fails after this many calls that post: a few times in a stream of any length.
every="-genv VERBS_FAIL_EVERY $((MIB * 2 + 50))"

# job WHAT OPTIONS...: two ranks.
job() {
  echo "== $1"
  shift
  timeout 400 mpiexec -n 2 "$@" 2>&1 || { echo "FAILED with $?: $*"; failed=1; }
}

# says TEXT COMMAND...: the command's output has this text.
says() {
  local text=$1
  shift
  timeout 60 "$@" >/tmp/said 2>&1
  grep -m 1 "$text" /tmp/said || { cat /tmp/said; echo "FAILED: '$text' was expected of $*"; failed=1; }
}

job "ring over verbs" $verbs ring
job "what the device is asked for" $verbs $count stream counts
job "memory that is unmapped between messages" $verbs stream moved
job "one message over verbs and tcp" $mixed -genv NMAD_TRACE /tmp/t stream bytes 2
nmad trace /tmp/t | grep -E 'PostChunk|Landed' | head -n 30
job "queue pairs fail, the other of two rails over verbs carries on" \
  $two $count $every -genv NMAD_STATS 1 stream bytes $MIB
job "queue pairs fail, tcp carries on" \
  $mixed $count $every -genv NMAD_STATS 1 stream bytes $MIB
job "memory that cannot be registered is copied" $verbs $count -genv VERBS_REFUSE 1 -genv NO_NOTICE 1 \
  stream bytes 16
echo "== two sides with different MTU"
timeout 100 mpiexec $verbs $count -n 1 -env VERBS_MTU 2 ring : -n 1 ring ||
  { echo "FAILED: two MTU"; failed=1; }

echo "== what is said of wrong input"
# Beside tcp, which carries the job.
wrong="mpiexec -n 2 $mixed"
says 'belongs to no RDMA device (rd0, rd1 does' mpiexec -n 2 -genv NMAD_RAILS verbs/lo ring
says 'port 1 of RDMA device rxe0 is not active' $wrong $count -genv VERBS_PORT_STATE 1 ring
grep -m 1 'token 100, expected 100' /tmp/said || { echo "FAILED: tcp carries on"; failed=1; }
says 'is too old: it has no ibv_' $wrong -genv LD_LIBRARY_PATH /usr/old ring
chmod 666 /dev/infiniband/*
says 'the limit of locked memory is too low' \
  su -s /bin/sh nobody -c "ulimit -l 1024; PATH=$PATH NMAD_SAMPLE=off $wrong ring"
grep -m 1 'token 100, expected 100' /tmp/said || { echo "FAILED: tcp carries on"; failed=1; }
echo "== a device is removed while it is in use"
(sleep 4; rdma link del rxe0) &
job "tcp carries on" $mixed -genv NMAD_STATS 1 stream bytes $MIB
wait
says 'belongs to no RDMA device' mpiexec -n 2 $verbs ring
