package capture

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// lateMost is the longest time before a node appears or after it terminates at which an
// interruption of its instance still counts for the node.
const lateMost = 10 * time.Minute

// interrupted replaces the reclaims that h counted by the provider's own list of interruptions. It
// leaves out and reports instances that are not nodes of the cluster, and the hours of nodes whose
// instances are unknown.
func (f *sinceFlags) interrupted(ctx context.Context, h *history.History, resolver *kube.CapacityResolver) error {
	if len(f.interruptions) == 0 {
		return nil
	}
	x, err := history.ReadInterruptions(ctx, f.interruptions, h.From, h.To)
	if err != nil {
		return err
	}
	var count history.Count
	var said string
	if x.Regions != nil {
		count, said, err = countedByRegion(x, h)
	} else {
		count, said, err = countedByNode(x, h, resolver)
	}
	if err != nil {
		return err
	}
	if was := h.Reclaims; was.Source != "" {
		said += fmt.Sprintf("; %s counted %d", was.Source, was.N)
	}
	h.Reclaims = count
	h.Uncertain = append(h.Uncertain, said)
	return nil
}

// countedByNode counts the events of the Spot nodes of h.
func countedByNode(x *history.Interruptions, h *history.History,
	resolver *kube.CapacityResolver) (count history.Count, said string, err error) {
	count.Source = x.Source
	nodes := instancesOf(h)
	unknown, spot := 0, 0
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if !isSpot(n, resolver) {
			continue
		}
		spot++
		if !identified(n) {
			unknown++
			continue
		}
		count.Hours += n.Hours()
	}
	if spot > 0 && unknown == spot {
		return count, "",
			fmt.Errorf("%s: no source says which instance a node is: kube_node_info of kube-state-metrics has it as provider_id, and audit logs have it where nodes are logged", x.Source)
	}
	others := 0
	for _, e := range x.Events {
		if slices.ContainsFunc(nodes[e.Instance], func(i int) bool {
			n := &h.Nodes[i]
			return e.At >= n.From.Add(-lateMost) && e.At <= n.To.Add(lateMost) && isSpot(n, resolver)
		}) {
			count.N++
		} else {
			others++
		}
	}
	said = fmt.Sprintf("%s has %d interruptions, %d of them of Spot nodes of this cluster and %d of no known node of it",
		x.Source, len(x.Events), count.N, others)
	if unknown > 0 {
		said += fmt.Sprintf("; for %d of %d Spot nodes no source gives the instance: their node-hours are not counted",
			unknown, spot)
	}
	return count, said, nil
}

// identified reports whether the instance of a node is known. On Compute Engine, the name of a node
// is the name of its instance; on EC2 it is at most the instance ID.
func identified(n *history.Node) bool {
	_, gcp := catalog.Lookup(catalog.GCP, n.Kind.Labels[corev1.LabelInstanceTypeStable])
	return n.Instance != "" || gcp || strings.HasPrefix(n.Name, "i-")
}

// instancesOf maps each possible instance name to the indexes of the nodes of h.
func instancesOf(h *history.History) map[string][]int {
	out := map[string][]int{}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		first, _, _ := strings.Cut(n.Name, ".") // such as i-0abc.us-west-2.compute.internal
		names := []string{n.Name, first}
		if n.Instance != "" {
			names = []string{n.Instance, n.Name}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			out[name] = append(out[name], i)
		}
	}
	return out
}

// isSpot reports whether n is a Spot node of a known type.
func isSpot(n *history.Node, resolver *kube.CapacityResolver) bool {
	if n.Kind == nil || !sold(n.Kind.Labels[corev1.LabelInstanceTypeStable]) {
		return false
	}
	capacity, _ := resolver.Resolve(n.Kind.Labels)
	return capacity == policy.Spot
}

// countedByRegion adds up the interruptions and the Spot hours of all clusters in the regions of h.
func countedByRegion(x *history.Interruptions, h *history.History) (count history.Count, said string, err error) {
	count.Source = x.Source
	ours := map[string]bool{}
	for i := range h.Nodes {
		if k := h.Nodes[i].Kind; k != nil {
			for _, l := range nodeLabels(k.Labels) {
				if l.Key == corev1.LabelTopologyRegion {
					ours[l.Value] = true
				}
			}
		}
	}
	n, used := 0.0, []string{}
	for _, region := range slices.Sorted(maps.Keys(x.Regions)) {
		if region == "" || len(ours) == 0 || ours[region] {
			n, count.Hours, used = n+x.Regions[region].N, count.Hours+x.Regions[region].Hours, append(used, region)
		}
	}
	count.N = int64(math.Round(n))
	if count.Hours <= 0 {
		return count, "", fmt.Errorf("%s: it has no hour of a Spot instance in %s from %v to %v", x.Source,
			strings.Join(slices.Sorted(maps.Keys(ours)),
				", "), h.From.Std().Format(time.RFC3339), h.To.Std().Format(time.RFC3339))
	}
	said = fmt.Sprintf("%s counts all instances of its accounts: no interruption of it is of a node that is known",
		x.Source)
	if left := len(x.Regions) - len(used); left > 0 {
		said += fmt.Sprintf("; %d regions without nodes of this cluster are skipped", left)
	}
	return count, said, nil
}
