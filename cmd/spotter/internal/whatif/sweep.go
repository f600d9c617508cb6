package whatif

import "github.com/spotter-dev/spotter/scenarios/edit"

// parseSweep reads PATH=FROM..TO[/STEPS] into the path and its values.
func parseSweep(text string) (path string, values []string, err error) {
	path, span, err := edit.Split(text)
	if err != nil {
		return "", nil, err
	}
	r, err := edit.ParseRange(span)
	if err != nil {
		return "", nil, err
	}
	return path, r.Values(), nil
}
