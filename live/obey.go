package live

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// notices returns the drains of the nodes under notice. A fault in what finds them
// must not end the process that has just survived another: there are none then.
func notices(s *policy.Snapshot) (drains []policy.Drain) {
	defer func() {
		if recover() != nil {
			drains = nil
		}
	}()
	return place.Notices(s)
}
