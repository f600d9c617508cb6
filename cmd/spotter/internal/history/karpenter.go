package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

// columnClaim is the column with the name of a NodeClaim in the CSV of LogParserForKarpenter.
const columnClaim = "nodeclaim"

// A claimStep is a step in the lifetime of a NodeClaim or of its Node.
type claimStep uint8

const (
	claimMentioned claimStep = iota
	claimCreated
	claimLaunched
	claimRegistered
	claimInitialized
	claimDisrupted // Karpenter decided to delete it
	claimInterrupted
	claimNodeDeleted
	claimDeleted
)

// claimMessages maps the messages of Karpenter that are read to the steps that they report. Older
// releases add the nodes and the decision to a message that starts with "disrupting".
var claimMessages = map[string]claimStep{
	"created nodeclaim":                           claimCreated,
	"launched nodeclaim":                          claimLaunched,
	"registered nodeclaim":                        claimRegistered,
	"initialized nodeclaim":                       claimInitialized,
	"tainted node":                                claimMentioned,
	"annotated nodeclaim":                         claimMentioned,
	"disrupting node(s)":                          claimDisrupted,
	"deleting expired nodeclaim":                  claimDisrupted,
	"deleting unhealthy node":                     claimDisrupted,
	"initiating delete from interruption message": claimInterrupted,
	"garbage collecting nodeclaim with no cloudprovider representation": claimDisrupted,
	"deleted node":      claimNodeDeleted,
	"deleted nodeclaim": claimDeleted,
}

// reasonsByMessage are the reasons of disruptions that follow from the message.
var reasonsByMessage = map[string]string{
	"deleting expired nodeclaim": "expired",
	"deleting unhealthy node":    "unhealthy",
	"garbage collecting nodeclaim with no cloudprovider representation": "garbage_collected",
}

// A claimEvent is one step of a NodeClaim. One of its two names may be unknown.
type claimEvent struct {
	at          policy.Time
	step        claimStep
	claim, node string
	reason      string            // reason of a disruption, or the kind of an interruption
	labels      map[string]string // labels of the node, where known
	instance    string
}

// A claims is the lines of Karpenter's logs about NodeClaims, in any order.
type claims struct{ events []claimEvent }

// entry reads a line of Karpenter's log or a row of LogParserForKarpenter's CSV. It returns false
// for anything else. On a line in the console encoding, the time and the message precede the
// object, separated by tabs.
func (c *claims) entry(x fields, prefix string) (bool, error) {
	if x.has(columnClaim, "createdtime", "launchedtime") {
		return true, c.row(x)
	}
	message, at := x.text("message"), x[fieldTime]
	if words := strings.Split(strings.TrimSpace(prefix), "\t"); message == "" && len(words) > 2 {
		message = words[len(words)-1]
		at, _ = json.Marshal(words[0][strings.LastIndexByte(words[0], ' ')+1:]) // marshalling a string cannot fail
	}
	step, known := claimMessages[message]
	if strings.HasPrefix(message, "disrupting ") {
		step, known = claimDisrupted, true
	}
	if !known {
		return false, nil
	}
	when, err := claimTime(at)
	if err != nil {
		return true, fmt.Errorf("time of %q: %w", message, err)
	}
	e := claimEvent{at: when, step: step, claim: x.text("NodeClaim"), node: x.text("Node"), labels: map[string]string{}}
	e.describe(x)
	switch step {
	case claimDisrupted:
		e.reason = reasonOf(x, message)
		return true, c.disrupted(e, x, message)
	case claimInterrupted:
		e.reason = x.text("messageKind")
	case claimNodeDeleted:
		e.node = cmp.Or(e.node, x.text("name"))
	}
	c.events = append(c.events, e)
	return true, nil
}

// claimLabels maps fields of lines and columns of CSV to labels of nodes.
var claimLabels = map[string]string{
	"NodePool":      karpenterv1.NodePoolLabelKey,
	"instance-type": corev1.LabelInstanceTypeStable,
	"zone":          corev1.LabelTopologyZone,
	"capacity-type": karpenterv1.CapacityTypeLabelKey,
}

