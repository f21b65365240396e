#!/usr/bin/env bash
# Service addresses of a real node lead to its pods: ClusterIP, NodePort, endpoints that come and go, affinity, none at all. Needs root, containerd, nftables.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
missing=$(node_missing)
if [ -n "$missing" ]; then echo "skipped: a real node needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
socket=$work/data/node/runtime/containerd.sock
clean() { stop_up KILL; sleep 1; "$berth" node reset --data-dir "$work/data" >/dev/null 2>&1; cleanup; }
trap clean EXIT
start_up --real-node on --real-node-name real --kubelet-arg eviction-hard=memory.available\<10Mi
if grep -q 'Services have no addresses on this node' "$work/up.log"; then echo "skipped: $(grep -o 'Services have no addresses.*' "$work/up.log")"; echo "0 passed, 0 failed"; exit 0; fi
mkdir -p "$work/images"
make_image busybox --config.cmd sh
check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
kubectl create -f - >/dev/null <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: berth.local/busybox:1
        imagePullPolicy: Never
        command: [sh, -c, 'mkdir /www; hostname >/www/index.html; exec httpd -f -p 8080 -h /www']
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec:
  selector: {app: web}
  sessionAffinity: ClientIP
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: nobody}
spec:
  selector: {app: nobody}
  ports: [{port: 80}]
YAML
check "two pods run" kubectl rollout status deployment/web --timeout=60s
ip() { kubectl get service "$1" -o jsonpath='{.spec.clusterIP}'; }
get() { curl -sf --max-time 2 "http://$1/"; }
different() { for _ in $(seq "$2"); do get "$1"; done | sort -u | wc -l; }
check "the cluster's address answers" eventually 20 get "$(ip web)"
check "both pods take their share" [ "$(different "$(ip web)" 40)" = 2 ]
node=$(kubectl get node real -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
check "so does the node's port" eventually 10 get "$node:$(kubectl get service web -o jsonpath='{.spec.ports[0].nodePort}')"
check "a client that is to stay with one pod does" [ "$(different "$(ip sticky)" 20)" = 1 ]
pod=$(kubectl get pods -l app=web -o jsonpath='{.items[0].metadata.name}')
# Debian's static busybox cannot look names up; nc takes an address as it is.
from_pod() { timeout 10 kubectl exec "$pod" -- sh -c "printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 3 $(ip web) 80"; }
check "a pod reaches the Service" says "200 OK" from_pod
itself() { from_pod >"$work/answer"; grep "^$pod" "$work/answer" || { echo "answered by:"; cat "$work/answer"; return 1; }; }
check "... itself, too" eventually 30 itself
refuses() { curl -s --max-time 5 "http://$1/"; [ $? -eq 7 ]; }
unknown_port() { curl -s --max-time 5 "http://$(ip web):81/"; [ $? -eq 7 ]; }
check "... so does a port that its Service does not have" unknown_port
check "a Service without endpoints refuses at once" refuses "$(ip nobody)"
kubectl scale deployment/web --replicas=1 >/dev/null
one_left() { [ "$(different "$(ip web)" 10)" = 1 ] && get "$(ip web)"; }
check "a pod that goes gets nothing more" eventually 20 one_left
address=$(ip web)
kubectl delete service web >/dev/null
check "a Service that goes has no address" eventually 10 refused get "$address"
kubectl delete deployment web >/dev/null
check "its pods go" eventually 20 sh -c "[ -z \"\$(kubectl get pods -o name)\" ]"
table=$(nft list tables 2>/dev/null | grep -c berth-)
check "the rules are there" [ "$table" -ge 1 ]
stop_up TERM
"$berth" node reset --data-dir "$work/data" >"$work/reset" 2>&1
check "node reset takes them away" grep -q "the rules of Services are gone" "$work/reset"
finish
