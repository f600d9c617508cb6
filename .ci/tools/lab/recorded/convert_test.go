package recorded

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tinylib/msgp/msgp"

	"github.com/spotter-dev/spotter/policy"
)

// nodes are a small and a large one, and one with four accelerators.
func nodes() []Node {
	size := func(vcpu, gib, gpu int64) Node {
		return Node{vcpu, policy.Resources{CPU: vcpu * 950, Memory: gib << 30, GPU: gpu, Pods: 100}}
	}
	return []Node{size(4, 14, 0), size(64, 240, 0), size(48, 180, 4)}
}

// write writes data to a new file and returns its path.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConvert(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "convert"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			o := DefaultOptions()
			o.Nodes = nodes()
			brief := false
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "format":
					d.ScanArgs(t, "format", &o.Format)
				case "from":
					d.ScanArgs(t, "from", &o.From)
				case "name":
					d.ScanArgs(t, "name", &o.Name)
				case "days":
					o.Days = number(t, d, "days")
				case "scale":
					o.Scale = number(t, d, "scale")
				case "tokens":
					o.TokensPerSecond = number(t, d, "tokens")
				case "max":
					d.ScanArgs(t, "max", &o.WorkloadsMax)
				case "brief":
					brief = true
				default:
					d.Fatalf(t, "unknown argument %s", a.Key)
				}
			}
			file := write(t, "recording", []byte(d.Input))
			res, err := Convert([]string{file}, o)
			if err != nil {
				return strings.ReplaceAll(err.Error(), file, "recording") + "\n"
			}
			out := string(res.YAML)
			if brief { // the workloads alone
				parts := strings.Split(out, "---\n")
				kept := parts[:0]
				for _, p := range parts {
					if !strings.Contains(p, "kind: CapacityPool") && !strings.Contains(p, "kind: Scenario") &&
						!strings.Contains(p, "kind: PriorityClass") {
						kept = append(kept, p)
					}
				}
				out = strings.Join(kept, "---\n")
			}
			return out
		})
	})
}

func number(t *testing.T, d *datadriven.TestData, key string) float64 {
	t.Helper()
	var text string
	d.ScanArgs(t, key, &text)
	var x float64
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// The same trace is the same scenario, written as JSON or MessagePack, packed
// or not: but for the name of the file in its head.
func TestSimKubePacked(t *testing.T) {
	const trace = `{"version": 2, "config": {}, "index": {},
 "pod_lifecycles": {"[\"v1.Pod\",\"default/one\"]": {"17": [{"Finished": [1743286830, 1743286842]}]}},
 "events": [{"ts": 1743286823, "applied_objs": [
  {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 40000,
   "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}
 ], "deleted_objs": []}]}`
	want, err := Convert([]string{write(t, "trace", []byte(trace))}, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	packed := pack(t, trace)
	for name, data := range map[string][]byte{"packed": packed, "zipped": zipped(t, packed)} {
		got, err := Convert([]string{write(t, "trace", data)}, DefaultOptions())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(got.YAML, want.YAML) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got.YAML, want.YAML)
		}
	}
	for cut := range len(packed) {
		if _, err := Convert([]string{write(t, "trace", packed[:cut])}, DefaultOptions()); err == nil {
			t.Fatalf("a trace cut after %d of %d bytes was read", cut, len(packed))
		}
		if cut > 40 {
			break // from here on it is the same few cases
		}
	}
}

// pack returns JSON as MessagePack. The keys of pod lives, which are lists and
// numbers there, are written as such.
func pack(t *testing.T, text string) []byte {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return appendPacked(t, nil, v)
}

func appendPacked(t *testing.T, b []byte, v any) []byte {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return msgp.AppendNil(b)
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return msgp.AppendInt64(b, n)
	case string:
		return msgp.AppendString(b, v)
	case []any:
		b = msgp.AppendArrayHeader(b, uint32(len(v)))
		for _, x := range v {
			b = appendPacked(t, b, x)
		}
		return b
	case map[string]any:
		b = msgp.AppendMapHeader(b, uint32(len(v)))
		for key, x := range v {
			var parts []string
			switch {
			case json.Unmarshal([]byte(key), &parts) == nil:
				b = msgp.AppendArrayHeader(b, uint32(len(parts)))
				for _, p := range parts {
					b = msgp.AppendString(b, p)
				}
			case key == "17":
				b = msgp.AppendUint64(b, 17)
			default:
				b = msgp.AppendString(b, key)
			}
			b = appendPacked(t, b, x)
		}
		return b
	}
	t.Fatalf("%T is not packed", v)
	return nil
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What says that it is long or deep and is not must not fill the memory.
func TestUnpackHostile(t *testing.T) {
	for name, data := range map[string][]byte{
		"a list of four thousand million": {0xdd, 0xff, 0xff, 0xff, 0xff},
		"a map of four thousand million":  {0xdf, 0xff, 0xff, 0xff, 0xff},
		"a text of four thousand million": {0xdb, 0xff, 0xff, 0xff, 0xff},
		"bytes after the end":             {0x80, 0xc0},
		"a time":                          {0xd6, 0xff, 0, 0, 0, 0},
	} {
		if v, err := unpack(data); err == nil {
			t.Errorf("%s was read as %v", name, v)
		}
	}
}

func TestUnpackDeep(t *testing.T) {
	for name, data := range map[string][]byte{
		"a list": bytes.Repeat([]byte{0x91}, 100_000), "a map": bytes.Repeat([]byte{0x81, 0xa0},
			100_000), "keys": bytes.Repeat([]byte{0x81}, 100_000),
	} {
		if _, err := unpack(data); !errors.Is(err, errDeep) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFits: a node with accelerators is only for pods that request them, however large the node is.
func TestFits(t *testing.T) {
	for s, want := range map[shape]bool{
		{cpu: 3800, memory: 14 << 10}:    true,
		{cpu: 60_000, memory: 240 << 10}: true,
		{cpu: 61_000, memory: 1}:         false,
		{cpu: 1, memory: 241 << 10}:      false,
		{cpu: 1, memory: 1, gpu: 4}:      true,
		{cpu: 1, memory: 1, gpu: 5}:      false,
		{cpu: 45_601, memory: 1, gpu: 1}: false,
	} {
		if got := s.fits(nodes(), 64); got != want {
			t.Errorf("%s fits: %v, want %v", s, got, want)
		}
	}
	gpuOnly := []Node{nodes()[2]}
	if (shape{cpu: 1, memory: 1}).fits(gpuOnly, 64) {
		t.Error("a pod without a GPU is put on a node with")
	}
	if s := (shape{cpu: 3900, memory: 1}); s.fits(nodes(), 32) {
		t.Error("a node beyond the bound is taken")
	}
}
