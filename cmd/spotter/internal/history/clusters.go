package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A SeveralClustersError means that the metrics come from several clusters, which a label
// distinguishes.
type SeveralClustersError struct {
	Label  string
	Values []string // ascending; "" for series without the label

	// Own is the value of the label for the captured cluster. It is valid if HasOwn is true.
	Own    string
	HasOwn bool

	nodes map[string]int // number of nodes by value
}

// Error names the label and its values.
func (e *SeveralClustersError) Error() string {
	words := make([]string, len(e.Values))
	for i, v := range e.Values {
		words[i] = fmt.Sprintf("%q (%d nodes)", v, e.nodes[v])
	}
	all := strings.Join(words, ", ")
	text := fmt.Sprintf("the metrics are of %d clusters, by the label %s: %s", len(e.Values), e.Label, all)
	if e.HasOwn {
		text += fmt.Sprintf("; the nodes that are captured have %q", e.Own)
	}
	return text
}

// Selector returns the matcher that selects the captured cluster, or the first one if the captured
// cluster is unknown.
func (e *SeveralClustersError) Selector() string {
	own := e.Own
	if !e.HasOwn {
		own = e.Values[0]
	}
	return fmt.Sprintf("%s=%q", e.Label, own)
}

// targetLabels are labels of the kube-state-metrics process and of its location. They change when
// it restarts, and its shards differ in them.
var targetLabels = []string{
	"instance", "pod", "container", "endpoint", "node", "uid", "host", "hostname", "nodename", "pod_name", "pod_ip",
	"pod_template_hash", "container_id", "controller_revision_hash", "apps_kubernetes_io_pod_index", "kubernetes_pod_name",
	"kubernetes_node", "statefulset_kubernetes_io_pod_name", "shard",
}

// exportable are the labels of kube-state-metrics that Prometheus renames to exported_namespace and
// so on if the target has a label of the same name and honorLabels is not set, each with a metric
// that has it.
var exportable = map[string]string{
	"namespace": "kube_pod_info", "pod": "kube_pod_info", "node": metricHeart,
	"container": "kube_pod_container_resource_requests",
}

// surveyPoints are the numbers of instants to survey. The next one is used if a server refuses the
// one before.
var surveyPoints = []int{100, 10, 1}

// survey determines how labels are used before anything is read: which are renamed, which only
// distinguish copies of one series, and whether one distinguishes clusters.
func (r *reading) survey(ctx context.Context) error {
	var renamed []string
	for _, l := range sorted(exportable) {
		x := r.use.of(exportable[l], "exported_"+l+`!=""`)
		renamed = append(renamed, fmt.Sprintf(`label_replace(%s, "renamed", %q, "", "")`, x, l))
	}
	r.use.exported = map[string]bool{}
	note := func(labels map[string]string) sink {
		r.use.exported[labels["renamed"]] = true
		return nil
	}
	err := r.ask(ctx, "kube_pod_info", "count by (renamed) ("+strings.Join(renamed, " or ")+")", note)
	if err != nil {
		return err
	}
	sets := nodeSets{}
	others := slices.DeleteFunc(slices.Clone(targetLabels), func(l string) bool { return l == "node" })
	query := "max without (" + strings.Join(others, ", ") + ") (" + r.use.of(metricHeart) + ")"
	if err := r.ask(ctx, metricHeart, query, sets.fold); err != nil {
		return err
	}
	var unsure []string
	r.use.copies, unsure, err = sets.judge(r.p.Nodes)
	for _, l := range unsure {
		r.note(fmt.Sprintf("values of the label %s have different nodes: if they are of different clusters, give --selector", l))
	}
	return err
}

// ask folds the result of a query at some instants of the whole interval.
func (r *reading) ask(ctx context.Context, metric, query string, f fold) error {
	unit := policy.Time(r.step / time.Millisecond)
	end := r.to - unit
	for i, n := range surveyPoints {
		q := question{query: query, from: r.from, to: end, step: time.Duration((r.to-r.from)/policy.Time(n)/unit+1) * r.step}
		if n == 1 {
			q.from = end
		}
		a, err := r.p.ask(ctx, &q)
		if errors.Is(err, errTooMuch) && i+1 < len(surveyPoints) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading labels of %s: %w", metric, err)
		}
		defer a.done()
		return a.read(f)
	}
	return nil
}

// A nodeSet is the nodes of the series whose labels are equal except for target labels.
type nodeSet struct {
	labels map[string]string
	nodes  map[string]bool      // "name@creation time"
	seen   map[policy.Time]bool // instants at which there were nodes
}

func newNodeSet(labels map[string]string) *nodeSet {
	return &nodeSet{labels, map[string]bool{}, map[policy.Time]bool{}}
}

