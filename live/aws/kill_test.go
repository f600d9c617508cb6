package aws_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/test/nightly"
)

// A recorder that the system kills at many instants anywhere between its first request and its last
// file continues from what it finds and ends with the bytes of an undisturbed recorder.
func TestKilled(t *testing.T) {
	t.Parallel()
	const workers, days = 4, 1
	kills := int64(nightly.Count(16, 50))
	seed := uint64(time.Now().UnixNano())
	state := draw(seed, days+1)
	_, url := serve(t, state, fake.Faults{})
	calm := filepath.Join(t.TempDir(), "trace")
	record(t, settingsOf(calm, url, end, days))
	want := hash(t, calm)

	var left, midway, late atomic.Int64
	left.Store(kills)
	var wg sync.WaitGroup
	for w := range uint64(workers) {
		wg.Go(func() {
			for chain := uint64(0); left.Load() > 0; chain++ {
				v := victim{t: t, key: chance.New(seed, "kill", fmt.Sprint(w, chain)), midway: &midway, late: &late}
				v.job = childJob{Dir: filepath.Join(t.TempDir(), "trace"), Now: end, Days: days}
				faults := hostile(seed + w*1000 + chain)
				faults.PageMax = 20
				v.server, v.job.URL = serve(t, state, faults)
				for n := uint64(0); left.Load() > 0 && v.run(n, true); n++ {
					left.Add(-1)
				}
				v.run(0, false)
				if got := hash(t, v.job.Dir); got != want {
					t.Errorf("seed %d: the folder is %s, undisturbed it is %s", seed, got, want)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d kills before the first file was in place, %d before the last", midway.Load(), late.Load())
	if midway.Load() == 0 || late.Load() == 0 {
		t.Error("no kill hit the one or the other")
	}
}

// A victim is a recorder in a process of its own.
type victim struct {
	t      *testing.T
	key    chance.Key
	server *fake.Server
	job    childJob

	// midway counts kills before any file was in place, late those before all
	// were.
	midway, late *atomic.Int64
}

// run starts the recorder, kills it at a drawn instant if it shall be, and
// reports whether it was killed and not quicker.
func (v *victim) run(n uint64, kill bool) bool {
	settings, err := json.Marshal(v.job)
	if err != nil {
		panic(err)
	}
	ctx, end := context.WithCancel(context.Background()) // its end is SIGKILL
	defer end()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	// A child under the race detector would otherwise wait a second at its end.
	cmd.Env = append(os.Environ(), childVariable+"="+string(settings), "GORACE=atexit_sleep_ms=0")
	var said bytes.Buffer
	cmd.Stderr = &said
	if kill {
		v.arm(ctx, end, v.key.At1(n))
	}
	err = cmd.Run()
	v.server.SetServed(nil)
	switch code := cmd.ProcessState.ExitCode(); {
	case code == 0: // it was quicker
		return false
	case !kill || code != -1:
		v.t.Errorf("the recorder failed: %v: %s", err, said.String())
		return false
	}
	v.note()
	return true
}

// arm has end called at an instant that key draws.
func (v *victim) arm(ctx context.Context, end func(), key chance.Key) {
	delay := time.Duration(key.At1(2).IntN(3000)) * time.Microsecond
	due := int64(1)
	switch u := key.At1(1).Float(); {
	case u < 0.5: // at the n-th request
		due += int64(key.At1(0).IntN(24))
	case u < 0.6: // so long after the first request, whatever it is then doing
		delay *= 100
	default: // when the next file is in its place, or the one after that
		files := v.files() + 1 + key.At1(0).IntN(2)
		go func() {
			for ctx.Err() == nil && v.files() < files {
				time.Sleep(200 * time.Microsecond)
			}
			end()
		}()
		return
	}
	var served atomic.Int64
	v.server.SetServed(func(string, int) {
		if served.Add(1) == due {
			time.AfterFunc(delay, end)
		}
	})
}

// files returns how many files are in their places.
func (v *victim) files() int {
	files, err := filepath.Glob(filepath.Join(v.job.Dir, "provider=*", "region=*", "date=*", "*.parquet"))
	if err != nil {
		panic(err)
	}
	return len(files)
}

// note counts how far the recorder had come when it was killed.
func (v *victim) note() {
	switch n := v.files(); {
	case n == 0:
		v.midway.Add(1)
	case n < len(regions)*(v.job.Days+1):
		v.late.Add(1)
	}
}
