package models

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Tensor is an input or an output of a graph.
type Tensor struct {
	Name string

	// Float reports whether the elements are float32, the only type that is supported.
	Float bool

	// Shape contains the size of each dimension, -1 for any size.
	Shape []int64
}

// String formats the tensor like "state [any 13]".
func (t Tensor) String() string {
	words := make([]string, len(t.Shape))
	for i, n := range t.Shape {
		if words[i] = strconv.FormatInt(n, 10); n < 0 {
			words[i] = "any"
		}
	}
	kind := ""
	if !t.Float {
		kind = " not of float32"
	}
	return fmt.Sprintf("%s [%s]%s", t.Name, strings.Join(words, " "), kind)
}

// A Graph is the part of an ONNX file that is read without a runtime: inputs and outputs, and the
// names of the other files with weights.
type Graph struct {
	Inputs, Outputs []Tensor

	// Sidecars are the files with weights as named in the graph, in ascending order.
	Sidecars []string
}

// ReadGraph parses an ONNX file.
func ReadGraph(file []byte) (*Graph, error) {
	g := &Graph{}
	w := walk{weights: func(at external) ([]byte, error) {
		if !slices.Contains(g.Sidecars, at.location) {
			g.Sidecars = append(g.Sidecars, at.location)
		}
		return nil, nil
	}}
	if _, err := w.message(modelProto, file); err != nil {
		return nil, fmt.Errorf("not an ONNX graph: %w", err)
	}
	slices.Sort(g.Sidecars)
	body, err := only(file, fieldGraph)
	if err != nil {
		return nil, fmt.Errorf("not an ONNX graph: %w", err)
	}
	weights := map[string]bool{}
	err = each(body, func(field protowire.Number, value []byte) error {
		switch field {
		case fieldInitializer:
			name, err := only(value, fieldTensorName)
			weights[string(name)] = true
			return err
		case fieldInput, fieldOutput:
			t, err := readTensor(value)
			if err != nil {
				return err
			}
			if field == fieldInput {
				g.Inputs = append(g.Inputs, t)
			} else {
				g.Outputs = append(g.Outputs, t)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("not an ONNX graph: %w", err)
	}
	// Older files also list weights as inputs, because they may be replaced.
	g.Inputs = slices.DeleteFunc(g.Inputs, func(t Tensor) bool { return weights[t.Name] })
	if len(g.Inputs) == 0 || len(g.Outputs) == 0 {
		return nil, errors.New("not an ONNX graph: it has no inputs or no outputs")
	}
	return g, nil
}

// Field numbers in onnx.proto, which never change.
const (
	fieldGraph       = 7  // of a model
	fieldInitializer = 5  // of a graph
	fieldInput       = 11 // of a graph
	fieldOutput      = 12 // of a graph
	fieldTensorName  = 8  // of a tensor
	fieldRaw         = 9  // of a tensor: its elements, little-endian
	fieldExternal    = 13 // of a tensor: the location of external elements
	fieldLocation    = 14 // of a tensor: 1 if the elements are external

	elementFloat = 1
)

// readTensor parses a ValueInfoProto.
func readTensor(b []byte) (Tensor, error) {
	var t Tensor
	name, err := only(b, 1)
	if err != nil {
		return t, err
	}
	t.Name = string(name)
	kind, err := only(b, 2)
	if err != nil {
		return t, err
	}
	tensor, err := only(kind, 1)
	if err != nil || tensor == nil {
		return t, err
	}
	element, err := number(tensor, 1)
	if err != nil {
		return t, err
	}
	t.Float = element == elementFloat
	shape, err := only(tensor, 2)
	if err != nil {
		return t, err
	}
	return t, each(shape, func(field protowire.Number, dim []byte) error {
		if field != 1 {
			return nil
		}
		n, err := number(dim, 1)
		if n <= 0 {
			n = -1
		}
		t.Shape = append(t.Shape, n)
		return err
	})
}

// A kind is a type of message in onnx.proto that may contain tensors.
type kind uint8

const (
	skipped kind = iota
	modelProto
	graphProto
	nodeProto
	attributeProto
	functionProto
	sparseProto
	trainingProto
	tensorProto
)

// within maps the fields of a message to the types of messages that they contain.
var within = map[kind]map[protowire.Number]kind{
	modelProto:     {7: graphProto, 20: trainingProto, 25: functionProto},
	graphProto:     {1: nodeProto, 5: tensorProto, 15: sparseProto},
	nodeProto:      {5: attributeProto},
	attributeProto: {5: tensorProto, 6: graphProto, 10: tensorProto, 11: graphProto, 22: sparseProto, 23: sparseProto},
	functionProto:  {7: nodeProto, 11: attributeProto},
	sparseProto:    {1: tensorProto, 2: tensorProto},
	trainingProto:  {1: graphProto, 2: graphProto},
}

// An external is the location of the elements of a tensor.
type external struct {
	location       string
	offset, length int64 // length -1: to the end
}

// A walk copies a graph and inlines the elements that are stored in other files.
type walk struct {
	weights func(external) ([]byte, error)
}

// deepest is the maximum depth of nested messages.
const deepest = 100

func (w *walk) message(k kind, b []byte) ([]byte, error) { return w.copied(k, b, 0) }

func (w *walk) copied(k kind, b []byte, depth int) ([]byte, error) {
	if depth > deepest {
		return nil, fmt.Errorf("messages are nested more than %d deep", deepest)
	}
	if k == tensorProto {
		return w.tensor(b)
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		field, form, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(field, form, b[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		inner := within[k][field]
		if inner == skipped || form != protowire.BytesType {
			out = append(out, b[:n+size]...)
			b = b[n+size:]
			continue
		}
		value, _ := protowire.ConsumeBytes(b[n:])
		value, err := w.copied(inner, value, depth+1)
		if err != nil {
			return nil, err
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, field, form), value)
		b = b[n+size:]
	}
	return out, nil
}

// tensor copies a TensorProto.
func (w *walk) tensor(b []byte) ([]byte, error) {
	at := external{length: -1}
	found := false
	var name string
	out := make([]byte, 0, len(b))
	for rest := b; len(rest) > 0; {
		field, form, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(field, form, rest[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		switch {
		case field == fieldExternal && form == protowire.BytesType:
			entry, _ := protowire.ConsumeBytes(rest[n:])
			if err := at.read(entry); err != nil {
				return nil, err
			}
			found = true
		case field == fieldLocation:
		default:
			if field == fieldTensorName && form == protowire.BytesType {
				value, _ := protowire.ConsumeBytes(rest[n:])
				name = string(value)
			}
			out = append(out, rest[:n+size]...)
		}
		rest = rest[n+size:]
	}
	if !found {
		return b, nil
	}
	if at.location == "" {
		return nil, fmt.Errorf("tensor %q has its weights elsewhere and does not say where", name)
	}
	raw, err := w.weights(at)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return protowire.AppendBytes(protowire.AppendTag(out, fieldRaw, protowire.BytesType), raw), nil
}

// read parses one entry of a tensor's external data.
func (at *external) read(entry []byte) error {
	key, err := only(entry, 1)
	if err != nil {
		return err
	}
	value, err := only(entry, 2)
	if err != nil {
		return err
	}
	switch string(key) {
	case "location":
		at.location = string(value)
	case "offset":
		at.offset, err = strconv.ParseInt(string(value), 10, 64)
	case "length":
		at.length, err = strconv.ParseInt(string(value), 10, 64)
	}
	if err != nil {
		return fmt.Errorf("external data: %s %q is not a number", key, value)
	}
	return nil
}

// of returns the elements from the content of their file.
func (at external) of(file []byte) ([]byte, error) {
	size := int64(len(file))
	length := at.length
	if length < 0 {
		length = size - at.offset
	}
	if at.offset < 0 || at.offset > size || length < 0 || length > size-at.offset {
		return nil, fmt.Errorf("its weights are bytes %d to %d of %s, which has %d", at.offset, at.offset+length,
			at.location, size)
	}
	return file[at.offset : at.offset+length], nil
}

// joined returns file with the weights of its sidecars inlined, so that a runtime needs no file,
// and only sees bytes that were verified.
func joined(file []byte, sidecar func(location string) ([]byte, bool)) ([]byte, error) {
	w := walk{weights: func(at external) ([]byte, error) {
		data, ok := sidecar(at.location)
		if !ok {
			return nil, fmt.Errorf("its weights are in %s, which the manifest does not list", path.Clean(at.location))
		}
		return at.of(data)
	}}
	return w.message(modelProto, file)
}

// each calls f for every length-delimited field of b, and for every varint field with its value as
// eight bytes.
func each(b []byte, f func(field protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		field, form, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(field, form, b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		var value []byte
		switch form {
		case protowire.BytesType:
			value, _ = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			x, _ := protowire.ConsumeVarint(b)
			value = binary.LittleEndian.AppendUint64(nil, x)
		}
		if err := f(field, value); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// only returns the last value of a field, nil if the field is absent.
func only(b []byte, field protowire.Number) (value []byte, err error) {
	err = each(b, func(f protowire.Number, v []byte) error {
		if f == field {
			value = v
		}
		return nil
	})
	return value, err
}

// number returns the last value of a field as a number, 0 if the field is absent.
func number(b []byte, field protowire.Number) (int64, error) {
	v, err := only(b, field)
	if err != nil || len(v) != 8 {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(v)), nil
}
