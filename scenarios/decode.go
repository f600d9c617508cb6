package scenarios

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/internal/nearest"
	"github.com/spotter-dev/spotter/scenarios/karpenter"
)

// A FieldError is one error in a scenario file. Several are joined in the order of the file.
type FieldError struct {
	File string
	Line int // 0 for an object of a cluster

	// Field is the path of the field, such as "spec.replicas"; empty if the error is not about a
	// field.
	Field   string
	Problem string
}

// Error returns "file:line: field "path": problem".
func (e *FieldError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", at, e.Problem)
	}
	return fmt.Sprintf("%s: field %q: %s", at, e.Field, e.Problem)
}

// InOrder joins errors, ascending by the line that they refer to.
func InOrder(errs []error) error {
	var flat []error
	for _, err := range errs {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			flat = append(flat, many.Unwrap()...)
		} else {
			flat = append(flat, err)
		}
	}
	line := func(err error) int {
		var f *FieldError
		if errors.As(err, &f) {
			return f.Line
		}
		return 0
	}
	slices.SortStableFunc(flat, func(a, b error) int { return cmp.Compare(line(a), line(b)) })
	return errors.Join(flat...)
}

// A document is one object of a file.
type document struct {
	file string
	node *yaml.Node

	// is is the key of describedKinds that contained the object; empty for a manifest.
	is string

	// listed and listedVersion are the kind and version implied by the list that contains the
	// object, for an object that does not state its own.
	listed, listedVersion string

	// unread are the values of known keys that the decoder found but does not read.
	unread []unreadValue

	// pods is the number of pods that a Pod represents whose controller is not in the file; 0 means
	// one.
	pods int32
}

// split splits a file into its documents, without empty ones. It replaces a list, as kubectl prints
// it, by its items.
func split(file string, data []byte) ([]document, error) {
	var docs []document
	dec, from := yaml.NewDecoder(bytes.NewReader(data)), originsOf(data)
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, from.syntaxError(file, data, err)
		}
		if len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
			continue
		}
		d := document{file: file, node: n.Content[0]}
		if line := d.node.Line; from != nil {
			own := 0
			d.file, own = from.at(file, line)
			rebase(d.node, line-own)
		}
		aliases := aliasCheck{open: map[*yaml.Node]bool{}, sizes: map[*yaml.Node]int{}}
		if alias, problem := aliases.check(d.node); alias != nil {
			return nil, &FieldError{File: d.file, Line: alias.Line, Problem: problem}
		}
		described, err := d.described()
		if err != nil {
			return nil, err
		}
		if described == nil {
			described = d.items()
		}
		docs = append(docs, described...)
	}
}

// aliasedMax is the maximum number of values that the aliases of one document may repeat. Small
// files can contain exponentially many, and every reader of a document follows its aliases.
const aliasedMax = 1_000_000

// An aliasCheck finds aliases that cannot be followed.
type aliasCheck struct {
	open    map[*yaml.Node]bool // the anchored values that contain the current one
	sizes   map[*yaml.Node]int  // number of values in each anchored value, with its aliases expanded
	visited int                 // number of values so far, including those repeated by aliases
	aliased int                 // number of values repeated by aliases
}

// check returns the first alias in n that is inside the value that it refers to, or that exceeds
// aliasedMax, and a description of the problem; nil if there is no such alias.
func (c *aliasCheck) check(n *yaml.Node) (alias *yaml.Node, problem string) {
	if n.Kind == yaml.AliasNode {
		if c.open[n.Alias] {
			return n, fmt.Sprintf("the value of anchor %q contains itself", n.Value)
		}
		c.visited += c.sizes[n.Alias]
		if c.aliased += c.sizes[n.Alias]; c.aliased > aliasedMax {
			return n, fmt.Sprintf("the aliases up to %q repeat more than %d values", n.Value, aliasedMax)
		}
		return nil, ""
	}
	before := c.visited
	c.visited++
	if n.Anchor != "" {
		c.open[n] = true
		defer func() {
			delete(c.open, n)
			c.sizes[n] = c.visited - before
		}()
	}
	for _, child := range n.Content {
		if alias, problem := c.check(child); alias != nil {
			return alias, problem
		}
	}
	return nil, ""
}

