#!/usr/bin/env bash
# The dashboard in a real browser before a real `berth up` (SPEC I5). Without npm in the build, or without Chromium and the means to install it, what needs
# them is skipped and that is said.
# SHOTS=FOLDER makes the documents' screenshots; LARGE=1 adds 5,000 live nodes (minutes).
. "$(dirname "$0")/lib.sh"
here=$root/tests/e2e/dashboard shots=${SHOTS:-}
export REQUESTS=$work/requests; mkdir -p "$REQUESTS"
skip() { echo "skipped: $1"; finish; }

find_chromium() {
  chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) && return
  local sudo=; [ "$(id -u)" = 0 ] || sudo="sudo -n"
  command -v apt-get >/dev/null || return
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends chromium >"$work/apt.log" 2>&1
  chromium=$(command -v chromium)
}
url_in() { sed -n 's/^dashboard: //p' "$1" | tail -n 1; }
start_dashboard() { # start_dashboard FLAGS...: in the background; sets dashboard_pid and url
  : >"$work/dashboard.log"  # Or the lines of the one before would be taken for this one's.
  "$berth" dashboard --port 0 "$@" >"$work/dashboard.log" 2>&1 &
  dashboard_pid=$!
  eventually 20 grep -q '^dashboard: ' "$work/dashboard.log" || { cat "$work/dashboard.log"; return 1; }
  url=$(url_in "$work/dashboard.log")
}
stop_dashboard() { [ -z "${dashboard_pid:-}" ] || { kill "$dashboard_pid"; wait "$dashboard_pid" 2>/dev/null; dashboard_pid=; }; }
cleanup() { [ -z "${dashboard_pid:-}" ] || kill -KILL "$dashboard_pid" 2>/dev/null; stop_up KILL; rm -rf "$work"; }

happen() { # a deployment, and a pod for which others have to go
  kubectl -n shop create deployment later --image=pause --replicas=6
  kubectl -n shop apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  priorityClassName: urgent
  nodeSelector: {kubernetes.io/hostname: node-3}
  containers: [{name: c, image: pause, resources: {requests: {cpu: "31"}}}]
Y
}
views() { # views MODE URL [MORE]: runs the browser, doing with the cluster what it asks for
  SHOTS=$shots node "$here/views.mjs" "$chromium" "$2" "$1" "$shots" "${3:-}" >"$work/views.log" 2>&1 &
  local views_pid=$!
  while kill -0 "$views_pid" 2>/dev/null; do
    if [ -e "$REQUESTS/happen" ]; then rm "$REQUESTS/happen"; happen >"$work/happen.log" 2>&1; fi
    if [ -e "$REQUESTS/outdate" ]; then rm "$REQUESTS/outdate"; kubectl cordon node-2 >/dev/null; fi
    if [ -e "$REQUESTS/undo" ]; then rm "$REQUESTS/undo"; kubectl uncordon node-2 >/dev/null; fi
    if [ -e "$REQUESTS/lose" ]; then rm "$REQUESTS/lose"; kubectl annotate node -l topology.kubernetes.io/zone=zone-b sim.berth.dev/dead=true >/dev/null; fi
    if [ -e "$REQUESTS/find" ]; then rm "$REQUESTS/find"; kubectl annotate node -l topology.kubernetes.io/zone=zone-b sim.berth.dev/dead- >/dev/null; fi
    if [ -e "$REQUESTS/freeze" ]; then rm "$REQUESTS/freeze"; kill -STOP "$up_pid"; fi
    if [ -e "$REQUESTS/thaw" ]; then rm "$REQUESTS/thaw"; kill -CONT "$up_pid"; fi
    if [ -e "$REQUESTS/stop" ]; then rm "$REQUESTS/stop"; stop_up; fi
    if [ -e "$REQUESTS/start" ]; then rm "$REQUESTS/start"; start_up --nodes 12 --zones 3 --dashboard-port 0; fi
    sleep 0.1
  done
  wait "$views_pid"
  grep -vE '^[0-9]+ passed' "$work/views.log"
  local counts; counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/views.log" || echo "0 passed, 1 failed")
  read -r p _ f _ <<<"$counts"
  passed=$((passed + p)) failed=$((failed + ${f%,}))
}

if "$berth" dashboard --kubeconfig /nonexistent 2>&1 | grep -q "built without the dashboard's page"; then
  check "a build without the page says what to do" says "install Node.js with npm" "$berth" dashboard
  skip "this berth was built without the dashboard's page"
fi
check "a kubeconfig that is not there is said" says "/nonexistent" "$berth" dashboard --kubeconfig /nonexistent
check "a recording that is not there is said" says "there is no such file" "$berth" dashboard --recording /nonexistent
check "a port that is none is said" says "neither \"auto\" nor a port" "$berth" dashboard --recording "$here/views.mjs" --port x

