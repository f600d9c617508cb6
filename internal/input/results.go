package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios"
)

// ReadResults reads path if it is a result of eval in Parquet or JSON, which it detects by its
// schema_version. It returns nil for other files, such as scenarios.
func ReadResults(path string) (*format.Results, error) {
	extension := filepath.Ext(path)
	if extension != ".json" && extension != ".parquet" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil //nolint:nilerr // it is said when it is read as a scenario
	}
	var head struct {
		Version *json.RawMessage `json:"schema_version"`
	}
	if extension == ".json" && (json.Unmarshal(text, &head) != nil || head.Version == nil) {
		return nil, nil //nolint:nilerr // it is something else
	}
	out, err := format.ReadResults(bytes.NewReader(text))
	if err != nil {
		return nil,
			cli.Invalid(fmt.Errorf("%s: %w", path, err), "write it again with `spotter eval --out "+filepath.Base(path)+"`")
	}
	return out, nil
}

// OfRun registers the flags again, with the prices and the weather of a run in a results file.
func (m *MarketFlags) OfRun(x *format.ResultRun) error {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	m.Register(flags)
	of := x.Case
	start := of.Start
	if start == scenarios.StartNodes.String() {
		start = "" // the scenario states it
	}
	for _, one := range [][2]string{{"from", of.From.String()}, {"trace", of.Trace}, {"truth", of.Truth},
		{"intensity", fmt.Sprint(of.Intensity)},
		{"karpenter-version", of.Karpenter}, {"node-fee", of.NodeFee}, {"start", start}} {
		if err := flags.Set(one[0], one[1]); err != nil {
			return cli.Invalid(fmt.Errorf("results: %s: %w", one[0], err), "write the file again with `spotter eval --out`")
		}
	}
	return nil
}
