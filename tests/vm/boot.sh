#!/bin/bash
# Inside the machine that run.sh starts: its network, disks and swap, then the scripts. systemd runs this as a service (systemd.run=).
exec >/dev/ttyS1 2>&1
export PATH=/job/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mkdir -p /job && mount -o ro /dev/vdb /job
modprobe br_netfilter
ip link set lo up
for device in /sys/class/net/e*; do ip link set "${device##*/}" up && ip addr add 10.0.2.15/24 dev "${device##*/}" && ip route add default via 10.0.2.2; done
echo "nameserver 10.0.2.3" >/etc/resolv.conf
export BERTH_SWAP_DEVICE=/dev/vdc # Nobody swaps but who is about it.
export BERTH_PATIENCE=${BERTH_PATIENCE:-8} # Translated instructions: seconds are short.
export TMPDIR=/var/tmp
[ ! -e /job/shell ] || setsid bash -i </dev/ttyS2 >/dev/ttyS2 2>&1 &
echo "$(uname -r), $(nproc) processors, $(grep MemTotal /proc/meminfo | tr -s ' '), NUMA nodes $(cat /sys/devices/system/node/online), cgroups: $(cat /sys/fs/cgroup/cgroup.controllers)"
while read -r script; do
  echo "---- $script"
  begun=$SECONDS
  "/job/tests/$script" /job/bin/berth
  echo "     ($((SECONDS - begun)) s)"
done </job/scripts
echo "the end"
[ ! -e /job/shell ] || sleep 1d
sync
systemctl poweroff --force
