package qnet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// Names of the graph in its bundle, and of what goes in and out.
const (
	graphName  = "actions.onnx"
	inputName  = "state"
	outputName = "q_values"
)

// A message is a protobuf message that is being written.
type message []byte

func (m *message) number(field protowire.Number, n uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), n)
}

func (m *message) bytes(field protowire.Number, b []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
}

func (m *message) text(field protowire.Number, s string) { m.bytes(field, []byte(s)) }

// What onnx.proto numbers things; it never changes.
const (
	irVersion    = 8
	opset        = 17
	typeFloat    = 1
	attributeInt = 2
	attributeSet = 7 // integers
)

// tensor returns a TensorProto of numbers.
func tensor(name string, values []float32, shape ...int) message {
	var m message
	for _, d := range shape {
		m.number(1, uint64(d))
	}
	m.number(2, typeFloat)
	m.text(8, name)
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	m.bytes(9, raw)
	return m
}

// ends returns a ValueInfoProto of rows of width numbers.
func ends(name string, width int) message {
	var rows, columns, shape, kind, value, m message
	rows.text(2, "batch")
	columns.number(1, uint64(width))
	shape.bytes(1, rows)
	shape.bytes(1, columns)
	kind.number(1, typeFloat)
	kind.bytes(2, shape)
	value.bytes(1, kind)
	m.text(1, name)
	m.bytes(2, value)
	return m
}

// node returns a NodeProto.
func node(op, output string, attributes []message, inputs ...string) message {
	var m message
	for _, in := range inputs {
		m.text(1, in)
	}
	m.text(2, output)
	m.text(3, output)
	m.text(4, op)
	for _, a := range attributes {
		m.bytes(5, a)
	}
	return m
}

// integer returns the AttributeProto of a number, or of a list of one.
func integer(name string, n uint64, list bool) message {
	var m message
	m.text(1, name)
	if list {
		m.number(8, n)
		m.number(20, attributeSet)
		return m
	}
	m.number(3, n)
	m.number(20, attributeInt)
	return m
}

// ONNX returns n as an ONNX graph.
func (n *Net) ONNX() []byte {
	var g message
	transposed := []message{integer("transB", 1, false)}
	gemm := func(k int, name, input string, relu bool) string {
		l := &n.layers[k]
		g.bytes(5, tensor(name+".weight", l.w, l.out, l.in))
		g.bytes(5, tensor(name+".bias", l.b, l.out))
		g.bytes(1, node("Gemm", name, transposed, input, name+".weight", name+".bias"))
		if !relu {
			return name
		}
		g.bytes(1, node("Relu", name+".relu", nil, name))
		return name + ".relu"
	}
	h := gemm(trunk2, "trunk2", gemm(trunk1, "trunk1", inputName, true), true)
	v := gemm(value2, "value2", gemm(value1, "value1", h, true), false)
	a := gemm(advantage2, "advantage2", gemm(advantage1, "advantage1", h, true), false)
	g.bytes(1, node("ReduceMean", "mean", []message{integer("axes", 1, true), integer("keepdims", 1, false)}, a))
	g.bytes(1, node("Sub", "advantage", nil, a, "mean"))
	g.bytes(1, node("Add", outputName, nil, v, "advantage"))
	g.text(2, "actions")
	g.bytes(11, ends(inputName, inputs))
	g.bytes(12, ends(outputName, actions))
	var set, m message
	set.text(1, "")
	set.number(2, opset)
	m.number(1, irVersion)
	m.text(2, "spotter")
	m.bytes(8, set)
	m.bytes(7, g)
	return m
}

// Bundle returns the files of a bundle of t, the manifest last.
func (t *Trained) Bundle() ([]File, error) {
	graph := t.Net.ONNX()
	sum := sha256.Sum256(graph)
	m := models.Manifest{
		Schema: models.SchemaV2, Cloud: catalog.AWS, Families: families(),
		Artifacts: map[string]models.Artifact{"actions": {Path: graphName, SHA256: hex.EncodeToString(sum[:])}},
		Actions: &models.Model{
			Graph: graphName, Features: models.PoolFeaturesQ, FeatureNames: models.FeatureNames(models.PoolFeaturesQ),
			Input: inputName, Outputs: map[string]string{"values": outputName},
		},
		Training: &models.Training{
			Fingerprint: hex.EncodeToString(t.Fingerprint[:]),
			Data: fmt.Sprintf("%d random worlds (%d lessons) on prices generated as %s, seed %d",
				t.Scenarios, t.Lessons, strings.Join(laws, " and "), t.Seed),
			Method: "dueling double Q-learning against the simulator; features on forecasts of the closed form",
		},
		Confidence: 1,
		Metrics:    t.Metrics,
	}
	text, err := json.MarshalIndent(&m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return []File{{graphName, graph}, {models.ManifestName, append(text, '\n')}}, nil
}

// A File is one of a bundle.
type File struct {
	Name string
	Data []byte
}

// families returns all families of the catalog, ascending: features say nothing
// of a family, so that the network is for any.
func families() []string {
	var list []string
	for _, name := range catalog.Types(catalog.AWS) {
		family, _, _ := strings.Cut(name, ".")
		list = append(list, family)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
