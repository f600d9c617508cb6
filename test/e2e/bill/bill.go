// Package bill computes the cost of nodes from an audit log of the API server and a list of prices.
// It shares no code with Spotter, since tests compare Spotter's reports with it. Times are Unix
// milliseconds.
package bill

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A Price is the price of a market from an instant on.
type Price struct {
	From         int64 `json:"at"`
	MicroDollars int64 `json:"price"` // millionths of a dollar per hour
}

// Prices maps a market, named as "instance-type/zone/capacity-type", to its prices, ascending by
// time. The first price holds before its time too.
type Prices map[string][]Price

// The capacity types of Karpenter.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
)

// WithReserve returns the prices of an auction that sells nothing below reserve, in millionths of a
// dollar per hour.
func WithReserve(prices []Price, reserve int64) []Price {
	all := slices.Clone(prices)
	for i := range all {
		all[i].MicroDollars = max(all[i].MicroDollars, reserve)
	}
	return all
}

// A Life is the life of a node, from the creation of its NodeClaim to the end of its Node or of its
// NodeClaim, whichever is first.
type Life struct {
	Claim, Node, NodePool string // names

	// Type, Zone and Capacity are its market; empty until it is launched.
	Type, Zone, Capacity string

	// Bid caps the price per hour, in millionths of a dollar; 0 means no cap. After the price has
	// exceeded the bid, the node is charged the bid until it is taken.
	Bid int64

	// ClaimCreated is the time at which the NodeClaim was created, to the second as the API server
	// has it. Launched is the time at which its market was first written to it, and Ended that of
	// the end. They are 0 before that.
	ClaimCreated, Launched, Ended int64
}

// Market returns the market's name.
func (l *Life) Market() string { return l.Type + "/" + l.Zone + "/" + l.Capacity }

const msPerHour = int64(time.Hour / time.Millisecond)

// An Amount is in millionths of a dollar per hour, times milliseconds, so that sums are not rounded.
// Divided by msPerHour it is in millionths of a dollar.
type Amount int64

// Micros returns the amount of n millionths of a dollar.
func Micros(n int64) Amount { return Amount(n * msPerHour) }

// DollarsAt returns the amount in dollars, for a cluster whose clock runs the given number of times
// as fast as that of the log.
func (a Amount) DollarsAt(speed int64) float64 {
	return float64(int64(a)*speed) / float64(msPerHour) / 1e6
}

// minimumBilledMS is the minimum time that a node is charged for: AWS bills at least a minute.
const minimumBilledMS = int64(time.Minute / time.Millisecond)

// Cost returns the cost of the life within a window, and its cost at on-demand prices. A node that
// was never launched costs nothing.
func (p Prices) Cost(l *Life, from, to int64) (paid, onDemand Amount, err error) {
	from = max(from, l.ClaimCreated)
	if l.Ended != 0 {
		to = min(to, max(l.Ended, l.ClaimCreated+minimumBilledMS))
	}
	if l.Launched == 0 || from >= to {
		return 0, 0, nil
	}
	return p.Charge(l, from, to)
}

// Charge returns the cost of a node of the life's market in a period, capped by the bid, and its cost
// at on-demand prices. It ignores the times of the life.
func (p Prices) Charge(l *Life, from, to int64) (paid, onDemand Amount, err error) {
	limit := l.Bid
	if limit == 0 {
		limit = math.MaxInt64
	}
	if paid, err = p.sum(l.Market(), from, to, limit); err != nil {
		return 0, 0, err
	}
	onDemand, err = p.sum(l.Type+"/"+l.Zone+"/"+OnDemand, from, to, math.MaxInt64)
	return paid, onDemand, err
}

// sum returns the integral of the lower of limit and a market's price.
func (p Prices) sum(market string, from, to, limit int64) (Amount, error) {
	prices := p[market]
	if len(prices) == 0 {
		return 0, fmt.Errorf("no price is known of %s", market)
	}
	total := Amount(0)
	for i := range prices {
		begin, end := prices[i].From, to
		if i == 0 {
			begin = from
		}
		if i+1 < len(prices) {
			end = min(end, prices[i+1].From)
		}
		if begin = max(begin, from); begin < end {
			total += Amount(min(prices[i].MicroDollars, limit) * (end - begin))
		}
	}
	return total, nil
}

