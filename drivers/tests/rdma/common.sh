# What MPI jobs over verbs need, inside the virtual machine. MPI is the folder of an installation; MIB the
# length of the streams during which queue pairs fail.
export PATH=$MPI/bin:$PATH NMAD_SAMPLE=off
count="-genv LD_PRELOAD /usr/lib/libibverbs-count.so"
verbs="-genv NMAD_RAILS verbs/rd0"
two="-genv NMAD_RAILS verbs/rd0,verbs/rd1"
mixed="-genv NMAD_RAILS verbs/rd0,tcp/rd1"

# Not the one of busybox, which its shell would take.
ip=/usr/bin/ip

# job WHAT OPTIONS...: two ranks (or $ranks), or one for each part of the options.
job() {
  echo "== $1"
  shift
  local count=${ranks:-2}
  case " $* " in *' : '*) count=1 ;; esac
  timeout 400 mpiexec -n $count "$@" 2>&1 || { echo "FAILED with $?: $*"; failed=1; }
}

# says TEXT COMMAND...: the command's output has this text.
says() {
  local text=$1
  shift
  timeout 60 "$@" >/tmp/said 2>&1
  grep -m 1 "$text" /tmp/said || { cat /tmp/said; echo "FAILED: '$text' was expected of $*"; failed=1; }
}