// describe records the labels and the instance of a NodeClaim's node.
func (e *claimEvent) describe(x fields) {
	for name, key := range claimLabels {
		if v := x.text(name); v != "" {
			e.labels[key] = v
		}
	}
	id := x.text("provider-id")
	e.instance = LastOf(id)
	if zone, ok := strings.CutPrefix(id, "aws:///"); ok && e.labels[corev1.LabelTopologyZone] == "" {
		e.labels[corev1.LabelTopologyZone], _, _ = strings.Cut(zone, "/")
	}
}

// reasonOf returns the reason of a disruption: a field, the start of the command, or a word of the
// message, depending on the release of Karpenter.
func reasonOf(x fields, message string) string {
	reason := cmp.Or(reasonsByMessage[message], x.text("reason"))
	if command, _, ok := strings.Cut(x.text("command"), "/"); ok && reason == "" {
		reason = command
	}
	if _, after, ok := strings.Cut(message, "disrupting via "); ok && reason == "" {
		reason, _, _ = strings.Cut(after, " ")
	}
	return strings.ToLower(cmp.Or(reason, "reason unknown"))
}

// candidate matches node, instance type and capacity type in the message of an older release.
var candidate = regexp.MustCompile(`([\w.-]+)/([\w.-]+)/(spot|on-demand|reserved)`)

// disrupted records each of the nodes that a command disrupts.
func (c *claims) disrupted(e claimEvent, x fields, message string) error {
	var nodes []map[string]json.RawMessage
	if err := x.decode("disrupted-nodes", &nodes); err != nil {
		return err
	}
	for _, n := range nodes {
		y := fields{}
		for name, v := range n {
			y[plainName(name)] = v
		}
		one := claimEvent{at: e.at, step: e.step, reason: e.reason, labels: map[string]string{}}
		one.claim, one.node = y.text("NodeClaim"), y.text("Node")
		one.describe(y)
		c.events = append(c.events, one)
	}
	found := candidate.FindAllStringSubmatch(message, -1)
	for _, m := range found {
		labels := map[string]string{corev1.LabelInstanceTypeStable: m[2], karpenterv1.CapacityTypeLabelKey: m[3]}
		c.events = append(c.events, claimEvent{at: e.at, step: e.step, reason: e.reason, node: m[1], labels: labels})
	}
	if len(nodes)+len(found) == 0 {
		c.events = append(c.events, e)
	}
	return nil
}

// claimColumns are the columns of LogParserForKarpenter's CSV that contain times.
var claimColumns = []struct {
	name   string
	step   claimStep
	reason string // the column with the reason
}{
	{"createdtime", claimCreated, ""},
	{"launchedtime", claimLaunched, ""},
	{"registeredtime", claimRegistered, ""},
	{"initializedtime", claimInitialized, ""},
	{"disruptiontime", claimDisrupted, "disruptionreason"},
	{"interruptiontime", claimInterrupted, "interruptionkind"},
	{"deletedtime", claimDeleted, ""},
}

// row reads a row of LogParserForKarpenter's CSV.
func (c *claims) row(x fields) error {
	e := claimEvent{claim: x.text(columnClaim), node: x.text("k8snodename"), labels: map[string]string{}}
	e.describe(x)
	for _, column := range claimColumns {
		if x.text(column.name) == "" {
			continue
		}
		one := e
		var err error
		if one.at, err = claimTime(x[column.name]); err != nil {
			return fmt.Errorf("%s of NodeClaim %s: %w", column.name, e.claim, err)
		}
		one.step, one.reason = column.step, strings.ToLower(x.text(column.reason))
		c.events = append(c.events, one)
	}
	return nil
}

// claimTimes are the layouts of times. A time without a zone is in UTC.
var claimTimes = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999"}

