package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
)

// readRuntime reads a runtime.json and the distributions that its feature_buckets.source names.
func readRuntime(path string, read func(string) ([]byte, error)) (spotvortex.Config, error) {
	data, err := read(path)
	if err != nil {
		return spotvortex.Config{}, err
	}
	c, err := spotvortex.ParseRuntime(data, func(source string) ([]byte, error) { return ReadBounds(path, source, read) })
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ReadBounds returns, as JSON, the bounds of workload features in the file that a runtime file
// names. The name is relative to the agent's working folder, which contains the folder of the
// runtime file. It is therefore resolved in the folder of the runtime file and then in its parent.
func ReadBounds(runtimeFile, source string, read func(string) ([]byte, error)) ([]byte, error) {
	folder := filepath.Dir(runtimeFile)
	tried := []string{filepath.Join(folder, source), filepath.Join(folder, "..", source)}
	if filepath.IsAbs(source) {
		tried = []string{source}
	}
	for _, path := range tried {
		data, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b, err := boundsJSON(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("no such file: tried %q", tried)
}

// boundsJSON extracts workload_profile_bounds.overall from a file of workload distributions. The
// rest of that file belongs to other programs and is ignored.
func boundsJSON(data []byte) ([]byte, error) {
	var file struct {
		Bounds struct {
			Overall map[string]any `yaml:"overall"`
		} `yaml:"workload_profile_bounds"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if len(file.Bounds.Overall) == 0 {
		return nil, errors.New("it has no block workload_profile_bounds.overall")
	}
	return json.Marshal(file.Bounds.Overall)
}
