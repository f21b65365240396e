"""The lines that people type: groups of kubectl command lines, each group in a namespace of its own and in order. A line that begins with
"~" is run and not compared: it waits for something. Files stand in the directory where the lines run."""
FILES = {
    "web.yaml": """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web, tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: nginx:1
        ports: [{containerPort: 80, name: http}]
        env: [{name: A, value: "1"}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
        volumeMounts: [{name: config, mountPath: /etc/web}]
      volumes: [{name: config, configMap: {name: settings, optional: true}}]
""",
    "settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app: web}}\ndata: {a: '1', b: \"two\\nlines\\n\"}\n",
    "settings2.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app: web}}\ndata: {a: '2', c: x}\n",
    "two.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {set: two}}\ndata: {k: v}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: two, labels: {set: two}}\nstringData: {password: secret}\n",
    "bad-field.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nspecc: 1\ndataa: {}\n",
    "bad-type.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: many, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n",
    "bad-value.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: X_y}\nspec: {replicas: -1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: []}}}\n",
    "bad-kind.yaml": "apiVersion: v1\nkind: Podd\nmetadata: {name: x}\n",
    "bad-version.yaml": "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: x}\n",
    "bad-yaml.yaml": "apiVersion: v1\nkind: ConfigMap\n metadata: {name: x}\n",
    "no-kind.yaml": "apiVersion: v1\nmetadata: {name: x}\n",
    "no-name.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n",
    "other-namespace.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: elsewhere}\n",
    "pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: one, labels: {run: one}}\nspec:\n  terminationGracePeriodSeconds: 1\n  restartPolicy: Always\n  containers: [{name: c, image: busybox, command: [sleep, infinity]}]\n",
    "pod-long.yaml": """apiVersion: v1
kind: Pod
metadata: {name: long, labels: {run: long}, annotations: {note: hello}}
spec:
  terminationGracePeriodSeconds: 1
  priorityClassName: system-node-critical
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}, {operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {run: long}}}]
  initContainers: [{name: first, image: busybox, command: ["true"]}, {name: beside, image: busybox, restartPolicy: Always}]
  containers:
  - name: c
    image: busybox
    command: [sleep]
    args: [infinity]
    ports: [{containerPort: 80, hostPort: 0}, {containerPort: 53, protocol: UDP}]
    envFrom: [{configMapRef: {name: settings, optional: true}}, {secretRef: {name: hidden, optional: true}, prefix: P_}]
    env: [{name: S, valueFrom: {secretKeyRef: {name: hidden, key: k, optional: true}}}, {name: M, valueFrom: {configMapKeyRef: {name: settings, key: a, optional: true}}}, {name: L, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]
    livenessProbe: {exec: {command: [cat, /x]}, initialDelaySeconds: 5}
    startupProbe: {tcpSocket: {port: 80}}
    readinessProbe: {grpc: {port: 5000}}
    volumeMounts: [{name: e, mountPath: /e}, {name: s, mountPath: /s, readOnly: true}, {name: p, mountPath: /p, subPath: x}]
  volumes: [{name: e, emptyDir: {sizeLimit: 1Gi}}, {name: s, secret: {secretName: hidden, optional: true}}, {name: h, hostPath: {path: /tmp}}, {name: d, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}, {name: p, projected: {sources: [{configMap: {name: settings, optional: true}}, {serviceAccountToken: {path: t}}]}}, {name: n, nfs: {server: x, path: /y}}]
""",
    "svc.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP}]}\n",
    "ingress.yaml": "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec:\n  ingressClassName: x\n  tls: [{hosts: [a.example.com], secretName: t}]\n  rules:\n  - host: a.example.com\n    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}, {path: /x, pathType: Exact, backend: {service: {name: none, port: {name: y}}}}]}\n",
    "netpol.yaml": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: n}\nspec:\n  podSelector: {matchLabels: {app: web}}\n  policyTypes: [Ingress, Egress]\n  ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{port: 80}, {protocol: UDP, port: 53, endPort: 60}]}]\n  egress: [{}]\n",
    "pv.yaml": "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: lines-pv}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: lines, hostPath: {path: /x}, persistentVolumeReclaimPolicy: Retain}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim}\nspec: {accessModes: [ReadWriteOnce], storageClassName: lines, resources: {requests: {storage: 1Gi}}}\n",
    "sts.yaml": "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  serviceName: db\n  replicas: 2\n  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec: {terminationGracePeriodSeconds: 1, containers: [{name: db, image: 'pg:1'}]}\n  volumeClaimTemplates: []\n",
    "ds.yaml": "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {app: agent}}\n  template:\n    metadata: {labels: {app: agent}}\n    spec: {terminationGracePeriodSeconds: 1, containers: [{name: agent, image: 'agent:1'}]}\n",
    "limits.yaml": "apiVersion: v1\nkind: LimitRange\nmetadata: {name: limits}\nspec: {limits: [{type: Container, default: {cpu: 100m}, defaultRequest: {cpu: 50m}, max: {cpu: '1'}, min: {cpu: 1m}}, {type: Pod, maxLimitRequestRatio: {memory: '2'}}]}\n",
    "hpa.yaml": "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}\n  minReplicas: 2\n  maxReplicas: 5\n  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}, {type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 10}}}, {type: External, external: {metric: {name: q}, target: {type: Value, value: 5}}}]\n  behavior: {scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Percent, value: 10, periodSeconds: 60}]}}\n",
    "patch.yaml": "spec: {template: {spec: {containers: [{name: web, image: 'nginx:3'}]}}}\n",
    "crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: crontabs.lines.example.com}\nspec:\n  group: lines.example.com\n  scope: Namespaced\n  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [lines]}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}\n    additionalPrinterColumns: [{name: Spec, type: string, jsonPath: .spec.cronSpec, description: the spec}, {name: Replicas, type: integer, jsonPath: .spec.replicas}, {name: Age, type: date, jsonPath: .metadata.creationTimestamp}]\n    schema:\n      openAPIV3Schema:\n        type: object\n        description: A table.\n        properties:\n          spec:\n            type: object\n            description: What is wanted.\n            required: [cronSpec]\n            properties: {cronSpec: {type: string, description: five fields, pattern: '^\\S+( \\S+)*$'}, replicas: {type: integer, minimum: 0, default: 1}, kind: {type: string, enum: [a, b]}, list: {type: array, items: {type: object, properties: {x: {type: string}}}}}\n          status: {type: object, properties: {replicas: {type: integer}}}\n",
    "ct.yaml": "apiVersion: lines.example.com/v1\nkind: CronTab\nmetadata: {name: mine}\nspec: {cronSpec: '* * * * *'}\n",
    "ct-bad.yaml": "apiVersion: lines.example.com/v1\nkind: CronTab\nmetadata: {name: bad}\nspec: {replicas: -1, kind: c, other: x}\n",
    "role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: ['', apps], resources: [pods, deployments], verbs: [get, list]}, {apiGroups: [''], resources: [secrets], resourceNames: [a, b], verbs: ['*']}]\n",
    "a.properties": "x=1\ny=2\n", "env.txt": "A=1\nB=two words\n# no\nC\n", "plain.txt": "hello\n",
    "kustomization.yaml": "resources: [settings.yaml]\nnamePrefix: k-\ncommonAnnotations: {by: kustomize}\n",
}
GROUPS = {}


