package progress

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spotter-dev/spotter/eval"
)

// TestLines: without a terminal a line is written every ten seconds with the runs that are done and
// the time left, and none by what ends sooner.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := writeLines(&out, "preparing", lineEvery)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("after 9 s it has written %q", out.String())
		}
		l.update(eval.Progress{Step: eval.StepRuns, Total: 8})
		time.Sleep(2 * time.Second)
		l.update(eval.Progress{Step: eval.StepRuns, Done: 1, Total: 8})
		time.Sleep(9 * time.Second)
		l.close()
		const want = "runs · 0 of 8 · 1s\nruns · 1 of 8 · 11s · about 1m17s left\n"
		if out.String() != want {
			t.Errorf("it wrote\n%s\nwant\n%s", out.String(), want)
		}
	})
}

// TestBar: the bar is full only when all is done.
func TestBar(t *testing.T) {
	for _, x := range []struct {
		done, total, full int
	}{{0, 7, 0}, {6, 7, 20}, {7, 7, barWidth}, {999, 1000, barWidth - 1}, {9, 7, barWidth}} {
		if got := bytes.Count([]byte(bar(x.done, x.total)), []byte("█")); got != x.full {
			t.Errorf("%d of %d fill %d of %d characters, want %d", x.done, x.total, got, barWidth, x.full)
		}
	}
}