// claimTime parses a time in the format of Karpenter, with a zone with or without a colon, or the
// seconds or milliseconds since 1970 that some services write.
func claimTime(raw json.RawMessage) (policy.Time, error) {
	var number float64
	if json.Unmarshal(raw, &number) == nil && number > 0 {
		if number < 1e11 {
			number *= 1000
		}
		return policy.Time(number), nil
	}
	text := stringOf(raw)
	for _, layout := range claimTimes {
		if at, err := time.Parse(layout, text); err == nil {
			return policy.TimeOf(at), nil
		}
	}
	if text == "" {
		text = string(raw)
	}
	return 0, fmt.Errorf("%s is not a time such as 2026-03-02T05:00:00.000Z", strconv.Quote(text))
}

// A claimLife is the lifetime of the node of a NodeClaim.
type claimLife struct {
	claim, node string
	labels      map[string]string
	instance    string

	launched, registered, end policy.Time

	// after is when an earlier node of the same name terminated; the node did not exist before.
	after policy.Time

	// reason is the reason of its last disruption, at the time disrupted. interruption is the kind
	// of the interruption message for which it was deleted, at the time interrupted.
	reason, interruption   string
	disrupted, interrupted policy.Time
}

// noticeSpot is the time between EC2's notice and the reclaim of a Spot instance.
const noticeSpot = 2 * time.Minute

// from returns when the Node appeared. A NodeClaim with only later steps is assumed to have existed
// before. ok is false for a NodeClaim without a Node.
func (l *claimLife) from() (at policy.Time, ok bool) {
	switch {
	case l.registered > 0:
		return l.registered, true
	case l.launched > 0: // releases before 1.0 may not log the registration
		return l.launched, l.node != ""
	}
	return l.after, l.node != "" || l.instance != "" || l.labels[corev1.LabelInstanceTypeStable] != ""
}

// to returns when the Node terminated, or 0 if it still runs.
func (l *claimLife) to() policy.Time {
	if l.end == 0 && isSpotInterruption(l.interruption) {
		return l.interrupted.Add(noticeSpot)
	}
	return l.end
}

// isSpotInterruption reports whether the kind of a message is a Spot interruption, which is called
// SpotInterruptionKind or spot_interrupted.
func isSpotInterruption(kind string) bool {
	return strings.HasPrefix(plainName(kind), "spotinterrupt")
}

// isOver reports whether e is about another node with the same name as the node of l. Names are
// reused.
func (l *claimLife) isOver(e *claimEvent) bool {
	if e.claim != "" && l.claim != "" {
		return e.claim != l.claim
	}
	return l.end > 0 && e.at > l.end.Add(lateClaim)
}

// lateClaim is the longest time after the deletion of a Node in which lines about it may follow.
const lateClaim = 10 * time.Minute

// lives returns the nodes that existed in an interval, in the order in which they are first
// mentioned.
func (c *claims) lives(from, to policy.Time) (out []*claimLife) {
	slices.SortStableFunc(c.events, func(a, b claimEvent) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step))
	})
	byClaim, byNode := map[string]*claimLife{}, map[string]*claimLife{}
	var all []*claimLife
	for i := range c.events {
		e := &c.events[i]
		l, named := byClaim[e.claim], byNode[e.node]
		if l == nil && named != nil && !named.isOver(e) {
			l = named
		}
		if l == nil {
			l = &claimLife{labels: map[string]string{}}
			if named != nil {
				l.after = named.end
			}
			all = append(all, l)
		}
		if e.claim != "" {
			l.claim, byClaim[e.claim] = e.claim, l
		}
		if e.node != "" {
			l.node, byNode[e.node] = e.node, l
		}
		l.note(e)
	}
	for _, l := range all {
		begin, ok := l.from()
		if end := l.to(); ok && begin < to && (end == 0 || end > max(begin, from)) {
			out = append(out, l)
		}
	}
	return out
}

// note records a step. If a step is logged twice, the first is kept, except for disruptions: a
// cancelled one may be followed by another.
func (l *claimLife) note(e *claimEvent) {
	for k, v := range e.labels {
		l.labels[k] = cmp.Or(l.labels[k], v)
	}
	l.instance = cmp.Or(l.instance, e.instance)
	switch e.step {
	case claimLaunched:
		l.launched = cmp.Or(l.launched, e.at)
	case claimRegistered, claimInitialized:
		l.registered = cmp.Or(l.registered, e.at)
	case claimDisrupted:
		l.reason, l.disrupted = e.reason, e.at
	case claimInterrupted:
		l.interruption, l.interrupted = e.reason, e.at
	case claimNodeDeleted, claimDeleted:
		l.end = cmp.Or(l.end, e.at)
	}
}

