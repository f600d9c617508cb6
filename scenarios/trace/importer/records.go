package importer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// records reads rows with named fields. The fields may differ between rows.
type records struct {
	*importer
	container string

	layouts map[string]*layout // by the names of the fields; nil if they do not form a row
	tables  map[int]*layout    // of rows without names, by number of fields
	columns []column
	seen    []string // names of values that are not rows
	found   bool     // whether a row was found
}

// A column contains all values of a table under one name.
type column struct {
	name   string
	values [][]byte
}

func (im *importer) newRecords(container string) *records {
	return &records{importer: im, container: container, layouts: map[string]*layout{}, tables: map[int]*layout{}}
}

// see records a name that is not a field.
func (r *records) see(name string) {
	if len(r.seen) < 50 && !slices.Contains(r.seen, name) {
		r.seen = append(r.seen, name)
	}
}

// record reads an object with these fields. An object that lacks one required field is an invalid
// row; an object that lacks several is not a row and is ignored.
func (r *records) record(line int, names []string, fields [][]byte) error {
	key := strings.Join(names, "\x00")
	l, known := r.layouts[key]
	if !known {
		var fault *columnsError
		if l, fault = r.layoutOf(names); fault == nil {
			r.use(l)
		} else if fault.twice != "" {
			return fmt.Errorf("%w: line %d: %w", trace.ErrFormat, line, fault)
		} else if lacks := len(fault.missing); lacks < 2 {
			r.found = true
			r.report.Rows++
			return r.bad(line, fault)
		}
		r.layouts[key] = l
	}
	if l == nil {
		for _, name := range names {
			r.see(name)
		}
		return nil
	}
	return r.row(line, fields, l)
}

// use records that rows with layout l were found.
func (r *records) use(l *layout) {
	if !r.found {
		r.take(r.container, l)
		r.found = true
	}
}

// names reads the column names of a table whose rows follow. It reports whether fields are such
// names.
func (r *records) names(fields [][]byte) bool {
	l, fault := r.layoutOf(texts(fields))
	if fault == nil {
		r.tables[len(fields)] = l
		r.use(l)
	}
	return fault == nil
}

// unnamed reads a row of a table. The first row may contain the column names.
func (r *records) unnamed(line int, fields [][]byte) error {
	l := r.tables[len(fields)]
	if l == nil {
		if r.names(fields) {
			return nil
		}
		var err error
		if l, err = r.shapeOf([][][]byte{fields}); err != nil {
			return fmt.Errorf("%w: line %d: an array without names, and %w", trace.ErrFormat, line, err)
		}
		r.tables[len(fields)] = l
		r.use(l)
	}
	return r.row(line, fields, l)
}

// column reads all values of a table under one name: a list, or numbered members. It reports
// whether name is that of a known column.
func (r *records) column(name string, members []string, values [][]byte) bool {
	named := func(member string) bool { _, err := strconv.Atoi(member); return err != nil }
	if len(values) == 0 || slices.ContainsFunc(members, named) {
		return false
	}
	_, known := meaningOf(name)
	if known {
		r.columns = append(r.columns, column{name, values})
	}
	return known
}

// close reads the rows of a table given by columns. It returns an error if no row was found but
// other values were.
func (r *records) close() error {
	if len(r.columns) > 0 {
		names, fields := make([]string, len(r.columns)), make([][]byte, len(r.columns))
		for i, c := range r.columns {
			names[i] = c.name
			if first := len(r.columns[0].values); len(c.values) != first {
				return fmt.Errorf("%w: %q has %d values and %q %d", trace.ErrFormat, names[0], first, c.name, len(c.values))
			}
		}
		for k := range r.columns[0].values {
			for i, c := range r.columns {
				fields[i] = c.values[k]
			}
			if err := r.record(k+1, names, fields); err != nil {
				return err
			}
		}
	}
	if r.found {
		return nil
	}
	if len(r.seen) > 0 && !slices.Contains(r.seen, "SpotPriceHistory") {
		_, fault := r.layoutOf(r.seen)
		if fault != nil && fault.known > 0 {
			return fmt.Errorf("%w: %w", trace.ErrFormat, fault)
		}
		return notUnderstood(r.container + " of an unknown kind, of " + some(r.seen, 10))
	}
	r.took(r.container + " of " + spotPrices.name)
	return nil
}

// yaml reads rows of prices in YAML, as the AWS CLI prints it.
func (im *importer) yaml(src io.Reader) error {
	r := im.newRecords("YAML")
	bounded := &io.LimitedReader{R: src, N: wholeMax + 1}
	d := yaml.NewDecoder(bounded)
	for {
		var n yaml.Node
		err := d.Decode(&n)
		switch {
		case bounded.N == 0:
			return fmt.Errorf("%w: more than %d MiB of YAML", trace.ErrFormat, wholeMax>>20)
		case errors.Is(err, io.EOF):
			return r.close()
		case err != nil:
			return fmt.Errorf("%w: %w", trace.ErrFormat, err)
		}
		if err := r.node(&n); err != nil {
			return err
		}
	}
}

// node reads the rows below a node.
func (r *records) node(n *yaml.Node) error {
	var names []string
	var fields [][]byte
	for i := 0; i < len(n.Content); i++ {
		child := n.Content[i]
		if n.Kind == yaml.MappingNode {
			i++
			if v := n.Content[i]; v.Kind == yaml.ScalarNode {
				names, fields = append(names, child.Value), append(fields, []byte(v.Value))
				continue
			}
			r.see(child.Value)
			child = n.Content[i]
		}
		if err := r.node(child); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return r.record(n.Line, names, fields)
}
