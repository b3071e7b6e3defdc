# The kernel's server without the programs of nfs-utils, and two hosts beside it, in the virtual machine.
mkdir -p /export /proc/fs/nfsd /shared /var/lib/nfs/v4recovery
mount -t tmpfs -o size=1500m export /export
mount -t nfsd nfsd /proc/fs/nfsd
$ip link add bridge type bridge
$ip addr add 10.97.0.1/24 dev bridge
$ip link set bridge up

# What mountd and exportd would answer: who may mount (clients of two addresses), and what (the root of version 4).
# The flags are those of linux/nfsd/export.h: 0x2000 a number names the file system, 0x400 no check of parents,
# 0x2 any port.
for address in 10.97.0.2 10.97.0.3; do
  echo "nfsd $address 2147483647 hosts" >/proc/net/rpc/auth.unix.ip/channel
done
echo 'hosts /export 2147483647 9218 65534 65534 0' >/proc/net/rpc/nfsd.export/channel
echo 'hosts 1 \x00000000 2147483647 /export' >/proc/net/rpc/nfsd.fh/channel
echo '-2 -3 +4 +4.1 +4.2' >/proc/fs/nfsd/versions
echo 'tcp 2049' >/proc/fs/nfsd/portlist
echo 4 >/proc/fs/nfsd/threads
# No client of an earlier server can come back for its locks.
echo Y >/proc/fs/nfsd/v4_end_grace

# A host: namespaces for network, mounts and name, which a process that sleeps keeps.
hosts=
for number in 1 2; do
  unshare --net --mount --uts sleep 100000 &
  process=$!
  enter="nsenter --target $process --net --mount --uts"
  # The process has its namespaces once it has become the other program.
  tries=0
  until grep -q sleep /proc/$process/comm; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { echo "FAILED: a host has no namespaces"; exit 1; }
    sleep 0.1
  done
  $ip link add port$number type veth peer name net0 netns $process
  $ip link set port$number master bridge up
  address=10.97.0.$((number + 1))
  $enter sh -c "echo host$number >/proc/sys/kernel/hostname
    /usr/bin/ip link set lo up; /usr/bin/ip addr add $address/24 dev net0; /usr/bin/ip link set net0 up
    mount -t sysfs sysfs /sys; mount -t tmpfs -o mode=1777 shm /dev/shm
    for try in \$(seq 300); do
      mount -t nfs4 -o nosharecache,vers=4.2,addr=10.97.0.1,clientaddr=$address 10.97.0.1:/ /shared && exit
      sleep 0.2
    done
    echo 'FAILED: the export cannot be mounted'; exit 1" || exit 1
  hosts="$hosts;host$number=$enter"
done
export hosts
