#!/usr/bin/env bash
# HTTP/2 as clients meet it, and the pages for administrators.
. "$(dirname "$0")/lib.sh"
start_up
url=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}')
kubectl config view --raw -o jsonpath='{.users[0].user.client-certificate-data}' | base64 -d >"$work/admin.crt"
kubectl config view --raw -o jsonpath='{.users[0].user.client-key-data}' | base64 -d >"$work/admin.key"
ask() { curl -sk --max-time 20 --cert "$work/admin.crt" --key "$work/admin.key" "$@"; }
check "a client that offers HTTP/2 gets it" test "$(ask --http2 -o /dev/null -w '%{http_version}' "$url/api")" = 2
check "... and one that does not, HTTP/1.1" test "$(ask --http1.1 -o /dev/null -w '%{http_version}' "$url/api")" = 1.1
check "answers are the same" test "$(ask --http2 "$url/apis")" = "$(ask --http1.1 "$url/apis")"
check "kubectl writes over it" kubectl create configmap one --from-literal=a=b
ask --http2 -N "$url/api/v1/namespaces/default/configmaps?watch=true" >"$work/watch" 2>&1 &
watch=$!
check "a watch brings what is there" eventually 10 grep -q '"name":"one"' "$work/watch"
kubectl create configmap two --from-literal=a=b >/dev/null
check "... and what comes" eventually 10 grep -q '"name":"two"' "$work/watch"
check "who is not known gets no connection to keep" says "HTTP/2 401" curl -sk --http2 -D- -H 'Authorization: Bearer nobody' "$url/api"
check "exec and the like stay on HTTP/1.1" says "HTTP/2 4" ask --http2 -D- -X POST "$url/api/v1/namespaces/default/pods/none/exec?command=ls"

check "strangers see no profiles" says "forbidden" curl -sk "$url/debug/pprof/heap"
check "administrators do" says "allocated" kubectl get --raw /debug/pprof/heap
check "... of processor time, too" says "CPU" sh -c "kubectl get --raw '/debug/pprof/profile?seconds=1' | gunzip >$work/profile && grep -aq cpu $work/profile && echo CPU"
check "flags" says "listen=" kubectl get --raw /flagz
check "status" says "Emulation version: v1.36" kubectl get --raw /statusz
stop_up
wait $watch
check "a watch that is open when the server stops ends in order" test $? = 0
start_up --disable-http2-serving --profiling=false
url=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}')
check "--disable-http2-serving" test "$(ask --http2 -o /dev/null -w '%{http_version}' "$url/readyz")" = 1.1
check "--profiling=false" says "not find" kubectl get --raw /debug/pprof/heap
finish
