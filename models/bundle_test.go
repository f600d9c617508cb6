package models_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
)

// seed returns one of the SpotVortex agent's bundles, in memory.
func seed(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	dir := os.Getenv("SPOTTER_COMPAT")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "compat")
	}
	dir = filepath.Join(dir, "spotvortex", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%v: the bundles of the SpotVortex agent are not here; name their folder by SPOTTER_COMPAT", err)
	}
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestSeedBundles opens both of the agent's bundles as they are.
func TestSeedBundles(t *testing.T) {
	for name, files := range map[string]int{"models": 5, "models-2026-02-17": 4} {
		b, err := models.Open(seed(t, name), "aws")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(b.Files) != files || b.Scope.Cloud != "aws" || len(b.Scope.Families) != 60 || len(b.Fingerprint) != 64 {
			t.Errorf("%s: %d files, scope of %s with %d families, fingerprint %q", name, len(b.Files), b.Scope.Cloud,
				len(b.Scope.Families), b.Fingerprint)
		}
		if n := b.Forecaster; n.Batch != 1 || n.Width != 120 || !slices.Equal(n.Names(), []string{"capacity", "runtime"}) ||
			!slices.Equal(n.Widths, []int{1, 1}) {
			t.Errorf("%s: forecaster of batch %d, width %d, %v of widths %v", name, n.Batch, n.Width, n.Names(), n.Widths)
		}
		if n := b.Actions; n.Batch != 0 || n.Width != 13 || !slices.Equal(n.Widths, []int{6}) {
			t.Errorf("%s: actions of batch %d, width %d, widths %v", name, n.Batch, n.Width, n.Widths)
		}
		if g, err := models.ReadGraph(b.Forecaster.ONNX); err != nil || len(g.Sidecars) != 0 {
			t.Errorf("%s: with its weights in it the graph names %v, %v", name, g.Sidecars, err)
		}
	}
}

// TestFlippedByte changes single bytes, at both ends and in between, of every
// file that the manifest lists: each makes the bundle one that is not opened,
// and the file is named.
func TestFlippedByte(t *testing.T) {
	files := seed(t, "models")
	b, err := models.Open(files, "aws")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range b.Files {
		data := files[f.Path].Data
		for i := 0; i < len(data); i += max(1, (len(data)-1)/7) {
			data[i] ^= 1
			if _, err := models.Open(files, "aws"); err == nil || !strings.HasPrefix(err.Error(), f.Path+": its SHA-256 is ") {
				t.Errorf("%s, byte %d: %v", f.Path, i, err)
			}
			data[i] ^= 1
		}
	}
}

