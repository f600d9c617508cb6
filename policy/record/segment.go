package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/spotter-dev/spotter/policy"
)

// The names of the tables, which are also the names of their files.
const (
	tableSteps     = "steps"
	tableTypes     = "types"
	tableMarkets   = "markets"
	tablePools     = "pools"
	tableNodes     = "nodes"
	tableTemplates = "templates"
	tableWorkloads = "workloads"
	tablePDBs      = "pdbs"
	tablePods      = "pods"
	tableEnded     = "ended"
	tablePlan      = "plan"
)

// A segment is the part of a recording that is being written, with the current content of its
// tables.
type segment struct {
	dir, final string

	// continues reports whether the rows continue from the previous segment.
	continues bool

	steps     *sink[stepRow]
	types     *sink[specRow]
	markets   *sink[marketRow]
	pools     *sink[poolRow]
	nodes     *sink[nodeRow]
	templates *sink[specRow]
	workloads *sink[workloadRow]
	pdbs      *sink[pdbRow]
	pods      *sink[podRow]
	ended     *sink[endedRow]
	plan      *sink[planRow]

	// open lists the tables that were created, in order.
	open []closer

	// last is the snapshot that a reader reconstructs from the rows written so far.
	last policy.Snapshot
}

// A closer is a sink with any type of rows.
type closer interface {
	flush() error
	close() error
	count() int
}

// createSegment creates a segment. It continues the previous segment from last. If last is nil, the
// segment is a full one, with a row for every entry.
func createSegment(dir string, number int, meta *Meta, last *policy.Snapshot) (*segment, error) {
	g := &segment{
		continues: last != nil,
		dir:       filepath.Join(dir, fmt.Sprintf("%s%05d", unfinished, number)),
		final:     filepath.Join(dir, fmt.Sprintf("%s%05d", finished, number)),
	}
	if err := os.RemoveAll(g.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return nil, err
	}
	if last != nil {
		g.last = *last
	}
	err := errors.Join(
		into(g, &g.steps, tableSteps, meta), into(g, &g.types, tableTypes, meta),
		into(g, &g.markets, tableMarkets, meta), into(g, &g.pools, tablePools, meta),
		into(g, &g.nodes, tableNodes, meta), into(g, &g.templates, tableTemplates, meta),
		into(g, &g.workloads, tableWorkloads, meta), into(g, &g.pdbs, tablePDBs, meta),
		into(g, &g.pods, tablePods, meta), into(g, &g.ended, tableEnded, meta),
		into(g, &g.plan, tablePlan, meta))
	if err != nil {
		return nil, errors.Join(err, g.abandon())
	}
	return g, nil
}

// into creates one table of g and registers it for closing.
func into[R any](g *segment, to **sink[R], name string, meta *Meta) error {
	s, err := create[R](g.dir, name, meta, g.continues)
	if err != nil {
		return err
	}
	*to = s
	g.open = append(g.open, s)
	return nil
}

// write adds one step.
func (g *segment) write(step int64, e *Entry) error {
	row := e.row
	row.Step = step
	g.steps.add(row)
	if err := g.writeTables(step, e.snapshot); err != nil {
		return err
	}
	for i := range e.snapshot.Ended {
		g.ended.add(toEndedRow(step, &e.snapshot.Ended[i]))
	}
	for _, r := range e.plan {
		r.Step = step
		g.plan.add(r)
	}
	for _, t := range g.open {
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}

// writeTables adds a row for every entry that differs from the rows written so far.
func (g *segment) writeTables(step int64, s *policy.Snapshot) error {
	l := &g.last
	if l.Now != 0 {
		advance(l.Markets, l.Now, s.Now)
	}
	l.Now = s.Now
	return errors.Join(
		differences(&l.Types, s.Types, same[policy.InstanceType], keepAs[policy.InstanceType], g.types,
			func(i int, t *policy.InstanceType) (specRow, error) { return toSpecRow(step, i, t.Name, t) }),
		differences(&l.Markets, s.Markets, sameMarket, keepMarket, g.markets,
			func(i int, m *policy.Market) (marketRow, error) { return toMarketRow(step, i, m), nil }),
		differences(&l.Pools, s.Pools, same[policy.Pool], keepPool, g.pools,
			func(i int, p *policy.Pool) (poolRow, error) { return toPoolRow(step, i, p) }),
		differences(&l.Nodes, s.Nodes, sameNode, keepNode, g.nodes,
			func(i int, n *policy.Node) (nodeRow, error) { return toNodeRow(step, i, n) }),
		differences(&l.Templates, s.Templates, same[policy.Template], keepAs[policy.Template], g.templates,
			func(i int, t *policy.Template) (specRow, error) { return toSpecRow(step, i, t.Name, t) }),
		differences(&l.Workloads, s.Workloads, equal[policy.Workload], keepAs[policy.Workload], g.workloads,
			func(i int, w *policy.Workload) (workloadRow, error) { return toWorkloadRow(step, i, w), nil }),
		differences(&l.PDBs, s.PDBs, same[policy.PDB], keepAs[policy.PDB], g.pdbs,
			func(i int, p *policy.PDB) (pdbRow, error) { return toPDBRow(step, i, p) }),
		differences(&l.Pods, s.Pods, equal[policy.Pod], keepAs[policy.Pod], g.pods,
			func(i int, p *policy.Pod) (podRow, error) { return toPodRow(step, i, p), nil }),
	)
}

// differences adds a row to out for each entry of now that is not in last, and updates last with
// copies of these entries.
func differences[E, R any](last *[]E, now []E, same func(a, b *E) bool, keep func(*E) E, out *sink[R],
	row func(int, *E) (R, error),
) error {
	l := (*last)[:min(len(*last), len(now))]
	for i := range now {
		if i < len(l) && same(&l[i], &now[i]) {
			continue
		}
		r, err := row(i, &now[i])
		if err != nil {
			return err
		}
		out.add(r)
		if i == len(l) {
			l = append(l, keep(&now[i]))
		} else {
			l[i] = keep(&now[i])
		}
	}
	*last = l
	return nil
}

func same[E any](a, b *E) bool { return reflect.DeepEqual(a, b) }

func equal[E comparable](a, b *E) bool { return *a == *b }

// keepAs returns a shallow copy. It is for entries whose lists are never modified.
func keepAs[E any](e *E) E { return *e }

func (g *segment) rows() int {
	n := 0
	for _, t := range g.open {
		n += t.count()
	}
	return n
}

// close completes the segment and renames it. All files are on disk before the segment is renamed,
// and the new name is on disk before close returns, so that a segment that readers can find
// survives a crash of the machine.
func (g *segment) close() error {
	var errs []error
	for _, t := range g.open {
		errs = append(errs, t.close())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := writeSums(g.dir); err != nil {
		return err
	}
	if err := syncDir(g.dir); err != nil {
		return err
	}
	if err := os.Rename(g.dir, g.final); err != nil {
		return err
	}
	return syncDir(filepath.Dir(g.final))
}

// abandon closes the files and leaves the segment unfinished.
func (g *segment) abandon() error {
	var errs []error
	for _, t := range g.open {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}
