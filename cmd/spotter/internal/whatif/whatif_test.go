package whatif

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval"
)

// TestParseSweep: a sweep has a path and several values, listed or as a range.
func TestParseSweep(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"p/a.b=30s..2m@4", "30s 1m 1m30s 2m"},
		{"p/a.b=30s..2m/45s", "30s 1m15s 2m"},
		{"p/a.b=1m,5m,1h", "1m 5m 1h"},
		{"p/a.r[key=x].v=1..3@3", "1 2 3"},
	} {
		path, values, err := parseSweep(c.text)
		if ref := c.text[:strings.LastIndexByte(c.text, '=')]; err != nil || strings.Join(values, " ") != c.want || path != ref {
			t.Errorf("%s: %q %v, %v; want %s", c.text, path, values, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"p/a.b":           "gives no value",
		"p/a.b=5m":        "is not a range or a list of 2 to 35 values",
		"p/a.b=0..100@36": "is not a range or a list of 2 to 35 values",
		"p/a.b=1..5m":     "is not a range of numbers",
		"p/a.b=1m..4h/5":  "@5 for 5 values",
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
		"--with --set a":                "no change comes before it",
		"--set a --with":                "no change follows it",
		"--set a --with --with --set b": "no change comes before it",
		"--sweep a --sweep b":           "its values must be the only variants",
		"--sweep a --set b":             "its values must be the only variants",
		"--allow-spot=x":                "invalid",
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestNamed: a short name that two would have becomes the full one.
func TestNamed(t *testing.T) {
	all := []eval.Variant{{Name: "a", Changes: []string{"x.a"}}, {Name: "a", Changes: []string{"y.a"}},
		{Name: "b", Changes: []string{"x.b"}}, {Name: "as-is", Changes: []string{"the policy as-is"}}}
	if err := named(all); err != nil || all[0].Name != "x.a" || all[1].Name != "y.a" || all[2].Name != "b" || all[3].Name == "as-is" {
		t.Errorf("%v, %+v", err, all)
	}
	all = []eval.Variant{{Name: "a", Changes: []string{"x.a"}}, {Name: "a", Changes: []string{"x.a"}}}
	if err := named(all); err == nil || !strings.Contains(err.Error(), "x.a is given twice") {
		t.Errorf("twice the same: %v", err)
	}
}
