package format

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/tabular"
)

// The keys of a Parquet file's metadata: the top-level keys of the JSON, and the unit and
// definition of each metric.
const (
	keySchemaVersion = "spotter.schema_version"
	keyVersion       = "spotter.version"
	keyInvocation    = "spotter.invocation"
	keyConfig        = "spotter.config"
	keyMetrics       = "spotter.metrics"
	keyTraces        = "spotter.traces"
)

// A parquetMetric describes a column in a file's metadata.
type parquetMetric struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	About string `json:"about"`
}

// writeParquet writes a row for each finished run of all reports, which must have the same
// configuration. Equal reports result in equal bytes.
func writeParquet(w io.Writer, reports ...*eval.Report) error {
	options, err := parquetHead(reports[0])
	if err != nil {
		return err
	}
	return tabular.WriteParquet(w, runColumns(), reportedRuns(reports...), options...)
}

// parquetHead returns the metadata of a file.
func parquetHead(r *eval.Report) ([]parquet.WriterOption, error) {
	options := []parquet.WriterOption{
		parquet.KeyValueMetadata(keySchemaVersion, strconv.Itoa(SchemaVersion)), parquet.KeyValueMetadata(keyVersion,
			r.Config.Version),
		parquet.KeyValueMetadata(keyInvocation, r.Config.Invocation),
	}
	var metrics []parquetMetric
	for _, m := range eval.Metrics() {
		metrics = append(metrics, parquetMetric{m.Name, m.Unit, m.About})
	}
	for _, x := range []struct {
		key   string
		value any
	}{{keyConfig, newConfig(r)}, {keyMetrics, metrics}, {keyTraces, newTraces(r)}} {
		text, err := json.Marshal(x.value)
		if err != nil {
			return nil, err
		}
		options = append(options, parquet.KeyValueMetadata(x.key, string(text)))
	}
	return options, nil
}
