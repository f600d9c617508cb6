package record

import (
	"encoding/json"
	"fmt"

	"github.com/spotter-dev/spotter/policy"
)

// A word is an enumeration whose values are stored in tables by name.
type word interface {
	~uint8
	String() string
}

// parse returns the value in 0…last whose name is s.
func parse[W word](s string, last W) (W, error) {
	for w := W(0); w <= last; w++ {
		if w.String() == s {
			return w, nil
		}
	}
	return 0, fmt.Errorf("%q is not a %T", s, last)
}

// toJSON returns v as JSON. It returns the empty string for a nil slice.
func toJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if string(b) == "null" {
		return "", nil
	}
	return string(b), nil
}

func fromJSON(s string, v any) error {
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), v)
}

// resources are five columns of a row.
type resources struct {
	CPU     int64 `parquet:"cpu_milli"`
	Memory  int64 `parquet:"memory_bytes"`
	Storage int64 `parquet:"storage_bytes"`
	GPU     int64 `parquet:"gpu"`
	Pods    int64 `parquet:"pods"`
}

func toResources(r policy.Resources) resources {
	return resources{r.CPU, r.Memory, r.Storage, r.GPU, r.Pods}
}

func (r resources) resources() policy.Resources {
	return policy.Resources{CPU: r.CPU, Memory: r.Memory, Storage: r.Storage, GPU: r.GPU, Pods: r.Pods}
}
