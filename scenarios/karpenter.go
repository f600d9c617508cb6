package scenarios

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy/kube"
)

// A KarpenterVersion is the minor version of Karpenter 1 whose rules a run follows, such as 14. 0
// means the newest.
type KarpenterVersion uint8

// The range of supported versions.
const (
	OldestKarpenter KarpenterVersion = 12
	NewestKarpenter KarpenterVersion = 15
)

// AnnotationKarpenterVersion on a Scenario is the version of Karpenter in the cluster, such as
// "1.14".
const AnnotationKarpenterVersion = kube.OwnPrefix + "karpenter-version"

// ParseKarpenterVersion parses a version such as "1.14", "v1.14.1" or "1.14.1". The patch version
// is ignored, since patches change no rules.
func ParseKarpenterVersion(text string) (KarpenterVersion, error) {
	minor, ok := strings.CutPrefix(strings.TrimPrefix(text, "v"), "1.")
	if minor, _, _ = strings.Cut(minor, "."); ok {
		if n, err := strconv.ParseUint(minor, 10, 8); err == nil && KarpenterVersion(n) >= OldestKarpenter &&
			KarpenterVersion(n) <= NewestKarpenter {
			return KarpenterVersion(n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a version of Karpenter from %v to %v", text, OldestKarpenter, NewestKarpenter)
}

// String returns the version in the form "1.14".
func (v KarpenterVersion) String() string {
	if v == 0 {
		v = NewestKarpenter
	}
	return fmt.Sprintf("1.%d", v)
}