// TestSeedBundleSpoilt spoils the agent's bundle in the ways in which a bundle becomes invalid.
func TestSeedBundleSpoilt(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(fstest.MapFS)
	}{
		{"no manifest", models.ManifestName, func(f fstest.MapFS) { delete(f, models.ManifestName) }},
		{"no graph", "tft.onnx: the manifest lists it", func(f fstest.MapFS) { delete(f, "tft.onnx") }},
		{"no sidecar", "tft.onnx.data: the manifest lists it", func(f fstest.MapFS) { delete(f, "tft.onnx.data") }},
		{"no alias", "rl_value_dense_q90_strict_seed42.onnx.data: the manifest lists it",
			func(f fstest.MapFS) { delete(f, "rl_value_dense_q90_strict_seed42.onnx.data") }},
		{"unlisted sidecar", "rl_policy.onnx: tensor", func(f fstest.MapFS) { unlist(f, "rl_value_dense_q90_strict_seed42.onnx.data") }},
		{"unlisted graph", "artifacts: rl_policy.onnx is missing", func(f fstest.MapFS) { unlist(f, "rl_policy.onnx") }},
		{"graphs exchanged", "tft.onnx: its inputs are [state [any 13]], want input [any 12 10] alone", func(f fstest.MapFS) {
			f["tft.onnx"], f["rl_policy.onnx"] = f["rl_policy.onnx"], f["tft.onnx"]
			sign(f)
		}},
		{"output renamed", "tft.onnx: it has no output runtime_score", func(f fstest.MapFS) {
			replace(f, "tft.onnx", "runtime_score", "runtime_scale")
		}},
		{"input renamed", "rl_policy.onnx: its inputs are [stats [any 13]], want state [any 13] alone", func(f fstest.MapFS) {
			replace(f, "rl_policy.onnx", "state", "stats")
		}},
		{"short sidecar", "of tft.onnx.data, which has 94000", func(f fstest.MapFS) {
			f["tft.onnx.data"].Data = f["tft.onnx.data"].Data[:94000]
			sign(f)
		}},
		{"equation", "pysr/calibration_equation.txt: the equation \"2*capacity_score\" is not supported", func(f fstest.MapFS) {
			f["pysr/calibration_equation.txt"].Data = []byte("2*capacity_score\n")
		}},
		{"scope twice", "model_scope: cloud \"gcp\" is not \"aws\"", func(f fstest.MapFS) {
			change(f, func(m map[string]any) { m["model_scope"].(map[string]any)["cloud"] = "gcp" })
		}},
		{"path outside", "is not in the bundle", func(f fstest.MapFS) {
			change(f, func(m map[string]any) {
				m["artifacts"].(map[string]any)["tft.onnx"].(map[string]any)["path"] = "../tft.onnx"
			})
		}},
		{"schema", "schema_version \"v3\"", func(f fstest.MapFS) { change(f, func(m map[string]any) { m["schema_version"] = "v3" }) }},
		{"no families", "supported_instance_families", func(f fstest.MapFS) {
			change(f, func(m map[string]any) { delete(m, "supported_instance_families") })
		}},
		{"two values", "behind its end", func(f fstest.MapFS) {
			f[models.ManifestName].Data = append(f[models.ManifestName].Data, "{}"...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := seed(t, "models")
			c.spoil(files)
			if _, err := models.Open(files, "aws"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	_, err := models.Open(seed(t, "models"), "gcp")
	if other := (*models.ScopeError)(nil); !errors.As(err, &other) || other.Cloud != "aws" {
		t.Errorf("another cloud: %v", err)
	}
	if _, err := models.Open(seed(t, "models"), ""); err != nil {
		t.Errorf("any cloud: %v", err)
	}
}

// change edits the manifest of f.
func change(f fstest.MapFS, edit func(map[string]any)) {
	var m map[string]any
	if err := json.Unmarshal(f[models.ManifestName].Data, &m); err != nil {
		panic(err)
	}
	edit(m)
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	f[models.ManifestName] = &fstest.MapFile{Data: data}
}

func unlist(f fstest.MapFS, name string) {
	change(f, func(m map[string]any) { delete(m["artifacts"].(map[string]any), name) })
}

// sign writes the checksums of the files that the manifest lists.
func sign(f fstest.MapFS) {
	change(f, func(m map[string]any) {
		for _, a := range m["artifacts"].(map[string]any) {
			entry := a.(map[string]any)
			sum := sha256.Sum256(f[entry["path"].(string)].Data)
			entry["sha256"] = hex.EncodeToString(sum[:])
		}
	})
}

func replace(f fstest.MapFS, file, old, with string) {
	f[file].Data = []byte(strings.ReplaceAll(string(f[file].Data), old, with))
	sign(f)
}

// A net is an ONNX file to write.
type net struct {
	input         string
	in            []int64
	outputs       map[string][]int64
	sidecar       string
	offset, bytes string
}

func (n net) onnx() []byte {
	var graph []byte
	weights := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 1)
	weights = inner(weights, 8, []byte("w"))
	if n.sidecar != "" {
		for _, kv := range [][2]string{{"location", n.sidecar}, {"offset", n.offset}, {"length", n.bytes}} {
			if kv[1] != "" {
				weights = inner(weights, 13, inner(inner(nil, 1, []byte(kv[0])), 2, []byte(kv[1])))
			}
		}
		weights = protowire.AppendVarint(protowire.AppendTag(weights, 14, protowire.VarintType), 1)
	}
	graph = inner(graph, 5, weights)
	graph = inner(graph, 11, value(n.input, n.in))
	graph = inner(graph, 11, value("w", []int64{2})) // as old files list weights
	for _, name := range slices.Sorted(maps.Keys(n.outputs)) {
		graph = inner(graph, 12, value(name, n.outputs[name]))
	}
	return inner(nil, 7, graph)
}

func inner(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func value(name string, dims []int64) []byte {
	var shape []byte
	for _, d := range dims {
		if d < 0 {
			shape = inner(shape, 1, inner(nil, 2, []byte("N")))
			continue
		}
		shape = inner(shape, 1, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(d)))
	}
	tensor := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	return inner(inner(nil, 1, []byte(name)), 2, inner(nil, 1, inner(tensor, 2, shape)))
}

// second returns a bundle of the second schema: a forecaster over one hour with
// its weights in a file next to it, and values of actions.
func second() fstest.MapFS {
	market, pool := models.FeatureNames(models.MarketFeaturesV1), models.FeatureNames(models.PoolFeaturesV1)
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	f := fstest.MapFS{
		"f.onnx": &fstest.MapFile{Data: net{"x", []int64{-1, 12, 10}, map[string][]int64{"c": {-1, 1}, "r": {-1, 1}}, "f.bin", "4", "8"}.onnx()},
		"f.bin":  &fstest.MapFile{Data: []byte("0123456789ab")},
		"a.onnx": &fstest.MapFile{Data: net{"s", []int64{-1, 13}, map[string][]int64{"q": {-1, 6}}, "", "", ""}.onnx()},
	}
	manifest := map[string]any{
		"schema_version": "v2", "generated_at": "2026-01-01T00:00:00Z", "cloud": "aws", "supported_instance_families": []string{"m5", "c6i.*"},
		"artifacts": map[string]any{"f": map[string]any{"path": "f.onnx"}, "w": map[string]any{"path": "f.bin"},
			"a": map[string]any{"path": "a.onnx"}},
		"forecaster": map[string]any{
			"graph": "f.onnx", "features": models.MarketFeaturesV1, "feature_names": market, "input": "x",
			"outputs": map[string]string{"capacity": "c", "runtime": "r"}, "horizon_hours": 1,
			"normalisation": map[string]any{"mean": make([]float64, len(market)), "scale": ones(len(market))},
		},
		"actions": map[string]any{
			"graph": "a.onnx", "features": models.PoolFeaturesV1, "feature_names": pool, "input": "s", "outputs": map[string]string{"values": "q"},
		},
		"training":   map[string]any{"fingerprint": strings.Repeat("ab", 32), "data": "generated"},
		"confidence": 0.9, "metrics": map[string]float64{"brier": 0.1},
		"calibration": map[string]any{"runtime": []any{map[string]any{"cases": 10, "predicted": 0.1, "observed": 0.2}}},
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		panic(err)
	}
	f[models.ManifestName] = &fstest.MapFile{Data: data}
	sign(f)
	return f
}

// TestSecondSchema opens a bundle of the second schema and spoils it.
func TestSecondSchema(t *testing.T) {
	b, err := models.Open(second(), "AWS")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b.Forecaster.ONNX), "456789ab") || strings.Contains(string(b.Forecaster.ONNX), "f.bin") {
		t.Error("the weights are not in the graph")
	}
	of := func(name string) func(m map[string]any) map[string]any {
		return func(m map[string]any) map[string]any { return m[name].(map[string]any) }
	}
	forecaster, actions, training := of("forecaster"), of("actions"), of("training")
	for _, c := range []struct {
		want  string
		spoil func(map[string]any)
	}{
		{"unknown field \"colour\"", func(m map[string]any) { m["colour"] = "red" }},
		{"confidence: 0", func(m map[string]any) { delete(m, "confidence") }},
		{"confidence: 1.5", func(m map[string]any) { m["confidence"] = 1.5 }},
		{"training: it does not say", func(m map[string]any) { delete(m, "training") }},
		{"training: fingerprint", func(m map[string]any) { training(m)["fingerprint"] = "ab" }},
		{"there is neither", func(m map[string]any) { delete(m, "forecaster"); delete(m, "actions") }},
		{"forecaster: features: \"other/1\" is not known here", func(m map[string]any) { forecaster(m)["features"] = "other/1" }},
		{"actions: features", func(m map[string]any) { actions(m)["features"] = models.MarketFeaturesV1 }},
		{"forecaster: feature_names", func(m map[string]any) { forecaster(m)["feature_names"].([]any)[0] = "price" }},
		{"forecaster: outputs: runtime is missing", func(m map[string]any) { delete(of("outputs")(forecaster(m)), "runtime") }},
		{"actions: outputs: there are 2", func(m map[string]any) { of("outputs")(actions(m))["more"] = "q" }},
		{"it has no output z", func(m map[string]any) { of("outputs")(actions(m))["values"] = "z" }},
		{"normalisation: 9 means", func(m map[string]any) {
			n := of("normalisation")(forecaster(m))
			n["mean"] = n["mean"].([]any)[1:]
		}},
		{"normalisation: scale 1", func(m map[string]any) { of("normalisation")(forecaster(m))["scale"].([]any)[0] = 0.0 }},
		{"horizon_hours", func(m map[string]any) { forecaster(m)["horizon_hours"] = -1.0 }},
		{"hazard_families: a token is empty", func(m map[string]any) { forecaster(m)["hazard_families"] = []string{"m5", ""} }},
		{"hazard_families: without horizon_hours", func(m map[string]any) {
			forecaster(m)["hazard_families"] = []string{"m5"}
			delete(forecaster(m), "horizon_hours")
		}},
		{"calibration: runtime: bin 1", func(m map[string]any) {
			of("calibration")(m)["runtime"].([]any)[0].(map[string]any)["observed"] = 2.0
		}},
		{"a token is empty", func(m map[string]any) { m["supported_instance_families"] = []string{"m5", "*"} }},
		{"the second schema calls them artifacts", func(m map[string]any) { m["models"] = m["artifacts"] }},
		{"sha256 \"12\"", func(m map[string]any) { of("f")(of("artifacts")(m))["sha256"] = "12" }},
	} {
		f := second()
		change(f, c.spoil)
		if _, err := models.Open(f, "aws"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	alone := second()
	change(alone, func(m map[string]any) { delete(m, "actions") })
	if b, err := models.Open(alone, "aws"); err != nil || b.Actions != nil {
		t.Errorf("a forecaster alone: %v, %v", b, err)
	}
}

// TestShapes holds graphs to the shapes of what they are fed.
func TestShapes(t *testing.T) {
	good := map[string][]int64{"q": {-1, 6}}
	for _, c := range []struct {
		want string
		net  net
	}{
		{"", net{"s", []int64{4, 13}, map[string][]int64{"q": {4, 6}}, "", "", ""}},
		{"its input is s [any 12], want s [any 13]", net{"s", []int64{-1, 12}, good, "", "", ""}},
		{"its input is s [13]", net{"s", []int64{13}, good, "", "", ""}},
		{"one value for each of 6 actions", net{"s", []int64{-1, 13}, map[string][]int64{"q": {-1, 5}}, "", "", ""}},
		{"has not as many rows", net{"s", []int64{4, 13}, map[string][]int64{"q": {3, 6}}, "", "", ""}},
		{"does not say how many numbers", net{"s", []int64{-1, 13}, map[string][]int64{"q": {-1, -1}}, "", "", ""}},
		{"is not rows of numbers", net{"s", []int64{-1, 13}, map[string][]int64{"q": {}}, "", "", ""}},
		{"external data: offset \"x\"", net{"s", []int64{-1, 13}, good, "f.bin", "x", "4"}},
		{"bytes 8 to 16 of f.bin, which has 12", net{"s", []int64{-1, 13}, good, "f.bin", "8", "8"}},
		{"bytes -1 to 3", net{"s", []int64{-1, 13}, good, "f.bin", "-1", "4"}},
		{"tensor \"w\": its weights are in ../f.bin, which", net{"s", []int64{-1, 13}, good, "../f.bin.other", "0", "4"}},
	} {
		f := second()
		f["a.onnx"].Data = c.net.onnx()
		sign(f)
		b, err := models.Open(f, "aws")
		switch {
		case c.want == "":
			if err != nil || b.Actions.Batch != 4 {
				t.Errorf("four rows at a time: %v", err)
			}
		case err == nil || !strings.Contains(err.Error(), c.want[:min(len(c.want), 30)]):
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestAnyBytes reads what is no graph: an error, and never a panic.
func TestAnyBytes(t *testing.T) {
	whole := net{"s", []int64{-1, 13}, map[string][]int64{"q": {-1, 6}}, "f.bin", "4", "8"}.onnx()
	rapid.Check(t, func(t *rapid.T) {
		b := slices.Clone(whole)
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		if g, err := models.ReadGraph(b); err == nil && (len(g.Inputs) == 0 || len(g.Outputs) == 0) {
			t.Fatalf("a graph without inputs or outputs: %+v", g)
		}
	})
}

func TestScope(t *testing.T) {
	s := models.Scope{Cloud: "aws", Families: []string{"m5", "c6i.*", "R5*", "g5.xlarge"}}
	for name, want := range map[string]bool{
		"aws/m5/m5.large": true, "aws/m5d/m5d.large": false, "aws/c6i/c6i.large": true, "aws/c6id/c6id.large": false,
		"aws/r5/r5.large": true, "aws/r5b/r5b.large": false, "aws/g5/g5.xlarge": true, "aws/g5/g5.2xlarge": false,
		"gcp/m5/m5.large": false, "AWS/M5/M5.LARGE": true,
	} {
		part := strings.Split(name, "/")
		if got := s.Covers(&policy.InstanceType{Provider: part[0], Family: part[1], Name: part[2]}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