def group(name, text):
    GROUPS[name] = [line.strip() for line in text.strip().splitlines() if line.strip()]


UP = """~ kubectl apply -f settings.yaml -f web.yaml -f svc.yaml
~ kubectl rollout status deployment/web --timeout=120s
~ kubectl wait pods -l app=web --for=condition=Ready --timeout=60s
"""
SORTED = " | sort"
group("get", UP + "\n".join([
    *[f"kubectl get {k}" for k in ("deployments", "deploy", "deployment web", "deployment/web", "rs", "pods", "pods -l app=web", "pods -l app=none", "svc", "cm", "configmap settings", "all", "deploy,rs,svc", "deploy/web svc/web", "deploy web nothing", "endpoints", "endpointslices", "sa", "secrets", "events --field-selector reason=Nothing", "pods --field-selector status.phase=Running", "pods --field-selector status.phase=Pending", "pods --field-selector nothing=x", "pods nothing", "nothing", "pods,nothing", "pod web", "deploy -A -l app=web", "ns kube-system", "namespaces kube-public kube-node-lease", "cs", "priorityclasses", "nodes", "nodes --no-headers", "roles,rolebindings", "pv", "pvc", "ingress", "netpol", "quota", "limits", "hpa", "pdb", "sts", "ds", "jobs", "cj", "rc", "csr -l none=x", "sc", "crd nothing.example.com", "leases", "podtemplates", "controllerrevisions", "ippools", "volumeattachments", "csidrivers", "csinodes", "runtimeclasses", "validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "resourceclaims", "deviceclasses", "servicecidrs", "flowschemas exempt", "prioritylevelconfigurations exempt catch-all", "apiservices v1.apps", "clusterroles view edit", "clusterrolebindings cluster-admin", "ingressclasses", "csistoragecapacities", "ipaddresses -l none=x")],
    *[f"kubectl get {k} -o {o}" for k in ("deploy web", "svc web", "cm settings") for o in ("wide", "name", "json", "yaml")],
    *[f"kubectl get deploy web {x}" for x in ("--show-labels", "-L app", "-L app,tier,none", "--show-kind", "--no-headers", "-o custom-columns=NAME:.metadata.name,N:.spec.replicas,X:.spec.none", "-o custom-columns=NAME", "-o custom-columns=", "-o jsonpath={.metadata.name}", "-o jsonpath='{.spec.template.spec.containers[*].image}{\"\\n\"}'", "-o jsonpath='{range .spec.template.spec.containers[*]}{.name}={.image}{\"\\n\"}{end}'", "-o jsonpath='{.none}'", "-o jsonpath='{.none'", "-o jsonpath-as-json={.spec.replicas}", "-o go-template='{{.metadata.name}}'", "-o go-template='{{.none.none}}'", "-o go-template='{{.x'", "-o template=", "-o nonsense", "--output-watch-events", "--sort-by=.metadata.name", "--sort-by=.none", "--sort-by={.metadata.name", "--chunk-size=1", "--subresource=scale", "--subresource=status -o name", "--subresource=none", "--ignore-not-found", "--raw /x", "-o json --show-managed-fields=false | head -c 20", "--server-print=false", "-w --request-timeout=1s | head -1")],
    "kubectl get deploy none --ignore-not-found", "kubectl get pods -l 'app in (web,x),tier notin (a)'", "kubectl get pods -l 'app='", "kubectl get pods -l '!app'", "kubectl get pods -l 'app=web,'", "kubectl get pods -l 'app in'", "kubectl get pods -l '=x'", "kubectl get cm --sort-by=.metadata.name", "kubectl get cm --sort-by='.metadata.creationTimestamp' -o name",
    "kubectl get pods -o wide", "kubectl get rs -o wide", "kubectl get svc -o wide", "kubectl get nodes -o wide", "kubectl get endpointslices -o wide", "kubectl get events --sort-by=.reason -o custom-columns=R:.reason,T:.type" + SORTED, "kubectl get --raw /api/v1/namespaces/get/configmaps/settings -o json | head -c 30", "kubectl get --raw /healthz", "kubectl get --raw /livez?verbose | head -1", "kubectl get --raw /readyz", "kubectl get --raw /nothing", "kubectl get --raw /api/v1/nothing", "kubectl get --raw /apis/apps/v1/namespaces/get/deployments/none", "kubectl get", "kubectl get -f web.yaml", "kubectl get -f two.yaml", "kubectl get -f none.yaml", "kubectl get -k .", "kubectl get deploy.apps web", "kubectl get deploy.v1.apps web", "kubectl get deploy.v2.apps web", "kubectl get Deployment web", "kubectl get DEPLOYMENT web", "kubectl get po,deploy none", "kubectl get deploy -n nowhere", "kubectl get deploy web -n nowhere", "kubectl get ns nowhere", "kubectl get cm -A -l app=web -o wide", "kubectl get deploy/web pods/none", "kubectl get deploy web svc/web", "kubectl get pods --all-namespaces one",
    "kubectl get deploy web -o yaml --show-managed-fields | grep -c manager:", "kubectl get svc kubernetes -n default", "kubectl get svc kubernetes -n default -o yaml", "kubectl get endpoints kubernetes -n default -o jsonpath='{.subsets[0].ports}'", "kubectl get endpointslices kubernetes -n default -o jsonpath='{.ports}'", "kubectl get ns default -o yaml", "kubectl get cm kube-root-ca.crt -o name", "kubectl get sa default -o yaml", "kubectl get pods -o yaml -l app=web", "kubectl get rs -o yaml", "kubectl get endpointslices -o yaml", "kubectl get endpoints web -o yaml", "kubectl get priorityclass system-node-critical -o yaml",
]))
group("describe", UP + "\n".join(["~ kubectl apply -f ingress.yaml -f netpol.yaml -f limits.yaml -f hpa.yaml -f role.yaml -f two.yaml", "~ kubectl create quota q --hard=pods=5,cpu=2", "~ kubectl create job j --image=a -- true", "~ kubectl create cronjob c --image=a --schedule='0 0 1 1 *' -- true", "~ kubectl create pdb b --selector=app=web --min-available=1", "~ kubectl create rolebinding rb --role=r --user=u --group=g --serviceaccount=describe:default", "~ kubectl create priorityclass lines-class --value=5 --description=x", "~ kubectl apply -f sts.yaml -f ds.yaml", "~ kubectl rollout status sts/db --timeout=60s", "~ kubectl rollout status ds/agent --timeout=60s", "~ kubectl apply -f pod-long.yaml", "~ kubectl wait job/j --for=condition=complete --timeout=60s", "~ kubectl wait pod/long --for=condition=Ready --timeout=60s", "~ sleep 4",
    *[f"kubectl describe {k}" for k in ("deploy web", "rs", "pods -l app=web", "pod long", "svc web", "cm settings", "secret two", "ingress web", "netpol n", "limits limits", "hpa web", "role r", "quota q", "job j", "cj c", "pdb b", "rolebinding rb", "priorityclass lines-class", "sts db", "ds agent", "sa default", "ns describe", "endpoints web", "endpointslices -l kubernetes.io/service-name=web", "clusterrole view", "clusterrolebinding cluster-admin", "pod none", "pods -l app=none", "none", "deploy we", "deploy web --show-events=false", "-f web.yaml --show-events=false", "-f none.yaml", "deploy/web svc/none", "controllerrevisions", "node node-1", "lease -n kube-system kube-scheduler", "apiservice v1.apps", "flowschema exempt", "prioritylevelconfiguration exempt", "servicecidr kubernetes", "crd", "svc kubernetes -n default")], "~ kubectl delete priorityclass lines-class"]))
KINDS = "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations mutatingadmissionpolicies customresourcedefinitions apiservices controllerrevisions daemonsets deployments replicasets statefulsets selfsubjectreviews tokenreviews localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews horizontalpodautoscalers cronjobs jobs certificatesigningrequests leases endpointslices flowschemas prioritylevelconfigurations ingressclasses ingresses ipaddresses networkpolicies servicecidrs runtimeclasses poddisruptionbudgets clusterrolebindings clusterroles rolebindings roles deviceclasses resourceclaims resourceclaimtemplates resourceslices priorityclasses csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses".split()
group("explain", "\n".join([f"kubectl explain {k}" for k in KINDS] + [f"kubectl explain {k} --recursive | md5sum" for k in KINDS] + [f"kubectl explain {p}" for p in ("pods.spec", "pods.spec.containers", "pods.spec.containers.env.valueFrom", "pod.spec.none", "none", "pods.spec.containers.resources.limits", "deploy.spec.strategy.rollingUpdate.maxSurge", "deployment.spec.replicas", "svc.spec.type", "cm.data", "secret.data", "secret.type", "pods.metadata", "pods.metadata.ownerReferences", "pods.status.phase", "hpa.spec.metrics", "hpa --api-version=autoscaling/v1", "hpa --api-version=autoscaling/v3", "cronjob.spec.jobTemplate", "ingress.spec.rules.http.paths.pathType", "pods.spec.containers[0]", "pods.", "", "pods extra", "pods.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", "networkpolicy.spec.ingress.from", "pvc.spec", "node.status", "events", "events --api-version=events.k8s.io/v1", "job.spec.completionMode", "pods.spec.tolerations.effect", "pods -o plaintext | head -3", "pods --output=plaintext-openapiv2 | head -5", "pods.spec.volumes.projected", "crd.spec.versions.schema")]))
group("discovery", "\n".join(f"kubectl {x}" for x in ("api-resources", "api-resources -o wide", "api-resources -o name", "api-resources --namespaced=false", "api-resources --namespaced=true -o name", "api-resources --verbs=list,watch,nothing", "api-resources --verbs=create --namespaced", "api-resources --api-group=apps", "api-resources --api-group=''", "api-resources --api-group=none", "api-resources --categories=all", "api-resources --sort-by=kind", "api-resources --sort-by=x", "api-resources --no-headers --api-group=batch", "api-resources -o json", "api-resources x", "api-versions", "api-versions x", "version", "version -o json | grep -c Version", "version -o x", "cluster-info | tail -1", "cluster-info dump | head -1", "cluster-info x", "options | head -3", "help | head -3", "nothing", "--help | head -2", "get --raw /version | head -3", "get --raw /api | head -5", "get --raw '/apis/apps'", "get --raw '/openapi/v3' | head -c 30", "plugin list", "config view | head -2", "config get-contexts -o name", "config current-context", "auth whoami", "auth whoami -o yaml", "auth whoami -o json", "completion nothing", "proxy --port=x", "kustomize .", "kustomize nowhere", "get --raw /apis/apps/v1", "get --raw /api/v1", "get --raw /apis/batch/v1", "get --raw /apis/policy/v1", "get --raw /apis/autoscaling/v2", "get --raw /apis/networking.k8s.io/v1", "get --raw /apis/storage.k8s.io/v1", "get --raw /apis/rbac.authorization.k8s.io/v1", "get --raw /apis/apiextensions.k8s.io/v1", "get --raw /apis/apiregistration.k8s.io/v1", "get --raw /apis/resource.k8s.io/v1", "get --raw /apis/certificates.k8s.io/v1", "get --raw /apis/discovery.k8s.io/v1", "get --raw /apis/coordination.k8s.io/v1", "get --raw /apis/scheduling.k8s.io/v1", "get --raw /apis/flowcontrol.apiserver.k8s.io/v1", "get --raw /apis/events.k8s.io/v1", "get --raw /apis/admissionregistration.k8s.io/v1", "get --raw /apis/authentication.k8s.io/v1", "get --raw /apis/authorization.k8s.io/v1", "get --raw /apis/node.k8s.io/v1")))
GENERATORS = ["clusterrole a --verb=get,list --resource=pods,deploy.apps", "clusterrole a --verb=get --non-resource-url=/logs/*", "clusterrole a --aggregation-rule=x=y", "clusterrolebinding a --clusterrole=view --user=u --group=g --serviceaccount=x:y", "configmap a --from-literal=k=v --from-literal=l=w", "configmap a --from-file=plain.txt", "configmap a --from-file=key=plain.txt --append-hash", "configmap a --from-env-file=env.txt", "configmap a", "cronjob a --image=i --schedule='* * * * *' -- date", "cronjob a --image=i --schedule=x", "deployment a --image=i --replicas=2 --port=80", "deployment a --image=i --image=j", "deployment a --image=i -- cmd arg", "ingress a --rule=h/p=s:80 --class=c", "ingress a --rule='h/p*=s:80,tls=x' --annotation=a=b --default-backend=d:http", "job a --image=i -- date", "job a --image=i --from=cj/x", "namespace a", "poddisruptionbudget a --selector=a=b --min-available=50%", "pdb a --selector=a=b --max-unavailable=1", "priorityclass a --value=1000 --preemption-policy=Never --description=d", "quota a --hard=cpu=1,pods=2 --scopes=BestEffort", "quota a --hard=cpu=x", "role a --verb=get --verb=list --resource=pods --resource-name=x", "role a --verb=get --resource=pods/log", "rolebinding a --role=r --user=u", "rolebinding a --clusterrole=view --serviceaccount=ns:sa", "secret generic a --from-literal=k=v", "secret generic a --from-file=plain.txt --type=x/y", "secret docker-registry a --docker-username=u --docker-password=p --docker-email=e --docker-server=s", "service clusterip a --tcp=80:8080", "service clusterip a --clusterip=None", "service nodeport a --tcp=80 --node-port=31999", "service loadbalancer a --tcp=80:http", "service externalname a --external-name=example.com", "serviceaccount a", "sa a"]
group("generators", "\n".join([f"kubectl create {g} --dry-run=client -o yaml" for g in GENERATORS] + [f"kubectl create {g} --dry-run=server -o yaml" for g in GENERATORS if "cj/x" not in g] + ["kubectl run a --image=i --dry-run=server -o yaml", "kubectl run a --image=i --restart=Never --env=A=b --labels=x=y --port=80 --command --dry-run=client -o yaml -- x y", "kubectl run a --image=i --expose --port=80 --dry-run=client -o yaml", "kubectl create token default --duration=1s", "kubectl create token default | wc -l", "kubectl create token none", "kubectl create token default --audience=x --bound-object-kind=Pod --bound-object-name=none", "kubectl create token default --bound-object-kind=Nonsense --bound-object-name=x", "kubectl create tokne default"]))
group("create", """
kubectl create configmap a --from-literal=k=v
kubectl create configmap a --from-literal=k=v
kubectl create configmap A_b --from-literal=k=v
kubectl create configmap b --from-literal=k
kubectl create configmap b --from-file=none.txt
kubectl create configmap b --from-literal=k=v --from-literal=k=w
kubectl create configmap b --from-literal='bad key=v'
kubectl create secret generic s --from-literal=k=v
kubectl create secret tls t --cert=none --key=none
kubectl create secret nothing s
kubectl create deployment d --image=nginx:1 --replicas=1
kubectl create deployment d --image=nginx:1
kubectl create deployment d2
kubectl create deployment D --image=x
kubectl create service clusterip c --tcp=80:8080
kubectl create service clusterip c2 --tcp=x
kubectl create service clusterip c3
kubectl create service nodeport n --tcp=80:8080 --node-port=80
kubectl create job j --image=a -- true
kubectl create job j2 --from=cronjob/none
kubectl create job j3 --from=deploy/d
kubectl create cronjob cj --image=a --schedule='0 0 1 1 *'
kubectl create job j4 --from=cronjob/cj
kubectl get job j4 -o yaml
kubectl create cronjob cj2 --image=a --schedule='bad'
kubectl create cronjob cj2 --image=a
kubectl create role r --verb=get --resource=pods
kubectl create role r2 --verb=get --resource=nothing
kubectl create role r3 --verb=fly --resource=pods
kubectl create role r4 --resource=pods
kubectl create rolebinding rb --role=r --user=u
kubectl create rolebinding rb2
kubectl create rolebinding rb3 --role=none --user=u
kubectl create serviceaccount robot
kubectl create serviceaccount robot
kubectl create sa robot2
kubectl create quota q --hard=pods=10,services=3
kubectl create quota q2 --hard=nothing=1
kubectl create quota q3 --hard=pods=-1
kubectl create pdb p --selector=app=x --min-available=1
kubectl create pdb p2 --selector=app=x
kubectl create pdb p3 --selector=app=x --min-available=1 --max-unavailable=1
kubectl create pdb p4 --min-available=1
kubectl create ingress i --rule=h/p=s:80
kubectl create ingress i2 --rule=x
kubectl create ingress i3
kubectl create -f two.yaml
kubectl create -f two.yaml
kubectl create -f bad-field.yaml
kubectl create -f bad-field.yaml --validate=warn
kubectl create -f bad-field.yaml --validate=ignore
kubectl create -f bad-field.yaml --validate=nothing
kubectl create -f bad-type.yaml
kubectl create -f bad-type.yaml --validate=false
kubectl create -f bad-value.yaml
kubectl create -f bad-kind.yaml
kubectl create -f bad-version.yaml
kubectl create -f bad-yaml.yaml
kubectl create -f no-kind.yaml
kubectl create -f no-name.yaml
kubectl create -f other-namespace.yaml
kubectl create -f none.yaml
kubectl create -f web.yaml --dry-run=client
kubectl create -f web.yaml --dry-run=server
kubectl create -f web.yaml --dry-run=x
kubectl create -f web.yaml --edit=false -o name
kubectl create -f pod.yaml --save-config
kubectl create -k .
kubectl create nothing
kubectl create
echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"stdin"}}' | kubectl create -f -
echo '' | kubectl create -f -
echo '[]' | kubectl create -f -
echo '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"l1"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"l2"}}]}' | kubectl create -f -
echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"g-"}}' | kubectl create -f -
kubectl create -f two.yaml --raw /api/v1/namespaces/create/configmaps
kubectl get cm -o name
kubectl get quota,pdb,ingress,roles,rolebindings,sa,jobs,cj
kubectl create namespace create
kubectl create namespace Bad_Name
kubectl create namespace default
kubectl create priorityclass system-x --value=1
kubectl create priorityclass big --value=2000000000
kubectl run one --image=busybox --restart=Never -- true
kubectl run one --image=busybox
kubectl run two
kubectl run Two --image=x
kubectl run three --image=x --port=80 --expose
kubectl get svc three -o yaml
kubectl run four --image=x --restart=Nothing
kubectl run five --image=' bad image'
kubectl run six --image=x --dry-run=client
kubectl run seven --image=x -o name
kubectl run eight --image=x --overrides='{"spec":{"terminationGracePeriodSeconds":0}}'
kubectl run nine --image=x --overrides='nonsense'
kubectl expose deployment d --port=80
kubectl expose deployment d --port=80
kubectl expose deployment d --name=d2 --port=80 --target-port=http --type=NodePort --dry-run=client -o yaml
kubectl expose deployment d --name=d3
kubectl expose deployment none --port=80
kubectl expose service d --name=d4 --port=81
kubectl expose pod one --port=80
kubectl expose cm a --port=80
kubectl expose deployment d --name=d5 --port=99999
kubectl autoscale deployment d --min=1 --max=3 --cpu-percent=50
kubectl autoscale deployment d --max=3
kubectl autoscale deployment d2 --max=3
kubectl autoscale deployment d --name=x --min=5 --max=3
kubectl autoscale deployment d --name=x
kubectl autoscale cm a --max=2
kubectl get hpa
""")
group("changes", UP + """
kubectl label cm settings x=y
kubectl label cm settings x=y
kubectl label cm settings x=z
kubectl label cm settings x=z --overwrite
kubectl label cm settings x-
kubectl label cm settings none-
kubectl label cm settings 'bad key=y'
kubectl label cm settings x='bad value'
kubectl label cm settings x
kubectl label cm settings
kubectl label cm none x=y
kubectl label cm --all y=1
kubectl label cm -l app=web z=1
kubectl label cm -l app=none z=1
kubectl label pods,cm --all -l app=web q=1 --dry-run=client
kubectl label cm settings --list
kubectl label -f settings.yaml f=1
kubectl label cm settings v=1 --resource-version=1
kubectl label cm settings v=1 --dry-run=server -o name
kubectl label cm settings kubernetes.io=x
kubectl annotate cm settings note=hello
kubectl annotate cm settings note=hello
kubectl annotate cm settings note=other
kubectl annotate cm settings note=other --overwrite
kubectl annotate cm settings note-
kubectl annotate cm settings 'bad key=1'
kubectl annotate cm none a=b
kubectl annotate cm --all a=b
kubectl annotate cm settings --list
kubectl patch deploy web -p '{"spec":{"replicas":3}}'
kubectl patch deploy web -p '{"spec":{"replicas":3}}'
kubectl patch deploy web -p '{"spec":{"replicas":"x"}}'
kubectl patch deploy web -p '{"spec":{"replicaz":3}}'
kubectl patch deploy web -p '{"spec":'
kubectl patch deploy web -p 'spec: {replicas: 2}'
kubectl patch deploy web
kubectl patch deploy none -p '{}'
kubectl patch deploy web --type=merge -p '{"metadata":{"annotations":{"a":null}}}'
kubectl patch deploy web --type=json -p '[{"op":"replace","path":"/spec/replicas","value":2}]'
kubectl patch deploy web --type=json -p '[{"op":"replace","path":"/spec/none","value":2}]'
kubectl patch deploy web --type=json -p '[{"op":"test","path":"/spec/replicas","value":9}]'
kubectl patch deploy web --type=json -p '[{"op":"remove","path":"/metadata/labels/none"}]'
kubectl patch deploy web --type=json -p '{"op":"x"}'
kubectl patch deploy web --type=json -p '[{"op":"fly","path":"/x"}]'
kubectl patch deploy web --type=nothing -p '{}'
kubectl patch deploy web --patch-file patch.yaml
kubectl patch deploy web --patch-file none.yaml
kubectl patch deploy web --subresource=scale --type=merge -p '{"spec":{"replicas":2}}'
kubectl patch deploy web --subresource=status --type=merge -p '{"status":{"observedGeneration":1}}'
kubectl patch deploy web --type=merge -p '{"spec":{"selector":{"matchLabels":{"x":"y"}}}}'
kubectl patch deploy web --type=merge -p '{"metadata":{"name":"other"}}'
kubectl patch deploy web --type=merge -p '{"kind":"Other"}'
kubectl patch deploy web --type=merge -p '{"metadata":{"resourceVersion":"1"}}'
kubectl patch svc web -p '{"spec":{"type":"NodePort"}}'
kubectl patch svc web -p '{"spec":{"clusterIP":"1.2.3.4"}}'
kubectl patch svc web -p '{"spec":{"ports":[{"port":80,"targetPort":8080}]}}'
kubectl patch cm settings --local -f settings.yaml -p '{"data":{"a":"9"}}' -o yaml
kubectl patch -f settings.yaml -p '{"data":{"a":"9"}}'
kubectl patch node none -p '{}'
kubectl set image deployment/web web=nginx:2
kubectl set image deployment/web web=nginx:2
kubectl set image deployment/web none=nginx:2
kubectl set image deployment/web '*=nginx:4'
kubectl set image deployment/none web=x
kubectl set image deployment/web
kubectl set image cm/settings web=x
kubectl set image -f web.yaml web=nginx:9 --local -o yaml
kubectl set env deployment/web B=2
kubectl set env deployment/web --list
kubectl set env deployment/web B-
kubectl set env deployment/web --from=configmap/settings
kubectl set env deployment/web --from=configmap/none
kubectl set env deployment/web 'BAD KEY=1'
kubectl set env deployment/none A=1
kubectl set resources deployment web --limits=cpu=200m,memory=512Mi --requests=cpu=100m
kubectl set resources deployment web --limits=cpu=x
kubectl set resources deployment web
kubectl set resources deployment web --limits=cpu=50m --requests=cpu=100m
kubectl set selector svc web app=other
kubectl set selector svc web 'bad selector='
kubectl set serviceaccount deployment web default
kubectl set serviceaccount deployment web
kubectl set subject rolebinding none --user=x
kubectl set nothing
kubectl scale deployment web --replicas=1
kubectl scale deployment/web --replicas=2 --current-replicas=1
kubectl scale deployment/web --replicas=2 --current-replicas=7
kubectl scale deployment none --replicas=1
kubectl scale deployment web
kubectl scale deployment web --replicas=-1
kubectl scale cm settings --replicas=1
kubectl scale --replicas=1 deploy/web rs/none
kubectl scale deploy -l app=web --replicas=1
kubectl scale -f web.yaml --replicas=2
kubectl scale deployment web --replicas=3 --timeout=1m
kubectl scale pods x --replicas=1
kubectl replace -f settings2.yaml
kubectl replace -f none.yaml
kubectl replace -f two.yaml
kubectl replace --force -f settings.yaml
kubectl replace -f bad-field.yaml
kubectl replace -f settings2.yaml --subresource=x
kubectl get cm settings -o yaml
kubectl edit cm none
EDITOR=true kubectl edit cm settings
EDITOR="sed -i s/a:/d:/" kubectl edit cm settings
EDITOR="sed -i s/kind:/kind:x/" kubectl edit cm settings
EDITOR="sed -i s/name:.settings/name:other/" kubectl edit cm settings
~ kubectl scale deploy web --replicas=2
~ kubectl rollout status deploy/web --timeout=60s
kubectl get deploy web -o jsonpath='{.spec.template}'
""")
group("apply", """
kubectl apply -f settings.yaml
kubectl apply -f settings.yaml
kubectl apply -f settings2.yaml
kubectl get cm settings -o yaml
kubectl apply -f web.yaml
kubectl apply -f web.yaml
kubectl apply -f web.yaml --dry-run=client
kubectl apply -f web.yaml --dry-run=server
kubectl apply -f web.yaml -o name
kubectl apply -f settings.yaml -o yaml
kubectl apply -f two.yaml --prune -l set=two
kubectl apply -f two.yaml --prune --all
kubectl apply -f two.yaml --prune
kubectl apply -f settings.yaml --prune -l set=two
kubectl get cm,secret -l set=two
kubectl apply -f bad-field.yaml
kubectl apply -f bad-type.yaml
kubectl apply -f bad-value.yaml
kubectl apply -f bad-kind.yaml
kubectl apply -f bad-version.yaml
kubectl apply -f bad-yaml.yaml
kubectl apply -f no-kind.yaml
kubectl apply -f no-name.yaml
kubectl apply -f other-namespace.yaml
kubectl apply -f none.yaml
kubectl apply -f bad-field.yaml --validate=false
kubectl apply
kubectl apply -f .
kubectl apply -k .
kubectl apply -k .
kubectl create cm plain --from-literal=a=b
echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"plain"},"data":{"a":"c"}}' | kubectl apply -f -
kubectl apply view-last-applied cm plain
kubectl apply view-last-applied cm plain -o json
kubectl apply view-last-applied cm kube-root-ca.crt
kubectl apply set-last-applied -f settings2.yaml
kubectl apply set-last-applied -f web.yaml --dry-run=client
echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}' | kubectl apply set-last-applied -f -
EDITOR=true kubectl apply edit-last-applied cm settings
kubectl apply edit-last-applied cm none
kubectl apply --server-side -f settings2.yaml
kubectl apply --server-side -f settings2.yaml
kubectl apply --server-side --field-manager=other -f settings.yaml
kubectl apply --server-side --field-manager=other --force-conflicts -f settings.yaml
kubectl apply --server-side -f bad-field.yaml
kubectl apply --server-side -f bad-type.yaml
kubectl apply --server-side -f bad-value.yaml
kubectl apply --server-side -f web.yaml
kubectl apply --server-side --force-conflicts -f web.yaml
kubectl apply --server-side -f svc.yaml --dry-run=server
kubectl apply --server-side -f svc.yaml -o yaml
kubectl apply --force-conflicts -f svc.yaml
kubectl apply --server-side --dry-run=client -f svc.yaml
kubectl get cm settings -o jsonpath='{.metadata.managedFields[*].manager}'
kubectl get cm settings -o yaml --show-managed-fields
kubectl diff -f settings.yaml | grep '^[+-]' | grep -v /tmp
kubectl diff -f settings2.yaml | grep '^[+-]' | grep -v /tmp
kubectl diff -f two.yaml | grep '^[+-]' | grep -v /tmp
kubectl diff -f none.yaml
kubectl diff -f bad-kind.yaml
kubectl diff --server-side -f svc.yaml
kubectl diff -f pod.yaml | grep '^[+-]' | grep -v /tmp
kubectl apply --force -f svc.yaml
kubectl apply -f svc.yaml --overwrite=false
kubectl apply -f pod.yaml
sed 's/sleep, infinity/sleep, day/' pod.yaml | kubectl apply -f -
sed 's/Always/Never/; s/busybox/other/' pod.yaml | kubectl apply -f -
sed 's/app: web}}\\n  temp/x/; s/matchLabels: {app: web}/matchLabels: {app: x}/' web.yaml | kubectl apply -f -
sed 's/replicas: 2/replicas: 1/' web.yaml | kubectl apply -f -
sed '/replicas: 2/d' web.yaml | kubectl apply -f -
kubectl apply -f ingress.yaml -f netpol.yaml -f limits.yaml -f hpa.yaml -f role.yaml
kubectl apply -f ingress.yaml -f netpol.yaml -f limits.yaml -f hpa.yaml -f role.yaml
kubectl get ingress web -o yaml
kubectl get netpol n -o yaml
kubectl get limits limits -o yaml
kubectl get role r -o yaml
kubectl get hpa web
kubectl delete -f two.yaml --ignore-not-found
""")
group("rollout", UP + """
kubectl rollout status deployment/web
kubectl rollout status deployment none
kubectl rollout status cm/settings
kubectl rollout status deployment/web --revision=1
kubectl rollout status deployment/web --revision=7
kubectl rollout status deploy -l app=web
kubectl rollout status pods
kubectl rollout history deployment/web
kubectl rollout history deployment/web --revision=1
kubectl rollout history deployment/web --revision=9
kubectl rollout history deployment/none
kubectl rollout history cm/settings
kubectl set image deployment/web web=nginx:2
~ kubectl rollout status deployment/web --timeout=60s
kubectl annotate deployment/web kubernetes.io/change-cause='second one'
~ sleep 1
kubectl rollout history deployment/web
kubectl rollout history deployment/web --revision=2
kubectl rollout history deployment/web -o name
kubectl rollout undo deployment/web --dry-run=server
kubectl rollout undo deployment/web --dry-run=client
kubectl rollout undo deployment/web
~ kubectl rollout status deployment/web --timeout=60s
~ sleep 1
kubectl rollout history deployment/web
kubectl rollout undo deployment/web --to-revision=2
~ kubectl rollout status deployment/web --timeout=60s
kubectl rollout undo deployment/web --to-revision=77
kubectl rollout undo deployment/none
kubectl rollout undo cm/settings
kubectl rollout undo
kubectl rollout pause deployment/web
kubectl rollout pause deployment/web
~ sleep 1
kubectl rollout undo deployment/web
kubectl rollout restart deployment/web
kubectl rollout status deployment/web --timeout=1s
kubectl rollout resume deployment/web
kubectl rollout resume deployment/web
kubectl rollout restart deployment/web
kubectl rollout restart deployment/none
kubectl rollout restart cm/settings
kubectl rollout restart deploy
kubectl rollout restart deploy -l app=none
kubectl rollout pause sts/none
kubectl rollout pause cm/settings
kubectl rollout nothing
kubectl apply -f sts.yaml -f ds.yaml
~ kubectl rollout status sts/db --timeout=60s
~ kubectl rollout status ds/agent --timeout=60s
kubectl rollout status sts/db
kubectl rollout status ds/agent
kubectl set image sts/db db=pg:2
kubectl set image ds/agent agent=agent:2
~ kubectl rollout status sts/db --timeout=60s
~ kubectl rollout status ds/agent --timeout=60s
kubectl rollout history sts/db
kubectl rollout history ds/agent
kubectl rollout history sts/db --revision=2
kubectl rollout history ds/agent --revision=1
kubectl rollout undo sts/db
kubectl rollout undo ds/agent --to-revision=1
~ kubectl rollout status sts/db --timeout=60s
~ kubectl rollout status ds/agent --timeout=60s
kubectl rollout undo sts/db --to-revision=9
kubectl get controllerrevisions
kubectl get controllerrevisions -o yaml
kubectl get rs,sts,ds -o wide
kubectl get events -o custom-columns=R:.reason,M:.message,T:.type,S:.source.component --no-headers | grep -v -e kubelet -e default-scheduler | sort
kubectl events --for deployment/web --types=Warning
kubectl events --for deployment/none
kubectl events --for cm
kubectl events -A --types=Nothing
kubectl events --types=Warning
kubectl rollout restart sts/db ds/agent
""")
group("delete", UP + """
kubectl delete cm none
kubectl delete cm none --ignore-not-found
kubectl delete cm
kubectl delete
kubectl delete cm settings extra
kubectl create cm a
kubectl create cm b
kubectl create cm c
kubectl label cm a b set=x
kubectl delete cm -l set=x --dry-run=client
kubectl delete cm -l set=x --dry-run=server
kubectl delete cm -l set=x
kubectl delete cm -l set=none
kubectl delete cm --all --field-selector metadata.name=c
kubectl delete cm c/d
kubectl delete cm/c svc/none
kubectl delete pods,cm none
kubectl delete nothing x
kubectl delete -f two.yaml
kubectl delete -f none.yaml
kubectl delete -f bad-yaml.yaml
kubectl create -f two.yaml
kubectl delete -f two.yaml -o name
kubectl delete svc web --wait=false
kubectl delete deploy web --cascade=orphan
kubectl get rs
kubectl delete rs -l app=web --cascade=foreground
kubectl get rs,pods
kubectl delete rs --all --cascade=nothing
kubectl apply -f pod.yaml
~ kubectl wait pod/one --for=condition=Ready --timeout=60s
kubectl delete pod one --grace-period=0
kubectl apply -f pod.yaml
kubectl delete pod one --grace-period=0 --force
kubectl apply -f pod.yaml
kubectl delete pod one --now
kubectl delete pod one --grace-period=-5
kubectl delete ns nowhere
kubectl delete ns default
kubectl delete ns kube-system --dry-run=server
kubectl delete pods --all -A --dry-run=client -l none=x
kubectl delete all --all -l none=x
kubectl delete --all
kubectl delete --raw /api/v1/namespaces/delete/configmaps/none
kubectl delete node none
kubectl delete pv none
kubectl delete crd none.example.com
kubectl apply -f pv.yaml
~ kubectl wait pvc/claim --for=jsonpath='{.status.phase}'=Bound --timeout=60s
kubectl get pvc claim
kubectl get pv lines-pv
kubectl describe pvc claim
kubectl describe pv lines-pv
kubectl get pvc claim -o yaml
kubectl get pv lines-pv -o yaml
kubectl delete pvc claim
~ sleep 2
kubectl get pv lines-pv
kubectl delete pv lines-pv
""")
group("wait", UP + """
kubectl wait deploy/web --for=condition=Available
kubectl wait deploy/web --for=condition=available=true
kubectl wait deploy/web --for=condition=Available=False --timeout=1s
kubectl wait deploy/web --for=condition=Nothing --timeout=1s
kubectl wait deploy/web --for=jsonpath='{.status.readyReplicas}'=2
kubectl wait deploy/web --for=jsonpath='{.status.readyReplicas}'=7 --timeout=1s
kubectl wait deploy/web --for=jsonpath='{.status.none}' --timeout=1s
kubectl wait deploy/web --for=jsonpath='{.status.readyReplicas}'
kubectl wait deploy/web --for=jsonpath=bad=x
kubectl wait deploy/web --for=delete --timeout=1s
kubectl wait deploy/none --for=delete
kubectl wait deploy/none --for=condition=Available --timeout=1s
kubectl wait deploy/web --for=create
kubectl wait deploy/none --for=create --timeout=1s
kubectl wait deploy/web
kubectl wait deploy/web --for=nothing
kubectl wait pods -l app=web --for=condition=Ready
kubectl wait pods -l app=none --for=condition=Ready --timeout=1s
kubectl wait pods --all --for=condition=Ready
kubectl wait -f web.yaml --for=condition=Available
kubectl wait pods --all --for=condition=Ready --timeout=-1s
kubectl wait --for=condition=Available deploy/web svc/web --timeout=1s
""")
group("auth", """
~ kubectl create sa robot
~ kubectl apply -f role.yaml
~ kubectl create rolebinding rb --role=r --serviceaccount=auth:robot
kubectl auth can-i create pods
kubectl auth can-i create pods --quiet
kubectl auth can-i fly pods
kubectl auth can-i get nothing
kubectl auth can-i get pods/log
kubectl auth can-i get /healthz
kubectl auth can-i '*' '*'
kubectl auth can-i get pods --as=nobody
kubectl auth can-i get pods --as=system:serviceaccount:auth:robot
kubectl auth can-i delete pods --as=system:serviceaccount:auth:robot
kubectl auth can-i get secrets/a --as=system:serviceaccount:auth:robot
kubectl auth can-i get secrets/c --as=system:serviceaccount:auth:robot
kubectl auth can-i get nodes --as=system:serviceaccount:auth:robot
kubectl auth can-i get pods -A --as=system:serviceaccount:auth:robot
kubectl auth can-i get pods --subresource=log --as=system:serviceaccount:auth:robot
kubectl auth can-i --list
kubectl auth can-i --list --as=system:serviceaccount:auth:robot
kubectl auth can-i --list --as=nobody
kubectl auth can-i --list --as=system:anonymous --as-group=system:unauthenticated
kubectl auth can-i --list --no-headers --as=nobody
kubectl auth can-i
kubectl auth can-i get
kubectl auth can-i get pods --as-group=x
kubectl auth whoami --as=joe --as-group=a --as-group=b
kubectl auth whoami --as=system:serviceaccount:auth:robot
kubectl auth nothing
kubectl auth reconcile -f role.yaml
kubectl auth reconcile -f role.yaml --dry-run=client
kubectl get pods --as=nobody
kubectl get pods -A --as=nobody
kubectl get nodes --as=nobody
kubectl get pod x --as=nobody
kubectl create cm x --as=nobody
kubectl delete cm x --as=nobody
kubectl patch cm x -p '{}' --as=nobody
kubectl get pods --as=system:serviceaccount:auth:robot
kubectl get secrets --as=system:serviceaccount:auth:robot
kubectl get secret a --as=system:serviceaccount:auth:robot
kubectl create role more --verb=get --resource=nodes --as=system:serviceaccount:auth:robot
kubectl get --raw /metrics --as=nobody
kubectl get --raw /nothing --as=nobody
kubectl get nothing --as=nobody
kubectl get pods --token=bad
kubectl get pods --as=system:anonymous
kubectl get pods --as=nobody --as-uid=7 --as-user-extra=a=b
kubectl certificate approve none
kubectl certificate deny none
kubectl certificate nothing
kubectl exec none -- ls
kubectl logs none
kubectl logs deploy/none
kubectl attach none
kubectl port-forward none 80
kubectl cp none:/x /tmp/x
kubectl top pods
kubectl top nodes
kubectl top pod none
kubectl top
kubectl debug none --image=x
kubectl logs
kubectl exec
kubectl logs -l app=none
""")
group("nodes", """
kubectl get node none
kubectl cordon none
kubectl cordon node-2
kubectl cordon node-2
kubectl get node node-2
kubectl uncordon node-2
kubectl uncordon node-2
kubectl cordon
kubectl cordon -l none=x
kubectl cordon node-2 --dry-run=client
kubectl taint node node-2 a=b:NoSchedule
kubectl taint node node-2 a=b:NoSchedule
kubectl taint node node-2 a=c:NoSchedule
kubectl taint node node-2 a=c:NoSchedule --overwrite
kubectl taint node node-2 a:NoSchedule-
kubectl taint node node-2 a:NoSchedule-
kubectl taint node node-2 a=b:Nothing
kubectl taint node node-2 a
kubectl taint node none a=b:NoSchedule
kubectl taint node node-2 a-
kubectl taint pods x a=b:NoSchedule
kubectl taint nodes -l none=x a=b:NoSchedule
kubectl label node node-2 disk=ssd
kubectl get nodes -L disk
kubectl label node node-2 disk-
kubectl annotate node node-2 x=y
kubectl annotate node node-2 x-
kubectl drain none
kubectl drain node-2 --dry-run=client
kubectl apply -f pod.yaml
~ kubectl wait pod/one --for=condition=Ready --timeout=60s
kubectl drain
kubectl drain node-2 --pod-selector=none=x
kubectl uncordon node-2
kubectl describe node none
kubectl delete pod one
kubectl top node none
""")
group("custom", """
kubectl apply -f crd.yaml
~ kubectl wait crd/crontabs.lines.example.com --for=condition=Established --timeout=30s
~ sleep 4
~ kubectl api-resources
kubectl get crd crontabs.lines.example.com
kubectl get crd crontabs.lines.example.com -o yaml
kubectl describe crd crontabs.lines.example.com
kubectl get ct
kubectl apply -f ct.yaml
kubectl apply -f ct.yaml
kubectl get ct
kubectl get ct -o wide
kubectl get crontabs mine -o yaml
kubectl get lines
kubectl describe ct mine
kubectl apply -f ct-bad.yaml
kubectl apply --server-side -f ct-bad.yaml
kubectl apply --validate=false -f ct-bad.yaml
kubectl explain ct
kubectl explain ct.spec
kubectl explain ct.spec --recursive
kubectl explain ct.spec.list
kubectl explain ct.none
kubectl scale ct mine --replicas=3
kubectl get ct mine -o jsonpath='{.spec}'
kubectl patch ct mine --type=merge -p '{"spec":{"replicas":-3}}'
kubectl patch ct mine -p '{"spec":{"replicas":3}}'
kubectl patch ct mine --type=merge -p '{"spec":{"cronSpec":null}}'
kubectl label ct mine a=b
kubectl get ct --field-selector metadata.name=mine
kubectl get ct --field-selector spec.cronSpec=x
kubectl apply --server-side -f ct.yaml
kubectl diff -f ct.yaml
kubectl api-resources --api-group=lines.example.com
kubectl api-resources --categories=lines
kubectl wait ct/mine --for=jsonpath='{.spec.replicas}'=3 --timeout=1s
kubectl delete ct mine
kubectl delete crd crontabs.lines.example.com
~ sleep 1
kubectl get ct.lines.example.com
""")
