package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestConvert runs the cases of converting old configuration. A line "=== NAME" starts a file;
// arguments are the values of flags. The command "flags" takes a command line.
func TestConvert(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var o Options
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "pools":
					o.Pools = a.Vals
				case "node-class":
					o.NodeClass = a.Vals[0]
				case "cloudspace":
					o.Cloudspace = a.Vals[0]
				case "org":
					o.Org = a.Vals[0]
				case "secret":
					o.Secret = a.Vals[0]
				case "refuse": // a policy that does not have this parameter
					o.Check = func(spec string) error {
						if strings.Contains(spec, a.Vals[0]) {
							return errors.New("there is no parameter " + a.Vals[0])
						}
						return nil
					}
				default:
					d.Fatalf(t, "unknown argument %s", a.Key)
				}
			}
			var inputs []Input
			line := ""
			if d.Cmd == "flags" {
				line = d.Input
			} else {
				inputs = files(d.Input)
			}
			r, err := Convert(inputs, line, o)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			var b strings.Builder
			if _, err := r.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			accepted(t, b.String())
			return b.String()
		})
	})
}

// files cuts the input of a scripted case.
func files(text string) []Input {
	var all []Input
	for _, line := range strings.SplitAfter(text, "\n") {
		if name, ok := strings.CutPrefix(line, "=== "); ok {
			all = append(all, Input{Name: strings.TrimSpace(name)})
			continue
		}
		if len(all) == 0 {
			all = append(all, Input{Name: "old.yaml"})
		}
		last := &all[len(all)-1]
		last.Data = append(last.Data, line...)
	}
	return all
}

// accepted reads a result as the simulator and the API server do, strictly.
func accepted(t *testing.T, text string) {
	t.Helper()
	objects, err := scenarios.RawObjects("new.yaml", []byte(text))
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d objects, %v in\n%s", len(objects), err, text)
	}
	for i := range objects {
		o := &objects[i]
		switch o.Scalar("kind") {
		case "CapacityPool":
			var p v1alpha1.CapacityPool
			if err := o.Decode(&p); err != nil {
				t.Error(err)
			}
			p.Default()
			if errs := p.Validate(); len(errs) > 0 {
				t.Errorf("%v in\n%s", errs, text)
			}
		case "GPUBudget":
			var g v1alpha1.GPUBudget
			if err := o.Decode(&g); err != nil {
				t.Error(err)
			}
			g.Default()
			if errs := g.Validate(); len(errs) > 0 {
				t.Errorf("%v in\n%s", errs, text)
			}
		default:
			t.Errorf("kind %q in\n%s", o.Scalar("kind"), text)
		}
	}
}

// Every warning is in the output too, for readers of the manifest alone.
func TestWarningsAreComments(t *testing.T) {
	old := "apiVersion: gpu.devplatforms.io/v1alpha1\nkind: LeftoverNodePool\nmetadata: {name: a}\n" +
		"spec: {region: us-east-1, nodeClassName: gpu, families: [p4, g5], minGPUs: 1, requeueMinutes: 7}\n"
	r, err := Convert([]Input{{"old.yaml", []byte(old)}}, "--spot-node-label=a=b", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\n#", " ")), " ")
	if len(r.All()) < 8 {
		t.Errorf("%d warnings", len(r.All()))
	}
	for _, w := range r.All() {
		if !strings.Contains(text, w.String()) {
			t.Errorf("no comment says: %s", w)
		}
	}
}

// A file of buckets that is not there is the shipped one, unless the policy
// would have to read it.
func TestRuntimeBuckets(t *testing.T) {
	path := filepath.Join("c", "runtime.json")
	asked := ""
	o := Options{ReadBuckets: func(file, source string) ([]byte, error) {
		asked = file + " " + source
		return nil, os.ErrNotExist
	}}
	for name, c := range map[string]struct{ rules, want string }{
		"shipped": {`"emergency_risk_threshold": 0.891, "runtime_emergency_threshold": 0.865, "high_risk_threshold": 0.782, "medium_risk_threshold": 0.58,
			"min_savings_ratio_for_increase": 0.249, "max_payback_hours_for_increase": 6.372, "ood_max_risk_for_increase": 0.189,
			"ood_min_savings_ratio_for_increase": 0.334, "ood_max_payback_hours_for_increase": 2.189,`, ""},
		"custom": {`"emergency_risk_threshold": 0.95,`, `"x.yaml" cannot be read: file does not exist`},
	} {
		runtime := `{"min_spot_ratio": 0.167, "deterministic_policy": {` + c.rules + `"feature_buckets": {"source": "x.yaml"}}}`
		r, err := Convert([]Input{{path, []byte(runtime)}}, "", o)
		if asked != path+" x.yaml" {
			t.Errorf("%s: asked for %q", name, asked)
		}
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var b strings.Builder
		if _, err := r.WriteTo(&b); err != nil || strings.Contains(b.String(), "parameters:") ||
			!strings.Contains(b.String(), "x.yaml cannot be read") {
			t.Errorf("%s: %v\n%s", name, err, &b)
		}
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string]string{
		"--a=b --c d":                         "--a=b|--c|d",
		"rescheduler -v=2 --x='a b' \\\n --y": "-v=2|--x=a b|--y",
		"./bin/k8s-spot-rescheduler --x \"\"": "--x|",
		"  ":                                  "",
	} {
		if got := strings.Join(words(line), "|"); got != want {
			t.Errorf("words(%q) = %q, want %q", line, got, want)
		}
	}
}
