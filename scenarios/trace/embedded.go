package trace

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// embeddedFiles hold the embedded traces. The folder also has a README, so that
// the package can be built before the traces were generated.
//
//go:embed embedded
var embeddedFiles embed.FS

// embeddedName is the name of the default trace in output. That of another one
// follows it behind a colon.
const embeddedName = "embedded"

// Embedded returns the default trace, which is synthetic.
func Embedded() (*Trace, error) { return embedded(embeddedName, "default") }

// EmbeddedNamed returns the embedded trace that name stands for, and whether it
// stands for one: "embedded" for the default one, "embedded:rackspace" for one
// of an auction of Rackspace. A name that has the form of one and stands for
// none gives an error that lists those there are.
func EmbeddedNamed(name string) (t *Trace, ok bool, err error) {
	if name == embeddedName {
		t, err = Embedded()
		return t, true, err
	}
	short, ok := strings.CutPrefix(name, embeddedName+":")
	if !ok {
		return nil, false, nil
	}
	if names := EmbeddedNames(); !slices.Contains(names, short) {
		return nil, true, fmt.Errorf("%w: no embedded trace is called %q; there are %s", ErrNotTrace, short, strings.Join(names, ", "))
	}
	t, err = embedded(name, short)
	return t, true, err
}

// EmbeddedNames returns the names of the embedded traces in order.
func EmbeddedNames() []string {
	entries, err := embeddedFiles.ReadDir("embedded")
	if err != nil {
		panic(fmt.Sprintf("trace: reading the embedded folder: %v", err))
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".parquet"); ok {
			names = append(names, name)
		}
	}
	return names
}

func embedded(name, file string) (*Trace, error) {
	path := "embedded/" + file + ".parquet"
	data, err := embeddedFiles.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded trace: %w", err)
	}
	return load(name, &listing{files: []source{{path: path, size: int64(len(data)), data: data}}}, ReadOptions{})
}
