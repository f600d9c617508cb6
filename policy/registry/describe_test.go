package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy/builtin/karpetrack"
	"github.com/spotter-dev/spotter/policy/builtin/leftover"
	"github.com/spotter-dev/spotter/policy/builtin/model"
	"github.com/spotter-dev/spotter/policy/builtin/portfolio"
	"github.com/spotter-dev/spotter/policy/builtin/rescheduler"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/builtin/static"
	"github.com/spotter-dev/spotter/policy/registry"
)

// What is said of the parameters is so: a policy takes each with each of its values, the
// first of which changes nothing, and knows no other.
func TestDescribe(t *testing.T) {
	karpetrackConfig, leftoverConfig, modelConfig, portfolioConfig := karpetrack.DefaultConfig(), leftover.DefaultConfig(), model.DefaultConfig(), portfolio.DefaultConfig()
	reschedulerConfig, spotvortexConfig, staticConfig := rescheduler.DefaultConfig(), spotvortex.DefaultConfig(), static.DefaultConfig()
	configs := map[string]interface{ Set(key, value string) error }{
		"karpetrack": &karpetrackConfig, "leftover": &leftoverConfig, "model": &modelConfig, "portfolio": &portfolioConfig,
		"rescheduler": &reschedulerConfig, "spotvortex": &spotvortexConfig, "static": &staticConfig,
	}
	o := registry.Options{OpenBundle: func(string) error { return nil }}
	name := func(spec string) string {
		p, err := registry.New(spec, o)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			return ""
		}
		return p.Name()
	}
	for _, d := range registry.Describe() {
		var keys []string
		plain := d.Name
		if d.Name == "model" {
			plain += ":bundle=x"
		}
		for _, s := range d.Parameters {
			if s.Key == "bundle" || s.Key == "runtime" { // of the registry, and not of the policy
				continue
			}
			keys = append(keys, s.Key)
			for _, v := range s.Values {
				if got := name(plain + ":" + s.Key + "=" + v); v == s.Default && got != name(plain) {
					t.Errorf("%s is not the default of %s of %s: the policy is then %s", v, s.Key, d.Name, got)
				}
			}
		}
		if (configs[d.Name] != nil) != (len(keys) > 0) {
			t.Errorf("%s is said to know %v", d.Name, keys)
		}
		if configs[d.Name] == nil {
			continue
		}
		text := configs[d.Name].Set("?", "").Error()
		_, list, found := strings.Cut(text, "it takes ")
		if !found {
			_, list, _ = strings.Cut(text, "there are ")
		}
		own := slices.DeleteFunc(strings.Split(list, ", "), func(k string) bool { return k == "bundle" })
		slices.Sort(own)
		slices.Sort(keys) // those that matter come first
		if !slices.Equal(own, keys) {
			t.Errorf("%s knows %v, and is said to know %v", d.Name, own, keys)
		}
	}
}

// A mistyped parameter is answered by what was meant.
func TestMistypedParameter(t *testing.T) {
	for spec, want := range map[string]string{
		"static:shar=0.5":       `unknown parameter "shar": it takes share; did you mean "share"?`,
		"portfolio:holdin=8h":   `did you mean "holding"?`,
		"spotvortex:comapt=yes": `did you mean "compat"?`,
		"spot:share=1":          "spot: unknown parameter \"share\": it takes none",
	} {
		if _, err := registry.New(spec, registry.Options{}); !errors.Is(err, registry.ErrParameter) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}