// items returns the objects of a list and of nested lists. It returns the document itself if it is
// not a list.
func (d *document) items() (docs []document) {
	kind, isList := strings.CutSuffix(d.scalar("kind"), "List")
	items := d.at([]string{"items"})
	if !isList || items == nil && kind != "" {
		return []document{*d}
	}
	if items == nil {
		return nil
	}
	for _, x := range items.Content {
		item := document{file: d.file, node: resolve(x)}
		if kind != "" {
			item.listed, item.listedVersion = kind, d.scalar("apiVersion")
		}
		docs = append(docs, item.items()...)
	}
	return docs
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: line (\d+): (.*)`) })

// problem returns an error about the field at path.
func (d *document) problem(path []string, format string, args ...any) error {
	return &FieldError{d.file, d.line(path), joinPath(path), fmt.Sprintf(format, args...)}
}

// line returns the line of the field at path, or of the deepest part of the path that exists in the
// document.
func (d *document) line(path []string) int {
	n := d.node
	for _, key := range path {
		next := child(n, key)
		if next == nil {
			break
		}
		n = next
	}
	return n.Line
}

func joinPath(path []string) string {
	return strings.ReplaceAll(strings.Join(path, "."), ".[", "[")
}

// child returns the value under key, or nil. For a list, key is "[i]", where i is the index from 0.
func child(n *yaml.Node, key string) *yaml.Node {
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		i, err := strconv.Atoi(strings.Trim(key, "[]"))
		if err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// scalar returns the text at path, or "" if the document has no text there.
func (d *document) scalar(path ...string) string {
	n := d.at(path)
	if n == nil {
		return ""
	}
	return n.Value
}

// at returns the value at path, or nil.
func (d *document) at(path []string) *yaml.Node {
	n := d.node
	for _, key := range path {
		if n = child(n, key); n == nil {
			return nil
		}
	}
	return resolve(n)
}

// A decoder reads one document into a Go value, strictly: an unknown key is an error, and so is a
// duplicate key.
type decoder struct {
	doc    *document
	fields map[reflect.Type]map[string][]int
	errs   []error

	// openStatus makes the decoder ignore unknown keys of the status, unless they look mistyped,
	// since the status may come from any version of Kubernetes.
	openStatus bool

	// skipStatus makes the decoder ignore the status of the object, which describes another
	// cluster.
	skipStatus bool
}

// openEnded marks the type of an object of another project, of which only some keys are read.
type openEnded interface{ openEnded() }

// into reads the document into v, a pointer to a struct with JSON tags.
func (d *decoder) into(v any) error {
	d.value(d.doc.node, reflect.ValueOf(v).Elem(), nil)
	return errors.Join(d.errs...)
}

func (d *decoder) fail(n *yaml.Node, path []string, format string, args ...any) {
	d.errs = append(d.errs, &FieldError{d.doc.file, n.Line, joinPath(path), fmt.Sprintf(format, args...)})
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path []string) {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), path)
		return
	}
	if v.Type() == reflect.TypeFor[metav1.FieldsV1]() {
		return // the managers of fields are not needed, and have no fixed keys
	}
	if s, ok := v.Addr().Interface().(scalarReader); ok && n.Kind == yaml.ScalarNode {
		if err := s.readScalar(n.Value); err != nil {
			d.fail(n, path, "%v", err)
		}
		return
	}
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		d.text(n, u, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.leaf(n, v, path)
	}
}

// A scalarReader parses a scalar itself. Its error states the expected and the actual value.
type scalarReader interface{ readScalar(text string) error }

// text decodes a scalar into a type that implements json.Unmarshaler.
func (d *decoder) text(n *yaml.Node, u json.Unmarshaler, path []string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "want a value, got a %s", kindOf(n))
		return
	}
	raw := []byte(n.Value)
	if number := n.Tag == "!!int" || n.Tag == "!!float"; !number || !json.Valid(raw) {
		raw, _ = json.Marshal(n.Value)
	}
	err := u.UnmarshalJSON(raw)
	if err == nil {
		return
	}
	switch u.(type) {
	case *metav1.Duration:
		d.fail(n, path, "want a duration such as 90s, 15m or 24h, got %q", n.Value)
	case *resource.Quantity:
		d.fail(n, path, "want a quantity such as 2, 500m or 4Gi, got %q", n.Value)
	case *karpenter.NillableDuration:
		d.fail(n, path, "want a duration such as 90s, 15m or 24h, or Never, got %q", n.Value)
	case *metav1.Time:
		d.fail(n, path, "want a time such as 2026-01-31T00:00:00Z, got %q", n.Value)
	default:
		d.fail(n, path, "%q is not understood: %v", n.Value, err)
	}
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, path []string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "want a mapping, got %s", got(n))
		return
	}
	known := d.fieldsOf(v.Type())
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := append(slices.Clip(path), key.Value)
		if first, twice := seen[key.Value]; twice {
			d.fail(key, at, "is set twice, first on line %d", first)
			continue
		}
		seen[key.Value] = key.Line
		index, ok := known[key.Value]
		if d.skipStatus && len(path) == 0 && key.Value == "status" {
			continue
		}
		_, open := v.Addr().Interface().(openEnded)
		if open = open || d.openStatus && len(path) > 0 && path[0] == "status"; open && !ok {
			if _, mistyped := nearest.Of(key.Value, slices.Sorted(maps.Keys(known))); !mistyped {
				continue
			}
		}
		if !ok {
			d.fail(key, at, "unknown key%s", suggestion(key.Value, known))
			continue
		}
		if index == nil {
			use := v.Addr().Interface().(partlyRead).unreadKeys()[key.Value]
			d.doc.unread = append(d.doc.unread, unreadValue{use, at, resolve(n.Content[i+1])})
			continue
		}
		d.value(n.Content[i+1], v.FieldByIndex(index), at)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path []string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "want a mapping, got %s", got(n))
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Content)/2))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := append(slices.Clip(path), key.Value)
		k := reflect.ValueOf(key.Value).Convert(v.Type().Key())
		if v.MapIndex(k).IsValid() {
			d.fail(key, at, "is set twice")
			continue
		}
		x := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], x, at)
		v.SetMapIndex(k, x)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path []string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "want a list, got %s", got(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, x := range n.Content {
		d.value(x, v.Index(i), append(slices.Clip(path), Index(i)))
	}
}

func (d *decoder) leaf(n *yaml.Node, v reflect.Value, path []string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "want a single value, got a %s", kindOf(n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		if n.Tag == "!!str" || n.Tag == "!!timestamp" {
			v.SetString(n.Value)
			return
		}
		d.fail(n, path, "want a string, got %s; put it in quotes", got(n))
	case reflect.Bool:
		if n.Tag == "!!bool" {
			v.SetBool(n.Value == "true" || n.Value == "True" || n.Value == "TRUE")
			return
		}
		d.fail(n, path, "want true or false, got %s", got(n))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x, err := strconv.ParseInt(n.Value, 0, 64)
		if n.Tag == "!!int" && err == nil && !v.OverflowInt(x) {
			v.SetInt(x)
			return
		}
		if n.Tag == "!!int" && err == nil || n.Tag != "!!str" && errors.Is(err, strconv.ErrRange) {
			d.fail(n, path, "%s is too large a number", n.Value)
			return
		}
		d.fail(n, path, "want an integer, got %s", got(n))
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(n.Value, 64)
		if (n.Tag == "!!int" || n.Tag == "!!float") && err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
			v.SetFloat(x)
			return
		}
		d.fail(n, path, "want a number, got %s", got(n))
	default:
		d.fail(n, path, "a %v cannot be read", v.Type())
	}
}

// fieldsOf maps the JSON names of a struct's fields to their index, and keys that are not read to
// nil.
func (d *decoder) fieldsOf(t reflect.Type) map[string][]int {
	if f, ok := d.fields[t]; ok {
		return f
	}
	all := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && (name == "" || options == "inline") ||
			named(t, f.Index[:len(f.Index)-1]) {
			continue
		}
		if name != "" {
			all[name] = f.Index
		}
	}
	if x, partly := reflect.New(t).Interface().(partlyRead); partly {
		for name := range x.unreadKeys() {
			all[name] = nil
		}
	}
	d.fields[t] = all
	return all
}

// named reports whether one of the structs on the path to an embedded field has a JSON key of its
// own, so that the field is below that key.
func named(t reflect.Type, index []int) bool {
	for k := range index {
		f := t.FieldByIndex(index[:k+1])
		if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && options != "inline" {
			return true
		}
	}
	return false
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "single value"
}

func got(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return "a " + kindOf(n)
	}
	return strconv.Quote(n.Value)
}

// suggestion returns a hint with the most similar known key if one is similar enough, or else with
// all of up to 20 known keys.
func suggestion[T any](key string, known map[string]T) string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	if best, ok := nearest.Of(key, names); ok {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	if len(names) > 20 || len(names) == 0 {
		return ""
	}
	return "; known are " + strings.Join(names, ", ")
}
