# Shared by tests of the real node agent: a containerd of our own on a small filesystem, with images made from busybox. Not executable: sourced.
# shellcheck shell=bash
tables() { nft list tables 2>/dev/null | awk '$3 ~ /^berth-/ {print $2, $3}' | sort; }
tables_before=$(tables)
# A node that is killed leaves its Services' rules, as kube-proxy does; the next script's node is not to meet them.
forget_rules() {
  comm -13 <(echo "$tables_before") <(tables) | while read -r family name; do [ -n "$name" ] && nft delete table "$family" "$name"; done
}

node_missing() { # prints what a real node would need and is not there
  [ "$(id -u)" = 0 ] || { echo "root"; return; }
  for tool in containerd ctr runc umoci busybox mkfs.ext4; do command -v "$tool" >/dev/null || { echo "$tool"; return; }; done
  [ -x /usr/lib/cni/bridge ] || { echo "containernetworking-plugins"; return; }
  [ -w /sys/fs/cgroup/memory ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || { echo "a writable cgroup hierarchy"; return; }
  "$berth" node --help >/dev/null 2>&1 || echo "a berth with the node agent"
}

make_image() { # make_image NAME umoci-config-flags...
  local name=$1; shift
  (cd "$work/images" && umoci init --layout "$name" && umoci new --image "$name:1" && mkdir -p "root-$name/bin" "root-$name/tmp" &&
    cp "$(command -v busybox)" "root-$name/bin/busybox" && for applet in sh sleep echo cat date dd seq touch true false hostname ls mkdir rm nc printf tar tail head id ps wget httpd grep wc stat env ln xargs; do ln -sf busybox "root-$name/bin/$applet"; done &&
    umoci insert --image "$name:1" "root-$name/bin" /bin && umoci insert --image "$name:1" "root-$name/tmp" /tmp &&
    umoci config --image "$name:1" --config.env PATH=/bin "$@" && tar -C "$name" -cf "$name.tar" .) >/dev/null 2>&1
  ctr -a "$socket" -n k8s.io images import --base-name "berth.local/$name" "$work/images/$name.tar" >/dev/null
}

start_runtime() { # start_runtime MEGABYTES SUBNET: containerd on an ext4 of that size (made with $disk_options) below $work/disk
  socket=$work/containerd.sock
  mkdir -p "$work/disk" "$work/images" "$work/cni"
  truncate -s "$1M" "$work/disk.img" && mkfs.ext4 -q -F ${disk_options:-} "$work/disk.img" && mount -o loop "$work/disk.img" "$work/disk" || return 1
  bridge=brt$$
  cat >"$work/cni/10-berth.conflist" <<X
{"cniVersion":"0.4.0","name":"berth","plugins":[{"type":"bridge","bridge":"$bridge","isGateway":true,"ipMasq":false,
"ipam":{"type":"host-local","dataDir":"$work/ipam","ranges":[[{"subnet":"$2"}]]}}]}
X
  cat >"$work/containerd.toml" <<X
version = 2
root = "$work/disk/containerd"
state = "$work/state"
[grpc]
  address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "berth.local/pause:1"
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$work/cni"
X
  containerd -c "$work/containerd.toml" >"$work/containerd.log" 2>&1 &
  runtime_pid=$!
  for _ in $(seq 100); do ctr -a "$socket" version >/dev/null 2>&1 && break; sleep 0.1; done
  make_image pause --config.entrypoint sleep --config.entrypoint 1000000000 && make_image busybox --config.cmd sh
}

start_node() { # start_node FLAGS...: berth node in the background
  "$berth" node --node-name real --root-dir "$work/disk/node" --runtime-endpoint "$socket" --runtime-root "$work/disk/containerd" --node-cgroup "/berth-e2e-$$" \
    --port 0 --kubelet-arg fail-swap-on=false "$@" >>"$work/node.log" 2>&1 &
  node_pid=$!
}
stop_node() { [ -n "${node_pid:-}" ] && kill "$node_pid" 2>/dev/null && wait "$node_pid" 2>/dev/null; node_pid=; }

stop_runtime() {
  stop_node
  if [ -n "${runtime_pid:-}" ]; then
    for task in $(ctr -a "$socket" -n k8s.io tasks ls -q 2>/dev/null); do ctr -a "$socket" -n k8s.io tasks kill -s KILL "$task" >/dev/null 2>&1; done
    sleep 1
    kill "$runtime_pid" 2>/dev/null; wait "$runtime_pid" 2>/dev/null
  fi
  for mounted in $(awk -v w="$work/" 'index($2, w) == 1 {print $2}' /proc/mounts | sort -r); do umount -l "$mounted" 2>/dev/null; done
  [ -n "${bridge:-}" ] && ip link delete "$bridge" 2>/dev/null
  for group in /sys/fs/cgroup/*/berth-e2e-$$ /sys/fs/cgroup/berth-e2e-$$; do [ -d "$group" ] && find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null; done
  return 0
}

# ---- the real node of a `berth up`: real_node_or_skip, then a function `up` that says start_real_node, then begin_real_node
real_node_or_skip() { # real_node_or_skip WHO MORE-THAT-IS-NEEDED…
  local who=$1 missing part; shift
  missing=$(node_missing)
  for part in "$@"; do
    case $part in
      python3-grpcio) /usr/bin/python3 -c 'import grpc' 2>/dev/null ;;
      "a second processor") [ "$(nproc)" -ge 2 ] ;;
      *) command -v "$part" >/dev/null ;;
    esac || missing="${missing:+$missing, }$part"
  done
  socket=$work/data/node/runtime/containerd.sock  # make_image uses it.
  [ -z "$missing" ] || { echo "skipped: $who needs $missing"; echo "0 passed, 0 failed"; exit 0; }
}
start_real_node() { start_up --real-node on --nodes 0 --real-node-name real --kubelet-arg eviction-hard=memory.available\<10Mi "$@"; }
begin_real_node() {
  up
  mkdir -p "$work/images"
  make_image busybox --config.cmd sh
  check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
}
end_real_node() {
  stop_up
  "$berth" node reset --data-dir "$work/data" >/dev/null
  cleanup
}
