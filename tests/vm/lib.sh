# Shared by the scripts of this folder: a node that is this machine, its pods, and the files that the kernel has for them. Not executable: sourced.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/runtime.sh"
groups=/sys/fs/cgroup
[ -e $groups/cgroup.controllers ] || { echo "skipped: no cgroup version 2 here; tests/vm/run.sh has a machine with it"; echo "0 passed, 0 failed"; exit 0; }
real_node_or_skip "a real node" kubectl
trap end_real_node EXIT
forever='trap "exit 0" TERM; while :; do sleep 0.3; done'

pod() { # pod NAME COMMAND [YAML-OF-THE-CONTAINER [YAML-OF-THE-SPEC]]: YAML in one line each
  printf '# YAML\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  terminationGracePeriodSeconds: 1\n%s\n  containers:\n  - name: c\n    image: berth.local/busybox:1\n    command: [sh, -c, %s]\n%s\n' \
    "$1" "${4:+  $4}" "'$2'" "${3:+    $3}" | kubectl apply -f -
}
field() { kubectl get pod "$1" -o jsonpath="{.status.$2}"; }
is() { local now; now=$(field "$1" "$2"); [ "$now" = "$3" ] || { echo "$2 is '$now', not '$3'"; return 1; }; }
runs() { eventually "${2:-20}" is "$1" phase Running; }
event() { kubectl get events --field-selector "involvedObject.name=$1" -o jsonpath='{range .items[*]}{.type} {.reason} {.message}{"\n"}{end}' | tee "$work/events" | grep -F -- "$2" || { cat "$work/events"; return 1; }; }
condition() { field "$1" "conditions[?(@.type==\"$2\")].$3"; }
gone() { [ -z "$(kubectl get pods -o name)" ]; }
# Where the kernel has a pod, and one of its containers.
pod_group() { find $groups/kubepods -type d -name "pod$(kubectl get pod "$1" -o jsonpath='{.metadata.uid}')"; }
container_group() { echo "$(pod_group "$1")/$(field "$1" "containerStatuses[${2:-0}].containerID" | sed 's|.*//||')"; }
has() { # has GROUP FILE TEXT: the file of the group says that
  local now; now=$(tr '\n' ' ' <"$1/$2") && [ "${now% }" = "$3" ] || { echo "$1/$2 says '${now:-nothing}', not '$3'"; return 1; }
}
near() { # near ONE OTHER PERCENT
  awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a > b ? a - b : b - a; exit !(a != "" && b != "" && d * 100 <= p * (a > b ? a : b)) }' || { echo "$1 and $2"; return 1; }
}
node_says() { kubectl get --raw "/api/v1/nodes/real/proxy/$1"; }
# of JSON PYTHON-EXPRESSION-OVER-j
of() { python3 -c 'import json, sys; j = json.load(sys.stdin); print(eval(sys.argv[1]))' "$2" <<<"$1"; }
