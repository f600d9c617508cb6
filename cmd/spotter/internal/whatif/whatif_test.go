package whatif

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval"
)

// TestParseSweep: the values of a range, written as one would.
func TestParseSweep(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"p/a.b=1m..2h", "1m 2m15s 5m 11m 24m 55m 2h"},
		{"p/a.b=30s..2m/4", "30s 1m 1m30s 2m"},
		{"p/a.b=0s..1h/3", "0s 30m 1h"},
		{"p/a.b=1h..48h/3", "1h 7h 48h"},
		{"p/a.b=5%..50%/4", "5% 11% 23% 50%"},
		{"p/a.b=10%..40%/4", "10% 20% 30% 40%"},
		{"p/a.b=0..1/5", "0 0.25 0.5 0.75 1"},
		{"p/a.b=0.1..0.4/3", "0.1 0.25 0.4"},
		{"p/a.b=2..5", "2 3 4 5"},
		{"p/a.b=1..100/3", "1 10 100"},
		{"p/a.r[key=x].v=1..3/3", "1 2 3"},
	} {
		path, values, err := parseSweep(c.text)
		if ref := c.text[:strings.LastIndexByte(c.text, '=')]; err != nil || strings.Join(values, " ") != c.want || path != ref {
			t.Errorf("%s: %q %v, %v; want %s", c.text, path, values, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"p/a.b":           "gives no value",
		"p/a.b=5m":        "is not a range",
		"p/a.b=1..2/1":    "not a number of steps",
		"p/a.b=1..2/36":   "not a number of steps",
		"p/a.b=1..2/x":    "not a number of steps",
		"p/a.b=1..5m":     "not two lengths of time",
		"p/a.b=2..1":      "2 is not below 1",
		"p/a.b=1..1":      "1 is not below 1",
		"p/a.b=NaN..2":    "not two lengths of time",
		"p/a.b=a%..b%":    "not two lengths of time",
		"p/a.b=1h..30m/3": "1h is not below 30m",
	} {
		if _, _, err := parseSweep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestChanges: flags are variants in their order, and --with joins two.
func TestChanges(t *testing.T) {
	parse := func(args string) ([][]change, error) {
		var c changes
		flags := pflag.NewFlagSet("whatif", pflag.ContinueOnError)
		for _, name := range []string{flagSet, flagSweep, flagPolicy} {
			c.register(flags, name, "string", "")
		}
		c.register(flags, flagSpot, "", "")
		c.register(flags, flagWith, "", "")
		if err := flags.Parse(strings.Fields(args)); err != nil {
			return nil, err
		}
		return c.checked()
	}
	for args, want := range map[string]string{
		"--set a --set b":                            "set a|set b",
		"--set a --with --policy b --set c":          "set a, policy b|set c",
		"--set a --with --allow-spot --with --set b": "set a, allow-spot true, set b",
		"--set a --allow-spot=false":                 "set a",
		"--allow-spot --with --sweep a":              "allow-spot true, sweep a",
	} {
		groups, err := parse(args)
		var texts []string
		for _, g := range groups {
			var parts []string
			for _, x := range g {
				parts = append(parts, x.flag+" "+x.value)
			}
			texts = append(texts, strings.Join(parts, ", "))
		}
		if got := strings.Join(texts, "|"); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", args, got, err, want)
		}
	}
	for args, want := range map[string]string{
		"":                              "nothing is changed",
		"--with --set a":                "no change stands before it",
		"--set a --with":                "no change stands behind it",
		"--set a --with --with --set b": "no change stands before it",
		"--sweep a --sweep b":           "its values are all variants",
		"--sweep a --set b":             "its values are all variants",
		"--allow-spot=x":                "invalid",
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestNamed: a short name that two would have becomes the full one.
func TestNamed(t *testing.T) {
	all := []eval.Variant{{Name: "a", Changes: []string{"x.a"}}, {Name: "a", Changes: []string{"y.a"}}, {Name: "b", Changes: []string{"x.b"}}, {Name: "as-is", Changes: []string{"the policy as-is"}}}
	if err := named(all); err != nil || all[0].Name != "x.a" || all[1].Name != "y.a" || all[2].Name != "b" || all[3].Name == "as-is" {
		t.Errorf("%v, %+v", err, all)
	}
	all = []eval.Variant{{Name: "a", Changes: []string{"x.a"}}, {Name: "a", Changes: []string{"x.a"}}}
	if err := named(all); err == nil || !strings.Contains(err.Error(), "x.a stands twice") {
		t.Errorf("twice the same: %v", err)
	}
}
