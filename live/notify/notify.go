// Package notify sends notifications for operators to a webhook, as CloudEvents in the structured
// mode of the HTTP binding: one JSON object per request (CloudEvents 1.0.2, JSON Event Format §3,
// HTTP Protocol Binding §3.2).
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

// Types of events.
const (
	KillSwitchChanged = "dev.spotter.killswitch.changed"
	DrainUndone       = "dev.spotter.drain.undone"
	GateChanged       = "dev.spotter.gate.changed"
	RampChanged       = "dev.spotter.ramp.changed"
	WeeklySavings     = "dev.spotter.savings.weekly"
)

// Reasons why an event is dropped.
const (
	DroppedFull     = "queue-full" // too many events wait
	DroppedRefused  = "refused"    // the webhook responded that it does not accept the event
	DroppedFailed   = "failed"     // all attempts failed
	DroppedStopping = "stopping"   // the process is stopping
)

// An Event is an event to send.
type Event struct {
	// Type is one of the types above. Subject is the object that the event is about.
	Type, Subject string

	// Data is encoded as JSON.
	Data any
}

// An envelope is an event in the format of CloudEvents.
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

// A Config configures a [Sender]. Start from [DefaultConfig].
type Config struct {
	// URL is the address of the webhook. Source identifies the controller in each event.
	URL, Source string

	// Header is a header of each request. Its value is the content of HeaderFile, which is read for
	// each request, so that a token can be rotated. If HeaderFile is empty, the header is not set.
	Header, HeaderFile string

	// QueueMax is the maximum number of events that wait; further events are dropped. If it is
	// raised, fewer events are lost while the webhook is down.
	QueueMax int

	// Tries is the maximum number of attempts for an event, and Timeout the maximum duration of an
	// attempt. RetryMin is the wait before the second attempt, which then doubles up to RetryMax.
	Tries              int
	Timeout            time.Duration
	RetryMin, RetryMax time.Duration

	Clock clock.WithTicker
	Log   *slog.Logger

	// Counted is called with the result of each event: "sent", or the reason why it was dropped. It
	// may be nil.
	Counted func(outcome string)
}

// DefaultConfig returns limits that tolerate a failure of the webhook for about a quarter of an
// hour.
func DefaultConfig() Config {
	return Config{
		Header: "Authorization", QueueMax: 256, Tries: 8, Timeout: 10 * time.Second, RetryMin: 2 * time.Second, RetryMax: 5 * time.Minute,
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}
}

// A Sender sends events one after the other. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	client *http.Client
	queue  chan *envelope
	number atomic.Uint64
}

// New returns a sender. It sends nothing until Run is called.
func New(cfg Config) *Sender {
	return &Sender{
		cfg: cfg, queue: make(chan *envelope, cfg.QueueMax),
		// Redirects are not followed, because the header might be sent to another host.
		client: &http.Client{Timeout: cfg.Timeout, CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
}

// Notify queues an event and returns at once. It drops the event if the queue is full. A nil Sender
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

// Run sends events until ctx ends. Then it tries once to send the waiting events, within Timeout in
// total.
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

// flush tries once to send each waiting event.
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

// deliver sends one event until it is accepted or rejected, or until all attempts have failed.
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

// A refusal is a response with a status other than 2xx.
type refusal struct{ status int }

func (r *refusal) Error() string {
	return fmt.Sprintf("the webhook answered %d %s", r.status, http.StatusText(r.status))
}

// final reports whether the webhook would reject the same request again.
func (r *refusal) final() bool {
	return r.status < 500 && r.status != http.StatusRequestTimeout && r.status != http.StatusTooEarly &&
		r.status != http.StatusTooManyRequests &&
		r.status != http.StatusUnauthorized && r.status != http.StatusForbidden // its token may be rotated
}

// answerMax is the maximum number of bytes that are read from a response, so that the connection
// can be reused.
const answerMax = 64 << 10

// send sends an event once. after is the wait that the webhook requests.
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

// dropped counts an event that is lost. It does not log the URL, which may contain a secret.
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