// event is a line of the audit log.
type event struct {
	Verb           string
	StageTimestamp time.Time
	ObjectRef      struct{ APIGroup, Resource, Subresource, Name string }
	ResponseStatus struct{ Code int }
	ResponseObject json.RawMessage
}

// object has the fields of a NodeClaim or a Node that are read.
type object struct {
	Kind     string
	Metadata struct {
		Name              string
		CreationTimestamp time.Time
		DeletionTimestamp *time.Time
		Finalizers        []string
		Labels            map[string]string
	}
	Status status
}

// A status is the status of a NodeClaim. In the response to a deletion, it is a string.
type status struct{ NodeName string }

// UnmarshalJSON ignores a status that is not an object.
func (s *status) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain status
	return json.Unmarshal(text, (*plain)(s))
}

// gone reports whether the object no longer existed after a request with this response.
func (o *object) gone(verb string) bool {
	held := o.Metadata.DeletionTimestamp != nil && len(o.Metadata.Finalizers) > 0
	return !held && (verb == "delete" || o.Metadata.DeletionTimestamp != nil)
}

// Lives reads an audit log that has the responses to all writes of NodeClaims and Nodes. The lives
// are in the order of their creation. Names of Nodes must be unique over time.
func Lives(log io.Reader) ([]*Life, error) {
	r := reader{open: map[string]*Life{}, nodeEnded: map[string]int64{}}
	for lines := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without a newline is still being written
			r.close()
			return r.lives, nil
		}
		if err != nil {
			return nil, err
		}
		if err := r.read(line); err != nil {
			return nil, fmt.Errorf("audit log: %w in %.200s", err, line)
		}
	}
}

// A reader contains what was read so far.
type reader struct {
	lives     []*Life
	open      map[string]*Life // those whose NodeClaim exists, by its name
	nodeEnded map[string]int64 // when Nodes ended, by name
}

// read reads a line.
func (r *reader) read(line []byte) error {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	claims := e.ObjectRef.APIGroup == "karpenter.sh" && e.ObjectRef.Resource == "nodeclaims"
	nodes := e.ObjectRef.APIGroup == "" && e.ObjectRef.Resource == "nodes"
	writes := slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb)
	if !claims && !nodes || !writes || e.ResponseStatus.Code/100 != 2 || len(e.ResponseObject) == 0 {
		return nil
	}
	var o object
	if err := json.Unmarshal(e.ResponseObject, &o); err != nil {
		return err
	}
	name := e.ObjectRef.Name
	if name == "" {
		name = o.Metadata.Name // a name that the server generated
	}
	if claims {
		r.claim(&e, &o, name)
	} else if o.gone(e.Verb) {
		r.nodeEnded[name] = e.StageTimestamp.UnixMilli()
	}
	return nil
}

// claim creates, updates or ends the life of a NodeClaim.
func (r *reader) claim(e *event, o *object, name string) {
	l := r.open[name]
	if l == nil {
		if e.Verb != "create" {
			return
		}
		l = &Life{Claim: name, NodePool: o.Metadata.Labels["karpenter.sh/nodepool"],
			ClaimCreated: o.Metadata.CreationTimestamp.UnixMilli()}
		r.open[name] = l
		r.lives = append(r.lives, l)
	}
	if o.Status.NodeName != "" {
		l.Node = o.Status.NodeName
	}
	labels := o.Metadata.Labels
	l.Type = cmp.Or(l.Type, labels["node.kubernetes.io/instance-type"])
	l.Zone = cmp.Or(l.Zone, labels["topology.kubernetes.io/zone"])
	l.Capacity = cmp.Or(l.Capacity, labels["karpenter.sh/capacity-type"])
	if l.Launched == 0 && l.Type != "" && l.Zone != "" && l.Capacity != "" {
		l.Launched = e.StageTimestamp.UnixMilli()
	}
	if o.gone(e.Verb) {
		l.Ended = e.StageTimestamp.UnixMilli()
		delete(r.open, name)
	}
}

// close ends the lives of nodes that ended before their NodeClaims.
func (r *reader) close() {
	for _, l := range r.lives {
		if end := r.nodeEnded[l.Node]; end != 0 && (l.Ended == 0 || end < l.Ended) {
			l.Ended = end
		}
	}
}

// OfPool reports whether the node is of one of the two NodePools that Spotter creates for a
// CapacityPool.
func (l *Life) OfPool(name string) bool {
	end, ok := strings.CutPrefix(l.NodePool, name+"-")
	return ok && (end == "spot" || end == "od")
}
