// Karpenter's own scheduler on the scenarios of tests/pools: a line each, of what it would buy.
//
//	peer [-runs 3] [-workers 5] [-facts] [-consolidate] DIR...
//
// A folder holds catalogue.yaml (our InstanceTypeCatalogue) and cluster.yaml (NodePools, Nodes, NodeClaims, Pods, DaemonSets). It is built
// inside a checkout of Karpenter's core with its vendored modules, as a package of its own (tests/peers/karpenter/run says how), and
// stands on Karpenter's provisioner with an in-memory API. A claim costs what its cheapest offering does, as Karpenter's kwok provider
// launches it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	sigyaml "sigs.k8s.io/yaml"

	"github.com/awslabs/operatorpkg/status"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	karpsched "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/test"
)

type offering struct {
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
	Available    *bool   `json:"available"`
}

type instanceType struct {
	Name      string                       `json:"name"`
	CPU       resource.Quantity            `json:"cpu"`
	Memory    resource.Quantity            `json:"memory"`
	Pods      *resource.Quantity           `json:"pods"`
	Arch      string                       `json:"arch"`
	OS        string                       `json:"os"`
	Resources map[string]resource.Quantity `json:"resources"`
	Labels    map[string]string            `json:"labels"`
	Overhead  map[string]resource.Quantity `json:"overhead"`
	Zones     []string                     `json:"zones"`
	Prices    map[string]float64           `json:"prices"`
	Offerings []offering                   `json:"offerings"`
}