// nodeSets maps the labels of series to their nodes.
type nodeSets map[string]*nodeSet

func (s nodeSets) fold(labels map[string]string) sink {
	name := cmp.Or(labels["exported_node"], labels["node"])
	var key strings.Builder
	others := map[string]string{}
	for _, l := range sorted(labels) {
		if l != "exported_node" && l != "__name__" && !slices.Contains(targetLabels, l) {
			others[l] = labels[l]
			fmt.Fprintf(&key, "%s=%q,", l, labels[l])
		}
	}
	x := s[key.String()]
	if x == nil {
		x = newNodeSet(others)
		s[key.String()] = x
	}
	return func(at policy.Time, created float64) {
		x.nodes[fmt.Sprintf("%s@%.0f", name, created)], x.seen[at] = true, true
	}
}

// byValue returns the nodes by the value of a label.
func (s nodeSets) byValue(label string) map[string]*nodeSet {
	out := map[string]*nodeSet{}
	for _, x := range s {
		v := x.labels[label]
		if out[v] == nil {
			out[v] = newNodeSet(nil)
		}
		maps.Copy(out[v].nodes, x.nodes)
		maps.Copy(out[v].seen, x.seen)
	}
	return out
}

// known returns the number of nodes whose name is in names.
func (x *nodeSet) known(names map[string]bool) (n int) {
	for node := range x.nodes {
		if name, _, _ := strings.Cut(node, "@"); names[name] {
			n++
		}
	}
	return n
}

// same reports whether x and y share at least half of the nodes of the smaller set. One of them may
// have missed some nodes.
func (x *nodeSet) same(y *nodeSet) bool {
	return 2*shared(x.nodes, y.nodes) >= min(len(x.nodes), len(y.nodes))
}

func shared[K comparable](a, b map[K]bool) (n int) {
	for x := range a {
		if b[x] {
			n++
		}
	}
	return n
}

// judge returns the labels that distinguish copies of the same series and those whose meaning is
// uncertain. It returns an error if a label distinguishes clusters. known are the nodes of the
// captured cluster.
func (s nodeSets) judge(known map[string]bool) (copies, unsure []string, err error) {
	names := map[string]bool{}
	for _, x := range s {
		for l := range x.labels {
			names[l] = true
		}
	}
	order := sorted(names)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(clusterRank(a), clusterRank(b)) })
	for _, l := range order {
		sets := s.byValue(l)
		if len(sets) < 2 {
			continue
		}
		own, hasOwn := ownValue(sets, known)
		different, foreign := 0, false
		for v, x := range sets {
			if v == own || x.same(sets[own]) {
				continue
			}
			different++
			foreign = foreign || isForeign(l, v, own, sets, known)
		}
		switch {
		case foreign:
			e := &SeveralClustersError{Label: l, Values: sorted(sets), Own: own, HasOwn: hasOwn, nodes: map[string]int{}}
			for v, x := range sets {
				e.nodes[v] = len(x.nodes)
			}
			return nil, nil, e
		case different == 0:
			copies = append(copies, l)
		case !hasOwn:
			unsure = append(unsure, l)
		}
	}
	return copies, unsure, nil
}

// isForeign reports whether the series with the value v of a label belong to another cluster than
// those with own: the label is named for clusters, or the series contain few of the known nodes. If
// a label changed over time, its values do not overlap.
func isForeign(label, v, own string, sets map[string]*nodeSet, known map[string]bool) bool {
	named := clusterRank(label) < rankOther
	if shared(sets[v].seen, sets[own].seen) == 0 {
		return named && v != "" && own != ""
	}
	n := sets[own].known(known)
	return named || n > 0 && 4*sets[v].known(known) <= n
}

// rankOther is the rank of a label that is not named for clusters.
const rankOther = 2

// clusterRank ranks labels by how likely their names distinguish clusters; 0 is the most likely.
func clusterRank(label string) int {
	switch {
	case label == "cluster":
		return 0
	case strings.Contains(label, "cluster"), strings.Contains(label, "tenant"):
		return 1
	}
	return rankOther
}

// ownValue returns the value with the most known nodes, and has reports whether it has any. Ties
// are resolved by the number of nodes, then by the value.
func ownValue(sets map[string]*nodeSet, known map[string]bool) (own string, has bool) {
	own = slices.MaxFunc(sorted(sets), func(a, b string) int {
		x, y := sets[a], sets[b]
		return cmp.Or(cmp.Compare(x.known(known), y.known(known)), cmp.Compare(len(x.nodes), len(y.nodes)), cmp.Compare(b, a))
	})
	return own, sets[own].known(known) > 0
}
