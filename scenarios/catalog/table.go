package catalog

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// The tables. Lines that start with # state the origin of the data. The next lines are the names of
// the columns and, in some tables, the zone letters of each region. The other lines are instance
// types, ascending by name.
var (
	//go:embed aws.tsv
	awsText string
	//go:embed gcp.tsv
	gcpText string
	//go:embed azure.tsv
	azureText string
	//go:embed rackspace.tsv
	rackspaceText string
)

// The columns that precede the prices. AWS has nine more than the other tables.
const (
	colName = iota
	colVCPU
	colMemory
	colGPUs
	colGPUName
	colGPUKind
	fixedColumns

	colENIs = iota - 1
	colIPv4
	colMbps
	colCPU
	colMHz
	colEBSMbps
	colNVMeGB
	colEncrypted
	colDevice
	fixedColumnsAWS
)

// A table is the text of a table split into lines, ascending by name.
type table struct {
	// fixed is the number of columns before those of the regions.
	fixed   int
	names   []string
	lines   []string
	regions []string

	// zones are the zone letters of each region; nil if the table has none.
	zones []string
}

// lazily returns a function that parses the table on first use, so that a run with one provider
// does not parse the others.
func lazily(text string, fixed int) func() *table {
	return sync.OnceValue(func() *table { return cut(text, fixed) })
}

func cut(text string, fixed int) *table {
	n := strings.Count(text, "\n")
	t := &table{fixed: fixed, names: make([]string, 0, n), lines: make([]string, 0, n)}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, _, _ := strings.Cut(line, "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case name == "type":
			t.regions = strings.Split(line, "\t")[fixed:]
		case name == "zones":
			t.zones = strings.Split(line, "\t")[fixed:]
		default:
			t.names, t.lines = append(t.names, name), append(t.lines, line)
		}
	}
	return t
}

// line returns the fields of a type's line, and whether there is one.
func (t *table) line(name string) ([]string, bool) {
	i, ok := slices.BinarySearch(t.names, name)
	if !ok {
		return nil, false
	}
	return strings.Split(t.lines[i], "\t"), true
}
