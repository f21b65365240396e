#!/usr/bin/env bash
# A CSI driver on a real node (examples/csi-driver): a claim is provisioned, attached, mounted, written, expanded, and kept over restarts of its
# pod, of the node and of the driver; one that lives with its pod; a driver that breaks and one that goes. Needs root, containerd and
# python3-grpcio.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/runtime.sh"
real_node_or_skip "a CSI driver" python3-grpcio
example=$root/examples/csi-driver registry=$work/registry dirs=$work/dirs driver_pid='' sidecar_pid=''
clean() {
  for pid in $driver_pid $sidecar_pid; do kill "$pid" 2>/dev/null; done
  end_real_node
}
trap clean EXIT
up() { start_real_node --device-plugins "" --plugins-registry "$registry"; }
start_driver() {
  /usr/bin/python3 "$example/driver.py" --node real --data "$dirs" --registry "$registry" --most 3 --broken "$work/broken" >>"$work/driver.log" 2>&1 &
  driver_pid=$!
}
stop_driver() { kill "$driver_pid"; wait "$driver_pid" 2>/dev/null; driver_pid=; }
get() { kubectl get "$1" "$2" -o jsonpath="{$3}"; }
calls() { grep -c "^$1" "$work/driver.log"; }
pod() { # pod NAME VOLUME [MORE OF THE CONTAINER [MORE OF THE SPEC]]
  kubectl apply -f - >/dev/null <<YAML
# YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 1
  ${4:-}
  containers:
  - {name: c, image: "berth.local/busybox:1", command: [sh, -c, 'trap "exit 0" TERM; while :; do sleep 0.1; done'], ${3:-"volumeMounts: [{name: v, mountPath: /v}]"}}
  volumes: [{name: v, $2}]
YAML
}
claim() { # claim NAME MORE
  kubectl apply -f - >/dev/null <<YAML
# YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec: {storageClassName: dirs, resources: {requests: {storage: 1Gi}}, ${2:-"accessModes: [ReadWriteOnce]"}}
YAML
}
notes='persistentVolumeClaim: {claimName: notes}'

begin_real_node
check "it has a CSINode from the start" eventually 20 says csinode.storage.k8s.io/real kubectl get csinode real -o name
kubectl apply -f "$example/cluster.yaml" >/dev/null
pod one "$notes" "" 'securityContext: {fsGroup: 4242}'
check "without the driver the claim waits" eventually 20 says "Waiting for a volume to be created either by the external provisioner 'dirs.example.com'" kubectl describe pvc notes
start_driver
/usr/bin/python3 "$example/sidecar.py" --socket "$dirs/csi.sock" >"$work/sidecar.log" 2>&1 &
sidecar_pid=$!
check "the driver registers" eventually 20 says dirs.example.com kubectl get csinode real -o jsonpath='{.spec.drivers[*].name}'
check "with the volumes that a node can have" says 3 kubectl get csinode real -o jsonpath='{.spec.drivers[0].allocatable.count}'
check "and its topology is the node's" says real kubectl get node real -o jsonpath='{.metadata.labels.topology\.dirs\.example\.com/node}'
check "the claim is bound" eventually 30 says Bound get pvc notes .status.phase
check "attached" eventually 30 says true kubectl get volumeattachment -o jsonpath='{.items[0].status.attached}'
check "and the pod runs" eventually 60 says Running get pod one .status.phase
check "it writes" kubectl exec one -- sh -c 'echo kept >/v/note'
check "its files are its group's" says 4242 kubectl exec one -- stat -c %g /v
check "the node says what it uses and what is attached" eventually 30 says "kubernetes.io/csi/dirs.example.com^pvc-" kubectl get node real -o jsonpath='{.status.volumesInUse} {.status.volumesAttached}'
stats() { kubectl get --raw /api/v1/nodes/real/proxy/stats/summary; }
check "its figures are told" eventually 30 says '"pvcRef":{"name":"notes","namespace":"default"}' sh -c "kubectl get --raw /api/v1/nodes/real/proxy/stats/summary | tr -d ' \n'"

kubectl patch pvc notes -p '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}' >/dev/null
check "it grows while the pod runs" eventually 60 says 2147483648 get pvc notes .status.capacity.storage
check "and nothing is left to wait for" says "[]" sh -c "kubectl get pvc notes -o jsonpath='[{.status.conditions[*].type}{.status.allocatedResourceStatuses}]'"
check "the node was asked once" [ "$(calls NodeExpandVolume)" = 1 ]

