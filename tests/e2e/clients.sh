#!/usr/bin/env bash
# The official JavaScript client: an informer that lives through kill -9 and restart of the server, with no pod missed, repeated or left over.
# Needs node, and the npm registry once (the client is kept in build/js); says so and skips where they are missing.
. "$(dirname "$0")/lib.sh"
modules=$root/build/js
mkdir -p "$modules"
cp "$root"/tests/e2e/js/* "$modules/"
if ! command -v npm >/dev/null || ! { [ -d "$modules/node_modules/@kubernetes/client-node" ] || (cd "$modules" && npm install --no-audit --no-fund --no-package-lock >"$work/npm" 2>&1); }; then
  echo "skipped: the JavaScript client needs node and the npm registry"
  echo "0 passed, 0 failed"
  exit 0
fi

listen=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_up --nodes 3
coproc JS { exec node "$modules/informer.js" "$KUBECONFIG"; }
exec 7>&"${JS[1]}" 8<&"${JS[0]}"  # Subshells do not get a coprocess' own descriptors.
ask() { echo "$1" >&7; local line; IFS= read -r -t 60 line <&8 && echo "$line"; }
holds() { [ "$(ask "count $1" | tee "$work/held")" = ok ] || { cat "$work/held"; return 1; }; }
make_pods() { # make_pods PREFIX N
  for i in $(seq "$2"); do
    printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s-%d"},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}\n' "$1" "$i"
  done | kubectl create -f - >/dev/null
}

make_pods first 40
check "the informer sees 40 pods" holds 40
stop_up KILL
start_up --nodes 3
check "the same address after kill -9" [ "$(sed -n 's/.*https:\/\///p' "$work/up.log" | head -n 1)" = "$listen" ]
make_pods second 20
kubectl delete pod first-1 first-2 first-3 --wait=true >/dev/null
check "it goes on after the restart: 57 pods" holds 57
check "the watch broke and was started again" [ "$(ask errors)" -ge 1 ]
stop_up INT
start_up --nodes 3
kubectl delete pod second-1 --wait=true >/dev/null
check "and after a second one: 56 pods" holds 56
ask report >"$work/report.json"
kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}={.metadata.resourceVersion}{"\n"}{end}' | sort >"$work/server"
python3 - "$work/report.json" >"$work/names" <<'P'
import json, sys
print(*sorted(f"{n}={v}" for n, v in json.load(open(sys.argv[1]))["cache"].items()), sep="\n")
P
check "its cache is the server's list, revision by revision" diff "$work/names" "$work/server"
check "every pod was added once, and only the deleted ones were deleted" python3 - "$work/report.json" <<'P'
import json, sys
report = json.load(open(sys.argv[1]))
assert len(report["added"]) == 60 and set(report["added"].values()) == {1}, report["added"]
assert report["deleted"] == {"first-1": 1, "first-2": 1, "first-3": 1, "second-1": 1}, report["deleted"]
P
suite=$root/../shared/kubesuite/client/clients.js
if [ -f "$suite" ]; then
  cp "$suite" "$modules/clients.js"
  check "the client suite beside the project" node "$modules/clients.js" "$KUBECONFIG"
fi
finish
