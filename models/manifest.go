package models

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// ManifestName is the file of a bundle that describes all others.
const ManifestName = "MODEL_MANIFEST.json"

// The schemas of a manifest. The first is that of the SpotVortex agent, whose graphs have fixed
// names and features; the second names the features of its graphs.
const (
	SchemaV1 = "v1"
	SchemaV2 = "v2"
)

// A Manifest is the metadata of a bundle.
type Manifest struct {
	Schema    string `json:"schema_version"`
	Generated string `json:"generated_at"`

	Cloud    string   `json:"cloud"`
	Families []string `json:"supported_instance_families"`

	// ScopeAgain repeats cloud and families, as the agent's manifests do.
	ScopeAgain *struct {
		Cloud    string   `json:"cloud"`
		Families []string `json:"supported_instance_families"`
	} `json:"model_scope,omitempty"`

	// Artifacts are the files and their checksums. Older manifests of the first schema name them
	// models.
	Artifacts map[string]Artifact `json:"artifacts,omitempty"`
	Models    map[string]Artifact `json:"models,omitempty"`

	// Parity is the result of a check by the exporting program.
	Parity json.RawMessage `json:"parity,omitempty"`

	// The following fields only exist in the second schema.

	// Forecaster scores markets, Actions values the actions of a pool. One of them may be nil.
	Forecaster *Model `json:"forecaster,omitempty"`
	Actions    *Model `json:"actions,omitempty"`

	Training *Training `json:"training,omitempty"`

	// Confidence in (0, 1] is the confidence of forecasts in scope. A higher value lets guardrails
	// act on them sooner.
	Confidence float64 `json:"confidence,omitempty"`

	// Calibration compares forecast and observed frequencies for each named score. Metrics are
	// measured on held-out data.
	Calibration map[string][]Bin   `json:"calibration,omitempty"`
	Metrics     map[string]float64 `json:"metrics,omitempty"`
}

// An Artifact is a file of a bundle.
type Artifact struct {
	// Path is relative to the manifest, separated by slashes.
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// A Model describes the inputs and outputs of a graph.
type Model struct {
	// Graph is the artefact that contains the graph.
	Graph string `json:"graph"`

	// Features is the builder of features and its version, such as "spotvortex-market/1".
	// FeatureNames are the names of its features, in order: a bundle that was trained on other
	// features than this program builds is rejected.
	Features     string   `json:"features"`
	FeatureNames []string `json:"feature_names"`

	// Normalisation is applied to each feature after it is built. nil leaves features unchanged.
	Normalisation *Normalisation `json:"normalisation,omitempty"`

	Input string `json:"input"`

	// Outputs maps names to tensors: capacity and runtime for a forecaster, optionally capacity_6h
	// and runtime_6h, and values for action values.
	Outputs map[string]string `json:"outputs"`

	// Labels describe what each output was trained to forecast.
	Labels map[string]string `json:"labels,omitempty"`

	// HorizonHours is the time that a forecaster's scores cover. If positive, its runtime score is
	// a probability, and the hazard is -ln(1 - runtime)/horizon.
	HorizonHours float64 `json:"horizon_hours,omitempty"`

	// HazardFamilies are the families, in the format of the scope, whose hazard is derived from the
	// runtime score; none means all in scope. Other families have the hazard of the closed form,
	// because no recorded data shows that the scores are better.
	HazardFamilies []string `json:"hazard_families,omitempty"`
}

// A Normalisation maps x to (x - Mean)/Scale for each feature.
type Normalisation struct {
	Mean  []float64 `json:"mean"`
	Scale []float64 `json:"scale"`
}

// Training describes how a bundle was made.
type Training struct {
	// Fingerprint is the hexadecimal SHA-256 of the data set.
	Fingerprint string `json:"fingerprint"`
	Data        string `json:"data"`
	Method      string `json:"method,omitempty"`
}

// A Bin is a range of scores: the number of cases, their mean score, and the observed frequency.
type Bin struct {
	Cases     int     `json:"cases"`
	Predicted float64 `json:"predicted"`
	Observed  float64 `json:"observed"`
}

// Names of the two graphs in a manifest of the first schema.
const (
	forecasterV1 = "tft.onnx"
	actionsV1    = "rl_policy.onnx"
)

// readManifest reads the manifest of fsys. It only rejects unknown keys in the second schema,
// because others may extend the first one.
func readManifest(fsys fs.FS) (*Manifest, []byte, error) {
	file, err := fs.ReadFile(fsys, ManifestName)
	if err != nil {
		return nil, nil, err
	}
	m := &Manifest{}
	if err := decode(file, m, false); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	if m.Schema == SchemaV2 {
		m = &Manifest{}
		if err := decode(file, m, true); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", ManifestName, err)
		}
	}
	if err := m.complete(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	return m, file, nil
}

func decode(file []byte, into any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(file))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind its end")
	}
	return nil
}

