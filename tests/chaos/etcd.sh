#!/usr/bin/env bash
# etcd as the store: Kubernetes' own keys and bytes, two API servers at once, wrong certificates and foreign etcds refused, a short fault run.
. "$(dirname "$0")/../e2e/lib.sh"
command -v etcd >/dev/null && command -v etcdctl >/dev/null || { echo "etcd is not installed (apt install etcd-server etcd-client)"; echo "0 passed, 0 failed"; exit 0; }
export ETCDCTL_API=3
pids=()
cleanup() { for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done; stop_up KILL; rm -rf "$work"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_etcd() { # start_etcd NAME SCHEME FLAGS...: sets NAME_url and NAME_pid
  local name=$1 scheme=$2 port peer; shift 2; port=$(free_port); peer=$(free_port)
  etcd --name "$name" --data-dir "$work/$name" --listen-client-urls "$scheme://127.0.0.1:$port" --advertise-client-urls "$scheme://127.0.0.1:$port" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "$name=http://127.0.0.1:$peer" \
    --unsafe-no-fsync "$@" >"$work/$name.log" 2>&1 &
  pids+=($!); printf -v "${name}_url" %s "$scheme://127.0.0.1:$port"; printf -v "${name}_pid" %s $!
  eventually 20 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
}
start_server() { # start_server NAME FLAGS...: sets NAME_config and NAME_pid
  local name=$1; shift
  "$berth" server --data-dir "$work/$name" --listen 127.0.0.1:0 "$@" >"$work/$name.log" 2>&1 &
  pids+=($!); printf -v "${name}_pid" %s $!; printf -v "${name}_config" %s "$work/$name/admin.kubeconfig"
  eventually 30 grep -q '^export KUBECONFIG=' "$work/$name.log" || { cat "$work/$name.log"; finish; }
}
attempt() { timeout 60 "$berth" server --data-dir "$work/attempt" --listen 127.0.0.1:0 "$@"; }

start_etcd one http
ctl() { etcdctl --endpoints "$one_url" "$@"; }
start_server a --etcd-servers "$one_url" --advertise-address 127.0.0.1
a() { kubectl --kubeconfig "$a_config" "$@"; }

# What is written is Kubernetes' own.
has() { ctl get "$1" --keys-only | grep -qxF "$1"; }
a create configmap hello --from-literal=a=b >/dev/null
a create service nodeport web --tcp=80 >/dev/null
kubectl --kubeconfig "$a_config" create -f - >/dev/null <<<'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}'
for key in configmaps/default/hello services/specs/default/web services/endpoints/default/kubernetes minions/n1 namespaces/default \
  apiregistration.k8s.io/apiservices/v1.apps clusterroles/cluster-admin ranges/serviceips ranges/servicenodeports masterleases/127.0.0.1; do
  check "/registry/$key is there" eventually 60 has "/registry/$key"
done
check "objects are protobuf in Kubernetes' envelope" sh -c "etcdctl --endpoints $one_url get /registry/configmaps/default/hello --print-value-only | head -c 4 | grep -q k8s"
check "API services are JSON, without a revision" sh -c "etcdctl --endpoints $one_url get /registry/apiregistration.k8s.io/apiservices/v1.apps --print-value-only | python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(\"resourceVersion\" in d[\"metadata\"])'"
revision_is_etcds() { [ "$(a get configmap hello -o jsonpath='{.metadata.resourceVersion}')" = "$(ctl get /registry/configmaps/default/hello -w json | sed -E 's/.*"mod_revision":([0-9]+).*/\1/')" ]; }
check "resourceVersion is etcd's mod revision" revision_is_etcds
a create -f - >/dev/null <<<'{"apiVersion":"v1","kind":"Event","metadata":{"name":"e1","namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"R","message":"m","type":"Normal"}'
check "Events go by a lease" sh -c "etcdctl --endpoints $one_url lease list | grep -qE '^[0-9a-f]{10,}'"

# What somebody else wrote.
ctl put /registry/unknown/default/x 'not ours' >/dev/null; ctl put /registry/horizontalpodautoscalers/default/broken 'not an object' >/dev/null
ctl get /registry/configmaps/default/hello --print-value-only | head -c -1 | etcdctl --endpoints "$one_url" put /registry/configmaps/kube-public/hello >/dev/null
check "what others write is served at once" eventually 2 a get configmap hello -n kube-public
check "keys of nobody are left as they are" [ "$(ctl get /registry/unknown/default/x --print-value-only)" = "not ours" ]
ctl del /registry/horizontalpodautoscalers/default/broken >/dev/null

# A second server.
mkdir -p "$work/b" && cp -r "$work/a/pki" "$work/b/pki" && rm -f "$work"/b/pki/server.*
start_server b --etcd-servers "$one_url" --advertise-address 127.0.0.2
b() { kubectl --kubeconfig "$b_config" "$@"; }
in_both() { for i in 1 2 3 4 5 6 7 8; do a create configmap both-$i >/dev/null && b get configmap both-$i -o name && b delete configmap both-$i >/dev/null && refused a get configmap both-$i || return 1; done; }
check "what one server acknowledged, the other shows" in_both
for i in $(seq 6); do a create service clusterip a-$i --tcp=80 >/dev/null & b create service nodeport b-$i --tcp=80 >/dev/null & done; wait $(jobs -rp | grep -vwE "$(IFS='|'; echo "${pids[*]}")") 2>/dev/null
unique() { [ "$(a get services -A -o jsonpath="{range .items[*]}{$1}{'\n'}{end}" | grep . | sort | uniq -d | wc -l)" = 0 ]; }
check "all Services were made" [ "$(a get services --no-headers | wc -l)" = 14 ]
check "no two have one address" unique .spec.clusterIP
check "no two have one node port" unique '.spec.ports[*].nodePort'
addresses() { [ "$(a get endpoints kubernetes -o jsonpath='{.subsets[*].addresses[*].ip}')" = "$1" ]; }
check "the kubernetes Service leads to both" eventually 15 addresses "127.0.0.1 127.0.0.2"
check "both have a Lease" eventually 5 says 2 sh -c "kubectl --kubeconfig $a_config get leases -n kube-system --no-headers | grep -c ^apiserver-"
kill "$b_pid"
check "who stops in order is gone from it at once" eventually 6 addresses 127.0.0.1
a label configmap hello later=yes >/dev/null
start_server b --etcd-servers "$one_url" --advertise-address 127.0.0.2 --storage-media-type application/json
check "back again, it knows what happened meanwhile" says yes b get configmap hello -o jsonpath='{.metadata.labels.later}'
b label configmap hello json=yes >/dev/null
check "the other reads what is written as JSON" says yes a get configmap hello -o jsonpath='{.metadata.labels.json}'
kill -9 "$a_pid"
check "after kill -9 of one the other serves" b create configmap alone

# Secrets, encrypted, by one configuration.
kill "$b_pid"; printf 'kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n  providers:\n  - aesgcm: {keys: [{name: k1, secret: %s}]}\n  - identity: {}\n' "$(head -c 32 /dev/urandom | base64)" >"$work/enc.yaml"
start_server a --etcd-servers "$one_url" --encryption-provider-config "$work/enc.yaml"
start_server b --etcd-servers "$one_url" --encryption-provider-config "$work/enc.yaml" --advertise-address 127.0.0.2
a create secret generic s --from-literal=p=open-sesame >/dev/null
check "a Secret is encrypted in etcd" sh -c "etcdctl --endpoints $one_url get /registry/secrets/default/s --print-value-only | grep -qa '^k8s:enc:aesgcm:v1:k1:'"
check "the other server reads it" says "$(printf open-sesame | base64)" b get secret s -o jsonpath='{.data.p}'
kill "$b_pid"
check "without the configuration it is refused, with what to do" says "--encryption-provider-config" timeout 60 "$berth" server --data-dir "$work/b" --listen 127.0.0.1:0 --etcd-servers "$one_url"

# Refused, with what to do, and nothing written.
revision() { ctl get / -w json | sed -E 's/.*"revision":([0-9]+).*/\1/'; }
kill "$a_pid"; eventually 120 refused kill -0 "$a_pid"; before=$(revision)
# Leases that run out meanwhile count revisions, too: what counts is the newest of what is there.
newest() { ctl get "" --prefix --sort-by MODIFY --order DESCEND --limit 1 -w json | sed -E 's/.*"mod_revision":([0-9]+).*/\1/'; }
check "another cluster's server on this prefix is refused" says "belongs to another cluster" attempt --etcd-servers "$one_url"
check "... and what to copy is said" says "copy ca.crt" attempt --etcd-servers "$one_url"
start_etcd two http
check "members of two clusters are refused" says "members of different clusters" attempt --etcd-servers "$one_url,$two_url"
check "nobody there" says "no etcd answers" attempt --etcd-servers "http://127.0.0.1:$(free_port)"
check "another address range than the others' is refused" says "--service-cluster-ip-range must be the same" timeout 60 "$berth" server --data-dir "$work/a" --listen 127.0.0.1:0 --etcd-servers "$one_url" --service-cluster-ip-range 10.32.0.0/16
check "a prefix that is none" says "must begin with /" attempt --etcd-servers "$one_url" --etcd-prefix registry
check "nothing was written" [ "$(newest)" -le "$before" ]

# TLS.
tls=$work/tls; mkdir "$tls"
make_ca() { openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tls/$1.key" -out "$tls/$1.crt" -subj "/CN=$1" -days 10 2>/dev/null; }
sign() { # sign CA NAME DAYS
  openssl req -newkey rsa:2048 -nodes -keyout "$tls/$2.key" -out "$tls/$2.csr" -subj "/CN=$2" 2>/dev/null
  printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >"$tls/ext"
  openssl x509 -req -in "$tls/$2.csr" -CA "$tls/$1.crt" -CAkey "$tls/$1.key" -CAcreateserial -out "$tls/$2.crt" -days "$3" -extfile "$tls/ext" 2>/dev/null
}
make_ca ca; make_ca stranger; sign ca member 5; sign ca client 5; sign stranger foreign 5; sign ca expired -1
start_etcd three https --cert-file "$tls/member.crt" --key-file "$tls/member.key" --client-cert-auth --trusted-ca-file "$tls/ca.crt"
with() { attempt --etcd-servers "$three_url" --etcd-cafile "$tls/$1.crt" --etcd-certfile "$tls/$2.crt" --etcd-keyfile "$tls/$3.key"; }
check "an expired certificate is named" says "expired at" with ca expired expired
check "a key of another certificate" says "the key is not the one of the certificate of \"CN=client\"" with ca client member
check "another authority than etcd's" says "is not signed by --etcd-cafile" with stranger client client
check "a certificate that etcd does not take" says "etcd refuses the certificate of \"CN=foreign\"" with ca foreign foreign
check "no certificate where one is wanted" says "a client without certificate" attempt --etcd-servers "$three_url" --etcd-cafile "$tls/ca.crt"
check "plain where TLS is spoken" says "no etcd answers" attempt --etcd-servers "${three_url/https/http}"
start_server c --etcd-servers "$three_url" --etcd-cafile "$tls/ca.crt" --etcd-certfile "$tls/client.crt" --etcd-keyfile "$tls/client.key"
check "with what fits it serves" kubectl --kubeconfig "$c_config" create configmap secure
kill "$c_pid"

# An alarm.
start_etcd four http --quota-backend-bytes 4000000
start_server d --etcd-servers "$four_url"
for i in $(seq 12); do head -c 700000 /dev/zero | tr '\0' x | etcdctl --endpoints "$four_url" put /fill-$i >/dev/null 2>&1; done
check "a full etcd is told to who writes" says "database space exceeded" kubectl --kubeconfig "$d_config" create configmap full
check "... reads go on" kubectl --kubeconfig "$d_config" get namespaces
check "a start on a full etcd is refused, with what to do" says "etcdctl alarm disarm" attempt --etcd-servers "$four_url" --etcd-prefix /other
etcdctl --endpoints "$four_url" del /fill --prefix >/dev/null
etcdctl --endpoints "$four_url" compact "$(etcdctl --endpoints "$four_url" get / -w json | sed -E 's/.*"revision":([0-9]+).*/\1/')" >/dev/null
etcdctl --endpoints "$four_url" defrag >/dev/null; etcdctl --endpoints "$four_url" alarm disarm >/dev/null
check "with room again it goes on by itself" eventually 10 kubectl --kubeconfig "$d_config" create configmap room
kill "$d_pid"

# Faults under writers and watches; the long form is make chaos.
check "a short fault run" env CHAOS_FAULTS="${CHAOS_FAULTS:-4}" python3 "$root/tests/chaos/run.py" "$berth"
finish
