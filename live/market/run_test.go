package market

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Feeds are read at their own pace. One that fails is read again at growing intervals, at most its
// own; one that does not know yet what to read is tried again soon.
func TestRunReadsEachFeedAtItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reads := map[string][]time.Duration{}
		begin := time.Now()
		feed := func(name string, every time.Duration, answer func(n int) (*Update, error)) Feed {
			return &script{name, every, func(a Ask) (*Update, error) {
				mu.Lock()
				defer mu.Unlock()
				reads[name] = append(reads[name], time.Since(begin))
				u, err := answer(len(reads[name]))
				if u != nil {
					u.AsOf = a.Now
				}
				return u, err
			}}
		}
		c := DefaultConfig()
		c.Log = slog.New(slog.DiscardHandler)
		c.RetryMin, c.RetryMax = time.Second, time.Minute
		c.Feeds = []Feed{
			feed("good", 5*time.Minute, func(int) (*Update, error) { return &Update{}, nil }),
			feed("bad", 10*time.Minute, func(int) (*Update, error) { return nil, errors.New("down") }),
			feed("late", time.Hour, func(n int) (*Update, error) {
				if n < 4 {
					return nil, ErrNothingWanted
				}
				return &Update{}, nil
			}),
		}
		b, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()
		time.Sleep(11 * time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s := time.Second
		if want := []time.Duration{0, 300 * s, 600 * s}; !slices.Equal(reads["good"], want) {
			t.Errorf("good was read at %v, want %v", reads["good"], want)
		}
		// 1, 2, 4, 8, 16 and 32 s after each other, then every minute.
		if want := []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s, 123 * s,
			183 * s}; !slices.Equal(reads["bad"][:9], want) || len(reads["bad"]) != 16 {
			t.Errorf("bad was read at %v, want %v and so on", reads["bad"], want)
		}
		if want := []time.Duration{0, s, 2 * s, 3 * s}; !slices.Equal(reads["late"], want) {
			t.Errorf("late was read at %v, want %v", reads["late"], want)
		}
	})
}
