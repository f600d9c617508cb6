package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Prometheus is a source of metrics.
type Prometheus struct {
	Client

	// Match are label matchers that select one cluster where several write to the same server, such
	// as `cluster="prod"`.
	Match string

	// Nodes are the names of known nodes of the captured cluster. If series belong to several
	// clusters, they determine which one is the captured one.
	Nodes map[string]bool

	// Progress, if not nil, is called after each slice of time with the share that has been read,
	// in [0, 1].
	Progress func(part float64)
}

// Step returns the interval of observations for a span of time: the usual scrape interval, or more
// for long spans. All changes within a step coincide: pods that arrived one after another then
// share fewer and larger nodes.
func Step(span time.Duration) time.Duration {
	switch day := 24 * time.Hour; {
	case span <= day:
		return 15 * time.Second
	case span <= 14*day:
		return time.Minute
	case span <= 92*day:
		return 5 * time.Minute
	}
	return 15 * time.Minute
}

// slice returns the interval of one query: six hours at a step of a minute, and at most a day. A
// server returns no more than 11,000 points of a series.
func slice(step time.Duration) time.Duration {
	return min(360*step, 24*time.Hour)
}

// sliceLeast is the minimum length to which a slice is divided if a server refuses more.
const sliceLeast = 15 * time.Minute

// ErrNothing means that there are no metrics of kube-state-metrics in the interval.
var ErrNothing = errors.New("there are no metrics of kube-state-metrics")

// Read returns the history of an interval, whose ends are rounded down to whole steps.
func (p *Prometheus) Read(ctx context.Context, from, to policy.Time) (*History, error) {
	step := Step(to.Sub(from))
	unit := policy.Time(step / time.Millisecond)
	from, to = from-from%unit, to-to%unit
	r := &reading{builder: newBuilder(from, to, step), p: p, answered: map[string]bool{},
		counters: map[string]*counter{}, owned: map[string]workloadKey{}, unread: map[string]error{},
		requested: map[workloadKey]map[string]*asked{}}
	r.use.match = p.Match
	if p.Cache != "" {
		if err := os.MkdirAll(p.Cache, 0o755); err != nil {
			return nil, err
		}
	}
	if err := r.survey(ctx); err != nil {
		return nil, err
	}
	width := policy.Time(slice(step) / time.Millisecond)
	for at := from; at < to; {
		end := min(at-at%width+width, to) // the bounds of whole slices do not depend on from, so that the cache is effective
		if err := r.slice(ctx, at, end); err != nil {
			return nil, err
		}
		at = end
		if p.Progress != nil {
			p.Progress(float64(at-from) / float64(to-from))
		}
	}
	if !r.answered[metricHeart] {
		return nil, fmt.Errorf("%w at %s from %v to %v", ErrNothing, p.URL.Redacted(), from.Std().Format(time.RFC3339),
			to.Std().Format(time.RFC3339))
	}
	r.end()
	r.conclude()
	return r.finish(), nil
}

// A reading is the state of converting metrics to a history.
type reading struct {
	*builder
	p        *Prometheus
	use      labelUse
	now      expressions     // the slice that is being folded
	answered map[string]bool // by metric
	counters map[string]*counter
	owned    map[string]workloadKey // by "namespace/replicaset"

	// noRequests is the maximum number of pods without requests in a slice.
	noRequests int64

	// hourly is the cost of the nodes in dollars per hour, at costAt.
	hourly float64
	costAt policy.Time

	labelled int // number of nodes that labels describe

	unread map[string]error // error of a metric that could not be read in some slices

	requested map[workloadKey]map[string]*asked // by workload and name of the owner, while a response is read
}