// complete checks the manifest, and sets the fields of the second schema in a manifest of the first
// one.
func (m *Manifest) complete() error {
	switch m.Schema {
	case SchemaV1:
		if m.Artifacts == nil {
			m.Artifacts, m.Models = m.Models, nil
		}
		m.Forecaster, m.Actions, m.Confidence = modelsV1()
	case SchemaV2:
		if m.Models != nil {
			return errors.New("models: the second schema calls them artifacts")
		}
		if err := m.checkV2(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("schema_version %q is neither %s nor %s", m.Schema, SchemaV1, SchemaV2)
	}
	if len(m.Artifacts) == 0 {
		return errors.New("artifacts: the list is empty")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Artifacts)) {
		a := m.Artifacts[name]
		if !fs.ValidPath(a.Path) || a.Path == "." || strings.Contains(a.Path, `\`) {
			return fmt.Errorf("artifacts: %s: path %q is not in the bundle", name, a.Path)
		}
		if sum, err := hex.DecodeString(a.SHA256); err != nil || len(sum) != 32 {
			return fmt.Errorf("artifacts: %s: sha256 %q is no SHA-256 in hex", name, a.SHA256)
		}
	}
	return m.checkScope()
}

// modelsV1 returns the models of every manifest of the first schema.
func modelsV1() (forecaster, actions *Model, confidence float64) {
	return &Model{
			Graph: forecasterV1, Features: MarketFeaturesV1, Input: "input",
			Outputs: map[string]string{outputCapacity: "capacity_score", outputRuntime: "runtime_score"},
		}, &Model{
			Graph: actionsV1, Features: PoolFeaturesV1, Input: "state",
			Outputs: map[string]string{outputValues: "q_values"},
		}, 1
}

func (m *Manifest) checkScope() error {
	if m.Cloud == "" {
		return errors.New("cloud: it is missing")
	}
	if len(m.Families) == 0 {
		return errors.New("supported_instance_families: the list is empty")
	}
	if slices.Contains(m.Families, "") || slices.Contains(m.Families, "*") {
		return errors.New("supported_instance_families: a token is empty")
	}
	again := m.ScopeAgain
	if again == nil {
		return nil
	}
	if again.Cloud != m.Cloud {
		return fmt.Errorf("model_scope: cloud %q is not %q", again.Cloud, m.Cloud)
	}
	if !slices.Equal(slices.Sorted(slices.Values(again.Families)), slices.Sorted(slices.Values(m.Families))) {
		return errors.New("model_scope: its families are not supported_instance_families")
	}
	return nil
}

// checkV2 checks the fields that only the second schema has.
func (m *Manifest) checkV2() error {
	if m.Forecaster == nil && m.Actions == nil {
		return errors.New("forecaster, actions: there is neither")
	}
	if !(m.Confidence > 0 && m.Confidence <= 1) {
		return fmt.Errorf("confidence: %v is not in (0, 1]", m.Confidence)
	}
	if m.Training == nil || m.Training.Data == "" {
		return errors.New("training: it does not say what data the bundle was made from")
	}
	if sum, err := hex.DecodeString(m.Training.Fingerprint); err != nil || len(sum) != 32 {
		return fmt.Errorf("training: fingerprint %q is no SHA-256 in hex", m.Training.Fingerprint)
	}
	for name, bins := range m.Calibration {
		for i, b := range bins {
			if b.Cases < 0 || !isScore(b.Predicted) || !isScore(b.Observed) {
				return fmt.Errorf("calibration: %s: bin %d is not counts and shares", name, i+1)
			}
		}
	}
	if m.Forecaster != nil {
		if err := m.Forecaster.check(marketNames, []string{outputCapacity, outputRuntime}, outputCapacity6,
			outputRuntime6); err != nil {
			return fmt.Errorf("forecaster: %w", err)
		}
	}
	if m.Actions != nil {
		if err := m.Actions.check(poolNames, []string{outputValues}); err != nil {
			return fmt.Errorf("actions: %w", err)
		}
	}
	return nil
}

func isScore(x float64) bool { return x >= 0 && x <= 1 }

// check checks a model. Its features must be those of one of builders. It must have outputs, and
// may have others.
func (m *Model) check(builders map[string][]string, outputs []string, others ...string) error {
	names, ok := builders[m.Features]
	switch {
	case m.Graph == "":
		return errors.New("graph: it is missing")
	case !ok:
		return fmt.Errorf("features: %q is not known here, only %s", m.Features,
			strings.Join(slices.Sorted(maps.Keys(builders)), ", "))
	case !slices.Equal(m.FeatureNames, names):
		return fmt.Errorf("feature_names: %q are not those of %s, which are %q", m.FeatureNames, m.Features, names)
	case m.Input == "":
		return errors.New("input: it is missing")
	case !(m.HorizonHours >= 0):
		return fmt.Errorf("horizon_hours: %v is negative", m.HorizonHours)
	case len(m.HazardFamilies) > 0 && m.HorizonHours == 0:
		return errors.New("hazard_families: without horizon_hours no hazard is taken from a score")
	case slices.Contains(m.HazardFamilies, "") || slices.Contains(m.HazardFamilies, "*"):
		return errors.New("hazard_families: a token is empty")
	}
	for _, name := range outputs {
		if m.Outputs[name] == "" {
			return fmt.Errorf("outputs: %s is missing", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		if !slices.Contains(outputs, name) && !slices.Contains(others, name) {
			return fmt.Errorf("outputs: there are %d and one is %s, want %s", len(m.Outputs), name,
				strings.Join(outputs, " and "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		if m.Outputs[name] == "" {
			return fmt.Errorf("labels: %s is not an output", name)
		}
	}
	return m.Normalisation.check(len(names))
}

func (n *Normalisation) check(features int) error {
	if n == nil {
		return nil
	}
	if len(n.Mean) != features || len(n.Scale) != features {
		return fmt.Errorf("normalisation: %d means and %d scales, want %d of each", len(n.Mean), len(n.Scale), features)
	}
	for i, s := range n.Scale {
		if !(s > 0) {
			return fmt.Errorf("normalisation: scale %d, %v, is not positive", i+1, s)
		}
	}
	return nil
}

// artifact returns the entry of a file: by its path, or else ignoring case by its path, its name in
// the manifest or the last element of its path.
func (m *Manifest) artifact(file string) (Artifact, bool) {
	names := slices.Sorted(maps.Keys(m.Artifacts))
	for _, same := range []func(name string, a Artifact) bool{
		func(_ string, a Artifact) bool { return a.Path == file },
		func(name string, a Artifact) bool {
			return strings.EqualFold(a.Path, file) || strings.EqualFold(name, file)
		},
		func(_ string, a Artifact) bool { return strings.EqualFold(path.Base(a.Path), path.Base(file)) },
	} {
		for _, name := range names {
			if a := m.Artifacts[name]; same(name, a) {
				return a, true
			}
		}
	}
	return Artifact{}, false
}
