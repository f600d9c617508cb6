package script

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

func read(t *testing.T, text string) *Script {
	t.Helper()
	s, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A call is a query to a script and its answer.
type call struct {
	ask  string // spot or od
	kind string
	zone string
	want policy.Money
	err  error // nil, ErrNoPrice, ErrExhausted or the text of an injected one
}

func play(t *testing.T, s *Script, calls []call) {
	t.Helper()
	for i, c := range calls {
		var got policy.Money
		var err error
		if c.ask == "spot" {
			var q Quote
			q, err = s.SpotPrice(c.kind, c.zone)
			got = q.Spot
		} else {
			got, err = s.OnDemandPrice(c.kind, c.zone)
		}
		injected := (*InjectedError)(nil)
		if errors.As(c.err, &injected) {
			fault := (*InjectedError)(nil)
			if !errors.As(err, &fault) || fault.Text != injected.Text {
				t.Errorf("call %d: %v, want the fault %q", i, err, injected.Text)
			}
			continue
		}
		if !errors.Is(err, c.err) || got != c.want {
			t.Errorf("call %d, %+v: %v, %v", i, c, got, err)
		}
	}
}

const cent = policy.Dollar / 100

// The exact market goes before its type anywhere, that before any type in its
// zone, and that before all others.
func TestPrecedence(t *testing.T) {
	s := read(t, `{"series":{
		"*:*":[{"current_price":0.04}], "*:z1":[{"current_price":0.03}], "*:z2":[{"current_price":0.05}],
		"a:*":[{"current_price":0.02}], "a:z1":[{"current_price":0.01}]}}`)
	play(t, s, []call{
		{"spot", "a", "z1", 1 * cent, nil}, {"spot", "a", "z2", 2 * cent, nil},
		{"spot", "b", "z1", 3 * cent, nil}, {"spot", "b", "z2", 5 * cent, nil}, {"spot", "b", "z3", 4 * cent, nil},
	})
	if key, n := s.Steps(Key{"b", "z1"}); key != (Key{"*", "z1"}) || n != 1 {
		t.Errorf("%v has %d steps", key, n)
	}
	if keys := s.Keys(); !reflect.DeepEqual(keys, []Key{{"*", "*"}, {"*", "z1"}, {"*", "z2"}, {"a", "*"},
		{"a", "z1"}}) || keys[1].Exact() || !keys[4].Exact() {
		t.Errorf("%v", keys)
	}
}

// A query for a Spot price advances by a step. One for an on-demand price reads the next step and
// does not advance. Each key has its own position, which markets share.
func TestCursors(t *testing.T) {
	s := read(t, `{"default":{"current_price":0.5,"on_demand_price":1},"series":{
		"a:z":[{"current_price":0.01,"on_demand_price":0.1},{"current_price":0.02,"on_demand_price":0.2}],
		"*:z":[{"current_price":0.03},{"current_price":0.04},{"current_price":0.05}]}}`)
	play(t, s, []call{
		{"od", "a", "z", 10 * cent, nil}, {"od", "a", "z", 10 * cent, nil},
		{"spot", "a", "z", 1 * cent, nil}, {"od", "a", "z", 20 * cent, nil},
		{"spot", "b", "z", 3 * cent, nil}, {"spot", "c", "z", 4 * cent, nil}, {"spot", "b", "z", 5 * cent, nil},
		{"spot", "a", "z", 2 * cent, nil},
		// Past the end the last step is repeated, which is the default.
		{"spot", "a", "z", 2 * cent, nil}, {"od", "a", "z", 20 * cent, nil}, {"spot", "c", "z", 5 * cent, nil},
		// The default has no place in anything.
		{"spot", "a", "elsewhere", 50 * cent, nil}, {"spot", "a", "elsewhere", 50 * cent, nil},
		{"od", "a", "elsewhere", 100 * cent, nil},
	})
}

func TestExhaustion(t *testing.T) {
	s := read(t, `{"repeat_last":false,"series":{"a:z":[{"current_price":0.01},{"current_price":0.02}]}}`)
	play(t, s, []call{
		{"spot", "a", "z", 1 * cent, nil}, {"spot", "a", "z", 2 * cent, nil},
		{"spot", "a", "z", 0, ErrExhausted}, {"od", "a", "z", 0, ErrExhausted}, {"spot", "a", "z", 0, ErrExhausted},
		{"spot", "b", "z", 0, ErrNoPrice},
	})
	s = read(t, `{"repeat_last":true,"series":{"a:z":[{"error":"down"}]}}`)
	play(t, s, []call{{"spot", "a", "z", 0, &InjectedError{"down"}}, {"spot", "a", "z", 0, &InjectedError{"down"}}})
}

// Both calls return a fault, and the one that advances moves past it.
func TestInjectedErrors(t *testing.T) {
	s := read(t, `{"default":{"current_price":0.5,"error":"all down"},"series":{
		"a:z":[{"current_price":0.01,"error":""},{"error":"throttled"},{"current_price":0.02,"error":""},{"current_price":0.03}]}}`)
	play(t, s, []call{
		{"spot", "a", "z", 1 * cent, nil},
		{"od", "a", "z", 0, &InjectedError{"throttled"}}, {"od", "a", "z", 0, &InjectedError{"throttled"}},
		{"spot", "a", "z", 0, &InjectedError{"throttled"}}, {"spot", "a", "z", 2 * cent, nil},
		{"spot", "a", "z", 0, &InjectedError{"all down"}}, // the step leaves the error to the default
		{"spot", "b", "z", 0, &InjectedError{"all down"}},
	})
}

// What a step leaves out is the default's, field by field.
func TestOverrides(t *testing.T) {
	s := read(t, `{"default":{"current_price":0.5,"on_demand_price":1,"price_history":[0.1,0.2],"volatility":0.3},
		"series":{"a:z":[{"current_price":0},{"price_history":[],"volatility":0},{"on_demand_price":2,"price_history":[0.9]}]}}`)
	want := []Quote{
		{Spot: 0, OnDemand: 100 * cent, History: []policy.Money{10 * cent, 20 * cent}, Volatility: 0.3},
		{Spot: 50 * cent, OnDemand: 100 * cent, Volatility: 0},
		{Spot: 50 * cent, OnDemand: 200 * cent, History: []policy.Money{90 * cent}, Volatility: 0.3},
	}
	for i, w := range want {
		if got, err := s.SpotPrice("a", "z"); err != nil || !reflect.DeepEqual(got, w) {
			t.Errorf("step %d: %+v, %v; want %+v", i, got, err, w)
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"nothing":             {`{}`, "default, series or both"},
		"no series":           {`{"series":{}}`, "default, series or both"},
		"no steps":            {`{"series":{"a:z":[]}}`, `series "a:z" has no step`},
		"no colon":            {`{"series":{"a/z":[{"current_price":1}]}}`, `"a/z"`},
		"half a key":          {`{"series":{"a:":[{"current_price":1}]}}`, `"a:"`},
		"unknown member":      {`{"default":{"current_price":1},"repeat":true}`, `unknown field "repeat"`},
		"unknown in a step":   {`{"series":{"a:z":[{"price_now":1}]}}`, `unknown field "price_now"`},
		"unknown in default":  {`{"default":{"current_price":1,"bid":2}}`, `unknown field "bid"`},
		"neither nor":         {`{"series":{"a:z":[{"current_price":1},{"volatility":1}]}}`, `series "a:z", step 2`},
		"negative":            {`{"default":{"current_price":-1}}`, "default: current_price is -1"},
		"negative on-demand":  {`{"default":{"current_price":1,"on_demand_price":-2}}`, "on_demand_price is -2"},
		"negative history":    {`{"default":{"current_price":1,"price_history":[1,-3]}}`, "price_history is -3"},
		"text":                {"{\"default\":{\n\"current_price\":\"1\"}}", "line 2: default.current_price is a string"},
		"broken":              {"{\"default\":\n{,}}", "line 2"},
		"cut short":           {`{"default":{"current_price":1}`, "unexpected"},
		"more behind the end": {`{"default":{"current_price":1}}{}`, "more follows"},
	} {
		if _, err := Read(strings.NewReader(c.text)); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
}

// The scripts that users of SpotVortex have must be read as they are.
func TestCompatibleFile(t *testing.T) {
	path := filepath.Join("..", "..", "..", "..", "shared", "compat", "spotvortex", "fake-price-scenarios.json")
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no folder ../shared/compat beside the checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	play(t, s, []call{
		{"spot", "m5.large", "us-east-1a", 22 * cent, nil}, {"spot", "m5.large", "us-east-1a", 95 * cent, nil},
		{"spot", "m5.large", "us-east-1a", 28 * cent, nil}, {"spot", "m5.large", "us-east-1a", 28 * cent, nil},
		{"spot", "r6i.large", "us-east-1a", 0, &InjectedError{"simulated throttling"}},
		{"od", "c5.large", "us-west-2a", 120 * cent, nil}, {"spot", "c5.large", "us-west-2a", 40 * cent, nil},
		{"spot", "c5.large", "us-east-1b", 20 * cent, nil},
	})
}
