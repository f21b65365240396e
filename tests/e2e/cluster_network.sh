#!/usr/bin/env bash
# What pods of a real node find by name, and whom NetworkPolicies let them reach; the shop of examples/. Needs root, containerd, nftables, pdns-recursor.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
. "$root/examples/shop/image.sh"
missing=$(node_missing)
[ -n "$missing" ] || [ -x /usr/sbin/pdns_recursor ] || missing=pdns-recursor
if [ -n "$missing" ]; then echo "skipped: a real node with names needs $missing"; echo "0 passed, 0 failed"; exit 0; fi
socket=$work/data/node/runtime/containerd.sock
clean() { stop_up KILL; sleep 1; "$berth" node reset --data-dir "$work/data" >/dev/null 2>&1; cleanup; }
trap clean EXIT
# A range of its own: what other nodes of this machine left in the kernel must not answer for it.
start_up --real-node on --real-node-name real --service-cluster-ip-range 10.113.0.0/16 --kubelet-arg eviction-hard=memory.available\<10Mi
if grep -q 'Services have no addresses on this node' "$work/up.log"; then echo "skipped: $(grep -o 'Services have no addresses.*' "$work/up.log")"; echo "0 passed, 0 failed"; exit 0; fi
berth_pid=$up_pid
check "an image that looks names up is made" shop_image "$work" "$socket"
check "the node becomes Ready" eventually 20 kubectl wait --for=condition=Ready node/real --timeout=1s
check "the name service has the Service that everybody knows" kubectl -n kube-system get service kube-dns
dns=$(kubectl -n kube-system get service kube-dns -o jsonpath='{.spec.clusterIP}')
kubectl create namespace other >/dev/null
pod() { # pod NAMESPACE NAME LABEL EXTRA-SPEC
  printf '{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"%s","name":"%s","labels":{"app":"%s"}},"spec":{%s"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"docker.io/library/busybox:1.37","command":["sh","-c","mkdir -p /www; hostname >/www/index.html; httpd -p 9090 -h /www; exec httpd -f -p 8080 -h /www"],"ports":[{"name":"web","containerPort":8080}]}]}}' "$1" "$2" "$3" "${4:-}" |
    kubectl create -f - >/dev/null
}
kubectl create -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {app: server}, ports: [{name: http, port: 80, targetPort: web}]}
---
apiVersion: v1
kind: Service
metadata: {name: group}
spec: {clusterIP: None, selector: {app: server}, ports: [{name: http, port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: front.default.svc.cluster.local}
YAML
pod default server server '"hostname":"first","subdomain":"group",'
pod default client client
pod other stranger stranger
pod default plain plain '"dnsPolicy":"Default",'
pod default none none '"dnsPolicy":"None","dnsConfig":{"nameservers":["192.0.2.53"],"searches":["example.com"],"options":[{"name":"ndots","value":"2"}]},'
check "pods run" kubectl wait --for=condition=Ready pod/server pod/client pod/plain pod/none --timeout=60s
check "... of the other namespace, too" kubectl -n other wait --for=condition=Ready pod/stranger --timeout=60s
in_pod() { timeout 15 kubectl exec "$@"; }
conf() { in_pod "$1" -- cat /etc/resolv.conf; }
check "ClusterFirst is the default: server, search path, ndots" says "nameserver $dns" conf client
check "... with the pod's own namespace first" says "search default.svc.cluster.local svc.cluster.local cluster.local" conf client
check "... and five dots" says "options ndots:5" conf client
check "Default has the machine's" refused says "cluster.local" conf plain
check "None has its own alone" says "nameserver 192.0.2.53" conf none
address=$(kubectl get pod server -o jsonpath='{.status.podIP}')
resolves() { in_pod -n "$1" "$2" -- getent ahostsv4 "$3" | grep "^$4 " >/dev/null; } # NAMESPACE POD NAME ADDRESS
front=$(kubectl get service front -o jsonpath='{.spec.clusterIP}')
check "a Service by its short name" eventually 20 resolves default client front "$front"
check "... from elsewhere with its namespace" resolves other stranger front.default "$front"
check "... not from elsewhere without" refused resolves other stranger front "$front"
check "... in full" resolves default client front.default.svc.cluster.local. "$front"
check "a headless Service is its pods" resolves default client group "$address"
check "a pod by hostname and subdomain" resolves default client first.group "$address"
check "a pod by its address" resolves default client "${address//./-}.default.pod.cluster.local" "$address"
check "an alias" resolves default client alias "$front"
check "the API server" resolves default client kubernetes "$(kubectl get service kubernetes -o jsonpath='{.spec.clusterIP}')"
check "a web page by name" eventually 20 says first in_pod client -- wget -q -T 3 -O - http://front/
check "over TCP, from the node" says "$front" dig +tcp +short +time=3 +tries=1 "@$dns" front.default.svc.cluster.local
check "ports" says "0 100 80 front.default.svc.cluster.local." dig +short +time=3 +tries=1 "@$dns" SRV _http._tcp.front.default.svc.cluster.local
check "names of addresses" says "front.default.svc.cluster.local." dig +short +time=3 +tries=1 "@$dns" -x "$front"
check "what is not there is said so" says NXDOMAIN dig +time=3 +tries=1 "@$dns" nobody.default.svc.cluster.local
kubectl create service clusterip late --tcp=80 >/dev/null
check "a Service that comes is found" eventually 5 resolves default client late "$(kubectl get service late -o jsonpath='{.spec.clusterIP}')"
kubectl delete service late >/dev/null
check "... that goes is not" eventually 5 refused resolves default client late .

gets() { in_pod -n "$1" "$2" -- wget -q -T 2 -O /dev/null "http://$3/"; } # NAMESPACE POD HOST:PORT
check "without policies everybody is let in" gets other stranger "$address:8080"
policy() { kubectl apply -f - >/dev/null <<<"{\"apiVersion\":\"networking.k8s.io/v1\",\"kind\":\"NetworkPolicy\",\"metadata\":{\"name\":\"$1\",\"namespace\":\"default\"},\"spec\":$2}"; }
policy closed '{"podSelector":{"matchLabels":{"app":"server"}},"policyTypes":["Ingress"]}'
check "a policy that allows nothing closes the pod" eventually 10 refused gets default client "$address:8080"
check "... by its Service as well" refused gets default client front
check "... to the node it stays open" curl -sf --max-time 3 "http://$address:8080/"
check "... and itself may go where it likes" gets default server "$(kubectl get pod client -o jsonpath='{.status.podIP}'):8080"
policy open '{"podSelector":{"matchLabels":{"app":"server"}},"ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"client"}}}],"ports":[{"port":"web"}]}]}'
check "another policy lets a peer in" eventually 10 gets default client front
check "... on its port alone" refused gets default client "$address:9090"
check "... and nobody else" refused gets other stranger "$address:8080"
policy open '{"podSelector":{"matchLabels":{"app":"server"}},"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"other"}}}],"ports":[{"port":9000,"endPort":9100}]}]}'
check "a namespace, a range of ports" eventually 10 gets other stranger "$address:9090"
check "... not below it" refused gets other stranger "$address:8080"
kubectl delete networkpolicy closed open >/dev/null
check "without them all is open again" eventually 10 gets other stranger "$address:8080"
policy leave '{"podSelector":{"matchLabels":{"app":"client"}},"policyTypes":["Egress"],"egress":[{"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}},"podSelector":{"matchLabels":{"k8s-app":"kube-dns"}}}],"ports":[{"protocol":"UDP","port":53}]}]}'
check "who may only ask for names reaches no pod" eventually 10 refused gets default client "$address:8080"
check "... but gets names" resolves default client front "$front"
policy leave '{"podSelector":{"matchLabels":{"app":"client"}},"policyTypes":["Egress"],"egress":[{"to":[{"ipBlock":{"cidr":"0.0.0.0/0","except":["'"$address"'/32"]}}]}]}'
stranger=$(kubectl -n other get pod stranger -o jsonpath='{.status.podIP}')
check "a block of addresses" eventually 10 gets default client "$stranger:8080"
check "... but for what it leaves out" refused gets default client "$address:8080"
kubectl delete pod --all --force >/dev/null 2>&1; kubectl -n other delete pod --all --force >/dev/null 2>&1
check "pods go" eventually 20 sh -c "[ -z \"\$(kubectl get pods -A -o name)\" ]"

kubectl apply -f "$root/examples/shop/shop.yaml" >/dev/null
check "the shop's database runs" kubectl -n corner-shop rollout status statefulset/database --timeout=60s
check "... its web tier" kubectl -n corner-shop rollout status deployment/web --timeout=60s
node=$(kubectl get node real -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
check "the shop takes orders" eventually 20 says "Orders so far: 2" curl -s --max-time 5 "http://$node:30080/cgi-bin/index.cgi"
kubectl delete namespace corner-shop --wait=false >/dev/null
check "it goes" eventually 30 sh -c "[ -z \"\$(kubectl get pods -A -o name)\" ]"
stop_up TERM
"$berth" node reset --data-dir "$work/data" >"$work/reset" 2>&1
check "node reset takes the rules away" grep -q "the rules of Services are gone" "$work/reset"
check "no name server stays" refused pgrep -P "$berth_pid" pdns_recursor
finish
