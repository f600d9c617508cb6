package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// typesMax is after how many of the cheapest instance types claims are cut in these
// comparisons. (Karpenter's is 600, and 60 with AWS; a few make the cut happen.)
const typesMax = 5

// An Outcome is what became of the pods.
type Outcome struct {
	Claims   []Claim
	Nodes    map[int]string // by pod, existing nodes
	Unplaced []int

	// Ties is how often domains were equal. It is not compared. untied says that some
	// of these were not.
	Ties   int
	untied bool
}

// A Claim is a node to be bought. Types are those left after the cut, Prices their
// cheapest offerings, in order.
type Claim struct {
	Pool     string
	Pods     []int
	Types    []string
	Prices   []int64
	Cheapest int64

	// Zones and domains are the required values of labels. They are not compared.
	Zones   []string
	domains map[string][]string
}

// A guide chooses among equal domains so that pods come where an outcome of Karpenter
// has them. How it chooses where that does not say is its way.
type guide struct {
	o     *Outcome
	way   uint64
	calls int
}

// waysMax is how many ways of a guide are tried for one outcome.
const waysMax = 16

// choice returns a position in ties for a pod: of the domains that its claim has in the
// outcome the first, or in other ways now one and now the other.
func (g *guide) choice(pod int, key string, ties []string) int {
	g.calls++
	turn := 0
	if g.way > 0 {
		turn = int(rand.New(rand.NewPCG(g.way, uint64(g.calls))).Uint64() >> 40)
	}
	for i := range g.o.Claims {
		c := &g.o.Claims[i]
		if !slices.Contains(c.Pods, pod) {
			continue
		}
		var at []int
		for k, d := range ties {
			if slices.Contains(c.domains[key], d) {
				at = append(at, k)
			}
		}
		if len(at) > 0 {
			return at[turn%len(at)]
		}
	}
	return turn % len(ties)
}

func (o *Outcome) sort() {
	slices.Sort(o.Unplaced)
	slices.SortFunc(o.Claims, func(a, b Claim) int { return cmp.Compare(a.Pods[0], b.Pods[0]) })
}

// cost returns what the claims cost an hour at their cheapest offerings.
func (o *Outcome) cost() (sum int64) {
	for _, c := range o.Claims {
		sum += c.Cheapest
	}
	return sum
}

// differs says in what a and b differ; empty where they are equal. Of types of one
// price at the cut either may be left.
func differs(a, b *Outcome) string {
	if !slices.Equal(a.Unplaced, b.Unplaced) {
		return "unplaced"
	}
	if len(a.Nodes) != len(b.Nodes) {
		return "existing nodes"
	}
	for p, n := range a.Nodes {
		if b.Nodes[p] != n {
			return "existing nodes"
		}
	}
	if len(a.Claims) != len(b.Claims) {
		return "number of claims"
	}
	for i := range a.Claims {
		x, y := &a.Claims[i], &b.Claims[i]
		switch {
		case !slices.Equal(x.Pods, y.Pods):
			return "pods of claims"
		case x.Pool != y.Pool:
			return "pool"
		case x.Cheapest != y.Cheapest:
			return "cheapest price"
		case !slices.Equal(x.Prices, y.Prices):
			return "prices of types"
		case len(x.Types) < typesMax && !slices.Equal(x.Types, y.Types):
			return "types"
		}
	}
	return ""
}

// String lists the outcome, so that two outcomes can be read side by side.
func (o *Outcome) String() string {
	var b strings.Builder
	for _, c := range o.Claims {
		fmt.Fprintf(&b, "claim %s %v pods=%v zones=%v types=%v prices=%v\n", c.Pool, c.Cheapest, c.Pods, c.Zones, c.Types,
			c.Prices)
	}
	var pods []int
	for p := range o.Nodes {
		pods = append(pods, p)
	}
	slices.Sort(pods)
	for _, p := range pods {
		fmt.Fprintf(&b, "pod %d on %s\n", p, o.Nodes[p])
	}
	fmt.Fprintf(&b, "unplaced %v\n", o.Unplaced)
	return b.String()
}
