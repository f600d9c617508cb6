package run

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
)

// TestRunFlagHolds: a flag that is given holds together with the file, also where it says what
// is so by default; the file holds for all else.
func TestRunFlagHolds(t *testing.T) {
	f := liveCall{SpotterConfiguration: *config.Default(), flags: pflag.NewFlagSet("run", pflag.ContinueOnError)}
	f.register(f.flags)
	text := strings.Join([]string{"apiVersion: " + config.APIVersion, "kind: " + config.Kind,
		"policies: static:share=0.5", "mode: active", "backends: [karpenter, rackspace]", "prices: {regions: [us-east-1, us-west-2], families: [m5]}", "leaderElection: {enabled: false}", "stepInterval: 3m"}, "\n")
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.flags.Parse([]string{"--config", path, "--mode=shadow", "--region", "eu-west-1", "--leader-elect"}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it reads the same again
		c, err := f.read()
		if err != nil {
			t.Fatal(err)
		}
		if c.Mode != "shadow" || !slices.Equal(c.Prices.Regions, []string{"eu-west-1"}) || !c.LeaderElection.Enabled {
			t.Errorf("the flags do not hold: %+v", c)
		}
		if !slices.Equal(c.Backends, []string{"karpenter", "rackspace"}) ||
			!slices.Equal(c.Prices.Families, []string{"m5"}) || c.StepInterval.Duration.String() != "3m0s" || c.Policies != "static:share=0.5" {
			t.Errorf("the file does not hold: %+v", c)
		}
	}
}

// TestMovedFlags: every name of a field that a call may say is one.
func TestMovedFlags(t *testing.T) {
	fields := map[string]bool{}
	for _, x := range config.Fields() {
		fields[x.Path] = true
	}
	for _, names := range []map[string]string{movedFlags, flagField, recordField, prometheusField} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if !fields[names[name]] {
				t.Errorf("%s is said to be %s, which is no field", name, names[name])
			}
		}
	}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	(&liveCall{}).register(flags)
	n := 0
	flags.VisitAll(func(x *pflag.Flag) {
		n++
		if movedFlags[x.Name] != "" {
			t.Errorf("--%s is a flag and said to be none", x.Name)
		}
		if flagField[x.Name] == "" && !slices.Contains([]string{"config", "kubeconfig", "context", "print-iam-policy", "cluster-name"}, x.Name) {
			t.Errorf("nothing says which field --%s is", x.Name)
		}
	})
	if n > 16 {
		t.Errorf("%d flags are more than a hand types", n)
	}
}