listen=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_up --nodes 12 --zones 3
url=$(url_in "$work/up.log")
check "berth up prints the address with its token" test -n "$url"
base=${url%%/\?*}
code() { curl -s -o "$work/body" -w '%{http_code}' "$@"; }
check "without a session nothing is served" test "$(code "$base/")$(code "$base/app.js")$(code "$base/api/v1/pods")" = 401401401
check "another name for this machine is refused" test "$(code -H 'Host: evil.example' "$url")" = 403
check "the token opens a session" test "$(code -c "$work/jar" "$url")" = 200
check "once" test "$(code "$url")" = 401
check "the next address is printed" eventually 5 grep -q "for another browser: $base/?token=" "$work/up.log"
check "the session reads the cluster with the kubeconfig's rights" sh -c "curl -s -b '$work/jar' '$base/api/v1/nodes?limit=1' | grep -q NodeList"
check "and changes nothing" test "$(code -b "$work/jar" -X DELETE "$base/api/v1/nodes/node-1")" = 403
check "another page's request is refused" test "$(code -b "$work/jar" -H 'Origin: http://evil.example' -X POST -d '{}' "$base/berth/what-if")" = 403
check "it is on this machine's loopback only" sh -c "! ss -ltnH 'sport = :${base##*:}' 2>/dev/null | grep -v 127.0.0.1"
# Who may do nothing in the cluster learns nothing by any of the dashboard's own paths either, and is told so in the cluster's words.
kubectl create serviceaccount nobody >/dev/null
kubectl run lonely --image=pause >/dev/null
sed -e '/client-certificate-data\|client-key-data/d' -e "s|^\( *\)user:\$|&\n\1  token: $(kubectl create token nobody)|" "$KUBECONFIG" >"$work/nobody.kubeconfig"
eventually 20 sh -c "kubectl --kubeconfig '$work/nobody.kubeconfig' get pods 2>&1 | grep -q 'User \"system:serviceaccount:default:nobody\"'"
start_dashboard --kubeconfig "$work/nobody.kubeconfig"
curl -s -o /dev/null -c "$work/jar3" "$url"
refused() { # refused WORDS CURL ARGUMENTS...: 403, with a Status that says so
  local words=$1; shift
  local got; got=$(code -b "$work/jar3" "$@")
  if [ "$got" = 403 ] && grep -qF "$words is forbidden: User \\\"system:serviceaccount:default:nobody\\\" cannot" "$work/body"; then return; fi
  echo "$got: $(cat "$work/body")"; return 1
}
check "a node is not explained to who may not get nodes" refused 'nodes \"node-1\"' "${url%%/\?*}/berth/node?name=node-1"
check "nor is it said whether there is such a node" refused 'nodes \"node-99\"' "${url%%/\?*}/berth/node?name=node-99"
check "a pod is not explained to who may not get pods" refused 'pods \"lonely\"' "${url%%/\?*}/berth/explain?namespace=default&pod=lonely"
check "a question about the cluster is refused to who may not list it" refused 'nodes' -X POST -H "Origin: ${url%%/\?*}" -d '{"changes":[{"drain":"node-1"}]}' "${url%%/\?*}/berth/what-if"
check "and the stream of rows has none" sh -c "! timeout 2 curl -sN -b '$work/jar3' '${url%%/\?*}/berth/live' | grep -q '\"node-1\"'"
stop_dashboard
url=$(sed -n 's/^dashboard opened; for another browser: //p' "$work/up.log" | tail -n 1)
check "a node that is not there is not found" test "$(code -b "$work/jar" "$base/berth/node?name=node-99")" = 404
check "a node without its name is no question" test "$(code -b "$work/jar" "$base/berth/node")" = 400
kubectl delete pod lonely --now >/dev/null
find_chromium || skip "Chromium is not there and cannot be installed ($(tail -n 1 "$work/apt.log" 2>/dev/null))"

kubectl create namespace shop >/dev/null
kubectl create priorityclass urgent --value=1000 >/dev/null
kubectl -n shop create deployment web --image=pause --replicas=20 >/dev/null
kubectl -n shop set resources deployment web --requests=cpu=7,memory=32Gi >/dev/null
kubectl create deployment catalogue --image=pause --replicas=8 >/dev/null
kubectl set resources deployment catalogue --requests=cpu=4,memory=24Gi >/dev/null
kubectl create poddisruptionbudget catalogue --selector=app=catalogue --min-available=8 >/dev/null
kubectl run far-too-large --image=pause --overrides='{"spec":{"containers":[{"name":"c","image":"pause","resources":{"requests":{"cpu":"400"}}}]}}' >/dev/null
all_run() { [ "$(kubectl get pods -A --field-selector status.phase=Running -o name | wc -l)" -ge 28 ]; }
eventually 60 all_run
url=$(sed -n 's/^dashboard opened; for another browser: //p' "$work/up.log" | tail -n 1)
views small "$url"

start_dashboard --kubeconfig "$KUBECONFIG" --allow-changes
base=${url%%/\?*}
curl -s -o /dev/null -c "$work/jar2" "$url"
patch() { code -b "$work/jar2" -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{"spec":{"unschedulable":true}}' "$@" "$base/api/v1/nodes/node-12"; }
check "with --allow-changes the session changes things" test "$(patch)" = 200
check "another origin still does not" test "$(patch -H 'Origin: http://evil.example')" = 403
check "exec is never relayed" test "$(code -b "$work/jar2" -X POST "$base/api/v1/namespaces/default/pods/far-too-large/exec?command=id")" = 403
kubectl uncordon node-12 >/dev/null
stop_dashboard
start_dashboard --kubeconfig "$KUBECONFIG"
kubectl -n shop delete pod urgent --now >/dev/null 2>&1
views cluster "$url"
stop_dashboard
stop_up

node "$here/record.mjs" 40 400 --attack >"$work/attack.jsonl"
start_dashboard --recording "$work/attack.jsonl"
views attack "$url"
stop_dashboard
node "$here/record.mjs" 5000 "${PODS:-20000}" >"$work/large.jsonl"
start_dashboard --recording "$work/large.jsonl"
views recording "$url" "${PODS:-20000}"
stop_dashboard
if [ -n "${LARGE:-}" ]; then
  rm -rf "$work/data"; start_up --nodes 5000 --zones 3
  kubectl create deployment web --image=pause --replicas="${LIVE_PODS:-5000}" >/dev/null
  views large "$(url_in "$work/up.log")" "${LIVE_PODS:-5000}"
fi
finish