type catalogue struct {
	Zones []string       `json:"zones"`
	Types []instanceType `json:"instanceTypes"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// The types as a provider of Karpenter's tells them: of each key that some type has, a type without it says so.
func instanceTypes(file string) []*cloudprovider.InstanceType {
	var read catalogue
	if err := sigyaml.Unmarshal(must(os.ReadFile(file)), &read); err != nil {
		panic(err)
	}
	keys := map[string]bool{}
	for _, one := range read.Types {
		for key := range one.Labels {
			keys[key] = true
			v1.WellKnownLabels = v1.WellKnownLabels.Insert(key)
		}
	}
	var out []*cloudprovider.InstanceType
	for _, one := range read.Types {
		offers := one.Offerings
		zones := one.Zones
		if len(zones) == 0 {
			zones = read.Zones
		}
		for kind, price := range one.Prices {
			for _, zone := range zones {
				offers = append(offers, offering{Zone: zone, CapacityType: kind, Price: price})
			}
		}
		sort.Slice(offers, func(a, b int) bool {
			return offers[a].Zone+"/"+offers[a].CapacityType < offers[b].Zone+"/"+offers[b].CapacityType
		})
		made := &cloudprovider.InstanceType{Name: one.Name, Capacity: corev1.ResourceList{
			corev1.ResourceCPU: one.CPU, corev1.ResourceMemory: one.Memory, corev1.ResourcePods: resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("20Gi")},
			Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: corev1.ResourceList{}}}
		if one.Pods != nil {
			made.Capacity[corev1.ResourcePods] = *one.Pods
		}
		for name, amount := range one.Resources {
			made.Capacity[corev1.ResourceName(name)] = amount
		}
		for name, amount := range one.Overhead {
			made.Overhead.KubeReserved[corev1.ResourceName(name)] = amount
		}
		hadZones, hadKinds := map[string]bool{}, map[string]bool{}
		for _, offer := range offers {
			available := offer.Available == nil || *offer.Available
			made.Offerings = append(made.Offerings, &cloudprovider.Offering{Price: offer.Price, Available: available,
				Requirements: scheduling.NewLabelRequirements(map[string]string{
					corev1.LabelTopologyZone: offer.Zone, v1.CapacityTypeLabelKey: offer.CapacityType})})
			if available {
				hadZones[offer.Zone], hadKinds[offer.CapacityType] = true, true
			}
		}
		in := func(key string, values ...string) *scheduling.Requirement {
			return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
		}
		made.Requirements = scheduling.NewRequirements(
			in(corev1.LabelInstanceTypeStable, one.Name), in(corev1.LabelArchStable, orElse(one.Arch, "amd64")),
			in(corev1.LabelOSStable, orElse(one.OS, "linux")), in(corev1.LabelTopologyZone, sortedKeys(hadZones)...),
			in(v1.CapacityTypeLabelKey, sortedKeys(hadKinds)...))
		for key := range keys {
			if value, ok := one.Labels[key]; ok {
				made.Requirements.Add(in(key, value))
			} else {
				made.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
			}
		}
		out = append(out, made)
	}
	return out
}

func sortedKeys(set map[string]bool) []string {
	var out []string
	for key := range set {
		out = append(out, key)
	}
	sort.Strings(out)
	return out
}

type scenario struct {
	objects []client.Object
	pods    []*corev1.Pod // Those that wait.
}

func readCluster(file string) scenario {
	var out scenario
	reader := yaml.NewYAMLReader(newBufio(must(os.ReadFile(file))))
	decoder := scheme.Codecs.UniversalDeserializer()
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if len(bytes.TrimSpace(must(text, err))) == 0 {
			continue
		}
		decoded, _, err := decoder.Decode(must(sigyaml.YAMLToJSON(text)), nil, nil)
		if err != nil {
			panic(fmt.Errorf("%s: %w in %s", file, err, text))
		}
		object := decoded.(client.Object)
		switch one := object.(type) {
		case *v1.NodePool:
			one.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"}
			one.StatusConditions().SetTrue(status.ConditionReady)
			one.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
			one.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
		case *v1.NodeClaim:
			one.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"}
			one.Status.ProviderID = "test://" + one.Status.NodeName
			one.Status.Allocatable = one.Status.Capacity
		case *corev1.Node:
			one.Spec.ProviderID = "test://" + one.Name
			one.Labels[v1.NodeRegisteredLabelKey] = "true"
			one.Labels[v1.NodeInitializedLabelKey] = "true"
		case *corev1.Pod:
			if one.Spec.NodeName == "" {
				out.pods = append(out.pods, one)
			}
		}
		out.objects = append(out.objects, object)
	}
	return out
}

// What one run came to. Facts that differ from run to run have no place in a record.
type result struct {
	Name      string   `json:"name"`
	Pods      int      `json:"pods"`
	Existing  int      `json:"onExisting"`
	Placed    int      `json:"onNew"`
	Nodes     int      `json:"nodes"`
	Cost      float64  `json:"cost"`
	Left      []string `json:"left"` // Names of those that get nothing.
	Types     []string `json:"types,omitempty"`
	Errors    []string `json:"errors,omitempty"`
	Seconds   float64  `json:"seconds"`
	Processor float64  `json:"processorSeconds"`
}

// Karpenter's view of a cluster, on an API in memory.
type world struct {
	ctx         context.Context
	api         client.Client
	cluster     *state.Cluster
	provider    *fake.CloudProvider
	provisioner *provisioning.Provisioner
	ticker      clock.Clock
}

func stand(objects []client.Object, types_ []*cloudprovider.InstanceType) world {
	ctx := injection.WithControllerName(context.Background(), "provisioner")
	ctx = options.ToContext(ctx, test.Options())
	provider := fake.NewCloudProvider()
	provider.InstanceTypes = types_
	builder := fakeclient.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&v1.NodeClaim{}, "status.providerID", func(o client.Object) []string { return []string{o.(*v1.NodeClaim).Status.ProviderID} })
	for _, one := range []struct{ name string }{{"group"}, {"kind"}, {"name"}} {
		field := func(ref *v1.NodeClassReference) []string {
			return []string{map[string]string{"group": ref.Group, "kind": ref.Kind, "name": ref.Name}[one.name]}
		}
		builder = builder.
			WithIndex(&v1.NodeClaim{}, "spec.nodeClassRef."+one.name, func(o client.Object) []string { return field(o.(*v1.NodeClaim).Spec.NodeClassRef) }).
			WithIndex(&v1.NodePool{}, "spec.template.spec.nodeClassRef."+one.name, func(o client.Object) []string {
				return field(o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef)
			})
	}
	api := builder.Build()
	ticker := clock.RealClock{}
	cluster := state.NewCluster(ticker, api, provider)
	for _, object := range objects {
		if claim, ok := object.(*v1.NodeClaim); ok {
			cluster.UpdateNodeClaim(claim)
		}
	}
	for _, object := range objects {
		if node, ok := object.(*corev1.Node); ok {
			must(0, cluster.UpdateNode(ctx, node))
		}
	}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			must(0, cluster.UpdatePod(ctx, pod))
		}
		if set, ok := object.(*appsv1.DaemonSet); ok {
			must(0, cluster.UpdateDaemonSet(ctx, set))
		}
	}
	provisioner := provisioning.NewProvisioner(api, events.NewRecorder(&record.FakeRecorder{}), provider, cluster, ticker)
	return world{ctx, api, cluster, provider, provisioner, ticker}
}

func solve(dir string, workers int, verbose bool) result {
	types_ := instanceTypes(filepath.Join(dir, "catalogue.yaml"))
	read := readCluster(filepath.Join(dir, "cluster.yaml"))
	w := stand(read.objects, types_)
	ctx, cluster, provisioner := w.ctx, w.cluster, w.provisioner
	started, used := time.Now(), processorSeconds()
	// As Provisioner.Schedule does.
	scheduler := must(provisioner.NewScheduler(ctx, read.pods, cluster.DeepCopyNodes().Active(), karpsched.DisableReservedCapacityFallback,
		karpsched.NumConcurrentReconciles(workers), karpsched.MinValuesPolicy(options.FromContext(ctx).MinValuesPolicy)))
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	results, err := scheduler.Solve(limited, read.pods)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		panic(err)
	}
	results = results.TruncateInstanceTypes(ctx, karpsched.MaxInstanceTypes)
	out := result{Name: filepath.Base(dir), Pods: len(read.pods), Seconds: time.Since(started).Seconds(), Processor: processorSeconds() - used}
	for _, node := range results.ExistingNodes {
		out.Existing += len(node.Pods)
	}
	for _, claim := range results.NewNodeClaims {
		out.Nodes++
		out.Placed += len(claim.Pods)
		price, name := math.MaxFloat64, ""
		for _, one := range claim.InstanceTypeOptions {
			for _, offer := range one.Offerings.Available().Compatible(claim.Requirements) {
				if offer.Price < price {
					price, name = offer.Price, one.Name+" "+offer.Zone()+" "+offer.CapacityType()
				}
			}
		}
		out.Cost += price
		out.Types = append(out.Types, fmt.Sprintf("%s %d %s", name, len(claim.Pods), claim.NodePoolName))
	}
	out.Cost = math.Round(out.Cost*1e6) / 1e6
	sort.Strings(out.Types)
	if !verbose {
		out.Types = nil
	}
	out.Left = []string{}
	for pod, why := range results.PodErrors {
		out.Left = append(out.Left, pod.Name)
		if verbose {
			out.Errors = append(out.Errors, pod.Name+": "+why.Error())
		}
	}
	sort.Strings(out.Left)
	return out
}

func main() {
	runs := flag.Int("runs", 1, "how often: the best is told, the fewest pods without a node first, then the least cost")
	facts := flag.Bool("facts", false, "what tests/pools/karpenter_facts.txt holds, instead of JSON")
	workers := flag.Int("workers", 5, "goroutines of one solution, as in Karpenter's benchmark")
	saves := flag.Bool("consolidate", false, "what consolidation makes of a cluster instead")
	verbose := flag.Bool("v", false, "types and reasons too")
	flag.Parse()
	log.SetLogger(logging.NopLogger)
	for _, dir := range flag.Args() {
		if *saves {
			one := consolidate(dir)
			if *facts {
				fmt.Printf("%s nodes=%d before=%.4f after=%d cost=%.4f\n", one.Name, one.Nodes, one.Before, one.After, one.Cost)
			} else {
				fmt.Println(string(must(json.Marshal(one))))
			}
			continue
		}
		var best result
		for i := 0; i < *runs; i++ {
			one := solve(dir, *workers, *verbose)
			if i > 0 {
				seconds, processor := math.Min(one.Seconds, best.Seconds), math.Min(one.Processor, best.Processor)
				if len(one.Left) > len(best.Left) || len(one.Left) == len(best.Left) && one.Cost >= best.Cost {
					one = best
				}
				one.Seconds, one.Processor = seconds, processor
			}
			best = one
		}
		if *facts {
			fmt.Printf("%s pods=%d placed=%d nodes=%d cost=%.4f\n", best.Name, best.Pods, best.Existing+best.Placed, best.Nodes, best.Cost)
			continue
		}
		fmt.Println(string(must(json.Marshal(best))))
	}
}
