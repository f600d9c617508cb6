package engine

import (
	"bytes"
	"strings"
	"testing"
)

// A name in the line leaves the hash as it is.
func TestLogNames(t *testing.T) {
	var plain, named bytes.Buffer
	a, b := NewLog(nil, &plain), NewLog(nil, &named)
	a.Add(1, RecordFault, "zone", "", 3)
	b.AddNamed(1, RecordFault, "zone", "", 3, "zone-outage-begins")
	x, errX := a.Digest()
	y, errY := b.Digest()
	if errX != nil || errY != nil || x != y {
		t.Errorf("the hashes are %x and %x, %v, %v", x, y, errX, errY)
	}
	if !strings.HasSuffix(plain.String(), "fault zone - 3\n") || !strings.HasSuffix(named.String(), "fault zone - zone-outage-begins\n") {
		t.Errorf("the lines are %q and %q", &plain, &named)
	}
}
