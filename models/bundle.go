package models

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A Bundle is a manifest and the graphs that it describes. All of its files were verified.
type Bundle struct {
	Manifest *Manifest
	Scope    Scope

	// Fingerprint is the SHA-256 of the manifest, which covers every file.
	Fingerprint string

	// Forecaster and Actions are nil if the bundle does not have them.
	Forecaster, Actions *Net

	// Files are the artefacts in ascending order of paths.
	Files []File
}

// A File is a verified artefact.
type File struct {
	Path  string
	Bytes int
}

// A Net is a graph with all information that is necessary to run it.
type Net struct {
	Model *Model
	Graph *Graph

	// ONNX is the content of the graph's file, including its weights.
	ONNX []byte

	// Row is the shape of one input row, Width the number of its elements.
	Row   []int64
	Width int

	// Outputs are the tensors that are read, in the order of [Net.Names]. Widths are the numbers of
	// elements of each output per row.
	Outputs []Tensor
	Widths  []int

	// Batch is the number of rows of one call, 0 if it may be any number.
	Batch int
}

// A ScopeError reports that a bundle was made for a cloud other than the one it is used on.
type ScopeError struct{ Cloud, Want string }

func (e *ScopeError) Error() string {
	return fmt.Sprintf("%s: cloud: the bundle is for %q and not for %q", ManifestName, e.Cloud, e.Want)
}

// Open reads and verifies the bundle in fsys for use on cloud; an empty cloud accepts any bundle.
// It rejects the whole bundle if a single file differs from its description in the manifest.
func Open(fsys fs.FS, cloud string) (*Bundle, error) {
	m, raw, err := readManifest(fsys)
	if err != nil {
		return nil, err
	}
	if cloud != "" && !strings.EqualFold(m.Cloud, cloud) {
		return nil, &ScopeError{m.Cloud, cloud}
	}
	files, err := readArtifacts(fsys, m)
	if err != nil {
		return nil, err
	}
	if err := checkEquations(fsys); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	b := &Bundle{Manifest: m, Scope: Scope{m.Cloud, m.Families}, Fingerprint: hex.EncodeToString(sum[:])}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		b.Files = append(b.Files, File{p, len(files[p])})
	}
	if m.Forecaster != nil {
		if b.Forecaster, err = newNet(m, m.Forecaster, files); err != nil {
			return nil, err
		}
	}
	if m.Actions != nil {
		if b.Actions, err = newNet(m, m.Actions, files); err != nil {
			return nil, err
		}
		if w := b.Actions.Widths[0]; w != ActionCount {
			return nil, fmt.Errorf("%s: output %s: one value for each of %d actions is wanted", m.Actions.Graph,
				b.Actions.Outputs[0], ActionCount)
		}
	}
	return b, nil
}

// GivesHazard reports whether the hazard in markets of an instance type is derived from the
// forecaster's score. In other markets it is that of the closed form, even if the bundle scores
// them.
func (b *Bundle) GivesHazard(t *policy.InstanceType) bool {
	if b.Forecaster == nil || b.Forecaster.Model.HorizonHours == 0 {
		return false
	}
	hazards := Scope{b.Scope.Cloud, b.Forecaster.Model.HazardFamilies}
	return b.Scope.Covers(t) && (len(hazards.Families) == 0 || hazards.Covers(t))
}

// readArtifacts reads and verifies every file that the manifest lists, by path.
func readArtifacts(fsys fs.FS, m *Manifest) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, name := range slices.Sorted(maps.Keys(m.Artifacts)) {
		a := m.Artifacts[name]
		data, err := fs.ReadFile(fsys, a.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: the manifest lists it and it is not there", a.Path)
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); !strings.EqualFold(got, a.SHA256) {
			return nil,
				fmt.Errorf("%s: its SHA-256 is %s and the manifest says %s: the file was changed, or the manifest is another bundle's", a.Path, got, a.SHA256)
		}
		files[a.Path] = data
	}
	return files, nil
}

// identities are the equations that the SpotVortex agent reads with its graphs, and the equations
// that do not change the scores.
var identities = map[string]string{
	"pysr/calibration_equation.txt": "capacity_score",
	"pysr/context_equation.txt":     "pysr_calibrated_risk",
}

