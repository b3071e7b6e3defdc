# What jobs on NFS need, inside the virtual machine: $hosts are the hosts as `nmad testbed` names them.
export PATH=$MPI/bin:$PATH NMAD_SAMPLE=off NMAD_TESTBED="${hosts#;}"

# job WHAT OPTIONS...: four ranks (or $ranks), placed on the hosts in turn.
job() {
  echo "== $1"
  shift
  timeout "${limit:-600}" mpiexec -n "${ranks:-4}" "$@" 2>&1 || { echo "FAILED with $?: $*"; failed=1; }
}

# says TEXT WHAT OPTIONS...: a job whose output has this text.
says() {
  local text=$1
  shift
  job "$@" >/tmp/said
  # What is said about collectives is another subject.
  grep -v -E '^nmad: (all|barrier)' /tmp/said
  grep -q "$text" /tmp/said || { echo "FAILED: '$text' was expected"; failed=1; }
}
