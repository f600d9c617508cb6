package capture

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/eval/bill"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/figures"
)

// coverageLeast is the least share of the node-hours that a bill must cover to be compared with a
// simulation, which covers all of them.
const coverageLeast = 0.9

// billed replaces the dollars of the metrics by those of a bill. It leaves out and reports what the
// bill charges for machines other than the nodes.
func (f *sinceFlags) billed(ctx context.Context, h *history.History) error {
	if len(f.bills) == 0 {
		return nil
	}
	s := &bill.Statement{Span: billing.Span{From: h.From, To: h.To}}
	for _, path := range f.bills {
		var err error
		if isURL(path) {
			err = askOpenCost(ctx, path, s)
		} else {
			_, err = history.EachFile(ctx, []string{path}, nil, func(_ string,
				file objects.File) error {
				return s.Read(file, file.Size())
			})
		}
		if err != nil {
			return err
		}
	}
	dollars, share, said := chargedWhole(s)
	if s.Form != bill.FormOpenCost {
		dollars, share, said = chargedNodes(s, h)
	}
	if share <= 0 {
		return fmt.Errorf("%s has nothing of the nodes from %v to %v%s", s.Form, h.From.Std().Format(time.RFC3339),
			h.To.Std().Format(time.RFC3339), said)
	}
	if h.HasDollars {
		said += fmt.Sprintf("; karpenter_nodepools_cost_total adds up to %s", figures.Dollars(h.Dollars))
	}
	h.Dollars, h.HasDollars = dollars, share >= coverageLeast
	if !h.HasDollars {
		said += fmt.Sprintf("; below %s they are not compared", figures.Share(coverageLeast, 0))
	}
	h.Bill = fmt.Sprintf("Dollars: %s by %s, which is of %s of the node-hours%s.", figures.Dollars(dollars), s.Form,
		figures.Share(share, 1), said)
	return nil
}

// chargedWhole returns the charge for the cluster as a whole, and the share of the hours of the
// span that it covers.
func chargedWhole(s *bill.Statement) (dollars, share float64, said string) {
	if !s.Idle {
		said = "; it has no " + bill.Idle + ", so it does not include what no pod requested"
	}
	return s.Whole.Dollars, min(1, s.Whole.Hours/s.Span.Length().Hours()), said
}

// chargedNodes returns the charge for the nodes of h that count in figures, and the share of their
// node-hours that it covers.
func chargedNodes(s *bill.Statement, h *history.History) (dollars, share float64, said string) {
	nodes := instancesOf(h)
	counted := func(n *history.Node) bool {
		return n.Kind != nil && !controls(n) && sold(n.Kind.Labels[corev1.LabelInstanceTypeStable])
	}
	charged := map[int]bool{}
	others := 0
	var committed, otherDollars float64
	for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
		c, mine := s.Resources[name], false
		for _, i := range nodes[name] {
			if counted(&h.Nodes[i]) {
				charged[i], mine = true, true
			}
		}
		if mine {
			dollars, committed = dollars+c.Dollars, committed+c.Committed
		} else {
			others, otherDollars = others+1, otherDollars+c.Dollars
		}
	}
	var all, known float64
	for i := range h.Nodes {
		if n := &h.Nodes[i]; counted(n) {
			all += n.Hours()
			if charged[i] {
				known += n.Hours()
			}
		}
	}
	if others > 0 {
		said += fmt.Sprintf("; %s for %s are not known nodes of this cluster", figures.Count(others, "other machine"),
			figures.Dollars(otherDollars))
	}
	if committed > 0 {
		said += fmt.Sprintf("; %s of it are covered by commitments, which the simulation does not have",
			figures.Dollars(committed))
	}
	return dollars, known / max(all, 1e-9), said
}

// isURL reports whether path is an HTTP or HTTPS URL.
func isURL(path string) bool {
	return strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://")
}

// openCostTimeout bounds a request to OpenCost, which aggregates days on demand.
const openCostTimeout = 5 * time.Minute

// askOpenCost adds the allocations for the span from an OpenCost API to s. The address at ends in
// /allocation.
func askOpenCost(ctx context.Context, at string, s *bill.Statement) error {
	ctx, stop := context.WithTimeout(ctx, openCostTimeout)
	defer stop()
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("window", s.Span.From.Std().Format(time.RFC3339)+","+s.Span.To.Std().Format(time.RFC3339))
	q.Set("aggregate", "cluster")
	q.Set("includeIdle", "true")
	q.Set("accumulate", "true")
	u.RawQuery = q.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		return fmt.Errorf("%s: %s %s", u.Redacted(), answer.Status, text)
	}
	if err := s.ReadOpenCost(answer.Body); err != nil {
		return fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	return nil
}