// checkEquations rejects a bundle whose equations would change the scores, because equations are
// not applied here.
func checkEquations(fsys fs.FS) error {
	for _, p := range slices.Sorted(maps.Keys(identities)) {
		text, err := fs.ReadFile(fsys, p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if got := strings.TrimSpace(string(text)); got != identities[p] {
			return fmt.Errorf("%s: the equation %q is not supported, only %q, which changes nothing", p, got, identities[p])
		}
	}
	return nil
}

// newNet reads the graph of a model and checks it against the manifest.
func newNet(m *Manifest, model *Model, files map[string][]byte) (*Net, error) {
	a, ok := m.artifact(model.Graph)
	if !ok {
		return nil, fmt.Errorf("%s: artifacts: %s is missing", ManifestName, model.Graph)
	}
	n := &Net{Model: model, Row: rowShapes[model.Features], Width: 1}
	for _, d := range n.Row {
		n.Width *= int(d)
	}
	var err error
	if n.Graph, err = ReadGraph(files[a.Path]); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Path, err)
	}
	n.ONNX, err = joined(files[a.Path], func(location string) ([]byte, bool) {
		sidecar, ok := m.artifact(path.Join(path.Dir(a.Path), location))
		return files[sidecar.Path], ok
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Path, err)
	}
	if err := n.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Path, err)
	}
	return n, nil
}

// Names returns the names of the outputs in the order in which they are read.
func (n *Net) Names() []string { return slices.Sorted(maps.Keys(n.Model.Outputs)) }

// check compares the graph with the model: names, shapes, and the number of rows.
func (n *Net) check() error {
	want := append([]int64{-1}, n.Row...)
	if len(n.Graph.Inputs) != 1 || n.Graph.Inputs[0].Name != n.Model.Input {
		return fmt.Errorf("its inputs are %v, want %s alone", n.Graph.Inputs, Tensor{n.Model.Input, true, want})
	}
	in := n.Graph.Inputs[0]
	if !in.Float || len(in.Shape) != len(want) {
		return fmt.Errorf("its input is %s, want %s", in, Tensor{in.Name, true, want})
	}
	for i, d := range in.Shape[1:] {
		if d != -1 && d != n.Row[i] {
			return fmt.Errorf("its input is %s, want %s", in, Tensor{in.Name, true, want})
		}
	}
	n.Batch = int(max(0, in.Shape[0]))
	for _, name := range n.Names() {
		tensor := n.Model.Outputs[name]
		i := slices.IndexFunc(n.Graph.Outputs, func(t Tensor) bool { return t.Name == tensor })
		if i < 0 {
			return fmt.Errorf("it has no output %s, only %v", tensor, n.Graph.Outputs)
		}
		width, err := n.width(n.Graph.Outputs[i])
		if err != nil {
			return err
		}
		n.Outputs, n.Widths = append(n.Outputs, n.Graph.Outputs[i]), append(n.Widths, width)
	}
	return nil
}

// width returns the number of elements of an output per row.
func (n *Net) width(t Tensor) (int, error) {
	if !t.Float || len(t.Shape) == 0 || len(t.Shape) > 3 {
		return 0, fmt.Errorf("its output %s is not rows of numbers", t)
	}
	if rows := t.Shape[0]; rows != -1 && n.Batch > 0 && rows != int64(n.Batch) {
		return 0, fmt.Errorf("its output %s has not as many rows as its input %s", t, n.Graph.Inputs[0])
	}
	width := int64(1)
	for _, d := range t.Shape[1:] {
		if d < 1 || d > 1024 || width*d > 1024 {
			return 0, fmt.Errorf("its output %s does not say how many numbers a row has, or more than 1024", t)
		}
		width *= d
	}
	return int(width), nil
}

// A Session runs a graph. It is safe for concurrent use.
type Session interface {
	// Run evaluates rows consecutive rows of the input in. It writes the numbers of output i to
	// out[i], which must be long enough.
	Run(rows int, in []float32, out [][]float32) error

	Close() error
}
