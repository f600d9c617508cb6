package convert

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/manifest"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// WriteTo writes the objects as YAML for kubectl apply, each preceded by its warnings as comments.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	comments(&b, r.Warnings)
	for i := range r.Objects {
		if i > 0 || len(r.Warnings) > 0 {
			b.WriteString("---\n")
		}
		comments(&b, r.Objects[i].Warnings)
		if err := manifest.Write(&b, r.Objects[i].Object); err != nil {
			return 0, fmt.Errorf("writing %s: %w", name(r.Objects[i].Object), err)
		}
	}
	return b.WriteTo(w)
}

// comments writes each warning as a separate paragraph.
func comments(b *bytes.Buffer, warnings []Warning) {
	for _, w := range warnings {
		manifest.Comment(b, "# Warning: ", "#   ", w.String())
	}
}

func name(object any) string {
	switch v := object.(type) {
	case *v1alpha1.CapacityPool:
		return "CapacityPool " + v.Name
	case *v1alpha1.GPUBudget:
		return "GPUBudget " + v.Name
	}
	return "object"
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
