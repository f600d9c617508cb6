package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// A figure is one number of a record.
type figure struct {
	name  string
	value float64
}

// The names of the figures that have bars.
const (
	figureBill      = "bill, $"
	figureEvictions = "evictions by consolidation"
	figureReclaimed = "evictions by reclaim"
)

// figures returns what is compared of a record, always in the same order.
func (s *script) figures(r *record) ([]figure, error) {
	bill, err := s.bill(r)
	if err != nil {
		return nil, err
	}
	end := s.bound.Duration.Milliseconds()
	var hours, spotHours, last float64
	peak, running, reclaims := 0, 0, 0
	for _, n := range r.Nodes {
		until := end
		if n.Until != 0 {
			until = n.Until
		} else {
			running++
			last += s.priceAt(n.Market, end-1)
		}
		h := float64(until-n.From) / float64(time.Hour.Milliseconds())
		hours += h
		if strings.HasSuffix(n.Market, "/spot") {
			spotHours += h
		}
		if n.Ended == byReclaim {
			reclaims++
		}
		peak = max(peak, r.nodesAt(n.From))
	}
	ready := r.timesToReady()
	return []figure{
		{figureBill, float64(bill) / 1e6},
		{"node-hours", hours},
		{"node-hours on spot", spotHours},
		{"nodes launched", float64(len(r.Nodes))},
		{"nodes at the peak", float64(peak)},
		{"nodes at the end", float64(running)},
		{"cost of the nodes at the end, $/h", last},
		{"scale-down begins after, s", r.firstConsolidation(s.shrinks()).Seconds()},
		{"nodes taken by the provider", float64(reclaims)},
		{figureEvictions, float64(r.evicted(byConsolidation))},
		{figureReclaimed, float64(r.evicted(byReclaim))},
		{"other evictions", float64(r.evicted(byOther))},
		{"time to ready, median, s", percentile(ready, 50)},
		{"time to ready, 95th percentile, s", percentile(ready, 95)},
		{"pods never ready", float64(r.neverReady(end))},
	}, nil
}

// priceAt returns the price of a market at an instant in dollars per hour.
func (s *script) priceAt(market string, ms int64) float64 {
	parts := strings.Split(market, "/")
	m, ok := s.market(parts[0], parts[1], parts[2])
	if !ok {
		return math.NaN()
	}
	curve := s.stage.Prices(m)
	i, found := slices.BinarySearch(curve.At, s.instant(ms))
	if !found {
		i--
	}
	return float64(curve.Price[max(i, 0)]) / 1e6
}

// nodesAt returns how many nodes are paid for at an instant.
func (r *record) nodesAt(ms int64) int { return r.countNodes(ms, "") }

// countNodes returns how many nodes whose market ends so are paid for at an instant.
func (r *record) countNodes(ms int64, suffix string) int {
	n := 0
	for i := range r.Nodes {
		x := &r.Nodes[i]
		if x.From <= ms && (x.Until == 0 || x.Until > ms) && strings.HasSuffix(x.Market, suffix) {
			n++
		}
	}
	return n
}

// evicted returns how many pods were evicted for a cause.
func (r *record) evicted(c cause) int {
	n := 0
	for _, e := range r.Evictions {
		if e.Cause == c {
			n++
		}
	}
	return n
}

// firstConsolidation returns how long after an instant the first node ends that was
// consolidated; from there to the end of the last node where none was.
func (r *record) firstConsolidation(after time.Duration) time.Duration {
	first := int64(math.MaxInt64)
	for _, n := range r.Nodes {
		if n.Ended == byConsolidation && n.Until > after.Milliseconds() {
			first = min(first, n.Until)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return time.Duration(first)*time.Millisecond - after
}

// timesToReady returns how long pods took from their creation to be ready, in seconds,
// ascending.
func (r *record) timesToReady() []float64 {
	var all []float64
	for _, p := range r.Pods {
		if p.Ready != 0 {
			all = append(all, float64(p.Ready-p.Created)/1000)
		}
	}
	slices.Sort(all)
	return all
}

// neverReady returns how many pods wait at the end.
func (r *record) neverReady(end int64) int {
	n := 0
	for _, p := range r.Pods {
		if p.Ready == 0 && p.Gone == 0 && p.Created < end-1 {
			n++
		}
	}
	return n
}

// percentile returns a percentile of values in ascending order by the nearest rank, 0
// without any.
func percentile(ascending []float64, p int) float64 {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[max(0, (len(ascending)*p+99)/100-1)]
}

// placement says in words where the pods of each workload are at the end: their number by
// zone, on how many nodes.
func (r *record) placement() string {
	zones, nodes := map[string]map[string]int{}, map[string]map[int]bool{}
	for _, p := range r.Pods {
		if p.Gone != 0 || p.Node < 0 {
			continue
		}
		if zones[p.Workload] == nil {
			zones[p.Workload], nodes[p.Workload] = map[string]int{}, map[int]bool{}
		}
		zone := strings.Split(r.Nodes[p.Node].Market, "/")[1]
		zones[p.Workload][zone[len(zone)-1:]]++
		nodes[p.Workload][p.Node] = true
	}
	var all []string
	for _, w := range slices.Sorted(maps.Keys(zones)) {
		var counts []string
		for _, z := range slices.Sorted(maps.Keys(zones[w])) {
			counts = append(counts, fmt.Sprintf("%d %s", zones[w][z], z))
		}
		all = append(all, fmt.Sprintf("%s: %s on %d nodes", w, strings.Join(counts, ", "), len(nodes[w])))
	}
	return strings.Join(all, "; ")
}

// kinds returns how many nodes of each instance type and capacity type run at the end,
// the most frequent first.
func (r *record) kinds() string {
	count := map[string]int{}
	for _, n := range r.Nodes {
		if n.Until == 0 {
			parts := strings.Split(n.Market, "/")
			count[parts[0]+" "+parts[2]]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	var all []string
	for _, n := range names {
		all = append(all, fmt.Sprintf("%d %s", count[n], n))
	}
	return strings.Join(all, ", ")
}
