#!/usr/bin/env bash
# run.sh BERTH [SCRIPT…]: a machine that this one is not, under qemu without KVM: cgroup version 2 alone, four processors and 2 GiB in two NUMA
# nodes, 1 GiB of swap, systemd, Debian's kernel, containerd and runc. The scripts (below tests/; without any: those beside this one) run in it
# as root, one after the other. What they print comes out here; the exit code is theirs (docs/testing.md).
set -uo pipefail
berth=$(realpath "${1:?usage: run.sh path/of/berth [SCRIPT…]}"); shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) root=$(cd "$here/../.." && pwd)
scripts=("$@"); [ $# -gt 0 ] || scripts=(vm/cgroups.sh vm/swap.sh vm/numa.sh)
keep=${BERTH_VM_DIR:-$root/build/vm} # The image stays here, and is made anew when what is in it changes.
skip() { echo "skipped: a virtual machine needs $1"; echo "0 passed, 0 failed"; exit 0; }

for tool in qemu-system-x86_64 mmdebstrap mkfs.ext4 kubectl umoci ldd dpkg-query; do
  command -v $tool >/dev/null || skip "$tool (Debian: qemu-system-x86, mmdebstrap, e2fsprogs, umoci)"
done
[ "$(id -u)" = 0 ] || skip "root, to make its image"
[ "$(uname -m)" = x86_64 ] || skip "a machine of its own kind (x86_64)"
sources=$(ls /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)
[ -n "$sources" ] || skip "apt's sources of a Debian"

# ---- the image: Debian as this machine's apt has it, with what berth is linked with
libraries() { ldd "$berth" | awk '$3 ~ /^\// {print $3}' | xargs -n 1 realpath | xargs dpkg-query -S 2>/dev/null | cut -d: -f1 | sort -u; }
packages=(systemd systemd-sysv udev linux-image-cloud-amd64 initramfs-tools containerd runc containernetworking-plugins umoci busybox-static
  iproute2 iptables nftables conntrack procps util-linux e2fsprogs curl ca-certificates python3 kmod pdns-recursor)
mapfile -t -O ${#packages[@]} packages < <(libraries)
mkdir -p "$keep"
wanted=$(printf '%s\n' "${packages[@]}" | cat - "$sources" "$here/boot.sh" | sha256sum)
if [ "$(cat "$keep/made-of" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$keep/root" "$keep/made-of"
  nice mmdebstrap --mode=root --variant=minbase --include="$(IFS=,; echo "${packages[*]}")" "$(. /etc/os-release && echo "$VERSION_CODENAME")" \
    "$keep/root" "$sources" >"$keep/make.log" 2>&1 || { tail -5 "$keep/make.log"; skip "packages that its apt can get (see $keep/make.log)"; }
  cp "$here/boot.sh" "$keep/root/usr/local/sbin/boot"
  : >"$keep/root/etc/machine-id" # systemd gives one at the first start.
  cp "$keep"/root/boot/vmlinuz-* "$keep/kernel" && cp "$keep"/root/boot/initrd.img-* "$keep/initrd"
  rm -f "$keep/root.img" && truncate -s 6G "$keep/root.img" && mkfs.ext4 -q -d "$keep/root" "$keep/root.img" || exit 1
  rm -rf "$keep/root"
  echo "$wanted" >"$keep/made-of"
fi

# ---- what changes from run to run: berth, kubectl, the tests
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-vm.XXXXXX")
trap '[ -z "${qemu:-}" ] || kill $qemu 2>/dev/null; rm -rf "$work"' EXIT
mkdir -p "$work/job/bin" && cp "$berth" "$work/job/bin/berth" && cp -r "$root/tests" "$root/examples" "$work/job/"
kubectl=$(realpath "$(command -v kubectl)")
# A dispatcher stands beside the programs that it chooses from: the newest of them.
cp "$(ls -v "$kubectl" "$kubectl".1.* 2>/dev/null | tail -n 1)" "$work/job/bin/kubectl"
printf '%s\n' "${scripts[@]}" >"$work/job/scripts"
[ -z "${BERTH_VM_SHELL:-}" ] || touch "$work/job/shell"
truncate -s 1G "$work/job.img" && mkfs.ext4 -q -d "$work/job" "$work/job.img" && rm -rf "$work/job" || exit 1
truncate -s 1G "$work/swap.img" && chmod 600 "$work/swap.img" && mkswap "$work/swap.img" >/dev/null 2>&1 || exit 1

# ---- the machine
disk() { echo "if=virtio,format=raw,file=$1,cache=unsafe${2:-}"; }
devices=(-serial "file:$work/console.log" -serial "file:$work/result.log")
[ -z "${BERTH_VM_SHELL:-}" ] || devices+=(-serial "unix:$BERTH_VM_SHELL,server=on,wait=off") # For who looks inside: a root shell at this socket.
nice qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 -cpu max -smp 4,sockets=2,cores=2 -m 2G -nographic -monitor none -no-reboot \
  -object memory-backend-ram,id=m0,size=1G -object memory-backend-ram,id=m1,size=1G \
  -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 -numa dist,src=0,dst=1,val=20 \
  -kernel "$keep/kernel" -initrd "$keep/initrd" \
  -append "root=/dev/vda rw console=ttyS0 quiet mitigations=off no_timer_check panic=-1 systemd.unified_cgroup_hierarchy=1 systemd.run=/usr/local/sbin/boot" \
  -drive "$(disk "$keep/root.img" ,snapshot=on)" -drive "$(disk "$work/job.img" ,readonly=on)" -drive "$(disk "$work/swap.img")" \
  -nic "user,model=virtio-net-pci,restrict=${BERTH_VM_RESTRICT:-on}" "${devices[@]}" </dev/null >"$work/qemu.log" 2>&1 &
qemu=$!
tail -n +1 --pid=$qemu -F "$work/result.log" 2>/dev/null | sed -u 's|\r$||'
wait $qemu || { echo "FAIL qemu ended:"; tail -5 "$work/qemu.log"; }
qemu=
grep -q '^the end' "$work/result.log" || { echo "FAIL the machine ended early; its console's last lines:"; tail -20 "$work/console.log"; exit 1; }
! grep -aqE '^(FAIL|[0-9]+ passed, [1-9][0-9]* failed)' "$work/result.log"
