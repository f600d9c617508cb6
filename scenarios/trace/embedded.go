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

// The names of embedded traces. Recorded is the default one: runs that name no trace use it.
const (
	Recorded  = "aws-us-east-2"
	synthetic = "synthetic"
)

// Default returns the embedded trace of recorded prices, which runs use that name none.
func Default() (*Trace, error) { return embedded(Recorded) }

// Synthetic returns the embedded trace of drawn prices of AWS.
func Synthetic() (*Trace, error) { return embedded(synthetic) }

// oldNames are further names of embedded traces. The synthetic trace was once the default, and a
// record that names it so must be repeated with the same prices.
var oldNames = map[string]string{"": Recorded, "embedded": synthetic, "embedded:default": synthetic}

// IsEmbedded reports whether name has the form of a name of an embedded trace, which need not
// exist. Empty names the default one.
func IsEmbedded(name string) bool {
	_, old := oldNames[name]
	return old || strings.HasPrefix(name, "embedded:") || slices.Contains(EmbeddedNames(), name)
}

// EmbeddedName returns the present name of an embedded trace, which may also be called by an old
// name, or by its name with "embedded:" in front. It returns the name of another trace as it is.
func EmbeddedName(name string) string {
	if now, ok := oldNames[name]; ok {
		return now
	}
	return strings.TrimPrefix(name, "embedded:")
}

// EmbeddedNamed returns the embedded trace that a name refers to, and whether it has the form of
// one. Where no embedded trace has that name the error lists those that exist.
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
