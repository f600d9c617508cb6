package charts

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// An allowed is the part of a value's schema in values.schema.json that the reference describes.
type allowed struct {
	Type       any
	Enum       []any
	Pattern    string
	Minimum    *json.Number
	Maximum    *json.Number
	MinItems   *json.Number
	MinLength  *json.Number
	Items      *allowed
	Properties map[string]*allowed
}

// reference returns the reference of the chart's values: the permitted values, the default and the
// purpose of each.
func reference(values, schemaText []byte) (File, error) {
	all, err := Values(values)
	if err != nil {
		return File{}, err
	}
	var root allowed
	if err := json.Unmarshal(schemaText, &root); err != nil {
		return File{}, fmt.Errorf("reading values.schema.json: %w", err)
	}
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, v := range all {
		at := &root
		for _, key := range strings.Split(v.Path, ".") {
			if at = at.Properties[key]; at == nil {
				return File{}, fmt.Errorf("value %s is not in values.schema.json", v.Path)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", v.Path, bar(at.say()), bar(v.Default), bar(v.Text))
	}
	return File{filepath.Join("..", "docs", "reference-values.md"), []byte(b.String())}, nil
}

// say describes the permitted values in words.
func (s *allowed) say() string {
	var all []string
	switch kind := s.Type.(type) {
	case string:
		all = append(all, kind)
	case []any:
		names := make([]string, len(kind))
		for i, k := range kind {
			names[i] = fmt.Sprint(k)
		}
		all = append(all, strings.Join(names, " or "))
	}
	if len(s.Enum) > 0 {
		names := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			names[i] = fmt.Sprintf("`%v`", e)
			if e == "" {
				names[i] = "empty"
			}
		}
		all = append(all, "one of "+strings.Join(names, ", "))
	}
	for _, x := range []struct {
		word string
		n    *json.Number
	}{{"at least", s.Minimum}, {"at most", s.Maximum}} {
		if x.n != nil {
			all = append(all, x.word+" "+x.n.String())
		}
	}
	if s.Pattern != "" {
		all = append(all, "matches `"+s.Pattern+"`")
	}
	if s.MinItems != nil {
		all = append(all, "at least "+s.MinItems.String()+" items")
	}
	if s.MinLength != nil {
		all = append(all, "not empty")
	}
	if s.Items != nil && s.Items.Type != nil {
		all = append(all, "each "+s.Items.say())
	}
	return strings.Join(all, "; ")
}

// bar escapes bars, which would otherwise end a cell of a table.
func bar(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

const referenceHead = `<!-- Made by make generate from charts/spotter/values.yaml and values.schema.json; do not edit. -->
# Values of the chart

Every value of ` + "`charts/spotter`" + `. What is not in this table, or not what the second column says, is refused by name when the
chart is rendered. Values that depend on others (such as the ARN of a role for ` + "`irsa`" + `) are checked too. How to install:
[Installing with Helm](install.md).

| value | may be | default | what it is |
|:--|:--|:--|:--|
`
