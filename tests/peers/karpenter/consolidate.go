// What Karpenter's own consolidation makes of a cluster: look after look (empty nodes, several at once, one by one), each carried out at
// once, until it finds nothing more.
package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	karpsched "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"
)

type consolidated struct {
	Name    string  `json:"name"`
	Nodes   int     `json:"nodes"`
	Before  float64 `json:"before"`
	Cost    float64 `json:"cost"`
	After   int     `json:"after"`
	Moved   int     `json:"moved"`
	Looks   int     `json:"looks"`
	Seconds float64 `json:"seconds"`
}

// Nothing happens between a look and what is made of it.
type trusting struct{}

func (trusting) Validate(_ context.Context, command disruption.Command, _ time.Duration) (disruption.Command, error) {
	return command, nil
}

func price(types []*cloudprovider.InstanceType, node *corev1.Node) float64 {
	for _, one := range types {
		if one.Name != node.Labels[corev1.LabelInstanceTypeStable] {
			continue
		}
		for _, offer := range one.Offerings {
			if offer.Zone() == node.Labels[corev1.LabelTopologyZone] && offer.CapacityType() == node.Labels[v1.CapacityTypeLabelKey] {
				return offer.Price
			}
		}
	}
	panic("no price of " + node.Name)
}

// The node and its claim that a replacement becomes: its cheapest offering.
func launch(claim *karpsched.NodeClaim, name string, like *corev1.Node, likeClaim *v1.NodeClaim) (*corev1.Node, *v1.NodeClaim) {
	cheapest := math.MaxFloat64
	node, made := like.DeepCopy(), likeClaim.DeepCopy()
	for _, one := range claim.InstanceTypeOptions {
		for _, offer := range one.Offerings.Available().Compatible(claim.Requirements) {
			if offer.Price >= cheapest {
				continue
			}
			cheapest = offer.Price
			for key := range node.Labels {
				if one.Requirements.Has(key) && one.Requirements.Get(key).Len() == 1 {
					node.Labels[key] = one.Requirements.Get(key).Any()
				}
			}
			node.Labels[corev1.LabelInstanceTypeStable] = one.Name
			node.Labels[corev1.LabelTopologyZone], node.Labels[v1.CapacityTypeLabelKey] = offer.Zone(), offer.CapacityType()
			node.Status.Capacity, node.Status.Allocatable = one.Capacity, one.Allocatable()
		}
	}
	node.Name, node.UID, node.Labels[corev1.LabelHostname], node.Spec.ProviderID = name, "", name, "test://"+name
	made.Name, made.UID, made.Labels = name, "", map[string]string{}
	for key, value := range node.Labels {
		made.Labels[key] = value
	}
	made.Status.NodeName, made.Status.ProviderID = name, node.Spec.ProviderID
	made.Status.Capacity, made.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	return node, made
}

func consolidate(dir string) consolidated {
	types_ := instanceTypes(filepath.Join(dir, "catalogue.yaml"))
	read := readCluster(filepath.Join(dir, "cluster.yaml"))
	out := consolidated{Name: filepath.Base(dir)}
	nodes, claims, pods := map[string]*corev1.Node{}, map[string]*v1.NodeClaim{}, map[string]*corev1.Pod{}
	var rest []client.Object
	for _, object := range read.objects {
		switch one := object.(type) {
		case *corev1.Node:
			nodes[one.Name] = one
		case *v1.NodeClaim:
			claims[one.Name] = one
		case *corev1.Pod:
			one.Status.Phase = corev1.PodRunning
			pods[one.Name] = one
		default:
			rest = append(rest, object)
		}
	}
	cost := func() float64 {
		sum := 0.0
		for _, node := range nodes {
			sum += price(types_, node)
		}
		return sum
	}
	out.Nodes, out.Before = len(nodes), cost()
	for made, found := 0, true; found && out.Looks < 500; {
		found = false
		var objects []client.Object
		for _, one := range rest {
			objects = append(objects, one.DeepCopyObject().(client.Object))
		}
		for _, one := range nodes {
			objects = append(objects, one.DeepCopy())
		}
		for _, one := range claims {
			objects = append(objects, one.DeepCopy())
		}
		for _, one := range pods {
			objects = append(objects, one.DeepCopy())
		}
		for _, one := range objects {
			one.SetResourceVersion("")
			one.SetManagedFields([]metav1.ManagedFieldsEntry{})
		}
		w := stand(objects, types_)
		recorder := events.NewRecorder(&record.FakeRecorder{})
		queue := disruption.NewQueue(w.api, recorder, w.cluster, w.ticker, w.provisioner)
		shared := disruption.MakeConsolidation(w.ticker, w.cluster, w.api, w.provisioner, w.provider, recorder, queue)
		for _, method := range []disruption.Method{
			disruption.NewEmptiness(shared, disruption.WithValidator(trusting{})),
			disruption.NewMultiNodeConsolidation(shared, disruption.WithValidator(trusting{})),
			disruption.NewSingleNodeConsolidation(shared, disruption.WithValidator(trusting{}))} {
			started := time.Now()
			candidates := must(disruption.GetCandidates(w.ctx, w.cluster, w.api, recorder, w.ticker, w.provider, method.ShouldDisrupt, method.Class(), queue))
			budgets := must(disruption.BuildDisruptionBudgetMapping(w.ctx, w.cluster, w.ticker, w.api, w.provider, recorder, method.Reason()))
			commands := must(method.ComputeCommands(w.ctx, budgets, candidates...))
			out.Seconds += time.Since(started).Seconds()
			out.Looks++
			if len(commands) == 0 || len(commands[0].Candidates) == 0 {
				continue
			}
			found = true
			command := commands[0]
			first := command.Candidates[0]
			like, likeClaim := nodes[first.Node.Name], claims[first.NodeClaim.Name]
			for _, candidate := range command.Candidates {
				delete(nodes, candidate.Node.Name)
				delete(claims, candidate.NodeClaim.Name)
			}
			for _, existing := range command.Results.ExistingNodes {
				for _, pod := range existing.Pods {
					pods[pod.Name].Spec.NodeName = existing.Name()
				}
				out.Moved += len(existing.Pods)
			}
			for _, one := range command.Replacements {
				made++
				node, claim := launch(one.NodeClaim, fmt.Sprintf("made-%03d", made), like, likeClaim)
				nodes[node.Name], claims[claim.Name] = node, claim
				for _, pod := range one.Pods {
					pods[pod.Name].Spec.NodeName = node.Name
				}
				out.Moved += len(one.Pods)
			}
			break
		}
	}
	for _, pod := range pods {
		if nodes[pod.Spec.NodeName] == nil {
			panic("nowhere: " + pod.Name)
		}
	}
	out.Cost, out.After = cost(), len(nodes)
	return out
}
