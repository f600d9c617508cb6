package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// Parse reads the description of a snapshot, and of the memory that goes with
// it, in the language of [Cases].
func Parse(text string) (*policy.Snapshot, policy.Memory, error) {
	p := parser{s: &policy.Snapshot{Now: Epoch.Add(24 * time.Hour)}}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := p.line(words); err != nil {
			return nil, policy.Memory{}, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
	}
	cover := billing.CoverageOf(p.s)
	for i := range p.s.Commitments {
		p.s.Commitments[i].Unused = cover.Unused(i)
	}
	return p.s, p.m, p.s.Validate()
}

// reserved reads a commitment for instances of one type.
func (p *parser) reserved(w []string) error {
	n, err := strconv.ParseInt(w[2], 10, 32)
	if err != nil {
		return err
	}
	c := policy.Commitment{Name: w[0], Type: w[1], Amount: n, Fee: policy.NoPrice}
	for _, o := range options(w[3:]) {
		if o.key != "zone" {
			return fmt.Errorf("unknown option %q", o.key)
		}
		c.Zone = o.value
	}
	p.s.Commitments = append(p.s.Commitments, c)
	return nil
}

// plan reads a savings plan.
func (p *parser) plan(w []string) error {
	hourly, err := strconv.ParseFloat(w[1], 64)
	if err != nil {
		return err
	}
	p.s.Commitments = append(p.s.Commitments, policy.Commitment{Name: w[0], Unit: policy.CoverDollars,
		Amount: int64(policy.Dollars(hourly)), Fee: policy.NoPrice})
	return nil
}

// A parser builds a snapshot. Tables are filled in the order of the lines, so that
// names must be written in ascending order.
type parser struct {
	s *policy.Snapshot
	m policy.Memory
}

// line reads one line that is neither empty nor a comment.
func (p *parser) line(words []string) error {
	kinds := map[string]struct {
		least int
		read  func([]string) error
	}{
		"type": {2, p.instanceType}, "market": {4, p.market}, "pool": {1, p.pool}, "app": {2, p.app},
		"node": {5, p.node}, "pod": {2, p.pod}, "memory": {1, p.memory},
		"prices": {1, p.prices}, "reserved": {3, p.reserved}, "plan": {2, p.plan},
		"stale": {2, p.stale},
	}
	k, ok := kinds[words[0]]
	if !ok {
		return fmt.Errorf("unknown word %q", words[0])
	}
	if len(words) <= k.least {
		return fmt.Errorf("too few words")
	}
	return k.read(words[1:])
}

// count reads a number.
func count(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
}

// memory reads what is remembered of a pool.
func (p *parser) memory(w []string) error {
	m := p.m.Pool(w[0])
	var err error
	for _, o := range options(w[1:]) {
		switch o.key {
		case "moved":
			m.Moved, err = p.ago(o.value)
		case "wave":
			parts := strings.SplitN(o.value, "/", 3) // DURATION/NODE+NODE/TOKEN+TOKEN
			if len(parts) < 3 {
				return fmt.Errorf("wave %q is not DURATION/NODES/TOKENS", o.value)
			}
			m.Wave = policy.Wave{Nodes: strings.Split(parts[1], "+"), Tokens: strings.Split(parts[2], "+")}
			m.Wave.Since, err = p.ago(parts[0])
		case "batched":
			m.Batched, err = p.ago(o.value)
		case "packed":
			m.Packed, err = p.ago(o.value)
		case "backoff":
			m.Backoff = append(m.Backoff, policy.Backoff{Node: o.value, Until: p.s.Now + 1, Tries: 1})
		case "steered":
			m.Steered, err = p.ago(o.value)
		case "selected":
			m.Selected = marketNames(o.value)
		case "spot-only":
			m.SpotOnly = true
		case "kept":
			m.Kept = marketNames(o.value)
		default:
			err = fmt.Errorf("unknown option %q", o.key)
		}
		if err != nil {
			return err
		}
	}
	p.m = p.m.With(m)
	return nil
}

// marketNames returns the names of markets written as ZONE/TYPE/CAPACITY,
// ascending.
func marketNames(list string) []string {
	var names []string
	for _, m := range strings.Split(list, ",") {
		names = append(names, "aws/region/"+m)
	}
	slices.Sort(names)
	return names
}

// prices reads how long ago prices were last read.
func (p *parser) prices(w []string) error {
	at, err := p.ago(w[0])
	p.s.Sources = append(p.s.Sources, policy.Source{Name: "prices", Prices: true, At: at})
	return err
}

// stale reads which kind of object nothing was heard of for long.
func (p *parser) stale(w []string) error {
	at, err := p.ago(w[1])
	p.s.Sources = append(p.s.Sources, policy.Source{Name: w[0], At: at, Stale: true})
	return err
}

// typeOf returns the instance type called name.
func (p *parser) typeOf(name string) (policy.TypeID, error) {
	i := slices.IndexFunc(p.s.Types, func(t policy.InstanceType) bool { return t.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no type %q", name)
	}
	return policy.TypeID(i), nil
}

// ago returns the instant that is a duration before now.
func (p *parser) ago(text string) (policy.Time, error) {
	d, err := time.ParseDuration(text)
	return p.s.Now.Add(-d), err
}

// An option is KEY=VALUE, or KEY alone.
type option struct{ key, value string }

func options(words []string) []option {
	var list []option
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		list = append(list, option{key, value})
	}
	return list
}

// check returns an error if the value is not one of the given values.
func (o option) check(values ...string) error {
	if !slices.Contains(values, o.value) {
		return fmt.Errorf("%s: %q is unknown", o.key, o.value)
	}
	return nil
}

// named returns the value from first to last whose name is text.
func named[T interface {
	~uint8
	String() string
}](text string, first, last T) (T, error) {
	for v := first; v <= last; v++ {
		if v.String() == text {
			return v, nil
		}
	}
	return first, fmt.Errorf("%q is unknown", text)
}
