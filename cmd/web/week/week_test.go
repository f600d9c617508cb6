package week

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
)

// TestChoices: the page offers what may be chosen.
func TestChoices(t *testing.T) {
	page, err := os.ReadFile("../../../docs/site/layouts/_partials/week.html")
	if err != nil {
		t.Fatal(err)
	}
	offered := func(name string) (all []string) {
		_, list, _ := strings.Cut(string(page), `<select name="`+name+`">`)
		list, _, _ = strings.Cut(list, "</select>")
		for _, m := range regexp.MustCompile(`<option[^>]*>(.*?)</option>`).FindAllStringSubmatch(list, -1) {
			all = append(all, m[1])
		}
		return all
	}
	if got := offered("scenario"); !slices.Equal(got, Scenarios()) {
		t.Errorf("the page offers the scenarios %q, want %q", got, Scenarios())
	}
	if got := offered("policy"); !slices.Equal(got, Policies()) {
		t.Errorf("the page offers the policies %q, want %q", got, Policies())
	}
}

// TestRefused: what may not be chosen is refused, with what may.
func TestRefused(t *testing.T) {
	for _, c := range []Choice{{"none", "portfolio", 1}, {"../tiny", "portfolio", 1}, {"tiny", "manifest", 1}, {"tiny", "model:bundle=x", 1}, {"tiny", "", 1}} {
		if r, err := Compare(t.Context(), c, func(int, int) {}); !errors.Is(err, ErrChoice) || r != nil || !strings.Contains(err.Error(), "known are") {
			t.Errorf("%+v: %v, %v", c, r, err)
		}
	}
}

// TestStopped: a comparison that is stopped has no result.
func TestStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r, err := Compare(ctx, Choice{"tiny", "static", 1}, func(int, int) {}); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// TestProgress: what is done is counted up to what there is.
func TestProgress(t *testing.T) {
	var last, of int
	r, err := Compare(t.Context(), Choice{"tiny", "static", 1}, func(done, total int) {
		if done < last || done > total {
			t.Errorf("%d of %d are done after %d", done, total, last)
		}
		last, of = done, total
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != of || of != 5 {
		t.Errorf("%d of %d are done at the end", last, of)
	}
	for _, want := range []string{"static", eval.OnDemand, eval.DefaultBaseline + " *"} {
		if !strings.Contains(r.Table, want) || !strings.Contains(r.Text, want) {
			t.Errorf("the result has no %q:\n%s\n%s", want, r.Table, r.Text)
		}
	}
}

// TestLight: the program for browsers has no client of a cluster or a cloud in it.
func TestLight(t *testing.T) {
	c := exec.Command("go", "list", "-deps", "..")
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "/cmd/web/week\n") {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for _, heavy := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/karpenter", "github.com/aws/", "github.com/spf13/cobra"} {
		if strings.Contains(string(out), heavy) {
			t.Errorf("it has %s in it", heavy)
		}
	}
}
