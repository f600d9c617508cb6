package asg

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/live/permit"
)

// Tags of a group that record the user's value of a setting that a steer has overwritten: the
// maximum size, and the on-demand percentage.
const (
	TagMax      = "spotter.dev/max-size"
	TagOnDemand = "spotter.dev/on-demand-percentage"
)

// A setting is a number in the configuration of a group that steers write.
type setting struct {
	tag, name string
	of        func(*group) int
	set       func(*cloud, context.Context, *group, int) error
}

var (
	maxSize      = setting{TagMax, "maximum size", func(g *group) int { return g.max }, (*cloud).setMax}
	onDemandPart = setting{TagOnDemand, "on-demand percentage", func(g *group) int { return g.buys.onDemandPercent },
		(*cloud).setOnDemand}
)

// A choice is the value of the tag of a setting: the user's value, Spotter's value, and the
// previous value, which is still in effect if the write was lost.
type choice struct{ user, ours, was int }

func (m choice) encode() string { return fmt.Sprintf("user=%d ours=%d was=%d", m.user, m.ours, m.was) }

func decodeChoice(value string) (choice, bool) {
	var m choice
	fields := map[string]*int{"user": &m.user, "ours": &m.ours, "was": &m.was}
	found := 0
	for _, word := range strings.Fields(value) {
		name, v, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(v)
		if p := fields[name]; p != nil && err == nil {
			*p = n
			found++
		}
	}
	return m, found == len(fields)
}

// read returns the choice, with changes that the user made after Spotter's write, and whether g has
// Spotter's tag.
func (x *setting) read(g *group) (m choice, ours bool) {
	m, ours = decodeChoice(g.tags[x.tag])
	if now := x.of(g); !ours || now != m.ours && now != m.was {
		m.user = now
	}
	return m, ours
}

// put writes a setting. It records the user's value first, and removes the record once that value
// is in effect again.
func (w *steerer) put(ctx context.Context, g *group, x *setting, want int) error {
	now := x.of(g)
	m, ours := x.read(g)
	if want != now {
		if err := w.cloud.tag(ctx, g, x.tag, choice{m.user, want, now}.encode()); err != nil {
			return held(err, "recording the %s of the group %s", x.name, g.name)
		}
		if err := x.set(w.cloud, ctx, g, want); err != nil {
			return held(err, "setting the %s of the group %s", x.name, g.name)
		}
		ours = true
	}
	if want == m.user && ours {
		return heldOr(w.cloud.untag(ctx, g, x.tag), "removing the record of the %s of the group %s", x.name, g.name)
	}
	return nil
}

// giveBack restores the user's value of a setting.
func (w *steerer) giveBack(ctx context.Context, g *group, x *setting) error {
	m, ours := x.read(g)
	if !ours {
		return nil
	}
	return w.put(permit.Undo(ctx), g, x, m.user)
}
