package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A kind is the kind of event in a message.
type kind uint8

const (
	kindUnknown kind = iota
	kindInterruption
	kindRecommendation
	kindStateChange
	kindScheduledChange
	kindLifecycle
	kindOther // other events of EC2 or AWS Health, not used
)

// A message is a decoded EventBridge event.
type message struct {
	kind kind
	id   string // ID of the event; redeliveries have the same ID
	name string // source and detail type

	at        policy.Time
	reclaimAt policy.Time
	instances []string
	state     string
}

// errMessage is wrapped by all errors for unreadable messages.
var errMessage = errors.New("the message cannot be read")

// envelope is the format of all EventBridge events (AWS documentation, "AWS service event
// metadata").
type envelope struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Time       *time.Time      `json:"time"`
	Detail     json.RawMessage `json:"detail"`

	// Fields of messages that an Auto Scaling group sends to the queue directly, including test
	// messages.
	Transition string `json:"LifecycleTransition"`
	Event      string `json:"Event"`
}

// detail contains the fields of event details that are used.
type detail struct {
	Instance string `json:"instance-id"`
	Action   string `json:"instance-action"`
	State    string `json:"state"`

	Service  string `json:"service"`
	Category string `json:"eventTypeCategory"`
	Status   string `json:"statusCode"`
	Start    string `json:"startTime"`
	Affected []struct {
		Value string `json:"entityValue"`
	} `json:"affectedEntities"`
}

// read decodes the body of a message.
func read(body string) (*message, error) {
	var e envelope
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	m := &message{id: e.ID, name: e.Source + " " + e.DetailType}
	switch {
	case e.Transition != "" || strings.HasPrefix(e.Event, "autoscaling:"):
		m.kind, m.name = kindLifecycle, "Auto Scaling "+e.Transition+e.Event
		return m, nil
	case e.DetailType == "" || e.Source == "":
		return nil, fmt.Errorf("%w: it is not an EventBridge event: it has no detail-type or no source", errMessage)
	}
	switch e.DetailType {
	case "EC2 Spot Instance Interruption Warning":
		m.kind = kindInterruption
	case "EC2 Instance Rebalance Recommendation":
		m.kind = kindRecommendation
	case "EC2 Instance State-change Notification":
		m.kind = kindStateChange
	case "AWS Health Event":
		m.kind = kindScheduledChange
	case "EC2 Instance-launch Lifecycle Action", "EC2 Instance-terminate Lifecycle Action":
		m.kind = kindLifecycle
		return m, nil
	default:
		return m, nil
	}
	return m, m.readDetail(&e)
}

// readDetail decodes the instances in the event.
func (m *message) readDetail(e *envelope) error {
	var d detail
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return fmt.Errorf("%w: detail of %q: %w", errMessage, e.DetailType, err)
	}
	if e.Time == nil {
		return fmt.Errorf("%w: %q has no time", errMessage, e.DetailType)
	}
	m.at, m.state = policy.TimeOf(*e.Time), d.State
	if m.kind == kindScheduledChange {
		return m.readHealth(&d)
	}
	if !instance(d.Instance) {
		return fmt.Errorf("%w: %q names no instance: %q", errMessage, e.DetailType, d.Instance)
	}
	m.instances = []string{d.Instance}
	if m.kind == kindInterruption {
		m.reclaimAt = m.at.Add(policy.NoticeLead(policy.AWS))
		if d.Action == "hibernate" {
			m.reclaimAt = m.at // it starts at once (AWS documentation, "Hibernate interrupted Spot Instances")
		}
	}
	return nil
}

// readHealth decodes a scheduled change of instances. Other AWS Health events are not used.
func (m *message) readHealth(d *detail) error {
	if d.Service != "EC2" || d.Category != "scheduledChange" || d.Status == "closed" {
		m.kind = kindOther
		return nil
	}
	start, err := time.Parse(time.RFC1123, d.Start)
	if err != nil {
		return fmt.Errorf("%w: a scheduled change starts at %q", errMessage, d.Start)
	}
	m.reclaimAt = policy.TimeOf(start)
	for _, a := range d.Affected {
		if instance(a.Value) {
			m.instances = append(m.instances, a.Value)
		}
	}
	if len(m.instances) == 0 {
		m.kind = kindOther // a host or a volume
	}
	return nil
}

// instance reports whether id is the ID of an instance.
func instance(id string) bool { return strings.HasPrefix(id, "i-") && len(id) > len("i-") }
