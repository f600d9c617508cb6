package scenarios

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every annotation that is read from workloads is in the list of the documentation.
func TestAnnotationsAreListed(t *testing.T) {
	page, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../policy/kube/annotation.go")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`spotvortex\.io/[a-z-]+`).FindAllString(string(source), -1)
	for key := range ownAnnotations {
		keys = append(keys, key)
	}
	for _, key := range keys {
		if !strings.Contains(string(page), "| `"+key+"`") && !strings.Contains(string(page), ", `"+key+"`") {
			t.Errorf("docs/scenarios.md does not list the annotation %s", key)
		}
	}
}
