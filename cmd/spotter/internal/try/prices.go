package try

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	// typesMax is the maximum number of instance types in a request to AWS, the limit of its
	// filter.
	typesMax = 200

	// marketsMax is the maximum number of markets for which prices are drawn. Raising it makes runs
	// longer and leaves time for fewer seeds.
	marketsMax = 600
)

// A staged is a cluster with prices that is ready to be simulated.
type staged struct {
	file  string // file name of the scenario in reports
	text  []byte
	trace *trace.Trace
	bound *scenarios.BoundScenario

	// length is the length of the metered interval.
	length time.Duration

	// why is the reason why prices are not those of the account; empty if they are.
	why string

	seen *sight

	// taken is what is simulated: the cluster, or a part with one in times of its nodes.
	taken *capture.Captured
	times int
}

// prices describes the kind of the prices.
func (s *staged) prices() string { return s.bound.Trace.Prices() }

// scenario adds prices to the cluster: those of its account, or synthetic ones if these are
// unavailable.
func (t *trial) scenario(ctx context.Context, seen *sight) (*staged, error) {
	s := &staged{file: t.folder.scenario(), seen: seen, taken: seen.taken, times: 1}
	recorded, why := t.recorded(ctx, seen.taken)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("reading prices: %w", err)
	}
	if recorded != nil {
		s.trace = recorded
		err := s.bind()
		if err == nil {
			return s, nil
		}
		why = "the recorded ones do not cover the cluster: " + cli.FirstLine(err)
	}
	s.why = why
	end := seen.Snapshot.Now - seen.Snapshot.Now%policy.Time(day/time.Millisecond)
	drawn, err := seen.taken.Draw(1, marketsMax, end.Add(-week-day), end)
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("the cluster cannot be priced: %w", err),
			"capture it with `spotter capture --trace` and prices of your own")
	}
	s.trace = drawn
	return s, s.bind()
}

// sample limits the simulation to one in times of the nodes, with their pods. It selects the same
// share of each kind of nodes.
func (s *staged) sample(times int) error {
	nodes := slices.Clone(s.seen.Snapshot.Nodes)
	word := func(n *policy.Node) string {
		var b strings.Builder
		name, _ := madeBy(n)
		b.WriteString(name + "\x00")
		for _, key := range []string{karpv1.CapacityTypeLabelKey, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone} {
			value, _ := n.Label(key)
			b.WriteString(value + "\x00")
		}
		return b.String() + n.Name
	}
	nodes = slices.DeleteFunc(nodes, func(n policy.Node) bool { return s.seen.options.Apart[n.Name] != "" })
	slices.SortFunc(nodes, func(a, b policy.Node) int { return cmp.Compare(word(&a), word(&b)) })
	o := s.seen.options
	o.NodePools = slices.Clone(o.NodePools)
	for i := range o.NodePools {
		o.NodePools[i] = *partOf(&o.NodePools[i], times)
	}
	o.Apart = maps.Clone(o.Apart)
	for i := range nodes {
		if i%times != 0 {
			o.Apart[nodes[i].Name] = fmt.Sprintf("since one in %d is simulated", times)
		}
	}
	taken, err := capture.Take(s.seen.Snapshot, o)
	if err != nil {
		return fmt.Errorf("taking one in %d nodes: %w", times, err)
	}
	s.taken, s.times = taken, times
	return s.bind()
}

// partOf returns a NodePool with one in times of its limits and of the nodes in its disruption
// budgets, both rounded up.
func partOf(p *karpv1.NodePool, times int) *karpv1.NodePool {
	p = p.DeepCopy()
	for name, q := range p.Spec.Limits {
		p.Spec.Limits[name] = *resource.NewQuantity((q.Value()+int64(times)-1)/int64(times), q.Format)
	}
	for i := range p.Spec.Disruption.Budgets {
		b := &p.Spec.Disruption.Budgets[i]
		if n, err := strconv.Atoi(b.Nodes); err == nil {
			b.Nodes = strconv.Itoa((n + times - 1) / times)
		}
	}
	return p
}

// warmUp is the length of the warm-up before the metered interval.
const warmUp = day

// bind binds the scenario to the last part of the prices.
func (s *staged) bind() error {
	const minute = policy.Time(time.Minute / time.Millisecond)
	from := (s.trace.From + minute - 1) / minute * minute
	known := s.trace.To.Sub(from).Truncate(time.Minute)
	warmUp := min(warmUp, known/4)
	length := min(week, known-warmUp)
	if length < time.Hour {
		return cli.Invalid(fmt.Errorf("the prices cover %v, and a run needs an hour", known),
			"record more of them with `spotter trace record`")
	}
	s.length = length.Truncate(time.Minute)
	r := capture.Run{
		Start: s.trace.To.Add(-length) / minute * minute, Duration: s.length, WarmUp: warmUp.Truncate(time.Minute),
		Trace: filepath.Base(pricesFile),
		Head: append([]string{fmt.Sprintf("What the cluster at %s held at %v.", s.seen.server,
			s.seen.Snapshot.Now.Std().Format(time.RFC3339))}, s.seen.Missing...),
	}
	for _, a := range s.assumed() {
		r.Head = append(r.Head, "Assumed: "+a+".")
	}
	for _, m := range s.seen.remarks {
		r.Head = append(r.Head, "Noted: "+m)
	}
	text, err := s.taken.Write(r)
	if err != nil {
		return err
	}
	sc, err := scenarios.Parse(s.file, text)
	if err != nil {
		return fmt.Errorf("what was captured is no scenario: %w", err)
	}
	if s.bound, err = scenarios.Bind(sc, s.trace, scenarios.BindOptions{}); err != nil {
		return cli.Invalid(fmt.Errorf("the cluster cannot be run on these prices: %w", err),
			"capture it with `spotter capture --trace` and prices of your own")
	}
	s.text = text
	return nil
}

// recorded returns the prices that AWS published in the last eight days for the markets of the
// pools, or those of Azure for a cluster without nodes on AWS. Without prices it returns nil and
// the reason.
func (t *trial) recorded(ctx context.Context, taken *capture.Captured) (*trace.Trace, string) {
	regions := taken.Regions(catalog.AWS)
	if at := taken.Regions(catalog.Azure); len(regions) == 0 && len(at) > 0 {
		return t.azurePrices(ctx, taken, at)
	}
	if len(regions) == 0 {
		return nil, "prices are read from AWS and Azure alone"
	}
	types, err := taken.Types(catalog.AWS, typesMax)
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	dir, err := os.MkdirTemp("", "spotter-try-")
	if err != nil {
		return nil, "they could not be stored: " + cli.FirstLine(err)
	}
	defer os.RemoveAll(dir)
	t.say("asking AWS for the Spot prices of the last week, of %d instance types in %s", len(types),
		cli.FirstOf(regions, 3))
	c := aws.DefaultConfig()
	c.Dir = filepath.Join(dir, "prices")
	c.Regions, c.Types, c.Days, c.ZoneNames = regions, types, int((week+day)/day), true
	c.OnDemand, c.Scores = false, false
	wait := access.AWSWait()
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	recorder, err := aws.New(c)
	if err == nil {
		_, err = recorder.Record(ctx)
	}
	if err != nil {
		return nil, access.AWSRefusal(err, wait)
	}
	tr, err := trace.Open(c.Dir, trace.ReadOptions{})
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	if tr.To.Sub(tr.From) < 2*day {
		return nil, "AWS has less than two days of them"
	}
	tr.Name, tr.About = pricesFile, "the Spot prices of the last week, of the account of the user"
	return tr, ""
}