// slice reads one slice of time, divided in two if the server refuses to read it at once. It folds
// nothing before all responses have been received, so that nothing is folded twice.
func (r *reading) slice(ctx context.Context, from, to policy.Time) error {
	e := expressions{labelUse: r.use, from: from, to: to}
	all := append([]query{heartbeat()}, queries(from == r.from)...)
	answers := make([]*answer, len(all))
	defer func() {
		for _, a := range answers {
			a.done()
		}
	}()
	for i := range all {
		var err error
		if answers[i], err = r.p.ask(ctx, r.question(&all[i], &e)); err == nil {
			continue
		}
		if errors.Is(err, errUnmatched) { // the other queries are still valid
			r.unread[all[i].metric] = err
			continue
		}
		if half := from.Add(to.Sub(from) / 2); errors.Is(err, errTooMuch) && to.Sub(from) >= 2*max(sliceLeast, 2*r.step) {
			half -= half % policy.Time(r.step/time.Millisecond)
			return errors.Join(r.slice(ctx, from, half), r.slice(ctx, half, to))
		}
		return fmt.Errorf("reading %s from %v to %v: %w", all[i].metric, from.Std().Format(time.RFC3339),
			to.Std().Format(time.RFC3339), err)
	}
	r.now = e
	clear(r.owned)
	for i := range all {
		if answers[i] == nil {
			continue
		}
		err := answers[i].read(func(labels map[string]string) sink {
			r.answered[all[i].metric] = true
			return all[i].fold(r, labels)
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", all[i].metric, err)
		}
		r.settleRequests()
	}
	r.nodes.settle()
	r.jobs.settle(to)
	return nil
}

// question returns the query of a slice: at each step except for the end, which belongs to the next
// slice, or once at its start or end.
func (r *reading) question(q *query, e *expressions) *question {
	from, to := e.from, e.to.Add(-r.step)
	switch q.asked {
	case atBegin:
		to = from
	case atEnd:
		to = e.to.Add(-time.Second) // exclude the end itself, which belongs to the next slice
		from = to
	}
	return &question{q.text(e), from, to, r.step}
}

// conclude adds notes on missing metrics, and sets the counts of the history.
func (r *reading) conclude() {
	seen := map[string]bool{}
	for _, q := range queries(true) {
		if q.without == "" || seen[q.metric] || r.answered[q.metric] {
			continue
		}
		seen[q.metric] = true
		r.note(q.metric + " is not there: " + q.without)
	}
	for _, metric := range sorted(r.unread) {
		r.note(fmt.Sprintf("%s could not be read at all times: %v", metric, r.unread[metric]))
	}
	if r.answered["kube_node_labels"] && r.labelled == 0 {
		r.note("kube_node_labels has no labels that say what a node is: set " + allowNodeLabels + " at kube-state-metrics")
	}
	if r.noRequests > 0 {
		r.note(fmt.Sprintf("up to %d pods at a time request no CPU: they are taken as they are now", r.noRequests))
	}
	r.note("DaemonSets are those of now: pods of theirs come and go with nodes")
	h := &r.out
	h.Reclaims = r.count("karpenter_nodeclaims_disrupted_total reclaimed", "karpenter_nodeclaims_disrupted_total")
	if h.Reclaims.Source == "" {
		if h.Reclaims = r.count("karpenter_interruption_received_messages_total"); h.Reclaims.Source != "" {
			r.note("spot interruptions are counted from karpenter_interruption_received_messages_total, which has those of other clusters of the account too where the queue is not of this one alone")
		}
	}
	h.Disruptions = r.disruptions()
	h.Evictions = r.count("apiserver_request_total")
	if h.Evictions.Source == "" {
		h.Evictions = r.count("karpenter_pods_eviction_requests_total")
	}
	if h.HasDollars = r.answered["karpenter_nodepools_cost_total"]; h.HasDollars {
		r.charge(r.to)
	}
}

// count returns the sum of the counters in the group name. source is the metric; the default is the
// name itself.
func (r *reading) count(name string, source ...string) Count {
	metric := append(source, name)[0]
	if !r.answered[metric] {
		return Count{}
	}
	c := Count{Source: metric}
	for key, x := range r.counters {
		if group, _, _ := strings.Cut(key, "\n"); group == name {
			c.N += int64(math.Round(x.sum))
		}
	}
	return c
}

// disruptions returns the number of nodes that Karpenter disrupted for each reason other than Spot
// interruptions.
func (r *reading) disruptions() (out []Disruption) {
	sums := map[string]float64{}
	for key, x := range r.counters {
		group, _, _ := strings.Cut(key, "\n")
		if reason, ok := strings.CutPrefix(group, disruptedFor); ok {
			sums[reason] += x.sum
		}
	}
	for reason, sum := range sums {
		if n := int64(math.Round(sum)); n > 0 {
			out = append(out, Disruption{reason, n})
		}
	}
	slices.SortFunc(out, Disruption.Compare)
	return out
}

// A counter is one series of a counter, which restarts at 0 when its process does.
type counter struct {
	value, sum float64
}

// add records a value. The first value of a series counts, unless before reports that the series
// may have had it before the history.
func (c *counter) add(v float64, before bool) {
	switch {
	case before:
	case v >= c.value:
		c.sum += v - c.value
	default:
		c.sum += v
	}
	c.value = v
}
