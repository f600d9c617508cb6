// Package policytest is the suite that every policy must pass, and the
// generator of snapshots that it is run on.
package policytest

import (
	"bytes"
	"encoding/gob"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// A Rule is one part of the suite.
type Rule string

// The rules, for those few policies that break one by design.
const (
	// Pure: the same arguments give the same plan, and stay as they are.
	Pure Rule = "pure"

	// Sound: the plan passes [Check].
	Sound Rule = "sound"

	// Leaves: nodes under notice are drained at once, by their deadline.
	Leaves Rule = "leaves under notice"

	// Timeless: a day later everything is decided alike.
	Timeless Rule = "a day later"

	// Closed: a market that is not offered changes nothing.
	Closed Rule = "a market never offered"

	// Aware: a policy that reads what changed decides as one that reads everything.
	Aware Rule = "reading what changed"
)

// Run checks the policies that build returns, all of one configuration, against
// every rule but those in without.
func Run(t *testing.T, build func() policy.Policy, without ...Rule) {
	for _, r := range [...]struct {
		rule  Rule
		check func(*rapid.T, func() policy.Policy)
	}{
		{Pure, pure}, {Sound, sound}, {Leaves, leaves}, {Timeless, timeless}, {Closed, closed}, {Aware, aware},
	} {
		if !slices.Contains(without, r.rule) {
			t.Run(string(r.rule), rapid.MakeCheck(func(t *rapid.T) { r.check(t, build) }))
		}
	}
	t.Run("empty", func(t *testing.T) { empty(t, build()) })
}

// empty has p decide for a pool of a cluster that has nothing else yet.
func empty(t *testing.T, p policy.Policy) {
	s, m, err := Parse("type b.4 4\nmarket z b.4 on-demand 0.20\nmarket z b.4 spot 0.06\npool web\n")
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := p.Decide(s, m)
	if err := Check(s, &plan); err != nil {
		t.Fatalf("%v\n%s", err, plan.Format(s))
	}
}

func draw(t *rapid.T) (*policy.Snapshot, policy.Memory) {
	s := Snapshot().Draw(t, "snapshot")
	return s, Memory(s).Draw(t, "memory")
}

func pure(t *rapid.T, build func() policy.Policy) {
	s, m := draw(t)
	s0, m0 := Clone(t, s), Clone(t, &m)
	p := build()
	plan, next := p.Decide(s, m)
	if s1 := Clone(t, s); !reflect.DeepEqual(s0, s1) {
		t.Fatalf("the policy changed its snapshot")
	}
	if m1 := Clone(t, &m); !reflect.DeepEqual(m0, m1) {
		t.Fatalf("the policy changed its memory:\n%+v\n%+v", m0, m1)
	}
	for _, again := range []policy.Policy{p, build()} {
		plan1, next1 := again.Decide(s0, *m0) // read back from a record
		if a, b := Clone(t, &plan), Clone(t, &plan1); !reflect.DeepEqual(a, b) {
			t.Fatalf("two plans for one snapshot:\n%+v\n%+v", a, b)
		}
		if a, b := Clone(t, &next), Clone(t, &next1); !reflect.DeepEqual(a, b) {
			t.Fatalf("two memories for one snapshot:\n%+v\n%+v", a, b)
		}
	}
	if next.Decisions != m.Decisions+1 {
		t.Fatalf("the memory counts %d decisions after %d", next.Decisions, m.Decisions)
	}
	if !slices.IsSortedFunc(next.Pools, func(a, b policy.PoolMemory) int {
		return bytes.Compare([]byte(a.Name),
			[]byte(b.Name))
	}) {
		t.Fatalf("the memory's pools are out of order: %+v", next.Pools)
	}
}

func sound(t *rapid.T, build func() policy.Policy) {
	s, m := draw(t)
	plan, _ := build().Decide(s, m)
	if err := Check(s, &plan); err != nil {
		t.Fatalf("%v\n%s", err, plan.Format(s))
	}
}

func leaves(t *rapid.T, build func() policy.Policy) {
	s, m := draw(t)
	plan, _ := build().Decide(s, m)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		others := n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs
		if n.ReclaimAt == 0 || n.Pool == policy.None || s.Pools[n.Pool].Mode == policy.ModeOff ||
			n.Phase != policy.NodeInitialized || others {
			continue
		}
		at := slices.IndexFunc(plan.Drains, func(d policy.Drain) bool { return d.Node == n.ID })
		if at < 0 {
			t.Fatalf("%s is under notice and is not drained:\n%s", n.Name, plan.Format(s))
		}
		if d := &plan.Drains[at]; len(d.After) > 0 || d.Deadline == 0 || d.Deadline > n.ReclaimAt {
			t.Fatalf("%s is taken at %v and its drain waits for %v until %v", n.Name, n.ReclaimAt, d.After, d.Deadline)
		}
	}
}

func timeless(t *rapid.T, build func() policy.Policy) {
	s, m := draw(t)
	plan, _ := build().Decide(s, m)
	s1, m1 := Clone(t, s), Clone(t, &m)
	later(reflect.ValueOf(s1).Elem(), 24*time.Hour)
	later(reflect.ValueOf(m1).Elem(), 24*time.Hour)
	plan1, _ := build().Decide(s1, *m1)
	later(reflect.ValueOf(&plan1).Elem(), -24*time.Hour)
	same(t, s, plan, plan1)
}

func closed(t *rapid.T, build func() policy.Policy) {
	s, m := draw(t)
	plan, _ := build().Decide(s, m)
	s1 := Clone(t, s)
	id := policy.MarketID(len(s1.Markets))
	s1.Markets = append(s1.Markets, policy.Market{
		ID: id, Name: "zzz/never/offered", Provider: "aws", Region: "region", Capacity: policy.Spot,
		OnDemand: policy.Dollar, Band: 0, PlacementScore: -1,
	})
	for i := range s1.Pools {
		s1.Pools[i].Markets = append(s1.Pools[i].Markets, id)
	}
	plan1, _ := build().Decide(s1, m)
	same(t, s, plan, plan1)
}

// same fails unless two plans are equal but for the text of their tokens.
func same(t *rapid.T, s *policy.Snapshot, before, after policy.Plan) {
	a, b := Clone(t, &before), Clone(t, &after)
	number(a)
	number(b)
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("before:\n%safter:\n%s\n%+v\n%+v", a.Format(s), b.Format(s), a, b)
	}
}

// number puts the position of a launch in place of its token.
func number(p *policy.Plan) {
	for i := range p.Launches {
		l := &p.Launches[i]
		for k := range p.Drains {
			for j, token := range p.Drains[k].After {
				if token == l.Token {
					p.Drains[k].After[j] = string(rune('a' + i))
				}
			}
		}
		l.Token = string(rune('a' + i))
	}
}

// Clone returns a copy of x that shares nothing with it, as it comes back from
// a record: empty lists are nil.
func Clone[T any](t interface{ Fatalf(string, ...any) }, x *T) *T {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(x); err != nil {
		t.Fatalf("encoding %T: %v", x, err)
	}
	y := new(T)
	if err := gob.NewDecoder(&b).Decode(y); err != nil {
		t.Fatalf("decoding %T: %v", x, err)
	}
	return y
}

// later adds d to every instant in v that is set.
func later(v reflect.Value, d time.Duration) {
	if !v.CanSet() {
		return // only its package reads it
	}
	if at, ok := v.Interface().(policy.Time); ok {
		if at != 0 {
			v.SetInt(int64(at.Add(d)))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			later(v.Field(i), d)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			later(v.Index(i), d)
		}
	}
}
