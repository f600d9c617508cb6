package trace

import (
	"embed"
	"fmt"
)

//go:generate go run gen.go

// embeddedFiles hold the default trace. The folder also has a README, so that
// the package can be built before the trace was generated.
//
//go:embed embedded
var embeddedFiles embed.FS

// embeddedName is the name of the default trace in output.
const embeddedName = "embedded"

// Embedded returns the default trace, which is synthetic.
func Embedded() (*Trace, error) {
	const file = "embedded/default.parquet"
	data, err := embeddedFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded trace: %w", err)
	}
	return load(embeddedName, []source{{path: file, data: data}}, ReadOptions{})
}
