package aws

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// A journal that was cut off or damaged anywhere yields the entries before that place and takes new
// ones after them.
func TestJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []entry
	ends := []int64{int64(len(journalMagic))}
	for i := range 4 {
		e := entry{Page: &page{Region: "us-east-1", From: policy.Time(i), Until: policy.Time(i + 1), Next: fmt.Sprint(i)}}
		if err := j.add(e); err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
		info, err := j.file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	j.file.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, body []byte, good int) {
		t.Helper()
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		j, got, err := openJournal(path)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if len(got) != good || good > 0 && !reflect.DeepEqual(got, want[:good]) {
			t.Fatalf("%s: %d entries, want %d", what, len(got), good)
		}
		if err := j.add(want[0]); err != nil {
			t.Fatal(err)
		}
		j.file.Close()
		j, got, err = openJournal(path)
		if err != nil || len(got) != good+1 {
			t.Fatalf("%s: %d entries after one more, %v", what, len(got), err)
		}
		j.file.Close()
	}
	good := 0
	for n := 0; n <= len(whole); n += 3 {
		for good+1 < len(ends) && ends[good+1] <= int64(n) {
			good++
		}
		check(fmt.Sprintf("cut at %d", n), whole[:n], good)
	}
	for n := int(ends[0]); n < len(whole); n += 7 {
		damaged := append([]byte(nil), whole...)
		damaged[n] ^= 0x20
		good := 0
		for ends[good+1] <= int64(n) {
			good++
		}
		check(fmt.Sprintf("damaged at %d", n), damaged, good)
	}
	if err := os.WriteFile(path, []byte("something else altogether"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path); !errors.Is(err, ErrFolder) {
		t.Errorf("another file was taken for a journal: %v", err)
	}
}

// An answer is whole when its XML ends with its root or its JSON is JSON.
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, body string
		status     int
		whole      bool
	}{
		{"text/xml;charset=UTF-8", "<?xml version=\"1.0\"?>\n<A x=\"1\"><b/></A>\n", 200, true},
		{"text/xml;charset=UTF-8", "<?xml version=\"1.0\"?>\n<A x=\"1\"><b/>", 200, false},
		{"text/xml;charset=UTF-8", "<?xml version=\"1.0\"?>\n<A><A></A>x", 200, false},
		{"text/xml;charset=UTF-8", "", 200, false},
		{"text/xml;charset=UTF-8", "<", 503, false},
		{"application/x-amz-json-1.1", `{"a": 1}`, 200, true},
		{"application/x-amz-json-1.1", `{"a": 1`, 200, false},
		{"application/x-amz-json-1.1", "", 400, false},
		{"text/html", "<html>bad gateway", 502, true},
		{"", "", 200, false},
		{"text/xml", `<?xml version="1.0"?><A x="1" />`, 200, true},
		{"text/xml", `<A x="1"><b/>`, 200, false},
		{"text/plain", "<A><b>", 200, false},
		{"", "<x:A></x:A>", 200, true},
	} {
		answer := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}}
		if err := whole(answer, []byte(c.body)); (err == nil) != c.whole {
			t.Errorf("%s %q: %v", c.kind, c.body, err)
		}
	}
}