// overlaps reports whether n is the node of l.
func (l *claimLife) overlaps(n *Node, from policy.Time) bool {
	begin, _ := l.from()
	end := l.to()
	return n.Name == l.node && (n.To == 0 || max(begin, from) < n.To) && (end == 0 || end > n.From)
}

// generated matches the suffix that the API server appends to the name of a NodePool to name its
// NodeClaims.
var generated = regexp.MustCompile(`-[a-z0-9]{5}$`)

// claimed adds the nodes of Karpenter's logs. Nodes that audit logs contain too are only described
// further.
func (r *logReading) claimed(lives []*claimLife) {
	if len(r.claims.events) == 0 {
		return
	}
	pools := map[string]bool{}
	for _, l := range lives {
		pools[l.labels[karpenterv1.NodePoolLabelKey]] = true
	}
	reasons, unended, audited := map[string]int64{}, 0, len(r.nodes.done)
	for _, l := range lives {
		if pool := generated.ReplaceAllString(l.claim, ""); pool != "" && pools[pool] {
			l.labels[karpenterv1.NodePoolLabelKey] = cmp.Or(l.labels[karpenterv1.NodePoolLabelKey], pool)
		}
		if end := l.to(); end == 0 && l.disrupted > 0 {
			unended++
		}
		if reason := r.lost(l); reason != "" {
			reasons[reason]++
		}
		r.addLife(l, audited)
	}
	for reason, n := range reasons {
		r.out.Disruptions = append(r.out.Disruptions, Disruption{reason, n})
	}
	slices.SortFunc(r.out.Disruptions, Disruption.Compare)
	first, last := r.claims.events[0].at, r.claims.events[len(r.claims.events)-1].at
	r.note(fmt.Sprintf("Karpenter's logs are from %v to %v and have %d nodes; other nodes are assumed to have been as they are now",
		first.Std().Format(time.RFC3339), last.Std().Format(time.RFC3339), len(lives)))
	if unended > 0 {
		r.note(fmt.Sprintf("%d nodes were disrupted and no line reports their deletion: they are assumed to have stayed",
			unended))
	}
}

// lost records a node that was interrupted. For a node that Karpenter disrupted for another reason
// within the history, it returns the reason; otherwise an empty string.
func (r *logReading) lost(l *claimLife) string {
	within := func(at policy.Time) bool { return at >= r.from && at < r.to }
	switch {
	case isSpotInterruption(l.interruption):
		if within(l.interrupted) && !r.reclaimed[l.node] {
			r.reclaimed[cmp.Or(l.claim, l.node)] = true
		}
	case l.interruption != "" && within(l.interrupted):
		return l.interruption
	case l.reason != "" && within(l.disrupted) && l.end > 0:
		return l.reason
	}
	return ""
}

// addLife adds a node, or describes the same node of audit logs. Nodes of audit logs are the first
// audited elements of done.
func (r *logReading) addLife(l *claimLife, audited int) {
	describe := func(n *Node) {
		n.Instance = cmp.Or(n.Instance, l.instance)
		if n.Kind == nil && len(l.labels) > 0 {
			n.Kind = r.nodes.kind(l.labels)
		}
	}
	if open := r.nodes.open[l.node]; open != nil && l.overlaps(&open.node, r.from) {
		describe(&open.node)
		return
	}
	for i := range audited {
		if n := &r.nodes.done[i]; l.overlaps(n, r.from) {
			describe(n)
			return
		}
	}
	begin, _ := l.from()
	n := Node{Name: cmp.Or(l.node, l.claim), From: max(begin, r.from), To: l.to()}
	if n.To == 0 || n.To > r.to {
		n.To = r.to
	}
	describe(&n)
	r.nodes.done = append(r.nodes.done, n)
}
