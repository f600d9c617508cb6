package trace

import (
	"fmt"
	"strconv"
)

// checkDepth fails at the first row of a batch whose depth cannot be: more
// nodes launched than were requested, one of the two without the other, or
// against what the row says of whether a node could be had.
func (b *Batch) checkDepth(want Columns) error {
	if !want.has(ColumnDepth) || b.Requested == nil && b.Launched == nil {
		return nil
	}
	fault := func(column string, i int, value float64, reason string) error {
		return &FileError{
			File: b.File, Column: column, Row: b.Row + int64(i) + 1, Value: strconv.FormatFloat(value, 'g', -1, 64),
			Err: fmt.Errorf("%w: %s", ErrValue, reason),
		}
	}
	for i := range b.Rows {
		requested, launched, available := -1.0, -1.0, -1.0
		if b.Requested != nil {
			requested = b.Requested[i]
		}
		if b.Launched != nil {
			launched = b.Launched[i]
		}
		if b.Available != nil {
			available = b.Available[i]
		}
		switch {
		case requested == -1 && launched == -1:
		case requested < 1:
			return fault(colRequested, i, requested, "how many nodes were requested is unknown or none, while launched is given")
		case launched < 0 || launched > requested:
			return fault(colLaunched, i, launched, fmt.Sprintf("not between 0 and the %g nodes requested", requested))
		case want.has(ColumnAvailable) && available != min(launched, 1):
			return fault(colAvailable, i, available, fmt.Sprintf("%g nodes launched, so that it must be %t", launched, launched > 0))
		}
	}
	return nil
}

// depth reads how many of the nodes that were requested came up.
func (e *event) depth(requested, launched []byte) error {
	n, err := strconv.ParseInt(string(requested), 10, 32)
	if err != nil || n < 1 || n > requestedMax {
		return fmt.Errorf("requested %q is no number of nodes from 1 to %d", requested, requestedMax)
	}
	k, err := strconv.ParseInt(string(launched), 10, 32)
	if err != nil || k < 0 || k > n {
		return fmt.Errorf("launched %q is no number of nodes from 0 to the %d requested", launched, n)
	}
	e.says |= saysAvailable | saysDepth
	e.requested, e.launched, e.available = int32(n), int32(k), int8(min(k, 1))
	return nil
}

// noteProbes fills in how long before each probe of depth its market was last
// looked at. Events are in the order of market and time.
func noteProbes(events []event) {
	probe := -1 // the last of the market
	for i := range events {
		e := &events[i]
		if i == 0 || e.market != events[i-1].market {
			probe = -1
		}
		if e.says&saysDepth == 0 {
			continue
		}
		if probe >= 0 && e.gap == 0 {
			e.gap = int32(min(int64(e.at-events[probe].at)/1000, probeGapMax))
		}
		probe = i
	}
}

// depthRow makes an event of a row of depth. Its type stands in a column, else in
// the options.
func (im *importer) depthRow(field func(role) []byte, provider string) (e event, err error) {
	if e.at, err = instant(field(roleTime)); err != nil {
		return e, err
	}
	kind := field(roleType)
	if len(kind) == 0 {
		kind = []byte(im.o.Type)
	}
	if e.market, err = im.market("", provider, field(roleRegion), field(roleZone), kind, nil); err != nil {
		return e, err
	}
	return e, e.depth(field(roleRequested), field(roleLaunched))
}
