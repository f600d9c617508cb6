// Package bill sums up what nodes cost from an audit log of the API server and a list
// of prices. It is the second opinion on what Spotter reports, and so uses nothing of
// Spotter: neither its meter, nor what it reads the cluster by.
package bill

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A Price is in millionths of a dollar for an hour, from an instant on, in milliseconds
// since 1970.
type Price struct {
	At    int64 `json:"at"`
	Price int64 `json:"price"`
}

// Prices are those of markets, named as "instance-type/zone/capacity-type", ascending
// by time.
type Prices map[string][]Price

// The capacity types of Karpenter.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
)

// AtLeast returns the prices of an auction that sells nothing for less.
func AtLeast(prices []Price, least int64) []Price {
	all := slices.Clone(prices)
	for i := range all {
		all[i].Price = max(all[i].Price, least)
	}
	return all
}

// A Life is one node's, from the creation of its NodeClaim to the end of its Node or of
// its NodeClaim, whichever is first. Times are in milliseconds since 1970.
type Life struct {
	Claim, Node, NodePool string

	// Type, Zone and Capacity are its market; empty until it is launched.
	Type, Zone, Capacity string

	// Bid is the most that an hour of it costs, 0 where there is no bound: who wins an
	// auction pays its price, which may be above the bid while a machine is still to go.
	Bid int64

	// Made is when the NodeClaim was created, to the second as the API server has it,
	// Sold when its market was first written to it, and Ended when it was gone; 0 while
	// that has not happened.
	Made, Sold, Ended int64
}

// Market returns the market's name.
func (l *Life) Market() string { return l.Type + "/" + l.Zone + "/" + l.Capacity }

// hourly is what prices are for, in milliseconds.
const hourly = int64(time.Hour / time.Millisecond)

// An Amount is in millionths of a dollar for an hour, times milliseconds: nothing is
// rounded before all is summed up.
type Amount int64

// Micros returns the amount of n millionths of a dollar.
func Micros(n int64) Amount { return Amount(n * hourly) }

// Dollars returns the amount in dollars, of a scenario that runs k times as fast.
func (a Amount) Dollars(k int64) float64 { return float64(int64(a)*k) / float64(hourly) / 1e6 }

// least is what a node is charged for at least, in milliseconds: AWS bills by the second
// and for a minute at least.
const least = int64(time.Minute / time.Millisecond)

// Cost returns what the life costs within a window, and what it would have cost on
// demand. One that was never sold costs nothing.
func (p Prices) Cost(l *Life, from, to int64) (paid, onDemand Amount, err error) {
	from = max(from, l.Made)
	if l.Ended != 0 {
		to = min(to, max(l.Ended, l.Made+least))
	}
	if l.Sold == 0 || from >= to {
		return 0, 0, nil
	}
	return p.Charge(l, from, to)
}

// Charge returns what a node of the life's market costs from one instant to another,
// whether it is there or not, and what it would on demand.
func (p Prices) Charge(l *Life, from, to int64) (paid, onDemand Amount, err error) {
	most := l.Bid
	if most == 0 {
		most = math.MaxInt64
	}
	if paid, err = p.sum(l.Market(), from, to, most); err != nil {
		return 0, 0, err
	}
	onDemand, err = p.sum(l.Type+"/"+l.Zone+"/"+OnDemand, from, to, math.MaxInt64)
	return paid, onDemand, err
}

// sum returns the integral of a market's price, or of the most that is paid where that is
// less. The first price holds before its time.
func (p Prices) sum(market string, from, to, most int64) (Amount, error) {
	prices := p[market]
	if len(prices) == 0 {
		return 0, fmt.Errorf("no price is known of %s", market)
	}
	total := Amount(0)
	for i := range prices {
		begin, end := prices[i].At, to
		if i == 0 {
			begin = from
		}
		if i+1 < len(prices) {
			end = min(end, prices[i+1].At)
		}
		if begin = max(begin, from); begin < end {
			total += Amount(min(prices[i].Price, most) * (end - begin))
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

// object is what matters of a NodeClaim and of a Node.
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

// A status is that of a NodeClaim. The answer to a deletion has a word in its place.
type status struct{ NodeName string }

// UnmarshalJSON reads what is an object.
func (s *status) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain status
	return json.Unmarshal(text, (*plain)(s))
}

// gone reports whether nothing is left of an object after a request that was answered
// so.
func (o *object) gone(verb string) bool {
	held := o.Metadata.DeletionTimestamp != nil && len(o.Metadata.Finalizers) > 0
	return !held && (verb == "delete" || o.Metadata.DeletionTimestamp != nil)
}

// Lives reads an audit log that has the answers to all writes of NodeClaims and of
// Nodes. They come in the order in which they were made.
func Lives(log io.Reader) ([]*Life, error) {
	b := book{now: map[string]*Life{}, nodes: map[string]int64{}}
	for r := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			b.close()
			return b.all, nil // what has no end yet is still being written
		}
		if err != nil {
			return nil, err
		}
		if err := b.read(line); err != nil {
			return nil, fmt.Errorf("audit log: %w in %.200s", err, line)
		}
	}
}

// A book is what was read so far: the claims that there are by name, and when nodes
// ended.
type book struct {
	all   []*Life
	now   map[string]*Life
	nodes map[string]int64
}

func (b *book) read(line []byte) error {
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
		name = o.Metadata.Name // one that the server names
	}
	if claims {
		b.claim(&e, &o, name)
	} else if o.gone(e.Verb) {
		b.nodes[name] = e.StageTimestamp.UnixMilli()
	}
	return nil
}

func (b *book) claim(e *event, o *object, name string) {
	l := b.now[name]
	if l == nil {
		if e.Verb != "create" {
			return
		}
		l = &Life{Claim: name, NodePool: o.Metadata.Labels["karpenter.sh/nodepool"],
			Made: o.Metadata.CreationTimestamp.UnixMilli()}
		b.now[name] = l
		b.all = append(b.all, l)
	}
	if o.Status.NodeName != "" {
		l.Node = o.Status.NodeName
	}
	labels := o.Metadata.Labels
	l.Type = first(l.Type, labels["node.kubernetes.io/instance-type"])
	l.Zone = first(l.Zone, labels["topology.kubernetes.io/zone"])
	l.Capacity = first(l.Capacity, labels["karpenter.sh/capacity-type"])
	if l.Sold == 0 && l.Type != "" && l.Zone != "" && l.Capacity != "" {
		l.Sold = e.StageTimestamp.UnixMilli()
	}
	if o.gone(e.Verb) {
		l.Ended = e.StageTimestamp.UnixMilli()
		delete(b.now, name)
	}
}

// close ends the lives of which the node is gone.
func (b *book) close() {
	for _, l := range b.all {
		if end := b.nodes[l.Node]; end != 0 && (l.Ended == 0 || end < l.Ended) {
			l.Ended = end
		}
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Pool reports whether the life is one of the two NodePools that Spotter makes for a
// CapacityPool.
func (l *Life) Pool(name string) bool {
	end, ok := strings.CutPrefix(l.NodePool, name+"-")
	return ok && (end == "spot" || end == "od")
}
