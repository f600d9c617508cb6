package importer

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

func scriptOf(t *testing.T, text string) *script {
	t.Helper()
	s, err := readScript(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A call is a market that the script must price, and the prices in cents that it returns, or the
// error.
type call struct {
	kind, zone     string
	spot, onDemand policy.Money
	err            string
}

func play(t *testing.T, s *script, calls []call) {
	t.Helper()
	for i, c := range calls {
		got, err := s.call(scriptKey{c.kind, c.zone})
		want := scriptStep{spot: c.spot * cent, onDemand: c.onDemand * cent}
		if c.err == "" && (err != nil || got != want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("call %d, %+v: %+v, %v", i, c, got, err)
		}
	}
}

const cent = policy.Dollar / 100

// The exact market goes before its type anywhere, that before any type in its
// zone, and that before all others.
func TestPrecedence(t *testing.T) {
	s := scriptOf(t, `{"series":{
		"*:*":[{"current_price":0.04}], "*:z1":[{"current_price":0.03}], "*:z2":[{"current_price":0.05}],
		"a:*":[{"current_price":0.02}], "a:z1":[{"current_price":0.01}]}}`)
	play(t, s, []call{{"a", "z1", 1, 0, ""}, {"a", "z2", 2, 0, ""}, {"b", "z1", 3, 0, ""}, {"b", "z2", 5, 0, ""},
		{"b", "z3", 4, 0, ""}})
	if key, n := s.steps(scriptKey{"b", "z1"}); key != (scriptKey{"*", "z1"}) || n != 1 {
		t.Errorf("%v has %d steps", key, n)
	}
	if keys := s.keys(); !reflect.DeepEqual(keys, []scriptKey{{"*", "*"}, {"*", "z1"}, {"*", "z2"}, {"a", "*"},
		{"a", "z1"}}) || keys[1].exact() || !keys[4].exact() {
		t.Errorf("%v", keys)
	}
}

// Each key has a place of its own, which markets share. The last step is repeated; the default has no
// place in anything.
func TestCursors(t *testing.T) {
	s := scriptOf(t, `{"default":{"current_price":0.5,"on_demand_price":1},"series":{
		"a:z":[{"current_price":0.01,"on_demand_price":0.1},{"current_price":0.02,"on_demand_price":0.2}],
		"*:z":[{"current_price":0.03},{"current_price":0.04},{"current_price":0.05}]}}`)
	play(t, s, []call{{"a", "z", 1, 10, ""}, {"b", "z", 3, 100, ""}, {"c", "z", 4, 100, ""}, {"b", "z", 5, 100, ""},
		{"a", "z", 2, 20, ""}, {"a", "z", 2, 20, ""}, {"c", "z", 5, 100, ""},
		{"a", "elsewhere", 50, 100, ""}, {"a", "elsewhere", 50, 100, ""}})
}

func TestExhaustion(t *testing.T) {
	s := scriptOf(t, `{"repeat_last":false,"series":{"a:z":[{"current_price":0.01},{"current_price":0.02}]}}`)
	play(t, s, []call{{"a", "z", 1, 0, ""}, {"a", "z", 2, 0, ""}, {"a", "z", 0, 0, "at its end"},
		{"a", "z", 0, 0, "at its end"}, {"b", "z", 0, 0, "has no price"}})
	s = scriptOf(t, `{"repeat_last":true,"series":{"a:z":[{"error":"down"}]}}`)
	play(t, s, []call{{"a", "z", 0, 0, "down"}, {"a", "z", 0, 0, "down"}})
}

// What a step leaves out is the default's, field by field, its error too.
func TestOverrides(t *testing.T) {
	s := scriptOf(t, `{"default":{"current_price":0.5,"on_demand_price":1,"price_history":[0.1,0.2],"volatility":0.3,"error":"all down"},
		"series":{"a:z":[{"current_price":0,"error":""},{"error":"throttled"},{"on_demand_price":2,"error":""},{"current_price":0.03}]}}`)
	play(t, s, []call{{"a", "z", 0, 100, ""}, {"a", "z", 0, 0, "throttled"}, {"a", "z", 50, 200, ""},
		{"a", "z", 0, 0, "all down"}, {"b", "z", 0, 0, "all down"}})
}

func TestRefusesScript(t *testing.T) {
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
		"text":                {"{\"default\":{\n\"current_price\":\"1\"}}", "line 2: default.current_price is a string"},
		"broken":              {"{\"default\":\n{,}}", "line 2"},
		"cut short":           {`{"default":{"current_price":1}`, "cut short"},
		"more behind the end": {`{"default":{"current_price":1}}{}`, "more follows"},
	} {
		_, err := readScript(strings.NewReader(c.text))
		if !errors.Is(err, trace.ErrFormat) && !errors.Is(err, trace.ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
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
	s, err := readScript(f)
	if err != nil {
		t.Fatal(err)
	}
	play(t, s, []call{{"m5.large", "us-east-1a", 22, 100, ""}, {"m5.large", "us-east-1a", 95, 100, ""},
		{"m5.large", "us-east-1a", 28, 100, ""}, {"m5.large", "us-east-1a", 28, 100, ""},
		{"r6i.large", "us-east-1a", 0, 0, "simulated throttling"}, {"c5.large", "us-west-2a", 40, 120, ""},
		{"c5.large", "us-east-1b", 20, 100, ""}})
}
