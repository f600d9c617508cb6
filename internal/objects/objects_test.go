package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/objects/objectstest"
	"github.com/spotter-dev/spotter/live/aws/s3"
)

// ranges records the requested ranges and, if cut is set, cuts the first response short.
type ranges struct {
	asked []string
	cut   bool
}

func (r *ranges) around(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text := q.Header.Get("Range")
		if text == "" {
			inner.ServeHTTP(w, q)
			return
		}
		r.asked = append(r.asked, text)
		if r.cut {
			r.cut = false
			inner.ServeHTTP(&cutWriter{ResponseWriter: w, left: 3}, q)
			return
		}
		inner.ServeHTTP(w, q)
	})
}

// A cutWriter passes some bytes on and then breaks the connection.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		if _, err := w.ResponseWriter.Write(p[:w.left]); err != nil {
			return 0, err
		}
		w.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.left -= len(p)
	return w.ResponseWriter.Write(p)
}

func writes(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// TestStore does the same to a folder and to a store.
func TestStore(t *testing.T) {
	objectstest.Use(t, objectstest.Serve(t, nil, "b"))
	for _, folder := range []string{t.TempDir(), "s3://b/some/where"} {
		var s Store
		ctx := t.Context()
		if all, err := s.List(ctx, Join(folder, "none")); len(all) != 0 || err != nil {
			t.Errorf("%s: an empty folder lists %v, %v", folder, all, err)
		}
		if !Remote(folder) {
			if err := os.MkdirAll(filepath.Join(folder, "x", "y"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		a, b := Join(folder, "x", "a"), Join(folder, "x", "y", "b")
		for name, text := range map[string]string{b: "bb", a: "0123456789"} {
			if err := s.Create(ctx, name, writes(text)); err != nil {
				t.Fatal(err)
			}
		}
		failed := errors.New("disk full")
		if err := s.Create(ctx, a, func(w io.Writer) error { return errors.Join(writes("half")(w), failed) }); !errors.Is(err, failed) {
			t.Errorf("%s: a failed write returns %v", folder, err)
		}
		f, err := s.Open(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 4)
		if n, err := f.ReadAt(p, 3); n != 4 || err != nil || string(p) != "3456" || f.Size() != 10 {
			t.Errorf("%s: reads %q, %v of %d bytes", folder, p[:n], err, f.Size())
		}
		if n, err := f.ReadAt(p, 8); n != 2 || !errors.Is(err, io.EOF) || string(p[:n]) != "89" {
			t.Errorf("%s: reads %q, %v at its end", folder, p[:n], err)
		}
		if n, err := f.ReadAt(p, 10); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: reads %d bytes, %v behind its end", folder, n, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		all, err := s.List(ctx, Join(folder, "x"))
		if err != nil || len(all) != 2 || all[0] != (Info{Name: a, Size: 10}) || all[1] != (Info{Name: b, Size: 2}) {
			t.Errorf("%s lists %v, %v", folder, all, err)
		}
		for range 2 {
			if err := s.Delete(ctx, a); err != nil {
				t.Errorf("deleting %s: %v", a, err)
			}
		}
		if _, err := s.Open(ctx, a); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), a) {
			t.Errorf("opening what was deleted: %v", err)
		}
		if data, err := s.ReadFile(ctx, b); err != nil || string(data) != "bb" {
			t.Errorf("%s holds %q, %v", b, data, err)
		}
	}
}

// TestRanges reads only the requested ranges of an object, continues where a response is cut
// short, and never mixes two versions of the contents.
func TestRanges(t *testing.T) {
	var asked ranges
	objectstest.Use(t, objectstest.Serve(t, asked.around, "b"))
	var s Store
	text := strings.Repeat("0123456789", 1000)
	if err := s.Create(t.Context(), "s3://b/k", writes(text)); err != nil {
		t.Fatal(err)
	}
	f, err := s.Open(t.Context(), "s3://b/k")
	if err != nil {
		t.Fatal(err)
	}
	asked.cut = true
	p := make([]byte, 10)
	if n, err := f.ReadAt(p, 5000); n != 10 || err != nil || !bytes.Equal(p, []byte("0123456789")) {
		t.Errorf("reads %q, %v", p[:n], err)
	}
	if got := strings.Join(asked.asked, " "); got != "bytes=5000-5009 bytes=5003-5009" {
		t.Errorf("asked for %s", got)
	}
	if err := s.Create(t.Context(), "s3://b/k", writes("another")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(p[:2], 0); err == nil || !strings.Contains(err.Error(), "s3://b/k: it was replaced meanwhile") {
		t.Errorf("reading what was replaced: %v", err)
	}
}

// TestRefused names what is wrong.
func TestRefused(t *testing.T) {
	objectstest.Use(t, objectstest.Serve(t, nil, "b"))
	for name, want := range map[string]string{
		"s3://":           "names no bucket",
		"s3://b":          "names no object",
		"s3://c/k":        "open s3://c/k",
		t.TempDir():       "is a folder",
		"/no/such/folder": "no such file",
	} {
		if _, err := new(Store).Open(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opening %s: %v, want %q", name, err, want)
		}
	}
	if _, err := new(Store).List(t.Context(), "s3://c"); err == nil || !strings.Contains(err.Error(), "no such bucket") {
		t.Errorf("listing no bucket: %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	if _, err := new(Store).Open(t.Context(), "s3://b/k"); err == nil || !strings.Contains(err.Error(), "set AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	s := Store{s3.Client{Endpoint: "http://127.0.0.1:1"}}
	if _, err := s.Open(ended, "s3://b/k"); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
