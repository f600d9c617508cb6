package trace

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// embeddedFiles contain the embedded traces. The folder also contains a README, so that the package
// can be built before the traces are generated.
//
//go:embed embedded
var embeddedFiles embed.FS

// The names of embedded traces. Recorded is the default: runs that name no trace use it.
const (
	Recorded  = "aws-us-east-2"
	synthetic = "synthetic"
)

// Default returns the embedded trace of recorded prices, which is used by runs that name no trace.
func Default() (*Trace, error) { return embedded(Recorded) }

// Synthetic returns the embedded trace of generated AWS prices.
func Synthetic() (*Trace, error) { return embedded(synthetic) }

// oldNames maps former names of embedded traces to the present ones. The synthetic trace was once
// the default, and a record that refers to it must be replayed with the same prices.
var oldNames = map[string]string{"": Recorded, "embedded": synthetic, "embedded:default": synthetic}

// IsEmbedded reports whether name has the form of a name of an embedded trace, which need not
// exist. The empty name refers to the default trace.
func IsEmbedded(name string) bool {
	_, old := oldNames[name]
	return old || strings.HasPrefix(name, "embedded:") || slices.Contains(EmbeddedNames(), name)
}

// EmbeddedName returns the present name of an embedded trace, given that name, a former name, or
// either with the prefix "embedded:". It returns other names unchanged.
func EmbeddedName(name string) string {
	if now, ok := oldNames[name]; ok {
		return now
	}
	return strings.TrimPrefix(name, "embedded:")
}

// EmbeddedNamed returns the embedded trace that name refers to. Ok reports whether name has the
// form of a name of an embedded trace. If no embedded trace has this name, the error lists those
// that exist.
func EmbeddedNamed(name string) (t *Trace, ok bool, err error) {
	if !IsEmbedded(name) {
		return nil, false, nil
	}
	short := EmbeddedName(name)
	if names := EmbeddedNames(); !slices.Contains(names, short) {
		return nil, true, fmt.Errorf("%w: there is no embedded trace %q; known are %s", ErrNotTrace, short,
			strings.Join(names, ", "))
	}
	t, err = embedded(short)
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

func embedded(name string) (*Trace, error) {
	path := "embedded/" + name + ".parquet"
	data, err := embeddedFiles.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded trace: %w", err)
	}
	return load(name, &listing{files: []source{{path: path, size: int64(len(data)), data: data}}}, ReadOptions{})
}
