#!/usr/bin/env bash
# What operators do: one configuration file, logs as JSON, snapshots while running, restore, check (docs/operations.md).
. "$(dirname "$0")/lib.sh"
cat >"$work/berth.yaml" <<'YAML'
apiVersion: berth/v1
kind: Configuration
log: {level: info, format: json}
up:
  nodes: 2
  feature-gates: {SomeGate: true}
scheduler: {seed: 1}
YAML
start_up --config "$work/berth.yaml" --zones 1
check "the file's nodes, the command line's zones" says "2 simulated nodes in 1 zone" cat "$work/up.log"
check "log lines are objects" sh -c "grep -v '^{' '$work/up.log' | grep -vE '^(berth is up|dashboard|export|\$)' | wc -l | grep -qx 0"
check "... with time, level, component and message" sh -c "grep '^{' '$work/up.log' | python3 -c 'import json,sys; [(d[\"ts\"],d[\"level\"],d[\"component\"],d[\"msg\"]) for d in map(json.loads,sys.stdin)]'"
kubectl create deployment web --image=nginx --replicas=3 >/dev/null
check "it runs" kubectl rollout status deployment/web --timeout=60s

# SIGHUP reads it again and ends nothing.
sed -i 's/level: info/level: warning/; s/nodes: 2/nodes: 5/' "$work/berth.yaml"; kill -HUP "$up_pid"
sed -i 's/level: warning/level: loud/' "$work/berth.yaml"; kill -HUP "$up_pid"
check "a reload with a mistake is not taken and says where" eventually 10 grep -q 'berth.yaml:3: log.level: \\"loud\\" is not one of' "$work/up.log"
check "it still serves" kubectl get --raw /readyz

# A snapshot of the running server; what comes after it is not in it.
check "save" says "saved $work/s.snap" "$berth" snapshot save "$work/s.snap" --data-dir "$work/data"
kubectl create configmap later --from-literal=a=1 >/dev/null
seen=$(kubectl get configmap later -o jsonpath='{.metadata.resourceVersion}')
check "an existing file is refused" says "is there already" "$berth" snapshot save "$work/s.snap" --data-dir "$work/data"
check "verify" says "verified $work/s.snap" "$berth" snapshot verify "$work/s.snap"
check "a store in use is checked" says "sound:" "$berth" check "$work/data" --counts
check "a directory in use is no place to restore" says "is there already and not empty" "$berth" snapshot restore "$work/s.snap" --data-dir "$work/data"
uid=$(kubectl get deployment web -o jsonpath='{.metadata.uid}')
stop_up
rm -rf "$work/data"
check "restore" says "restored $work/data" "$berth" snapshot restore "$work/s.snap" --data-dir "$work/data"
check "nothing is left beside it" sh -c "[ -z \"\$(ls -d '$work'/data.restoring* 2>/dev/null)\" ]"
check "restore does not choose a place by itself" says "--data-dir is required" "$berth" snapshot restore "$work/s.snap"
check "keys are private" sh -c "[ -z \"\$(find '$work/data' -name '*.key' -not -perm 600)\" ]"
check "the last start's configuration is read again, and its mistake is told" says "berth.yaml is that of the last start" "$berth" up --data-dir "$work/data" --nodes 2
sed -i 's/level: loud/level: info/' "$work/berth.yaml"
start_up --nodes 2
check "what was there is there" [ "$uid" = "$(kubectl get deployment web -o jsonpath='{.metadata.uid}')" ]
check "what came later is not" refused kubectl get configmap later
check "revisions are ahead of all that clients have seen" [ "$(kubectl get deployment web -o json | sed -n 's/.*"resourceVersion": "\([0-9]*\)".*/\1/p' | head -1)" -gt 0 -a "$(kubectl create configmap next -o jsonpath='{.metadata.resourceVersion}')" -gt "$seen" ]
check "an old watch is told to list anew" says "Expired" kubectl get --raw "/api/v1/configmaps?watch=1&timeoutSeconds=2&resourceVersion=$seen"
stop_up

# Damage and mistakes.
python3 - "$work" <<'PY'
import sys
w = sys.argv[1]; b = bytearray(open(w + "/s.snap", "rb").read()); at = b.find(b'"uid":"'); b[at + 9] ^= 1; open(w + "/bad.snap", "wb").write(b)
PY
check "a damaged snapshot is refused" says "is damaged" "$berth" snapshot verify "$work/bad.snap"
check "... and nothing is made of it" says "is damaged" "$berth" snapshot restore "$work/bad.snap" --data-dir "$work/other"
check "... not even a directory" refused ls -d "$work"/other*
head -c -100 "$work/s.snap" >"$work/half.snap"
check "half a snapshot is refused as well" refused "$berth" snapshot restore "$work/half.snap" --data-dir "$work/other"
check "... and nothing is made of that either" refused ls -d "$work"/other*
check "check says what is wrong with a store" sh -c "cp -r '$work/data' '$work/hurt' && python3 -c \"
import sqlite3; c=sqlite3.connect('$work/hurt/store.db'); c.execute(\\\"update log set value=replace(value,'web','wob') where key like '%deployments%web'\\\"); c.commit()\" && ! '$berth' check '$work/hurt' 2>'$work/err' && grep -q 'checksum does not fit' '$work/err'"
check "no store" says "there is no store here" "$berth" check "$work"
check "a word that is none" says 'is not save, verify, restore or move' "$berth" snapshot svae
check "an unknown key names the nearest" says 'server.lisen: unknown field "lisen"; did you mean "listen"?' "$berth" server --config <(printf 'apiVersion: berth/v1\nkind: Configuration\nserver:\n  lisen: x\n') --validate
check "a configuration without a name" says "--config: the name of its file is missing" "$berth" server --config
check "an unknown role" says 'unknown field "schedular"; did you mean "scheduler"?' "$berth" server --config <(printf 'apiVersion: berth/v1\nkind: Configuration\nschedular: {}\n') --validate
told() { "$berth" "$@" server --config <(printf 'apiVersion: berth/v1\nkind: Configuration\nlog: {format: json}\nserver:\n  feature-gates: {A: true}\n') --event-ttl soon --data-dir "$work/none" 2>&1 | grep feature-gates; }
check "the file's log format holds" says '"level":"warning"' told
check "... where the command line says nothing else" says "] --feature-gates" told --log-format text
check "a scheduler's own file is still taken" says "is valid" "$berth" scheduler --config <(printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n') --validate
finish