id=$(get pod one .status.containerStatuses[0].containerID)
stop_up TERM
up
check "after a restart of the node the pod goes on" eventually 30 says "$id" get pod one .status.containerStatuses[0].containerID
check "its files too" eventually 20 says kept kubectl exec one -- cat /v/note
check "nothing was given back" [ "$(calls NodeUnpublishVolume) $(calls NodeUnstageVolume)" = "0 0" ]
kubectl delete pod one --wait=true >/dev/null
check "a pod that goes gives back" eventually 20 [ "$(calls NodeUnpublishVolume)" = 1 ]
check "the volume is unstaged and detached" eventually 30 says "detached" sh -c '[ -z "$(kubectl get volumeattachment -o name)" ] && echo detached'
check "in this order" says "NodeUnpublishVolume NodeUnstageVolume ControllerUnpublishVolume" sh -c "grep -o '^[A-Za-z]*Un[a-z]*Volume' $work/driver.log | tr '\n' ' '"
pod two "$notes"
check "another pod finds what was written" eventually 60 says kept kubectl exec two -- cat /v/note

stop_driver
check "a driver that goes is not the node's any more" eventually 20 refused says dirs.example.com kubectl get csinode real -o jsonpath='{.spec.drivers[*].name}'
check "what a pod has of it goes on" says kept kubectl exec two -- cat /v/note
kubectl delete pod two --wait=false >/dev/null
check "a pod that goes waits for it" eventually 20 says "not found in the list of registered CSI drivers" kubectl describe pod two
start_driver
check "and is gone when it is back" eventually 60 refused kubectl get pod two

echo NodePublishVolume >"$work/broken"
pod three "$notes"
check "what a driver refuses is told" eventually 60 says 'MountVolume.SetUp failed for volume "pvc-' kubectl describe pod three
echo 'slow NodeStageVolume' >"$work/broken"
claim slow
pod four 'persistentVolumeClaim: {claimName: slow}'
pod five 'emptyDir: {}'
check "a driver that is slow holds up nobody else" eventually 30 says Running get pod five .status.phase
kubectl delete pod five --wait=false >/dev/null
: >"$work/broken"
check "one that recovers is asked again" eventually 120 says Running get pod three .status.phase
kubectl delete pod three four --wait=false --grace-period=1 >/dev/null
stop_driver; start_driver
check "a pod whose volume never came goes too" eventually 180 refused kubectl get pod four

pod six 'csi: {driver: dirs.example.com}'
check "a volume that lives with its pod" eventually 60 kubectl exec six -- sh -c 'echo x >/v/x'
check "is a directory" [ "$(ls "$dirs/volumes" | grep -c ^csi-)" = 1 ]
kubectl delete pod six --wait=true >/dev/null
check "and goes with it" [ "$(ls "$dirs/volumes" | grep -c ^csi-)" = 0 ]

claim alone 'accessModes: [ReadWriteOncePod]'
pod seven 'persistentVolumeClaim: {claimName: alone}'
check "a volume for one pod" eventually 60 says Running get pod seven .status.phase
pod eight 'persistentVolumeClaim: {claimName: alone}'
check "is not given to a second" eventually 20 says "ReadWriteOncePod" kubectl get pod eight -o jsonpath='{.status.conditions[0].message}'
kubectl delete pod seven eight --wait=true >/dev/null

if losetup --find >/dev/null 2>&1; then
  claim disk 'accessModes: [ReadWriteOnce], volumeMode: Block'
  pod nine 'persistentVolumeClaim: {claimName: disk}' 'volumeDevices: [{name: v, devicePath: /dev/disk}]'
  check "a block volume is a device" eventually 60 says "block special file" kubectl exec nine -- stat -c %F /dev/disk
  check "that is written" kubectl exec nine -- sh -c 'echo here | dd of=/dev/disk conv=fsync 2>/dev/null && head -c 4 /dev/disk | grep here'
  kubectl delete pod nine --wait=true >/dev/null
fi

kubectl delete pvc --all --wait=true >/dev/null
check "volumes go with their claims" eventually 60 says "[0]" sh -c "echo \"[\$(ls $dirs/volumes | wc -l)]\""
check "nothing is left mounted" refused grep 'kubernetes.io.csi' /proc/self/mountinfo
finish
