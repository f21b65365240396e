#!/usr/bin/env bash
# packages.sh DIR: what `make package` left in DIR, in places where nothing of the build is: the .deb in a Debian 12 made by debootstrap (installed,
# started as its own user, upgraded, removed, purged: data stays), the tar there without the package, the image by containerd. Needs root and Debian's mirror.
set -uo pipefail
dir=$(realpath "${1:?usage: packages.sh DIR}") passed=0 failed=0
work=$(mktemp -d /var/tmp/berth-packages.XXXXXX) root=$work/root daemon=
cleanup() { [ -z "$daemon" ] || kill "$daemon" 2>/dev/null; umount "$root/proc" 2>/dev/null; rm -rf "$work"; }
trap cleanup EXIT
check() { local what=$1; shift; if "$@" >"$work/out" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $what"; tail -8 "$work/out" | sed 's/^/     /'; fi; }
says() { local text=$1; shift; "$@" >"$work/says" 2>&1; grep -qF -- "$text" "$work/says" || { cat "$work/says"; return 1; }; }
missing=(); for p in debootstrap containerd; do command -v $p >/dev/null || missing+=("$p"); done
[ ${#missing[@]} -eq 0 ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
mirror=$(sed -nE 's/^(deb|URIs:) *(\[[^]]*\] *)?(https?:[^ ]+).*/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$work/debootstrap.log" 2>&1 || { tail -3 "$work/debootstrap.log"; echo "0 passed, 1 failed"; exit 1; }
cp /etc/apt/sources.list "$root/etc/apt/" 2>/dev/null; cp -r /etc/apt/sources.list.d /etc/apt/apt.conf.d "$root/etc/apt/" 2>/dev/null; cp /etc/resolv.conf "$root/etc/" 2>/dev/null
mount -t proc proc "$root/proc"
in_root() { DEBIAN_FRONTEND=noninteractive HOME=/root chroot "$root" "$@"; }

# The tar first: nothing that berth needs is installed yet.
tar -C "$root/opt" -xzf "$dir"/berth-*-linux-*.tar.gz
check "the tar runs without any package" says "berth 0." in_root sh -c '/opt/berth-*/bin/berth version'
cp "$dir"/berth_*.deb "$root/tmp/berth.deb"
in_root apt-get update -q >/dev/null 2>&1
check "the package installs with what it depends on" in_root apt-get install -y -q --no-install-recommends /tmp/berth.deb
check "berth runs" says "berth 0." in_root berth version
check "kubectl finds it as a plugin" in_root test -x /usr/bin/kubectl-berth
check "its configuration is valid" says "is valid" in_root berth server --config /etc/berth/berth.yaml --validate
check "... of every role that needs no more than the server's files" sh -c "for role in scheduler controllers; do chroot '$root' berth \$role --config /etc/berth/berth.yaml --validate 2>&1 | grep -qE 'unknown field|did you mean' && exit 1; done; true"
check "the configuration is not for everybody" [ "$(stat -c %a "$root/etc/berth/berth.yaml")" = 640 ]
check "there is a user for the services" in_root id berth
check "units are there and well" sh -c "command -v systemd-analyze >/dev/null && systemd-analyze verify --root='$root' berth-server.service berth-scheduler.service berth-controllers.service || ls '$root'/lib/systemd/system/berth-server.service"
check "nothing was started or enabled" sh -c "[ -z \"\$(ls '$root'/etc/systemd/system/multi-user.target.wants/ 2>/dev/null | grep berth)\" ]"
check "manual pages" sh -c "ls '$root'/usr/share/man/man1/berth-server.1.gz '$root'/usr/share/man/man1/berth.1.gz"
in_root su -s /bin/sh berth -c 'HOME=/var/lib/berth timeout 30 berth server --config /etc/berth/berth.yaml --listen 127.0.0.1:0 >/tmp/server.log 2>&1 & echo $!' >"$work/pid"
for _ in $(seq 100); do grep -q '^export KUBECONFIG' "$root/tmp/server.log" 2>/dev/null && break; sleep 0.1; done
check "the server runs as that user, its data under /var/lib/berth" says "/var/lib/berth/admin.kubeconfig" cat "$root/tmp/server.log"
check "and answers" in_root berth get namespaces --kubeconfig /var/lib/berth/admin.kubeconfig
check "a snapshot while it runs" in_root berth snapshot save /tmp/s.snap --data-dir /var/lib/berth
# What root does beside it, the server has to be able to read.
for step in prepare switch finish; do in_root berth adm rotate ca --step $step --data-dir /var/lib/berth >/dev/null; done
check "keys that root exchanges stay the service's" sh -c "[ -z \"\$(chroot '$root' find /var/lib/berth ! -user berth)\" ]"
kill "$(cat "$work/pid")" 2>/dev/null; pkill -TERM -f -- "--config /etc/berth/berth.yaml --listen 127.0.0.1:0" 2>/dev/null; sleep 1
echo '# mine' >>"$root/etc/berth/berth.yaml"
check "an upgrade keeps data and changed configuration" sh -c "DEBIAN_FRONTEND=noninteractive chroot '$root' apt-get install -y -q --reinstall /tmp/berth.deb && grep -q '# mine' '$root/etc/berth/berth.yaml' && [ -s '$root/var/lib/berth/store.db' ]"
check "removal keeps them" sh -c "chroot '$root' apt-get remove -y -q berth && [ -s '$root/var/lib/berth/store.db' ] && [ -e '$root/etc/berth/berth.yaml' ]"
check "purge keeps the data and says so" says "holds a cluster's data" in_root apt-get purge -y -q berth
check "... the configuration goes" [ ! -e "$root/etc/berth/berth.yaml" ]

# The image, by a containerd of our own.
check "the image is at most 60 MB" [ "$(stat -c %s "$dir"/berth-*.oci.tar)" -le 62914560 ]
mkdir -p "$work/containerd"
printf 'version = 2\nroot = "%s/root"\nstate = "%s/state"\n[grpc]\naddress = "%s/sock"\n' "$work/containerd" "$work/containerd" "$work/containerd" >"$work/containerd.toml"
containerd -c "$work/containerd.toml" >"$work/containerd.log" 2>&1 & daemon=$!
ctr_() { ctr -a "$work/containerd/sock" "$@"; }
for _ in $(seq 100); do ctr_ version >/dev/null 2>&1 && break; sleep 0.1; done
check "containerd takes the image" ctr_ images import --base-name berth "$dir"/berth-*.oci.tar
image=$(ctr_ images ls -q | head -n 1)
check "it runs" says "berth 0." ctr_ run --rm "$image" v1 /usr/bin/berth version
check "... as no root" says "Uid:	65532" ctr_ run --rm --mount "type=bind,src=$(command -v busybox),dst=/busybox,options=rbind:ro" "$image" v2 /busybox grep Uid /proc/self/status
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
