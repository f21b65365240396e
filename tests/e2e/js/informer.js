// informer.js KUBECONFIG: keeps an informer on the pods of one namespace and answers questions about it on standard input, a line each:
//   count N      waits until the cache holds N pods, then prints "ok"
//   errors       prints how often the watch broke
//   report       prints JSON: how often each pod was added and deleted, and the cache's names and revisions
// A watch that breaks is started again, as the client's documentation asks of its users.
'use strict';
const k8s = require('@kubernetes/client-node');
const readline = require('readline');

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const api = config.makeApiClient(k8s.CoreV1Api);
const namespace = 'default';
const added = {}, deleted = {};
let errors = 0;

const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, () => api.listNamespacedPod({ namespace }));
informer.on('add', pod => { added[pod.metadata.name] = (added[pod.metadata.name] || 0) + 1; });
informer.on('delete', pod => { deleted[pod.metadata.name] = (deleted[pod.metadata.name] || 0) + 1; });
const start = () => informer.start().catch(again);
const again = () => { errors++; setTimeout(start, 50); };
informer.on('error', again);

function waitForCount(wanted, end) {
  if (informer.list(namespace).length === wanted) return console.log('ok');
  if (Date.now() > end) return console.log(`the cache holds ${informer.list(namespace).length} pods, wanted ${wanted}`);
  setTimeout(() => waitForCount(wanted, end), 20);
}

readline.createInterface({ input: process.stdin }).on('line', line => {
  const [verb, argument] = line.split(' ');
  if (verb === 'count') waitForCount(Number(argument), Date.now() + 30000);
  else if (verb === 'errors') console.log(errors);
  else console.log(JSON.stringify({ added, deleted, cache: Object.fromEntries(informer.list(namespace).map(pod => [pod.metadata.name, pod.metadata.resourceVersion])) }));
}).on('close', () => process.exit(0));
start();
