// Package notify sends what operators want to learn of the controller to a webhook, as
// CloudEvents in the structured mode of their HTTP binding: one JSON object a request
// (CloudEvents 1.0.2, JSON Event Format §3, HTTP Protocol Binding §3.2).
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// The types of events.
const (
	KillSwitchChanged = "dev.spotter.killswitch.changed"
	DrainUndone       = "dev.spotter.drain.undone"
	GateChanged       = "dev.spotter.gate.changed"
	RampChanged       = "dev.spotter.ramp.changed"
	WeeklySavings     = "dev.spotter.savings.weekly"
)

// Why an event is dropped.
const (
	DroppedFull     = "queue-full" // too many wait
	DroppedRefused  = "refused"    // the webhook answered that it wants no such event
	DroppedFailed   = "failed"     // it did not take the event however often it was sent
	DroppedStopping = "stopping"   // the process ends
)

// An Event is something that happened.
type Event struct {
	// Type is one of the types above, Subject the object that it is about.
	Type, Subject string

	// Data is encoded as JSON.
	Data any
}

// An envelope is an event as it is sent.
type envelope struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject,omitempty"`
	Time        string          `json:"time"`
	ContentType string          `json:"datacontenttype"`
	Data        json.RawMessage `json:"data"`
}

// A Config says where events are sent. Start from [DefaultConfig].
type Config struct {
	// URL takes the events; Source says in each which controller it is of.
	URL, Source string

	// Header is set in each request to what HeaderFile holds, which is read each time: a
	// token may be rotated. An empty HeaderFile sets none.
	Header, HeaderFile string

	// QueueMax is how many events may wait; more are dropped. Raising it loses less while
	// the webhook is down.
	QueueMax int

	// Tries is how often an event is sent before it is dropped, Timeout bounds one try, and
	// RetryMin is the time before the second, which doubles up to RetryMax.
	Tries              int
	Timeout            time.Duration
	RetryMin, RetryMax time.Duration

	Clock clock.WithTicker
	Log   *slog.Logger

	// Counted gets the result of each event: "sent", or why it was dropped. It may be nil.
	Counted func(outcome string)
}

// DefaultConfig returns limits with which a webhook may be down for a quarter of an hour.
func DefaultConfig() Config {
	return Config{
		Header: "Authorization", QueueMax: 256, Tries: 8, Timeout: 10 * time.Second, RetryMin: 2 * time.Second, RetryMax: 5 * time.Minute,
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}
}

// A Sender sends events one after the other. It may be used by several goroutines.
type Sender struct {
	cfg    Config
	client *http.Client
	queue  chan *envelope
	number atomic.Uint64
}

// New returns a sender that has sent nothing yet.
func New(cfg Config) *Sender {
	return &Sender{
		cfg: cfg, queue: make(chan *envelope, cfg.QueueMax),
		// A redirection is not followed: it could carry the header elsewhere.
		client: &http.Client{Timeout: cfg.Timeout, CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
}

// Notify has an event sent, and never waits: where too many wait it is dropped. A nil Sender
// sends nothing.
func (s *Sender) Notify(e Event) {
	if s == nil {
		return
	}
	data, err := json.Marshal(e.Data)
	if err != nil {
		panic(fmt.Sprintf("notify: event %s of %q: %v", e.Type, e.Subject, err))
	}
	now := s.cfg.Clock.Now().UTC()
	x := &envelope{
		SpecVersion: "1.0", ID: strconv.FormatInt(now.UnixNano(), 36) + "-" + strconv.FormatUint(s.number.Add(1), 36),
		Source: s.cfg.Source, Type: e.Type, Subject: e.Subject, Time: now.Format(time.RFC3339Nano), ContentType: "application/json", Data: data,
	}
	select {
	case s.queue <- x:
	default:
		s.dropped(x, DroppedFull, errors.New("too many events wait"))
	}
}

// Run sends events until ctx ends, and then what waits once more, for no longer than one try.
func (s *Sender) Run(ctx context.Context) error {
	for {
		select {
		case x := <-s.queue:
			s.deliver(ctx, x)
		case <-ctx.Done():
			s.flush(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// flush sends each event that waits once.
func (s *Sender) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	for len(s.queue) > 0 {
		x := <-s.queue
		if _, err := s.send(ctx, x); err != nil {
			s.dropped(x, DroppedStopping, err)
			continue
		}
		s.counted("sent")
	}
}

// deliver sends one event until it is taken, refused, or was sent often enough.
func (s *Sender) deliver(ctx context.Context, x *envelope) {
	wait := s.cfg.RetryMin
	for try := 1; ; try++ {
		after, err := s.send(ctx, x)
		var refused *refusal
		switch {
		case err == nil:
			s.counted("sent")
			return
		case errors.As(err, &refused) && refused.final():
			s.dropped(x, DroppedRefused, err)
			return
		case try >= s.cfg.Tries:
			s.dropped(x, DroppedFailed, err)
			return
		}
		timer := s.cfg.Clock.NewTimer(min(max(wait, after), s.cfg.RetryMax))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			if _, err := s.send(context.WithoutCancel(ctx), x); err != nil {
				s.dropped(x, DroppedStopping, err)
				return
			}
			s.counted("sent")
			return
		}
		wait = min(2*wait, s.cfg.RetryMax)
	}
}

// A refusal is an answer other than 2xx.
type refusal struct{ status int }

func (r *refusal) Error() string {
	return fmt.Sprintf("the webhook answered %d %s", r.status, http.StatusText(r.status))
}

// final reports whether the same request would be refused again.
func (r *refusal) final() bool {
	return r.status < 500 && r.status != http.StatusRequestTimeout && r.status != http.StatusTooEarly &&
		r.status != http.StatusTooManyRequests &&
		r.status != http.StatusUnauthorized && r.status != http.StatusForbidden // its token may be rotated
}

// answerMax bounds what is read of an answer, so that the connection can be used again.
const answerMax = 64 << 10

// send sends an event once. after is how long the webhook asks to wait.
func (s *Sender) send(ctx context.Context, x *envelope) (after time.Duration, err error) {
	body, err := json.Marshal(x)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
	if s.cfg.HeaderFile != "" {
		value, err := os.ReadFile(s.cfg.HeaderFile)
		if err != nil {
			return 0, fmt.Errorf("reading header %s: %w", s.cfg.Header, err)
		}
		r.Header.Set(s.cfg.Header, strings.TrimSpace(string(value)))
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, answerMax)
	if answer.StatusCode/100 == 2 {
		return 0, nil
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		after = min(time.Duration(seconds), time.Duration(s.cfg.RetryMax/time.Second)) * time.Second
	}
	return after, &refusal{answer.StatusCode}
}

// dropped counts an event that is lost. The URL may hold a secret, and is in no log.
func (s *Sender) dropped(x *envelope, why string, err error) {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	s.cfg.Log.Error("a notification is dropped", "type", x.Type, "subject", x.Subject, "why", why, "error", err)
	s.counted(why)
}

func (s *Sender) counted(outcome string) {
	if s.cfg.Counted != nil {
		s.cfg.Counted(outcome)
	}
}
